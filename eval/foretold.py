"""Live runs beside what the simulator says of the same jobs, under the same policy, on the same cores."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from berth.errors import ConfigError
from envs.episode import Episode
from envs.options import Options
from envs.sim.simulator import simulate
from envs.stage import Stage, set_stage
from envs.workload import HOST, Workload, on_one_node
from eval.ledger import Entry, Ledger, read_ledger
from eval.played import Played, from_episode, from_schedule
from traces.trace import Trace
from train.export import find_exported
from train.forward import JobPolicy

BARELY = 1e-3
"""Seconds that a job counts as having run, at least."""


@dataclass(frozen=True)
class Live:
    """One live run: its jobs in the order of their submits, and what the simulator says of them."""

    ledger: Ledger
    entries: tuple[Entry, ...]
    workload: Workload  # the jobs as they were planned
    foretold: Played

    @property
    def name(self) -> str:
        """Policy, discipline, and what has run the jobs."""
        first = self.entries[0]
        return f"{first.policy} {first.discipline}, {first.backend}"

    def column(self, field: str) -> np.ndarray:
        """A field of all jobs."""
        return np.array([getattr(entry, field) for entry in self.entries])


class Difference(NamedTuple):
    """How far a live run is from what was foretold; seconds that passed, not those of the workload."""

    jobs: int
    failed: int
    wait: float  # mean
    wait_foretold: float
    turnaround: float  # mean of end - submit
    turnaround_foretold: float
    start_mean: float  # mean of |start - foretold start|
    start_median: float
    start_most: float
    start_bias: float  # mean of start - foretold start: above 0, jobs start later than foretold

    @property
    def wait_off(self) -> float:
        """By what share of the foretold mean wait the real one is off."""
        return _share(self.wait, self.wait_foretold)

    @property
    def turnaround_off(self) -> float:
        """By what share of the foretold mean turnaround the real one is off."""
        return _share(self.turnaround, self.turnaround_foretold)


def _share(real: float, foretold: float) -> float:
    return (real - foretold) / foretold if foretold else (0.0 if real == 0 else float("inf"))


def read_live(path: Path) -> Live:
    """Read a run's metrics and simulate its jobs; raises ConfigError where that cannot be."""
    ledger = read_ledger(path)
    if not ledger.entries:
        raise ConfigError(f"{path}: no job has ended yet; want the metrics of a run with some that have")
    first = ledger.entries[0]
    for entry in ledger.entries:
        for name in ("policy", "discipline", "backend", "cores", "speedup", "model", "seed"):
            if getattr(entry, name) != getattr(first, name):
                came = f"{getattr(first, name)} and {getattr(entry, name)}"
                raise ConfigError(f"{path}: {name} is {came}; want the metrics of one run")
    names = [entry.job_id for entry in ledger.entries]
    order = sorted(range(len(names)), key=lambda i: (ledger.entries[i].submit, _natural(names[i])))
    entries = tuple(ledger.entries[i] for i in order)
    workload = _workload(path.name, entries, np.array([entry.p for entry in entries]))
    return Live(ledger, entries, workload, _foretell(first, workload))


def _natural(name: str) -> tuple[int, int, str]:
    """Numbers in their own order, before other names."""
    return (0, int(name), "") if name.isdecimal() else (1, 0, name)


def _workload(name: str, entries: Sequence[Entry], run_time: np.ndarray) -> Workload:
    """Jobs on one host."""
    trace = Trace(
        name, "metrics", np.array([entry.job_id for entry in entries], dtype=object),
        np.array([entry.submit for entry in entries]), run_time, np.array([entry.n for entry in entries], np.int32),
    )  # fmt: skip
    return on_one_node(trace, entries[0].cores)


def _foretell(first: Entry, workload: Workload) -> Played:
    """What the simulator makes of the jobs under a run's policy."""
    if not first.model:
        return from_schedule(simulate(workload, first.policy, first.discipline, seed=first.seed))
    policy = JobPolicy(find_exported(first.model, "model"))
    own = dataclasses.replace(policy.options, seq_len=len(workload), warm_start=False, split="all")
    stage = set_stage(workload, own)
    episode = Episode(own, stage)
    episode.begin(stage, 0)
    while not episode.now["terminated"]:
        episode.step(policy.best(episode.observation, episode.arrays["prior"])[0])
    return from_episode(episode)


def difference(live: Live) -> Difference:
    """How far a run is from what was foretold."""
    speedup = live.entries[0].speedup
    origin = float(live.column("submit").min())
    submit, start, end = (live.column(name) - origin for name in ("submit", "start", "end"))
    off = (start - live.foretold.start) / speedup
    ends = live.foretold.start + live.workload.trace.run_time
    return Difference(
        len(live.entries), int(np.count_nonzero(~live.column("success"))),
        float((start - submit).mean()) / speedup, float((live.foretold.start - submit).mean()) / speedup,
        float((end - submit).mean()) / speedup, float((ends - submit).mean()) / speedup,
        float(np.abs(off).mean()), float(np.median(np.abs(off))), float(np.abs(off).max()), float(off.mean()),
    )  # fmt: skip


def shared_stage(runs: Sequence[Live]) -> tuple[Stage, Options]:
    """The jobs of runs as one window, each as long as it ran at least; raises ConfigError where the jobs differ."""
    first = runs[0]
    for other in runs[1:]:
        for name in ("job_id", "submit", "n", "p", "cores"):
            if not np.array_equal(first.column(name), other.column(name)):
                raise ConfigError(
                    f"{other.ledger.path}: other jobs than {first.ledger.path} ({name} differs); want runs of the same"
                )
    measured = np.stack([run.column("end") - run.column("start") for run in runs]).min(axis=0)
    run_time = np.maximum(np.minimum(first.column("p"), measured), BARELY)
    workload = _workload(first.ledger.path.name, first.entries, run_time)
    options = Options(cluster=HOST, seq_len=len(workload), warm_start=False, split="all", load=0.0)
    return set_stage(workload, options), options


def as_played(live: Live) -> Played:
    """When the jobs of a live run really started."""
    start = live.column("start") - float(live.column("submit").min())
    count = len(start)
    return Played(
        start, np.arange(count), np.ones(count, np.int32), np.zeros(count, np.int32),
        live.workload.trace.gpus.astype(np.int32),
    )  # fmt: skip
