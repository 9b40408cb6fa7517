"""Look inside host selection: an episode decision by decision, PPO's own check, and what network sizes cost.

python train/debug.py episode --decisions 20             # who went where, and what it earned
python train/debug.py episode --rlmodel data/logs/trial/trial_s0 --seed 42
python train/debug.py ppo                                # does PPO learn a task whose answer is known?
python train/debug.py sizes --sizes 16,32,64 --num-hosts 100
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from berth.commandline import argument, nearest, option, parse, run
from berth.console import show_rows, tell
from berth.errors import ConfigError
from train.host_config import HostConfig

HOSTS = 20
"""Hosts of the cluster where nobody tells."""


@dataclass(frozen=True)
class Config:
    """What train/debug.py takes."""

    what: str = argument("episode, ppo or sizes", metavar="WHAT")
    rlmodel: str = option("", "a run or a checkpoint; default: a policy that has learned nothing", metavar="RUN")
    seed: int = option(42, "the episode's seed; of ppo and sizes that of the weights")
    decisions: int = option(20, "decisions of the episode to show")
    num_hosts: int | None = option(None, "hosts of the cluster; default: as the model was trained, else 20")
    sizes: tuple[str, ...] = option(("16", "32", "64", "128"), "widths of the hidden layers to time", metavar="N,N,...")

    def __post_init__(self) -> None:
        """Raise ConfigError for a value that cannot be."""
        for name, (low, high) in {"seed": (0, 2**31 - 1), "decisions": (1, 10**6), "num_hosts": (1, 10**5)}.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise ConfigError(f"{name} {value}: want a number from {low:,} to {high:,}")
        if not self.sizes or not all(width.isdecimal() and 1 <= int(width) <= 4096 for width in self.sizes):
            raise ConfigError(f"sizes {','.join(self.sizes)}: want widths from 1 to 4096 with commas, as in 16,32,64")


def main() -> None:
    """Show what the command line asks for."""
    config = parse(Config, None, str(__doc__))
    if config.what not in VIEWS:
        raise ConfigError(f"{config.what}: {nearest(config.what, VIEWS)}")
    VIEWS[config.what](config)


def _learner(config: Config) -> tuple[Any, HostConfig]:
    """A policy, trained or fresh, and its settings."""
    from train.quiet import load_tensorflow

    load_tensorflow(config.seed)
    from train.checkpoint import BEST, LAST, find, load
    from train.config import from_settings
    from train.design import Shape
    from train.host_run import make_host_learner
    from train.training import start_from

    if not config.rlmodel:
        trained = HostConfig(seed=config.seed, num_hosts=config.num_hosts or HOSTS, episode_length=20)
        return make_host_learner(trained, Shape.of_hosts()), trained
    checkpoint = load(find(config.rlmodel, "--rlmodel", (BEST, LAST)))
    trained = HostConfig(**from_settings(HostConfig, checkpoint.told["settings"], str(checkpoint.path)))
    learner = make_host_learner(trained, Shape.of_hosts())
    start_from(learner, checkpoint)
    return learner, trained


def show_episode(config: Config) -> None:
    """Trace an episode: of each decision the job, the likeliest hosts, the one taken, the reward and the value."""
    learner, trained = _learner(config)
    from envs.host_env import HostVectorEnv
    from train.playing import packed

    hosts = config.num_hosts or trained.num_hosts
    env = HostVectorEnv(1, "Disabled", **trained.environment("test") | {"num_hosts": hosts})
    seen, _ = env.reset(seed=config.seed)
    rows, earned, over = [], 0.0, False
    for number in range(config.decisions):
        kept = packed(env, seen)
        host = int(learner.best(kept)[0])
        able = np.flatnonzero(seen["mask"][0])
        logp = np.array([learner.assess(kept, np.array([h], np.int32), 0.0)[0][0] for h in able])
        value = float(learner.assess(kept, np.array([host], np.int32), 0.0)[1][0])
        course = env.courses.course[0]
        job = env.courses.jobs[0][course["current"]]
        now, queued = float(course["now"]), int(course["queued"])
        best = able[np.argsort(-logp)][:3]
        likely = ", ".join(f"{h} ({np.exp(logp[able == h][0]):.2f})" for h in best)
        seen, reward, terminated, _, _ = env.step(np.array([host]))
        earned, over = earned + float(reward[0]), bool(terminated[0])
        rows.append((str(number), f"{now:,.0f}", str(queued), f"{job['cores']}", f"{job['memory']:,}", str(len(able)),
                     likely, str(host), f"{reward[0]:+.5f}", f"{value:+.3f}"))  # fmt: skip
        if over:
            break
    show_rows(
        f"episode {config.seed}, {hosts} hosts",
        (
            "decision",
            "time, s",
            "queued",
            "cores",
            "memory, MB",
            "hosts with room",
            "likeliest",
            "taken",
            "reward",
            "value",
        ),
        rows,
    )
    tell(f"earned {earned:+.5f} in {len(rows)} decisions" + ("; the episode is over" if over else ""))


def check_ppo(config: Config) -> None:
    """Let PPO learn to take the emptiest host, rewarded by how empty it is; raises SystemExit where it does not."""
    learner, _ = _learner(config)
    from train.buffer import Batch
    from train.packing import STEPS

    rng, epochs, count, hosts = np.random.default_rng(config.seed), 40, 1024, 8
    shares = []
    for _ in range(epochs):
        seen = _random_observations(rng, count, hosts)
        seen["mask"][:, 1:] = rng.random((count, hosts - 1)) < 0.8
        use = seen["choices"][:, :, 0] / STEPS
        action = learner.act(seen, rng, 0.0)
        logp, value = learner.assess(seen, action, 0.0)
        reward = 1.0 - use[np.arange(count), action]
        emptiest = np.where(seen["mask"] == 1, use, 2.0).argmin(axis=1)
        shares.append(float((action == emptiest).mean()))
        batch = Batch(**seen, action=action, logp=logp, value=value, advantage=(reward - value).astype(np.float32),
                      target=reward.astype(np.float32))  # fmt: skip
        learner.update(batch, rng, 5e-3, 5e-3, 0.0)
    tell(
        f"the emptiest of {hosts} hosts: taken in {shares[0]:.0%} of the first decisions, {shares[-1]:.0%} of the last"
    )
    if shares[-1] < 0.6 or shares[-1] < 2 * shares[0]:
        tell("PPO does not learn what it should: something is broken")
        raise SystemExit(1)
    tell("PPO learns what it should")


def _random_observations(rng: np.random.Generator, count: int, hosts: int) -> dict[str, np.ndarray]:
    """Packed observations of hosts and jobs that are all drawn evenly; every host has room."""
    from train.packing import pack

    return {
        "choices": pack(rng.random((count, hosts, 4), np.float32)), "around": pack(rng.random((count, 2), np.float32)),
        "mask": np.ones((count, hosts), np.int8), "prior": np.zeros((count, 0), np.uint16),
    }  # fmt: skip


def time_sizes(config: Config) -> None:
    """Time decisions and updates for hidden layers of several widths."""
    from train.quiet import load_tensorflow

    load_tensorflow(config.seed)
    from train.buffer import Batch
    from train.design import Shape
    from train.host_run import make_host_learner

    rng, count = np.random.default_rng(config.seed), 2048
    rows = []
    for width in config.sizes:
        learner = make_host_learner(HostConfig(seed=config.seed, hidden=(width, width)), Shape.of_hosts())
        seen = _random_observations(rng, count, config.num_hosts or HOSTS)
        one = {name: column[:1] for name, column in seen.items()}
        action = learner.best(seen)
        logp, value = learner.assess(seen, action, 0.0)
        noise = rng.standard_normal(count).astype(np.float32)
        batch = Batch(**seen, action=action, logp=logp, value=value, advantage=noise, target=noise)
        learner.update(batch, rng, 0.0, 0.0, 0.0)
        learner.best(one)
        took = {name: _seconds(call) for name, call in (
            ("one", lambda learner=learner, one=one: learner.best(one)),
            ("many", lambda learner=learner, seen=seen: learner.best(seen)),
            ("update", lambda learner=learner, batch=batch: learner.update(batch, rng, 0.0, 0.0, 0.0)),
        )}  # fmt: skip
        weights = learner.policy.count_params() + learner.value.count_params()
        rows.append((width, f"{weights:,}", f"{1e3 * took['one']:.2f}", f"{count / took['many']:,.0f}",
                     f"{count / took['update']:,.0f}"))  # fmt: skip
    show_rows(
        f"two hidden layers, {config.num_hosts or HOSTS} hosts",
        ("width", "weights", "one decision, ms", "decisions/s in batches", "decisions learned from/s"),
        rows,
    )


def _seconds(call: Any) -> float:
    """How long a call takes, the best of five."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


VIEWS = {"episode": show_episode, "ppo": check_ppo, "sizes": time_sizes}
"""What can be looked at."""

if __name__ == "__main__":
    run(main)
