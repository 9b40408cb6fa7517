"""What a run tells while it learns: progress.txt in Spinning Up's manner, a CSV, TensorBoard's events, config.json."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from berth.commandline import written_whole
from berth.errors import ConfigError
from train.playing import Episodes

PROGRESS, CURVE = "progress.txt", "curve.csv"

PANELS = {
    "score": ("AverageEpRet", "AgentScore", "BaselineScore", "ValGain", "ValScore", "ValBaseline"),
    "loss": ("LossPi", "LossV", "Entropy", "KL", "ClipFrac", "GradNorm", "ExplainedVariance"),
    "rate": ("LearningRate", "ValueLearningRate", "Exploration", "StopIter"),
    "time": ("EpLen", "TotalEnvInteracts", "CollectTime", "UpdateTime", "Time"),
}
"""Under which heading TensorBoard shows a column."""


class EpochLogger:
    """Writes a row for every epoch; a run that is gone on with keeps the rows up to where it stopped."""

    def __init__(self, folder: Path, settings: dict[str, Any], epochs_done: int = 0) -> None:
        self.folder = folder
        self.row: dict[str, float] = {}
        self.rows: list[dict[str, float]] = _read(folder / PROGRESS, epochs_done)
        with written_whole(folder / "config.json") as begun:
            begun.write_text(json.dumps(settings, indent=1) + "\n")
        self._write()
        self._events = tf.summary.create_file_writer(str(folder))

    def store(self, **numbers: float) -> None:
        """Note numbers of this epoch."""
        self.row |= {name: float(number) for name, number in numbers.items()}

    def store_many(self, name: str, values: np.ndarray) -> None:
        """Note average, deviation, most and least of some values, as Spinning Up names them (nan of none)."""
        values = values if len(values) else np.array([np.nan])
        self.store(**{
            f"Average{name}": values.mean(), f"Std{name}": values.std(), f"Max{name}": values.max(),
            f"Min{name}": values.min(),
        })  # fmt: skip

    def store_episodes(self, episodes: Episodes) -> None:
        """Note how an epoch's episodes ended, as far as any did."""
        self.store_many("EpRet", episodes.earned)
        columns = {"EpLen": episodes.decisions, "AgentScore": episodes.agent, "BaselineScore": episodes.baseline}
        self.store(**{name: values.mean() if len(values) else np.nan for name, values in columns.items()})
        self.store(Episodes=len(episodes.gain))

    def dump(self) -> dict[str, float]:
        """Write this epoch's row everywhere; returns it."""
        row, self.row = self.row, {}
        self.rows.append(row)
        self._write()
        with self._events.as_default():
            for panel, names in PANELS.items():
                for name in names:
                    if np.isfinite(row.get(name, np.nan)):
                        tf.summary.scalar(f"{panel}/{name}", row[name], step=int(row["Epoch"]))
        self._events.flush()
        return row

    def _write(self) -> None:
        names = list(self.rows[-1]) if self.rows else []
        for file, delimiter in ((PROGRESS, "\t"), (CURVE, ",")):
            with written_whole(self.folder / file) as begun, begun.open("w", newline="") as out:
                table = csv.writer(out, delimiter=delimiter, lineterminator="\n")
                table.writerow(names)
                table.writerows([_word(row.get(name, float("nan"))) for name in names] for row in self.rows)


def _word(number: float) -> str:
    return str(int(number)) if np.isfinite(number) and number == int(number) and abs(number) < 1e15 else repr(number)


def _read(path: Path, epochs: int) -> list[dict[str, float]]:
    """The first rows of a table that is there already."""
    if not epochs or not path.is_file():
        return []
    try:
        with path.open() as file:
            rows = [{name: float(word) for name, word in row.items()} for row in csv.DictReader(file, delimiter="\t")]
        kept = [row for row in rows if row["Epoch"] <= epochs]
        if [row["Epoch"] for row in kept] != list(range(1, epochs + 1)):
            raise ValueError(f"does not have the epochs 1 to {epochs}")
        return kept
    except (OSError, ValueError, TypeError, KeyError) as trouble:
        raise ConfigError(f"{path}: {trouble}; want the run's own table, or none, to go on without it") from None
