"""A cluster's state, read by Slurm's commands."""

import re
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from berth.errors import ConfigError, SchedulerError
from orchestrator import slurm_json
from orchestrator.commands import Answer, run_words
from orchestrator.slurm_state import Job, Node, State, in_order

Command = Callable[..., Answer]
"""Runs a command, given as words, and returns its answer."""

ACCOUNTING = ("auto", "sacct", "jobcomp", "squeue")
"""Where ended jobs are read from; squeue alone shows those of the last minutes (MinJobAge)."""

REMEMBERED = 20_000
"""How many ended jobs are kept."""

TAIL = 8_000_000
"""How many bytes at the end of a file of ended jobs are read at first."""

_PAIR = re.compile(r"(\w+)=(.*?)(?= \w+=|\s*$)")
_SITE = re.compile(r"\s*(\d{1,12})\s*\|\s*(-?\d{1,12})\s*")
_NO_SITES = "Unable to find jobs matching"


class Commands:
    """Runs commands of Slurm: no shell, plain English, a limit of time."""

    def __init__(self, timeout: float = 20.0) -> None:
        self.timeout = timeout

    def __call__(self, *words: str) -> Answer:
        """Run a command; raises SchedulerError where it is not there, or takes too long."""
        more = {"SLURM_BITSTR_LEN": "0", "SLURM_TIME_FORMAT": "standard"}
        wanted = "Slurm's commands on PATH, and SLURM_CONF where its slurm.conf is in no usual place"
        return run_words(words, self.timeout, more, wanted, "is slurmctld up?")


