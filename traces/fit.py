"""A trace in, the recipe of its summary statistics out: tables, shares, correlations; no rows, no sequences."""

import dataclasses
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from berth.errors import ConfigError
from berth.streams import stream
from traces.arrivals import arrivals
from traces.describe import lead_in
from traces.recipe import (
    CLASSES,
    GAP_EDGES,
    GAP_LEVELS,
    LEVELS,
    LONGEST_GAP,
    NEAR,
    SPANS,
    Recipe,
    intensity,
    size_class,
)
from traces.sessions import sessions
from traces.trace import Trace

FEWEST_JOBS = 1000
"""A trace with fewer jobs tells too little."""

SMALLEST_TABLE = 150
"""Kinds with fewer jobs share a table of run times with others."""

ARRAY = 15
"""Jobs in one second from which they count as an array of jobs."""

INTENSITIES = (0.04, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875)
"""Shares of jobs at which the bins of intensity end."""

LAGS = np.array([1, 2, 3, 5, 8, 12, 20, 35, 60, 100, 200, 400, 1000])
ROUNDS = 20
TRIAL_JOBS = 40_000


def fit(
    trace: Trace,
    name: str,
    vcs: Mapping[str, float] | None = None,
    gpu_types: Mapping[str, float] | None = None,
    progress: Callable[[], None] = lambda: None,
) -> Recipe:
    """Summarise a trace; `vcs` (GPUs of each) or `gpu_types` (shares of jobs) stand for a column that it lacks.

    Days at its beginning with hardly a job are left out of what is counted over time. Raises ConfigError for a trace
    that is too short.
    """
    days = float(np.ptp(trace.submit)) / 86400
    if len(trace) < FEWEST_JOBS or days < 2:
        found = f"{len(trace):,} jobs over {days:,.1f} days"
        raise ConfigError(f"{trace.name}: {found}, want {FEWEST_JOBS:,} or more over at least two days")
    noise = stream(0, "smear whole seconds")
    first = lead_in(trace.submit)
    submit, gap = trace.submit[first:], np.diff(trace.submit[first:], prepend=trace.submit[first])
    pool_by = (
        "" if vcs or gpu_types else "vc" if trace.vc is not None else "gpu_type" if trace.gpu_type is not None else ""
    )
    kinds, kind = _kinds(trace.gpus, getattr(trace, pool_by) if pool_by else None)
    table_of, tables, steady, score = _tables(kinds, kind, trace.run_time, noise)
    recipe = Recipe(
        name=name,
        source_jobs=len(trace),
        start=int(submit[0] % 86400),
        pool_by=pool_by,
        kinds=kinds,
        table_of=table_of,
        tables=tables,
        steady=steady,
        holds=[[0.5] * (len(GAP_EDGES) + 1)] * CLASSES,
        takes_up=[0.002] * CLASSES,
        lift=[1.0] * CLASSES,
        vcs=dict(vcs or {}),
        gpu_types=dict(gpu_types or {}),
        **_gaps(submit, noise),
        **_by_intensity(gap, kind[first:], kinds, score[first:]),
    )
    recipe = _remembered(recipe, gap)
    return _sized(recipe, gap, kind[first:], progress)


