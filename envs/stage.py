"""What episodes are cut from: the jobs of a trace, and what became of them when the baseline replayed it."""

import dataclasses
import itertools
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from allocation.choice import Allocation
from berth.compiled import is_compiled, records
from berth.errors import ConfigError, NothingFits, TraceError
from berth.streams import stream
from envs.clusters import CLUSTERS, find_cluster
from envs.knowledge import know, similar_jobs
from envs.options import Options, is_whole
from envs.sim.cluster import Cluster
from envs.sim.members import EVERY, ROSTER, list_unended
from envs.sim.nearby import line_up_groups
from envs.sim.setting import ENDED, histories_on_arrival, predict_on_arrival
from envs.sim.simulator import Simulation
from envs.sim.world import World
from envs.workload import Workload, prepare
from traces.parametric import PRESETS, Shape, generate_parametric
from traces.read import read_trace
from traces.trace import Trace

ROOT = Path(__file__).resolve().parent.parent

SAMPLED = 20_000
"""Jobs from which the load of fresh ones is found."""

LEAD = 512
"""Fresh jobs that come before the scored ones at least, so that the cluster has filled."""


class Stage(NamedTuple):
    """A workload, and what its episodes need of it; never changed, so that many environments can share it."""

    workload: Workload
    world: World  # the baseline's replay, after it has run
    roster: np.ndarray  # (jobs,) ROSTER
    groups: np.ndarray  # (jobs, levels) int32, similar jobs
    ended_at: np.ndarray  # (groups + 1,) where the jobs of each group stand in `ended`
    ended: np.ndarray  # ENDED, the jobs of each group by their ends
    every: int  # after how many jobs those that have not ended are listed
    unended_at: np.ndarray  # setting.list_unended
    unended: np.ndarray
    history: np.ndarray  # (jobs, features) what ended jobs told of each when it arrived
    line: np.ndarray  # (levels, jobs) nearby.line_up_groups: the jobs of each group in the order of submission
    line_at: np.ndarray  # (jobs, levels) where each stands there
    since: int = 0  # the first job of the split: jobs before it may run when an episode begins, but none waits

    def __deepcopy__(self, memo: dict[int, Any]) -> "Stage":
        """The stage itself."""
        return self


class Source(Protocol):
    """Where episodes come from."""

    notes: tuple[str, ...]
    stage: Stage

    def draw(self, rng: np.random.Generator) -> tuple[Stage, int]:
        """A stage, and the first job of a window on it."""

    def find(self, asked: Any) -> tuple[Stage, int]:
        """The window that a user asks for; raises ConfigError where there is none."""


