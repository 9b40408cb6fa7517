"""Every placer against lex on windows of every trace, in pairs; the default is chosen on the first 80 % of windows.

    python benchmarks/allocation_study.py                                # runs all (an hour), prints the tables
    python benchmarks/allocation_study.py --again data/allocation_study.csv --write 1

It may be stopped at any time: the same command goes on. The runs are kept in data/allocation_study.csv. --write puts
the tables into docs/results/allocation.md and every single cell into docs/results/allocation.csv. Real traces are
looked for in ../shared/traces, and left out where absent.
"""

import json
import warnings
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from rich.progress import Progress

from allocation.choice import Allocation
from allocation.placers import PLACERS
from benchmarks.calibrate import FILES, REAL
from berth.commandline import option, parse, run, writable_file, written_whole
from berth.console import console
from berth.errors import ConfigError
from berth.streams import stream
from envs.clusters import CLUSTERS, find_cluster
from envs.metrics import summarize
from envs.sim.simulator import simulate
from envs.workload import prepare
from eval.engines import Processes
from eval.journal import Journal
from eval.tasks import Manner, Outcome, Task, work_off
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
RESAMPLES = 2000
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
            if len(workload.unfit) != len(prepare(trace, cluster, load=load).unfit):
                raise ConfigError(f"{name}: {placer} leaves out other jobs than lex in window {number}")
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
    path = writable_file("--keep", config.keep, ".csv")
    orders = [
        (name, number, first, config.jobs, placers)
        for name in names
        for number, first in enumerate(window_starts(len(load_trace(name)), config.windows, config.jobs))
    ]
    tasks = [Task(json.dumps(order), f"{order[0]} window {order[1]}", order, order[0]) for order in orders]
    journal = Journal(path.with_suffix(".jsonl"))
    failed: list[Outcome] = []
    with Progress(console=console(), transient=True) as bar:
        left = [task for task in tasks if task.key not in journal.rows]
        windows = bar.add_task("windows", total=len(tasks), completed=len(tasks) - len(left))

        def _heard(outcome: Outcome) -> None:
            if outcome.trouble:
                failed.append(outcome)
            else:
                journal.add(outcome.task.key, rows=outcome.value)
            bar.advance(windows)

        work_off(left, Processes(run_order, config.processes), Manner(), _heard)
    if failed:
        raise ConfigError(f"{len(failed)} windows failed, {failed[0].task.name}: {failed[0].trouble}")
    rows = [row for task in tasks for row in journal.rows[task.key]["rows"]]
    journal.close()
    table = pd.DataFrame(rows).sort_values(["trace", "window", *CELL, "placer"])
    with written_whole(path) as begun:
        table.to_csv(begun, index=False)
    journal.path.unlink()  # whole: the next study begins anew
    return table


def run_order(order: tuple[str, int, int, int, tuple[str, ...]]) -> list[dict[str, object]]:
    """Replay the window of a task."""
    return run_window(*order)


def _is_there(name: str) -> bool:
    kind, _, cluster = name.partition(" ")
    return kind == "sample" or (REAL / FILES[cluster]).is_file()


class Windows(NamedTuple):
    """The runs of one trace as an array (windows, cells, placers, metrics)."""

    values: np.ndarray
    cells: list[tuple[str, str, float]]
    placers: list[str]


def by_trace(runs: pd.DataFrame) -> dict[str, Windows]:
    """The runs, trace by trace."""
    found = {}
    for trace, part in runs.groupby("trace"):
        wide = part.set_index(["window", *CELL, "placer"])[list(METRICS)].sort_index()
        names = [list(wide.index.unique(level)) for level in ("window", *CELL, "placer")]
        values = wide.to_numpy().reshape(*(len(level) for level in names), len(METRICS))
        cells = list(product(*names[1:4]))
        found[str(trace)] = Windows(values.reshape(len(names[0]), len(cells), len(names[4]), -1), cells, names[4])
    return found


def changes(windows: Windows, chosen: np.ndarray, cells: list[int]) -> np.ndarray:
    """What each placer changes against lex over some windows, (resamples, placers, metrics).

    chosen (resamples, windows) are numbers of windows. Waits: logarithm of the ratio of the sums over windows, averaged
    over cells, so that double and half weigh the same; where nobody ever waited there is no change. The others:
    differences, averaged.
    """
    sums = windows.values[:, cells][chosen].mean(axis=1)
    lex = sums[:, :, [windows.placers.index("lex")]]
    waits = len(RELATIVE)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(sums[..., :waits] / lex[..., :waits])
    ratio = np.where((sums[..., :waits] == 0) & (lex[..., :waits] == 0), 0.0, ratio)
    known = np.isfinite(ratio)
    with np.errstate(invalid="ignore"):
        mean = np.where(known, ratio, 0.0).sum(axis=1) / known.sum(axis=1)
    return np.concatenate([mean, (sums - lex)[..., waits:].mean(axis=1)], axis=-1)


