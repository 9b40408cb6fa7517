"""How a run is gone on with, and where a new one finds its place."""

import dataclasses
from pathlib import Path
from typing import Any, TypeVar

from berth.commandline import writable_folder
from berth.console import tell
from berth.errors import ConfigError
from train.checkpoint import LAST, Checkpoint, find, load
from train.config import CHANGEABLE, Learning, from_settings

STATE: dict[str, Any] = {
    "epoch": int, "interacts": int, "seconds": float | int, "waited": int, "begun": bool, "best": dict | None,
}  # fmt: skip
"""What a checkpoint tells besides arrays, if a run can be gone on with from it."""


C = TypeVar("C", bound=Learning)


def resumed(config: C, flags: dict[str, Any]) -> tuple[C, Checkpoint]:
    """The settings of the run to go on with, and where it stopped; raises ConfigError for other settings."""
    checkpoint = load(find(config.resume_from, "--resume_from"))
    where = str(checkpoint.path)
    if "epoch" not in checkpoint.told and "begun" not in checkpoint.told:
        raise ConfigError(f"{where}: has weights but no state to go on from; want {LAST} of a run, or --trained_model")
    for name, kind in STATE.items():
        if not isinstance(checkpoint.told.get(name), kind):
            raise ConfigError(f"{where}: {name} is {checkpoint.told.get(name)!r}: a damaged checkpoint, want another")
    before = type(config)(**from_settings(type(config), checkpoint.told["settings"], where))
    if before.subject != config.subject:
        raise ConfigError(f"{where}: a run on {before.subject}; this program trains on {config.subject}")
    for name in flags:
        mine, its = (_meant(one, name) for one in (config, before))
        if name not in (*CHANGEABLE, "resume_from") and mine != its:
            raise ConfigError(f"--{name} {flags[name]}: the run has {its}; only {', '.join(CHANGEABLE)} may change")
    changed = {name: getattr(config, name) for name in CHANGEABLE if name in flags}
    spread = bool(changed.get("workers", before.workers) or changed.get("ray_address", before.ray_address))
    if spread != before.is_spread:
        raise ConfigError(
            f"workers: the run has {'some' if before.is_spread else 'none'}; any number of workers may go on with "
            "workers' runs, and none with the others: they draw actions otherwise"
        )
    again = dataclasses.replace(before, **changed)
    if again.epochs < checkpoint.told["epoch"]:
        raise ConfigError(
            f"epochs {again.epochs}: the run has had {checkpoint.told['epoch']} already; want as many at least"
        )
    return again, checkpoint


def _meant(config: Learning, name: str) -> Any:
    """What a setting comes to, where it has a default or another name."""
    if name in ("policy_arch", "attn"):
        return config.architecture
    return config.rates if name in ("lr", "pi_lr", "vf_lr") else getattr(config, name)


def make_room(folder: Path, goes_on: bool) -> None:
    """Make a run's folder; one that holds a run already is kept under another name, unless that run goes on."""
    if not goes_on and (folder / LAST).exists():
        number = 1
        while (kept := folder.with_name(f"{folder.name}.old{number}")).exists():
            number += 1
        try:
            folder.rename(kept)
        except OSError as trouble:
            raise ConfigError(f"{folder}: {trouble.strerror}, want a run that can be put aside") from None
        tell(f"an earlier run of this name is now {kept}; --resume_from goes on with a run")
    writable_folder("--resume_from" if goes_on else "--exp_name", str(folder))
    for left in folder.glob(".*.npz.*"):  # of a process that was killed while it wrote
        left.unlink()
