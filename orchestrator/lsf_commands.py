"""LSF's commands, run so that they cannot hang, and what their answers mean."""

import os
import re
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from berth.errors import SchedulerError

_EMPTY = re.compile(r"^No (unfinished|pending|running|suspended) job found", re.MULTILINE)
_DOWN = re.compile(
    r"not responding|cannot connect|still trying|LSF is down|(batch|LIM|mbatchd|sbatchd).* (is )?(down|unreachable)"
    r"|communication time out|connection refused|cannot be located",
    re.IGNORECASE,
)
_UNSUPPORTED = re.compile(
    r"invalid option|illegal option|unrecogni[sz]ed option|^ *usage:", re.IGNORECASE | re.MULTILINE
)
_GONE = re.compile(
    r"already (finished|started)|no matching job found|is not found|cannot be changed now", re.IGNORECASE
)


class Answer(NamedTuple):
    """What a command printed, and how it ended."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """All that it said, in one line; btop and badmin tell success on stderr."""
        return " ".join(f"{self.out} {self.err}".split())

    @property
    def is_empty(self) -> bool:
        """Whether it says that there is no such job; the exit code 254 alone does not."""
        return bool(_EMPTY.search(self.err) or _EMPTY.match(self.out)) and not self.is_down

    @property
    def is_down(self) -> bool:
        """Whether it failed because LSF does not answer."""
        return self.code != 0 and bool(_DOWN.search(self.text))

    @property
    def is_unsupported(self) -> bool:
        """Whether this LSF does not know the options."""
        return self.code != 0 and bool(_UNSUPPORTED.search(f"{self.out}\n{self.err}"))

    @property
    def is_gone(self) -> bool:
        """Whether the job has started, ended or vanished since it was read."""
        return self.code != 0 and bool(_GONE.search(self.text))


Command = Callable[..., Answer]
"""Runs a command, given as words, and returns its answer."""


class Commands:
    """Runs commands of LSF: no shell, plain English, one attempt to reach the master, a limit of time."""

    def __init__(self, timeout: float = 20.0) -> None:
        self.timeout = timeout

    def __call__(self, *words: str) -> Answer:
        """Run a command; raises SchedulerError where it is not there, or takes too long."""
        surroundings = {**os.environ, "LSB_NTRIES": "1", "LC_ALL": "C", "LANG": "C"}
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=surroundings,
                start_new_session=True,  # so that what it starts can be ended with it
                encoding="utf-8",
                errors="replace",
            )
        except OSError as trouble:
            raise SchedulerError(
                f"{words[0]}: {trouble.strerror}; want LSF's commands on PATH (source its profile.lsf first)"
            ) from None
        try:
            out, err = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            raise SchedulerError(
                f"{' '.join(words)}: no answer within {self.timeout:g} s; is LSF's master up? (--timeout gives more)"
            ) from None
        finally:
            if process.returncode is None:  # too late, or interrupted
                _end(process)
        return Answer(words, process.returncode, out, err)


def _end(process: "subprocess.Popen[str]") -> None:
    """End a command with all that it has started; it may have ended itself, and left somebody who holds its output."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