class Reader:
    """Reads jobs, nodes and what has ended; it remembers ended jobs for as long as it lives."""

    def __init__(
        self,
        command: Command,
        warn: Callable[[str], None],
        counted: str = "",
        accounting: str = "auto",
        completed: str = "",
    ) -> None:
        self.command, self.warn = command, warn
        self.counted = counted
        self.accounting, self.completed = accounting, completed
        self.settings: dict[str, str] = {}
        self.ended: dict[tuple[int, float], Job] = {}
        self._read_to = -1  # where in the file of ended jobs reading goes on
        self._asked_at = 0.0  # until when sacct has told
        self._told: set[str] = set()

    def state(self) -> State:
        """All jobs and nodes at this moment; raises SchedulerError where Slurm does not tell them."""
        self.settings = self.settings or self._settings()
        nodes = self.nodes()
        now = time.time()
        jobs = self._jobs()
        pending = [job for job in jobs if job.state == "PENDING"]
        if pending and self.has_factors:
            sites = self.sites()
            pending = [job._replace(site=sites.get(job.id)) for job in pending]
        running = [job for job in jobs if job.state in ("RUNNING", "SUSPENDED")]
        self._remember(jobs, now)
        return State(now, tuple(in_order(pending)), tuple(running), tuple(self.ended.values()), tuple(nodes))

    def nodes(self) -> list[Node]:
        """All nodes; processors are counted in the place of GPUs where no node has any."""
        text = self._good("sinfo", "--json").out
        skipped: list[str] = []
        found = slurm_json.nodes(text, self.counted or "gpus", skipped)
        if not self.counted:
            self.counted = "gpus" if any(node.gpus for node in found) else "cpus"
            if self.counted == "cpus":
                found = slurm_json.nodes(text, "cpus", [])
        self._tell("sinfo --json", skipped)
        unique = {node.name: node for node in found}
        return list(unique.values())

    def sites(self) -> dict[int, int]:
        """The site factors of pending jobs that Slurm tells; raises SchedulerError for what cannot be read."""
        found = {}
        words = ("sprio", "-h", "-o", "%i|%S")
        for line in self._good(*words).out.splitlines():
            row = _SITE.fullmatch(line)
            if row:
                found[int(row[1])] = int(row[2])
            elif line.strip() and not line.startswith(_NO_SITES):
                raise SchedulerError(
                    f"{' '.join(words)}: came {line[:80]!r}, want lines of a job's number | site factor"
                )
        return found

    @property
    def has_factors(self) -> bool:
        """Whether priorities are sums of factors, of which the site factor is one."""
        self.settings = self.settings or self._settings()
        return self.settings.get("PriorityType", "") == "priority/multifactor"

    def _jobs(self) -> list[Job]:
        skipped: list[str] = []
        jobs = slurm_json.jobs(self._good("squeue", "--json").out, self.counted, skipped)
        self._tell("squeue --json", skipped)
        return jobs

    def _settings(self) -> dict[str, str]:
        """Slurm's configuration."""
        pairs = (line.partition("=") for line in self._good("scontrol", "show", "config").out.splitlines())
        return {name.strip(): value.strip() for name, equals, value in pairs if equals}

    def _remember(self, jobs: list[Job], now: float) -> None:
        """Add what has ended since the last reading; trouble with the accounting is told, and lived with."""
        try:
            found = self._accounted(now)
        except (SchedulerError, OSError) as trouble:
            self._tell_once(f"{trouble}; ended jobs are taken from squeue alone")
            found = []
        found += [job for job in jobs if job.end == job.end]
        for job in found:
            self.ended.setdefault((job.id, job.submit), job)
        if len(self.ended) > REMEMBERED:
            kept = sorted(self.ended.items(), key=lambda pair: pair[1].end)[-REMEMBERED:]
            self.ended = dict(kept)

    def _accounted(self, now: float) -> list[Job]:
        source = self.accounting
        if source == "auto":
            source = "squeue"
            if self.settings.get("AccountingStorageType") == "accounting_storage/slurmdbd":
                source = "sacct"
            elif self.completed or self.settings.get("JobCompType") == "jobcomp/filetxt":
                source = "jobcomp"
        if source == "sacct":
            return self._from_sacct(now)
        return self._from_file() if source == "jobcomp" else []

    def _from_sacct(self, now: float) -> list[Job]:
        """What the accounting database tells; 30 days at first, then what is new."""
        since = f"now-{max(2, int(now - self._asked_at) // 60 + 2)}minutes" if self._asked_at else "now-30days"
        skipped: list[str] = []
        answer = self._good("sacct", "--json", "--allusers", "--allocations", "--starttime", since)
        self._asked_at = now
        found = slurm_json.ended(answer.out, self.counted, skipped)
        self._tell("sacct --json", skipped)
        return found

    def _from_file(self) -> list[Job]:
        """What the plugin jobcomp/filetxt has written since the last reading."""
        path = Path(self.completed or self.settings.get("JobCompLoc", ""))
        size = path.stat().st_size
        if size < self._read_to:
            self._read_to = -1  # it was begun anew
        at = max(0, size - TAIL) if self._read_to < 0 else self._read_to
        with path.open("rb") as file:
            file.seek(at)
            text = file.read()
        whole = text.rfind(b"\n") + 1
        self._read_to = at + whole
        return [job for line in text[:whole].decode("utf-8", "replace").splitlines() if (job := self._line(line))]

    def _line(self, line: str) -> Job | None:
        """A line of jobcomp/filetxt, None where it is none, or does not tell how large the job was."""
        told = dict(_PAIR.findall(line))
        try:
            gpus = slurm_json.in_all(told["Tres"]) if self.counted == "gpus" else int(told["ProcCnt"])
            job = Job(
                id=int(told["JobId"]),
                word=told["JobId"],
                user=told["UserId"].partition("(")[0],
                account=told.get("Account", ""),
                partitions=(told["Partition"],),
                state=told["JobState"],
                submit=_seconds(told["SubmitTime"]),
                gpus=gpus,
                start=_seconds(told["StartTime"]),
                end=_seconds(told["EndTime"]),
            )
        except (KeyError, ValueError):
            return None
        if not gpus:
            self._tell_once(
                "the file of ended jobs does not tell GPUs (AccountingStorageTRES=gres/gpu, with slurmdbd, would): "
                "ended jobs are taken from squeue"
            )
        return job if gpus else None

    def _good(self, *words: str) -> Answer:
        """The answer of a command that went well; raises SchedulerError for any other."""
        answer = self.command(*words)
        if answer.code != 0:
            raise SchedulerError(f"{' '.join(words)}: exit {answer.code}, {answer.text[:300] or 'without a word'}")
        return answer

    def _tell(self, what: str, skipped: list[str]) -> None:
        for line in skipped:
            self._tell_once(f"{what}: skipped what could not be read: {line}")

    def _tell_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self.warn(text)


def _seconds(text: str) -> float:
    """Seconds since 1970 of a local time, as Slurm's files have it; raises ValueError for others."""
    return datetime.fromisoformat(text).timestamp()


def check_accounting(accounting: str, completed: str) -> None:
    """Raise ConfigError for a file of ended jobs that cannot be read."""
    if completed and accounting not in ("auto", "jobcomp"):
        raise ConfigError(f"--completed {completed} does nothing with --accounting {accounting}; leave one out")
    if completed and not Path(completed).is_file():
        raise ConfigError(f"--completed {completed}: no such file; want the one that jobcomp/filetxt writes")
