"""Short jobs on a real Slurm under its own order, fifo, sjf and a trained policy, beside the simulator's foresight."""

import dataclasses
import json
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.slurm_runs import OWN, ROOT, Ran, foresee, run_live
from benchmarks.slurm_work import USERS, long_trace, short_jobs, write_cluster
from berth.commandline import option, parse, run
from berth.console import tell
from berth.errors import ConfigError
from orchestrator.commands import Answer
from orchestrator.slurm import Config as AgentConfig
from orchestrator.slurm import Slurm
from orchestrator.slurm_private import PrivateSlurm, missing
from orchestrator.slurm_reading import Commands
from traces.formatted import write
from traces.trace import Trace

FOLDER, PAGE = ROOT / "data/slurm", ROOT / "docs/results/slurm.md"
MODEL, ROWS = FOLDER / "policy.npz", FOLDER / "study.json"

TRAINING = (
    "train/synthetic_train.py --cluster data/slurm/trial.toml --workload data/slurm/train.csv --load 0 --runtime_info "
    "request --action_mode fit --score_type wait --sched_algo fcfs --seq_len 120 --warm_start 0 --window 64 --clone "
    "saf@oracle --clone_loss log_key --clone_epochs 40 --epochs 20 --trajs 60 --lr 1e-3 --val_windows 32 "
    "--exp_name slurm"
)
EXPORTING = "train/export.py data/logs/slurm/slurm_s0 -o data/slurm/policy.npz"

POLICIES = {OWN: OWN, "fifo": "fcfs", "sjf": "sjf", "trained": str(MODEL)}
"""Who orders, by the name in the table."""

DISCIPLINES = ("easy", "conservative")

CHAIN = 25
"""Jobs that run one after the other, to see how long Slurm takes between two."""

BLOCKS, FIRST_BLOCK = 200, 1_000
"""How many workloads are trained on, and the seed of the first; those that are run have seeds from 0."""

HEAD = """# A policy on a live Slurm

Written by `python benchmarks/slurm_study.py`, as root, with Debian's slurm-wlm and munge. A private Slurm {version} on
one machine's loopback: four nodes of four virtual GPUs, sched/backfill, priority/multifactor, the settings of
orchestrator/slurm_private.py. {jobs} jobs are submitted within {span:g} s by {users} users; each is a `sleep` of 1 to
20 s on 1, 2, 4 or 8 GPUs. Every user has a typical run time, and exaggerates in a way of their own: time limits are 1
to 10 times the run time, in minutes for seconds, since Slurm counts limits in minutes. {repeats} repeats with different
jobs and users; all policies run the same jobs, each on a fresh cluster, {at_once} clusters at a time.

- `slurm`: its own order, no agent beside it: submission, since its other factors need slurmdbd, and backfilling.
- `fifo`, `sjf`, `trained`: `python orchestrator/slurm.py --mode apply --interval 0.5 --policy ...`, by site factors.
  `sjf` goes by time limits, `trained` by limits and by what ended jobs tell.
- Foreseen: the same jobs in the simulator (`--runtime_info request`), decided anew at every event. "Ideal": nothing
  takes time. "With delays": every job holds its GPUs for {delay:.2f} s longer, which is how long this Slurm, whose
  scheduler looks once a second, takes from a job's end to the next one's start (mean over a chain of {chain} jobs).
  Slurm's backfilling reserves for every job that it looks at, as `conservative` does; `easy` for the first one alone.
- Intervals: 95 %, Student's t over repeats; changes are paired with `slurm` on the same jobs.

The policy was trained in the simulator alone, on {blocks} other workloads of the kind (other seeds, other users):

    python {training}
    python {exporting}
"""


@dataclass(frozen=True)
class Config:
    """What benchmarks/slurm_study.py takes."""

    jobs: int = option(120, "jobs of a workload")
    span: float = option(20.0, "seconds within which they arrive", metavar="S")
    repeats: int = option(8, "workloads")
    at_once: int = option(2, "clusters that run at once on this machine")
    train: bool = option(True, "train the policy anew; 0: take the one of the last time")
    live: bool = option(True, "run jobs on Slurm; 0: take the waits of the last time, and foresee and write anew")
    rounds: bool = option(False, "with --live 0: time rounds anew, on a machine that does nothing else")


