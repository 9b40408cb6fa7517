"""Signals while jobs run: a child that ends wakes the loop, Ctrl-C and SIGTERM ask it to stop."""

import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

ASK_TO_STOP = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM stop what runs meanwhile as Ctrl-C does; the program then ends with the status of SIGTERM."""
    came: list[int] = []

    def _interrupt(number: int, _frame: Any) -> None:
        came.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as stop:
        if not came:
            raise
        if isinstance(stop, KeyboardInterrupt):
            print("stopped", file=sys.stderr)
        sys.exit(128 + signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


class Bell:
    """Rings when a signal comes; `with Bell() as bell` takes the signals over, and gives them back.

    Handlers only note what came, so that no signal can strike between the start of a process and its being written
    down. Must be entered in the main thread.
    """

    def __init__(self) -> None:
        self.stopped = 0  # the signal that asked to stop, 0 while none has
        self._ear: socket.socket | None = None
        self._mouth: socket.socket | None = None
        self._before: dict[int, Any] = {}
        self._fd_before = -1

    def __enter__(self) -> "Bell":
        self._ear, self._mouth = socket.socketpair()
        for end in (self._ear, self._mouth):
            end.setblocking(False)
        self._fd_before = signal.set_wakeup_fd(self._mouth.fileno(), warn_on_full_buffer=False)
        child = (signal.SIGCHLD,) if hasattr(signal, "SIGCHLD") else ()  # Windows has none, and runs no stress-ng
        for one in (*ASK_TO_STOP, *child):
            self._before[one] = signal.signal(one, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, trouble: BaseException | None, where: TracebackType | None
    ) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)
        signal.set_wakeup_fd(self._fd_before)
        for end in (self._ear, self._mouth):
            assert end is not None
            end.close()
        self._ear = self._mouth = None

    def wait(self, seconds: float) -> None:
        """Sleep so long, or until it rings; without signals (not entered) it only sleeps, in short naps."""
        if self._ear is None:
            time.sleep(max(0.0, min(seconds, 0.01)))
            return
        if self.stopped:
            return
        if select.select([self._ear], [], [], max(0.0, min(seconds, 3600.0)))[0]:
            while True:
                try:
                    if not self._ear.recv(4096):
                        return
                except BlockingIOError:
                    return

    def _note(self, number: int, _frame: Any) -> None:
        if number in ASK_TO_STOP:
            self.stopped = number
