"""Draw learning curves: runs of one experiment are averaged over their seeds."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from berth.commandline import argument, option, parse, run, writable_file
from berth.console import tell
from berth.errors import ConfigError

PANELS = {
    "gain over the baseline": (("AverageEpRet", "training"), ("ValGain", "validation")),
    "entropy": (("Entropy", ""),),
    "KL divergence of an update": (("KL", ""),),
    "explained variance": (("ExplainedVariance", ""),),
}
"""What is drawn: a title, and columns with what they are called in the legend."""

AXES = {"Epoch": "epoch", "TotalEnvInteracts": "decisions", "Time": "seconds"}

DESCRIPTION = """Draw the learning curves of runs.

Runs that differ only in their seed (NAME_s0, NAME_s1, ...) become one curve: the mean, with a band from the lowest to
the highest.
"""


@dataclass(frozen=True)
class Config:
    """What train/plot.py takes."""

    runs: tuple[str, ...] = argument("runs (folders in data/logs/), or their progress.txt or curve.csv", "RUN_OR_CSV")
    out: str = option("", "where to draw; default: learning.png in the first run's folder", metavar="PNG")
    x: str = option("TotalEnvInteracts", "what the curves go over", choices=tuple(AXES))


def read_curve(path: Path) -> dict[str, np.ndarray]:
    """The columns of a run's table; raises ConfigError where there is none."""
    if path.is_dir():
        path = path / "progress.txt"
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as trouble:
        raise ConfigError(f"{path}: {trouble}; want a run, or its progress.txt or curve.csv") from None
    rows = list(csv.DictReader(text.splitlines(), delimiter="\t" if "\t" in text else ","))
    if not rows or not set(AXES) <= set(rows[0]):
        raise ConfigError(
            f"{path}: no rows with columns {', '.join(AXES)}; want a run that has finished an epoch, or its table"
        )
    try:
        return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}
    except (ValueError, TypeError) as trouble:
        raise ConfigError(f"{path}: {trouble}; want numbers") from None


def experiment_of(path: Path) -> str:
    """What a run is called without its seed."""
    folder = path if path.is_dir() else path.parent
    return re.sub(r"_s\d+$", "", folder.name) or str(path)


def averaged(curves: list[dict[str, np.ndarray]], x: str, y: str) -> tuple[np.ndarray, ...]:
    """Mean, lowest and highest of a column over several runs, epoch by epoch as far as all have come."""
    count = min(len(curve["Epoch"]) for curve in curves)
    nothing = np.full(count, np.nan)
    table = np.array([curve.get(y, nothing)[:count] for curve in curves])
    known = np.isfinite(table).all(axis=0)
    where = np.mean([curve[x][:count] for curve in curves], axis=0)[known]
    table = table[:, known]
    return where, table.mean(axis=0), table.min(axis=0), table.max(axis=0)


def draw(experiments: dict[str, list[dict[str, np.ndarray]]], x: str, out: Path) -> None:
    """Draw every panel into a file."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(11, 7), layout="constrained", sharex=True)
    for (title, columns), panel in zip(PANELS.items(), axes.flat, strict=True):
        for number, (name, curves) in enumerate(experiments.items()):
            for style, (column, told) in zip(("-", "o--"), columns, strict=False):
                _draw_one(panel, averaged(curves, x, column), f"C{number}", style, _legend(name, told, len(curves)))
        panel.set_title(title)
        panel.set_xlabel(AXES[x])
        panel.grid(alpha=0.3)
        if title == "gain over the baseline":
            panel.axhline(0, color="black", linewidth=0.8)
            panel.legend(fontsize=8)
    figure.savefig(out, dpi=110)
    plt.close(figure)


def _legend(name: str, told: str, runs: int) -> str:
    return " ".join(filter(None, (name, told, f"({runs} seeds)" if runs > 1 else "")))


def _draw_one(panel: Any, curve: tuple[np.ndarray, ...], color: str, style: str, label: str) -> None:
    where, mean, low, high = curve
    if not len(where):
        return
    panel.plot(where, mean, style, color=color, label=label, markersize=3, linewidth=1.4)
    if (high > low).any():
        panel.fill_between(where, low, high, color=color, alpha=0.15)


def main(words: Sequence[str] | None = None) -> None:
    """Draw what the command line names."""
    config = parse(Config, words, DESCRIPTION)
    paths = [Path(word) for word in config.runs]
    if not paths:
        raise ConfigError("nothing to draw; want a run or a table (plot.py --help tells more)")
    experiments: dict[str, list[dict[str, np.ndarray]]] = {}
    for path in paths:
        experiments.setdefault(experiment_of(path), []).append(read_curve(path))
    folder = paths[0] if paths[0].is_dir() else paths[0].parent
    out = writable_file("--out", config.out or str(folder / "learning.png"), ".png", ".pdf", ".svg")
    draw(experiments, config.x, out)
    tell(f"drawn: {out}")


if __name__ == "__main__":
    run(main)
