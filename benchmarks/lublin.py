"""A learned order on Lublin-1 under RLScheduler's protocol, beside the published columns.

    python benchmarks/lublin.py ../shared/traces/swf/lublin_256.swf --write 1      # some minutes a seed on one core
    python benchmarks/lublin.py ../shared/traces/swf/lublin_256.swf --write 1 --in_sample 1

Learned on the jobs that are in none of the ten test sequences: sequences to learn from are cut from the longest stretch
of them, and the candidate that is kept is chosen there and on the next stretch. In sample, as RLScheduler's own column
is, sequences are cut from the whole log, test sequences included, and so is what the candidate is chosen on. The policy
is a linear key of what the protocol lets a scheduler see, found by the cross-entropy method. It is run by
legacy/rlscheduler.py, which prints the published table of heuristics to every digit (tests/test_conformance.py).
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.progress import track

from benchmarks.conformance import Log, file_first, read_jobs, start_indices
from berth.commandline import option, parse, run, written_whole
from berth.console import console, show_rows
from berth.streams import stream
from legacy.rlscheduler import Job, Machine, play

ROOT = Path(__file__).resolve().parent.parent
NUMBERS = ROOT / "docs/results/lublin.json"
PUBLISHED = {False: 254.67, True: 58.64}
"""RLScheduler's own RL column on Lublin-1 (SC'20, table V), without and with backfilling."""

LENGTH, SEQUENCES = 1024, 10
ELITE = 0.25
FEATURES = ("ln r", "ln n", "does not fit", "does not fit · ln n", "does not fit · ln r", "ln r · ln n",
            "ln (1 + wait)", "ln n · idle share")  # fmt: skip
BEGIN = np.array([1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
SPREAD = np.array([0.3, 0.5, 1.0, 0.5, 0.3, 0.1, 0.2, 0.5])


@dataclass(frozen=True)
class Config:
    """What benchmarks/lublin.py takes, beside the SWF file."""

    seeds: int = option(3, "searches, each with a seed of its own")
    rounds: int = option(15, "rounds of a search")
    candidates: int = option(16, "candidates in a round")
    sequences: int = option(4, "sequences to learn from, in a round")
    in_sample: bool = option(False, "learn from the whole log, test sequences included, as the published column did")
    write: bool = option(False, f"put the numbers into {NUMBERS.relative_to(ROOT)}")


def sequence(log: Log, first: int, length: int) -> list[Job]:
    """Jobs of the log."""
    return [
        Job(i, float(log.submit[i]), float(log.run_time[i]), float(log.request[i]), int(log.processors[i]))
        for i in range(first, first + length)
    ]


def score(jobs: Sequence[Job], processors: int, backfill: bool, decide: Callable[[Machine], Job]) -> float:
    """Mean bounded slowdown of a sequence."""
    start = play(jobs, processors, backfill, decide)
    return float(np.mean([max(1.0, (start[j.number] - j.submit + j.run_time) / max(j.run_time, 10)) for j in jobs]))


def by_weights(weights: np.ndarray) -> Callable[[Machine], Job]:
    """Whoever has the lowest weighted sum of features goes first."""

    def _decide(machine: Machine) -> Job:
        waiting = machine.waiting
        r = np.log(np.maximum([job.request for job in waiting], 1.0))
        n = np.log([job.processors for job in waiting])
        unfit = (np.array([job.processors for job in waiting]) > machine.free).astype(float)
        wait = np.log1p(machine.now - np.array([job.submit for job in waiting]))
        idle = machine.free / machine.processors
        columns = (r, n, unfit, unfit * n, unfit * r, r * n, wait, n * idle)
        return waiting[int(np.argmin(sum(w * column for w, column in zip(weights, columns, strict=True))))]

    return _decide


def unseen_by_the_test(log: Log, starts: Sequence[int]) -> list[tuple[int, int]]:
    """The stretches of jobs that are in no test sequence, the longest first."""
    used = np.zeros(len(log.submit), bool)
    for first in starts:
        used[first : first + LENGTH] = True
    edges = np.flatnonzero(np.diff(np.concatenate(([True], used, [True]))))
    return sorted(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True), key=lambda s: s[0] - s[1])


def search(log: Log, backfill: bool, seed: int, config: Config, stretches: list[tuple[int, int]]) -> np.ndarray:
    """The cross-entropy method: the best of each round tell where the next round looks."""
    rng = stream(seed, f"lublin {backfill}")
    (low, high), check = stretches[0], stretches[1]
    length = min(LENGTH, (high - low) // 2)
    judged = [sequence(log, check[0], min(LENGTH, check[1] - check[0])), sequence(log, low, length)]
    judged += [sequence(log, high - length, length), sequence(log, (low + high - length) // 2, length)]
    middle, spread = BEGIN.copy(), SPREAD.copy()
    best, lowest = middle, float("inf")
    for _ in track(range(config.rounds), f"seed {seed}, backfilling {int(backfill)}", console=console()):
        chosen = rng.integers(low, high - length, size=config.sequences)
        played = [sequence(log, int(first), length) for first in chosen]
        tried = middle + spread * rng.standard_normal((config.candidates, len(middle)))
        found = [np.mean([np.log(score(jobs, log.machine, backfill, by_weights(w))) for jobs in played]) for w in tried]
        elite = tried[np.argsort(found)[: max(2, int(ELITE * config.candidates))]]
        middle = 0.3 * middle + 0.7 * elite.mean(axis=0)
        spread = 0.3 * spread + 0.7 * elite.std(axis=0)
        now = float(np.mean([np.log(score(jobs, log.machine, backfill, by_weights(middle))) for jobs in judged]))
        if now < lowest:
            best, lowest = middle.copy(), now
    return best


def main() -> None:
    """Search, judge on the ten test sequences, print."""
    path, words = file_first(sys.argv[1:])
    config = parse(Config, words, str(__doc__))
    log = read_jobs(path)
    starts = list(start_indices(1, LENGTH, len(log.submit), SEQUENCES))
    whole = [(0, len(log.submit))] * 2
    stretches = whole if config.in_sample else unseen_by_the_test(log, starts)
    rows, told = [], []
    for backfill in (False, True):
        for seed in range(config.seeds):
            weights = search(log, backfill, seed, config, stretches)
            each = [score(sequence(log, at, LENGTH), log.machine, backfill, by_weights(weights)) for at in starts]
            rows.append((str(int(backfill)), str(seed), f"{np.mean(each):.2f}", f"{PUBLISHED[backfill]:.2f}"))
            told.append({"in_sample": config.in_sample, "backfill": backfill, "seed": seed,
                         "bsld": float(np.mean(each)), "each": each,
                         "weights": dict(zip(FEATURES, weights.tolist(), strict=True))})  # fmt: skip
    show_rows(
        f"{Path(path).name}: mean bounded slowdown of ten sequences; learned on jobs {stretches[0][0]} to "
        f"{stretches[0][1] - 1}, chosen on those and {stretches[1][0]} to {stretches[1][1] - 1}",
        ("backfilling", "seed", "learned", "RLScheduler's RL"), rows,
    )  # fmt: skip
    if config.write:
        old = json.loads(NUMBERS.read_text()) if NUMBERS.is_file() else []
        told = [row for row in old if row["in_sample"] != config.in_sample] + told
        with written_whole(NUMBERS) as begun:
            begun.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    run(main)
