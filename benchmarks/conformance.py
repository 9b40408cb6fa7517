"""Print RLScheduler's table of heuristics (SC'20, tables V and VI) for an SWF file, run by our kernel.

    python benchmarks/conformance.py lublin_256.swf --len 1024 --iter 10 --seed 1 --csv OUT.csv

The protocol is theirs, odd rules included: envs/sim/one_by_one.py and docs/semantics.md tell them.
"""

import csv
import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.table import Table

from allocation.placers import LEX
from berth.commandline import option, parse, run, writable_file
from berth.console import console
from berth.errors import ConfigError
from envs.metrics import bounded_slowdown
from envs.sim import priorities
from envs.sim.cluster import Nodes
from envs.sim.one_by_one import replay_one_by_one
from envs.sim.state import ONE_BY_ONE, ONE_BY_ONE_EASY
from envs.sim.world import make_world
from traces.cells import Names, number
from traces.swf import read_log, require_machine
from traces.table import MOST

POLICIES = ("fcfs", "wfp3_published", "unicep_published", "sjf", "f1", "wfp3", "unicep")
"""Those `_published` use the waiting time -1 - submit, as the published table does; the others the true one."""


@dataclass(frozen=True)
class Config:
    """What benchmarks/conformance.py takes, beside the SWF file."""

    len: int = option(1024, "jobs per sequence")
    iter: int = option(10, "sequences")
    seed: int = option(1, "seed of the start indices, as 2019's gym makes a generator of it")
    max_jobs: int = option(0, "draw start indices from this many jobs, 0 = all")
    csv: str = option("", "write policy, backfill, metric, value there", metavar="OUT.csv")


class Log(NamedTuple):
    """The jobs of an SWF file by RLScheduler's rules, in order of job number."""

    submit: np.ndarray  # (jobs,) s
    run_time: np.ndarray  # (jobs,) s
    request: np.ndarray  # (jobs,) s
    processors: np.ndarray  # (jobs,)
    taken: np.ndarray  # (jobs,) nodes, whole ones
    nodes: int
    machine: int  # processors of the machine


class Result(NamedTuple):
    """Scores of one sequence."""

    bsld: float
    utilization: float


def read_jobs(path: str | Path) -> Log:
    """Read an SWF file by RLScheduler's rules; raises TraceError for a malformed row or a missing machine size."""
    log = read_log(path)
    nodes, _ = require_machine(path, log)
    machine = log.max_procs or nodes
    table = log.table
    run_time, requested, submit = (
        table.numbers(field, -MOST) for field in ("run_time", "requested_time", "submit_time")
    )
    table.columns["job_number"] = number(table["job_number"].tolist(), Names())
    job_number = table.numbers("job_number", -MOST)
    request = np.where(requested == -1, run_time, requested)
    run_time = np.where(run_time < 0, 10.0, run_time)
    processors = np.maximum(
        table.numbers("allocated_processors", low=-1), table.numbers("requested_processors", low=-1)
    )
    table.require()
    order = np.argsort(job_number, kind="stable")
    order = order[run_time[order] != 0]
    taken = np.ceil(np.maximum(processors, 0) / (machine / nodes)).astype(np.int32)
    return Log(submit[order], run_time[order], request[order], processors[order], taken[order], nodes, machine)


def start_indices(seed: int, length: int, size: int, count: int) -> Iterator[int]:
    """Where the sequences begin: randint(length, size - length - 1) of the generator that gym made of a seed in 2019.

    Its state comes from the first 8 bytes of sha512(str(seed)), read as little-endian 32-bit words.
    """
    words = np.frombuffer(hashlib.sha512(str(seed).encode()).digest()[:8], "<u4")
    words = words[: np.max(np.flatnonzero(words), initial=0) + 1]
    generator = np.random.RandomState()
    generator.seed(words.tolist())
    for _ in range(count):
        yield int(generator.randint(length, size - length - 1))


def known_keys(policy: str, log: Log) -> np.ndarray | None:
    """The keys of a policy that does not look at the clock, or None."""
    s, r, n = log.submit, log.request, log.processors
    never = -1 - s  # the published table's waiting time
    with np.errstate(divide="ignore", invalid="ignore"):
        if policy == "fcfs":
            return s
        if policy == "sjf":
            pairs = np.stack((r, s), axis=1)
            return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1).astype(np.float64)
        if policy == "f1":
            return np.log10(np.where(r > 0, r, 0.1)) * n + 870 * np.log10(np.where(s > 0, s, 0.1))
        if policy == "wfp3_published":
            return -((never / r) ** 3) * n
        if policy == "unicep_published":
            return -(never + 1e-15) / (np.log2(n + 1e-15) * r)
    return None


