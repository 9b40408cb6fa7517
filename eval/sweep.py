"""Every combination of the lists in a file, played once."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from berth.commandline import argument, option, parse, run, writable_folder
from berth.console import console, tell
from berth.errors import ConfigError
from berth.ray_cluster import fingerprint
from eval.cells import play_cell, warm_up
from eval.engines import Processes, RayTasks
from eval.journal import Journal
from eval.spec import Cell, is_model, read_spec
from eval.sweep_tables import SHOWN, show_summary, summary_of, write_tables
from eval.tasks import Engine, Manner, Outcome, Task, work_off

DESCRIPTION = """Play every combination of the lists in a SPEC.toml, in processes of this machine or on a Ray cluster.

  python eval/sweep.py examples/sweep.toml
  python eval/sweep.py SPEC.toml --processes 8 --out data/sweeps/mine
  python eval/sweep.py SPEC.toml --ray-address auto --timeout 600

A SPEC has a list for each of these; all but the first two may be left out:

  clusters    = ["philly", "helios"]            # or files, as --cluster takes them
  policies    = ["fcfs@easy", "sjf@fit@oracle", "models/philly/hidden.npz"]   # a run or a checkpoint is one, too
  workloads   = ["sample", "my_trace.csv", "baseline_stable"]   # its sample, a trace, or fresh jobs of a shape
  placers     = ["lex", "best_fit"]
  loads       = [0.8, 0.95]                     # 0: the trace's own arrivals
  seeds       = [0, 1, 2]                       # of windows, fresh jobs, and all that is random
  score_types = ["bounded_slowdown", "wait"]
  [settings]                                    # the same for all: windows, seq_len, split, runtime_info, ...
  windows = 10

The first policy is the baseline of all others. OUT gets cells.jsonl (what is done, line by line: the same
command goes on where it stopped), table.csv and table.parquet (a row for each cell), summary.csv (95 % intervals over
seeds). Cells that fail are tried again, then told; the others go on, and the exit code is 1.
"""


FIELDS = ("settings", "result", "berth")
"""What a line of cells.jsonl must have besides its key."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """What eval/sweep.py takes."""

    spec: str = argument("the lists", "SPEC.toml")
    out: str = option("", "where results go; default: data/sweeps/NAME of the SPEC", metavar="DIR")
    processes: int = option(0, "cells at a time, on a core each; 0 = as many as this machine, or the cluster, has")
    ray_address: str = option("", "do it on the Ray cluster there: HOST:PORT, or auto", metavar="ADDR")
    retries: int = option(2, "how often a cell that fails is tried again")
    timeout: float = option(0.0, "seconds that a cell may take, 0 = any time", metavar="S")

    def __post_init__(self) -> None:
        """Raise ConfigError for a value that cannot be."""
        for name, low, high in (("processes", 0, 4096), ("retries", 0, 1000), ("timeout", 0, 10**7)):
            if not low <= getattr(self, name) <= high:
                raise ConfigError(f"{name} {getattr(self, name):g}: want a number from {low} to {high:,}")


def main(words: Sequence[str] | None = None) -> None:
    """Do what is not done yet, and write the tables; exit code 1 where cells failed."""
    config = parse(Config, words, DESCRIPTION)
    cells = {cell.key: cell for cell in read_spec(config.spec)}
    out = writable_folder("--out", config.out or f"data/sweeps/{Path(config.spec).stem}")
    journal = Journal(out / "cells.jsonl", FIELDS)
    try:
        failed = play_all(config, cells, journal)
    except KeyboardInterrupt:
        done = sum(key in journal.rows for key in cells)
        tell(f"stopped: {done:,} of {len(cells):,} cells are done; the same command goes on")
        sys.exit(130)
    rows = [cell.row() | journal.rows[key]["result"] for key, cell in cells.items() if key in journal.rows]
    journal.close()
    for outcome in failed:
        tell(f"FAILED  {outcome.task.name}: {outcome.trouble} (tries: {outcome.tries})")
    if rows:
        summary = summary_of(rows, baseline=next(iter(cells.values())).policy)
        files = write_tables(out, rows, summary)
        show_summary(summary)
        for note in _notes(rows):
            tell(f"note: {note}")
        tell(f"written to {out}: {', '.join(file.name for file in files)}")
    tell(f"{len(rows):,} of {len(cells):,} cells are done, {len(failed):,} failed")
    if failed:
        sys.exit(1)


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    """What a reader of the numbers must know, each once: of whom, where."""
    told: dict[str, None] = {}
    for row in rows:
        if row["notes"]:
            told.setdefault(f"{row['policy']} on {row['cluster']} {row['workload']}: {row['notes']}")
    more = [f"{len(told) - SHOWN:,} more in table.csv"] if len(told) > SHOWN else []
    return [*list(told)[:SHOWN], *more]


def play_all(config: Config, cells: dict[str, Cell], journal: Journal) -> list[Outcome]:
    """Play the cells that are not in the journal yet; returns those that could not be."""
    mine, others = fingerprint(), {str(journal.rows[key]["berth"]) for key in cells if key in journal.rows}
    if others - {mine}:
        tell(f"note: cells that another version of Berth has played are kept; want them anew? remove {journal.path}")
    left = [Task(key, cell.name, cell, cell.group) for key, cell in cells.items() if key not in journal.rows]
    if len(left) < len(cells):
        tell(f"{len(cells) - len(left):,} of {len(cells):,} cells are done already")
    if not left:
        return []
    chosen = [task.order for task in left]
    warm_up(dict.fromkeys(cell.placer for cell in chosen), any(is_model(cell.policy) for cell in chosen),
            lambda: tell("compiling the simulator for this machine, once; one to three minutes ..."))  # fmt: skip
    columns: Any = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                    TimeRemainingColumn())  # fmt: skip
    failed: list[Outcome] = []
    with Progress(*columns, console=console(), transient=True) as bar:
        cells_bar = bar.add_task("cells", total=len(cells), completed=len(cells) - len(left))

        def _heard(outcome: Outcome) -> None:
            if outcome.trouble:
                failed.append(outcome)
            else:
                told = {"settings": outcome.task.order.row(), "result": outcome.value, "berth": mine}
                journal.add(outcome.task.key, **told, seconds=round(outcome.seconds, 4), tries=outcome.tries)
            bar.update(cells_bar, advance=1, description=f"cells ({len(failed)} failed)" if failed else "cells")

        work_off(left, _engine(config, len(left)), Manner(config.retries, config.timeout), _heard)
    return sorted(failed, key=lambda outcome: list(cells).index(outcome.task.key))


def _engine(config: Config, cells: int) -> Engine:
    """Who plays so many cells; nobody begins who would have nothing to play."""
    if config.ray_address:
        return RayTasks(play_cell, config.ray_address, config.processes)
    return Processes(play_cell, min(cells, config.processes or os.cpu_count() or 1))


if __name__ == "__main__":
    run(main)
