"""Fit the recipes in traces/recipes/ to the real traces, or judge samples of them seed by seed.

    python benchmarks/calibrate.py --fit 1                  # writes the recipes; takes long
    python benchmarks/calibrate.py --seeds 12               # prints what each seed's sample is like

The real traces are looked for in ../shared/traces.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.progress import Progress
from rich.table import Table

from berth.commandline import option, parse, run
from berth.console import console
from berth.errors import ConfigError
from envs.clusters import find_cluster
from envs.helios import HELIOS
from eval.waits import Waits, one_pool, waits
from traces.compare import compare, history
from traces.describe import lead_in
from traces.fit import ROUNDS, fit
from traces.generate import RECIPES, SAMPLE_JOBS, generate
from traces.read import read_trace
from traces.recipe import read_recipe, write_recipe
from traces.trace import Trace
from traces.tune import tune

REAL = Path(__file__).resolve().parent.parent.parent / "shared" / "traces"
FILES = {
    "philly": "philly/philly.csv.gz",
    "helios": "helios/venus_gpu_jobs.csv.gz",
    "alibaba": "alibaba_pai2020/pai_terminated_gpu_tasks_8pct.csv.gz",
}
TYPES = {"T4": 0.218, "MISC": 0.670, "P100": 0.070, "V100_32GB": 0.017, "V100_16GB": 0.025}
"""Published shares of PAI's tasks by GPU type, which the trace that we have lacks."""


@dataclass(frozen=True)
class Config:
    """What benchmarks/calibrate.py takes."""

    clusters: tuple[str, ...] = option(tuple(FILES), "which clusters", choices=tuple(FILES))
    fit: bool = option(False, "fit the recipes anew, and write them")
    tries: int = option(120, "trials of the search, with --fit")
    seeds: int = option(0, "judge the samples of the seeds 1 to N")


def vcs(cluster: str) -> dict[str, float] | None:
    """GPUs of Helios's virtual clusters, which the trace that we have lacks."""
    if cluster != "helios":
        return None
    return {pool.name: float(sum(pool.capacity)) for pool in HELIOS.topology("production")}


def wait_figures(cluster: str) -> Callable[[Trace], dict[str, float]]:
    """Mean waits under fcfs and sjf, as figures for the search."""

    def _figures(trace: Trace) -> dict[str, float]:
        found = waits(one_pool(trace), find_cluster(cluster))
        return {f"wait {name}": 0.15 * float(np.log(getattr(found, name).mean())) for name in ("fcfs", "sjf")}

    return _figures


def fit_recipe(cluster: str, trace: Trace, tries: int) -> None:
    """Fit one recipe, and write it."""
    with Progress(console=console(), transient=True) as bar:
        task = bar.add_task(cluster, total=ROUNDS + tries + 1)

        def _step() -> None:
            bar.advance(task)

        recipe = fit(trace, cluster, vcs(cluster), TYPES if cluster == "alibaba" else None, _step)
        recipe = tune(recipe, trace, tries, wait_figures(cluster), _step)
    write_recipe(recipe, RECIPES[cluster])
    console().print(f"{RECIPES[cluster]}: fitted to {len(trace):,} jobs")


def judge(cluster: str, real: Trace, seeds: int) -> Table:
    """What the samples of some seeds are like, against the real trace."""
    title = f"{cluster}: samples of {SAMPLE_JOBS:,} jobs against {len(real):,} real ones"
    table = Table("seed", "KS\nrun time", "KS\nGPUs", "KS\ngap", "hours", "last ten,\nworst", "last ten,\nuser, GPUs",
                  "fcfs, s", "sjf, s", "fcfs : sjf", "median\nwindow", title=title, title_justify="left")  # fmt: skip
    body = real.select(slice(lead_in(real.submit), None))
    finest = history(real, ("vc", "gpus")) or history(real, ("gpus",)) or 0.0
    for name, trace in (("real", real), ("less lead-in", body)):
        table.add_row(name, *[""] * 5, f"{finest:.3f}", *_waits(waits(one_pool(trace), find_cluster(cluster))))
    recipe = read_recipe(RECIPES[cluster])
    found: list[Waits] = []
    for seed in range(1, seeds + 1):
        made = generate(recipe, SAMPLE_JOBS, seed, cluster)
        rows = {row.what: row.distance or 0.0 for row in compare(made, real)}
        worst = max(distance for what, distance in rows.items() if "last ten" in what)
        cells = [rows[what] for what in ("KS run time", "KS GPUs", "KS inter-arrival time", "hour of day")]
        told = [f"{value:.3f}" for value in (*cells, worst, history(made, ("user", "gpus")) or 0.0)]
        found.append(waits(one_pool(made), find_cluster(cluster)))
        table.add_row(str(seed), *told, *_waits(found[-1]))
    ratios = [one.ratio for one in found]
    for name, value in {"mean": np.mean(ratios), "median": np.median(ratios)}.items():
        table.add_row(name, *[""] * 8, f"{value:.2f}", "")
    return table


def _waits(found: Waits) -> list[str]:
    return [f"{found.fcfs.mean():,.0f}", f"{found.sjf.mean():,.0f}", f"{found.ratio:.2f}", f"{found.median:.2f}"]


def main() -> None:
    """Fit, judge, or both."""
    config = parse(Config, description=__doc__ or "")
    if not config.fit and not config.seeds:
        raise ConfigError("want --fit 1, or --seeds N")
    for cluster in config.clusters:
        real = read_trace(REAL / FILES[cluster])
        if config.fit:
            fit_recipe(cluster, real, config.tries)
        if config.seeds:
            console().print(judge(cluster, real, config.seeds))


if __name__ == "__main__":
    run(main)
