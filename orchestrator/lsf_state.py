"""A cluster under LSF at one moment, in rows of our own."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from envs.snapshot import Snapshot

WAITING = ("PEND", "PSUSP")
"""States of jobs that wait; a job in PSUSP is held."""

OCCUPYING = ("RUN", "USUSP", "SSUSP", "UNKWN", "PROV", "WAIT")
"""States of jobs that have hosts; UNKWN: the host does not answer, and the job counts as running."""


UNREAD = "UNREAD"
"""The state of a job that waits, and of which too little could be read to handle it."""


class Job(NamedTuple):
    """A job that waits or runs."""

    id: str  # "22", or "28[2]" for an element of an array
    user: str
    queue: str
    name: str
    state: str
    submit: float  # s since 1970
    slots: int = 1  # asked for, or held where it runs
    memory: float = math.nan  # MB asked for, NaN where that is not known
    start: float = math.nan  # s since 1970, NaN while it waits or where that is not known
    run_limit: float = math.nan  # s, NaN where there is none
    priority: int = 0  # of the user's choice (bsub -sp), 0 where LSF tells none
    reason: str = ""  # why it waits
    hosts: tuple[tuple[str, int], ...] = ()  # where it runs: host, slots
    asked: tuple[str, ...] = ()  # hosts that it must run on, () for any


class Host(NamedTuple):
    """A host that runs jobs."""

    name: str
    status: str  # ok, closed_Full, closed_Adm, unreach, unavail ...
    slots: int
    used: int
    memory: float = math.nan  # MB
    free_memory: float = math.nan  # MB

    @property
    def free(self) -> int:
        """Slots that a job can have now; none where the host takes no jobs."""
        return max(0, self.slots - self.used) if self.status == "ok" else 0


class State(NamedTuple):
    """All that was read."""

    now: float  # s since 1970
    pending: tuple[Job, ...]  # in the order in which LSF will take them
    running: tuple[Job, ...]
    hosts: tuple[Host, ...]


def number_of(job: str) -> int:
    """LSF's number of a job, which the elements of an array share."""
    return int(job.partition("[")[0])


def logged(
    job: Job,
    mode: str,
    means: str,
    before: int | str,
    after: int | str,
    words: Sequence[str],
    result: str,
    text: str,
    undo: bool = False,
) -> dict[str, Any]:
    """What the audit log says of one command about a job."""
    return {
        "mode": mode, "job": job.id, "user": job.user, "queue": job.queue, "submit": job.submit, "means": means,
        "undo": undo, "from": before, "to": after, "command": list(words), "result": result, "answer": text,
    }  # fmt: skip


def snapshot_of(state: State, queued: Sequence[Job], assumed: float = math.nan) -> Snapshot:
    """What a policy sees: slots as GPUs, run limits as run times, one pool, seconds from the earliest submit.

    `assumed` stands for the run limit of jobs that have none. Running jobs are all of the cluster's.
    """
    origin = min((job.submit for job in (*state.pending, *state.running)), default=state.now)
    running = state.running
    limits = np.array([job.run_limit for job in queued], np.float64)
    starts = np.array([job.start for job in running], np.float64) - origin
    submit = np.array([job.submit for job in queued], np.float64) - origin
    return Snapshot(
        now=state.now - origin,
        job=np.array([number_of(job.id) for job in queued], np.int64),
        submit=submit,
        wait=np.maximum(0.0, state.now - origin - submit),
        gpus=np.array([job.slots for job in queued], np.int64),
        run_time=np.where(limits > 0, limits, assumed),
        pool=np.zeros(len(queued), np.int64),
        running_job=np.array([number_of(job.id) for job in running], np.int64),
        running_start=starts,
        running_gpus=np.array([job.slots for job in running], np.int64),
        running_pool=np.zeros(len(running), np.int64),
        running_end=starts + np.array([job.run_limit for job in running], np.float64),
        free=np.array([host.free for host in state.hosts], np.int64),
        capacity=np.array([host.slots for host in state.hosts], np.int64),
        node_pool=np.zeros(len(state.hosts), np.int64),
    )
