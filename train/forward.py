"""Exported policies: read from a file of plain arrays, computed without TensorFlow."""

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from berth.errors import ConfigError
from envs.observation import JOB_NAMES, POOL_FEATURES
from envs.options import Options, make_options
from train.design import AROUND, HEADS, MASKED, SLOT, TOKEN, Design, Shape, gpu_tokens, stretching
from train.perceptron import SLOPE, judge, likeliest, repacked, repacked_rows, settle

FORMAT = "berth policy 1"

KINDS = ("job", "host")
"""What a policy chooses."""

JUDGING = ("context", "judge", "worth", "around", "wait")
"""The layers that judge tokens, in the order in which train/perceptron.py takes their weights."""


class Exported(NamedTuple):
    """What a file of an exported policy holds."""

    told: dict[str, Any]  # kind, architecture, options ...
    weights: dict[str, np.ndarray]
    path: Path

    @property
    def digest(self) -> str:
        """By which the same policy is known again, wherever its file is: SHA-256 of all that it holds."""
        found = hashlib.sha256(json.dumps(self.told, sort_keys=True).encode())
        for name, array in sorted(self.weights.items()):
            found.update(f"{name} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        return found.hexdigest()


def read_exported(path: Path) -> Exported:
    """Read an exported policy of any kind; raises ConfigError for a file that is none, or is damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            weights = {name: file[name] for name in file.files}
        told = json.loads(weights.pop("told").tobytes().decode())
    except OSError as trouble:
        raise ConfigError(f"{path}: {trouble.strerror or trouble}; want an exported policy (train/export.py)") from None
    except (ValueError, LookupError, EOFError, TypeError, RuntimeError, zipfile.BadZipFile, AttributeError):
        raise ConfigError(f"{path}: not an exported policy, or a damaged one; train/export.py writes them") from None
    came = told.get("format") if isinstance(told, dict) else None
    if came != FORMAT:
        raise ConfigError(f"{path}: says it is {came!r}, want {FORMAT!r}, as train/export.py writes it")
    if told.get("kind") not in KINDS:
        raise ConfigError(f"{path}: chooses {told.get('kind')!r}, want one of: {', '.join(KINDS)}")
    for name, array in weights.items():
        if array.dtype != np.float32 or not np.isfinite(array).all():
            raise ConfigError(f"{path}: {name} is not made of finite numbers; want another file")
    return Exported(told, weights, path)


class JobPolicy:
    """A policy that chooses jobs out of a window."""

    def __init__(self, exported: Exported) -> None:
        told, where = exported.told, exported.path
        try:
            shape = Shape(
                int(told["window"]), int(told["cluster"]), int(told["actions"]),
                tuple((int(at), int(count)) for at, count in told["pools"]),
            )  # fmt: skip
            self.design = Design(
                shape, tuple(map(int, told["hidden"])), bool(told["residual"]), 0, float(told["scale"])
            )
            self.architecture, self.name = str(told["architecture"]), str(told["name"])
            self.options: Options = make_options(**told["options"])
            features = list(told["features"]), list(told["pool_features"])
        except (LookupError, TypeError, ValueError) as trouble:
            raise ConfigError(f"{where}: not an exported policy, or a damaged one ({trouble!r})") from None
        if features != (JOB_NAMES, [feature.name for feature in POOL_FEATURES]):
            raise ConfigError(f"{where}: was trained on other features than this version observes; export it anew")
        layers = layers_of(self.architecture, self.design)
        for name, wanted in layers.items():
            came = exported.weights.get(name)
            if came is None or came.shape != wanted:
                what = "nothing" if came is None else f"shape {came.shape}"
                raise ConfigError(f"{where}: {name} has {what}, want {wanted}")
        self.weights = {name: np.ascontiguousarray(exported.weights[name]) for name in layers}
        self.waits = shape.actions > shape.window
        judging = [array.ravel() for name, array in self.weights.items() if name.split("_")[0].split("/")[0] in JUDGING]
        self._judging, self._widths = np.concatenate(judging), np.array(self.design.hidden)
        self._stretch, self._middle = stretching(self.design.scale)
        self._tokens = gpu_tokens(shape) if self.architecture == "cross_attn" else None

    def best(self, seen: Mapping[str, np.ndarray], prior: np.ndarray) -> tuple[int, np.ndarray]:
        """The most likely action of those that can be taken, and all logits; of observations as environments have them.

        Numbers are packed and unpacked first, as in training: the networks never saw others.
        """
        shape, rows = self.design.shape, seen["jobs"]
        shown = shape.window if self.architecture == "mlp" else max(1, int(np.count_nonzero(rows[:, SLOT])))
        found = self.logits(repacked_rows(rows, shown), repacked(seen["cluster"]), repacked(prior[:shown]))
        logits = np.empty(shape.actions, np.float32)
        return int(likeliest(found, seen["mask"], shape.window, logits)), logits

    def logits(self, jobs: np.ndarray, cluster: np.ndarray, prior: np.ndarray) -> np.ndarray:
        """Logits (actions,) of jobs (window, features), cluster (numbers,) and prior (window,), before the mask.

        Empty slots at the window's end may be left out, but for `mlp`.
        """
        worth, wait = FORWARD[self.architecture](self, jobs, cluster)
        found: np.ndarray = settle(worth, wait, jobs, prior, self.design.residual, self.waits)
        return found

    def dense(self, name: str, x: np.ndarray) -> np.ndarray:
        """A layer without its activation."""
        found: np.ndarray = x @ self.weights[f"{name}/kernel"] + self.weights[f"{name}/bias"]
        return found

    def judged(self, jobs: np.ndarray, tokens: np.ndarray, cluster: np.ndarray) -> tuple[np.ndarray, float]:
        """What every job is worth by the same weights, and what waiting is, from what jobs look at first."""
        slots = np.ascontiguousarray(jobs[:, SLOT])  # a column of one row is that already: nothing is compiled twice
        found: tuple[np.ndarray, float] = judge(tokens, cluster, slots, self._judging, self._widths, self.waits)
        return found

    def stretched(self, jobs: np.ndarray) -> np.ndarray:
        """Jobs' features as the first layer takes them."""
        if self.design.scale == 1.0:
            return jobs
        found: np.ndarray = (jobs - self._middle) * self._stretch
        return found

    def attend(self, tokens: np.ndarray, others: np.ndarray, seen: np.ndarray | None) -> np.ndarray:
        """Tokens (tokens, TOKEN) that look at others (others, TOKEN), of those that may be seen (others,), if told."""
        w, width = self.weights, TOKEN // HEADS
        query, key, value = (
            np.moveaxis((x @ w[f"attention/{name}/kernel"].reshape(TOKEN, -1)).reshape(len(x), HEADS, width)
                        + w[f"attention/{name}/bias"], 1, 0)
            for name, x in (("query", tokens), ("key", others), ("value", others))
        )  # fmt: skip
        scores = query @ key.transpose(0, 2, 1) * np.float32(width**-0.5)
        if seen is not None:
            scores = scores + np.where(seen, np.float32(0.0), np.float32(MASKED))
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ value
        out = w["attention/attention_output/kernel"].reshape(-1, TOKEN)
        found: np.ndarray = np.moveaxis(mixed, 0, 1).reshape(len(tokens), -1) @ out
        return found + w["attention/attention_output/bias"]

    def gpu_rows(self, cluster: np.ndarray) -> np.ndarray:
        """A row for each lookahead value, with where it stands and the features of its pool."""
        assert self._tokens is not None
        places, starts = self._tokens
        pools = cluster[starts[:, None] + np.arange(len(POOL_FEATURES))]
        values = cluster[places[:, 0].astype(int)][:, None]
        return np.concatenate((values, places[:, 1:].astype(np.float32), pools), axis=1)


def leaky(x: np.ndarray) -> np.ndarray:
    """Leaky ReLU."""
    found: np.ndarray = np.maximum(x, SLOPE * x)
    return found


def _kernel(policy: JobPolicy, jobs: np.ndarray, cluster: np.ndarray) -> tuple[np.ndarray, float]:
    """The shared kernel: every job by itself."""
    return policy.judged(jobs, policy.stretched(jobs), cluster)


def _attn(policy: JobPolicy, jobs: np.ndarray, cluster: np.ndarray) -> tuple[np.ndarray, float]:
    """Jobs look at jobs."""
    rows = policy.stretched(jobs)
    tokens = leaky(policy.dense("token", rows))
    mixed = tokens + policy.attend(tokens, tokens, jobs[:, SLOT] > 0)
    return policy.judged(jobs, np.concatenate((rows, mixed), axis=1), cluster)


def _cross_attn(policy: JobPolicy, jobs: np.ndarray, cluster: np.ndarray) -> tuple[np.ndarray, float]:
    """Jobs look at GPUs."""
    rows = policy.stretched(jobs)
    tokens, gpus = leaky(policy.dense("token", rows)), leaky(policy.dense("gpu", policy.gpu_rows(cluster)))
    mixed = tokens + policy.attend(tokens, gpus, None)
    return policy.judged(jobs, np.concatenate((rows, mixed), axis=1), cluster)


def _mlp(policy: JobPolicy, jobs: np.ndarray, cluster: np.ndarray) -> tuple[np.ndarray, float]:
    """A flat network over the whole window."""
    x = np.concatenate((jobs.ravel(), cluster))
    for name in ("flat_0", "flat_1"):
        x = leaky(policy.dense(name, x))
    return policy.dense("worth", x), float(policy.dense("wait", x)[0]) if policy.waits else 0.0


FORWARD: dict[str, Callable[[JobPolicy, np.ndarray, np.ndarray], tuple[np.ndarray, float]]] = {
    "kernel": _kernel,
    "mlp": _mlp,
    "attn": _attn,
    "cross_attn": _cross_attn,
}
"""Every architecture by name: what each job is worth, and what waiting is, if that can be chosen."""


def layers_of(architecture: str, design: Design) -> dict[str, tuple[int, ...]]:
    """The arrays of a policy's network with their shapes, in the order in which checkpoints have them."""
    shape, features = design.shape, len(JOB_NAMES)
    waits = shape.actions > shape.window
    found: dict[str, tuple[int, ...]] = {}

    def _dense(name: str, inputs: int, width: int) -> None:
        found[f"{name}/kernel"], found[f"{name}/bias"] = (inputs, width), (width,)

    if architecture not in FORWARD:
        raise ConfigError(f"architecture {architecture}: known: {', '.join(FORWARD)}")
    if architecture == "mlp":
        widths = (features * shape.window + shape.cluster, 4 * design.hidden[0], 2 * design.hidden[0])
        _dense("flat_0", widths[0], widths[1])
        _dense("flat_1", widths[1], widths[2])
        _dense("worth", widths[2], shape.window)
        if waits:
            _dense("wait", widths[2], 1)
        return found
    if architecture != "kernel":
        _dense("token", features, TOKEN)
        if architecture == "cross_attn":
            _dense("gpu", 3 + len(POOL_FEATURES), TOKEN)
        for name in ("query", "key", "value"):
            found[f"attention/{name}/kernel"] = (TOKEN, HEADS, TOKEN // HEADS)
            found[f"attention/{name}/bias"] = (HEADS, TOKEN // HEADS)
        found["attention/attention_output/kernel"] = (HEADS, TOKEN // HEADS, TOKEN)
        found["attention/attention_output/bias"] = (TOKEN,)
    _dense("context", shape.cluster, design.hidden[0])
    inputs = features if architecture == "kernel" else features + TOKEN
    for i, width in enumerate(design.hidden):
        _dense(f"judge_{i}", inputs, width)
        inputs = width
    _dense("worth", inputs, 1)
    if waits:
        _dense("around", inputs + design.hidden[0], AROUND)
        _dense("wait", AROUND, 1)
    return found
