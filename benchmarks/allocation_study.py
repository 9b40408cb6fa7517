"""Every placer against lex on windows of every trace, in pairs; the default is chosen on the first 80 % of windows.

    python benchmarks/allocation_study.py                                # runs all (an hour), prints the tables
    python benchmarks/allocation_study.py --again data/allocation_study.csv --write 1

The runs are kept in data/allocation_study.csv. --write puts the tables into docs/results/allocation.md and every single
cell into docs/results/allocation.csv. Real traces are looked for in ../shared/traces, and left out where absent.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from rich.progress import Progress
from scipy import stats

from allocation.choice import Allocation
from allocation.placers import PLACERS
from benchmarks.calibrate import FILES, REAL
from berth.commandline import option, parse, run, writable_file, written_whole
from berth.console import console
from berth.errors import ConfigError
from envs.clusters import CLUSTERS, find_cluster
from envs.metrics import summarize
from envs.sim.simulator import simulate
from envs.workload import prepare
from eval.waits import starts
from traces.read import read_trace
from traces.trace import Trace

ROOT = Path(__file__).resolve().parent.parent
PAGE, CELLS = ROOT / "docs/results/allocation.md", ROOT / "docs/results/allocation.csv"
TRACES = tuple(
    f"{kind} {cluster}" for cluster in CLUSTERS for kind in ("sample", "real") if kind == "sample" or cluster in FILES
)
CELL = ["policy", "discipline", "load"]
METRICS = {
    "wait_mean": "mean wait",
    "wait_p99": "p99 wait",
    "utilization": "utilization",
    "fragmentation": "fragmentation",
}
RELATIVE = ("wait_mean", "wait_p99")
TIER_1 = "lex_tier_1"
CONTENDERS = {TIER_1: Allocation("lex", "1")} | {name: Allocation(name) for name in PLACERS}
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"


@dataclass(frozen=True)
class Config:
    """What benchmarks/allocation_study.py takes."""

    traces: tuple[str, ...] = option((), f"a list with commas of: {', '.join(TRACES)}; default: all that are there")
    placers: tuple[str, ...] = option(tuple(CONTENDERS), "which placers; lex always", choices=tuple(CONTENDERS))
    windows: int = option(40, "windows of each trace, spread evenly over it; fewer where they would overlap")
    jobs: int = option(1000, "jobs of a window")
    processes: int = option(2, "how many windows run at the same time")
    again: str = option("", "look at the runs in this file instead of running", metavar="FILE.csv")
    keep: str = option("data/allocation_study.csv", "where the runs are kept", metavar="FILE.csv")
    write: bool = option(False, "put the tables into docs/results/")


@lru_cache(maxsize=1)
def load_trace(name: str) -> Trace:
    """A shipped sample, or a real trace."""
    kind, _, cluster = name.partition(" ")
    return read_trace(REAL / FILES[cluster] if kind == "real" else ROOT / find_cluster(cluster).trace)


def run_window(name: str, number: int, first: int, jobs: int, placers: tuple[str, ...]) -> list[dict[str, object]]:
    """Replay a window under all rules, policies, loads and placers."""
    trace, cluster = load_trace(name).select(slice(first, first + jobs)), find_cluster(name.partition(" ")[2])
    rows = []
    for load in (0.7, 0.9, 1.1):
        for placer in placers:
            workload = prepare(trace, cluster, load=load, allocation=CONTENDERS[placer].name)
            for policy, discipline in product(("fcfs", "sjf"), ("strict", "easy")):
                found = summarize(simulate(workload, policy, discipline, allocation=CONTENDERS[placer]))
                row: dict[str, object] = {"trace": name, "window": number, "policy": policy, "discipline": discipline}
                row |= {"load": load, "placer": placer, "failed": found.get("milp_failed", 0.0)}
                rows.append(row | {metric: found[metric] for metric in METRICS})
    return rows


def window_starts(there: int, windows: int, jobs: int) -> list[int]:
    """Where the windows of a trace begin."""
    return starts(there, min(windows, there // jobs), jobs)


def run_all(config: Config) -> pd.DataFrame:
    """All windows of all traces, a few at a time."""
    names = [name for name in config.traces or TRACES if config.traces or _is_there(name)]
    placers = tuple(dict.fromkeys(("lex", *config.placers)))
    rows: list[dict[str, object]] = []
    with Progress(console=console(), transient=True) as bar, ProcessPoolExecutor(config.processes) as processes:
        tasks = [
            processes.submit(run_window, name, number, first, config.jobs, placers)
            for name in names
            for number, first in enumerate(window_starts(len(load_trace(name)), config.windows, config.jobs))
        ]
        task = bar.add_task("windows", total=len(tasks))
        for done in as_completed(tasks):
            rows += done.result()
            bar.advance(task)
    table = pd.DataFrame(rows).sort_values(["trace", "window", *CELL, "placer"])
    with written_whole(writable_file("--keep", config.keep, ".csv")) as path:
        table.to_csv(path, index=False)
    return table


def _is_there(name: str) -> bool:
    kind, _, cluster = name.partition(" ")
    return kind == "sample" or (REAL / FILES[cluster]).is_file()


def changes(runs: pd.DataFrame) -> pd.DataFrame:
    """What each run differs by from lex in the same window and cell: waits as a share of lex's mean in the cell."""
    key = ["trace", "window", *CELL]
    lex = runs[runs.placer == "lex"].set_index(key)[list(METRICS)]
    others = runs[runs.placer != "lex"].set_index(key)
    result = others[["placer"]].copy()
    for metric in METRICS:
        result[metric] = others[metric] - lex[metric].reindex(others.index)
        if metric in RELATIVE:
            usual = lex.groupby(["trace", *CELL])[metric].mean()
            usual = usual.where(usual > 0).reindex(others.index.droplevel("window")).to_numpy()
            result[metric] /= usual
    return result.reset_index()


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean of paired differences, with the ends of its 95 % interval (Student's t)."""
    values = values[np.isfinite(values)]
    if len(values) < 2 or np.ptp(values) == 0:
        mean = float(values.mean()) if len(values) else float("nan")
        return mean, mean, mean
    low, high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
    return float(values.mean()), float(low), float(high)


def per_window(diff: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The mean over cells in every window, so that windows, not cells, are what is counted."""
    return diff.groupby([*by, "trace", "window"] if "trace" not in by else [*by, "window"])[list(METRICS)].mean()


def percent(found: tuple[float, float, float], points: bool) -> str:
    """A change with its interval, in percent or percentage points."""
    mean, low, high = (100 * value for value in found)
    digits = 2 if points else 1
    return f"{mean:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"


def summary(diff: pd.DataFrame, by: list[str]) -> Iterator[list[str]]:
    """Rows of a table: the group, then every metric's mean change with its interval over windows."""
    windows = per_window(diff, by)
    for group, rows in windows.groupby(by, sort=False):
        names = group if isinstance(group, tuple) else (group,)
        yield [
            *(str(name) for name in names),
            *(percent(interval(rows[metric].to_numpy()), metric not in RELATIVE) for metric in METRICS),
        ]


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def is_late(runs: pd.DataFrame) -> pd.Series:
    """Which runs are of the last 20 % of their trace's windows."""
    return runs.window >= 0.8 * (runs.groupby("trace").window.transform("max") + 1)


def tables(runs: pd.DataFrame) -> str:
    """What the page shows: the choice on the first 80 % of windows, and what it came to on the rest."""
    late = is_late(runs)
    chosen_on, held_out = changes(runs[~late]), changes(runs[late])
    columns = [f"{name}, {'%' if metric in RELATIVE else 'points'}" for metric, name in METRICS.items()]
    order = {name: i for i, name in enumerate(CONTENDERS)}
    text = [
        f"{runs.trace.nunique()} traces, {runs.groupby(['trace', 'window']).ngroups} windows, "
        f"{runs.groupby(CELL).ngroups} cells (policy × discipline × load), {len(runs):,} simulations; "
        f"placements for which the MILP failed: {int(runs.failed.sum())}.\n"
    ]
    ranked = sorted(summary(chosen_on, ["placer"]), key=lambda row: float(row[1].split(" ")[0]))
    text += [
        "### Choice: all traces, first 80 % of the windows, change against lex\n",
        markdown(["placer", *columns], ranked),
    ]
    rows = sorted(summary(held_out, ["placer"]), key=lambda row: order[row[0]])
    text += ["### Held out: all traces, last 20 % of the windows\n", markdown(["placer", *columns], rows)]
    rows = sorted(summary(held_out, ["trace", "placer"]), key=lambda row: (row[0], order[row[1]]))
    text += ["### Held out, trace by trace\n", markdown(["trace", "placer", *columns], rows)]
    rows = sorted(
        summary(held_out, ["policy", "discipline", "placer"]), key=lambda row: (row[0], row[1], order[row[2]])
    )
    text += ["### Held out, by policy and discipline\n", markdown(["policy", "discipline", "placer", *columns], rows)]
    rows = sorted(summary(held_out, ["load", "placer"]), key=lambda row: (row[0], order[row[1]]))
    text += ["### Held out, by load\n", markdown(["load", "placer", *columns], rows)]
    return "\n".join(text)


def cells(runs: pd.DataFrame) -> pd.DataFrame:
    """Every cell of the held-out windows: lex's mean, and each placer's mean difference with its interval."""
    held_out = runs[is_late(runs)]
    key = ["trace", "window", *CELL]
    wide = held_out.set_index([*key, "placer"])[list(METRICS)].unstack("placer")
    rows = []
    for cell, part in wide.groupby(["trace", *CELL]):
        for placer in part.columns.get_level_values("placer").unique().drop("lex"):
            row: dict[str, object] = dict(zip(["trace", *CELL], cell, strict=True)) | {"placer": placer}
            for metric in METRICS:
                row[f"lex_{metric}"] = part[metric, "lex"].mean()
                mean, low, high = interval((part[metric, placer] - part[metric, "lex"]).to_numpy())
                row |= {f"{metric}_change": mean, f"{metric}_low": low, f"{metric}_high": high}
            rows.append(row)
    return pd.DataFrame(rows)


def write(text: str, runs: pd.DataFrame) -> None:
    """Put the tables between the page's marks, and the cells beside it."""
    page = PAGE.read_text()
    head, _, rest = page.partition(BEGIN)
    _, mark, tail = rest.partition(END)
    if not mark:
        raise ConfigError(f"{PAGE}: want the marks {BEGIN} and {END}")
    with written_whole(PAGE) as path:
        path.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}")
    with written_whole(CELLS) as path:
        cells(runs).to_csv(path, index=False, float_format="%.6g")


def main() -> None:
    """Run or read the runs, and show the tables."""
    config = parse(Config, description=__doc__ or "")
    if config.windows < 10 or config.jobs < 2:
        raise ConfigError("--windows: want at least 10; --jobs: want at least 2")
    runs = pd.read_csv(config.again) if config.again else run_all(config)
    text = tables(runs)
    print(text)
    if config.write:
        write(text, runs)


if __name__ == "__main__":
    run(main)
