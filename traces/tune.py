"""The few numbers of a recipe that no single statistic gives, found by trial."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from berth.streams import stream
from traces.compare import history, rank_correlation
from traces.describe import lead_in
from traces.generate import generate
from traces.recipe import Recipe, intensity
from traces.trace import Trace

RANGES = {
    "rejoin": (0.0, 0.99), "returns": (0.0, 0.99), "drift": (0.9, 0.9999), "alike": (0.7, 0.999), "unlike": (0.0, 0.9),
    "steadiness": (0.3, 3.0), "users": (10, 300),
}  # fmt: skip
"""What is tuned, from and to."""

LAGS = (1, 2, 5, 10, 20, 50)
PERIODS = (1, 4, 12, 24)
"""Hours over which work is added up."""

SEEDS = (11, 12, 13, 14)
JOBS = 20_000


def tune(
    recipe: Recipe,
    trace: Trace,
    tries: int,
    more: Callable[[Trace], dict[str, float]] = lambda trace: {},
    progress: Callable[[], None] = lambda: None,
) -> Recipe:
    """Search the numbers at random, then around the best ones, until samples have the figures of the trace.

    `more` gives figures beyond our own, such as waits in a simulation.
    """
    body = trace.select(slice(lead_in(trace.submit), None))
    wanted = figures(body) | more(body)
    rng = stream(0, "tune")

    def _loss(values: dict[str, float]) -> float:
        progress()
        tried = dataclasses.replace(recipe, **rounded(values))
        made = [figures(sample) | more(sample) for sample in (generate(tried, JOBS, seed) for seed in SEEDS)]
        return distance({name: float(np.mean([one[name] for one in made])) for name in made[0]}, wanted)

    start = {name: float(getattr(recipe, name)) for name in RANGES}
    found = [(_loss(start), start)]
    for _ in range(tries // 3):
        values = {name: _at(name, rng.random()) for name in RANGES}
        found.append((_loss(values), values))
    found = sorted(found, key=lambda one: one[0])[:3]
    for number in range(tries - tries // 3):
        place = int(rng.integers(len(found)))
        step = 0.15 * (1 - number / max(1, tries))
        values = dict(found[place][1])
        for name in rng.choice(list(RANGES), int(rng.integers(1, 4)), replace=False).tolist():
            values[name] = _at(name, float(np.clip(_place(name, values[name]) + step * rng.standard_normal(), 0, 1)))
        loss = _loss(values)
        if loss < found[place][0]:
            found[place] = (loss, values)
    return dataclasses.replace(recipe, **rounded(min(found, key=lambda one: one[0])[1]))


def rounded(values: dict[str, float]) -> dict[str, Any]:
    """Numbers as a recipe holds them."""
    return {name: round(value) if name == "users" else round(value, 5) for name, value in values.items()}


def figures(trace: Trace) -> dict[str, float]:
    """What is compared: last-ten and last-one correlations by groups, correlations by lag, how work is spread."""
    groups: dict[str, tuple[str, ...]] = {"all": (), "gpus": ("gpus",)}
    if trace.vc is not None:
        groups |= {"vc": ("vc",), "vc gpus": ("vc", "gpus")}
    finest = list(groups.values())[-1]
    groups["user gpus"] = finest if trace.user is None else ("user", "gpus")
    found: dict[str, float] = {}
    for name, columns in groups.items():
        for most in (10, 1):
            found[f"last {most} {name}"] = history(trace, columns, most) or 0.0
    for lag in LAGS:
        found[f"lag {lag}"] = rank_correlation(trace.run_time[lag:], trace.run_time[:-lag]) or 0.0
    work = trace.run_time * trace.gpus
    thin = intensity(np.diff(trace.submit, prepend=trace.submit[0]))
    bins = np.searchsorted(np.quantile(thin, np.arange(1, 8) / 8), thin)
    for number in range(8):
        here = work[bins == number]
        found[f"work {number}"] = 0.1 * float(np.log(here.mean() / work.mean())) if len(here) else 0.0
    for hours in PERIODS:
        found[f"uneven {hours}"] = 0.15 * float(np.log(unevenness(trace, hours) + 0.05))
    return found


def unevenness(trace: Trace, hours: int) -> float:
    """Coefficient of variation of the work that arrives in each period, the first and the last left out."""
    period, place = np.unique((trace.submit - trace.submit[0]) // (3600 * hours), return_inverse=True)
    work = np.bincount(place, weights=trace.run_time * trace.gpus)
    inner = work[(period > 0) & (period < period[-1])]
    count = int(period[-1]) - 1  # with those in which nothing arrives
    if count < 2 or not inner.any():
        return 0.0
    mean = inner.sum() / count
    return float(np.sqrt(max(0.0, (inner**2).sum() / count - mean**2)) / mean)


def distance(a: dict[str, float], b: dict[str, float]) -> float:
    """Sum of squared differences of the figures that both have, weighted."""
    weight = {"last 10": 2.0, "last 1 ": 1.0, "lag": 0.7, "work": 1.5, "uneven": 1.5, "wait": 2.0}
    total = 0.0
    for name in sorted(a.keys() & b.keys()):
        if name == "last 1 user gpus":
            continue  # where a trace names no users, that of its finest groups stands for the last ten alone
        total += next(part for key, part in weight.items() if name.startswith(key)) * (a[name] - b[name]) ** 2
    return total


def _at(name: str, place: float) -> float:
    """The value at a place from 0 to 1 of a range; drift and users on a logarithmic scale."""
    low, high = RANGES[name]
    if name == "drift":
        return 1 - float(np.exp(np.log(1 - low) + place * (np.log(1 - high) - np.log(1 - low))))
    if name == "users":
        return float(np.exp(np.log(low) + place * (np.log(high) - np.log(low))))
    return low + place * (high - low)


def _place(name: str, value: float) -> float:
    """The inverse of `_at`."""
    low, high = RANGES[name]
    if name == "drift":
        return float((np.log(1 - value) - np.log(1 - low)) / (np.log(1 - high) - np.log(1 - low)))
    if name == "users":
        return float(np.log(value / low) / np.log(high / low))
    return (value - low) / (high - low)
