"""How far apart two traces are: distances of distributions, and what history tells of run times."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from traces.describe import classes, hours_of_day, per_minute
from traces.trace import MISSING, Trace

HISTORY = 10
"""How many jobs before it are asked how long a job will run."""


class Likeness(NamedTuple):
    """One figure of both traces, or one distance between them."""

    what: str
    a: float | None  # the figure in the first trace; None for a distance, or where the trace cannot tell
    b: float | None
    distance: float | None


def compare(a: Trace, b: Trace) -> list[Likeness]:
    """All figures and distances.

    Kolmogorov-Smirnov distances lie between 0 (equal) and 1; the hours of the day are compared by half the sum of
    absolute differences; for figures the distance is the absolute difference.
    """
    rows = [
        Likeness("KS run time", None, None, ks(a.run_time, b.run_time)),
        Likeness("KS GPUs", None, None, ks(a.gpus, b.gpus)),
        Likeness("KS inter-arrival time", None, None, ks(np.diff(a.submit), np.diff(b.submit))),
    ]
    of_a, of_b = classes(a), classes(b)
    for name in of_a:
        if name in of_b:
            distance = ks(a.run_time[of_a[name]], b.run_time[of_b[name]])
            rows.append(Likeness(f"KS run time, {name} GPUs", None, None, distance))
    rows.append(Likeness("hour of day", None, None, 0.5 * float(np.abs(hours_of_day(a) - hours_of_day(b)).sum())))
    figures: dict[str, Callable[[Trace], float | None]] = {
        "rank correlation GPUs, run time": lambda trace: rank_correlation(trace.gpus, trace.run_time),
        "rank correlation gap, gap before": lambda trace: rank_correlation(*_neighbours(np.diff(trace.submit))),
        "share of gaps of 0 s": lambda trace: float(np.mean(np.diff(trace.submit) == 0)) if len(trace) > 1 else None,
        "jobs a minute, p99": lambda trace: float(np.quantile(per_minute(trace), 0.99)),
    }
    for what, figure in figures.items():
        rows.append(_both(what, figure(a), figure(b)))
    for columns in ((), ("gpus",), ("vc", "gpus"), ("user", "gpus")):
        same = " and ".join("GPUs" if column == "gpus" else column for column in columns)
        what = f"last ten jobs{f' of the same {same}' if same else ''}"
        rows.append(_both(f"rank correlation {what}", history(a, columns), history(b, columns)))
    return [row for row in rows if (row.a, row.b, row.distance) != (None, None, None)]


def ks(a: np.ndarray, b: np.ndarray) -> float | None:
    """The Kolmogorov-Smirnov distance of two samples, None where one is empty."""
    from scipy.stats import ks_2samp

    if not len(a) or not len(b):
        return None
    with np.errstate(divide="ignore"):  # of the p-value of tiny samples, which nobody asks for
        return float(ks_2samp(a, b, method="asymp").statistic)


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float | None:
    """Spearman's rank correlation, None where a sample does not vary."""
    from scipy.stats import spearmanr

    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(spearmanr(a, b).statistic)


def history(trace: Trace, columns: tuple[str, ...], most: int = HISTORY) -> float | None:
    """Rank correlation of run times with the mean run time of the last jobs (ten, or so many) alike in some columns.

    Last in order of submission, whether they have ended or not. None where the trace lacks a column.
    """
    values = [getattr(trace, column) for column in columns]
    if any(column is None for column in values):
        return None
    known = np.ones(len(trace), bool)
    group = np.zeros(len(trace), np.int64)
    for column in values:
        codes = np.unique(column.astype(str) if column.dtype == object else column, return_inverse=True)[1]
        group = np.unique(group * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
        if column.dtype == object:
            known &= column != str(MISSING)
    mean = last_mean(group, trace.run_time, most)
    told = known & ~np.isnan(mean)
    return rank_correlation(mean[told], trace.run_time[told])


def last_mean(group: np.ndarray, values: np.ndarray, most: int) -> np.ndarray:
    """Mean of the last values, at most so many, that stand before each one in its group; NaN for a group's first."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    sums = np.concatenate(([0.0], np.cumsum(values[order])))
    here = np.arange(len(group))
    first = np.searchsorted(ordered, ordered)
    begin = np.maximum(first, here - most)
    count = here - begin
    mean = np.full(len(group), np.nan)
    some = count > 0
    mean[order[some]] = (sums[here[some]] - sums[begin[some]]) / count[some]
    return mean


def _neighbours(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return values[1:], values[:-1]


def _both(what: str, a: float | None, b: float | None) -> Likeness:
    return Likeness(what, a, b, abs(a - b) if a is not None and b is not None else None)
