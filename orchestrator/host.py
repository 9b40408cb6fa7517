"""One host's cores, and the jobs that come to it, wait for it and run on it."""

import numpy as np

from berth.compiled import records
from envs.knowledge import similar_jobs
from envs.sim.history import TOLD_OF
from envs.sim.members import ROSTER
from envs.sim.nearby import line_up_groups, nearby_at
from envs.sim.setting import histories_on_arrival
from envs.snapshot import HOLDING, QUEUED, Snapshot
from envs.stage import by_end
from envs.workload import Workload
from orchestrator.running import Ended, Job

TO_COME, WAITS, RUNS, OVER = range(4)


class Host:
    """What the loop knows of a workload on one host; `snapshot` is all of it that a decision may rest on."""

    def __init__(self, workload: Workload, tells_histories: bool) -> None:
        trace = workload.trace
        self.cores = int(workload.nodes.capacity.sum())
        self.name = [str(name) for name in trace.job_id]
        self.submit, self.run_time, self.gpus = trace.submit, trace.run_time, trace.gpus
        jobs = len(trace)
        self.state = np.full(jobs, TO_COME, np.int8)
        self.start = np.full(jobs, -1.0)
        self.end = np.full(jobs, -1.0)
        self.holding = np.zeros(jobs, bool)
        self._groups = similar_jobs(trace) if tells_histories else None
        self._history = np.zeros((jobs, TOLD_OF), np.float32)
        self._line = None if self._groups is None else line_up_groups(self._groups)

    @property
    def unfinished(self) -> int:
        """How many jobs have not ended."""
        return int(np.count_nonzero(self.state != OVER))

    @property
    def free(self) -> int:
        """Cores on which nothing runs."""
        return self.cores - int(self.gpus[self.state == RUNS].sum())

    def arrive(self, now: float) -> bool:
        """Let the jobs wait whose time has come; tells whether there are any."""
        new = np.flatnonzero((self.state == TO_COME) & (self.submit <= now))
        if self._groups is not None and len(new):
            self._history[new] = self._told(self._groups, new)
        self.state[new] = WAITS
        return bool(len(new))

    def next_submit(self) -> float:
        """When the next job comes; inf where none does."""
        later = self.submit[self.state == TO_COME]
        return float(later.min()) if len(later) else float("inf")

    def job(self, number: int) -> Job:
        """A job as backends take it."""
        return Job(number, self.name[number], int(self.gpus[number]), float(self.run_time[number]))

    def begin(self, number: int, now: float) -> None:
        """A job runs from now on."""
        self.state[number], self.start[number], self.holding[number] = RUNS, now, False

    def finish(self, ended: Ended) -> None:
        """A job has ended."""
        self.state[ended.number] = OVER
        self.start[ended.number], self.end[ended.number] = ended.start, ended.end

    def snapshot(self, now: float) -> Snapshot:
        """What a policy sees: cores as GPUs of one node, run times as planned."""
        queued, running = np.flatnonzero(self.state == WAITS), np.flatnonzero(self.state == RUNS)
        one, few = np.zeros(1, np.int32), np.zeros(len(running), np.int32)
        return Snapshot(
            now=now, job=queued, submit=self.submit[queued], wait=now - self.submit[queued], gpus=self.gpus[queued],
            run_time=self.run_time[queued], pool=np.zeros(len(queued), np.int32), running_job=running,
            running_start=self.start[running], running_gpus=self.gpus[running], running_pool=few,
            running_end=self.start[running] + self.run_time[running],
            free=np.array([self.free], np.int32), capacity=np.array([self.cores], np.int32), node_pool=one,
            state=np.where(self.holding[queued], HOLDING, QUEUED).astype(np.int8),
            history=None if self._groups is None else self._history[queued],
            nearby=self._nearby(queued, now), running_guess=self.run_time[running],
            place_at=np.arange(len(running) + 1), place_node=few, place_gpus=self.gpus[running],
        )  # fmt: skip

    def _nearby(self, queued: np.ndarray, now: float) -> np.ndarray | None:
        """What jobs submitted next to those that wait have told by now (queued, NEARBY_OF)."""
        if self._groups is None or self._line is None:
            return None
        every = records(len(self.state), ROSTER)
        over = self.state == OVER
        every["start"] = np.where(over | (self.state == RUNS), self.start, np.inf)
        every["end"], every["run_time"] = np.where(over, self.end, np.inf), np.where(over, self.end - self.start, 0.0)
        return nearby_at(every, self._groups, *self._line, self._history, queued, np.full(len(queued), now))

    def _told(self, groups: np.ndarray, jobs: np.ndarray) -> np.ndarray:
        """What ended jobs tell of some that arrive (jobs, TOLD_OF)."""
        every = records(len(self.state), ROSTER)
        over = self.state == OVER
        every["end"], every["run_time"] = np.where(over, self.end, np.inf), np.where(over, self.end - self.start, 0.0)
        asking = records(len(jobs), ROSTER)
        asking["submit"] = self.submit[jobs]
        return histories_on_arrival(asking, groups[jobs], *by_end(groups, every))
