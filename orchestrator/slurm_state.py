"""A cluster under Slurm at one moment, in rows of our own."""

import math
from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from berth.errors import SchedulerError
from envs.recalling import Kin, Recalled, recall, tell_nearby
from envs.snapshot import UP, Snapshot

NOT_READY = frozenset({
    "Dependency", "DependencyNeverSatisfied", "JobHeldUser", "JobHeldAdmin", "BeginTime", "JobArrayTaskLimit",
    "InvalidAccount", "InvalidQOS", "BadConstraints", "FedJobLock", "JobLaunchFailure", "Prolog", "Cleaning",
})  # fmt: skip
"""Reasons of jobs that could not start however empty the cluster were; they are left alone until they can."""

RUNTIME_INFO = ("request", "predicted", "hidden")
"""What a policy may know of run times: time limits, what ended jobs tell, nothing."""


class Job(NamedTuple):
    """A job that waits, runs, or has ended."""

    id: int  # Slurm's number; tasks of an array that have not been told apart share one
    word: str  # what scontrol calls it: 22, 28_3, 28_[4-9]
    user: str
    account: str
    partitions: tuple[str, ...]
    state: str  # PENDING, RUNNING, COMPLETED ...
    submit: float  # s since 1970
    gpus: int  # asked for, or held where it runs; processors where these are counted
    array: int = 0  # the array's number, 0 where it is none
    reason: str = ""  # why it waits
    eligible: float = math.nan  # s since 1970, NaN while that is not known
    start: float = math.nan  # s since 1970
    end: float = math.nan  # s since 1970, of a job that has ended
    limit: float = math.nan  # s, NaN where there is none
    priority: int = 0  # 0: held
    site: int | None = 0  # the site factor in it; None: Slurm does not tell
    nice: int = 0
    comment: str = ""
    restarts: int = 0
    nodes: int = 1  # how many it asks for, at least
    cores: int = 0
    memory: float = 0.0  # MB, in all
    asked: str = ""  # nodes that it must run on
    places: tuple[tuple[str, int], ...] = ()  # where it runs: node, GPUs


class Node(NamedTuple):
    """A node that runs jobs."""

    name: str
    partitions: tuple[str, ...]
    state: int  # UP, DRAINED, DOWN
    gpus: int  # processors where these are counted
    used: int
    cores: int = 0
    used_cores: int = 0
    memory: float = 0.0  # MB
    used_memory: float = 0.0  # MB


class State(NamedTuple):
    """All that was read."""

    now: float  # s since 1970
    pending: tuple[Job, ...]  # in the order in which Slurm will take them
    running: tuple[Job, ...]
    ended: tuple[Job, ...]
    nodes: tuple[Node, ...]


AHEAD = 60.0
"""How many seconds the controller's clock may be ahead of ours."""


def is_ready(job: Job, now: float) -> bool:
    """Whether a pending job could start if there were room: not held, no dependency, no later beginning."""
    return job.priority > 0 and job.eligible <= now + AHEAD and job.reason not in NOT_READY


def in_order(jobs: Sequence[Job]) -> list[Job]:
    """Pending jobs as Slurm takes them: by priority, then by number."""
    return sorted(jobs, key=lambda job: (-job.priority, job.id))


def check_partitions(state: State, names: Iterable[str]) -> None:
    """Raise SchedulerError for a partition that no node is in."""
    known = {name for node in state.nodes for name in node.partitions}
    for name in names:
        if name not in known:
            raise SchedulerError(f"--partition {name}: no node is in it; want one of {', '.join(sorted(known))}")