def run_sequence(log: Log, rows: slice, policy: str, keys: np.ndarray | None, backfill: bool) -> Result:
    """Simulate the jobs of one sequence and score them."""
    submit, run_time, request, processors, taken = (column[rows] for column in log[:5])
    nodes = Nodes(np.ones(log.nodes, np.int32), np.array([0, log.nodes], np.int32), np.array([log.nodes]))
    count = len(submit)
    world = make_world(
        nodes,
        pool=np.zeros(count, np.int32),
        submit=submit,
        run_time=run_time,
        gpus=taken,
        estimate=request,
        similar=np.empty((count, 0), np.int32),
        one_queue=True,
        placer=LEX,
    )
    if keys is None:
        world = world.listed({"wfp3": priorities.WFP3, "unicep": priorities.UNICEP}[policy])
    else:
        world = world.listed(priorities.GIVEN)
        world.links["key"] = keys[rows]
    world.jobs["asked"] = processors
    world.sim["discipline"] = ONE_BY_ONE_EASY if backfill else ONE_BY_ONE
    replay_one_by_one(*world.single())
    start = world.jobs["start"]
    passed = start.max() - submit[0]
    work = float(np.dot(run_time, processors))
    utilization = work / (passed * log.machine) if passed > 0 else float("nan")
    return Result(float(bounded_slowdown(start - submit, run_time).mean()), utilization)


def table_of(log: Log, config: Config) -> dict[tuple[str, int], Result]:
    """Mean scores over all sequences, by policy and backfilling; raises ConfigError where they do not fit in."""
    size = min(config.max_jobs or len(log.submit), len(log.submit))
    if config.len < 1 or config.iter < 1:
        raise ConfigError(f"--len {config.len} --iter {config.iter}: want numbers >= 1")
    if size - config.len - 1 <= config.len:
        raise ConfigError(
            f"{len(log.submit):,} jobs and --max_jobs {config.max_jobs}: too few for sequences of {config.len:,}; "
            f"want at least {2 * config.len + 2:,} jobs"
        )
    starts = list(start_indices(config.seed, config.len, size, config.iter))
    if any((log.taken[at : at + config.len] > log.nodes).any() for at in starts):
        raise ConfigError(f"jobs in the sequences need more than the machine's {log.nodes:,} nodes and would never run")
    scores = {}
    for policy in POLICIES:
        keys = known_keys(policy, log)
        for backfill in (0, 1):
            runs = [run_sequence(log, slice(at, at + config.len), policy, keys, bool(backfill)) for at in starts]
            scores[policy, backfill] = Result(*(float(np.mean(column)) for column in zip(*runs, strict=True)))
    return scores


def file_first(words: list[str]) -> tuple[str, list[str]]:
    """Split a command line into the SWF file and the rest."""
    if words and not words[0].startswith("-"):
        return words[0], words[1:]
    if {"--help", "-h"} & set(words):
        return "", words
    raise ConfigError(
        f"want an SWF file first: python benchmarks/{Path(sys.argv[0]).name} FILE.swf[.gz] [--option ...]"
    )


def main() -> None:
    """Print the table, and write it as CSV if asked to."""
    path, words = file_first(sys.argv[1:])
    config = parse(Config, words, description=str(__doc__))
    out = writable_file("--csv", config.csv, ".csv") if config.csv else None
    scores = table_of(read_jobs(path), config)
    head = f"{Path(path).name}: {config.iter} sequences of {config.len:,} jobs, seed {config.seed}"
    table = Table(title=head, title_justify="left", header_style="")
    for name in ("metric", "backfill", *POLICIES):
        table.add_column(name, justify="right")
    for metric in Result._fields:
        for backfill in (0, 1):
            digits = 3 if metric == "bsld" else 5
            cells = [f"{getattr(scores[policy, backfill], metric):.{digits}f}" for policy in POLICIES]
            table.add_row(metric, str(backfill), *cells)
    console().print(table)
    if out is not None:
        with out.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("policy", "backfill", "metric", "value"))
            for (policy, backfill), result in scores.items():
                for metric, value in result._asdict().items():
                    writer.writerow((policy, backfill, metric, f"{value:.8f}"))
        console().print(f"CSV: {config.csv}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    run(main)
