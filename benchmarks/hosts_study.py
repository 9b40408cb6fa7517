"""Train policies that name hosts, judge them at 50 and 100 hosts, and write docs/results/lsf.md.

python benchmarks/hosts_study.py             # what is trained already is not trained again
"""

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from berth.commandline import option, parse, run, written_whole
from berth.console import tell
from berth.errors import SimulationError
from envs.host_options import BASELINES
from eval.commands import Command, run_commands
from eval.paired import compare
from train.host_config import TEST_SEEDS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/results/lsf.md"
NAME = "lsf_study"
CROWDED = "--job-cores-range 1 6 --job-memory-range 1024 65536 --load 1.3"
TRAINED = f"--num-hosts 50 --episode-length 100 --max-jobs-per-step 50 {CROWDED}"
SIZES = {50: "--episode-length 200 --max-jobs-per-step 50", 100: "--episode-length 200 --max-jobs-per-step 100"}
"""What is judged, by the number of hosts; longer episodes than those that were trained on."""

WORDS = {"queue_wait": "mean queue wait, s", "load_imbalance": "imbalance", "makespan": "makespan, s",
         "completion_rate": "completed in time", "core_utilization": "core use"}  # fmt: skip

HEAD = """# Hosts named by a trained policy

Written by `python benchmarks/hosts_study.py`; [hosts.md](../hosts.md) says what is measured. Policies are trained on 50
hosts and judged on 50 and on 100, on episodes that nobody has trained on, where jobs ask for 1.3 times the cores or the
memory that there are while they arrive, so that queues build up. Cores and memory are about as scarce.

    {training}

{seeds} runs (--seed 0 to {last}), {least:.0f} to {most:.0f} s each on one core of a shared machine. Less is better of
wait, imbalance and makespan.
"""


@dataclass(frozen=True)
class Config:
    """What benchmarks/hosts_study.py takes."""

    seeds: int = option(3, "runs")
    episodes: int = option(40, "episodes to judge by, from the first test seed on")
    processes: int = option(2, "runs that are trained at the same time")


def training(seed: int) -> list[str]:
    """The command that trains a run."""
    return ["train/lsf_train.py", "--log-dir", NAME, *shlex.split(TRAINED), "--seed", str(seed)]


def evaluation(config: Config, hosts: int) -> list[str]:
    """The command that judges the runs."""
    runs = ",".join(f"data/logs/{NAME}/{NAME}_s{seed}" for seed in range(config.seeds))
    own = ["--num-hosts", str(hosts), *shlex.split(f"{SIZES[hosts]} {CROWDED}")]
    return [
        "eval/lsf_eval.py",
        "--rlmodel",
        runs,
        *own,
        "--episodes",
        str(config.episodes),
        "--out",
        f"data/{NAME}_{hosts}",
    ]


def train(config: Config) -> None:
    """Train what has not been trained, some runs at a time."""
    commands = []
    for seed in range(config.seeds):
        if not (ROOT / f"data/logs/{NAME}/{NAME}_s{seed}/report.json").is_file():
            tell(shlex.join(["python", *training(seed)]))
            log = str(ROOT / f"data/{NAME}_s{seed}.log")
            commands.append(Command(f"seed {seed}", [sys.executable, *training(seed)], str(ROOT), log))
    if any(outcome.trouble for outcome in run_commands(commands, config.processes)):
        raise SimulationError("a run failed; the same command does what is left")


def changes(table: pd.DataFrame, models: list[str], name: str, seeds: list[int]) -> dict[str, Any]:
    """The mean over runs against first_available on some episodes: change and interval, and each run's change."""
    rows = {who: its.set_index("seed")[name].loc[seeds].to_numpy() for who, its in table.groupby("who")}
    base = rows["first_available"]
    found: dict[str, Any] = {
        "base": float(base.mean()),
        "each": [float(rows[m].mean() / base.mean() - 1) for m in models],
    }
    for who in ("learned", *BASELINES):
        mine = np.mean([rows[m] for m in models], axis=0) if who == "learned" else rows[who]
        paired = compare(mine[None], base, True, np.arange(len(base)))
        found[who] = (
            float(mine.mean()),
            float(paired.change[0]),
            float(paired.change_low[0]),
            float(paired.change_high[0]),
        )
    return found


def section(config: Config, hosts: int) -> str:
    """The tables of a number of hosts."""
    table = pd.read_csv(ROOT / f"data/{NAME}_{hosts}/results.csv")
    models = [who for who in table["who"].unique() if who not in BASELINES]
    every = sorted(table["seed"].unique().tolist())
    text = [f"## {hosts} hosts", "", f"    {shlex.join(['python', *evaluation(config, hosts)])}", ""]
    for title, seeds in (
        (f"The test seeds {', '.join(map(str, TEST_SEEDS))}", list(TEST_SEEDS)),
        (f"{len(every)} episodes", every),
    ):
        text += [f"{title}, against first_available [95 % interval over episodes]:", ""]
        text += [
            f"| | {' | '.join(f'{word} | change' for word in WORDS.values())} |",
            f"|---|{'--:|--:|' * len(WORDS)}",
        ]
        told = {name: changes(table, models, name, seeds) for name in WORDS}
        for who in ("learned", *BASELINES):
            cells = []
            for name in WORDS:
                mean, change, low, high = told[name][who]
                cells.append(f"{mean:,.1f}" if mean >= 10 else f"{mean:.4f}")
                cells.append(
                    "" if who == "first_available" else f"{100 * change:+.1f} % [{100 * low:+.1f}, {100 * high:+.1f}]"
                )
            text.append(
                f"| {f'learned, mean of {len(models)} runs' if who == 'learned' else who} | {' | '.join(cells)} |"
            )
        each = "; ".join(
            f"{WORDS[name]} {', '.join(f'{100 * one:+.1f} %' for one in told[name]['each'])}"
            for name in ("queue_wait", "load_imbalance")
        )
        text += ["", f"Each run: {each}.", ""]
    return "\n".join(text)


def main() -> None:
    """Train, judge, write the page."""
    config = parse(Config, None, str(__doc__))
    train(config)
    for hosts in SIZES:
        subprocess.run([sys.executable, *evaluation(config, hosts)], cwd=ROOT, check=True)
    seconds = []
    for seed in range(config.seeds):
        rows = (ROOT / f"data/logs/{NAME}/{NAME}_s{seed}/curve.csv").read_text().splitlines()
        seconds.append(float(dict(zip(rows[0].split(","), rows[-1].split(","), strict=True))["Time"]))
    head = HEAD.format(
        training=shlex.join(["python", *training(0)]), seeds=config.seeds, last=config.seeds - 1, least=min(seconds),
        most=max(seconds),
    )  # fmt: skip
    with written_whole(PAGE) as begun:
        begun.write_text("\n".join([head, *(section(config, hosts) for hosts in SIZES)]))
    tell(json.dumps({"page": str(PAGE.relative_to(ROOT))}))


if __name__ == "__main__":
    run(main)
