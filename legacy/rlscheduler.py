"""RLScheduler's protocol, as slow as it is easy to read, with anybody who decides.

The compiled envs/sim/one_by_one.py is for policies with keys; this one asks a function which waiting job goes next, so
that a network can answer. docs/semantics.md tells the rules; tests/test_conformance.py compares the two.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Job(NamedTuple):
    """A job of a sequence."""

    number: int
    submit: float
    run_time: float
    request: float
    processors: int


@dataclass
class Machine:
    """A machine of equal processors, its queue and its clock."""

    processors: int
    coming: list[Job]
    backfill: bool
    now: float = 0.0
    waiting: list[Job] = field(default_factory=list)
    running: list[Job] = field(default_factory=list)
    start: dict[int, float] = field(default_factory=dict)
    free: int = 0

    def end(self, job: Job) -> float:
        """When a running job ends."""
        return self.start[job.number] + job.run_time

    def one_event(self) -> None:
        """The next arrival, or the earliest end; the arrival if both are at one time."""
        self.running.sort(key=self.end)
        end = self.end(self.running[0]) if self.running else float("inf")
        if self.coming and self.coming[0].submit <= end:
            job = self.coming.pop(0)
            self.now = max(self.now, job.submit)
            self.waiting.append(job)
        else:
            self.now = max(self.now, end)
            self.free += self.running.pop(0).processors

    def begin(self, job: Job) -> None:
        """Start a waiting job."""
        self.waiting.remove(job)
        self.running.append(job)
        self.start[job.number] = self.now
        self.free -= job.processors

    def shadow(self, job: Job) -> float:
        """The estimated end of the running job whose processors let a job fit; sorts `running` by it."""
        self.running.sort(key=lambda other: self.start[other.number] + other.request)
        free = self.free
        for other in self.running:
            free += other.processors
            if free >= job.processors:
                return self.start[other.number] + other.request
        raise AssertionError("a job that fits no idle machine")

    def slip_past(self, shadow: float) -> None:
        """Start waiting jobs, in submit order, that fit and should end before the shadow time."""
        self.waiting.sort(key=lambda job: job.submit)
        for job in list(self.waiting):
            if self.now + job.request < shadow and job.processors <= self.free:
                self.begin(job)

    def take(self, job: Job) -> None:
        """Start a chosen job, as soon as it fits; then go to the next decision, if there is one."""
        if job.processors > self.free:
            shadow = self.shadow(job) if self.backfill else 0.0
            while job.processors > self.free:
                if self.backfill:
                    self.slip_past(shadow)
                self.one_event()
        self.begin(job)
        while not self.waiting and self.coming:
            self.one_event()


def play(jobs: Sequence[Job], processors: int, backfill: bool, decide: Callable[[Machine], Job]) -> dict[int, float]:
    """When each job of a sequence starts, by its number."""
    machine = Machine(processors, list(jobs[1:]), backfill, jobs[0].submit, [jobs[0]], free=processors)
    while machine.waiting:
        machine.take(decide(machine))
    return machine.start
