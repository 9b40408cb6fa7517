"""Checkpoints: plain arrays and a line of JSON in one file, written whole or not at all."""

import json
import os
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from berth.commandline import written_whole
from berth.errors import ConfigError

FORMAT = "berth checkpoint 1"

LAST, BEST = "last.npz", "best.npz"

SEEN = "seen"
"""Arrays seen_train and seen_validation tell which jobs a model was trained and picked on (traces/sketch.py)."""


class Checkpoint(NamedTuple):
    """What a file holds."""

    arrays: dict[str, np.ndarray]
    told: dict[str, Any]  # settings, epoch, normalisation, ...
    path: Path


def save(path: Path, arrays: dict[str, np.ndarray], told: dict[str, Any]) -> None:
    """Write a checkpoint; a process that is killed meanwhile leaves the one that was there."""
    text = json.dumps({"format": FORMAT, **told})
    with written_whole(path) as begun, begun.open("wb") as file:
        np.savez(file, told=np.frombuffer(text.encode(), np.uint8), **arrays)  # type: ignore[arg-type]


def find(word: str, flag: str, names: tuple[str, ...] = (LAST, BEST)) -> Path:
    """The checkpoint that a user means by a file, or by a run (the first of the names there); raises ConfigError."""
    path = Path(word)
    if os.path.isdir(path):
        for name in names:
            if (path / name).is_file():
                return path / name
        looked = " nor ".join(names)
        raise ConfigError(f"{flag} {word}: the folder has neither {looked}; want a run or a checkpoint")
    if not os.path.isfile(path):
        what = "neither a file nor a folder" if os.path.exists(path) else "no such file or folder"
        raise ConfigError(f"{flag} {word}: {what}; want a run ({' or '.join(names)} in it) or a checkpoint")
    return path


def is_checkpoint(path: Path) -> bool:
    """Whether a file says that it is a checkpoint."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return str(json.loads(file["told"].tobytes().decode())["format"]).startswith("berth checkpoint")
    except (OSError, ValueError, LookupError, EOFError, TypeError, RuntimeError, zipfile.BadZipFile, AttributeError):
        return False


def load(path: Path) -> Checkpoint:
    """Read a checkpoint; raises ConfigError for one that is damaged, foreign or of another version."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        told = json.loads(arrays.pop("told").tobytes().decode())
    except (OSError, ValueError, LookupError, EOFError, TypeError, RuntimeError, zipfile.BadZipFile,
            AttributeError) as trouble:  # fmt: skip
        raise ConfigError(f"{path}: not a checkpoint of Berth, or a damaged one ({trouble})") from None
    if isinstance(told, dict) and str(told.get("format")).startswith("berth policy"):
        raise ConfigError(f"{path}: an exported policy, to be served; want the run or checkpoint that it was made from")
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        came = told.get("format", "nothing") if isinstance(told, dict) else "nothing"
        raise ConfigError(f"{path}: says it is {came!r}, want {FORMAT!r}: another version wrote it, or another program")
    scale = told.get("scale")
    known = isinstance(scale, list) and len(scale) == 3 and all(isinstance(x, float | int) for x in scale)
    if not told.get("settings") or not isinstance(told["settings"], dict) or not known:
        raise ConfigError(f"{path}: not a checkpoint of Berth, or a damaged one (no settings, or no scale)")
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise ConfigError(f"{path}: {name} is not made of finite numbers; want another checkpoint")
    return Checkpoint(arrays, told, path)


def weights_of(variables: list[Any], name: str) -> dict[str, np.ndarray]:
    """The values of variables, named by their order."""
    return {f"{name}_{i}": np.asarray(variable) for i, variable in enumerate(variables)}


def put_weights(variables: list[Any], checkpoint: Checkpoint, name: str) -> None:
    """Give variables the values of a checkpoint; raises ConfigError where they do not fit."""
    for i, variable in enumerate(variables):
        came = checkpoint.arrays.get(f"{name}_{i}")
        if came is None or came.shape != tuple(variable.shape):
            shape = "nothing" if came is None else f"shape {came.shape}"
            raise ConfigError(
                f"{checkpoint.path}: {name}_{i} has {shape}, want {tuple(variable.shape)}: the networks differ "
                "(--policy_arch, --hidden, --window, --action_mode, cluster)"
            )
        variable.assign(came)
    if f"{name}_{len(variables)}" in checkpoint.arrays:
        raise ConfigError(f"{checkpoint.path}: has more of {name} than the network: another --policy_arch or --hidden?")
