"""LSF's commands, and what their answers mean."""

import re
from collections.abc import Callable

from orchestrator.commands import Answer, run_words

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


class LsfAnswer(Answer):
    """An answer of LSF, and what it means."""

    __slots__ = ()

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


Command = Callable[..., LsfAnswer]
"""Runs a command, given as words, and returns its answer."""


class Commands:
    """Runs commands of LSF: no shell, plain English, one attempt to reach the master, a limit of time."""

    def __init__(self, timeout: float = 20.0) -> None:
        self.timeout = timeout

    def __call__(self, *words: str) -> LsfAnswer:
        """Run a command; raises SchedulerError where it is not there, or takes too long."""
        answer = run_words(
            words,
            self.timeout,
            {"LSB_NTRIES": "1"},
            "LSF's commands on PATH (source its profile.lsf first)",
            "is LSF's master up?",
        )
        return LsfAnswer(*answer)
