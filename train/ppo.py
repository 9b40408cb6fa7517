"""PPO-clip in Spinning Up's manner: the policy that acts, and the update that teaches it."""

from functools import cached_property
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from envs.sim.observing import GREATEST
from train.buffer import SEEN, Batch
from train.config import Learning
from train.design import MASKED, RESIDUAL, Design
from train.networks import WORTH
from train.packing import STEPS

BIGGEST = 20.0
"""Where the logarithm of a probability ratio is cut before it is raised to e, so that no ratio is infinite."""

CHUNK = 1024
"""Decisions that are assessed at a time."""


def log_probabilities(logits: Any, mask: Any, exploration: Any) -> Any:
    """Logarithms of the actions' probabilities (batch, actions): π' = (1 - ε) π + ε / valid actions, 0 where masked.

    logits (batch, actions); mask (batch, actions), 1 where an action can be taken; ε the share of even decisions.
    """
    can = tf.cast(mask, tf.bool)
    plain = tf.nn.log_softmax(tf.where(can, logits, MASKED))
    valid = tf.reduce_sum(tf.cast(mask, tf.float32), axis=-1, keepdims=True)
    share = tf.maximum(exploration, 1e-9)  # keeps the branch that is not taken finite
    even = tf.math.log(share) - tf.math.log(tf.maximum(valid, 1.0))
    kept = tf.where(can, plain, 0.0) + tf.math.log1p(-tf.minimum(share, 1.0 - 1e-7))
    high, low = tf.maximum(kept, even), tf.minimum(kept, even)
    mixed = tf.where(can, high + tf.math.log1p(tf.exp(low - high)), MASKED)
    return tf.where(exploration > 0.0, mixed, plain)


def entropy_of(logp: Any) -> Any:
    """Entropies (batch,) of distributions (batch, actions) by the logarithms of their probabilities."""
    return -tf.reduce_sum(tf.exp(logp) * tf.maximum(logp, -BIGGEST * 5), axis=-1)


def clip_loss(logp: Any, logp_old: Any, advantage: Any, clip_ratio: float) -> tuple[Any, Any, Any]:
    """PPO's loss L = -mean min(ρ A, clip(ρ, 1 - c, 1 + c) A), the mean KL divergence, and the share that was clipped.

    ρ = π(a) / π_old(a). KL is estimated by ρ - 1 - ln ρ (Schulman), which is never below 0.
    """
    change = tf.clip_by_value(logp - logp_old, -BIGGEST, BIGGEST)
    ratio = tf.exp(change)
    clipped = tf.clip_by_value(ratio, 1.0 - clip_ratio, 1.0 + clip_ratio)
    loss = -tf.reduce_mean(tf.minimum(ratio * advantage, clipped * advantage))
    outside = tf.reduce_mean(tf.cast(tf.abs(ratio - 1.0) > clip_ratio, tf.float32))
    return loss, tf.reduce_mean(ratio - 1.0 - change), outside


class Rules(NamedTuple):
    """How an update goes; the fields of the same names of train/config.py."""

    clip_ratio: float
    ent_coef: float
    vf_coef: float
    max_grad_norm: float
    train_iters: int
    minibatch: int
    accumulate: int
    target_kl: float
    normalize_advantages: bool
    normalize_values: bool


def rules_of(config: Learning) -> Rules:
    """The rules that settings tell."""
    return Rules(**{name: getattr(config, name) for name in Rules._fields})


class Scale:
    """Running mean and variance of what is learned to be predicted (Chan et al.: batches are merged exactly)."""

    def __init__(self, mean: float = 0.0, variance: float = 1.0, count: float = 0.0) -> None:
        self.mean, self.variance, self.count = mean, variance, count

    def see(self, values: np.ndarray) -> None:
        """Take some more values into account."""
        more, mean, variance = len(values), float(np.mean(values, dtype=float)), float(np.var(values, dtype=float))
        total = self.count + more
        apart = mean - self.mean
        squares = self.variance * self.count + variance * more + apart * apart * self.count * more / total
        self.mean, self.variance, self.count = self.mean + apart * more / total, squares / total, total

    @property
    def deviation(self) -> float:
        """The standard deviation, never 0."""
        return max(self.variance, 1e-12) ** 0.5


class Told(NamedTuple):
    """What an update was like; docs/ppo.md explains each."""

    loss_pi: float
    loss_v: float
    delta_loss_pi: float
    delta_loss_v: float
    entropy: float
    kl: float
    clip_frac: float
    grad_norm: float
    stop_iter: int
    explained: float


