"""Write a trained policy as plain arrays, which train/forward.py computes without TensorFlow."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from berth.commandline import argument, option, parse, run, writable_file, written_whole
from berth.console import tell
from berth.errors import ConfigError
from envs.clusters import find_cluster
from envs.desk import refuse_unknowable
from envs.host_jobs import largest_job
from envs.observation import JOB_NAMES, POOL_FEATURES, lookahead_layout
from envs.options import Options
from envs.sim.cluster import node_arrays
from train.checkpoint import BEST, LAST, Checkpoint, find, is_checkpoint, load
from train.config import Config, from_settings
from train.design import Design, Shape
from train.forward import FORMAT, Exported, layers_of, read_exported
from train.host_config import HostConfig
from train.host_design import host_layers

DESCRIPTION = """Write a trained policy as a file of plain arrays, to be put to work (docs/serving.md).

  python train/export.py models/philly/hidden.npz -o policy.npz
  python train/export.py data/logs/philly/philly_s0 -o policy.npz
  python train/export.py data/logs/lsf/lsf_s0 -o hosts.npz               # of train/lsf_train.py: names hosts
"""

KEPT = ("window", "window_order", "action_mode", "backfil", "lookahead_mode", "sched_algo", "runtime_info",
        "allocation", "tiers", "workload_seed")  # fmt: skip
"""The options by which a policy sees and acts."""


@dataclass(frozen=True, kw_only=True)
class Export:
    """What train/export.py takes."""

    run: str = argument("a run (its best checkpoint), or a checkpoint", "RUN")
    out: str = option("policy.npz", "the file to write", metavar="FILE", short="-o")


def _weights(checkpoint: Checkpoint, layers: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """A policy's weights by layer; raises ConfigError where the checkpoint has others."""
    weights: dict[str, np.ndarray] = {}
    for i, (name, wanted) in enumerate(layers.items()):
        came = checkpoint.arrays.get(f"pi_{i}")
        if came is None or came.shape != wanted:
            what = "nothing" if came is None else f"shape {came.shape}"
            raise ConfigError(
                f"{checkpoint.path}: pi_{i} ({name}) has {what}, want {wanted}: another cluster or version?"
            )
        weights[name] = came.astype(np.float32)
    if f"pi_{len(layers)}" in checkpoint.arrays:
        raise ConfigError(f"{checkpoint.path}: has more layers than the network; another version wrote it?")
    return weights


def export_hosts(checkpoint: Checkpoint) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The same of a policy that names hosts."""
    config = HostConfig(**from_settings(HostConfig, checkpoint.told["settings"], str(checkpoint.path)))
    hidden = tuple(map(int, config.hidden))
    cores, memory = largest_job(config)
    told = {
        "format": FORMAT, "kind": "host", "name": f"{config.name} {config.architecture}",
        "architecture": config.architecture, "hidden": list(hidden), "most_cores": cores, "most_memory": memory,
        "trained_on": {"num_hosts": config.num_hosts, "load": config.load, "workload": config.workload},
    }  # fmt: skip
    return told, _weights(checkpoint, host_layers(hidden))


def export(checkpoint: Checkpoint) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What is told of a checkpoint's policy, and its weights by layer; raises ConfigError where it cannot be served."""
    config = Config(**from_settings(Config, checkpoint.told["settings"], str(checkpoint.path)))
    options = Options(**{name: getattr(config, name) for name in KEPT}, prior=config.residual)
    refuse_unknowable(options)
    pools = find_cluster(config.cluster).topology(config.topology or find_cluster(config.cluster).default_topology)
    looks = lookahead_layout(node_arrays(pools))
    layout = tuple((int(at), int(count)) for at, count in zip(looks["at"], looks["count"], strict=True))
    cluster = len(looks) * len(POOL_FEATURES) + int(looks["count"].sum())
    shape = Shape(config.window, cluster, config.window + (config.action_mode == "fit"), layout)
    design = Design(shape, tuple(map(int, config.hidden)), bool(config.residual), 0, config.input_scale)
    layers = layers_of(config.architecture, design)
    weights = _weights(checkpoint, layers)
    told = {
        "format": FORMAT, "kind": "job", "name": f"{config.name} {config.architecture}",
        "architecture": config.architecture, "features": JOB_NAMES,
        "pool_features": [feature.name for feature in POOL_FEATURES], "hidden": list(design.hidden),
        "residual": config.residual, "scale": config.input_scale, "window": shape.window, "cluster": shape.cluster,
        "actions": shape.actions, "pools": [list(pool) for pool in layout],
        "pool_gpus": looks["gpus"].tolist(),
        "trained_on": {"cluster": config.cluster, "topology": config.topology, "score_type": config.score_type},
        "options": {name: getattr(options, name) for name in (*KEPT, "prior")},
    }  # fmt: skip
    return told, weights


def find_exported(word: str, flag: str) -> Exported:
    """The policy that a user means by an exported file, a checkpoint or a run; raises ConfigError.

    A file's name may end in anything: what is in it tells what it is.
    """
    path = find(word, flag, (BEST, LAST))
    if not is_checkpoint(path):
        return read_exported(path)
    return Exported(*export(load(path)), path)


def write_exported(path: Path, told: dict[str, Any], weights: dict[str, np.ndarray]) -> None:
    """Write an exported policy, of any kind, whole or not at all."""
    text = np.frombuffer(json.dumps(told).encode(), np.uint8)
    with written_whole(path) as begun, begun.open("wb") as file:
        np.savez(file, told=text, **weights)  # type: ignore[arg-type]


def main(words: Sequence[str] | None = None) -> None:
    """Export the policy that the command line names."""
    config = parse(Export, sys.argv[1:] if words is None else words, DESCRIPTION)
    out = writable_file("out", config.out, ".npz")
    checkpoint = load(find(config.run, "run", (BEST, LAST)))
    if out.resolve() == checkpoint.path.resolve() or out.name in (BEST, LAST):
        raise ConfigError(f"out {out}: would take the place of a checkpoint; want another name")
    hosts = "num_hosts" in checkpoint.told["settings"]
    told, weights = export_hosts(checkpoint) if hosts else export(checkpoint)
    write_exported(out, told, weights)
    count = sum(array.size for array in weights.values())
    how = "names hosts" if hosts else f"action mode {told['options']['action_mode']}"
    tell(f"{out}: {told['name']}, {how}, {count:,} weights")


if __name__ == "__main__":
    run(main)
