"""Episodes played by a policy: to learn from, or to be judged by."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from gymnasium.vector import AutoresetMode

from berth.streams import stream
from envs.many import ManyEnvs
from envs.stage import Source, split_borders
from envs.vector import SchedulingVectorEnv
from traces.sketch import sketch
from train.buffer import Batch
from train.config import Config
from train.design import Shape
from train.playing import Episodes, Tick, follow, packed, play
from train.ppo import Learner


class Wanted(NamedTuple):
    """What is to be collected: an epoch, or a share of one."""

    seeds: list[int]  # of the episodes
    seed: int  # of the run
    actions: str  # the name of the stream by which actions are drawn
    exploration: float
    gamma: float
    lam: float
    most: int = 0  # decisions, 0 = whole episodes


class Collector(Protocol):
    """Whoever plays the episodes of an epoch, here or elsewhere."""

    def collect(self, learner: Learner, wanted: Wanted, tick: Tick) -> tuple[Batch, Episodes]:
        """Play with the policy as it is; `tick` is told how many episodes have ended."""

    def close(self) -> None:
        """Send home whoever has helped."""


class InProcess:
    """Plays in this process, all episodes of an epoch in as many environments as there are."""

    def __init__(self, env: ManyEnvs) -> None:
        self.env = env

    def collect(self, learner: Learner, wanted: Wanted, tick: Tick) -> tuple[Batch, Episodes]:
        """Play with the policy as it is."""
        w = wanted
        rng = stream(w.seed, w.actions)
        return collect(self.env, learner, w.seeds, rng, w.exploration, w.gamma, w.lam, w.most, tick)

    def close(self) -> None:
        """Nobody has helped."""


def make_env(
    config: Config, split: str, episodes: int, prior: str = "", source: Source | None = None
) -> SchedulingVectorEnv:
    """Environments of a split, as many as are worth while for so many episodes; `prior` is told beside what is seen.

    A `source` is where their windows come from, if that need not be found by the settings.
    """
    rounds = -(-episodes // config.num_envs)
    options = config.environment(split) | {"prior": prior} | ({} if source is None else {"source": source})
    return SchedulingVectorEnv(-(-episodes // rounds), AutoresetMode.DISABLED, copy=False, **options)


def shape_of(env: SchedulingVectorEnv) -> Shape:
    """What the networks need to know of an environment."""
    looks = env.episodes[0].arrays["looks"]
    pools = tuple((int(at), int(count)) for at, count in zip(looks["at"], looks["count"], strict=True))
    return Shape(env.options.window, int(env.seen["cluster"].shape[1]), env.actions, pools)


def split_sketch(env: SchedulingVectorEnv) -> np.ndarray:
    """A few bits by which the jobs of an environment's split are known again; none where jobs are made anew."""
    if env.options.is_fresh:
        return np.zeros(0, np.uint8)
    trace = env.source.stage.workload.trace
    o = env.options
    low, high = split_borders(trace.submit, o.train_share, o.validation_share)[o.split]
    return sketch(trace.select(slice(low, high)))


def collect(
    env: ManyEnvs,
    learner: Learner,
    seeds: Sequence[int],
    rng: np.random.Generator,
    exploration: float,
    gamma: float,
    lam: float,
    most: int = 0,
    tick: Tick = lambda _done: None,
) -> tuple[Batch, Episodes]:
    """Play episodes with the policy as it is, and work out what its decisions were worth."""
    episodes, buffer, playing = play(env, seeds, lambda seen: learner.act(seen, rng, exploration), True, most, tick)
    assert buffer is not None
    logp, value = learner.assess(buffer.observed(), buffer.column("action"), exploration)
    last: dict[int, float] = {}
    if (playing >= 0).any():
        _, values = learner.assess(packed(env, env.seen), np.zeros(env.num_envs, np.int32), exploration)
        last = {int(path): float(values[e]) for e, path in enumerate(playing) if path >= 0}
    return buffer.finish(logp, value, last, gamma, lam), episodes


def judge(env: ManyEnvs, learner: Learner, seeds: Sequence[int], tick: Tick = lambda _done: None) -> Episodes:
    """Play episodes with the most likely actions."""
    return play(env, seeds, learner.best, tick=tick)[0]


def imitation(
    env: SchedulingVectorEnv, seeds: Sequence[int], with_prior: bool, tick: Tick = lambda _done: None
) -> dict[str, np.ndarray]:
    """Packed observations of episodes that the prior policy plays, and its actions."""
    _, buffer, _ = play(env, seeds, follow(env), keep=True, tick=tick)
    assert buffer is not None
    kept = {name: buffer.column(name) for name in ("choices", "around", "mask", "prior", "action")}
    return kept if with_prior else kept | {"prior": kept["prior"][:, :0]}
