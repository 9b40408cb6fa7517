"""How fast hosts are named: decisions a second of many environments at once, and what the parts cost."""

import time
from typing import Any

import numpy as np
from rich.table import Table

from berth.commandline import run
from berth.console import console
from envs.host_courses import Courses
from envs.host_env import HostVectorEnv
from envs.host_options import HostOptions
from envs.sim.hosts import step_many

ENVS, SECONDS, WANTED = 256, 3.0, 200_000


def main() -> None:
    """Print the table."""
    title = f"Host selection, {ENVS} environments at once, first_available decides"
    table = Table("hosts", "what", "decisions/s", "wanted", title=title)
    for hosts in (20, 50, 100, 400):
        options: dict[str, Any] = {"num_hosts": hosts, "episode_length": 100, "max_jobs_per_step": max(10, hosts // 2)}
        table.add_row(str(hosts), "environments, as Gymnasium has them", f"{_stepped(options):,.0f}",
                      f">= {WANTED:,}" if hosts == 100 else "")  # fmt: skip
        table.add_row("", "the compiled step alone", f"{_compiled(options):,.0f}", "")
        table.add_row("", "whole episodes by a baseline, one thread", f"{_played(options):,.0f}", "")
    console().print(table)


def _stepped(options: dict[str, Any]) -> float:
    """Decisions a second through reset and step, the ends of episodes included."""
    env = HostVectorEnv(ENVS, copy=False, **options)
    seen, _ = env.reset(seed=0)
    for _ in range(20):
        seen, *_ = env.step(seen["mask"].argmax(axis=1))
    done, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < SECONDS:
        seen, *_ = env.step(seen["mask"].argmax(axis=1))
        done += ENVS
    return done / (time.perf_counter() - begin)


def _compiled(options: dict[str, Any]) -> float:
    """Decisions a second of the compiled step, without choosing and telling."""
    courses = Courses(HostOptions(**options), ENVS)
    for e in range(ENVS):
        courses.begin(e, e)
    done, spent = 0, 0.0
    while spent < SECONDS / 3 and not courses.course["over"].any():
        actions = courses.mask.argmax(axis=1)
        begin = time.perf_counter()
        step_many(actions, *courses.arrays)
        spent += time.perf_counter() - begin
        done += ENVS
    return done / spent


def _played(options: dict[str, Any]) -> float:
    """Decisions a second of whole episodes that a baseline plays."""
    courses = Courses(HostOptions(**options), 1)
    courses.begin(0, 0)
    done, spent = 0, 0.0
    for _ in range(50):
        begin = time.perf_counter()
        courses.play(0, "first_available", 0)
        spent += time.perf_counter() - begin
        done += int(np.sum(courses.course["decisions"]))
    return done / spent


if __name__ == "__main__":
    run(main)
