"""One measured point of docs/scale.md: a replay, or some training, at a size; printed as JSON.

Seconds are those of the processor, on one core, so that other work on the machine matters little.
"""

import json
import resource
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from berth.commandline import option, parse, run
from envs.sim.cluster import Cluster, Pool
from envs.sim.simulator import Simulation
from envs.workload import prepare
from traces.parametric import Shape, generate_parametric
from traces.trace import Trace

SHAPE = Shape({1: 0.6, 2: 0.15, 4: 0.13, 8: 0.1, 16: 0.02}, median=600, mean=3600, gap=10, users=200)
PER_NODE = 8


@dataclass(frozen=True)
class Config:
    """What benchmarks/scale_point.py takes."""

    jobs: int = option(100_000, "jobs of the trace")
    gpus: int = option(1000, "GPUs of the cluster, 8 to a node")
    load: float = option(0.8, "offered load")
    policy: str = option("fcfs", "policy of the replay")
    discipline: str = option("strict", "its discipline")
    training: bool = option(False, "play and learn, instead of a replay")
    window: int = option(128, "slots that are seen")
    decisions: int = option(4000, "decisions that are played and learned from")
    envs: int = option(16, "environments at once")


def cluster_of(gpus: int) -> Cluster:
    """One pool of so many GPUs, 8 to a node."""
    return Cluster("scale", {"all": (Pool("all", ((max(1, gpus // PER_NODE), PER_NODE),)),)})


def replay(config: Config, trace: Trace) -> dict[str, Any]:
    """Seconds of a replay, and how long its queue was: jobs that wait, averaged over time."""
    workload = prepare(trace, cluster_of(config.gpus), load=config.load)
    begin = time.process_time()
    simulation = Simulation(workload, config.policy, config.discipline)
    ready = time.process_time()
    schedule = simulation.run()
    done = time.process_time()
    waited = schedule.start - workload.trace.submit
    return {
        "jobs": len(workload), "load": workload.load, "setup_s": ready - begin, "run_s": done - ready,
        "queue": float(waited.sum() / max(schedule.start.max() - workload.trace.submit[0], 1.0)),
    }  # fmt: skip


def training(config: Config, trace: Trace) -> dict[str, Any]:
    """Seconds to lay out a trace for episodes, to play a decision and to learn from it; bytes that it is kept in."""
    from train.quiet import load_tensorflow

    load_tensorflow(0, threads=1)
    import numba
    from gymnasium.vector import AutoresetMode

    from envs.vector import SchedulingVectorEnv
    from train.config import Config as Training
    from train.rollouts import InProcess, Wanted, shape_of
    from train.run import make_learner

    numba.set_num_threads(1)  # so that seconds of the processor are seconds
    settings = Training(cluster="philly", window=config.window, load=config.load)
    options = settings.environment("train") | {"cluster": cluster_of(config.gpus), "workload": trace}
    begin = time.process_time()
    env = SchedulingVectorEnv(config.envs, AutoresetMode.DISABLED, copy=False, **options)
    ready = time.process_time()
    learner = make_learner(settings, shape_of(env))
    collector, rng = InProcess(env), np.random.default_rng(0)
    wanted = Wanted(list(range(10**5)), 0, "actions", 0.0, 1.0, 0.97, config.envs * 4)
    batch, _ = collector.collect(learner, wanted, lambda _done: None)  # compiles
    learner.update(batch, rng, 1e-3, 1e-3, 0.0)
    played = time.process_time()
    batch, _ = collector.collect(learner, wanted._replace(most=config.decisions), lambda _done: None)
    learned = time.process_time()
    told = learner.update(batch, rng, 1e-3, 1e-3, 0.0)
    done = time.process_time()
    count = len(batch.action)
    waiting = [int(env.rows[e]["waiting"]) for e in range(config.envs)]
    return {
        "jobs": len(trace), "setup_s": ready - begin, "play_us": 1e6 * (learned - played) / count,
        "learn_us": 1e6 * (done - learned) / count / told.stop_iter * settings.train_iters,
        "bytes": sum(column.nbytes for column in batch) / count,
        "weights": 4 * (learner.policy.count_params() + learner.value.count_params()),
        "queue": float(np.mean(waiting)), "seen": int(env.seen["cluster"].shape[1]),
    }  # fmt: skip


def main() -> None:
    """Generate, measure, print one line."""
    config = parse(Config, description=__doc__ or "")
    small = prepare(generate_parametric(SHAPE, 100, 1), cluster_of(100), load=0.8)
    Simulation(small, config.policy, config.discipline).run()  # compiles or loads the kernel
    trace = generate_parametric(SHAPE, config.jobs, 1)
    told = training(config, trace) if config.training else replay(config, trace)
    told["peak_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(json.dumps(told))


if __name__ == "__main__":
    run(main)
