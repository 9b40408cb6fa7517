"""Workloads that resemble a real trace, made from a recipe of its statistics."""

from pathlib import Path
from typing import Any

import numpy as np

from berth.errors import ConfigError
from berth.streams import stream
from traces.arrivals import arrivals, read_table
from traces.parametric import SYNTHETIC, generate_parametric
from traces.recipe import LEVELS, Recipe, read_recipe, size_class
from traces.sessions import Sessions, sessions
from traces.trace import Trace

RECIPES = {name: Path(__file__).parent / "recipes" / f"{name}.json" for name in ("philly", "helios", "alibaba")}
"""The recipes that ship."""

SAMPLES = {
    "philly": ("Philly_Formatted_withGPUType.csv", 17),
    "helios": ("Helios_Formatted_withGPUType.csv", 1),
    "alibaba": ("Alibaba_Formatted_withGPUType.csv", 13),
    "synthetic": ("synthetic_trace.csv", 1),
}
"""The sample that ships for each cluster: its file, and the seed it is made with."""

SAMPLE_JOBS = 20_000

TYPE_NOISE = 0.3
TYPE_BY_RUN_TIME = 0.2
"""How a session's GPU type follows from its run time, and from chance; its GPUs weigh 1."""


def sample(cluster: str) -> Trace:
    """The sample that ships for a cluster, made anew."""
    seed = SAMPLES[cluster][1]
    if cluster in RECIPES:
        return generate(read_recipe(RECIPES[cluster]), SAMPLE_JOBS, seed, cluster)
    return generate_parametric(SYNTHETIC, SAMPLE_JOBS, seed, cluster)


def generate(recipe: Recipe, jobs: int, seed: int, name: str = "generated") -> Trace:
    """Make a workload; equal arguments give equal jobs.

    Arrivals first, then sessions; run times last, by the rank of each job's score among those of its table and size, so
    that run times given GPUs are distributed as the recipe says.
    """
    if jobs < 2:
        raise ConfigError(f"jobs {jobs}, want at least 2")
    rng = {use: stream(seed, f"calibrated {use}") for use in ("arrivals", "sessions", "run times", "pools", "users")}
    submit = arrivals(recipe, jobs, rng["arrivals"])
    made = sessions(recipe, np.diff(submit, prepend=submit[0]), rng["sessions"])
    gpus = np.array([kind[0] for kind in recipe.kinds], np.int32)[made.kind]
    run_time = _run_times(recipe, made, gpus, rng["run times"])
    column, pool = _pools(recipe, made, run_time * gpus, gpus, rng["pools"])
    user = _users(recipe, made.session, pool, rng["users"])
    columns: dict[str, Any] = {column: pool.astype(object)} if column else {}
    return Trace(
        name=name,
        format="generated",
        job_id=np.arange(1, jobs + 1),
        submit=submit.astype(np.float64),
        run_time=run_time.astype(np.float64),
        gpus=gpus,
        user=user.astype(object),
        **columns,
    )


def _run_times(recipe: Recipe, made: Sessions, gpus: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Run times in whole seconds: scores of steady sessions are much alike, those of others less so."""
    table = np.array(recipe.table_of)[made.kind]
    chance = np.minimum(recipe.steadiness * np.array(recipe.steady), 1.0)[table]
    steady = rng.random(made.session.max() + 1)[made.session] < chance
    alike = np.where(steady, recipe.alike, recipe.unlike)
    score = np.sqrt(alike) * made.level + np.sqrt(1 - alike) * rng.standard_normal(len(gpus))
    score += np.where(gpus == 1, made.usual[:, 0], made.usual[:, 1])
    run_time = np.ones(len(gpus), np.int64)
    for number, size in sorted(set(zip(table.tolist(), gpus.tolist(), strict=True))):
        here = np.flatnonzero((table == number) & (gpus == size))
        level = (np.arange(len(here)) + rng.random(len(here))) / len(here)
        ranked = here[np.argsort(score[here], kind="stable")]
        run_time[ranked] = read_table(recipe.tables[number], LEVELS, level)
    return np.maximum(run_time, 1)


def _pools(
    recipe: Recipe, made: Sessions, work: np.ndarray, gpus: np.ndarray, rng: np.random.Generator
) -> tuple[str, np.ndarray]:
    """The column that names the jobs' part of the cluster ("" for none), and the names."""
    if recipe.vcs:
        return "vc", _by_work(recipe.vcs, made.session, work, gpus, rng)
    if recipe.gpu_types:
        return "gpu_type", _by_size(recipe.gpu_types, made.session, work, gpus, rng)
    return recipe.pool_by, np.array([kind[1] for kind in recipe.kinds])[made.kind]


def _by_work(
    vcs: dict[str, float], session: np.ndarray, work: np.ndarray, gpus: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """VCs for whole sessions, so that a VC's GPU time follows its GPUs, and its jobs fit it where that can be."""
    names, size = np.array(list(vcs)), np.array(list(vcs.values()), np.float64)
    count = int(session.max()) + 1
    most, load = np.zeros(count, np.int64), np.bincount(session, weights=work, minlength=count)
    np.maximum.at(most, session, gpus)
    wanted, given, chosen = size / size.sum() * work.sum(), np.zeros(len(size)), np.zeros(count, np.int64)
    for one in np.lexsort((rng.random(count), -load, -size_class(most))).tolist():
        fits = size >= most[one] if most[one] <= size.max() else size == size.max()
        room = np.where(fits, np.maximum(wanted - given, 1e-9 * wanted), 0.0)
        room = np.where(room >= load[one], room, 0.0) if (room >= load[one]).any() else room
        chosen[one] = np.searchsorted(np.cumsum(room), rng.random() * room.sum(), side="right")
        given[chosen[one]] += load[one]
    return names[chosen[session]]


def _by_size(
    types: dict[str, float], session: np.ndarray, work: np.ndarray, gpus: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """GPU types with exact shares of the jobs; sessions of large, long jobs tend to the last two (of two, the last).

    Between these two, and among the others, chance decides.
    """
    names, share = np.array(list(types)), np.array(list(types.values()))
    share = share / share.sum()
    count = np.maximum(np.bincount(session), 1)
    size = np.bincount(session, weights=np.log(gpus)) / count
    length = np.bincount(session, weights=np.log(work / gpus)) / count
    score = size + TYPE_BY_RUN_TIME * length + TYPE_NOISE * rng.standard_normal(len(count))
    few = 2 if len(names) > 2 else 1
    large = score > np.quantile(score[session], share[:-few].sum())
    score = large + rng.random(len(count))
    ends = np.rint(np.cumsum(share) * len(session))
    place = np.empty(len(session), np.int64)
    place[np.lexsort((session, score[session]))] = np.searchsorted(ends, np.arange(len(session)), side="right")
    return names[np.minimum(place, len(names) - 1)]


def _users(recipe: Recipe, session: np.ndarray, pool: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Users own sessions of one pool; in each pool a few are far more active than the rest (Zipf's law)."""
    names, part = np.unique(pool, return_inverse=True)
    pairs, owner = np.unique(session * len(names) + part, return_inverse=True)
    user, first = np.zeros(len(pairs), np.int64), 0
    for number in range(len(names)):
        mine = pairs % len(names) == number
        people = max(1, round(recipe.users * float(np.sqrt(np.mean(part == number)))))
        chance = np.cumsum(1.0 / np.arange(1, people + 1))
        user[mine] = first + np.searchsorted(chance, rng.random(int(mine.sum())) * chance[-1], side="right")
        first += people
    return np.array([f"u{number:04d}" for number in range(first)])[user[owner]]
