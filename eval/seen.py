"""What a model has seen of the jobs that it is judged on, and where it was trained otherwise."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from envs.clusters import CLUSTERS
from envs.options import Options
from envs.reward import find_score
from envs.stage import split_borders
from eval.arena import Arena
from eval.contenders import Model
from traces.read import read_trace
from traces.sketch import shares_jobs
from train.checkpoint import SEEN, Checkpoint


def has_seen(options: Options, models: Sequence[tuple[str, Checkpoint]]) -> bool:
    """Whether a model was trained on jobs of the workload."""
    trace = read_trace(options.workload)
    return any(_is_same_file(options, one) or shares_jobs(trace, _seen(one, "train")) for _, one in models)


def _is_same_file(options: Options, checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint names the workload as the file it was trained on."""
    settings = checkpoint.told["settings"]
    mine, its = (o or CLUSTERS[c].trace if c in CLUSTERS else o for o, c in (
        (options.workload, options.cluster), (settings.get("workload", ""), settings.get("cluster", ""))))  # fmt: skip
    return bool(mine and its) and Path(mine).name == Path(its).name


def _seen(checkpoint: Checkpoint, split: str) -> np.ndarray:
    """The bits by which the jobs of a model's split are known again."""
    bits = checkpoint.arrays.get(f"{SEEN}_{split}")
    return bits if bits is not None and bits.dtype == np.uint8 and bits.ndim == 1 else np.zeros(0, np.uint8)


def marks_of(model: Model, cluster: str, arena: Arena, sampled: bool = False) -> tuple[str, ...]:
    """What a reader of a model's numbers must know: that it was trained otherwise, or has seen what it plays."""
    own, options = model.config, arena.options
    marks = []
    for name, mine, here in (
        ("on", own.cluster, cluster), ("for", find_score(own.score_type), find_score(options.score_type)),
        ("with", f"{own.runtime_info} run times", f"{model.runtime_info} run times"),
        ("in windows of", own.seq_len, options.seq_len), ("by", str(own.placement), str(options.placement)),
        ("with jobs of", _jobs_of(own), _jobs_of(options)), ("on the topology", *_told(own.topology, options.topology)),
        ("at the load", *_told(own.load, options.load)),
    ):  # fmt: skip
        if mine != here:
            marks.append(f"trained {name} {mine}")
    if not options.is_fresh:
        trace = arena.stage.workload.trace
        played = trace.select(slice(arena.low, arena.high))
        for split, text in (("train", "IN-SAMPLE: trained on jobs of this split"),
                            ("validation", "picked on jobs of this split")):  # fmt: skip
            if shares_jobs(played, _seen(model.checkpoint, split)) or _touches(model, arena, split):
                marks.append(text)
    if sampled:
        marks.append("sampled")
    return tuple(marks)


def _jobs_of(options: Options) -> str:
    """Where jobs come from, in a word or two."""
    if options.is_fresh:
        return f"fresh {options.preset or 'synthetic'} {options.arrival_mode}".strip()
    cluster = CLUSTERS.get(options.cluster)
    return Path(options.workload or (cluster.trace if cluster else options.cluster)).name


def _told(own: Any, here: Any) -> tuple[str, str]:
    """Two settings as words, where nothing stands for the default."""
    return (str(own) if own not in (None, "") else "default"), (str(here) if here not in (None, "") else "default")


def _touches(model: Model, arena: Arena, split: str) -> bool:
    """The same told from the file's name and the borders."""
    if not _is_same_file(arena.options, model.checkpoint):
        return False
    own = model.config
    low, high = split_borders(arena.stage.roster["submit"], own.train_share, own.validation_share)[split]
    return low < arena.high and arena.low < high
