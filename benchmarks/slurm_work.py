"""The workload of the Slurm study: short jobs of users who each run equally long, and ask for too much time."""

from pathlib import Path

import numpy as np

from berth.streams import stream
from envs.sim.cluster import Cluster, Pool
from traces.trace import Trace

USERS = ("daemon", "bin", "games", "man", "lp", "mail", "news", "backup")
"""Users that every Debian has, whose jobs root may submit."""

TRIAL = Cluster("trial", {"testbed": (Pool("gpu", ((4, 4),)),)})
"""The private Slurm: four nodes of four GPUs."""

SIZES, LONGEST = np.array([1, 1, 1, 1, 2, 2, 4, 8]), 20.0

MINUTE = 60.0
"""How many seconds of time limit a user asks for a second of run time, if they are honest: Slurm counts minutes."""


def short_jobs(count: int, seed: int, span: float) -> Trace:
    """Jobs of 1 to 20 s that arrive within `span` seconds, with time limits of whole minutes.

    Every user has a typical run time and an own way to exaggerate, once to ten times, so that limits tell little and
    ended jobs tell much.
    """
    rng = stream(seed, "slurm study")
    users = rng.integers(len(USERS), size=count)
    typical, exaggerates = rng.uniform(np.log(1.2), np.log(9.0), len(USERS)), 10.0 ** rng.random(len(USERS))
    run_time = np.clip(np.round(np.exp(typical[users] + 0.25 * rng.standard_normal(count))), 1.0, LONGEST)
    return Trace(
        f"short jobs {seed}",
        "made",
        np.array([str(i) for i in range(count)], object),
        np.sort(np.floor(rng.uniform(0.0, span, count))),
        run_time,
        SIZES[rng.integers(len(SIZES), size=count)].astype(np.int32),
        request_time=MINUTE * np.ceil(run_time * exaggerates[users]),
        user=np.array([USERS[i] for i in users], object),
    )


def long_trace(blocks: int, count: int, span: float, seed: int) -> Trace:
    """Many such workloads one after the other, with users of their own each, to train on."""
    parts = [short_jobs(count, seed + i, span) for i in range(blocks)]
    gap = 3.0 * span
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in ("run_time", "gpus", "request_time")
    }
    submit = np.concatenate([part.submit + i * gap for i, part in enumerate(parts)])
    users = [np.array([f"{name}{i}" for name in _users(part)], object) for i, part in enumerate(parts)]
    names = np.array([str(i) for i in range(len(submit))], object)
    return Trace("short jobs", "made", names, submit, user=np.concatenate(users), **joined)


def _users(trace: Trace) -> list[str]:
    return [] if trace.user is None else trace.user.tolist()


def write_cluster(path: Path) -> None:
    """Write the cluster as a file, for train/synthetic_train.py."""
    path.write_text('name = "trial"\n\n[[pools]]\nname = "gpu"\nnodes = [{ count = 4, gpus = 4 }]\n', encoding="utf-8")
