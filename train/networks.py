"""The networks by name: what a job is worth being chosen next, and what a situation is worth."""

from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
from keras import layers, ops

from envs.observation import JOB_FEATURES, POOL_FEATURES
from envs.sim.observing import GREATEST
from train.config import ARCHITECTURES
from train.design import (
    AROUND,
    FAR_BELOW,
    FITS,
    HEADS,
    RESIDUAL,
    SITUATION,
    SLOT,
    TOKEN,
    WAIT,
    Design,
    Shape,
    gpu_tokens,
    stretching,
)  # fmt: skip

WORTH = "worth"
"""The name of the layer whose output is a job's logit."""

Inputs = tuple[Any, Any, Any]  # jobs (batch, window, features), cluster (batch, numbers), prior (batch, window)


def build(architecture: str, design: Design) -> tuple[keras.Model, keras.Model]:
    """The policy (logits of all actions, before the mask) and the value function; both take (jobs, cluster, prior)."""
    seeds = iter(range(1000 * (design.seed + 1), 1000 * (design.seed + 2)))
    make = NETWORKS[architecture]
    return make(design, seeds, True), make(design, seeds, False)


def _inputs(shape: Shape) -> Inputs:
    return (
        keras.Input((shape.window, len(JOB_FEATURES)), name="jobs"),
        keras.Input((shape.cluster,), name="cluster"),
        keras.Input((shape.window,), name="prior"),
    )


def dense(width: int, seeds: Iterator[int], activation: str | None = "leaky_relu", scale: float = 2.0) -> layers.Dense:
    """A layer whose first weights have the variance `scale` / inputs (He's for ReLU)."""
    kernel = keras.initializers.VarianceScaling(scale, "fan_in", "truncated_normal", seed=next(seeds))
    return layers.Dense(width, activation, kernel_initializer=kernel)


class _Earned(keras.initializers.Initializer):
    """He's first weights, but 0 for what tells of the moment: that has to earn its influence."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        """The weights of the layer that sees the jobs' features first, in their order."""
        rows = np.ones((shape[0], 1), np.float32)
        rows[SITUATION] = 0.0
        return (
            keras.initializers.VarianceScaling(2.0, "fan_in", "truncated_normal", seed=self.seed)(shape, dtype) * rows
        )

    def get_config(self) -> dict[str, Any]:
        """What a copy is made from."""
        return {"seed": self.seed}


def _without_influence(width: int) -> layers.Dense:
    """A layer that begins at 0: what it sees has to earn its influence."""
    return layers.Dense(width, None, kernel_initializer="zeros")


def _last(seeds: Iterator[int], width: int, design: Design | None = None) -> layers.Dense:
    """The last layer; of a policy (`design`) it begins near 0: all valid actions are about as likely.

    That of a residual policy begins at 0: it is the heuristic that it corrects, exactly.
    """
    if design is not None and design.residual:
        return _without_influence(width)
    return dense(width, seeds, None, 1.0 if design is None else 1e-4)


def _all_actions(design: Design, jobs: Any, logits: Any, wait: Any, prior: Any) -> Any:
    """All actions' logits; a residual policy begins with the order that it corrects.

    To wait is judged against the best job that fits, and is unlikely at first: whoever waits for no reason wastes GPUs,
    and episodes without end teach nothing.
    """
    if design.residual:
        logits = logits - RESIDUAL * GREATEST * prior
    if wait is None:
        return logits
    best = ops.max(ops.where(jobs[:, :, FITS] > 0, logits, FAR_BELOW), axis=1, keepdims=True)
    return ops.concatenate([logits, ops.where(best > FAR_BELOW, best, 0.0) + wait - WAIT], axis=-1)


def _pooled(tokens: Any, shown: Any) -> Any:
    """The mean of the tokens of the slots that hold a job."""
    count = ops.maximum(ops.sum(shown, axis=1), 1.0)
    return ops.matmul(ops.transpose(shown, (0, 2, 1)), tokens)[:, 0] / count


def _stretched(jobs: Any, scale: float) -> Any:
    """Jobs' features, those that tell of the job, not of the moment, stretched around a half."""
    if scale == 1.0:
        return jobs
    stretch, middle = stretching(scale)
    return (jobs - middle) * stretch