def _kinds(gpus: np.ndarray, pool: np.ndarray | None) -> tuple[list[list[Any]], np.ndarray]:
    """All pairs of GPUs and pool there are, with their shares, and the kind of every job."""
    names = np.zeros(len(gpus), np.int64)
    different = np.array([""])
    if pool is not None:
        different, names = np.unique(pool.astype(str), return_inverse=True)
    pairs, kind = np.unique(gpus.astype(np.int64) * len(different) + names, return_inverse=True)
    share = np.bincount(kind) / len(kind)
    split = [(int(pair) // len(different), str(different[int(pair) % len(different)])) for pair in pairs]
    return [[size, where, round(float(part), 6)] for (size, where), part in zip(split, share, strict=True)], kind


def _quantiles(values: np.ndarray, levels: np.ndarray, noise: np.random.Generator) -> list[float]:
    """Quantiles of whole numbers, each smeared over its second, so that rounding brings back its share."""
    smeared = np.quantile(values + noise.uniform(-0.5, 0.5, len(values)), levels)
    return [float(f"{value:.4g}") for value in np.clip(smeared, values.min() - 0.49, values.max() + 0.49)]


def _scores(values: np.ndarray, noise: np.random.Generator) -> np.ndarray:
    """Ranks as standard normal scores, ties broken by chance."""
    from scipy.special import ndtri

    order = np.lexsort((noise.random(len(values)), values))
    rank = np.empty(len(values))
    rank[order] = (np.arange(len(values)) + 0.5) / len(values)
    return ndtri(rank)


def _gaps(submit: np.ndarray, noise: np.random.Generator) -> dict[str, Any]:
    """Gaps by the hour of the job before, what the arrivals' latent process remembers, hours, arrays of jobs."""
    from scipy.optimize import nnls

    gap = np.minimum(np.diff(submit), LONGEST_GAP)
    hour = (submit[:-1] // 3600 % 24).astype(int)
    score = np.zeros(len(gap))
    tables = []
    for number in range(24):
        here = hour == number
        values = gap[here] if here.sum() >= len(GAP_LEVELS) else gap
        tables.append(_quantiles(values, GAP_LEVELS, noise))
        score[here] = _scores(gap[here], noise)
    lags = LAGS[len(gap) > 4 * LAGS]
    seen = np.array([np.mean(score[lag:] * score[:-lag]) for lag in lags])
    weight = nnls(np.exp(-lags[:, None] / np.array(SPANS)), seen)[0]
    ends = np.flatnonzero(np.concatenate([gap > 0, [True]]))
    runs = np.diff(ends, prepend=-1) - 1
    many = runs[runs >= ARRAY]
    sizes = [round(float(size)) for size in np.quantile(many, np.linspace(0, 1, 11))] if len(many) >= 20 else []
    return {
        "gaps": tables,
        "memory": _shares(weight),
        "hours": [round(float(part), 5) for part in np.bincount(hour, minlength=24) / len(hour)],
        "arrays": {"per_job": round(len(many) / len(submit), 6), "sizes": sizes},
    }


def _shares(weight: np.ndarray) -> list[float]:
    """Weights that leave something for white noise."""
    return [round(float(part), 4) for part in weight / max(1.0, weight.sum() / 0.98)]


def _remembered(recipe: Recipe, gap: np.ndarray, rounds: int = 5) -> Recipe:
    """Scale the memory of arrivals until neighbouring gaps correlate as in the trace: tables by hours weaken it."""
    from scipy.stats import spearmanr

    if np.ptp(gap[1:]) == 0:
        return recipe
    wanted = spearmanr(gap[2:], gap[1:-1]).statistic
    for number in range(rounds):
        made = np.diff(arrivals(recipe, TRIAL_JOBS, stream(number, "memory of arrivals")))
        found = spearmanr(made[1:], made[:-1]).statistic
        scale = float(np.clip((wanted + 0.02) / (found + 0.02), 0.8, 1.25)) if wanted > 0 else 0.8
        recipe = dataclasses.replace(recipe, memory=_shares(np.array(recipe.memory) * scale))
    return recipe


def _tables(
    kinds: list[list[Any]], kind: np.ndarray, run_time: np.ndarray, noise: np.random.Generator
) -> tuple[list[int], list[list[float]], list[float], np.ndarray]:
    """Tables of run times, how alike neighbours within each are, and every job's score within its table."""
    groups = _groups(kinds, np.bincount(kind))
    table_of, tables, steady, score = [0] * len(kinds), [], [], np.zeros(len(kind))
    for number, group in enumerate(groups):
        for one in group:
            table_of[one] = number
        here = np.isin(kind, group)
        tables.append(_quantiles(run_time[here], LEVELS, noise))
        score[here] = mine = _scores(run_time[here], noise)
        steady.append(round(float(np.clip(np.mean(mine[1:] * mine[:-1]), 0, 1)), 3) if len(mine) > 2 else 0.0)
    return table_of, tables, steady, score


def _groups(kinds: list[list[Any]], count: np.ndarray) -> list[list[int]]:
    """Kinds that share a table: each large one has its own, small ones of like sizes are put together."""
    groups = [[i] for i in range(len(kinds)) if count[i] >= SMALLEST_TABLE]
    pool: list[int] = []
    few = sorted((i for i in range(len(kinds)) if count[i] < SMALLEST_TABLE), key=lambda i: int(kinds[i][0]))
    classes = size_class(np.array([one[0] for one in kinds]))
    for i, after in pairwise([*few, -1]):
        pool.append(i)
        if (after < 0 or classes[after] != classes[i]) and count[pool].sum() >= SMALLEST_TABLE:
            groups.append(pool)
            pool = []
    if pool and groups:
        groups[-1].extend(pool)
    return groups or [pool]


def _by_intensity(gap: np.ndarray, kind: np.ndarray, kinds: list[list[Any]], score: np.ndarray) -> dict[str, Any]:
    """Which kinds and which run-time scores jobs have, by how thinly jobs come: small jobs come in bursts."""
    share = np.bincount(kind, minlength=len(kinds)) / len(kind)
    thin = intensity(gap)
    edges = np.quantile(thin, INTENSITIES)
    bins = np.searchsorted(edges, thin)
    single = np.array([one[0] == 1 for one in kinds])[kind]
    fresh, level = [], []
    for number in range(len(edges) + 1):
        here = bins == number
        shares = np.bincount(kind[here], minlength=len(kinds)) + 0.5 * share
        fresh.append([round(float(part), 5) for part in shares / shares.sum()])
        sizes = (score[here & single], score[here & ~single])
        level.append([round(float(part.sum() / (len(part) + 20)), 3) for part in sizes])
    return {"edges": [round(float(edge), 4) for edge in edges], "fresh": fresh, "level": level}


def repeats(gap: np.ndarray, kind: np.ndarray, kinds: list[list[Any]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How jobs repeat, by class: is the next of the same kind, by gap (classes, bins); how many of the NEAR next are.

    The third array has the classes' shares of the jobs.
    """
    size = size_class(np.array([one[0] for one in kinds]))[kind]
    after = np.searchsorted(GAP_EDGES, gap, side="right")
    width = len(GAP_EDGES) + 1
    cell = size[:-1] * width + after[1:]
    seen = np.bincount(cell, minlength=CLASSES * width).reshape(CLASSES, width)
    same = np.bincount(cell, weights=kind[1:] == kind[:-1], minlength=CLASSES * width).reshape(CLASSES, width)
    count = np.bincount(size, minlength=CLASSES)
    near = np.zeros(CLASSES)
    for lag in range(2, NEAR + 1):
        near += np.bincount(size[:-lag], weights=kind[lag:] == kind[:-lag], minlength=CLASSES)
    overall = same.sum(axis=1, keepdims=True) / np.maximum(seen.sum(axis=1, keepdims=True), 1)
    shrunk = (same + 20 * overall) / (seen + 20)  # bins with few jobs lean on their class
    return shrunk, near / np.maximum(count, 1), count / len(kind)


def _sized(recipe: Recipe, gap: np.ndarray, kind: np.ndarray, progress: Callable[[], None]) -> Recipe:
    """Find the chances by which jobs continue, are taken up or open sessions, from trials.

    So sizes repeat as in the trace: large jobs in a row cost a queue less than large jobs one by one.
    """
    next_same, near, share = repeats(gap, kind, recipe.kinds)
    told = share * len(kind) >= 30
    holds, takes_up, lift = np.array(recipe.holds), np.array(recipe.takes_up), np.array(recipe.lift)
    for number in range(ROUNDS):
        rng = stream(number, "sizes of trials")
        submit = arrivals(recipe, TRIAL_JOBS, rng)
        made_gap = np.diff(submit, prepend=submit[0])
        made = repeats(made_gap, sessions(recipe, made_gap, rng).kind, recipe.kinds)
        holds = np.clip(holds * ((next_same + 0.01) / (made[0] + 0.01)) ** 0.5, 0.001, 0.99)
        takes_up = np.clip(np.where(told, takes_up * ((near + 0.05) / (made[1] + 0.05)) ** 0.4, takes_up), 1e-5, 0.6)
        lift = np.clip(lift * np.clip((share + 1e-4) / (made[2] + 1e-4), 0.3, 3) ** 0.5, 0.05, 20)
        recipe = dataclasses.replace(
            recipe,
            holds=[[round(float(part), 4) for part in row] for row in holds],
            takes_up=[round(float(part), 6) for part in takes_up],
            lift=[round(float(part), 4) for part in lift],
        )
        progress()
    return recipe
