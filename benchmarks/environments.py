"""How many decisions a second the environments take, with observations: many at once, one alone, with the MILP."""

import time
from typing import Any

import gymnasium
import numba
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from rich.table import Table

import envs  # noqa: F401 - registers the environments
from berth.commandline import run
from berth.console import console, tell
from envs.options import ACTION_MODES
from envs.registration import IDS
from envs.scheduling_env import SchedulingEnv
from legacy.environment import Episode
from legacy.simulator import Job, Simulator

MANY = 64
STEPS = 1_500
REPEATS = 3
ORIGINAL = "RLTune 144 to 1,600/s, RLScheduler 2,900 to 6,800/s; with MILP 48 to 68/s (reference figures)"


def rate_of_many(env: VectorEnv, steps: int) -> float:
    """Decisions a second of all environments together, resets included; the first valid slots are taken."""
    seen, _ = env.reset(seed=0)
    for _ in range(20):
        seen, *_ = env.step(seen["mask"].argmax(axis=1))
    begin = time.perf_counter()
    for _ in range(steps):
        seen, *_ = env.step(seen["mask"].argmax(axis=1))
    return env.num_envs * steps / (time.perf_counter() - begin)


def rate_of_one(env: gymnasium.Env, steps: int) -> float:
    """Decisions a second of one environment through Gymnasium's API, resets included."""
    seen, _ = env.reset(seed=0)
    taken = 0
    begin = time.perf_counter()
    while taken < steps:
        seen, _, terminated, truncated, _ = env.step(int(seen["mask"].argmax()))
        taken += 1
        if terminated or truncated:
            seen, _ = env.reset()
    return taken / (time.perf_counter() - begin)


def rate_of_reference() -> float:
    """Decisions a second of legacy/environment.py, features included, on 64 Philly jobs and an idle cluster."""
    env = SchedulingEnv(cluster="philly", seq_len=64, warm_start=False)
    _, info = env.reset(seed=0)
    workload, first = env.source.stage.workload, info["first"]
    window = workload.trace.select(slice(first, first + 64))
    jobs = [
        Job(i, float(window.submit[i]), float(window.run_time[i]), int(window.gpus[i]), 0, float(window.run_time[i]))
        for i in range(64)
    ]
    episode = Episode(
        Simulator(jobs, [workload.nodes.capacity.tolist()], "fcfs", "reserve", tiers=2), "reserve", False, window=128
    )
    taken, begin = 0, time.perf_counter()
    while not episode.over and taken < 5_000:
        episode.features()
        episode.choose(episode.line()[0])
        taken += 1
    return taken / (time.perf_counter() - begin)


def main() -> None:
    """Print the table."""
    title = f"Decisions a second, window 128, observations and resets included ({numba.get_num_threads()} threads)"
    table = Table("environment", "how", "decisions/s", "times legacy", "wanted", title=title)
    reference = rate_of_reference()
    fast: dict[str, Any] = {"autoreset_mode": AutoresetMode.SAME_STEP, "copy": False}
    for name in IDS:
        for mode in ACTION_MODES:
            many = gymnasium.make_vec(name, num_envs=MANY, action_mode=mode, **fast)
            rate = max(rate_of_many(many, STEPS) for _ in range(REPEATS))
            how = f"{MANY} at once, {mode}"
            table.add_row(name, how, f"{rate:,.0f}", f"{rate / reference:,.0f}", ">= 200,000")
    for name in IDS:
        rate = max(rate_of_one(gymnasium.make(name), 20_000) for _ in range(REPEATS))
        table.add_row(name, "one, gymnasium.make", f"{rate:,.0f}", f"{rate / reference:,.0f}", ">= 10,000")
    for name in IDS:
        many = gymnasium.make_vec(name, num_envs=4, allocation="milp", **fast)
        rate = rate_of_many(many, 300)
        table.add_row(name, "4 at once, MILP allocation", f"{rate:,.0f}", f"{rate / reference:,.0f}", ">= 150")
    console().print(table)
    tell(f"legacy/environment.py: {reference:,.0f} decisions/s. {ORIGINAL}")


if __name__ == "__main__":
    np.seterr(all="raise")
    run(main)
