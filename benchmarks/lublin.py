"""A learned order on Lublin-1 under RLScheduler's protocol, beside the published columns.

    python benchmarks/lublin.py ../shared/traces/swf/lublin_256.swf --write 1      # some minutes a seed on one core
    python benchmarks/lublin.py ../shared/traces/swf/lublin_256.swf --write 1 --in_sample 1

Learned on jobs that are made by the model of which Lublin-1 is a sample (traces/lublin.py, the published parameters):
no job of the log is looked at, neither to learn nor to choose the weights that are kept. `--judge 0` stops before the
test sequences and tells how the weights do on those made to choose by, and on the log's jobs outside the test. In
sample, as RLScheduler's own column is, sequences are cut from the whole log, test sequences included. The policy is a
linear key of what the protocol lets a scheduler see and of the average day (benchmarks/lublin_play.py), found by an
evolution strategy (benchmarks/evolving.py).
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from benchmarks.conformance import Log, file_first, read_jobs, start_indices
from benchmarks.evolving import Evolution
from benchmarks.lublin_play import INPUTS, cycle_rows, job_rows, mean_slowdown
from berth.commandline import option, parse, run, written_whole
from berth.console import console, show_rows
from berth.errors import ConfigError
from berth.streams import stream
from traces.lublin import Model, daily_cycle, lublin_jobs

ROOT = Path(__file__).resolve().parent.parent
NUMBERS = ROOT / "docs/results/lublin.json"
PUBLISHED = {False: 254.67, True: 58.64}
"""RLScheduler's own RL column on Lublin-1 (SC'20, table V), without and with backfilling."""

LENGTH, SEQUENCES = 1024, 10
BEGIN = {
    "ln r": 4.0, "does not fit": -3.0, "does not fit · ln r": -2.0, "does not fit · ln n": 2.0, "ln r · ln n": -2.0,
    "ln arrivals in the delay": 3.0, "ln growth in the delay": 3.5, "ln slowdown": -3.0, "ln wait": 1.0,
}  # fmt: skip
"""Where searches begin: rounded from one on made jobs. Those from sjf without backfilling mostly end at jobs that fit.

What these weights say: a long job that does not fit may go next, if few others wait or come until it does.
"""

STEP = 0.5
SJF = np.eye(len(INPUTS))[0]


@dataclass(frozen=True)
class Config:
    """What benchmarks/lublin.py takes, beside the SWF file."""

    seeds: int = option(3, "searches, each with a seed of its own")
    rounds: int = option(60, "rounds of a search")
    candidates: int = option(20, "candidates in a round")
    sequences: int = option(24, "sequences to learn from, in a round: the same for all its candidates")
    chosen_on: int = option(200, "sequences on which the weights that are kept are chosen")
    in_sample: bool = option(False, "learn from the whole log, test sequences included, as the published column did")
    judge: bool = option(True, "judge on the test sequences")
    write: bool = option(False, f"put the numbers into {NUMBERS.relative_to(ROOT)}")


class Judge:
    """Scores weights on sequences of one machine, without or with backfilling."""

    def __init__(self, machine: int, backfill: bool) -> None:
        self.machine, self.backfill = machine, backfill
        self.day = cycle_rows(daily_cycle(Model(machine)))

    def __call__(self, sequences: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """Mean bounded slowdowns; (sequences,)."""
        play = (self.machine, self.backfill, self.day, weights)
        return np.array([mean_slowdown(jobs, *play) for jobs in sequences])


def cut(log: Log, first: int, length: int = LENGTH) -> np.ndarray:
    """Jobs of the log."""
    rows = slice(first, first + length)
    return job_rows(log.submit[rows], log.run_time[rows], log.request[rows], log.processors[rows], log.machine)


def made(machine: int, rng: np.random.Generator) -> np.ndarray:
    """A sequence of the model's jobs, from a random one of its first on."""
    jobs = lublin_jobs(Model(machine), 2 * LENGTH, rng)
    rows = slice(first := int(rng.integers(LENGTH)), first + LENGTH)
    return job_rows(jobs.submit[rows], jobs.run_time[rows], jobs.run_time[rows], jobs.processors[rows], machine)


