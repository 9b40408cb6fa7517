"""Workloads made from a few numbers: Poisson or bursty arrivals, heavy-tailed run times, a mix of sizes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from berth.errors import ConfigError
from berth.streams import stream
from traces.table import MOST
from traces.trace import Trace

ARRIVALS = ("poisson", "bursty")
"""How jobs arrive: one by one, or in bursts of a geometric number of jobs."""


@dataclass(frozen=True)
class Shape:
    """The shape of a workload."""

    gpus: Mapping[int, float]  # GPUs -> share of jobs
    median: float  # s, of run times
    mean: float  # s, of run times before the cut
    gap: float  # s between arrivals on average
    longest: float = 3 * 86400.0  # s, where run times are cut
    run_time: str = "lognormal"  # their distribution
    arrival_mode: str = "poisson"
    burst_size: float = 8.0  # jobs in a burst on average
    burst_gap: float = 2.0  # s between the jobs of a burst on average
    daily_swing: float = 0.0  # 0: as many arrivals at night as by day; 1: none at midnight, twice as many at noon
    correlation: float = 0.0  # of GPUs and run time, of their normal scores
    likeness: float = 0.0  # of the run times of one user's jobs, 0 to 1
    users: int = 0  # how many users share the jobs, the first most
    vcs: Mapping[str, float] | None = None  # virtual cluster -> share of jobs
    gpu_types: Mapping[str, float] | None = None  # GPU type -> share of jobs


SYNTHETIC = Shape(
    {1: 0.5, 2: 0.2, 4: 0.15, 8: 0.12, 16: 0.03}, median=600, mean=3600, gap=60, arrival_mode="bursty",
    daily_swing=0.5, correlation=0.3, likeness=0.4, users=50,
)  # fmt: skip
"""What `generate --like synthetic` makes, and GPU_Traces/synthetic_trace.csv holds."""


PRESETS = {
    "synthetic": SYNTHETIC,
    "baseline_stable": Shape(
        {1: 0.55, 2: 0.2, 4: 0.15, 8: 0.1}, median=900, mean=1800, gap=60, longest=86400.0, likeness=0.4, users=20
    ),
    "heavy_tail": Shape(
        {1: 0.6, 2: 0.15, 4: 0.13, 8: 0.1, 16: 0.02}, median=300, mean=5400, gap=60, arrival_mode="bursty",
        burst_size=16.0, daily_swing=0.5, correlation=0.4, likeness=0.6, users=50,
    ),
    "large_jobs": Shape(
        {1: 0.3, 4: 0.2, 8: 0.3, 16: 0.15, 32: 0.05}, median=1200, mean=4800, gap=60, correlation=0.2, likeness=0.4,
        users=30,
    ),
}  # fmt: skip
"""Shapes by name: the sample's; steady arrivals of mild run times; bursts with heavy tails; jobs of whole nodes."""


def generate_parametric(shape: Shape, jobs: int, seed: int, name: str = "generated") -> Trace:
    """Make a workload; equal arguments give equal jobs. Raises ConfigError for a shape that cannot be met."""
    _check(shape, jobs, name)
    rng = {use: stream(seed, f"generate {use}") for use in ("gap", "gpus", "run_time", "vc", "type", "user", "level")}
    user = None
    level = np.zeros(jobs)
    if shape.users:
        share = 1.0 / np.arange(1, shape.users + 1)
        number = _pick(rng["user"], np.arange(shape.users), share, jobs)
        user = np.array([f"u{i}" for i in range(shape.users)], object)[number]
        level = rng["level"].standard_normal(shape.users)[number]
    size_score = rng["gpus"].standard_normal(jobs)
    own = rng["run_time"].standard_normal(jobs)
    likeness = shape.likeness if shape.users else 0.0
    score = np.sqrt(likeness) * level + np.sqrt(1 - likeness) * own
    score = _normal_scores(shape.correlation * size_score + np.sqrt(1 - shape.correlation**2) * score)
    sizes = np.array(sorted(shape.gpus), np.int32)
    shares = np.array([shape.gpus[int(size)] for size in sizes], float)
    run_time = RUN_TIMES[shape.run_time](shape, score)
    return Trace(
        name=name,
        format="generated",
        job_id=np.arange(1, jobs + 1),
        submit=np.maximum(np.floor(_arrivals(shape, rng["gap"], jobs)), 0),
        run_time=np.clip(np.round(run_time), 1, shape.longest),
        gpus=sizes[_place(_normal_cdf(size_score), shares)],
        user=user,
        vc=_named(rng["vc"], shape.vcs, jobs),
        gpu_type=_named(rng["type"], shape.gpu_types, jobs),
    )


