"""Real jobs against the simulator: one workload through stress-ng under fifo, sjf and a trained policy."""

import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from berth.commandline import option, parse, run, writable_folder, written_whole
from berth.console import tell
from berth.errors import ConfigError
from eval.foretold import Difference, Live, difference, read_live
from eval.ledger import read_ledger
from orchestrator.backends import host_cores
from orchestrator.producer import produce
from orchestrator.stress_ng import find_program

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "results" / "live.md"
POLICIES = ("fifo", "sjf", "rl")
WANTED = 0.10
"""By how much of the predicted mean the real one may be off."""


@dataclass(frozen=True)
class Config:
    """What benchmarks/live.py takes."""

    jobs: int = option(60, "jobs of the workload")
    p_min: int = option(2, "seconds that a job runs, at least")
    p_max: int = option(8, "seconds that a job runs, at most")
    gap: float = option(1.0, "seconds between arrivals on average")
    seed: int = option(1, "seed of the workload and of training")
    rl_episodes: int = option(400, "episodes of training")
    out: str = option("data/live", "where runs go; what is there is not run again", metavar="DIR")


def main() -> None:
    """Train, run what has not been run yet, compare, and write docs/results/live.md."""
    config = parse(Config, description=__doc__ or "")
    if not find_program():
        raise ConfigError("stress-ng is not installed; want it: apt-get install stress-ng")
    folder = writable_folder("--out", config.out)
    workload, model = folder / "workload.csv", folder / "job_policy.pth"
    _write_workload(config, workload)
    if not model.exists():
        words = ["--rl-train", "--rl-episodes", str(config.rl_episodes), "--generate-jobs", str(config.jobs),
                 "--p-min", str(config.p_min), "--p-max", str(config.p_max), "--n-max", str(host_cores()),
                 "--rl-model-path", str(model), "--seed", str(config.seed), "--simulate"]  # fmt: skip
        _orchestrate(folder, "rl", *words, "--run", "training")
    runs = []
    for policy in POLICIES:
        metrics = folder / f"metrics_{policy}.jsonl"
        if not metrics.exists() or len(read_ledger(metrics).entries) < config.jobs:
            trained = ("--rl-model-path", str(model)) if policy == "rl" else ()
            again = ("--resume",) if metrics.exists() else ()
            _orchestrate(folder, policy, "--workload", str(workload), "--run", policy, *trained, *again)
        runs.append(read_live(metrics))
    text = page(config, runs)
    with written_whole(PAGE) as begun:
        begun.write_text(text)
    tell(text)
    if any(max(abs(d.wait_off), abs(d.turnaround_off)) > WANTED for d in map(difference, runs)):
        sys.exit(1)


def _write_workload(config: Config, path: Path) -> None:
    """The jobs, as a list of four columns."""
    made = produce(config.jobs, (1, host_cores()), (config.p_min, config.p_max), config.seed, config.gap)
    rows = zip(made.job_id, made.submit.round(3), made.run_time, made.gpus, strict=True)
    text = "job_id,arrival_s,service_sec,gpu_count\n" + "".join(f"{a},{b},{c:g},{d}\n" for a, b, c, d in rows)
    if path.exists() and path.read_text() != text:
        raise ConfigError(f"{path}: other jobs than these settings make; want another --out")
    path.write_text(text)


def _orchestrate(folder: Path, policy: str, *words: str) -> None:
    """Run the program as a user would."""
    command = [sys.executable, str(ROOT / "orchestrator" / "orchestrator.py"), "--policy", policy, *words]
    done = subprocess.run([*command, "--output-dir", str(folder)], cwd=ROOT, check=False)
    if done.returncode:
        raise ConfigError(f"orchestrator.py --policy {policy} ended with status {done.returncode}; see above")


def page(config: Config, runs: list[Live]) -> str:
    """The page of results."""
    found = [difference(live) for live in runs]
    off = max(max(abs(d.wait_off), abs(d.turnaround_off)) for d in found)
    cores = runs[0].entries[0].cores
    columns = ("policy", "mean wait, s", "simulated", "off", "mean JCT, s", "simulated", "off",
               "start times differ by, s: mean", "median", "most", "later by, s: mean", "jobs failed")  # fmt: skip
    loads = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    lines = [
        "# Real jobs against the simulator",
        "",
        "Written by `python benchmarks/live.py`; [orchestrator.md](../orchestrator.md) tells how jobs are run.",
        "",
        f"One workload of {config.jobs} jobs of 1 to {cores} cores and {config.p_min} to {config.p_max} s, which "
        f"arrive {config.gap:g} s apart on average, run by stress-ng on {cores} cores ({platform.system()} "
        f"{platform.machine()}, load averages {loads} when this was written), once under each policy; and what the "
        "simulator says of the same jobs under the same policy, given only when each was to arrive and how long it was "
        "to run. One run each: no interval.",
        "",
        f"| {' | '.join(columns)} |",
        f"|---{'|--:' * (len(columns) - 1)}|",
        *(_row(live, d) for live, d in zip(runs, found, strict=True)),
        "",
        f"The means are {'within' if off <= WANTED else 'NOT within'} {WANTED:.0%} of what was simulated: off by "
        f"{off:.1%} at most. What makes the difference is the time that processes take to start and to end, which is "
        "passed on to all that wait.",
        "",
    ]
    return "\n".join(lines)


def _row(live: Live, d: Difference) -> str:
    first = live.entries[0]
    return (
        f"| {first.policy} {first.discipline} | {d.wait:.2f} | {d.wait_foretold:.2f} | {d.wait_off:+.1%} | "
        f"{d.turnaround:.2f} | {d.turnaround_foretold:.2f} | {d.turnaround_off:+.1%} | {d.start_mean:.2f} | "
        f"{d.start_median:.2f} | {d.start_most:.2f} | {d.start_bias:+.2f} | {d.failed} |"
    )


if __name__ == "__main__":
    run(main)
