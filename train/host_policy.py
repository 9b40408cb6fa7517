"""The networks of host selection: what a host is worth for a job, however many hosts there are."""

from collections.abc import Iterator

import keras
from keras import layers, ops

from envs.sim.hosts import FEATURES
from train.design import Design
from train.host_design import STRETCH
from train.networks import dense


class VariableHostPolicy:
    """A policy and a value function that judge every host by the same weights; any number of hosts is taken.

    hosts (batch, hosts, 4), job (batch, 2) -> host encoder and job encoder -> their sum, beside the mean of all hosts'
    codes -> policy head: a logit for each host; the value head sees the means alone. The two do not share weights:
    the value's errors would bend the policy's encoders.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self._seeds = iter(range(1000 * (design.seed + 1), 1000 * (design.seed + 2)))

    def build(self) -> tuple[keras.Model, keras.Model]:
        """The policy (logits before the mask) and the value function; both take (hosts, job, prior), prior unused."""
        return self._network(self._seeds, True), self._network(self._seeds, False)

    def _network(self, seeds: Iterator[int], policy: bool) -> keras.Model:
        hosts = keras.Input((None, FEATURES), name="hosts")
        job = keras.Input((2,), name="job")
        prior = keras.Input((None,), name="prior")
        first, *others = self.design.hidden
        codes = dense(first, seeds, None)((hosts - 0.5) * STRETCH)
        wanted = dense(first, seeds, None)((job - 0.5) * STRETCH)
        mean = ops.mean(ops.leaky_relu(codes), axis=1)
        if not policy:
            around = ops.concatenate([mean, ops.leaky_relu(wanted)], axis=-1)
            value = dense(1, seeds, None, 1.0)(dense(first, seeds)(around))
            return keras.Model([hosts, job, prior], value[:, 0])
        around = wanted + dense(first, seeds, None)(mean)
        tokens = ops.leaky_relu(codes + around[:, None, :])
        for width in others:
            tokens = dense(width, seeds)(tokens)
        last = layers.Dense(
            1, kernel_initializer=keras.initializers.VarianceScaling(1e-4, "fan_in", seed=next(seeds)), name="logit"
        )
        return keras.Model([hosts, job, prior], last(tokens)[:, :, 0])
