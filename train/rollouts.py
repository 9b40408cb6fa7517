"""Episodes played by a policy: to learn from, or to be judged by."""

from collections.abc import Sequence

import numpy as np
from gymnasium.vector import AutoresetMode

from envs.many import ManyEnvs
from envs.stage import split_borders
from envs.vector import SchedulingVectorEnv
from traces.sketch import sketch
from train.buffer import Batch
from train.config import Config
from train.design import Shape
from train.playing import Episodes, Tick, follow, packed, play
from train.ppo import Learner


def make_env(config: Config, split: str, episodes: int, prior: str = "") -> SchedulingVectorEnv:
    """Environments of a split, as many as are worth while for so many episodes; `prior` is told beside what is seen."""
    rounds = -(-episodes // config.num_envs)
    options = config.environment(split) | {"prior": prior}
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
