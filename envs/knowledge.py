"""What policies and backfilling may know of a job's run time."""

from typing import NamedTuple

import numpy as np

from berth.errors import ConfigError
from berth.streams import stream
from traces.trace import Trace

CHOICES = "oracle, request, predicted, noisy:S, hidden"


class Knowledge(NamedTuple):
    """Estimates (jobs,) in seconds, or how they are made while the simulation runs."""

    estimate: np.ndarray  # (jobs,) float64 s; NaN where nothing may be known
    similar: np.ndarray  # (jobs, levels) int32, groups to predict from; no levels where nothing is predicted
    notes: tuple[str, ...] = ()


def know(trace: Trace, info: str, seed: int) -> Knowledge:
    """Make what `--runtime_info` allows: raises ConfigError for an unknown choice, or a column that is not there."""
    nothing = np.empty((len(trace), 0), np.int32)
    if info == "oracle":
        return Knowledge(trace.run_time.copy(), nothing)
    if info == "hidden":
        return Knowledge(np.full(len(trace), np.nan), nothing)
    if info == "predicted":
        return Knowledge(np.full(len(trace), np.nan), similar_jobs(trace))
    if info == "request":
        return _requested(trace, nothing)
    kind, _, word = info.partition(":")
    if kind != "noisy":
        raise ConfigError(f"runtime_info {info}: known: {CHOICES}")
    try:
        sigma = float(word)
    except ValueError:
        sigma = -1.0
    if not 0 <= sigma <= 20:
        raise ConfigError(
            f"runtime_info {info}: want noisy:S with S from 0 to 20 (run time × exp(S × a normal number))"
        )
    noise = np.exp(sigma * stream(seed, "run-time noise").standard_normal(len(trace)))
    return Knowledge(np.maximum(1.0, trace.run_time * noise), nothing)


def refuse_hidden(policy: str, needs_run_time: bool, discipline: str, backfills: bool) -> None:
    """Raise ConfigError for what cannot work while run times are hidden."""
    for what, needs in ((f"policy {policy}", needs_run_time), (f"discipline {discipline}", backfills)):
        if needs:
            raise ConfigError(
                f"{what} needs run times, and --runtime_info is hidden; choose another, or one of: "
                f"{CHOICES.replace(', hidden', '')}"
            )


def _requested(trace: Trace, nothing: np.ndarray) -> Knowledge:
    if trace.request_time is None:
        raise ConfigError(
            f"{trace.name} has no request_time column, which --runtime_info request needs; known: {CHOICES}"
        )
    given = trace.request_time > 0
    notes: tuple[str, ...] = ()
    if not given.all():
        missing = int((~given).sum())
        notes = (f"{missing:,} of {len(given):,} jobs have no request_time: their run time stands for it",)
    return Knowledge(np.where(given, trace.request_time, trace.run_time), nothing, notes)


def similar_jobs(trace: Trace) -> np.ndarray:
    """Groups of jobs that are likely to run equally long, by falling likeness: (jobs, 4) int32.

    Same user and GPUs, same virtual cluster and GPUs, same GPUs, any job. A job with no user (or VC), as all are in a
    trace without that column, has no group on that level: -1. Numbers run on from level to level.
    """
    size = trace.gpus.astype(np.int64)
    levels: list[np.ndarray] = []
    for names in (trace.user, trace.vc):
        if names is None:
            levels.append(np.full(len(trace), -1))
            continue
        pair = _numbered(_numbered(names) * (int(size.max()) + 1) + size)
        levels.append(np.where(names == "-1", -1, pair))
    levels.append(_numbered(size))
    levels.append(np.zeros(len(trace), np.int64))
    groups, used = [], 0
    for level in levels:
        groups.append(np.where(level >= 0, level + used, -1))
        used += int(level.max()) + 1
    return np.ascontiguousarray(np.array(groups, np.int32).T)


def _numbered(values: np.ndarray) -> np.ndarray:
    """Number distinct values from 0."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)