def set_stage(workload: Workload, options: Options) -> Stage:
    """Replay a workload once with the baseline, or by the warm rule, and keep what episodes begin with.

    What is known of run times is what `runtime_info` allows, whoever has led the cluster; by a warm rule of its own, no
    job holds a pool when an episode begins. With `milp` the replay places by `lex`, on the same tiers: thousands of
    integer programs for a beginning would take minutes, and all sides begin alike.
    """
    allocation = options.placement
    if allocation.name == "milp":
        allocation = Allocation("lex", allocation.tiers)
    policy, discipline, told = options.warm
    replay = Simulation(workload, policy, discipline, "pool", allocation, told, options.workload_seed)
    replay.run()
    world, jobs = replay.world, replay.world.jobs
    roster = records(len(jobs), ROSTER)
    for name in ("submit", "run_time", "estimate", "start", "held", "place_at", "place_count", "gpus", "fewest", "pool",
                 "size_class"):  # fmt: skip
        roster[name] = jobs[name]
    roster["end"] = jobs["start"] + jobs["run_time"]
    roster["most"] = np.diff(jobs["place_at"], append=len(world.places))
    if options.policy.draw is not None:
        roster["given"] = options.policy.draw(len(jobs), options.workload_seed)
    if options.warm_rule:
        roster["held"] = -1.0
    elif options.asks_again:  # no pool is asked again before something happens to it
        roster["held"] = roster["submit"]
    groups = similar_jobs(workload.trace)
    ended_at, ended = by_end(groups, roster)
    every = max(EVERY, len(jobs) // EVERY)
    history = histories_on_arrival(roster, groups, ended_at, ended)
    stage = Stage(
        workload, world, roster, groups, ended_at, ended, every, *list_unended(roster, every), history,
        *line_up_groups(groups),
    )  # fmt: skip
    return stage if told == options.runtime_info else knowing(stage, options.runtime_info, options.workload_seed)


def knowing(stage: Stage, runtime_info: str, seed: int) -> Stage:
    """The same past, with other knowledge of run times."""
    known = know(stage.workload.trace, runtime_info, seed)
    roster, sim = stage.roster.copy(), stage.world.sim.copy()
    sim["predict"] = known.similar.shape[1] > 0
    roster["estimate"] = known.estimate
    if sim["predict"][0]:
        roster["estimate"] = predict_on_arrival(stage.roster, stage.groups, stage.ended_at, stage.ended)
    return stage._replace(roster=roster, world=stage.world._replace(sim=sim))


def by_end(groups: np.ndarray, roster: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each group begins, and the jobs of each by their ends, one group after the other."""
    there = groups.ravel() >= 0
    job = np.repeat(np.arange(len(groups), dtype=np.int32), groups.shape[1])[there]
    group = groups.ravel()[there]
    job = job[np.lexsort((job, roster["end"][job], group))]
    ended = records(len(job), ENDED)
    ended["end"], ended["run_time"] = roster["end"][job], roster["run_time"][job]
    begin = np.concatenate(([0], np.cumsum(np.bincount(group))))
    logs = np.cumsum(np.log1p(ended["run_time"]))
    before = np.concatenate(([0.0], logs))[begin[:-1]]
    ended["logs"] = logs - np.repeat(before, np.diff(begin))
    return begin, ended


class Windows:
    """Windows of a split of a trace."""

    def __init__(self, options: Options, trace: Trace | None = None, cluster: Cluster | None = None) -> None:
        if trace is None and cluster is None:
            self.stage, read_notes = _shared(options, (*_stamp(_trace_path(options)), *_stamp(options.cluster)))
        else:
            self.stage, read_notes = _staged(options, trace, cluster)
        submit = self.stage.roster["submit"]
        low, high = split_borders(submit, options.train_share, options.validation_share)[options.split]
        notes = list(read_notes)
        if options.workload:
            for note in notes:
                warnings.warn(note, stacklevel=4)
        there = high - low
        if options.batch_job_slice:
            if options.batch_job_slice > there:
                short = (
                    f"batch_job_slice {options.batch_job_slice:,}: the {options.split} split has only {there:,} jobs, "
                    "and all are used"
                )
                notes.append(short)
                warnings.warn(short, stacklevel=4)
            high = min(high, low + options.batch_job_slice)
        if high - low < options.seq_len:
            raise ConfigError(
                f"seq_len {options.seq_len:,}: the {options.split} split of {self.stage.workload.trace.name} has "
                f"{high - low:,} jobs" + (" in its slice" if high - low < there else "") + "; want a shorter episode "
                "or a longer trace" + ("" if options.split == "all" else ", or split all")
            )
        self.stage = self.stage._replace(since=low)
        self.first, self.last = low, high - options.seq_len
        self.notes = tuple(notes)

    def draw(self, rng: np.random.Generator) -> tuple[Stage, int]:
        """The stage, and the first job of a window anywhere in the split."""
        return self.stage, int(rng.integers(self.first, self.last + 1))

    def find(self, asked: Any) -> tuple[Stage, int]:
        """The window that begins at a job of the trace."""
        if not is_whole(asked) or not self.first <= asked <= self.last:
            raise ConfigError(
                f"first {asked}: want a whole number from {self.first:,} to {self.last:,}, where windows of the split "
                "begin"
            )
        return self.stage, int(asked)


class Fresh:
    """Jobs made anew for every episode, by the parametric generator.

    With a warm start as many jobs come before the scored ones as there are scored ones, at least LEAD; the baseline has
    them. Every split has jobs of its own: equal seeds give others in another split.
    """

    def __init__(self, options: Options, cluster: Cluster | None = None) -> None:
        self.options = options
        self.cluster = cluster or find_cluster(options.cluster)
        self.shape = PRESETS[options.preset or "synthetic"]
        if options.arrival_mode:
            self.shape = dataclasses.replace(self.shape, arrival_mode=options.arrival_mode)
        self.jobs = max(2, options.seq_len + (max(options.seq_len, LEAD) if options.warm_start else 0))
        topology = options.topology or self.cluster.default_topology
        load = options.load if options.load is not None else (0.95 if topology == "testbed" else 0.0)
        for _ in range(3 if load else 0):  # the gap is not in proportion to the load where days have nights
            gap = self.shape.gap * self._load() / load
            self.shape = dataclasses.replace(self.shape, gap=gap, burst_gap=min(self.shape.burst_gap, gap))
        self.notes: tuple[str, ...] = ()
        self.stage = self._stage(0)

    def _load(self) -> float:
        """The offered load of episodes like these: all their work, over all their time."""
        jobs = max(self.jobs, LEAD)
        made = [self._made(jobs, seed) for seed in range(max(8, SAMPLED // jobs) if jobs <= SAMPLED else 2)]
        work = sum(float(np.dot(one.trace.run_time, one.trace.gpus)) for one in made)
        span = sum(float(one.trace.submit[-1] - one.trace.submit[0]) for one in made)
        return work / (int(made[0].nodes.capacity.sum()) * max(span, 1.0))

    def draw(self, rng: np.random.Generator) -> tuple[Stage, int]:
        """A stage of its own, and the first scored job on it."""
        number = int(rng.integers(2**31))
        stage = self._stage(int(stream(number, f"fresh {self.options.split}").integers(2**31)))
        return stage, len(stage.roster) - self.options.seq_len

    def find(self, asked: Any) -> tuple[Stage, int]:
        """Raises ConfigError."""
        raise ConfigError(f"first {asked}: fresh jobs have no windows to choose from; want a trace, or a seed")

    def _stage(self, seed: int) -> Stage:
        """Jobs of one episode, replayed; more are made where some can never fit, as far as that is sensible."""
        for jobs in (self.jobs << doublings for doublings in range(11)):
            with suppress(NothingFits):  # by chance; among more jobs some may
                made = self._made(jobs, seed)
                if len(made) >= self.jobs:
                    return set_stage(made, self.options)
        raise NothingFits(f"of {jobs:,} fresh jobs fewer than {self.jobs:,} fit the cluster; want larger pools")

    def _made(self, jobs: int, seed: int) -> Workload:
        shape: Shape = dataclasses.replace(self.shape, burst_size=min(self.shape.burst_size, float(jobs)))
        trace = generate_parametric(shape, jobs, seed, "fresh jobs")
        o = self.options
        pools = seed if self.cluster.pool_by else None
        return prepare(trace, self.cluster, o.topology, load=0, assign_pools=pools, allocation=o.placement.name)


class Listed:
    """Windows that somebody has chosen, asked for by their places in the list."""

    def __init__(self, windows: Sequence[tuple[Stage, int]]) -> None:
        self.windows = tuple(windows)
        self.notes: tuple[str, ...] = ()
        self.stage = self.windows[0][0]

    def draw(self, rng: np.random.Generator) -> tuple[Stage, int]:
        """Any of them."""
        return self.windows[int(rng.integers(len(self.windows)))]

    def find(self, asked: Any) -> tuple[Stage, int]:
        """The window at a place in the list."""
        if not is_whole(asked) or not 0 <= asked < len(self.windows):
            raise ConfigError(f"first {asked}: want a whole number from 0 to {len(self.windows) - 1}")
        return self.windows[int(asked)]


def find_source(options: Options, trace: Trace | None = None, cluster: Cluster | None = None) -> Source:
    """Where the episodes of some options come from."""
    _tell_of_compiling()
    return Fresh(options, cluster) if options.is_fresh else Windows(options, trace, cluster)


@lru_cache(maxsize=1)
def _tell_of_compiling() -> None:
    """Say that the first environment takes a while, once in a process."""
    if not is_compiled("_played"):
        print("compiling the environments for this machine, once; two to three minutes ...", file=sys.stderr)


def split_borders(submit: np.ndarray, train_share: float, validation_share: float) -> dict[str, tuple[int, int]]:
    """The jobs low..high - 1 of every split: shares of the jobs in the order of time; one second is never divided."""
    jobs = len(submit)
    borders = [0]
    for share in (train_share, train_share + validation_share):
        at = min(round(share * jobs), jobs - 1)
        borders.append(int(np.searchsorted(submit, submit[at], side="left")))
    borders.append(jobs)
    splits = dict(zip(("train", "validation", "test"), itertools.pairwise(borders), strict=True))
    return {**splits, "all": (0, jobs)}


def _trace_path(options: Options, given: Cluster | None = None) -> str:
    if options.workload:
        return options.workload
    cluster = given or find_cluster(options.cluster)
    if not cluster.trace:
        raise ConfigError(f"cluster {cluster.name} has no trace of its own; want a workload")
    return str(ROOT / cluster.trace) if CLUSTERS.get(cluster.name) is cluster else cluster.trace


def _stamp(path: str) -> tuple[str, int, int]:
    """What tells whether a file has changed."""
    try:
        told = Path(path).stat()
    except OSError:
        return path, 0, 0
    return path, told.st_mtime_ns, told.st_size


def _sound(trace: Trace) -> Trace:
    """A Trace that a user has made, if it can be simulated; raises TraceError."""
    if len(trace) == 0:
        raise TraceError(f"{trace.name}: no jobs, want at least one")
    wrong = {
        "submit": ~np.isfinite(trace.submit),
        "run_time": ~(np.isfinite(trace.run_time) & (trace.run_time > 0)),
        "gpus": ~(trace.gpus >= 1),
    }
    for name, rows in wrong.items():
        if rows.any():
            row = int(np.argmax(rows))
            want = {"submit": "a finite number", "run_time": "a number > 0", "gpus": ">= 1"}[name]
            raise TraceError(f"{trace.name}: {name} of job {row} is {getattr(trace, name)[row]}, want {want}")
    return trace


_IRRELEVANT = {
    "split": "train", "train_share": 0.6, "validation_share": 0.2, "batch_job_slice": 0, "seq_len": 256,
    "warm_start": True, "horizon_factor": 0.0, "max_steps": 0, "window": 128, "window_order": "baseline",
    "invalid_action": "replace", "lookahead_mode": "cdf", "score_type": "wait", "reward": "dense",
    "prior": "", "score_backlog": False,
}  # fmt: skip
"""Options that do not touch the replay."""


def _shared(options: Options, stamp: tuple[str | int, ...]) -> tuple[Stage, tuple[str, ...]]:
    return _kept(dataclasses.replace(options, **_IRRELEVANT), stamp)  # type: ignore[arg-type]


@lru_cache(maxsize=8)
def _kept(options: Options, stamp: tuple[str | int, ...]) -> tuple[Stage, tuple[str, ...]]:
    """The stage of a file, which environments of one process share."""
    return _staged(options, None, None)


def _staged(options: Options, trace: Trace | None, cluster: Cluster | None) -> tuple[Stage, tuple[str, ...]]:
    cluster = cluster or find_cluster(options.cluster)
    trace = _sound(trace) if trace is not None else read_trace(_trace_path(options, cluster))
    workload = prepare(trace, cluster, options.topology, options.load, options.assign_pools, options.placement.name)
    return set_stage(workload, options), workload.notes