def estimate(
    traces: dict[str, Windows], names: list[str], late: bool, cells: list[int] | None = None
) -> dict[str, list[tuple[float, float, float]]]:
    """Each placer's changes of all metrics with 95 % intervals.

    Traces weigh the same; the intervals come from drawing windows again in each trace.
    """
    rng = stream(1, "allocation study")
    points, again = [], []
    for name in names:
        windows = traces[name]
        first = int(np.ceil(0.8 * len(windows.values)))
        there = np.arange(first, len(windows.values)) if late else np.arange(first)
        which = list(range(len(windows.cells))) if cells is None else cells
        points.append(changes(windows, there[None], which)[0])
        again.append(changes(windows, rng.choice(there, (RESAMPLES, len(there))), which))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a trace on which nobody waits there is no mean
        middle, drawn = np.nanmean(points, axis=0), np.nanmean(again, axis=0)
        low, high = np.nanquantile(drawn, [0.025, 0.975], axis=0)
    placers = traces[names[0]].placers
    return {
        placer: [(middle[i, m], low[i, m], high[i, m]) for m in range(len(METRICS))]
        for i, placer in enumerate(placers)
        if placer != "lex"
    }


def percent(found: tuple[float, float, float], metric: str) -> str:
    """A change with its interval, in percent or percentage points."""
    values = [100 * (float(np.expm1(value)) if metric in RELATIVE else value) for value in found]
    digits = 1 if metric in RELATIVE else 2
    mean, low, high = (f"{value:+.{digits}f}" for value in values)
    return f"{mean} [{low}, {high}]"


def rows_of(found: dict[str, list[tuple[float, float, float]]], *labels: str) -> list[list[str]]:
    """Rows of a table, the placers in their usual order."""
    ordered = [placer for placer in CONTENDERS if placer in found]
    return [
        [*labels, placer, *(percent(value, metric) for value, metric in zip(found[placer], METRICS, strict=True))]
        for placer in ordered
    ]


def tally(traces: dict[str, Windows], placer: str) -> str:
    """In how many held-out windows a placer's waits, over all cells, are shorter, equal and longer than lex's."""
    better = equal = worse = 0
    for windows in traces.values():
        waits = windows.values[int(np.ceil(0.8 * len(windows.values))) :, :, :, 0].sum(axis=1)
        lex, other = waits[:, windows.placers.index("lex")], waits[:, windows.placers.index(placer)]
        better += int((other < lex).sum())
        equal += int((other == lex).sum())
        worse += int((other > lex).sum())
    return f"{better} / {equal} / {worse}"


def left_out(traces: dict[str, Windows]) -> int:
    """How many pairs of cell and placer have no ratio, because lex's waits are 0 in all held-out windows."""
    count = 0
    for windows in traces.values():
        waits = windows.values[int(np.ceil(0.8 * len(windows.values))) :, :, :, 0].sum(axis=0)
        count += int(((waits[:, [windows.placers.index("lex")]] == 0) & (waits > 0)).sum())
    return count


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def tables(runs: pd.DataFrame) -> str:
    """What the page shows: the choice on the first 80 % of windows, and what it came to on the rest."""
    traces = by_trace(runs)
    names = list(traces)
    few = min(len(windows.values) for windows in traces.values())
    if few < 5:
        raise ConfigError(f"a trace has {few} windows; want at least 5, of which the last is held out")
    columns = [f"{name}, {'%' if metric in RELATIVE else 'points'}" for metric, name in METRICS.items()]
    cells = next(iter(traces.values())).cells
    windows = sum(len(part.values) for part in traces.values())
    text = [
        f"{len(traces)} traces, {windows} windows, {len(cells)} cells (policy × discipline × load), {len(runs):,} "
        f"simulations. Placements for which the MILP failed: {int(runs.failed.sum())}. Left out, as lex never waits "
        f"there and the other does: {left_out(traces)} of the held-out waits.\n"
    ]
    found = estimate(traces, names, late=False)
    ranked = sorted(rows_of(found), key=lambda row: found[row[0]][0][0])
    text += ["### Choice: all traces, first 80 % of the windows\n", markdown(["placer", *columns], ranked)]
    rows = [[*row, tally(traces, row[0])] for row in rows_of(estimate(traces, names, late=True))]
    head = ["placer", *columns, "windows with shorter / equal / longer waits"]
    text += ["### Held out: all traces, last 20 % of the windows\n", markdown(head, rows)]
    rows = [row for name in names for row in rows_of(estimate(traces, [name], late=True), name)]
    text += ["### Held out, trace by trace\n", markdown(["trace", "placer", *columns], rows)]
    for what, level in (("policy", 0), ("discipline", 1), ("load", 2)):
        rows = []
        for value in dict.fromkeys(cell[level] for cell in cells):
            which = [i for i, cell in enumerate(cells) if cell[level] == value]
            rows += rows_of(estimate(traces, names, late=True, cells=which), str(value))
        text += [f"### Held out, by {what}\n", markdown([what, "placer", *columns], rows)]
    return "\n".join(text)


def every_cell(runs: pd.DataFrame) -> pd.DataFrame:
    """Every cell of the held-out windows: lex's mean, and each placer's change with its interval."""
    traces, rows = by_trace(runs), []
    for name, windows in traces.items():
        late = windows.values[int(np.ceil(0.8 * len(windows.values))) :]
        for i, cell in enumerate(windows.cells):
            lex = late[:, i, windows.placers.index("lex")].mean(axis=0)
            for placer, found in estimate(traces, [name], late=True, cells=[i]).items():
                row: dict[str, object] = {"trace": name} | dict(zip(CELL, cell, strict=True)) | {"placer": placer}
                for m, metric in enumerate(METRICS):
                    row[f"lex_{metric}"] = lex[m]
                    ends = [np.expm1(value) if metric in RELATIVE else value for value in found[m]]
                    row |= dict(zip((f"{metric}_change", f"{metric}_low", f"{metric}_high"), ends, strict=True))
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
        every_cell(runs).to_csv(path, index=False, float_format="%.6g")


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
