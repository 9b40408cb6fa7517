"""How a learning rate goes on from epoch to epoch: pure functions of the epoch."""

import math
from collections.abc import Callable

Schedule = Callable[[float, float], float]

SCHEDULES: dict[str, Schedule] = {
    "constant": lambda _share, _warm: 1.0,
    "linear": lambda share, _warm: 1.0 - share,
    "exponential": lambda share, _warm: 0.01**share,
    "cosine": lambda share, _warm: 0.5 * (1.0 + math.cos(math.pi * share)),
    "warmup_cosine": lambda share, warm: (
        share / warm if share < warm else 0.5 * (1.0 + math.cos(math.pi * (share - warm) / max(1.0 - warm, 1e-9)))
    ),
}
"""By name: what the rate is multiplied by, from the share of the schedule that is over and the share of its warm-up."""


def rate_at(name: str, rate: float, epoch: int, length: int, warmup: int) -> float:
    """The rate of an epoch (from 0); after `length` epochs it stays as it is at the end.

    A warm-up's first epoch has rate / warmup, not 0, which would teach nothing.
    """
    share = min(epoch / length, 1.0)
    warm = min(warmup / length, 1.0)
    if name == "warmup_cosine" and share < warm:
        share = (epoch + 1) / length
    return rate * SCHEDULES[name](min(share, 1.0), warm)


def exploration_at(first: float, decay: float, least: float, epoch: int) -> float:
    """The share of even decisions of an epoch (from 0): it falls by a factor, not below the least."""
    return max(first * decay**epoch, least) if first > 0 else 0.0
