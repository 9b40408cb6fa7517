"""The evolution strategy with covariance matrix adaptation, CMA-ES (Hansen, The CMA Evolution Strategy: A Tutorial)."""

import numpy as np


class Evolution:
    """A normal distribution of candidates that moves to where the better half of them was.

    Call `ask` for candidates, then `tell` with their scores, of which only the order counts: less is better.
    """

    def __init__(self, mean: np.ndarray, step: float, candidates: int, rng: np.random.Generator) -> None:
        size = len(mean)
        self.mean, self.step, self.rng = mean.copy(), step, rng
        better = candidates // 2
        share = np.log(better + 0.5) - np.log(np.arange(1, better + 1))
        self.share = share / share.sum()
        self.candidates = candidates
        mass = 1 / (self.share**2).sum()  # how many candidates the mean is worth
        self.mass = mass
        self.path_rate = (4 + mass / size) / (size + 4 + 2 * mass / size)
        self.step_rate = (mass + 2) / (size + mass + 5)
        self.one_rate = 2 / ((size + 1.3) ** 2 + mass)
        self.rank_rate = min(1 - self.one_rate, 2 * (mass - 2 + 1 / mass) / ((size + 2) ** 2 + mass))
        self.damping = 1 + 2 * max(0.0, np.sqrt((mass - 1) / (size + 1)) - 1) + self.step_rate
        self.usual = np.sqrt(size) * (1 - 1 / (4 * size) + 1 / (21 * size**2))  # length of a normal vector
        self.path, self.step_path = np.zeros(size), np.zeros(size)
        self.covariance, self.axes, self.lengths = np.eye(size), np.eye(size), np.ones(size)
        self.rounds = 0

    def ask(self) -> np.ndarray:
        """Draw candidates; (candidates, size)."""
        self.drawn = (self.rng.standard_normal((self.candidates, len(self.mean))) * self.lengths) @ self.axes.T
        return self.mean + self.step * self.drawn

    def tell(self, scores: np.ndarray) -> None:
        """Move by the scores of the candidates that `ask` gave last."""
        best = self.drawn[np.argsort(scores, kind="stable")[: len(self.share)]]
        moved = self.share @ best
        self.mean = self.mean + self.step * moved
        self.rounds += 1
        white = self.axes @ ((self.axes.T @ moved) / self.lengths)
        kept = 1 - self.step_rate
        self.step_path = kept * self.step_path + np.sqrt(self.step_rate * (2 - self.step_rate) * self.mass) * white
        length = np.linalg.norm(self.step_path) / self.usual
        steady = length / np.sqrt(1 - kept ** (2 * self.rounds)) < 1.4 + 2 / (len(self.mean) + 1)
        rate = self.path_rate
        self.path = (1 - rate) * self.path + steady * np.sqrt(rate * (2 - rate) * self.mass) * moved
        old = 1 - self.one_rate - self.rank_rate
        self.covariance = (
            old * self.covariance
            + self.one_rate * np.outer(self.path, self.path)
            + self.rank_rate * (best.T * self.share) @ best
        )
        self.step *= float(np.exp(min(1.0, self.step_rate / self.damping * (length - 1))))
        squares, self.axes = np.linalg.eigh(self.covariance)
        self.lengths = np.sqrt(np.maximum(squares, 1e-14))