def prepare_policy(config: Config) -> None:
    """Train on other workloads of the kind, and export."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not config.train:
        if not MODEL.is_file():
            raise ConfigError(f"--train 0: no {MODEL}; want it trained first")
        return
    write(long_trace(BLOCKS, config.jobs, config.span, FIRST_BLOCK), FOLDER / "train.csv")
    write_cluster(FOLDER / "trial.toml")
    for words in (TRAINING, EXPORTING):
        tell(f"python {words}")
        subprocess.run([sys.executable, *shlex.split(words)], cwd=ROOT, check=True)


def interval(values: np.ndarray) -> tuple[float, float]:
    """A mean, and how far its 95 % interval reaches to either side."""
    count = len(values)
    half = student.ppf(0.975, count - 1) * values.std(ddof=1) / np.sqrt(count) if count > 1 else np.nan
    return float(values.mean()), float(half)


def start_delay() -> float:
    """Seconds between the end of a job and the start of the next, where each needs the whole cluster."""
    with PrivateSlurm() as slurm:
        for _ in range(CHAIN):
            slurm.submit("date +%s.%N >> started; sleep 1.3", gpus=16)
        while slurm.run("squeue", "-h", "-t", "PD,R,CG"):
            time.sleep(0.5)
        moments = [float(word) for word in (slurm.folder / "jobs" / "started").read_text().split()]
    return float(np.diff(moments).mean() - 1.3)


def round_seconds(pending: int = 1_000) -> tuple[float, float, int]:
    """Seconds of a round with nothing to do and of one with changes, and how many changes, of so many pending jobs."""
    with PrivateSlurm() as slurm, tempfile.TemporaryDirectory() as folder:
        slurm.submit("sleep 600", gpus=16, limit="60")
        rng = np.random.default_rng(0)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda limit: slurm.submit("true", gpus=4, limit=str(limit)), rng.integers(1, 60, pending)))
        commands = Commands()

        def here(*words: str) -> Answer:
            return commands("env", f"SLURM_CONF={slurm.conf}", *words)

        told = AgentConfig(
            mode="apply", policy="sjf", partition=("gpu",), log=f"{folder}/log.jsonl", accounting="squeue"
        )
        agent = Slurm(told, command=here)
        took: list[tuple[float, int]] = []
        for _ in range(8):
            begun = time.monotonic()
            moves = agent.round()
            took.append((time.monotonic() - begun, len(moves)))
        busy = max(took[1:], key=lambda pair: pair[1])  # the first compiles
        idle = min(seconds for seconds, count in took if count == 0)
        slurm.run("scancel", "-u", "root")
    return idle, busy[0], busy[1]


def main() -> None:
    """Train, run everything live and in the simulator, and write the page."""
    config = parse(Config, description=__doc__ or "")
    why = missing()
    if why:
        raise ConfigError(f"no private Slurm: {why}")
    if config.jobs < 1 or config.repeats < 2 or config.at_once < 1 or not config.span > 0:
        raise ConfigError("want at least 1 job, 2 repeats, 1 cluster at once, and a span of more than 0 s")
    traces = [short_jobs(config.jobs, seed, config.span) for seed in range(config.repeats)]
    if config.live:
        prepare_policy(config)
        told = {"live": run_all(config, traces), "round": round_seconds(), "delay": start_delay()}
    elif ROWS.is_file():
        told = json.loads(ROWS.read_text(encoding="utf-8"))
        told |= {"round": round_seconds()} if config.rounds else {}
    else:
        raise ConfigError(f"--live 0: no {ROWS}; want a live run first")
    ROWS.write_text(json.dumps(told, indent=1), encoding="utf-8")
    PAGE.write_text(page(config, traces, told), encoding="utf-8")
    tell(PAGE.read_text(encoding="utf-8"))


def run_all(config: Config, traces: list[Trace]) -> dict[str, list[float]]:
    """Mean waits of every policy and repeat, on Slurm."""

    def live(task: tuple[str, int]) -> Ran:
        name, i = task
        return run_live(traces[i], POLICIES[name], FOLDER / f"agent_{name}_{i}.log")

    tasks = [(name, i) for i in range(config.repeats) for name in POLICIES]
    waits: dict[str, list[float]] = {name: [] for name in POLICIES}
    with ThreadPoolExecutor(config.at_once) as pool:
        for (name, i), ran in zip(tasks, pool.map(live, tasks), strict=True):
            waits[name].append(ran.wait)
            tell(f"{name}, repeat {i}: mean wait {ran.wait:.2f} s")
    return waits


def foreseen(traces: list[Trace], word: str, discipline: str, delay: float) -> np.ndarray:
    """Mean waits (repeats,) in the simulator, where every job holds its GPUs for some seconds longer."""
    longer = [dataclasses.replace(trace, run_time=trace.run_time + delay) for trace in traces]
    return np.array([foresee(trace, word, discipline).wait for trace in longer])


def page(config: Config, traces: list[Trace], told: dict[str, Any]) -> str:
    """The page with all figures."""
    version = subprocess.run(["/usr/sbin/slurmctld", "-V"], capture_output=True, text=True, check=True).stdout.split()[
        -1
    ]
    delay = float(told["delay"])
    text = HEAD.format(
        version=version, jobs=config.jobs, span=config.span, users=len(USERS), repeats=config.repeats,
        at_once=config.at_once, blocks=BLOCKS, training=TRAINING, exporting=EXPORTING, delay=delay, chain=CHAIN,
    )  # fmt: skip
    header = ("order", "mean wait, s", "change", "foreseen, ideal", "with delays, easy", "with delays, conservative",
              "live - with delays, conservative")  # fmt: skip
    lines = [f"| {' | '.join(header)} |", f"|---|{'--:|' * (len(header) - 1)}"]
    each, base = [], np.array(told["live"][OWN])
    for name, word in POLICIES.items():
        mine, ideal = np.array(told["live"][name]), foreseen(traces, word, "easy", 0.0)
        easy, conservative = (foreseen(traces, word, one, delay) for one in DISCIPLINES)
        paired = "" if name == OWN else "{:+.1f} % ± {:.1f}".format(*interval(100 * (mine / base - 1)))
        cells = ["{:.2f} ± {:.2f}".format(*interval(mine)), paired, f"{ideal.mean():.2f}", f"{easy.mean():.2f}",
                 f"{conservative.mean():.2f}", "{:+.2f} ± {:.2f}".format(*interval(mine - conservative))]  # fmt: skip
        lines.append(f"| {name} | {' | '.join(cells)} |")
        each.append(f"- {name}: live {_listed(mine)}; with delays, conservative {_listed(conservative)}")
    idle, busy, changed = told["round"]
    last = (
        f"Every job of all {len(POLICIES) * config.repeats} runs has run exactly once (a run in which one has not ends "
        "the study).\n\n## A round\n\n"
        f"With 1,000 pending jobs a round takes {idle:.2f} s where the order is as wanted, and {busy:.2f} s with "
        f"{changed} changes: squeue, sinfo, sprio, the order, and a command for each change.\n"
    )
    return "\n".join([text, *lines, "", "Mean waits of each repeat, s:", "", *each, "", last])


def _listed(values: np.ndarray) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


if __name__ == "__main__":
    run(main)
