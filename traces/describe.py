"""What is in a trace: span, arrivals, sizes, run times, users, and what is missing."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from traces.trace import MISSING, Trace

CLASSES = {"1": (1, 1), "2-4": (2, 4), "5-8": (5, 8), "9-16": (9, 16), "over 16": (17, np.inf)}
"""Classes of GPU counts, from and to."""

QUANTILES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)


_NOT_MISSED = ("gpu_fraction", "machine")
"""What only some formats have, and nobody misses."""


class Section(NamedTuple):
    """One table of a description."""

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def describe(trace: Trace) -> list[Section]:
    """Tell what a trace holds, as tables of words."""
    return [_facts(trace), _run_times(trace), _sizes(trace), _hours(trace), _names(trace), _missing(trace)]


def duration(seconds: float) -> str:
    """Seconds in the unit that people would use."""
    for unit, length in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if abs(seconds) >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:,.4g} s"


def hours_of_day(trace: Trace) -> np.ndarray:
    """Share of the jobs that are submitted in each hour of the day, (24,); hour 0 begins at the file's second 0."""
    hour = (trace.submit // 3600 % 24).astype(np.int64)
    return np.bincount(hour, minlength=24) / len(trace)


def per_minute(trace: Trace) -> np.ndarray:
    """Jobs in each minute that has any."""
    return np.unique(trace.submit // 60, return_counts=True)[1]


def classes(trace: Trace) -> dict[str, np.ndarray]:
    """Which jobs are of each class of GPU counts, (jobs,) masks; classes without jobs are not there."""
    masks = {name: (trace.gpus >= low) & (trace.gpus <= high) for name, (low, high) in CLASSES.items()}
    return {name: mask for name, mask in masks.items() if mask.any()}


def lead_in(submit: np.ndarray) -> int:
    """The first job of the first day with at least a tenth of the usual number of jobs."""
    _, first, count = np.unique((submit - submit[0]) // 86400, return_index=True, return_counts=True)
    return int(first[np.argmax(count >= np.median(count) / 10)])


def _facts(trace: Trace) -> Section:
    span = float(trace.submit[-1] - trace.submit[0])
    gaps = np.diff(trace.submit)
    busiest = per_minute(trace)
    work = float(np.dot(trace.run_time, trace.gpus))
    rows = [
        ("jobs", f"{len(trace):,}"),
        ("format", trace.format),
        ("from the first submit to the last", duration(span)),
        ("second 0", trace.origin or "not known: hours of the day count from the file's second 0"),
        ("arrivals", f"{len(trace) / span * 3600:,.2f} jobs/h" if span else "all in one second"),
        ("gap between arrivals", _spread(gaps)),
        ("jobs in the second of the one before", f"{np.mean(gaps == 0):.1%}" if len(gaps) else "-"),
        ("jobs in the busiest minute", f"{int(busiest.max()):,}"),
        ("GPU time asked for", f"{work / 86400:,.1f} GPU-days, {work / span:,.1f} GPUs on average" if span else "-"),
    ]
    return Section("The trace", ("what", "value"), rows)


def _spread(values: np.ndarray) -> str:
    if not len(values):
        return "-"
    middle, most = np.quantile(values, (0.5, 0.99))
    return (
        f"mean {duration(values.mean())}, median {duration(middle)}, p99 {duration(most)}, "
        f"longest {duration(values.max())}"
    )


def _run_times(trace: Trace) -> Section:
    rows = []
    for name, mask in {"all": np.ones(len(trace), bool), **classes(trace)}.items():
        values = trace.run_time[mask]
        cells = [f"{value:,.0f}" for value in np.quantile(values, QUANTILES)]
        rows.append((name, f"{mask.mean():.1%}", f"{values.mean():,.0f}", *cells, f"{values.max():,.0f}"))
    header = ("GPUs", "jobs", "mean", *(f"p{quantile:.0%}".rstrip("%") for quantile in QUANTILES), "max")
    return Section("Run times, s", header, rows)


def _sizes(trace: Trace, most: int = 12) -> Section:
    sizes, place = np.unique(trace.gpus, return_inverse=True)
    jobs = np.bincount(place) / len(trace)
    work = np.bincount(place, trace.run_time * trace.gpus)
    work = work / work.sum()
    shown = np.sort(np.argsort(-jobs, kind="stable")[:most])
    rows = [(f"{sizes[i]:,}", f"{jobs[i]:.2%}", f"{work[i]:.2%}") for i in shown]
    rest = np.setdiff1d(np.arange(len(sizes)), shown)
    if len(rest):
        rows.append((f"{len(rest)} other sizes", f"{jobs[rest].sum():.2%}", f"{work[rest].sum():.2%}"))
    return Section("GPUs", ("GPUs", "jobs", "GPU time"), rows)


def _hours(trace: Trace) -> Section:
    share = hours_of_day(trace)
    bars = ["█" * round(30 * value / share.max()) for value in share]
    rows = [(f"{hour:02}", f"{value:.2%}", bar) for hour, (value, bar) in enumerate(zip(share, bars, strict=True))]
    return Section("Hour of day", ("hour", "jobs", ""), rows)


def _names(trace: Trace) -> Section:
    rows = []
    for title, column in (
        ("users", "user"),
        ("virtual clusters", "vc"),
        ("GPU types", "gpu_type"),
        ("states", "status"),
    ):
        values = getattr(trace, column)
        if values is None:
            continue
        names, counts = np.unique(values[values != str(MISSING)].astype(str), return_counts=True)
        order = np.argsort(-counts, kind="stable")[:5]
        largest = ", ".join(f"{names[i]} {counts[i] / len(trace):.1%}" for i in order)
        rows.append((title, f"{len(names):,}", largest))
    return Section("Names", ("what", "different", "the largest"), rows)


def _missing(trace: Trace) -> Section:
    rows = []
    optional = [one.name for one in dataclasses.fields(Trace) if one.default is None and one.name not in _NOT_MISSED]
    absent = [column for column in optional if getattr(trace, column) is None]
    for column in optional:
        values = getattr(trace, column)
        if values is not None:
            unknown = int(np.count_nonzero(values == (str(MISSING) if values.dtype == object else MISSING)))
            if unknown:
                rows.append((column, f"{unknown:,} of {len(trace):,} jobs"))
    if absent:
        rows.append((", ".join(absent), "not in the file"))
    return Section("What is missing", ("column", "missing in"), rows)
