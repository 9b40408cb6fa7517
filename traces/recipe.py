"""Recipes: what a calibrated workload is made from, a trace's summary statistics."""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from berth.commandline import written_whole
from berth.errors import TraceError
from traces.table import MOST, MOST_GPUS

LEVELS = np.unique(np.round(np.concatenate([
    [0.0, 0.005, 0.01, 0.985, 0.99, 0.993, 0.996, 0.998, 0.999, 0.9995, 0.9998, 1.0], np.linspace(0.02, 0.98, 49),
]), 5))  # fmt: skip
"""Levels of the tables of run times."""

GAP_LEVELS = np.unique(
    np.round(np.concatenate([[0.0, 0.01, 0.99, 0.995, 0.998, 1.0], np.linspace(0.025, 0.975, 39)]), 5)
)
"""Levels of the tables of gaps between arrivals."""

GAP_EDGES = (1, 2, 6, 21, 61, 151, 401)
"""Edges, in s, of the bins of gaps by which a job continues the one before it."""

SPANS = (1.5, 5.0, 20.0, 80.0, 400.0, 2000.0)
"""Jobs after which the parts of the arrivals' latent process forget."""

SIZES = (1, 4, 8, 16, 32, 64)
"""Upper ends of the classes of GPU counts; the last class has no end."""

CLASSES = len(SIZES) + 1
LONGEST_GAP = 6 * 3600.0
"""Longer gaps, s, are outages or a file's beginning: they are cut to this."""

AHEAD = 4
"""Gaps after a job that make its intensity."""

NEAR = 60
"""Jobs after it among which a job is taken up again."""


@dataclass(frozen=True)
class Recipe:
    """A trace's summary statistics; `kinds` are pairs of GPU count and pool ("" where the trace names none)."""

    name: str
    source_jobs: int  # jobs of the trace it was fitted to
    start: int  # s after midnight of its first job
    pool_by: str  # the column that names a job's pool: vc, gpu_type, or "" for none
    hours: list[float]  # (24,) share of jobs in each hour of the day
    gaps: list[list[float]]  # (24, gap levels) s, quantiles by the hour of the job before
    memory: list[float]  # (spans,) weights in the latent process of arrivals
    arrays: dict[str, Any]  # per_job: how often many jobs come in one second; sizes: deciles of how many
    kinds: list[list[Any]]  # (kinds, 3) GPUs, pool, share of jobs
    table_of: list[int]  # (kinds,) which table of run times a kind has
    tables: list[list[float]]  # (tables, levels) s
    steady: list[float]  # (tables,) correlation of neighbouring run times within a table
    edges: list[float]  # (bins - 1,) of intensity
    fresh: list[list[float]]  # (bins, kinds) shares of kinds by intensity
    level: list[list[float]]  # (bins, 2) usual run-time score by intensity, of 1 GPU and of more
    holds: list[list[float]]  # (classes, gap bins) chance that a job continues the one before, of a class
    takes_up: list[float]  # (classes,) chance for each of the last NEAR jobs of a class to be taken up again
    lift: list[float]  # (classes,) factor for the kinds of a class among new sessions
    rejoin: float = 0.8  # chance that a new session goes on from the level of the last one of its kind
    returns: float = 0.5  # chance that it is then the same user's
    drift: float = 0.9995  # how much of its level a session keeps from job to job
    alike: float = 0.95  # share of the level in the run-time score, in steady sessions
    unlike: float = 0.1  # and in others
    steadiness: float = 1.6  # how much more often sessions are steady than their table's correlation says
    users: int = 100  # more or less
    vcs: dict[str, float] = field(default_factory=dict)  # VC -> GPUs, where the trace has none: given by GPU time
    gpu_types: dict[str, float] = field(default_factory=dict)  # type -> share of jobs, small jobs' types first


def size_class(gpus: np.ndarray) -> np.ndarray:
    """The class of each GPU count."""
    return np.searchsorted(SIZES, gpus)


def intensity(gap: np.ndarray) -> np.ndarray:
    """How thinly jobs come after each one: the mean of log(1 + gap) over the next few gaps; (jobs,) of (jobs,)."""
    total = np.concatenate([[0.0], np.cumsum(np.log1p(np.minimum(gap, LONGEST_GAP)))])
    here = np.arange(len(gap))
    low, high = np.minimum(here + 1, len(gap) - 1), np.minimum(here + 1 + AHEAD, len(gap))
    return (total[high] - total[low]) / np.maximum(high - low, 1)


