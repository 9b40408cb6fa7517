"""A run that learns to name hosts for jobs."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from berth.console import show_rows, tell
from envs.host_courses import METRICS, Courses
from envs.host_env import make_host_options
from envs.host_jobs import TraceJobs, take_up_jobs, trace_jobs
from envs.host_options import BASELINES
from train.host_config import TEST_SEEDS, HostConfig, read_host_config
from train.resume import resumed
from train.training import Training

if TYPE_CHECKING:
    from envs.host_env import HostVectorEnv
    from train.design import Shape
    from train.playing import Decide
    from train.ppo import Learner
    from train.ray_rollouts import Recipe

AT_ONCE = 128
"""Episodes that are played at the same time where policies are judged."""

Rows = dict[str, list[dict[str, float]]]
"""Of each who decides, the metrics of each episode."""


def main() -> None:
    """Train as the command line says."""
    config, flags = read_host_config()
    if config.resume_from:
        config, checkpoint = resumed(config, flags)
        HostRun(config, checkpoint.path.parent, checkpoint).go()
    else:
        HostRun(config, config.folder).go()


class HostRun(Training):
    """A run of host selection."""

    config: HostConfig
    env: "HostVectorEnv"

    @property
    def round(self) -> int:
        """About as many decisions as an episode has."""
        c = self.config
        return c.trace_jobs if c.workload else max(1, c.episode_length * c.max_jobs_per_step // 2)

    def make_env(self, split: str, episodes: int) -> "HostVectorEnv":
        """Environments of the seeds, or of the part of the trace, of a split."""
        return make_env(self.config, split, episodes)

    def sketch(self, env: Any) -> np.ndarray:
        """Nothing: the jobs of a split have seeds of their own, or are a part of a trace that has others."""
        return np.zeros(0, np.uint8)

    def shape_of(self, env: Any) -> "Shape":
        """What the networks need to know: not how many hosts there are."""
        from train.design import Shape

        return Shape.of_hosts()

    def make_learner(self, shape: "Shape") -> "Learner":
        """The networks that the settings ask for."""
        return make_host_learner(self.config, shape)

    def recipe(self) -> "Recipe":
        """What workers make environments and networks from: the trace's jobs, if there is one, and two functions."""
        from train.ray_rollouts import Recipe

        options = make_host_options(**self.config.environment("train"))
        parts = trace_jobs(options) if options.workload else None
        return Recipe(self.config, parts, worker_env, make_host_learner, self.shape_of(self.env))

    def notes(self) -> tuple[str, ...]:
        """What the user should know of the trace."""
        return self.env.notes

    def prepare(self) -> None:
        """Nothing comes before the first epoch."""

    def one_epoch(self) -> None:
        """An epoch, and now and then a look at the test episodes."""
        super().one_epoch()
        c = self.config
        if c.test_every and self.epoch % c.test_every == 0 and self.epoch < c.epochs:
            rows = compare(c, self.learner.best)
            mine, other = (mean_of(rows[who]) for who in ("agent", c.baseline))
            tell(
                f"epoch {self.epoch}, test seeds: wait {mine['queue_wait']:,.1f} s ({c.baseline} "
                f"{other['queue_wait']:,.1f}), imbalance {mine['load_imbalance']:.4f} ({other['load_imbalance']:.4f})"
            )

    def test(self) -> dict[str, Any] | None:
        """Play the test episodes with the best policy, and with the baselines; print what came of it."""
        rows = compare(self.config, self.learner.best)
        show_metrics(rows, f"test seeds {', '.join(map(str, TEST_SEEDS))}, {self.config.num_hosts} hosts")
        return {who: mean_of(its) for who, its in rows.items()}


def make_env(config: HostConfig, split: str, episodes: int) -> "HostVectorEnv":
    """Environments of a split, as many as are worth while for so many episodes."""
    from gymnasium.vector import AutoresetMode

    from envs.host_env import HostVectorEnv

    rounds = -(-episodes // config.num_envs)
    return HostVectorEnv(-(-episodes // rounds), AutoresetMode.DISABLED, copy=False, **config.environment(split))


def worker_env(config: HostConfig, parts: TraceJobs | None, count: int) -> "HostVectorEnv":
    """The environments of a worker, so many at once, on what was carried to it."""
    if parts is not None:
        take_up_jobs(make_host_options(**config.environment("train")), parts)
    return make_env(dataclasses.replace(config, num_envs=count), "train", count)


def make_host_learner(config: HostConfig, shape: "Shape") -> "Learner":
    """The networks that settings ask for."""
    from train.design import Design
    from train.host_policy import VariableHostPolicy
    from train.ppo import Learner, rules_of

    design = Design(shape, tuple(int(width) for width in config.hidden), False, config.seed)
    return Learner(VariableHostPolicy(design).build(), design, rules_of(config))


def play_seeds(options: dict[str, Any], decide: "Decide", seeds: Sequence[int]) -> list[dict[str, float]]:
    """The metrics of the episodes of seeds that somebody plays."""
    from gymnasium.vector import AutoresetMode

    from envs.host_env import HostVectorEnv
    from train.playing import play

    env = HostVectorEnv(min(len(seeds), AT_ONCE), AutoresetMode.DISABLED, copy=False, **options)
    found: dict[int, dict[str, float]] = {}
    play(env, seeds, decide, ended=lambda path, e: found.update({path: env.courses.metrics(e)}))
    return [found[path] for path in range(len(seeds))]


def compare(config: HostConfig, decide: "Decide", seeds: Sequence[int] = TEST_SEEDS) -> Rows:
    """The metrics of a policy and of all baselines on the test episodes of seeds."""
    options = config.environment("test")
    rows = {"agent": play_seeds(options, decide, seeds)}
    courses = Courses(make_host_options(**options), 1)
    return rows | {who: [courses.judge(0, who, seed) for seed in seeds] for who in BASELINES}


def mean_of(rows: list[dict[str, float]]) -> dict[str, float]:
    """The mean of every metric."""
    return {name: float(np.mean([row[name] for row in rows])) for name in METRICS}


def show_metrics(rows: Rows, title: str) -> None:
    """Print a table of the metrics' means, a row for each who decides."""
    digits = {"makespan": 0, "queue_wait": 1}
    show_rows(
        title,
        ("who decides", *(name.replace("_", " ") for name in METRICS)),
        [
            (who, *(f"{mean:,.{digits.get(name, 4)}f}" for name, mean in mean_of(its).items()))
            for who, its in rows.items()
        ],
    )
