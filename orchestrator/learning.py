"""Train a policy for one host's queue: the project's own PPO, on drawn jobs."""

import contextlib
import dataclasses
import itertools
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol

import numpy as np

from berth.commandline import writable_folder
from berth.console import tell
from berth.errors import ConfigError
from envs.options import Options
from envs.policies import find_policy
from envs.vector import SchedulingVectorEnv
from envs.workload import HOST
from orchestrator.queue_env import DrawnJobs, QueueEnv
from train.checkpoint import BEST, load
from train.config import Config as Training
from train.export import export, write_exported
from train.forward import read_exported
from train.run import Run

RUNS = "runs"
"""Where training runs are, with TensorBoard's events."""

AT_ONCE = 20
"""Episodes in an epoch, about."""

NOBODY = "none"


class Asked(Protocol):
    """What of the orchestrator's settings training minds."""

    @property
    def generate_jobs(self) -> int:
        """Jobs in an episode."""

    @property
    def n_min(self) -> int:
        """Cores of a job, at least."""

    @property
    def most_cores(self) -> int:
        """Cores of a job, at most."""

    @property
    def p_min(self) -> int:
        """Seconds of a job, at least."""

    @property
    def p_max(self) -> int:
        """Seconds of a job, at most."""

    @property
    def seed(self) -> int:
        """Of everything random."""

    @property
    def window(self) -> int:
        """Jobs that are seen."""

    @property
    def rl_episodes(self) -> int:
        """Episodes in all."""

    @property
    def rl_gamma(self) -> float:
        """Discount."""

    @property
    def rl_lr(self) -> float:
        """Learning rate."""

    @property
    def rl_residual(self) -> str:
        """What the policy begins as."""


class QueueRun(Run):
    """A training run on the jobs of one host."""

    def __init__(self, config: Training, folder: Path, asked: Asked, cores: int) -> None:
        self.asked, self.cores = asked, cores
        super().__init__(config, folder)

    def make_env(self, split: str, episodes: int, prior: str | None = None) -> SchedulingVectorEnv:
        """Environments on jobs that are drawn for a split."""
        c, asked = self.config, self.asked
        told = c.environment(split) | {"prior": c.residual if prior is None else prior}
        source = DrawnJobs(
            Options(**told), split, self.cores, asked.generate_jobs, (asked.n_min, asked.most_cores),
            (asked.p_min, asked.p_max),
        )  # fmt: skip
        rounds = -(-episodes // c.num_envs)
        return QueueEnv(-(-episodes // rounds), source, told)

    @property
    def how_to_go_on(self) -> str:
        """What a user who has stopped it can do: it takes no long time."""
        return "No policy was written; --rl-train begins anew"

    def sketch(self, env: object) -> np.ndarray:
        """Nothing: jobs are drawn anew."""
        return np.zeros(0, np.uint8)


def settings_of(asked: Asked, cluster: str) -> Training:
    """The settings of a training run; raises ConfigError for what cannot be."""
    residual = "" if asked.rl_residual == NOBODY else find_policy(asked.rl_residual).name
    epochs = -(-asked.rl_episodes // AT_ONCE)
    return Training(
        cluster=cluster, exp_name="job_policy", epochs=epochs, trajs=-(-asked.rl_episodes // epochs), seed=asked.seed,
        gamma=asked.rl_gamma, lr=asked.rl_lr, window=asked.window, seq_len=asked.generate_jobs, residual=residual,
        score_type="wait", sched_algo="fcfs", action_mode="reserve", warm_start=False, score_backlog=False,
        runtime_info="oracle", train_iters=40, minibatch=256, target_kl=0.05,
        val_every=1, val_windows=16, report_windows=32,
    )  # fmt: skip


def learn(asked: Asked, cores: int, path: str) -> str:
    """Train a policy, and leave it in a file that bears any name; returns that name. Raises ConfigError."""
    file = Path(path)
    writable_folder("--rl-model-path", str(file.parent))
    if file.is_dir():
        raise ConfigError(f"--rl-model-path {path}: a folder, want the name of a file to write the policy to")
    if file.exists():
        _refuse_other(file)
    config = settings_of(asked, HOST)
    writable_folder(RUNS, RUNS)
    folder = _fresh_folder()
    cluster = folder / f"{HOST}.toml"
    config = dataclasses.replace(config, cluster=str(cluster))
    cluster.write_text(
        f'name = "{HOST}"\n\n[[pools]]\nname = "{HOST}"\nnodes = [{{ count = 1, gpus = {cores} }}]  # cores\n'
    )
    tell(f"training on {config.epochs * config.trajs:,} episodes of {asked.generate_jobs} jobs on {cores} cores")
    QueueRun(config, folder, asked, cores).go()
    told, weights = export(load(folder / BEST))
    write_exported(file, told, weights)
    tell(f"{file}: the best policy on validation episodes; tensorboard --logdir {RUNS}")
    return path


def _refuse_other(file: Path) -> None:
    """Raise ConfigError for a file that is no exported policy: it would be lost."""
    try:
        read_exported(file)
    except ConfigError:
        raise ConfigError(f"--rl-model-path {file}: a file that is no policy; want another, or none") from None


def _fresh_folder() -> Path:
    """A folder of its own for a run, also where several begin in the same second."""
    stem = f"job_policy_{datetime.fromtimestamp(time.time(), timezone.utc):%Y%m%dT%H%M%S}"
    for name in itertools.chain((stem,), (f"{stem}_{number}" for number in itertools.count(2))):
        with contextlib.suppress(FileExistsError):
            (Path(RUNS) / name).mkdir()
            break
    return Path(RUNS) / name