def write_recipe(recipe: Recipe, path: Path) -> None:
    """Write a recipe as JSON, whole or not at all."""
    with written_whole(path) as begun:
        begun.write_text(json.dumps(dataclasses.asdict(recipe), separators=(",", ":")).replace('],"', '],\n"') + "\n")


def read_recipe(path: Path) -> Recipe:
    """Read a recipe; raises TraceError for a file that is none."""
    try:
        data = json.loads(path.read_text())
    except FileNotFoundError:
        raise TraceError(f"{path}: no such file") from None
    except (OSError, ValueError, RecursionError) as trouble:
        raise TraceError(f"{path}: no JSON ({str(trouble)[:60]}), want what python -m traces fit wrote") from None
    fields = {one.name for one in dataclasses.fields(Recipe)}
    if not isinstance(data, dict) or set(data) != fields:
        wrong = sorted(fields ^ set(data)) if isinstance(data, dict) else ["all"]
        raise TraceError(f"{path}: missing or unknown: {', '.join(wrong[:5])}; want what python -m traces fit wrote")
    recipe = Recipe(**data)
    _check(recipe, path)
    return recipe


def _check(recipe: Recipe, path: Path) -> None:
    """Raise TraceError at the first thing that generating could not bear."""
    for name, sound in _wants(recipe).items():
        try:
            good = sound(getattr(recipe, name))
        except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError):
            good = False
        if not good:
            shown = json.dumps(getattr(recipe, name))[:60]
            raise TraceError(f"{path}: {name} = {shown}, want numbers as python -m traces fit writes them")


def _wants(recipe: Recipe) -> dict[str, Callable[[Any], bool]]:
    """What each field of a recipe must be."""
    kinds, edges, tables = (
        len(value) if isinstance(value, list) else 0 for value in (recipe.kinds, recipe.edges, recipe.steady)
    )
    bins = edges + 1
    gap_bins = len(GAP_EDGES) + 1
    chance = _within((), 0, 1)
    return {
        "name": lambda value: isinstance(value, str),
        "source_jobs": lambda value: isinstance(value, int),
        "start": lambda value: isinstance(value, int) and 0 <= value < 86400,
        "pool_by": lambda value: value in ("", "vc", "gpu_type"),
        "steady": _within((tables,), -1, 1),
        "edges": _within((bins - 1,), -MOST, MOST),
        "hours": lambda value: _within((24,), 0, 1)(value) and sum(value) > 0,
        "gaps": _within((24, len(GAP_LEVELS)), -0.5, LONGEST_GAP + 1),
        "memory": lambda value: _within((len(SPANS),), 0, 1)(value) and sum(value) <= 1,
        "arrays": lambda value: chance(value["per_job"]) and all(0 < size <= 1e6 for size in value["sizes"]),
        "kinds": lambda value: kinds > 0 and all(_is_kind(*one) for one in value) and sum(one[2] for one in value) > 0,
        "table_of": lambda value: len(value) == kinds and all(isinstance(i, int) and 0 <= i < tables for i in value),
        "tables": _within((tables, len(LEVELS)), -0.5, MOST),
        "fresh": lambda value: _within((bins, kinds), 0, 1)(value) and all(sum(row) > 0 for row in value),
        "level": _within((bins, 2), -100, 100),
        "holds": _within((CLASSES, gap_bins), 0, 1),
        "takes_up": _within((CLASSES,), 0, 1),
        "lift": _within((CLASSES,), 1e-6, 1e6),
        "drift": chance, "rejoin": chance, "returns": chance, "alike": chance, "unlike": chance,
        "steadiness": _within((), 0, 100),
        "users": lambda value: isinstance(value, int) and 1 <= value <= 1_000_000,
        "vcs": lambda value: all(0 < size <= MOST_GPUS for size in value.values()),
        "gpu_types": lambda value: all(0 < share <= MOST for share in value.values()) and not (value and recipe.vcs),
    }  # fmt: skip


def _within(shape: tuple[int, ...], low: float, high: float) -> Callable[[Any], bool]:
    """Make the test of an array's shape and range."""

    def _sound(value: Any) -> bool:
        array = np.array(value, np.float64)
        return array.shape == shape and bool(((array >= low) & (array <= high)).all()) and not isinstance(value, str)

    return _sound


def _is_kind(gpus: Any, pool: Any, share: Any) -> bool:
    return isinstance(gpus, int) and 1 <= gpus <= MOST_GPUS and isinstance(pool, str) and 0 <= share <= 1
