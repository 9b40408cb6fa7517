"""The tables of a sweep: a row for each cell, a mean with its interval over seeds."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from berth.commandline import written_whole
from berth.console import show_rows
from envs.reward import find_score
from eval.paired import FEW, compare, mean_intervals, student_change, student_mean
from eval.played import LESS_IS_BETTER

SAME = ("cluster", "workload", "placer", "load", "score_type")
"""What policies have in common that are compared with each other."""

SHOWN = 40
"""Rows of the summary on the screen; all are in the file."""


def summary_of(rows: list[dict[str, Any]], baseline: str) -> list[dict[str, Any]]:
    """Of each policy, wherever it plays: the mean score over seeds, its interval, and the change to the baseline's.

    Changes are of pairs: seeds that both have; where the baseline has none they are not a number. An interval needs two
    seeds at least, else it is not a number; it is by Student's t for fewer than FEW of them, and a bootstrap for more.
    """
    places: dict[tuple[Any, ...], dict[str, dict[int, float]]] = {}
    for row in rows:
        scores = places.setdefault(tuple(row[name] for name in SAME), {}).setdefault(row["policy"], {})
        scores[row["seed"]] = row["score"]
    told = []
    for place, policies in places.items():
        less = LESS_IS_BETTER[find_score(place[-1])]
        for policy, scores in policies.items():
            values = np.array(list(scores.values()))
            low, high = _interval(values)
            both = [seed for seed in scores if seed in policies.get(baseline, {})] if policy != baseline else []
            row = dict(zip(SAME, place, strict=True)) | {
                "policy": policy, "seeds": len(values), "mean": float(values.mean()), "low": low, "high": high,
                "baseline": baseline, "pairs": len(both),
            }  # fmt: skip
            mine, theirs = (np.array([policies[who][seed] for seed in both]) for who in (policy, baseline))
            told.append(row | _change(mine, theirs, less))
    return told


def _interval(values: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of a mean over seeds (seeds,)."""
    if len(values) < FEW:
        return student_mean(values)
    low, high = mean_intervals(values[None], np.arange(len(values)))
    return float(low[0]), float(high[0])


def _change(mine: np.ndarray, theirs: np.ndarray, less: bool) -> dict[str, float]:
    """The change from the baseline's scores (seeds,) to a policy's, with its 95 % interval; NaN for no seeds."""
    if not len(mine):
        return dict.fromkeys(("change", "change_low", "change_high", "wins"), np.nan)
    p = compare(mine[None], theirs, less, np.arange(len(mine)))
    low, high = student_change(mine, theirs) if len(mine) < FEW else (float(p.change_low[0]), float(p.change_high[0]))
    return {"change": float(p.change[0]), "change_low": low, "change_high": high, "wins": float(p.wins[0])}


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
            "" if np.isnan(row["change"]) else f"{100 * row['change']:+.1f} %",
            _between(row["change_low"], row["change_high"], "{:+.1%}"),
        )
        for row in summary[:SHOWN]
    ]  # fmt: skip
    more = f"; {len(summary) - SHOWN:,} more rows in summary.csv" if len(summary) > SHOWN else ""
    show_rows(f"means over seeds, and changes to {summary[0]['baseline']}{more}", header, lines)


def _between(low: float, high: float, form: str) -> str:
    return "" if np.isnan(low) else f"{form.format(low)} to {form.format(high)}"
