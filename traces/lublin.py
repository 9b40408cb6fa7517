"""Jobs by the workload model of Lublin and Feitelson (JPDC 63, 2003), one class for batch and interactive jobs.

Sizes: a share of serial jobs, a share of powers of two, the rest any size; log2 of a parallel size is uniform in two
stages. Run times: their logarithm is gamma of one of two kinds, the longer kind more often for larger jobs. Gaps: their
logarithm is gamma, in a time that goes faster in the hours in which more jobs come. The numbers are the published ones.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import gamma

DAY, SLOTS = 86400.0, 48
DAY_BEGINS = 11
"""The slot of half an hour, from 1, with which the cycle of a day begins."""


@dataclass(frozen=True)
class Model:
    """Parameters of the model, by default those for jobs of all kinds."""

    processors: int = 256
    serial: float = 0.244  # share of jobs
    power_of_two: float = 0.576  # share of jobs
    smallest: float = 0.8  # log2 of a parallel size
    bend: float = 2.5  # how far below the largest log2 size the first stage ends, 1.5 to 3.5
    first_stage: float = 0.86  # share of parallel jobs
    short: tuple[float, float] = (4.2, 0.94)  # gamma's shape and scale, of ln s
    long: tuple[float, float] = (312.0, 0.03)
    short_share: tuple[float, float] = (-0.0054, 0.78)  # slope by processors, and at 0
    longest: float = 12.0  # ln s
    gap: tuple[float, float] = (10.2303 * 1.0225, 0.4871)  # gamma's shape and scale, of ln s
    longest_gap: float = 13.0  # ln s
    cycle: tuple[float, float] = (8.1737, 3.9631)  # gamma's shape and scale, of slots


class Jobs(NamedTuple):
    """Jobs in the order in which they come."""

    submit: np.ndarray  # (jobs,) s after midnight of the first day
    run_time: np.ndarray  # (jobs,) s
    processors: np.ndarray  # (jobs,)


def lublin_jobs(model: Model, count: int, rng: np.random.Generator) -> Jobs:
    """Make jobs by the model, the first on the first day's morning or later."""
    processors = _sizes(model, count, rng)
    return Jobs(_arrivals(model, count, rng), _run_times(model, processors, rng), processors)


def _sizes(model: Model, count: int, rng: np.random.Generator) -> np.ndarray:
    """1, or 2 to the power of a number that is uniform in two stages and, for some jobs, rounded."""
    top = np.log2(model.processors)
    low, bend = model.smallest, top - model.bend
    first = rng.random(count) < model.first_stage
    power = np.where(first, rng.uniform(low, bend, count), rng.uniform(bend, top, count))
    kind = rng.random(count)
    power = np.where(kind < model.serial + model.power_of_two, np.floor(power + 0.5), power)
    return np.where(kind < model.serial, 1, np.floor(2**power + 0.5)).astype(np.int64)


def _run_times(model: Model, processors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Whole seconds of a hyper-gamma logarithm; at least 1."""
    slope, share = model.short_share
    is_short = rng.random(len(processors)) < np.clip(slope * processors + share, 0, 1)
    shape, scale = (np.where(is_short, *pair) for pair in zip(model.short, model.long, strict=True))
    return np.maximum(np.floor(np.exp(_below(model.longest, shape, scale, rng))), 1.0)


def _arrivals(model: Model, count: int, rng: np.random.Generator) -> np.ndarray:
    """Whole seconds: sums of gaps, moved to where the day's cycle has brought as much time."""
    shape, scale = (np.full(count, value) for value in model.gap)
    passed = np.cumsum(np.exp(_below(model.longest_gap, shape, scale, rng)))
    brought = np.concatenate(([0.0], np.cumsum(daily_cycle(model)))) * DAY / SLOTS
    days, rest = np.divmod(passed, DAY)
    return np.floor(days * DAY + np.interp(rest, brought, np.linspace(0, DAY, SLOTS + 1)))


def daily_cycle(model: Model) -> np.ndarray:
    """How many times as many jobs as on average come in each half hour of a day; (48,)."""
    slots = np.arange(DAY_BEGINS, DAY_BEGINS + SLOTS + 1)
    weight = np.empty(SLOTS)
    weight[(slots[:-1] - 1) % SLOTS] = np.diff(gamma.cdf(slots - 0.5, model.cycle[0], scale=model.cycle[1]))
    return weight / weight.mean()


def _below(most: float, shape: np.ndarray, scale: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Gamma numbers, drawn anew where they are above a limit."""
    drawn = rng.gamma(shape, scale)
    while (above := drawn > most).any():
        drawn[above] = rng.gamma(shape[above], scale[above])
    return drawn