class Learner:
    """The networks of a run, with their optimisers."""

    def __init__(self, networks: tuple[keras.Model, keras.Model], design: Design, rules: Rules) -> None:
        self.rules, self.design = rules, design
        self.policy, self.value = networks
        self.pi_optimizer, self.vf_optimizer = keras.optimizers.Adam(), keras.optimizers.Adam()
        self.pi_optimizer.build(self.policy.trainable_variables)
        self.vf_optimizer.build(self.value.trainable_variables)
        self.scale = Scale()
        self._sums = [tf.Variable(tf.zeros_like(v), trainable=False) for v in self._variables]

    @cached_property
    def _act(self) -> Any:
        actions = tf.TensorSpec([None, self.design.shape.actions or None], tf.float32)
        number = tf.TensorSpec([], tf.float32)
        return self._compiled(self._act_plain, actions, number)

    @cached_property
    def _assess(self) -> Any:
        return self._compiled(self._assess_plain, tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.float32))

    @cached_property
    def _best(self) -> Any:
        return self._compiled(self._best_plain)

    @cached_property
    def _gather(self) -> Any:
        whole, real = tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.float32)
        return self._compiled(self._gather_plain, whole, real, real, real, tf.TensorSpec([], tf.float32))

    @cached_property
    def _imitate(self) -> Any:
        return self._compiled(self._imitate_plain, tf.TensorSpec([None], tf.int32))

    @cached_property
    def _learn_keys(self) -> Any:
        window = self.design.shape.window
        jobs = tf.TensorSpec([None, window, self.design.shape.features], tf.uint16)
        keys = tf.TensorSpec([None, window], tf.uint16)
        prior = tf.TensorSpec([None, window if self.design.residual else 0], tf.uint16)
        number = tf.TensorSpec([], tf.float32)
        return tf.function(self._learn_keys_plain, [jobs, keys, prior, number]).get_concrete_function()

    @cached_property
    def _apply(self) -> Any:
        return tf.function(self._apply_plain, [tf.TensorSpec([], tf.float32)]).get_concrete_function()

    def _compiled(self, function: Any, *more: Any) -> Any:
        """A function of packed observations, compiled once for batches of any size, when it is first asked for."""
        shape = self.design.shape
        seen = (
            tf.TensorSpec([None, shape.window or None, shape.features], tf.uint16),
            tf.TensorSpec([None, shape.cluster], tf.uint16),
            tf.TensorSpec([None, shape.actions or None], tf.int8),
            tf.TensorSpec([None, shape.window if self.design.residual else 0], tf.uint16),
        )
        return tf.function(function, [*seen, *more]).get_concrete_function()

    @property
    def _variables(self) -> list[Any]:
        return [v.value for v in (*self.policy.trainable_variables, *self.value.trainable_variables)]

    def act(self, seen: dict[str, np.ndarray], rng: np.random.Generator, exploration: float) -> np.ndarray:
        """Draw actions for packed observations."""
        noise = -np.log(np.maximum(rng.standard_exponential(seen["mask"].shape, np.float32), 1e-30))  # Gumbel's
        actions: np.ndarray = self._act(*_tensors(seen, noise, np.float32(exploration))).numpy()
        return actions

    def assess(
        self, seen: dict[str, np.ndarray], action: np.ndarray, exploration: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Logarithms of the probabilities of actions (decisions,), and the values expected, as the networks are now."""
        found = [
            self._assess(*_tensors({name: column[at : at + CHUNK] for name, column in seen.items()},
                                   action[at : at + CHUNK], np.float32(exploration)))
            for at in range(0, len(action), CHUNK)
        ]  # fmt: skip
        logp, value = (np.concatenate([part[i].numpy() for part in found]) for i in range(2))
        return logp, value * np.float32(self.scale.deviation) + np.float32(self.scale.mean)

    def best(self, seen: dict[str, np.ndarray]) -> np.ndarray:
        """The most likely actions for packed observations."""
        actions: np.ndarray = self._best(*_tensors(seen)).numpy()
        return actions

    def update(self, batch: Batch, rng: np.random.Generator, pi_lr: float, vf_lr: float, exploration: float) -> Told:
        """Learn from the decisions of an epoch: passes over them in minibatches, until the policy has moved enough."""
        rules, count = self.rules, len(batch.action)
        self.pi_optimizer.learning_rate.assign(pi_lr)
        self.vf_optimizer.learning_rate.assign(vf_lr)
        advantage = batch.advantage
        if rules.normalize_advantages:
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        variance = float(np.var(batch.target))
        explained = 1.0 - float(np.var(batch.target - batch.value)) / variance if variance > 0 else 0.0
        if rules.normalize_values:
            self.scale.see(batch.target)
        target = ((batch.target - self.scale.mean) / self.scale.deviation).astype(np.float32)
        eps = np.float32(exploration)
        means: list[np.ndarray] = []
        norms: list[float] = []
        stop = 0
        for passed in range(rules.train_iters):
            told, moved = [], False
            parts = np.array_split(rng.permutation(count), max(1, -(-count // rules.minibatch)))
            for number, part in enumerate(parts):
                seen = {name: getattr(batch, name)[part] for name in SEEN}
                numbers = self._gather(
                    *_tensors(seen, batch.action[part], batch.logp[part], advantage[part], target[part], eps)
                )  # fmt: skip
                told.append(np.array([float(x) for x in numbers]))
                moved = rules.target_kl > 0 and told[-1][3] > 1.5 * rules.target_kl
                if moved:
                    self._forget()
                    break
                if (number + 1) % rules.accumulate == 0 or number == len(parts) - 1:
                    norms.append(float(self._apply(tf.constant(float(number % rules.accumulate + 1)))))
            means.append(np.mean(told, axis=0))
            stop = passed + 1
            if moved:
                break
        first, final = means[0], means[-1]
        return Told(
            float(first[0]), float(first[1]), float(final[0] - first[0]), float(final[1] - first[1]), float(first[2]),
            float(final[3]), float(final[4]), float(np.mean(norms)) if norms else 0.0, stop, explained,
        )  # fmt: skip

    def set_scale(self, numbers: list[float]) -> None:
        """Take over a normalisation: mean, variance, count."""
        self.scale = Scale(*numbers)

    def imitate(self, seen: dict[str, np.ndarray], action: np.ndarray, rate: float) -> float:
        """One step towards taking the actions given (batch,); returns the mean -ln of their probabilities before it."""
        self.pi_optimizer.learning_rate.assign(rate)
        return float(self._imitate(*_tensors(seen, action)))

    def expect(self, keys: np.ndarray, prior: np.ndarray) -> None:
        """Begin to learn keys, packed, from their mean: a bias of dozens would take an optimiser thousands of steps.

        `prior` are the keys of the policy that is corrected, if there is one.
        """
        mean = float(keys.mean(dtype=float) - (prior.mean(dtype=float) if len(prior) else 0.0)) * GREATEST / STEPS
        self.policy.get_layer(WORTH).bias.assign([-RESIDUAL * mean])

    def learn_keys(
        self, jobs: np.ndarray, keys: np.ndarray, prior: np.ndarray, rate: float, decay: float = 0.0
    ) -> float:
        """One step towards a teacher's keys (batch, window) of jobs (batch, window, features), all packed.

        `prior` (batch, window) are the keys of the policy that is corrected, (batch, 0) where there is none. A job's
        logit becomes -RESIDUAL times the expected logarithm of its key. `decay` is what the sum of the squares of the
        weights that judge jobs, biases apart, counts beside the error; those that judge waiting stay. Returns the mean
        squared error of the logarithms before the step.
        """
        self.pi_optimizer.learning_rate.assign(rate)
        told = (jobs, keys, prior, np.float32(decay))
        return float(self._learn_keys(*(tf.convert_to_tensor(x) for x in told)))

    def _inputs(self, choices: Any, around: Any, prior: Any) -> tuple[Any, Any, Any]:
        """Unpack observations; where no residual is used, the prior is zeros."""
        unpacked = [tf.cast(x, tf.float32) * (1.0 / STEPS) for x in (choices, around, prior)]
        if not self.design.residual:
            unpacked[2] = tf.zeros(tf.shape(choices)[:2])
        return unpacked[0], unpacked[1], unpacked[2]

    def _act_plain(self, choices: Any, around: Any, mask: Any, prior: Any, noise: Any, exploration: Any) -> Any:
        logp = log_probabilities(self.policy(self._inputs(choices, around, prior)), mask, exploration)
        return tf.argmax(logp + noise, axis=-1, output_type=tf.int32)  # the greatest of ln p + noise: drawn by p

    def _assess_plain(
        self, choices: Any, around: Any, mask: Any, prior: Any, action: Any, exploration: Any
    ) -> tuple[Any, Any]:
        inputs = self._inputs(choices, around, prior)
        logp = log_probabilities(self.policy(inputs), mask, exploration)
        return tf.gather(logp, action, axis=1, batch_dims=1), self.value(inputs)

    def _best_plain(self, choices: Any, around: Any, mask: Any, prior: Any) -> Any:
        logits = self.policy(self._inputs(choices, around, prior))
        return tf.argmax(tf.where(tf.cast(mask, tf.bool), logits, MASKED), axis=-1, output_type=tf.int32)

    def _gather_plain(
        self, choices: Any, around: Any, mask: Any, prior: Any, action: Any, logp_old: Any, advantage: Any, target: Any,
        exploration: Any,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Add a minibatch's gradients to those kept; returns policy loss, value loss, entropy, KL, share clipped."""
        inputs = self._inputs(choices, around, prior)
        with tf.GradientTape() as tape:
            logp_all = log_probabilities(self.policy(inputs), mask, exploration)
            logp = tf.gather(logp_all, action, axis=1, batch_dims=1)
            loss_pi, kl, clipped = clip_loss(logp, logp_old, advantage, self.rules.clip_ratio)
            entropy = tf.reduce_mean(entropy_of(logp_all))
            loss_v = tf.reduce_mean(tf.square(self.value(inputs) - target))
            loss = loss_pi - self.rules.ent_coef * entropy + self.rules.vf_coef * loss_v
        for kept, gradient in zip(self._sums, tape.gradient(loss, self._variables), strict=True):
            if gradient is not None:
                kept.assign_add(gradient)
        return loss_pi, loss_v, entropy, kl, clipped

    def _apply_plain(self, minibatches: Any) -> Any:
        """Take a step along the gradients kept, of so many minibatches; returns their norm before it is clipped."""
        gradients = [kept / minibatches for kept in self._sums]
        norm = tf.linalg.global_norm(gradients)
        if self.rules.max_grad_norm > 0:
            gradients, _ = tf.clip_by_global_norm(gradients, self.rules.max_grad_norm, norm)
        mine = len(self.policy.trainable_variables)
        self.pi_optimizer.apply(gradients[:mine], self.policy.trainable_variables)
        self.vf_optimizer.apply(gradients[mine:], self.value.trainable_variables)
        self._forget()
        return norm

    def _forget(self) -> None:
        """Drop the gradients kept."""
        for kept in self._sums:
            kept.assign(tf.zeros_like(kept))

    def _imitate_plain(self, choices: Any, around: Any, mask: Any, prior: Any, action: Any) -> Any:
        inputs = self._inputs(choices, around, prior)
        with tf.GradientTape() as tape:
            logp = log_probabilities(self.policy(inputs), mask, tf.constant(0.0))
            loss = -tf.reduce_mean(tf.gather(logp, action, axis=1, batch_dims=1))
        variables = [v.value for v in self.policy.trainable_variables]
        self.pi_optimizer.apply(tape.gradient(loss, variables), self.policy.trainable_variables)
        return loss

    def _learn_keys_plain(self, jobs: Any, keys: Any, prior: Any, decay: Any) -> Any:
        shape = self.design.shape
        told = tf.cast(keys, tf.float32) * (1.0 / STEPS)
        inputs = self._inputs(jobs, tf.zeros((tf.shape(jobs)[0], shape.cluster)), prior)
        with tf.GradientTape() as tape:
            expected = -self.policy(inputs)[:, : shape.window] / RESIDUAL
            loss = tf.reduce_mean(tf.square(told * GREATEST - expected))
        variables = [v.value for v in self.policy.trainable_variables]
        gradients = [
            tf.zeros_like(v) if g is None else g + _pull(g, v, decay)
            for g, v in zip(tape.gradient(loss, variables), variables, strict=True)
        ]
        self.pi_optimizer.apply(gradients, self.policy.trainable_variables)
        return loss


def _pull(gradient: Any, weights: Any, decay: Any) -> Any:
    """The gradient of `decay` times the squares of weights; 0 for biases, and for what has no part in the error."""
    if len(weights.shape) < 2:
        return tf.zeros_like(weights)
    return tf.where(tf.reduce_any(gradient != 0.0), 2.0 * decay, 0.0) * weights


def _tensors(seen: dict[str, np.ndarray], *more: Any) -> tuple[Any, ...]:
    """Packed observations, then whatever else, as TensorFlow takes them."""
    return tuple(tf.convert_to_tensor(x) for x in (*(seen[n] for n in SEEN), *more))
