"""Pending jobs started on hosts by brun, with the checks that brun itself does not make."""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from berth.errors import SchedulerError
from orchestrator.audit import Audit
from orchestrator.lsf_commands import Command
from orchestrator.lsf_reading import Reader
from orchestrator.lsf_state import OCCUPYING, Host, Job, logged

ChooseHost = Callable[[Job, Sequence[Host], Sequence[Host]], str]
"""Of a job, the hosts that have room for it, and all hosts: names one of the former, or "" to start it on none."""

HOST_POLICIES: dict[str, ChooseHost] = {
    "first_available": lambda _job, room, _hosts: room[0].name,
    "least_loaded": lambda _job, room, _hosts: min(room, key=lambda host: host.used / host.slots).name,
    "best_fit": lambda _job, room, _hosts: min(room, key=lambda host: host.free).name,
}
"""Host policies by name; what is equal goes in LSF's order of hosts."""

POLL = 1.0
"""Seconds between two looks at a job that was asked to start."""

_HELD_BACK = re.compile(r"dependency|inactivated|suspended|window|start time", re.IGNORECASE)


def objection(job: Job, host: Host) -> str:
    """Why a job must not be started on a host, "" where nothing speaks against it; brun would start it anyway."""
    if job.state != "PEND":
        return f"job {job.id} is {job.state}, want PEND"
    if _HELD_BACK.search(job.reason):
        return f"job {job.id} waits for something else than room: {job.reason}"
    if host.status != "ok":
        return f"host {host.name} is {host.status}, want ok"
    if job.asked and host.name not in job.asked:
        return f"job {job.id} must run on {', '.join(job.asked)}, not on {host.name}"
    if host.free < job.slots:
        return f"host {host.name} has {host.free} free slots, want {job.slots}"
    if job.memory > host.free_memory:  # false where either is not known
        return f"host {host.name} has {host.free_memory:g} MB of free memory, want {job.memory:g}"
    return ""


@dataclass
class Starter:
    """Starts jobs in their order until one finds no host; each start is confirmed by reading the job."""

    command: Command
    reader: Reader
    audit: Audit
    warn: Callable[[str], None]
    choose_host: ChooseHost
    mode: str = "apply"
    patience: float = 30.0  # s, until a start counts as not confirmed

    def start(self, jobs: Sequence[Job], hosts: Sequence[Host]) -> list[tuple[str, str]]:
        """Start jobs that have room, in order; returns (job, host) of those that were started, or would be."""
        started, hosts = [], list(hosts)
        for job in jobs:
            if _HELD_BACK.search(job.reason):
                self.warn(f"job {job.id} is not started: {job.reason}")
                continue
            if self.mode == "apply":
                hosts = self.reader.hosts()
            room = [host for host in hosts if not objection(job, host)]
            name = self.choose_host(job, room, hosts) if room else ""
            if not name:
                break  # whoever comes next would be started before it
            host = self._checked(job, name, hosts)
            if self._started(job, host):
                started.append((job.id, host.name))
                hosts = [one._replace(used=one.used + job.slots) if one.name == name else one for one in hosts]
        return started

    def _checked(self, job: Job, name: str, hosts: Sequence[Host]) -> Host:
        """The host that was chosen; raises SchedulerError where the job must not be started on it."""
        host = next((host for host in hosts if host.name == name), None)
        if host is None:
            raise SchedulerError(f"job {job.id}: host {name} was chosen, want one of LSF's hosts")
        against = objection(job, host)
        if against:
            raise SchedulerError(f"brun is not sent: {against}")
        return host

    def _started(self, job: Job, host: Host) -> bool:
        """Send brun unless the job has changed since it was read; whether it then runs there."""
        words = ("brun", "-m", host.name, job.id)
        if self.mode != "apply":
            self._log(job, host, words, "not sent", "")
            return True
        now = self.reader.job(job.id)
        if now is None or now.state != "PEND":
            self.warn(f"job {job.id} is {now.state if now else 'gone'}: not started")
            return False
        result, text = "unknown", "cut short"
        try:
            answer = self.command(*words)
            result, text = ("refused", answer.text) if answer.code else self._confirmed(job, host)
        finally:
            self._log(job, host, words, result, text)
        if result != "ok":
            self.warn(f"job {job.id} on {host.name}: {result}: {text}")
        if result == "refused" and not answer.is_gone:
            raise SchedulerError(f"{' '.join(words)}: {text}; want an administrator for --start brun")
        return result == "ok"

    def _confirmed(self, job: Job, host: Host) -> tuple[str, str]:
        """What has become of a job that was asked to start, since exit 0 tells nothing."""
        end = time.monotonic() + self.patience
        while True:
            now = self.reader.job(job.id)
            if now is None or now.state in ("DONE", "EXIT"):
                return "ok", "ended already"
            if now.state in OCCUPYING and host.name in dict(now.hosts):
                return "ok", f"{now.state} on {host.name}"
            if time.monotonic() >= end:
                return "unconfirmed", f"{now.state} after {self.patience:g} s"
            time.sleep(POLL)

    def _log(self, job: Job, host: Host, words: tuple[str, ...], result: str, text: str) -> None:
        self.audit.add(**logged(job, self.mode, "brun", "PEND", host.name, words, result, text))
