"""Commands of a cluster's own scheduler, run so that they cannot hang."""

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from berth.errors import SchedulerError


class Answer(NamedTuple):
    """What a command printed, and how it ended."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """All that it said, in one line; some commands tell success on stderr."""
        return " ".join(f"{self.out} {self.err}".split())


def run_words(words: tuple[str, ...], timeout: float, more: Mapping[str, str], absent: str, late: str) -> Answer:
    """Run a command without a shell, in plain English, and end it with all that it started after `timeout` seconds.

    `more` is added to its environment. Raises SchedulerError where it is not there (`absent` tells what is wanted
    then), or takes too long (`late`).
    """
    surroundings = {**os.environ, **more, "LC_ALL": "C", "LANG": "C"}
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
        raise SchedulerError(f"{words[0]}: {trouble.strerror}; want {absent}") from None
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise SchedulerError(
            f"{' '.join(words)}: no answer within {timeout:g} s; {late} (--timeout gives more)"
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
