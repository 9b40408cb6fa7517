"""Results as tables in the terminal and as CSV files."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from envs.metrics import METRICS, summarize
from envs.sim.simulator import Schedule

COLUMNS = {
    "bounded_slowdown_mean": "bounded slowdown\nmean",
    "bounded_slowdown_p99": "\np99",
    "wait_mean": "wait, s\nmean",
    "wait_median": "\nmedian",
    "wait_p99": "\np99",
    "turnaround_mean": "turnaround, s\nmean",
    "utilization": "utiliz-\nation",
    "fragmentation": "fragment-\nation",
    "load_imbalance": "load im-\nbalance",
    "makespan": "makespan\ns",
    "throughput": "jobs/h\n",
}
"""What the terminal shows, out of all that summary.csv has."""


def console() -> Console:
    """A console that does not squeeze tables when its output goes to a file."""
    wide = Console()
    return wide if wide.is_terminal else Console(width=180)


def show(schedules: Sequence[Schedule], title: str) -> None:
    """Print one row per schedule, and one per pool where there are several; the best of each column is bold."""
    out = console()
    rows = [(s.policy, s.discipline, summarize(s)) for s in schedules]
    table = _table(title, ("policy", "discipline"))
    _fill(table, [((policy, discipline), row) for policy, discipline, row in rows])
    out.print(table)
    pools = schedules[0].workload.pools
    if len(pools) == 1:
        return
    if len(pools) * len(schedules) > 60:
        out.print("by pool: see summary.csv (--csv DIR)")
        return
    per_pool = _table("by pool", ("policy", "discipline", "pool", "jobs"))
    for schedule in schedules:
        for number, pool in enumerate(pools):
            row = summarize(schedule, number)
            _fill(
                per_pool, [((schedule.policy, schedule.discipline, pool.name, f"{row['jobs']:,.0f}"), row)], best=False
            )
    out.print(per_pool)


def _table(title: str, labels: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", header_style="")
    for label in labels:
        table.add_column(label, no_wrap=True)
    for head in COLUMNS.values():
        table.add_column(head, justify="right")
    return table


def _fill(table: Table, rows: list[tuple[tuple[str, ...], dict[str, float]]], best: bool = True) -> None:
    """Add rows; the best value of a column stands out where several compete."""
    winners = {}
    for column in COLUMNS:
        less = METRICS[_metric(column)].less_is_better
        values = [row[column] for _, row in rows]
        winners[column] = min(values) if less else max(values)
    for labels, row in rows:
        cells = []
        for column in COLUMNS:
            text = _number(row[column])
            bold = best and len(rows) > 1 and row[column] == winners[column]
            cells.append(f"[bold]{text}[/bold]" if bold else text)
        table.add_row(*labels, *cells)


def _metric(column: str) -> str:
    """The metric that a column is a statistic of."""
    return column if column in METRICS else column.rpartition("_")[0]


def _number(value: float) -> str:
    if np.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" if abs(value) < 1 else f"{value:.2f}"


def write_csv(schedules: Sequence[Schedule], folder: Path) -> list[Path]:
    """Write summary.csv, one jobs_POLICY_DISCIPLINE.csv per schedule, and left_out.csv where jobs were left out."""
    folder.mkdir(parents=True, exist_ok=True)
    summary = folder / "summary.csv"
    rows = []
    for schedule in schedules:
        names = ["all", *(pool.name for pool in schedule.workload.pools)]
        for number, pool in enumerate(names):
            head = {"policy": schedule.policy, "discipline": schedule.discipline, "runtime_info": schedule.runtime_info}
            rows.append(head | {"pool": pool} | summarize(schedule, number - 1 if number else None))
    with summary.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    written = [summary]
    for schedule in schedules:
        written.append(folder / f"jobs_{schedule.policy}_{schedule.discipline}.csv")
        _write_jobs(schedule, written[-1])
    if schedules[0].workload.unfit:
        written.append(folder / "left_out.csv")
        written[-1].write_text("job_id\n" + "\n".join(schedules[0].workload.unfit) + "\n")
    return written


def _write_jobs(schedule: Schedule, path: Path) -> None:
    """Write every job's times, pool and nodes; nodes as `node:gpus` with blanks between, numbered over all pools."""
    trace, pools = schedule.workload.trace, schedule.workload.pools
    columns = (trace.submit, schedule.start, schedule.end, schedule.start - trace.submit, trace.run_time)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("job_id", "submit", "start", "end", "wait", "run_time", "gpus", "pool", "nodes"))
        for job, times in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            nodes = " ".join(f"{node}:{gpus}" for node, gpus in schedule.nodes_of(job))
            pool = pools[schedule.workload.pool[job]].name
            writer.writerow((trace.job_id[job], *(f"{t:.15g}" for t in times), trace.gpus[job], pool, nodes))
