"""What jobs that came before teach of starts to come."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from berth.errors import SnapshotError
from envs.desk import arranged
from envs.policies import POLICIES
from envs.recalling import Kin, predicted
from envs.sim.cluster import Pool
from envs.snapshot import Snapshot
from envs.workload import Workload, can_fit
from orchestrator.arrivals import NOBODY, Coming
from orchestrator.calibrating import Ends, fitted
from orchestrator.doubting import Doubt, learn, unended, unlearned
from orchestrator.replaying import Replay
from orchestrator.slurm_state import Job, State
from traces.trace import Trace

FEWEST = 200
"""How many ended jobs it takes to learn from them how far run times are from what is expected."""

LEADER = "fcfs"
"""Under whom the past is replayed for an order that is no policy of the simulator."""

FROM, DRAWS = 0.4, 20
"""From which share of the past on forecasts are tried on it, and with how many draws each."""

_POOL_COLUMNS = ("partition", "queue", "vc", "gpu_type")


def doubt_of(jobs: Trace, running: Trace | None = None) -> Doubt:
    """What ended jobs teach of run times, where they are enough, and jobs that run (run times: so far) besides."""
    if len(jobs) < FEWEST:
        return unlearned()
    both = [jobs] if running is None else [jobs, running]
    kin = Kin(*(np.concatenate(columns) for columns in zip(*map(_kin, both), strict=True)))
    waited = 0.0 if jobs.wait is None else np.maximum(jobs.wait, 0.0)
    end = np.full(len(kin.gpus), np.inf)
    end[: len(jobs)] = jobs.submit + waited + jobs.run_time
    submit, run_time = (np.concatenate([getattr(one, name) for one in both]) for name in ("submit", "run_time"))
    return learn(kin, submit, end, run_time)


def _kin(jobs: Trace) -> Kin:
    unknown = np.full(len(jobs), "-1", object)
    return Kin(unknown if jobs.user is None else jobs.user, unknown if jobs.vc is None else jobs.vc, jobs.gpus)


def ended_jobs(state: State, now: float) -> Trace:
    """The jobs of a live cluster that have run, as a trace on the clock that says `now`."""
    jobs = [job for job in state.ended if job.end > job.start and job.gpus > 0]
    return _trace("ended jobs", jobs, [job.end for job in jobs], state.now - now)


def running_jobs(state: State, now: float) -> Trace:
    """The jobs of a live cluster that run, as a trace on the clock that says `now`; run times are until then."""
    jobs = [job for job in state.running if job.start <= state.now and job.gpus > 0]
    return _trace("running jobs", jobs, [state.now] * len(jobs), state.now - now)


def _trace(name: str, jobs: Sequence[Job], until: Sequence[float], ahead: float) -> Trace:
    """Jobs that have run until some moments, by submit, on a clock that Slurm's is ahead of."""
    order = sorted(range(len(jobs)), key=lambda i: jobs[i].submit)
    jobs, until = [jobs[i] for i in order], [until[i] for i in order]
    return Trace(
        name, "slurm", np.arange(len(jobs)).astype(object), np.array([job.submit for job in jobs], float) - ahead,
        np.array([end - job.start for job, end in zip(jobs, until, strict=True)], float),
        np.array([job.gpus for job in jobs], np.int32),
        request_time=np.array([job.limit if job.limit > 0 else -1.0 for job in jobs], float),
        wait=np.array([job.start - job.submit for job in jobs], float),
        user=np.array([job.user or "-1" for job in jobs], object),
        vc=np.array([job.account or "-1" for job in jobs], object),
        partition=np.array([",".join(job.partitions) for job in jobs], object),
    )  # fmt: skip


def placed(jobs: Trace, view: Snapshot) -> Workload | None:
    """The jobs that could run on a Snapshot's nodes, in its pools; None where there are none.

    Raises SnapshotError where nothing tells in which of several pools.
    """
    nodes, _ = arranged(view)
    pool = _pools(jobs, view)
    here = pool >= 0
    here[here] = can_fit(nodes, pool[here], jobs.gpus[here], 0)
    if not here.any():
        return None
    layout = tuple(Pool(str(p), ((1, int(size)),)) for p, size in enumerate(nodes.pool_gpus))
    return Workload("", "", jobs.select(here), layout, pool[here], nodes, 0.0)


