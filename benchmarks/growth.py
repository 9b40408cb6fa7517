"""Replay generated jobs, fcfs strict at load 0.8 on Philly's testbed, and print seconds and peak memory as JSON."""

import json
import resource
import time
from dataclasses import dataclass

from berth.commandline import option, parse, run
from envs.clusters import find_cluster
from envs.metrics import summarize
from envs.sim.simulator import Simulation
from envs.workload import prepare
from traces.parametric import Shape, generate_parametric

RECIPE = Shape({1: 0.92, 2: 0.06, 4: 0.02}, median=600, mean=3600, gap=10)


@dataclass(frozen=True)
class Config:
    """What benchmarks/growth.py takes."""

    jobs: int = option(100_000, "how many jobs to generate and replay")
    load: float = option(0.8, "offered load")


def main() -> None:
    """Generate, replay, print one line."""
    config = parse(Config, description=__doc__ or "")
    cluster = find_cluster("philly")
    Simulation(
        prepare(generate_parametric(RECIPE, 100, 1), cluster, load=config.load)
    ).run()  # compiles or loads the kernel
    trace = generate_parametric(RECIPE, config.jobs, seed=1)
    workload = prepare(trace, cluster, load=config.load)
    begin = time.perf_counter()
    simulation = Simulation(workload, "fcfs", "strict")
    ready = time.perf_counter()
    schedule = simulation.run()
    done = time.perf_counter()
    summary = summarize(schedule)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        json.dumps(
            {
                "jobs": len(workload),
                "load": workload.load,
                "setup_s": ready - begin,
                "run_s": done - ready,
                "peak_bytes": peak,
                "wait_mean": summary["wait_mean"],
            }
        )
    )


if __name__ == "__main__":
    run(main)
