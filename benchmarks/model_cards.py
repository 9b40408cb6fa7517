"""The cards of the models that ship: models/CLUSTER/README.md, from the numbers of the headline table."""

import shlex
from pathlib import Path
from typing import Any

from benchmarks.headline_page import WORDS, head, number, percent
from berth.commandline import written_whole
from train.checkpoint import Checkpoint

MODELS = Path(__file__).resolve().parent.parent / "models"

LIMITS = {
    "hidden": "Trained on a generated sample, not on a real trace; its jobs' users and virtual clusters tell most, and "
    "on traces without them it knows less. It chooses among jobs that fit (`fit`), under which large jobs can starve. "
    "It was picked on a few days of validation windows: read the column of the best heuristic in hindsight.",
    "real_hidden": "Trained on a real trace that does not ship, on testbed nodes at an offered load of 0.95, with what "
    "that file tells of jobs: no users, and virtual clusters on Philly alone. Otherwise as `hidden.npz`.",
    "oracle": "Begins as a heuristic and corrects its order; a gain of 0 on validation windows means that PPO found "
    "nothing better, and that this is the heuristic in the form of a model. It wants run times that are known.",
}
WHAT = {
    "hidden": "Run times are not known: it has learned them from what ended jobs and jobs nearby tell, then by PPO.",
    "real_hidden": "The same, learned from the real trace: for `--workload` with jobs of that cluster.",
    "oracle": "Run times are known.",
}


def write_card(cluster: str, shipped: dict[str, Checkpoint], rows: list[dict[str, Any]]) -> Path:
    """Write the card of a cluster's models (by their files' names) with the rows of the table that are about them."""
    parts = [f"# {cluster}", "", "Written by `python benchmarks/headline.py --ship 1`."]
    for name, checkpoint in shipped.items():
        info, data = name.removeprefix("real_"), "real" if name.startswith("real_") else "sample"
        own = f"--exp_name {_setting(checkpoint, 'exp_name')} "
        told = [
            row
            for row in rows
            if (row["cluster"], row["info"], row["data"]) == (cluster, info, data) and own in row["training"]
        ]
        seeds = max((len(row["rival"]["seeds"]) for row in told), default=0)
        unknown = "a real trace" if data == "real" else "the shipped sample"
        parts += ["", f"## {name}.npz", WHAT[name], ""]
        parts += [
            f"- Data: {told[0]['trace'] if told else unknown}, its first 60 % of jobs.",
            f"- The best of {seeds} seed{'s' * (seeds != 1)} on {_setting(checkpoint, 'val_windows')} validation "
            f"windows: seed {_setting(checkpoint, 'seed')}, gain {float(checkpoint.told['val_gain']):+.4f} over "
            f"{_setting(checkpoint, 'sched_algo')}, after epoch {checkpoint.told['val_epoch']}.",
            f"- Limits: {LIMITS[name]}",
            "",
        ]
        parts += [f"      {_command(told[0], int(_setting(checkpoint, 'seed')))}", ""] if told else []
        parts += _table(told)
    path = MODELS / cluster / "README.md"
    with written_whole(path) as begun:
        begun.write_text("\n".join(parts).rstrip() + "\n")
    return path


def _setting(checkpoint: Checkpoint, name: str) -> Any:
    return checkpoint.told["settings"][name]


def _command(row: dict[str, Any], seed: int) -> str:
    """The command that trained the run of a seed."""
    words = shlex.split(row["training"])
    words[words.index("--seed") + 1] = str(seed)
    return shlex.join(words)


def _table(rows: list[dict[str, Any]]) -> list[str]:
    """Scores on test windows, of all seeds together."""
    if not rows:
        return []
    lines = [f"{rows[0]['windows']} test windows, mean of all seeds:", ""]
    lines += head("score", "learned", "strongest on validation", "change [95 %]", "best in hindsight", "change [95 %]")
    for row in rows:
        rival, later = row["rival"], row["hindsight"]
        cells = [WORDS[row["score"]], number(row["mean"]), f"{rival['name']} {number(rival['mean'])}", percent(rival)]
        lines.append(f"| {' | '.join([*cells, later['name'], percent(later)])} |")
    return lines