def _check(shape: Shape, jobs: int, name: str) -> None:
    """Raise ConfigError for what cannot be."""
    bursty = shape.arrival_mode == "bursty"
    wrong = {
        f"jobs {jobs}, want at least 2": jobs < 2,
        f"median {shape.median} and mean {shape.mean}, want 0 < median <= mean": not 0 < shape.median <= shape.mean,
        f"mean {shape.mean}, want a number <= {MOST:g}": not shape.mean <= MOST,
        f"gap {shape.gap}, want a number > 0 with {jobs:,} gaps <= {MOST:g} s": not 0 < shape.gap * jobs < MOST / 10,
        f"longest {shape.longest}, want a number from 1 to {MOST:g}": not 1 <= shape.longest <= MOST,
        f"correlation {shape.correlation}, want a number from -1 to 1": not -1 <= shape.correlation <= 1,
        f"likeness {shape.likeness}, want a number from 0 to 1": not 0 <= shape.likeness <= 1,
        f"daily_swing {shape.daily_swing}, want a number from 0 to 1": not 0 <= shape.daily_swing <= 1,
        f"burst_size {shape.burst_size}, want a number from 1 to jobs": bursty and not 1 <= shape.burst_size <= jobs,
        f"burst_gap {shape.burst_gap}, want a number from 0 to gap": bursty and not 0 <= shape.burst_gap <= shape.gap,
        f"users {shape.users}, want a number from 0 to 1,000,000": not 0 <= shape.users <= 1_000_000,
        "gpus is empty, want sizes with their shares": not shape.gpus,
    }
    for text, is_so in wrong.items():
        if is_so:
            raise ConfigError(f"{name}: {text}")


def _arrivals(shape: Shape, rng: np.random.Generator, jobs: int) -> np.ndarray:
    """Arrival times in seconds, with `gap` seconds between them on average."""
    if shape.arrival_mode == "poisson":
        gaps = rng.exponential(shape.gap, jobs)
    else:
        opens = rng.random(jobs) < 1 / shape.burst_size
        between = shape.burst_size * shape.gap - (shape.burst_size - 1) * shape.burst_gap
        gaps = rng.exponential(1.0, jobs) * np.where(opens, between, shape.burst_gap)
    return _by_day(np.cumsum(gaps), shape.daily_swing)


def _by_day(times: np.ndarray, swing: float) -> np.ndarray:
    """Move times so that the rate follows 1 - swing × cos(2π t / day): the inverse of its integral, by bisection."""
    if swing == 0:
        return times
    turn = 2 * np.pi / 86400
    moved = times.copy()
    low, high = times - swing / turn, times + swing / turn
    for _ in range(60):
        below = moved - swing / turn * np.sin(turn * moved) < times
        low, high = np.where(below, moved, low), np.where(below, high, moved)
        moved = (low + high) / 2
    return moved


def _lognormal(shape: Shape, score: np.ndarray) -> np.ndarray:
    return shape.median * np.exp(np.sqrt(2 * np.log(shape.mean / shape.median)) * score)


def _pareto(shape: Shape, score: np.ndarray) -> np.ndarray:
    """Pareto's distribution: its exponent a solves mean / median = a / ((a - 1) 2^(1/a))."""
    low, high = 1 + 1e-9, 1e6
    for _ in range(200):
        exponent = (low * high) ** 0.5
        above = exponent / ((exponent - 1) * 2 ** (1 / exponent)) > shape.mean / shape.median
        low, high = (exponent, high) if above else (low, exponent)
    least = shape.median / 2 ** (1 / low)
    return least / np.maximum(1 - _normal_cdf(score), 1e-12) ** (1 / low)


def _exponential(shape: Shape, score: np.ndarray) -> np.ndarray:
    """An exponential distribution has one parameter: the mean counts."""
    return -shape.mean * np.log(np.maximum(1 - _normal_cdf(score), 1e-12))


RUN_TIMES: dict[str, Callable[[Shape, np.ndarray], np.ndarray]] = {
    "lognormal": _lognormal,
    "pareto": _pareto,
    "exponential": _exponential,
}
"""Distributions of run times; each makes them from normal scores."""


def _normal_scores(values: np.ndarray) -> np.ndarray:
    """Ranks as standard normal scores: a few active users do not move the distribution of run times."""
    from scipy.special import ndtri

    rank = np.empty(len(values))
    rank[np.argsort(values, kind="stable")] = (np.arange(len(values)) + 0.5) / len(values)
    return ndtri(rank)


def _normal_cdf(score: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return ndtr(score)


def _named(rng: np.random.Generator, shares: Mapping[str, float] | None, jobs: int) -> np.ndarray | None:
    if not shares:
        return None
    return _pick(rng, np.array(list(shares), dtype=object), np.array(list(shares.values()), float), jobs)


def _pick(rng: np.random.Generator, values: np.ndarray, shares: np.ndarray, jobs: int) -> np.ndarray:
    """Draw values with the given shares."""
    return values[_place(rng.random(jobs), shares)]


def _place(chance: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Which share a number between 0 and 1 falls into."""
    return np.minimum(np.searchsorted(np.cumsum(shares) / shares.sum(), chance, side="right"), len(shares) - 1)
