"""Arrival times of calibrated workloads: bursts, busy days, quiet nights."""

import numpy as np

from traces.recipe import GAP_LEVELS, SPANS, Recipe

STEPS = 5000
"""How finely the tables of gaps are read."""

ROUNDS = 24
"""How often the hours of the day are corrected at most."""

ENOUGH = 0.06
"""Sum of the hours' deviations at which they are near enough."""


def arrivals(recipe: Recipe, jobs: int, rng: np.random.Generator) -> np.ndarray:
    """Submit times, (jobs,) whole seconds from midnight.

    Gaps are read off tables by the hour of the day, through the ranks of a latent process: white noise and AR(1)
    processes that forget after a few jobs or after thousands. So the gaps keep their distribution, and bursts cluster.
    """
    weight = np.array(recipe.memory)
    latent = np.sqrt(max(0.0, 1 - weight.sum())) * rng.standard_normal(jobs)
    for part, span in zip(weight, SPANS, strict=True):
        latent += np.sqrt(part) * _forgetting(span, jobs, rng)
    if recipe.arrays["sizes"]:
        deciles = np.linspace(0, 1, len(recipe.arrays["sizes"]))
        for start in np.flatnonzero(rng.random(jobs) < recipe.arrays["per_job"]):
            latent[start : start + round(np.interp(rng.random(), deciles, recipe.arrays["sizes"]))] -= 20
    rank = np.empty(jobs)
    rank[np.argsort(latent, kind="stable")] = (np.arange(jobs) + 0.5) / jobs
    return _with_hours(recipe, (rank * STEPS).astype(int).tolist())


def read_table(table: list[float], levels: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Whole seconds off a table of quantiles, interpolated in the logarithm."""
    values = np.interp(at, levels, np.log(np.array(table) + 1.0))
    return np.maximum(np.rint(np.exp(values) - 1.0), 0).astype(np.int64)


def _forgetting(span: float, jobs: int, rng: np.random.Generator) -> np.ndarray:
    """A stationary AR(1) process of variance 1 that forgets after `span` jobs."""
    from scipy.signal import lfilter

    keep = float(np.exp(-1 / span))
    noise = rng.standard_normal(jobs)
    noise[1:] *= np.sqrt(1 - keep * keep)
    return lfilter([1.0], [1.0, -keep], noise)


def _with_hours(recipe: Recipe, place: list[int]) -> np.ndarray:
    """Add up gaps; shift an hour's gaps a little, again and again, until the hours have their shares of the jobs."""
    levels = (np.arange(STEPS) + 0.5) / STEPS
    tables = [read_table(table, GAP_LEVELS, levels) for table in recipe.gaps]
    wanted, shift = np.array(recipe.hours), np.zeros(24)
    best, least = np.zeros(len(place), np.int64), np.inf
    for _ in range(ROUNDS):
        submit = _added(recipe.start, tables, place, shift)
        seen = np.bincount(submit // 3600 % 24, minlength=24) / len(place)
        off = float(np.abs(seen - wanted).sum())
        if off < least:
            best, least = submit, off
        if least < ENOUGH:
            break
        shift += 0.25 * np.log((seen + 0.004) / (wanted + 0.004))
    return best


def _added(start: int, tables: list[np.ndarray], place: list[int], shift: np.ndarray) -> np.ndarray:
    """Submit times from places in the tables; `shift` moves an hour's places along its table, in logits."""
    middle = (np.arange(STEPS) + 0.5) / STEPS
    odds = (middle / (1 - middle))[:, None] * np.exp(shift)
    moved = np.rint(odds / (1 + odds) * STEPS - 0.5).astype(int)
    gaps = [table[moved[:, hour]].tolist() for hour, table in enumerate(tables)]
    now, submit = start, [start] * len(place)
    for i in range(1, len(place)):
        now += gaps[now // 3600 % 24][place[i]]
        submit[i] = now
    return np.array(submit, np.int64)
