"""Who works tasks off: processes of this machine, or a Ray cluster."""

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from berth.errors import ClusterError, ConfigError, TraceError
from berth.ray_cluster import connect, disconnect, enter, fingerprint
from eval.tasks import Answer, Task

ONE_CORE = {"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1",
            "NUMBA_NUM_THREADS": "1"}  # fmt: skip
"""The environment of processes that stand side by side, each on a core."""

READY = "ready"
"""What a process says when it has loaded what it needs."""

LOADING = 120.0
"""Seconds in which a process must have begun."""

Work = Callable[[Any], Any]


def done_by(function: Work, key: str, order: Any) -> Answer:
    """The answer to a task: what the function returns, or what went wrong, in a line."""
    try:
        return Answer(key, function(order))
    except (ConfigError, TraceError, ClusterError) as mistake:
        return Answer(key, trouble=str(mistake), hopeless=True)
    except Exception as trouble:  # noqa: BLE001 - whatever a task does, the others go on
        where = traceback.extract_tb(trouble.__traceback__)[-1]
        place = f"{os.path.basename(where.filename)}:{where.lineno}"
        said = " ".join(f"{type(trouble).__name__}: {trouble}".split())
        return Answer(key, trouble=f"{said[:500]} ({place})")


class Processes:
    """Processes of this machine, which keep what they have loaded from task to task; one that dies is replaced."""

    def __init__(self, function: Work, slots: int) -> None:
        if slots < 1:
            raise ConfigError(f"processes {slots}: want a number >= 1")
        self.slots = slots
        self._context = multiprocessing.get_context("spawn")  # a child that is forked would hold others' pipes open
        self._idle: list[_Worker] = []
        self._busy: dict[str, _Worker] = {}
        self._hire = lambda: _Worker(self._context, function, ONE_CORE if slots > 1 else {})
        for _ in range(slots):
            self._idle.append(self._hire())

    def prefers(self) -> str | None:
        """The group of the last task of the process that is next."""
        return self._idle[-1].group

    def send(self, task: Task) -> None:
        """Give a task to a process that has none."""
        worker = self._idle.pop()
        worker.group = task.group
        self._busy[task.key] = worker
        worker.send(task.key, task.order)

    def receive(self, seconds: float) -> list[Answer]:
        """The answers that have come; a process that has died has answered, too."""
        pipes = {worker.pipe: key for key, worker in self._busy.items()}
        answers = []
        for pipe in wait(list(pipes), seconds):
            key = pipes[pipe]
            worker = self._busy.pop(key)
            try:
                answer = worker.pipe.recv()
                if answer == READY:  # one that took very long to begin
                    worker.ready, self._busy[key] = True, worker
                    continue
                answers.append(answer)
                self._idle.append(worker)
            except (EOFError, OSError):
                answers.append(Answer(key, trouble=worker.end()))
                self._idle.append(self._hire())
        return answers

    def stop(self, key: str) -> None:
        """End the process that has a task, and begin another."""
        self._busy.pop(key).end()
        self._idle.append(self._hire())

    def close(self) -> None:
        """End all processes."""
        for worker in (*self._idle, *self._busy.values()):
            worker.end()
        self._idle, self._busy = [], {}


class _Worker:
    """A process, and the pipe to it."""

    def __init__(self, context: Any, function: Work, environment: dict[str, str]) -> None:
        self.group, self.ready = "", False
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, function), daemon=False)
        with _added(environment):
            self.process.start()
        theirs.close()

    def send(self, key: str, order: Any) -> None:
        """Give it a task, once it has loaded what it needs: that is not the task's time."""
        with suppress(OSError, EOFError):  # it has died; `receive` will tell
            if not self.ready and self.pipe.poll(LOADING):
                self.pipe.recv()
                self.ready = True
            self.pipe.send((key, order))

    def end(self) -> str:
        """End the process with all it has begun; returns how it was found."""
        self.process.join(0.1)  # one that is dead already has a code to tell
        code = self.process.exitcode
        if code is None:
            for group in (os.killpg, os.kill):
                with suppress(OSError):
                    group(self.process.pid, signal.SIGKILL)
            self.process.join(10)
        self.pipe.close()
        return f"its process was killed by {signal.Signals(-code).name}" if code and code < 0 else "its process ended"


@contextmanager
def _added(environment: dict[str, str]) -> Iterator[None]:
    """Let processes that begin now find more in their environment; what is there already stays."""
    new = {name: value for name, value in environment.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            del os.environ[name]


def _serve(pipe: Connection, function: Work) -> None:
    """Do tasks until nobody sends any; an interrupt of the terminal is the parent's affair."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, OSError):
        pipe.send(READY)
        while True:
            pipe.send(done_by(function, *pipe.recv()))


class RayTasks:
    """Tasks on a Ray cluster, as many at a time as it has cores; Ray keeps processes from task to task."""

    def __init__(self, function: Work, address: str, slots: int = 0) -> None:
        self._ray = connect(address, slots)
        self.slots = slots or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._remote = self._ray.remote(_answer).options(num_cpus=1, max_retries=0)
        self._function, self._here = function, (fingerprint(), os.getcwd())
        self._keys: dict[Any, str] = {}

    def prefers(self) -> str | None:
        """Ray decides who does what."""
        return None

    def send(self, task: Task) -> None:
        """Give a task to the cluster."""
        self._keys[self._remote.remote(self._function, task.key, task.order, *self._here)] = task.key

    def receive(self, seconds: float) -> list[Answer]:
        """The answers that have come; a process or node that has died has answered, too."""
        errors = self._ray.exceptions
        done, _ = self._ray.wait(list(self._keys), num_returns=1, timeout=seconds)
        answers = []
        for one in done:
            key = self._keys.pop(one)
            try:
                answers.append(self._ray.get(one))
            except errors.RayTaskError as trouble:
                said = [line for line in str(trouble).splitlines() if line.strip()][-1]
                answers.append(Answer(key, trouble=f"{said}; want this Berth on every node", hopeless=True))
            except errors.RayError as trouble:
                answers.append(Answer(key, trouble=f"{type(trouble).__name__}: its process or node was lost"))
        return answers

    def stop(self, key: str) -> None:
        """End the process that has a task."""
        one = next(ref for ref, its in self._keys.items() if its == key)
        del self._keys[one]
        self._ray.cancel(one, force=True)

    def close(self) -> None:
        """Leave the cluster; what still runs is ended."""
        for one in self._keys:
            self._ray.cancel(one, force=True)
        disconnect()


def _answer(function: Work, key: str, order: Any, berth: str, folder: str) -> Answer:
    """Do a task where it was sent to, if the same Berth is there."""
    enter(folder)
    if fingerprint() != berth:
        said = f"a worker has Berth {fingerprint()}, this is {berth}; want the same on every node"
        return Answer(key, trouble=said, hopeless=True)
    return done_by(function, key, order)