def _pools(jobs: Trace, view: Snapshot) -> np.ndarray:
    """The pool of every job (jobs,), -1 where it is in none."""
    names = view.pool_name or ()
    if len(names) < 2:
        if int(view.node_pool.max(initial=0)) > 0:
            raise SnapshotError("pools: several without names; want names to know which of them past jobs ran in")
        wanted = None if not names or names == ("all",) or jobs.format != "slurm" else names[0]
        if wanted is None or jobs.partition is None:
            return np.zeros(len(jobs), np.int32)
        return np.array([0 if wanted in words.split(",") else -1 for words in jobs.partition], np.int32)
    for name in _POOL_COLUMNS:
        column = getattr(jobs, name)
        if column is not None and any(set(str(words).split(",")) & set(names) for words in column):
            number = [next((i for i, one in enumerate(names) if one in str(words).split(",")), -1) for words in column]
            return np.array(number, np.int32)
    raise SnapshotError(f"{jobs.name}: no column has names of the pools {', '.join(names)}; want partition, or another")


def coming_of(past: Workload | None, info: str) -> Coming:
    """Past jobs as those of which arrivals are drawn; policies that go by time limits go by theirs, too."""
    if past is None:
        return NOBODY
    jobs = past.trace
    limit = np.full(len(jobs), -1.0) if jobs.request_time is None else jobs.request_time
    known = np.where(limit > 0, limit, jobs.run_time) if info == "request" else jobs.run_time
    return Coming(jobs.submit, jobs.gpus, jobs.run_time, known, past.pool)


def unfinished(view: Snapshot, submit: np.ndarray, doubt: Doubt | None = None) -> Coming:
    """Jobs that run (submitted at `submit`) and wait now: they have come lately, too.

    Their run times are what is expected of them, or as a doubt draws them.
    """
    told = np.full(len(view.job), np.nan) if view.history is None else predicted(view.history)
    known = np.where(np.isnan(view.run_time), told, view.run_time)
    guess = view.running_end - view.running_start if view.running_guess is None else view.running_guess
    expected = np.concatenate((guess, np.where(np.isnan(told), known, told)))
    passed = np.concatenate((view.now - view.running_start, np.zeros(len(view.job))))
    gpus = np.concatenate((view.running_gpus, view.gpus))
    ran = np.fmax(expected, passed)
    if doubt is not None:
        ran = np.where(np.isnan(expected), np.nan, unended(expected, passed, gpus, doubt, 0))
    found = Coming(
        np.concatenate((submit, view.submit)), gpus, ran,
        np.concatenate((np.fmax(view.running_end - view.running_start, 1.0), known)),
        np.concatenate((view.running_pool, view.pool)),
    )  # fmt: skip
    return found.rows(np.isfinite(found.run_time) & np.isfinite(found.estimate))


def together(*parts: Coming) -> Coming:
    """Arrivals of several kinds, by submit."""
    columns = (np.concatenate([part[i] for part in parts]) for i in range(5))
    whole = Coming(next(columns), next(columns), next(columns), next(columns), next(columns))
    return whole.rows(np.argsort(whole.submit, kind="stable"))


def running_submits(state: State, view: Snapshot) -> np.ndarray:
    """Submits (running,) of the jobs that run, on the Snapshot's clock."""
    when: dict[int, float] = {job.id: job.submit for job in state.running}
    return np.array([when[int(job)] - state.now + view.now for job in view.running_job], float)


def limits_in(jobs: Sequence[Job]) -> np.ndarray:
    """Time limits (jobs,) in seconds, infinite where there is none."""
    return np.array([job.limit if job.limit > 0 else np.inf for job in jobs], float)


def tried(
    past: Workload | None, policy: str, discipline: str, info: str, moments: int, inside: float, seed: int
) -> Ends:
    """Where the ends of intervals should lie, by forecasts that are made at moments of the past, replayed.

    The past is replayed under the policy, so that what it would have led to is known; LEADER stands in for whoever is
    no policy of the simulator. Ends are as drawn where nobody had to wait, or the past is too short.
    """
    if past is None or len(past) < FEWEST or moments == 0:
        return Ends()
    leader = policy if policy in POLICIES and POLICIES[policy].ask is None else LEADER
    trace = past.trace
    past = dataclasses.replace(past, trace=dataclasses.replace(trace, submit=trace.submit - trace.submit[0]))
    replay = Replay(past, leader, discipline, "request" if info == "request" else "predicted")
    last = float(past.trace.submit[-1])
    when = replay.waits_at(np.linspace(FROM * last, last, moments + 1)[:-1])
    told = [replay.foretold(now, replay.doubt(now), DRAWS, seed + i, inside) for i, now in enumerate(when)]
    return fitted(told, last, inside)
