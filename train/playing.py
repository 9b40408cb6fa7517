"""Episodes played by anybody who decides, many at once."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from envs.many import ManyEnvs
from envs.vector import SchedulingVectorEnv
from train.buffer import Buffer
from train.packing import STEPS, pack


class Episodes(NamedTuple):
    """How some episodes ended."""

    gain: np.ndarray  # (episodes,) F against the baseline
    agent: np.ndarray  # (episodes,) the agent's score
    baseline: np.ndarray  # (episodes,) the baseline's
    earned: np.ndarray  # (episodes,) sum of rewards
    decisions: np.ndarray  # (episodes,)


def packed(env: ManyEnvs, seen: dict[str, np.ndarray], who: np.ndarray | slice = slice(None)) -> dict[str, np.ndarray]:
    """Observations of some environments as they are kept, with the order of the prior policy beside them."""
    if not isinstance(who, slice) and len(who) == env.num_envs:
        who = slice(None)
    choices, around = env.parts(seen)
    return {
        "choices": pack(choices[who]), "around": pack(around[who]), "mask": seen["mask"][who].copy(),
        "prior": pack(env.prior[who] if env.tells_prior else env.prior[who, :0]),
    }  # fmt: skip


Decide = Callable[[dict[str, np.ndarray]], np.ndarray]
"""Packed observations -> actions."""

Tick = Callable[[int], None]
"""Told how many episodes have ended."""


Ended = Callable[[int, int], None]
"""Told which episode has ended, and in which environment."""


class _Players:
    """Plays one episode for each seed, as many at once as there are environments; the next begins where one ends.

    Where the windows are listed, the episodes are the list's, one after the other.
    """

    def __init__(self, env: ManyEnvs, seeds: Sequence[int], ended: Ended) -> None:
        self.env, self.seeds, self.ended = env, seeds, ended
        self.listed = env.is_listed
        self.path = np.arange(env.num_envs)  # which episode each environment plays
        self.path[len(seeds) :] = -1
        self.next = min(env.num_envs, len(seeds))
        first = [seeds[e % len(seeds)] for e in range(env.num_envs)]
        windows = {"first": [e % len(seeds) for e in range(env.num_envs)]} if self.listed else {}
        self.seen, _ = env.reset(seed=first, options=windows)
        self.ends: dict[int, tuple[float, float, float, float, int]] = {}
        self.earned = np.zeros(env.num_envs)

    def step(self, actions: np.ndarray) -> np.ndarray:
        """Take a decision in every environment, and begin the next episodes; returns the rewards."""
        self.seen, rewards, terminated, truncated, info = self.env.step(actions)
        self.earned += rewards
        over = np.flatnonzero(terminated | truncated)
        if len(over):
            self._begin(over, info)
        return rewards

    def _begin(self, over: np.ndarray, info: dict[str, np.ndarray]) -> None:
        """Note how episodes ended, and begin others there."""
        seeds: list[int | None] = [None] * self.env.num_envs
        mask = np.zeros(self.env.num_envs, bool)
        for e in over:
            if self.path[e] >= 0:
                self.ended(int(self.path[e]), int(e))
                self.ends[int(self.path[e])] = (
                    float(info["gain"][e]), float(info["score"][e]), float(info["baseline_score"][e]),
                    float(self.earned[e]), int(info["decisions"][e]),
                )  # fmt: skip
            self.path[e] = self.next if self.next < len(self.seeds) else -1
            self.earned[e] = 0.0
            if self.path[e] >= 0:
                seeds[e], mask[e] = self.seeds[self.next], True
                self.next += 1
        self.env.rest(over[~mask[over]])
        if mask.any():
            windows = {"first": np.maximum(self.path, 0)} if self.listed else {}
            self.seen, _ = self.env.reset(seed=seeds, options={"reset_mask": mask, **windows})

    def outcome(self) -> Episodes:
        """How the episodes ended, in the order of their seeds."""
        rows = np.array([self.ends[path] for path in sorted(self.ends)]).reshape(-1, 5)
        return Episodes(rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3], rows[:, 4].astype(int))


def play(
    env: ManyEnvs,
    seeds: Sequence[int],
    decide: Decide,
    keep: bool = False,
    most: int = 0,
    tick: Tick = lambda _done: None,
    ended: Ended = lambda _path, _env: None,
) -> tuple[Episodes, Buffer | None, np.ndarray]:
    """Play an episode for each seed, or `most` decisions if that is above 0.

    Returns how episodes ended, the decisions if they shall be kept, and which episode each environment is still in (-1:
    none), where `most` has cut them.
    """
    players, done = _Players(env, seeds, ended), 0
    buffer = Buffer(packed(env, players.seen)) if keep else None
    while (players.path >= 0).any() and not 0 < most <= done:
        busy, path = np.flatnonzero(players.path >= 0), players.path.copy()
        seen = packed(env, players.seen, busy)
        actions = players.seen["mask"].argmax(axis=1)
        actions[busy] = decide(seen)
        rewards = players.step(actions)
        if buffer is not None:
            buffer.store(**seen, path=path[busy], action=actions[busy], reward=rewards[busy])
        done += len(busy)
        tick(len(players.ends))
    return players.outcome(), buffer, players.path


def follow(env: SchedulingVectorEnv) -> Decide:
    """Decide as the prior policy of some environments does."""

    def _decide(seen: dict[str, np.ndarray]) -> np.ndarray:
        order = np.where(seen["mask"][:, : env.options.window] == 1, seen["prior"].astype(int), 2 * STEPS)
        return order.argmin(axis=1).astype(np.int32)

    return _decide