def snapshot_of(
    state: State,
    queued: Sequence[Job],
    partitions: Sequence[str] = (),
    info: str = "request",
    assumed: float = math.nan,
) -> Snapshot:
    """What a policy sees, as the simulator would show it: a pool for each partition, seconds from the earliest submit.

    A node belongs to the first of the partitions that it is in; all partitions are one pool where none is named.
    `info` is one of RUNTIME_INFO; `assumed` is the time limit of jobs that have none, else what ended jobs tell stands
    for it. Jobs that run elsewhere are left out.
    """
    names = tuple(partitions) or ("all",)
    nodes = [(node, _pool(node.partitions, partitions)) for node in state.nodes if node.gpus > 0]
    used = sorted({pool for _, pool in nodes if pool >= 0})  # a partition without a node of its own is no pool
    number = {pool: i for i, pool in enumerate(used)}
    nodes = [(node, number[pool]) for node, pool in nodes if pool >= 0]
    row = {node.name: i for i, (node, _) in enumerate(nodes)}
    running = _running_on(state, row)
    origin = min((job.submit for job in (*queued, *running)), default=state.now)
    told, guess = _recalled(state, queued), _recalled(state, running).run_time
    counts = [len(job.places) for job in running]
    taken = dict.fromkeys(row, 0)  # nodes and jobs are not read in the same moment: what either says is taken, is
    for name, gpus in (place for job in running for place in job.places):
        taken[name] += gpus
    start = _column(job.start for job in running) - origin
    submit = np.minimum(_column(job.submit for job in queued), state.now) - origin
    pool_of = [nodes[row[job.places[0][0]]][1] for job in running]
    return Snapshot(
        now=state.now - origin,
        job=_whole(job.id for job in queued),
        submit=submit,
        wait=state.now - origin - submit,
        gpus=_whole(job.gpus for job in queued),
        run_time=_known(queued, told.run_time, info, assumed),
        pool=_whole(max(0, number.get(_pool(job.partitions, partitions), 0)) for job in queued),
        running_job=_whole(job.id for job in running),
        running_start=np.minimum(start, state.now - origin),
        running_gpus=_whole(job.gpus for job in running),
        running_pool=_whole(pool_of),
        running_end=start + _known(running, guess, info, assumed),
        free=_whole(max(0, node.gpus - max(node.used, taken[node.name])) * (node.state == UP) for node, _ in nodes),
        capacity=_whole(node.gpus for node, _ in nodes),
        node_pool=_whole(pool for _, pool in nodes),
        history=told.history,
        nearby=_nearby(state, running, queued, told.history),
        cores=_column(job.cores for job in queued),
        memory=_column(job.memory for job in queued),
        running_guess=guess,
        place_at=np.concatenate(([0], np.cumsum(counts, dtype=np.int64))),
        place_node=_whole(row[name] for job in running for name, _ in job.places),
        place_gpus=_whole(gpus for job in running for _, gpus in job.places),
        node_state=np.array([node.state for node, _ in nodes], np.int8),
        node_name=np.array([node.name for node, _ in nodes], object),
        node_cores=_column(node.cores for node, _ in nodes),
        node_free_cores=_column(max(0, node.cores - node.used_cores) for node, _ in nodes),
        node_memory=_column(node.memory for node, _ in nodes),
        node_free_memory=_column(max(0.0, node.memory - node.used_memory) for node, _ in nodes),
        pool_name=tuple(names[pool] for pool in used),
    )


def _running_on(state: State, nodes: Container[str]) -> list[Job]:
    """The jobs that have GPUs on some nodes, with these alone."""
    here = [
        job._replace(places=tuple((name, gpus) for name, gpus in job.places if name in nodes and gpus > 0))
        for job in state.running
    ]
    return [job._replace(gpus=sum(gpus for _, gpus in job.places)) for job in here if job.places]


def _pool(there: Sequence[str], partitions: Sequence[str]) -> int:
    """The first of the partitions that a node or a job is in, -1 where it is in none."""
    if not partitions:
        return 0
    return next((i for i, name in enumerate(partitions) if name in there), -1)


def _recalled(state: State, jobs: Sequence[Job]) -> Recalled:
    """What ended jobs told of jobs when they came."""
    ended = [job for job in state.ended if job.end > job.start]
    run_time = _column(job.end - job.start for job in ended)
    return recall(_kin(ended), _column(job.end for job in ended), run_time, _kin(jobs), _column(j.submit for j in jobs))


def _nearby(state: State, running: Sequence[Job], queued: Sequence[Job], history: np.ndarray) -> np.ndarray:
    """What jobs submitted next to those that wait have told by now."""
    ended = [job for job in state.ended if job.end > job.start]
    jobs = [*ended, *running, *queued]
    start = [*(job.start for job in (*ended, *running)), *(math.inf for _ in queued)]
    end = [*(job.end for job in ended), *(math.inf for _ in (*running, *queued))]
    number, submit = _whole(job.id for job in jobs), _column(job.submit for job in jobs)
    return tell_nearby(_kin(jobs), number, submit, _column(start), _column(end), history, state.now)


def _kin(jobs: Sequence[Job]) -> Kin:
    users = np.array([job.user or "-1" for job in jobs], object)
    return Kin(users, np.array([job.account or "-1" for job in jobs], object), _whole(job.gpus for job in jobs))


def _known(jobs: Sequence[Job], told: np.ndarray, info: str, assumed: float) -> np.ndarray:
    """Run times as far as they may be known."""
    if info == "hidden":
        return np.full(len(jobs), np.nan)
    if info == "predicted":
        return told
    limit = _column(job.limit for job in jobs)
    return np.where(limit > 0, limit, np.where(np.isnan(assumed), told, assumed))


def _column(values: Iterable[float]) -> np.ndarray:
    return np.array(list(values), np.float64)


def _whole(values: Iterable[int]) -> np.ndarray:
    return np.array(list(values), np.int64)
