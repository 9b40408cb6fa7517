"""How fast the simulator is, as ratios in one run.

Where the real Venus trace is not at hand, as many generated jobs of its kind stand in for it, and the table says so.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.table import Table

from berth.commandline import run
from berth.console import console
from envs.clusters import find_cluster
from envs.sim.simulator import Simulation
from envs.workload import Workload, prepare
from eval.waits import TIER_1
from legacy.simulator import Job, Simulator
from traces.generate import RECIPES, generate
from traces.read import read_trace
from traces.recipe import read_recipe

ROOT = Path(__file__).resolve().parent.parent
VENUS = ROOT.parent / "shared" / "traces" / "helios" / "venus_gpu_jobs.csv.gz"
TRIES = 3


def best_of(action: Callable[[], object]) -> float:
    """The shortest of a few times, in seconds."""
    times = []
    for _ in range(TRIES):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


def kernel_seconds(workload: Workload, policy: str, discipline: str) -> float:
    """Seconds of a whole simulation, its making included; on tier 1, as legacy/ tries all placements for tier 2."""
    return best_of(lambda: Simulation(workload, policy, discipline, allocation=TIER_1).run())


def legacy_seconds(workload: Workload, policy: str, discipline: str) -> float:
    """Seconds of the reference simulator for the same jobs, once."""
    trace, nodes = workload.trace, workload.nodes
    capacity = [nodes.capacity[nodes.first[p] : nodes.first[p + 1]].tolist() for p in range(len(nodes.pool_gpus))]
    columns = zip(
        trace.submit.tolist(), trace.run_time.tolist(), trace.gpus.tolist(), workload.pool.tolist(), strict=True
    )
    jobs = [Job(i, s, r, g, p, estimate=r) for i, (s, r, g, p) in enumerate(columns)]
    begin = time.perf_counter()
    Simulator(jobs, capacity, policy, discipline).run()
    return time.perf_counter() - begin


def against_legacy() -> Table:
    """The compiled simulator against the readable one, on the same jobs."""
    table = Table(
        "policy", "discipline", "kernel jobs/s", "legacy jobs/s", "ratio", "wanted", title="Kernel against legacy/"
    )
    cluster = find_cluster("philly")
    workload = prepare(read_trace(ROOT / cluster.trace).select(slice(0, 3000)), cluster)
    for policy, discipline in (("fcfs", "strict"), ("sjf", "strict"), ("fcfs", "easy"), ("sjf", "fit")):
        fast, slow = (len(workload) / f(workload, policy, discipline) for f in (kernel_seconds, legacy_seconds))
        table.add_row(policy, discipline, f"{fast:,.0f}", f"{slow:,.0f}", f"{fast / slow:,.0f}", ">= 100")
    return table


def on_venus() -> Table:
    """About 100,000 jobs on Helios's production topology."""
    cluster = find_cluster("helios")
    if VENUS.is_file():
        trace, source = read_trace(VENUS), "real Venus"
    else:
        trace, source = generate(read_recipe(RECIPES["helios"]), 100_000, seed=1), "generated, real file absent"
    workload = prepare(trace, cluster, "production")
    title = f"{len(workload):,} jobs ({source}), helios production, offered load {workload.load:.2f}"
    table = Table("policy", "discipline", "seconds", "jobs/s", "times strict", "wanted", title=title)
    for policy in ("fcfs", "sjf"):
        strict = kernel_seconds(workload, policy, "strict")
        for discipline, wanted in (("strict", "well under 1 s"), ("easy", "<= 10"), ("fit", ""), ("conservative", "")):
            seconds = strict if discipline == "strict" else kernel_seconds(workload, policy, discipline)
            speed = f"{len(workload) / seconds:,.0f}"
            table.add_row(policy, discipline, f"{seconds:.3f}", speed, f"{seconds / strict:.1f}", wanted)
    return table


def growth() -> Table:
    """Cost per job and peak memory from 100 thousand to 10 million generated jobs, each in a process of its own."""
    title = "fcfs strict at load 0.8, generated jobs, philly testbed"
    table = Table("jobs", "setup s", "run s", "µs a job", "times first", "peak GB", "wanted", title=title)
    first = 0.0
    for jobs in (100_000, 1_000_000, 10_000_000):
        command = [sys.executable, str(ROOT / "benchmarks/growth.py"), "--jobs", str(jobs)]
        runs = []
        for _ in range(TRIES):
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            runs.append(json.loads(done.stdout.splitlines()[-1]))
        result = min(runs, key=lambda r: float(r["setup_s"] + r["run_s"]))
        cost = 1e6 * (result["setup_s"] + result["run_s"]) / result["jobs"]
        first = first or cost
        cells = (f"{result['setup_s']:.2f}", f"{result['run_s']:.2f}", f"{cost:.3f}", f"{cost / first:.2f}")
        wanted = "" if jobs == 100_000 else "< 1.5 times" + (", < 4 GB" if jobs == 10_000_000 else "")
        table.add_row(f"{jobs:,}", *cells, f"{result['peak_bytes'] / 1e9:.2f}", wanted)
    return table


def reading() -> Table:
    """A generated file of the size and format of the whole Helios log, read in a process of its own."""
    table = Table(
        "file", "rows", "MB", "seconds", "rows/s", "peak GB", "wanted", title="Reading Helios's cluster_log.csv"
    )
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(ROOT / "benchmarks/reading.py"), "--keep", f"{folder}/cluster_log.csv"]
        subprocess.run([*command, "--only_write"], check=True)
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    cells = (
        f"{result['seconds']:.1f}",
        f"{result['rows'] / result['seconds']:,.0f}",
        f"{result['peak_bytes'] / 1e9:.2f}",
    )
    table.add_row("generated", f"{result['rows']:,}", f"{result['bytes'] / 1e6:,.0f}", *cells, "< 30 s, < 4 GB")
    return table


def startup() -> Table:
    """How long the replay command takes when the kernel has been compiled before."""
    table = Table("command", "seconds", "wanted", title="Second start")
    command = [sys.executable, str(ROOT / "eval/replay.py"), "--cluster", "philly", "--policies", "fcfs,sjf,saf"]
    command += ["--discipline", "strict,easy", "--plot", str(ROOT / "data/replay/bench.png")]
    subprocess.run(command, capture_output=True, check=True, cwd=ROOT)
    seconds = best_of(lambda: subprocess.run(command, capture_output=True, check=True, cwd=ROOT))
    table.add_row("eval/replay.py --cluster philly, 3 policies, strict and easy", f"{seconds:.2f}", "< 3")
    return table


def main() -> None:
    """Print every table as it is ready."""
    out = console()
    for section in (against_legacy, on_venus, growth, reading, startup):
        out.print(section())


if __name__ == "__main__":
    run(main)