def _judging(design: Design, seeds: Iterator[int], policy: bool, mix: Callable[[Any, Any, Any], Any]) -> keras.Model:
    """A network that judges every job by the same weights, after `mix` has let jobs and GPUs look at each other."""
    jobs, cluster, prior = inputs = _inputs(design.shape)
    shown = ops.cast(jobs[:, :, SLOT : SLOT + 1] > 0, "float32")
    context = (_without_influence(design.hidden[0]) if policy else dense(design.hidden[0], seeds, None))(cluster)
    tokens = mix(_stretched(jobs, design.scale), cluster, shown)
    first = layers.Dense(design.hidden[0], kernel_initializer=_Earned(next(seeds))) if policy else None
    tokens = ops.leaky_relu((first or dense(design.hidden[0], seeds, None))(tokens) + context[:, None, :])
    for width in design.hidden[1:] if policy else ():  # one layer is enough where all jobs are pooled
        tokens = dense(width, seeds)(tokens)
    around = ops.concatenate([_pooled(tokens, shown), ops.leaky_relu(context)], axis=-1)
    if not policy:
        return keras.Model(inputs, _last(seeds, 1)(dense(32, seeds)(around))[:, 0])
    last = _last(seeds, 1, design)
    last.name = WORTH
    logits = last(tokens)[:, :, 0]
    waits = design.shape.actions > design.shape.window
    wait = _last(seeds, 1, design)(dense(AROUND, seeds)(around)) if waits else None
    return keras.Model(inputs, _all_actions(design, jobs, logits, wait, prior))


def _kernel(design: Design, seeds: Iterator[int], policy: bool) -> keras.Model:
    """The shared kernel: every job by itself."""
    return _judging(design, seeds, policy, lambda jobs, _cluster, _shown: jobs)


def _attn(design: Design, seeds: Iterator[int], policy: bool) -> keras.Model:
    """Jobs attend to jobs: scaled dot products, empty slots left out."""

    def _mix(jobs: Any, _cluster: Any, shown: Any) -> Any:
        tokens = dense(TOKEN, seeds)(jobs)
        seen = ops.cast(ops.transpose(shown, (0, 2, 1)), "bool")  # (batch, 1, window): who may be looked at
        mixed = _attention(seeds)(tokens, tokens, attention_mask=seen)
        return ops.concatenate([jobs, tokens + mixed], axis=-1)

    return _judging(design, seeds, policy, _mix)


def _cross_attn(design: Design, seeds: Iterator[int], policy: bool) -> keras.Model:
    """Jobs attend to GPUs: a token for each lookahead value, with where it stands and the features of its pool."""
    places, starts = gpu_tokens(design.shape)

    def _mix(jobs: Any, cluster: Any, _shown: Any) -> Any:
        values = ops.take(cluster, places[:, 0].astype(int), axis=1)[:, :, None]
        pools = ops.take(cluster, (starts[:, None] + np.arange(len(POOL_FEATURES))).ravel(), axis=1)
        pools = ops.reshape(pools, (-1, len(places), len(POOL_FEATURES)))
        where = ops.zeros_like(values) + places[None, :, 1:].astype(np.float32)
        gpus = dense(TOKEN, seeds)(ops.concatenate([values, where, pools], axis=-1))
        tokens = dense(TOKEN, seeds)(jobs)
        return ops.concatenate([jobs, tokens + _attention(seeds)(tokens, gpus)], axis=-1)

    return _judging(design, seeds, policy, _mix)


class _Unlike(keras.initializers.Initializer):
    """Glorot's first weights, others each time: Keras gives all layers of an attention copies of one initializer."""

    def __init__(self, seeds: Iterator[int]) -> None:
        self.seeds = seeds

    def __call__(self, shape: Any, dtype: Any = None) -> Any:
        """The weights of one layer."""
        return keras.initializers.GlorotUniform(seed=next(self.seeds))(shape, dtype)

    def get_config(self) -> dict[str, Any]:
        """What a copy is made from: it goes on with the same seeds."""
        return {"seeds": self.seeds}


def _attention(seeds: Iterator[int]) -> layers.MultiHeadAttention:
    return layers.MultiHeadAttention(HEADS, TOKEN // HEADS, kernel_initializer=_Unlike(seeds))


def _mlp(design: Design, seeds: Iterator[int], policy: bool) -> keras.Model:
    """A flat network over the whole window, to compare with; it has to learn each slot by itself."""
    jobs, cluster, prior = inputs = _inputs(design.shape)
    x = ops.concatenate([layers.Flatten()(jobs), cluster], axis=-1)
    for width in (4 * design.hidden[0], 2 * design.hidden[0]):
        x = dense(width, seeds)(x)
    if not policy:
        return keras.Model(inputs, _last(seeds, 1)(x)[:, 0])
    logits = _last(seeds, design.shape.window, design)(x)
    wait = _last(seeds, 1, design)(x) if design.shape.actions > design.shape.window else None
    return keras.Model(inputs, _all_actions(design, jobs, logits, wait, prior))


NETWORKS: dict[str, Callable[[Design, Iterator[int], bool], keras.Model]] = {
    "kernel": _kernel,
    "mlp": _mlp,
    "attn": _attn,
    "cross_attn": _cross_attn,
}
"""Every architecture by name."""

assert tuple(NETWORKS) == ARCHITECTURES
