"""Results as tables in the terminal and as CSV files."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.markup import escape
from rich.table import Table

from berth.console import console
from envs.metrics import METRICS, summarize
from envs.sim.simulator import Schedule

COLUMNS = {
    "bounded_slowdown_mean": "bounded\nslowdown\nmean",
    "bounded_slowdown_p99": "bounded\nslowdown\np99",
    "wait_mean": "wait, s\nmean",
    "wait_median": "wait, s\nmedian",
    "wait_p99": "wait, s\np99",
    "turnaround_mean": "turn-\naround, s\nmean",
    "utilization": "utiliz-\nation",
    "fragmentation": "fragment-\nation",
    "load_imbalance": "load im-\nbalance",
    "makespan": "makespan\ns",
    "throughput": "jobs/h\n",
}
"""What the terminal shows, out of all that summary.csv has."""


IMPORTANCE = (
    "bounded_slowdown_mean", "wait_mean", "utilization", "wait_p99", "bounded_slowdown_p99", "turnaround_mean",
    "wait_median", "fragmentation", "makespan", "load_imbalance", "throughput",
)  # fmt: skip
"""Which columns stay where the terminal is narrow."""


def show(schedules: Sequence[Schedule], title: str) -> None:
    """Print one row per schedule, and one per pool where there are several; the best of each column is bold."""
    out = console()
    columns = _that_fit(out.width - 36)
    rows = [(s.policy, s.discipline, summarize(s)) for s in schedules]
    table = _table(title, ("policy", "discipline"), columns)
    _fill(table, columns, [((policy, discipline), row) for policy, discipline, row in rows])
    out.print(table)
    if len(columns) < len(COLUMNS):
        out.print("more columns in a wider terminal, all of them in summary.csv (--csv DIR)")
    pools = schedules[0].workload.pools
    if len(pools) == 1:
        return
    if len(pools) * len(schedules) > 60:
        out.print("by pool: see summary.csv (--csv DIR)")
        return
    columns = _that_fit(out.width - 60)
    per_pool = _table("by pool", ("policy", "discipline", "pool", "jobs"), columns)
    for schedule in schedules:
        for number, pool in enumerate(pools):
            row = summarize(schedule, number)
            labels = (schedule.policy, schedule.discipline, pool.name, f"{row['jobs']:,.0f}")
            _fill(per_pool, columns, [(labels, row)], best=False)
    out.print(per_pool)


def _that_fit(width: int) -> list[str]:
    """As many columns as a width holds, the most telling first, in their usual order."""
    most_telling = IMPORTANCE[: max(2, width // 13)]
    return [column for column in COLUMNS if column in most_telling]


def _table(title: str, labels: tuple[str, ...], columns: list[str]) -> Table:
    table = Table(title=escape(title), title_justify="left", header_style="")
    for label in labels:
        table.add_column(label, no_wrap=True)
    for column in columns:
        table.add_column(COLUMNS[column], justify="right", no_wrap=True)
    return table


def _fill(
    table: Table, columns: list[str], rows: list[tuple[tuple[str, ...], dict[str, float]]], best: bool = True
) -> None:
    """Add rows; the best value of a column stands out where several compete."""
    winners = {}
    for column in columns:
        less = METRICS[_metric(column)].less_is_better
        values = [row[column] for _, row in rows]
        winners[column] = min(values) if less else max(values)
    for labels, row in rows:
        cells = []
        for column in columns:
            text = number(row[column])
            bold = best and len(rows) > 1 and row[column] == winners[column]
            cells.append(f"[bold]{text}[/bold]" if bold else text)
        table.add_row(*(escape(label) for label in labels), *cells)


def _metric(column: str) -> str:
    """The metric that a column is a statistic of."""
    return column if column in METRICS else column.rpartition("_")[0]


def number(value: float) -> str:
    """A number as tables show it."""
    if np.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" if abs(value) < 1 else f"{value:.2f}"


def write_csv(schedules: Sequence[Schedule], folder: Path) -> list[Path]:
    """Write summary.csv, one jobs_POLICY_DISCIPLINE.csv per schedule, and left_out.csv where jobs were left out."""
    folder.mkdir(parents=True, exist_ok=True)
    summary = folder / "summary.csv"
    rows = []
    for schedule in schedules:
        pools = schedule.workload.pools
        names = ["all", *(pool.name for pool in pools if len(pools) > 1)]
        for number, pool in enumerate(names):
            head = {"policy": schedule.policy, "discipline": schedule.discipline, "runtime_info": schedule.runtime_info}
            head["allocation"] = schedule.allocation.name
            head["tiers"] = schedule.allocation.tiers if schedule.allocation.placer.tiered else ""
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


def many(count: int, word: str) -> str:
    """A count of things."""
    return f"{count} {word}" + ("" if count == 1 else "s")


def interval(low: float, high: float) -> str:
    """An interval of shares in percent; a dash where there is none, as for a single window."""
    return "-" if low != low or high != high else f"[{100 * low:+.1f}, {100 * high:+.1f}]"
