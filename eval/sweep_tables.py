"""The tables of a sweep: a row for each cell, a mean with its interval over seeds."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from berth.commandline import written_whole
from berth.console import show_rows
from envs.reward import find_score
from eval.paired import compare, mean_intervals
from eval.played import LESS_IS_BETTER

SAME = ("cluster", "workload", "placer", "load", "score_type")
"""What policies have in common that are compared with each other."""

SHOWN = 40
"""Rows of the summary on the screen; all are in the file."""


def summary_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each policy, wherever it plays: the mean score over seeds, its interval, and the change to the first policy's.

    Changes are of pairs: seeds that both have. An interval needs two seeds at least, else it is not a number.
    """
    places: dict[tuple[Any, ...], dict[str, dict[int, float]]] = {}
    for row in rows:
        scores = places.setdefault(tuple(row[name] for name in SAME), {}).setdefault(row["policy"], {})
        scores[row["seed"]] = row["score"]
    first = rows[0]["policy"]
    told = []
    for place, policies in places.items():
        less = LESS_IS_BETTER[find_score(place[-1])]
        for policy, scores in policies.items():
            values = np.array(list(scores.values()))
            low, high = mean_intervals(values[None], np.arange(len(values)))
            both = [seed for seed in scores if seed in policies.get(first, {})]
            row = dict(zip(SAME, place, strict=True)) | {
                "policy": policy, "seeds": len(values), "mean": float(values.mean()), "low": float(low[0]),
                "high": float(high[0]),
            }  # fmt: skip
            if policy != first and both:
                mine, theirs = (np.array([policies[who][seed] for seed in both]) for who in (policy, first))
                p = compare(mine[None], theirs, less, np.arange(len(both)))
                row |= {"change": float(p.change[0]), "change_low": float(p.change_low[0]),
                        "change_high": float(p.change_high[0]), "wins": float(p.wins[0])}  # fmt: skip
            told.append(row)
    return told


def write_tables(out: Path, rows: list[dict[str, Any]], summary: list[dict[str, Any]]) -> list[Path]:
    """Write table.csv, table.parquet and summary.csv, each whole or not at all."""
    table, files = pd.DataFrame(rows), [out / name for name in ("table.csv", "table.parquet", "summary.csv")]
    with written_whole(files[0]) as begun:
        table.to_csv(begun, index=False)
    with written_whole(files[1]) as begun:
        table.to_parquet(begun, index=False)
    with written_whole(files[2]) as begun:
        pd.DataFrame(summary).to_csv(begun, index=False)
    return files


def show_summary(summary: list[dict[str, Any]]) -> None:
    """Print the summary, as far as it fits a screen."""
    header = (*SAME, "policy", "seeds", "mean", "95 % over seeds", "change", "95 % of it")
    lines = [
        (
            *(f"{row[name]:g}" if name == "load" else str(row[name]) for name in SAME), str(row["policy"]),
            str(row["seeds"]), f"{row['mean']:,.3f}", _between(row["low"], row["high"], "{:,.3f}"),
            f"{100 * row['change']:+.1f} %" if "change" in row else "",
            _between(row["change_low"], row["change_high"], "{:+.1%}") if "change" in row else "",
        )
        for row in summary[:SHOWN]
    ]  # fmt: skip
    more = f"; {len(summary) - SHOWN:,} more rows in summary.csv" if len(summary) > SHOWN else ""
    show_rows(f"means over seeds, and changes to {summary[0]['policy']}{more}", header, lines)


def _between(low: float, high: float, form: str) -> str:
    return "" if np.isnan(low) else f"{form.format(low)} to {form.format(high)}"