def drawn(log: Log, in_sample: bool, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Sequences to learn from: of the whole log in sample, else made."""
    if in_sample:
        return [cut(log, int(first)) for first in rng.integers(len(log.submit) - LENGTH, size=count)]
    return [made(log.machine, rng) for _ in range(count)]


def unseen_by_the_test(log: Log, starts: Sequence[int]) -> list[tuple[int, int]]:
    """The stretches of jobs that are in no test sequence, the longest first."""
    used = np.zeros(len(log.submit), bool)
    for first in starts:
        used[first : first + LENGTH] = True
    edges = np.flatnonzero(np.diff(np.concatenate(([True], used, [True]))))
    return sorted(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True), key=lambda s: s[0] - s[1])


def search(log: Log, judge: Judge, seed: int, config: Config, judged: list[np.ndarray]) -> np.ndarray:
    """Weights found by evolution: of its means, and their average over the last third, the best on `judged`."""
    rng = stream(seed, f"lublin {judge.backfill} {config.in_sample}")
    begin = np.array([BEGIN.get(name, 0.0) for name in INPUTS])
    evolution = Evolution(begin, STEP, config.candidates, rng)
    means = []
    for _ in track(range(config.rounds), f"seed {seed}, backfilling {int(judge.backfill)}", console=console()):
        sequences = drawn(log, config.in_sample, config.sequences, rng)
        evolution.tell(np.array([np.log(judge(sequences, weights)).mean() for weights in evolution.ask()]))
        means.append(evolution.mean)
    kept = [*means[:: -max(1, config.rounds // 6)], np.mean(means[-max(1, config.rounds // 3) :], axis=0)]
    return kept[int(np.argmin([judge(judged, weights).mean() for weights in kept]))]


def interval(values: np.ndarray) -> str:
    """The 95 % interval of a mean over sequences, by bootstrap."""
    means = stream(0, "lublin bootstrap").choice(values, (10_000, len(values))).mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return f"[{low:.2f}, {high:.2f}]"


def shown(judge: Judge, sequences: list[np.ndarray], weights: np.ndarray) -> tuple[str, str]:
    """Mean scores of weights, and of sjf."""
    if not sequences:
        return "", ""
    return f"{judge(sequences, weights).mean():.2f}", f"{judge(sequences, SJF).mean():.2f}"


def check(config: Config) -> None:
    """Raise ConfigError for searches that cannot be."""
    for name, least in (("seeds", 1), ("rounds", 1), ("candidates", 4), ("sequences", 1), ("chosen_on", 1)):
        if getattr(config, name) < least:
            raise ConfigError(f"--{name} {getattr(config, name)}: want at least {least}")
    if config.write and not config.judge:
        raise ConfigError("--write 1 --judge 0: what is written has been judged; leave one out")


def main() -> None:
    """Search, judge on the ten test sequences, print."""
    path, words = file_first(sys.argv[1:])
    config = parse(Config, words, str(__doc__))
    check(config)
    log = read_jobs(path)
    if len(log.submit) < 2 * LENGTH + 2:
        raise ConfigError(f"{path}: {len(log.submit):,} jobs; want at least {2 * LENGTH + 2:,}")
    starts = list(start_indices(1, LENGTH, len(log.submit), SEQUENCES))
    low, high = unseen_by_the_test(log, starts)[0]
    outside = [cut(log, int(first)) for first in np.linspace(low, high - LENGTH, SEQUENCES)]
    test = [cut(log, first) for first in starts] if config.judge else []
    judged = drawn(log, config.in_sample, config.chosen_on, stream(0, f"lublin judged {config.in_sample}"))
    rows: list[tuple[str, ...]] = []
    told: list[dict[str, Any]] = []
    for backfill in (False, True):
        judge, published = Judge(log.machine, backfill), f"{PUBLISHED[backfill]:.2f}"
        for seed in range(config.seeds):
            weights = search(log, judge, seed, config, judged)
            there, each = shown(judge, judged, weights), judge(test, weights)
            cells = (*there, *shown(judge, outside, weights), *shown(judge, test, weights))
            rows.append((str(int(backfill)), str(seed), *cells, published))
            told.append({"in_sample": config.in_sample, "backfill": backfill, "seed": seed,
                         "chosen_on": float(there[0]), "sjf_chosen_on": float(there[1]),
                         "bsld": float(each.mean()) if test else None, "each": each.tolist(),
                         "weights": dict(zip(INPUTS, weights.tolist(), strict=True))})  # fmt: skip
        if test:
            mean = np.mean([row["each"] for row in told[-config.seeds :]], axis=0)
            rows.append((str(int(backfill)), "all", *[""] * 4, f"{mean.mean():.2f}", interval(mean), published))
    show_rows(
        f"{Path(path).name}: mean bounded slowdown, {'in' if config.in_sample else 'out of'} sample; below the seeds "
        "their mean and its 95 % interval over test sequences",
        ("backfilling", "seed", "chosen on", "sjf", "outside the test", "sjf", "test", "sjf", "RLScheduler's RL"), rows,
    )  # fmt: skip
    if config.write:
        old = json.loads(NUMBERS.read_text()) if NUMBERS.is_file() else []
        told = [row for row in old if row["in_sample"] != config.in_sample] + told
        with written_whole(NUMBERS) as begun:
            begun.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    run(main)
