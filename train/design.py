"""What networks are made from, whoever computes them."""

from typing import NamedTuple

import numpy as np

from envs.observation import JOB_FEATURES, POOL_FEATURES
from envs.observation import JOB_NAMES as NAMES
from envs.sim.hosts import FEATURES

SLOT, FITS = NAMES.index("slot"), NAMES.index("fits")
"""The columns of `jobs` that are above 0 where the slot holds a job, and where that would start at once."""

SITUATION = [NAMES.index(n) for n in ("wait", "demand", "availability", "fragmentation", "ways", "fits", "slot")]
"""The columns of `jobs` that tell of the moment, not of the job."""

TOKEN, HEADS = 32, 2
"""Width of the tokens that attend to each other, and how many heads they have."""

AROUND = 16
"""Width of the layer that judges waiting."""

RESIDUAL = 3.0
"""By how much a job's logit lies below that of one whose key is e times smaller, where a residual policy begins."""

WAIT = 4.0
"""By how much the logit of waiting lies below that of the best job that fits, at first."""

FAR_BELOW = -1e6
"""Below every logit."""

MASKED = -1e9
"""The logit of an action that cannot be taken; its probability is 0 in single precision, exactly."""


class Shape(NamedTuple):
    """What an environment's observations and actions are like."""

    window: int  # slots of what can be chosen, 0 = any number
    cluster: int  # numbers of `cluster`
    actions: int  # window, or one more where the agent may wait
    pools: tuple[tuple[int, int], ...]  # where each pool's lookahead begins in `cluster`, and how many values it has
    features: int = len(JOB_FEATURES)  # numbers that tell of what can be chosen

    @classmethod
    def of_hosts(cls) -> "Shape":
        """What host selection is like: any number of hosts, the cores and the memory of a job beside them."""
        return cls(0, 2, 0, (), FEATURES)


class Design(NamedTuple):
    """What the networks of a run are made from."""

    shape: Shape
    hidden: tuple[int, ...]
    residual: bool
    seed: int
    scale: float = 1.0  # by what features that tell of a job, not of the moment, are stretched


def stretching(scale: float) -> tuple[np.ndarray, np.ndarray]:
    """By what (features,) jobs' features are stretched, and around what: those of the job around a half, if at all."""
    stretch, middle = np.full(len(NAMES), scale, np.float32), np.full(len(NAMES), 0.5, np.float32)
    stretch[SITUATION], middle[SITUATION] = 1.0, 0.0
    return stretch, middle


def gpu_tokens(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Of each lookahead value: place in `cluster`, share of its pool's values, pool; and where that pool begins."""
    rows, starts = [], []
    for pool, (at, count) in enumerate(shape.pools):
        for i in range(count):
            rows.append((at + i, (i + 1) / count, (pool + 0.5) / len(shape.pools)))
            starts.append(pool * len(POOL_FEATURES))
    return np.array(rows), np.array(starts)
