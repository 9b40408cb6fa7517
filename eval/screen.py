"""The tables of an evaluation in the terminal."""

from collections.abc import Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from berth.console import console
from eval.arena import Arena
from eval.judging import Judged
from eval.played import LESS_IS_BETTER, UNITS
from eval.tables import interval, many, number

DETAILED = 5
"""Contenders in the tables by kinds of jobs."""


def show(numbers: dict[str, Any], told: Judged, arena: Arena, most: int) -> None:
    """Print who is how good, by how much, how sure that is, and how much is left."""
    out = console()
    chosen = told.chosen(most)
    out.print(_main_table(numbers, told, arena, chosen))
    if len(chosen) < len(told.contenders):
        out.print(
            f"{len(told.contenders) - len(chosen)} more contenders in results.csv, some of them equal to others; "
            "--shown N shows more"
        )
    for name, marks in {c.name: c.marks for c in told.contenders if c.marks}.items():
        out.print(f"{name}: {'; '.join(marks)}", markup=False, highlight=False)
    if told.rival >= 0:
        out.print(_rival_table(told))
    if told.replay:
        out.print(_replay_table(numbers, told, chosen))
    best = told.chosen(DETAILED)
    for by in ("size", "length", "pool"):
        if by in told.groups:
            out.print(_group_table(told, by, best))
    if told.users is not None:
        out.print(_fairness_table(told, best))


def label(told: Judged, i: int) -> str:
    """A contender's name, with a star where its numbers need a word."""
    return told.contenders[i].name + (" *" if told.contenders[i].marks else "")


def _table(title: str, *columns: str) -> Table:
    table = Table(title=escape(title), title_justify="left", header_style="")
    table.add_column(columns[0], no_wrap=True)
    for column in columns[1:]:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _main_table(numbers: dict[str, Any], told: Judged, arena: Arena, chosen: Sequence[int]) -> Table:
    score, data = told.score, numbers["data"]
    unit = f", {UNITS[score]}" if UNITS[score] else ""
    better = "less" if LESS_IS_BETTER[score] else "more"
    base = told.contenders[told.baseline].name
    title = (
        f"{numbers['cluster']} {data['topology']}: {many(len(arena.begins), 'window')} of {arena.count} jobs of "
        f"{data['trace']} ({data['split']}); {score}, {better} is better\n"
        f"run times {numbers['options']['runtime_info']}, allocation {numbers['options']['allocation']}, "
        f"begun by {numbers['options']['warm_rule']}; changes against {base}, 95 % intervals, p corrected"
    )
    table = _table(
        title, "who", f"{score}{unit}\nmean", "median", "p90", "p99", "change", "95 %", "wins", "p",
        "left to\nthe bound", "wait, s", "utiliz-\nation",
    )  # fmt: skip
    p = told.paired[score]
    for i in chosen:
        s = numbers["summary"][told.contenders[i].name]
        left = told.left(i)
        table.add_row(
            escape(label(told, i)), *(number(s[f"{score}_{x}"]) for x in ("mean", "median", "p90", "p99")),
            f"{100 * p.change[i]:+.1f} %", escape(interval(p.change_low[i], p.change_high[i])),
            f"{100 * p.wins[i]:.0f} %", f"{p.p_corrected[i]:.2g}", "-" if left != left else f"{100 * left:.0f} %",
            number(s["wait_mean"]), number(s["utilization_mean"]),
        )  # fmt: skip
    return table


def _rival_table(told: Judged) -> Table:
    rival = told.contenders[told.rival].name
    table = _table(
        f"models against {rival}, the strongest heuristic on {told.rival_by}",
        "who",
        "metric",
        "change",
        "95 %",
        "wins",
        "p",
    )
    for i in range(sum(contender.kind == "model" for contender in told.contenders)):  # they stand first
        for metric in dict.fromkeys((told.score, "bounded_slowdown", "wait")):
            p = told.against_rival[metric]
            table.add_row(
                escape(label(told, i)), metric, f"{100 * p.change[i]:+.1f} %",
                escape(interval(p.change_low[i], p.change_high[i])), f"{100 * p.wins[i]:.0f} %",
                f"{p.p_corrected[i]:.2g}",
            )  # fmt: skip
    return table


def _replay_table(numbers: dict[str, Any], told: Judged, chosen: Sequence[int]) -> Table:
    jobs = numbers["data"]["jobs"]
    table = _table(
        f"the whole split, {jobs:,} jobs in one go", "who", "bounded\nslowdown", "p99", "wait, s", "p99",
        "turn-\naround, s", "utiliz-\nation", "load im-\nbalance", "fragment-\nation",
    )  # fmt: skip
    names = ("bounded_slowdown_mean", "bounded_slowdown_p99", "wait_mean", "wait_p99", "turnaround_mean", "utilization",
             "load_imbalance", "fragmentation")  # fmt: skip
    for i in chosen:
        row = told.replay[told.contenders[i].name]
        table.add_row(escape(label(told, i)), *(number(row[name]) for name in names))
    return table


def _group_table(told: Judged, by: str, best: Sequence[int]) -> Table:
    titles = {"size": "GPUs", "length": "run time", "pool": "pool"}
    names = [escape(label(told, i)).replace(" ", "\n", 1) for i in best]
    table = _table(f"mean bounded slowdown by {titles[by]}", titles[by], "jobs", *names)
    for group, rows in told.groups[by].items():
        cells = [number(float(told.per_job[i]["bounded_slowdown"][rows].mean())) for i in best]
        table.add_row(escape(group), f"{int(rows.sum()):,}", *cells)
    return table


def _fairness_table(told: Judged, best: Sequence[int]) -> Table:
    table = _table(
        "fairness between users, by their mean bounded slowdowns", "who", "users", "Jain's index", "worst / median"
    )
    for i in best:
        fair = told.fairness(i)
        if fair:
            table.add_row(
                escape(label(told, i)), f"{fair['users']:.0f}", f"{fair['jain']:.3f}", number(fair["worst_over_median"])
            )
    return table
