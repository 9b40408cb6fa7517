"""A cluster's state, read by LSF's commands."""

import time
from collections.abc import Callable

from berth.errors import SchedulerError
from orchestrator import lsf_json, lsf_text
from orchestrator.lsf_commands import Command, LsfAnswer
from orchestrator.lsf_state import OCCUPYING, UNREAD, WAITING, Host, Job, State


class Reader:
    """Reads jobs and hosts: as JSON where LSF can, else as `-w` tables; it remembers which.

    `form` is "json" or "text" once jobs have been read.
    """

    def __init__(self, command: Command, warn: Callable[[str], None]) -> None:
        self.command = command
        self.warn = warn
        self.form = ""

    def state(self, now: float | None = None) -> State:
        """All jobs and hosts at this moment; raises SchedulerError where LSF does not tell them."""
        now = time.time() if now is None else now
        jobs = self.jobs(now)
        waiting = [job for job in jobs if job.state in WAITING]
        occupying = [job for job in jobs if job.state in OCCUPYING]
        if jobs:
            details = self._details(now)
            waiting, occupying = self._with(waiting, details), self._with(occupying, details)
        return State(now, tuple(waiting), tuple(occupying), tuple(self.hosts()))

    def jobs(self, now: float) -> list[Job]:
        """All unfinished jobs, those that wait in the order in which LSF will take them."""
        answer = self._tried("bjobs", "-u", "all", fields=lsf_json.JOB_FIELDS)
        if answer.is_empty:
            return []
        skipped: list[str] = []
        read = lsf_json.jobs if self.form == "json" else lsf_text.wide_jobs
        jobs = read(_good(answer).out, now, skipped)
        self._tell(answer, skipped)
        return jobs

    def hosts(self) -> list[Host]:
        """All hosts, with memory where lshosts and lsload tell it."""
        answer = self._tried("bhosts", fields=lsf_json.HOST_FIELDS)
        skipped: list[str] = []
        read = lsf_json.hosts if self.form == "json" else lsf_text.wide_hosts
        hosts = read(_good(answer).out, skipped)
        self._tell(answer, skipped)
        total, free = self._loads("lshosts", lsf_text.capacities), self._loads("lsload", lsf_text.loads)
        unknown = lsf_text.Load()
        return [
            host._replace(
                slots=host.slots or total.get(host.name, unknown).cores or 0,
                memory=total.get(host.name, unknown).memory,
                free_memory=free.get(host.name, unknown).memory,
            )
            for host in hosts
        ]

    def job(self, identity: str) -> Job | None:
        """One job as it is now, also if it has ended; None where LSF knows it no more."""
        answer = self.command("bjobs", "-a", "-w", identity)
        if answer.is_empty or answer.is_gone:
            return None
        skipped: list[str] = []
        jobs = lsf_text.wide_jobs(_good(answer).out, time.time(), skipped)
        self._tell(answer, skipped)
        return next((job for job in jobs if job.id == identity), None)

    def highest_priority(self) -> int:
        """The highest priority that a user may give a job, 0 where users may give none."""
        answer = self.command("bparams", "-l")
        return lsf_text.highest_priority(answer.out) if answer.code == 0 else 0

    def _tried(self, *words: str, fields: str) -> LsfAnswer:
        """Ask for JSON unless it is known to be refused, else for the wide table."""
        if self.form != "text":
            answer = self.command(*words, "-o", fields, "-json")
            if answer.code == 0 or answer.is_empty:
                self.form = "json"
            if self.form == "json" or answer.is_down:
                return answer
            self.warn(f"{words[0]} gives no JSON here ({answer.text[:80]}): reading its tables")
        answer = self.command(*words, "-w")
        if answer.code == 0 or answer.is_empty:
            self.form = "text"
        return answer

    def _details(self, now: float) -> dict[str, lsf_text.Detail]:
        answer = self.command("bjobs", "-u", "all", "-l")
        if answer.is_empty:
            return {}
        skipped: list[str] = []
        details = lsf_text.long_jobs(_good(answer).out, now, skipped)
        self._tell(answer, skipped)
        return details

    def _with(self, jobs: list[Job], details: dict[str, lsf_text.Detail]) -> list[Job]:
        """Jobs with what only `bjobs -l` tells; who has just come or gone is left for the next time."""
        found = []
        for job in jobs:
            detail = details.get(job.id, details.get(job.id.partition("[")[0]))
            if detail is None:
                self.warn(f"job {job.id}: bjobs -l does not tell of it; left as it is until the next reading")
                found.append(job._replace(state=UNREAD) if job.state in WAITING else job)
                continue
            found.append(_joined(job, detail))
        return found

    def _loads(self, name: str, read: Callable[[str, list[str]], dict[str, lsf_text.Load]]) -> dict[str, lsf_text.Load]:
        """What a command tells of memory; nothing, and a warning, where it fails, since hosts are known without it."""
        skipped: list[str] = []
        try:
            answer = self.command(name, "-w")
            found = read(_good(answer).out, skipped)
        except SchedulerError as trouble:
            self.warn(f"{trouble}; memory is not known")
            return {}
        self._tell(answer, skipped)
        return found

    def _tell(self, answer: LsfAnswer, skipped: list[str]) -> None:
        for line in skipped:
            self.warn(f"{' '.join(answer.words[:3])}: skipped a line that could not be read: {line.strip()!r}")


def _joined(job: Job, detail: lsf_text.Detail) -> Job:
    """A job with what `bjobs -l` tells; what JSON has told already stays."""
    waits = job.state in WAITING
    return job._replace(
        submit=detail.submit,
        slots=(detail.slots or job.slots) if waits else job.slots,
        memory=detail.memory if detail.memory == detail.memory else job.memory,
        start=job.start if waits or detail.start != detail.start else detail.start,
        run_limit=detail.run_limit if detail.run_limit == detail.run_limit else job.run_limit,
        priority=detail.priority,
        reason=job.reason or detail.reason,
        asked=detail.asked,
    )


def _good(answer: LsfAnswer) -> LsfAnswer:
    """The answer of a command that went well; raises SchedulerError for any other, whatever its exit code."""
    if answer.code != 0:
        raise SchedulerError(f"{' '.join(answer.words)}: exit {answer.code}, {answer.text[:200] or 'without a word'}")
    return answer
