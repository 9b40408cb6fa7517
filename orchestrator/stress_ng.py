"""A backend of real processes: each job is a stress-ng that keeps cores busy."""

import contextlib
import ctypes
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import IO

from berth.errors import ConfigError, SchedulerError
from orchestrator.clocks import RealClock
from orchestrator.running import Ended, Job

PROGRAM = "stress-ng"

GRACE = 2.0
"""Seconds that processes have to end by themselves when they are asked to, before they are killed."""

KILL_WITH_PARENT, TAKE_ORPHANS = 1, 36
"""PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER of Linux's prctl."""

_BOGO_OPS = re.compile(rb"metrc: \[\d+\] cpu +(\d+)")
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def find_program(word: str = PROGRAM) -> str:
    """Where stress-ng is, "" where it is not installed."""
    return shutil.which(word) or ""


@dataclass
class _Running:
    """A process that was started, the leader of a group of its own."""

    job: Job
    process: "subprocess.Popen[bytes]"
    output: IO[bytes]
    start: float
    end_at: float  # moment at which it is asked to end; inf where stress-ng does so itself
    hung_at: float  # moment from which on it counts as hung
    hung: bool = False
    asked: bool = False  # to end, as its time was over


class StressNg:
    """Runs `stress-ng --cpu N --timeout Ps --metrics-brief` for each job, in process groups of their own.

    stress-ng takes whole seconds only: where a job's time is none, the next whole number is told, and the process is
    asked to end in time. A job that is still there `patience` seconds after its time is killed, and counts as hung. If
    this process is killed itself, the kernel kills the jobs (Linux).
    """

    name = "stress_ng"

    def __init__(self, clock: RealClock, patience: float = 10.0, program: str = PROGRAM) -> None:
        self.clock, self.patience = clock, patience
        self.program = find_program(program)
        if not self.program:
            raise ConfigError(
                f"{program} is not installed, which backend stress_ng needs; want it (apt-get install stress-ng; on "
                "Windows inside WSL), or --simulate"
            )
        self._running: dict[int, _Running] = {}
        if _LIBC is not None:  # what is left of a group becomes a child of ours, and can be waited for
            _LIBC.prctl(TAKE_ORPHANS, 1, 0, 0, 0)

    def now(self) -> float:
        """The moment."""
        return self.clock.now()

    def start(self, job: Job) -> float:
        """Start a process; raises SchedulerError where there is no room for one."""
        seconds = job.run_time / self.clock.speedup
        whole = max(1, math.ceil(seconds))
        words = [self.program, "--cpu", str(job.cores), "--timeout", f"{whole}s", "--metrics-brief"]
        output = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the job has ended
        now = self.clock.now()
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=_die_with_parent if _LIBC is not None else None,
            )  # fmt: skip
        except OSError as trouble:
            output.close()
            raise SchedulerError(f"job {job.name}: {self.program} could not be started: {trouble.strerror}") from None
        end_at = math.inf if whole == seconds else now + job.run_time
        hung_at = now + (seconds + self.patience) * self.clock.speedup
        self._running[job.number] = _Running(job, process, output, now, end_at, hung_at)
        return now

    def ended(self) -> list[Ended]:
        """The jobs whose processes are gone; those whose time is over are asked to end, those that hang are killed."""
        now = self.clock.now()
        found = []
        for one in list(self._running.values()):
            if now >= one.hung_at and not _is_over(one.process.pid):
                one.hung = True
                _signal(one, signal.SIGKILL)
                _wait_for([one], GRACE)
            elif now >= one.end_at and not _is_over(one.process.pid):
                one.end_at, one.asked = math.inf, True
                _signal(one, signal.SIGINT)
            if _is_over(one.process.pid):
                del self._running[one.job.number]
                found.append(self._bury(one))
        return sorted(found, key=lambda ended: ended.end)

    def wait(self, until: float) -> None:
        """Sleep until a process ends, one must be looked after, or then."""
        self.clock.wait(min([until, *(min(one.end_at, one.hung_at) for one in self._running.values())]))

    def stop(self) -> None:
        """Ask all groups to end; kill those that do not within GRACE seconds."""
        left = list(self._running.values())
        for one in left:
            _signal(one, signal.SIGTERM)
        for one in _wait_for(left, GRACE):
            _signal(one, signal.SIGKILL)
        _wait_for(left, GRACE)
        for one in left:
            self._bury(one)
        self._running.clear()

    def _bury(self, one: _Running) -> Ended:
        """Reap a process that is over; what is left of its group goes with it."""
        _signal(one, signal.SIGKILL)  # before it is reaped: until then nobody else can have its number
        end = self.clock.now()
        _, status, usage = os.wait4(one.process.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        one.process.returncode = code  # Popen must not wait for the number again
        _reap_rest(one.process.pid)
        printed = _tail(one.output)
        told = _BOGO_OPS.search(printed)
        reason = ""
        if one.hung:
            reason = f"hung: killed {self.patience:g} s after its time"
        elif one.asked and (code > 0 or code == -signal.SIGINT):
            pass  # it ended in time as it was asked to, however it says so: stress-ng may not have been ready for that
        elif code < 0:
            reason = f"killed by signal {_named(-code)}"
        elif code > 0:
            reason = f"exit status {code}: {_last_line(printed)}"
        return Ended(
            one.job.number, one.start, end, not reason, reason, code, usage.ru_utime, usage.ru_stime,
            usage.ru_maxrss // (1024 if sys.platform == "darwin" else 1), float(told.group(1)) if told else None,
        )  # fmt: skip


def _die_with_parent() -> None:
    """In the new process: be killed when the orchestrator is, and take signals as any process does."""
    assert _LIBC is not None
    _LIBC.prctl(KILL_WITH_PARENT, signal.SIGKILL)


def _is_over(pid: int) -> bool:
    """Whether a process has ended; it can still be reaped."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _signal(one: _Running, number: int) -> None:
    """Send a signal to a job's whole group, if there is any of it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(one.process.pid, number)


def _wait_for(running: list[_Running], seconds: float) -> list[_Running]:
    """Wait until processes are over; returns those that are not after so many seconds."""
    until = time.monotonic() + seconds
    left = [one for one in running if not _is_over(one.process.pid)]
    while left and time.monotonic() < until:
        time.sleep(0.005)
        left = [one for one in left if not _is_over(one.process.pid)]
    return left


def _reap_rest(group: int) -> None:
    """Wait until nothing is left of a group that was killed."""
    until = time.monotonic() + GRACE
    while time.monotonic() < until:
        try:
            pid, _ = os.waitpid(-group, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            time.sleep(0.002)


def _tail(output: IO[bytes]) -> bytes:
    """The end of what a job has printed."""
    with output:
        size = output.seek(0, os.SEEK_END)
        output.seek(max(0, size - 65536))
        return output.read()


def _named(number: int) -> str:
    """A signal's number, with its name if it has one: most real-time signals have none."""
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:
        return str(number)


def _last_line(printed: bytes) -> str:
    lines = printed.decode(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "it printed nothing"
