"""What a policy learns from a teacher before it learns from what it does."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from berth.console import tell
from berth.streams import stream
from envs.stage import split_borders
from train.config import Config
from train.lessons import lessons
from train.packing import pack

if TYPE_CHECKING:
    from envs.vector import SchedulingVectorEnv
    from train.ppo import Learner
    from train.screen import Screen


def imitate_actions(config: Config, learner: "Learner", screen: "Screen") -> None:
    """Learn to take the actions that a policy takes where it plays."""
    from train.rollouts import imitation, make_env

    c = config
    episodes = c.clone_trajs or c.trajs
    screen.collecting(-1, episodes)
    env = make_env(c, "train", episodes, c.clone)
    seeds = stream(c.seed, "windows to clone").integers(2**31, size=episodes).tolist()
    decisions = imitation(env, seeds, bool(c.residual), screen.tick)
    rng = stream(c.seed, "minibatches to clone")
    loss = float("nan")
    for _ in range(c.clone_epochs):
        count = len(decisions["action"])
        parts = np.array_split(rng.permutation(count), max(1, count // c.minibatch))
        losses = []
        for part in parts:
            seen = {name: column[part] for name, column in decisions.items() if name != "action"}
            losses.append(learner.imitate(seen, decisions["action"][part], c.clone_lr))
        loss = float(np.mean(losses))
    count = len(decisions["action"])
    tell(f"imitated {c.clone}: {count:,} decisions, taken with probability {np.exp(-loss):.3f} (geometric mean)")


class Packed(NamedTuple):
    """Lessons as networks take them, whole numbers of two bytes."""

    rows: np.ndarray  # (lessons, features)
    keys: np.ndarray  # (lessons,) the teacher's
    prior: np.ndarray  # (lessons,) those of the policy that is corrected; (0,) where there is none


def key_lessons(config: Config, env: "SchedulingVectorEnv") -> Packed:
    """What a teacher's keys are learned from: the jobs of the training split, as they were known while they waited.

    Nobody plays meanwhile: where a teacher who knows run times decides, whoever still waits is long, and waiting would
    be learned as the sign of it.
    """
    stage = env.source.stage
    borders = split_borders(stage.roster["submit"], config.train_share, config.validation_share)["train"]
    return Packed(*(pack(column) for column in lessons(stage, *borders, env.options, config.clone)[:3]))


def learn_keys(config: Config, told: Packed, learner: "Learner", screen: "Screen", decay: float = 0.0) -> None:
    """Learn what a teacher's keys are, job by job; `decay` is what the squares of weights count beside the error."""
    c, (rows, keys, prior) = config, told
    groups = max(1, c.minibatch // c.window)
    rng, steps = stream(c.seed, "jobs to learn keys from"), c.clone_epochs * -(-len(keys) // (groups * c.window))
    screen.collecting(-1, c.clone_epochs)
    learner.expect(keys, prior)
    losses: list[float] = []
    order = rng.permutation(len(keys))
    for step in range(steps):
        if len(order) < groups * c.window:
            order = np.concatenate((order, rng.permutation(len(keys))))
            screen.tick(step * c.clone_epochs // steps)
        part, order = order[: groups * c.window], order[groups * c.window :]
        rate = 0.5 * c.clone_lr * (1.0 + np.cos(np.pi * step / steps))
        seen, wanted = rows[part].reshape(groups, c.window, -1), keys[part].reshape(groups, c.window)
        its = prior[part].reshape(groups, c.window) if len(prior) else np.zeros((groups, 0), np.uint16)
        losses.append(learner.learn_keys(seen, wanted, its, rate, decay))
    late = float(np.mean(losses[-max(1, steps // c.clone_epochs) :]))
    beside = f" (decay {decay:g})" if decay else ""
    tell(f"learned the keys of {c.clone}{beside}: {len(keys):,} lessons, mean squared error of logarithms {late:.3f}")
