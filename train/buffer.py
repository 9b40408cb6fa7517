"""What an epoch's decisions were, and what they turned out to be worth."""

from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

SEEN = ("choices", "around", "mask", "prior")
"""What an observation is kept as."""

ROOM = 131_072
"""Decisions for which there is room at first; memory is used as it is written to."""


def discount_cumsum(x: np.ndarray, discount: float) -> np.ndarray:
    """Sums of what is to come: x0 + d·x1 + d²·x2 + ..., x1 + d·x2 + ..., ... for x (steps,)."""
    out: np.ndarray = lfilter([1], [1, -discount], x[::-1])[::-1]
    return out


def advantages(rewards: np.ndarray, values: np.ndarray, last: float, gamma: float, lam: float) -> np.ndarray:
    """Generalised advantage estimation (Schulman et al. 2016) over one path.

    rewards, values (steps,); `last` is the value of where the path was cut, 0 where the episode has ended.
    A_t = Σ_k (γλ)^k δ_{t+k} with δ_t = r_t + γ V_{t+1} - V_t.
    """
    ahead = np.append(values[1:], last)
    return discount_cumsum(rewards + gamma * ahead - values, gamma * lam)


class Batch(NamedTuple):
    """The decisions of an epoch, one path after the other."""

    choices: np.ndarray  # (decisions, slots, features) uint16, packed: the jobs or hosts to choose from
    around: np.ndarray  # (decisions, numbers) uint16, packed: what else is seen
    mask: np.ndarray  # (decisions, actions) int8
    prior: np.ndarray  # (decisions, window) uint16, packed; (decisions, 0) where no policy is a residual
    action: np.ndarray  # (decisions,) int32
    logp: np.ndarray  # (decisions,) float32, of the action when it was taken
    value: np.ndarray  # (decisions,) float32, expected then
    advantage: np.ndarray  # (decisions,) float32
    target: np.ndarray  # (decisions,) float32: advantage + value, what the value should have been


class Buffer:
    """Room for the decisions of an epoch, which grows as they come."""

    def __init__(self, like: dict[str, np.ndarray], room: int = ROOM) -> None:
        kinds = {"path": np.zeros((), np.int32), "action": np.zeros((), np.int32), "reward": np.zeros((), np.float64)}
        self.count = 0
        self._bufs = {
            name: np.empty((room, *one.shape), one.dtype)
            for name, one in ({name: array[0] for name, array in like.items()} | kinds).items()
        }

    def store(self, **columns: np.ndarray) -> None:
        """Keep some decisions: a row in every column, the packed observations and what was done."""
        more = len(columns["action"])
        while self.count + more > len(self._bufs["action"]):
            self._grow()
        for name, column in columns.items():
            self._bufs[name][self.count : self.count + more] = column
        self.count += more

    def _grow(self) -> None:
        for name, buf in self._bufs.items():
            self._bufs[name] = np.empty((len(buf) * 3 // 2 + 1, *buf.shape[1:]), buf.dtype)
            self._bufs[name][: self.count] = buf[: self.count]

    def column(self, name: str) -> np.ndarray:
        """One column, as far as it is filled."""
        return self._bufs[name][: self.count]

    def observed(self) -> dict[str, np.ndarray]:
        """The observations, packed."""
        return {name: self.column(name) for name in SEEN}

    def finish(self, logp: np.ndarray, value: np.ndarray, last: dict[int, float], gamma: float, lam: float) -> Batch:
        """Work out advantages, path by path, from what was expected (decisions,).

        `last` has the value of where a path was cut, if it was.
        """
        path, reward = self.column("path"), self.column("reward")
        advantage = np.zeros(self.count, np.float32)
        order = np.argsort(path, kind="stable")
        borders = np.flatnonzero(np.diff(path[order])) + 1
        for steps in np.split(order, borders) if self.count else ():
            end = last.get(int(path[steps[0]]), 0.0)
            advantage[steps] = advantages(reward[steps], value[steps].astype(float), end, gamma, lam)
        action = self.column("action")
        return Batch(**self.observed(), action=action, logp=logp, value=value, advantage=advantage,
                     target=advantage + value)  # fmt: skip
