"""Compare runs: their models on the same test windows, and the seeds of an experiment together."""

import dataclasses
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from berth.commandline import argument, parse, run
from berth.console import show_rows, tell
from berth.errors import ConfigError
from eval.config import Config as Evaluation
from eval.paired import mean_intervals
from eval.run import evaluate
from train.checkpoint import BEST, LAST, find, load
from train.plot import draw, experiment_of, read_curve

DESCRIPTION = """Compare runs on the test windows of their cluster, beside heuristics.

  python eval/compare.py data/logs/philly/philly_s0 data/logs/other/other_s0
  python eval/compare.py data/logs/philly/philly_s* --len 256 --iter 20 --sched_algo fcfs,sjf,saf

Runs that differ only in their seed (NAME_s0, NAME_s1, ...) are one experiment: mean and spread over seeds are told.
Results go to new_exp_figure/compare, learning curves included. The flags are those of an evaluation.
"""


@dataclass(frozen=True, kw_only=True)
class Config(Evaluation):
    """What eval/compare.py takes: runs, and what an evaluation takes."""

    runs: tuple[str, ...] = argument("runs (folders in data/logs/), or checkpoints", "RUN")


def main(words: Sequence[str] | None = None) -> None:
    """Evaluate all runs together, and tell how experiments differ."""
    config = parse(Config, words, DESCRIPTION)
    if not config.runs:
        raise ConfigError("nothing to compare; want runs (compare.py --help tells more)")
    if config.rlmodel:
        raise ConfigError(f"rlmodel {','.join(config.rlmodel)}: name the runs without a flag")
    clusters: dict[str, list[str]] = {}
    for word in config.runs:
        settings = load(find(word, "compare", (BEST, LAST))).told["settings"]
        clusters.setdefault(str(settings.get("cluster")), []).append(word)
    if len(clusters) > 1:
        told = "; ".join(f"{name}: {', '.join(runs)}" for name, runs in clusters.items())
        raise ConfigError(f"runs on different clusters cannot play the same windows ({told}); want one cluster")
    known = {field.name: getattr(config, field.name) for field in dataclasses.fields(Evaluation)}
    out = config.out or "new_exp_figure/compare"
    evaluation = Evaluation(**(known | {"rlmodel": tuple(config.runs), "out": out}))
    numbers = evaluate(next(iter(clusters)), evaluation, sys.argv[1:] if words is None else list(words))
    _show_experiments(numbers)
    curves: dict[str, list[dict[str, np.ndarray]]] = {}
    for path in map(Path, config.runs):
        if path.is_dir() and (path / "progress.txt").is_file():
            curves.setdefault(experiment_of(path), []).append(read_curve(path))
    if curves:
        draw(curves, "TotalEnvInteracts", Path(out) / "learning.png")
        tell(f"learning curves: {Path(out) / 'learning.png'}")


def _show_experiments(numbers: dict[str, Any]) -> None:
    """A row for each experiment: mean over seeds and windows, its interval over windows, its spread over seeds."""
    score = numbers["score"]
    experiments: dict[str, list[str]] = {}
    for one in numbers["contenders"]:
        if one["kind"] == "model":
            experiments.setdefault(experiment_of(Path(one["name"]) / "progress.txt"), []).append(one["name"])
    groups = np.array([window["group"] for window in numbers["windows"]])
    rows = []
    for name, runs in experiments.items():
        values = np.array([numbers["by_window"][one][score] for one in runs])
        low, high = mean_intervals(values.mean(axis=0)[None], groups)
        means = values.mean(axis=1)
        rows.append((name, str(len(runs)), f"{means.mean():,.3f}", f"{low[0]:,.3f} to {high[0]:,.3f}",
                     f"{means.min():,.3f}", f"{means.max():,.3f}"))  # fmt: skip
    header = ("experiment", "seeds", f"mean {score}", "95 % over windows", "lowest seed", "highest seed")
    show_rows("experiments", header, rows)


if __name__ == "__main__":
    run(main)
