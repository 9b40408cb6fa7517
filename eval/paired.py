"""Paired differences to a baseline over windows, with intervals and tests from SciPy."""

from typing import NamedTuple

import numpy as np
from scipy import stats

RESAMPLES = 9999
"""Bootstrap samples behind an interval."""

MOST_EXACT = 50
"""Windows for which Wilcoxon's distribution is exact, at most."""

FEW = 10
"""Observations below which a bootstrap is too narrow: of two it is the way from the lesser to the greater."""

CELLS = 20_000_000
"""Numbers that a bootstrap holds in memory at a time."""


class Paired(NamedTuple):
    """Contenders (contenders,) against the baseline, over the same windows."""

    difference: np.ndarray  # mean of contender - baseline
    low: np.ndarray  # its 95 % interval
    high: np.ndarray
    change: np.ndarray  # mean of the contender / mean of the baseline - 1
    change_low: np.ndarray
    change_high: np.ndarray
    wins: np.ndarray  # share of the windows in which the contender is better; a tie is half a win
    p: np.ndarray  # Wilcoxon's signed-rank test, both sides
    p_corrected: np.ndarray  # for as many comparisons as there are (Benjamini and Yekutieli)


def compare(
    values: np.ndarray, baseline: np.ndarray, less_is_better: bool, groups: np.ndarray, seed: int = 0
) -> Paired:
    """Compare values (contenders, windows) with the baseline's (windows,).

    groups (windows,) numbers what is drawn together: windows that share jobs are no independent observations, so the
    bootstrap draws groups of them, and Wilcoxon's test takes the groups' means. A contender that equals the baseline
    in every window differs by exactly 0, with the interval [0, 0] and p = 1.
    """
    apart, base, count = _by_group(values, baseline, groups)
    low, high = _intervals(apart, base, count, seed)
    difference, change = _statistic(apart, base, count)
    better = values < baseline if less_is_better else values > baseline
    wins = better.mean(axis=1) + 0.5 * (values == baseline).mean(axis=1)
    p = np.array([_wilcoxon(row) for row in apart / count])
    tested = apart.any(axis=1)
    corrected = np.ones(len(p))
    if tested.any():
        corrected[tested] = stats.false_discovery_control(p[tested], method="by")
    return Paired(difference, low[0], high[0], change, low[1], high[1], wins, p, corrected)


def mean_intervals(values: np.ndarray, groups: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % intervals (contenders,) of means over windows (contenders, windows)."""
    apart, base, count = _by_group(values, np.zeros(values.shape[1]), groups)
    low, high = _intervals(apart, base, count, seed)
    return low[0], high[0]


def student_mean(values: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of the mean of few independent values (n,), by Student's t; NaN for fewer than two."""
    if len(values) < 2:
        return np.nan, np.nan
    half = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))
    return float(values.mean()) - half, float(values.mean()) + half


def student_change(values: np.ndarray, baseline: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of mean(values) / mean(baseline) - 1, of few pairs (n,); NaN for fewer than two.

    Student's t over the pairs' parts in the ratio r of the means, (values - r baseline) / mean(baseline): Cochran,
    Sampling Techniques, 6.4.
    """
    base = float(baseline.mean())
    if len(values) < 2 or base <= 0:
        return np.nan, np.nan
    change = float(values.mean()) / base - 1
    low, high = student_mean((values - (1 + change) * baseline) / base)
    return change + low, change + high


def _by_group(values: np.ndarray, baseline: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, ...]:
    """Sums over groups of windows: differences (contenders, groups), the baseline's values, and how many windows."""
    numbers = np.unique(groups, return_inverse=True)[1]
    inside = (numbers[:, None] == np.arange(numbers.max() + 1)).astype(float)  # (windows, groups)
    return (values - baseline) @ inside, baseline @ inside, inside.sum(axis=0)


def _wilcoxon(apart: np.ndarray) -> float:
    """The p of differences (groups,), both sides: exact for few that are all different, else by the normal law."""
    size = np.abs(apart[apart != 0])
    if not len(size):
        return 1.0
    exact = len(size) <= MOST_EXACT and len(np.unique(size)) == len(apart)
    return float(stats.wilcoxon(apart, method="exact" if exact else "asymptotic").pvalue)


def _statistic(apart: np.ndarray, base: np.ndarray, count: np.ndarray, axis: int = -1) -> np.ndarray:
    """Mean difference and change of the mean, (2, contenders), from sums over groups of windows."""
    more, theirs, windows = apart.sum(axis=axis), base.sum(axis=axis), count.sum(axis=axis)
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.where(more == 0, 0.0, np.where(theirs > 0, more / theirs, np.nan))
    return np.stack([more / windows, change])


def _intervals(apart: np.ndarray, base: np.ndarray, count: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Percentile intervals (2, contenders) of both statistics; NaN where there is but one group."""
    if len(count) < 2:
        unknown = np.tile(np.where((apart == 0).all(axis=1), 0.0, np.nan), (2, 1))
        return unknown, unknown
    wide = (apart, np.broadcast_to(base, apart.shape), np.broadcast_to(count, apart.shape))
    found = stats.bootstrap(
        wide, _statistic, n_resamples=RESAMPLES, batch=max(1, CELLS // (3 * apart.size)), vectorized=True, paired=True,
        axis=-1, confidence_level=0.95, method="percentile", random_state=np.random.default_rng(seed),
    ).confidence_interval  # fmt: skip
    return found.low, found.high
