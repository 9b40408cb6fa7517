"""Tasks worked off by processes of this machine, or by Ray: retried, timed, done once."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from berth.errors import ConfigError


class Task(NamedTuple):
    """Something to be done by a function of one argument, which another process can load."""

    key: str  # by which it is known again
    name: str  # for people
    order: Any  # the function's argument
    group: str = ""  # tasks of one need the same things; whoever has loaded them had better do the others, too


class Answer(NamedTuple):
    """What became of a task, this time."""

    key: str
    value: Any = None
    trouble: str = ""  # what went wrong, in a line; "" where nothing did
    hopeless: bool = False  # whether another try would go wrong, too: the settings are at fault


class Outcome(NamedTuple):
    """What became of a task in the end."""

    task: Task
    value: Any
    trouble: str
    tries: int
    seconds: float  # of the last try


class Engine(Protocol):
    """Whoever does tasks, some at a time."""

    slots: int  # tasks at a time

    def prefers(self) -> str | None:
        """The group of the last task of whoever gets the next one; None where nobody knows who does."""

    def send(self, task: Task) -> None:
        """Begin with a task; there is a free slot for it."""

    def receive(self, seconds: float) -> list[Answer]:
        """The answers that have come, after waiting for so long at most."""

    def stop(self, key: str) -> None:
        """End a task that has begun; there is no answer to it."""

    def close(self) -> None:
        """End all."""


class Manner(NamedTuple):
    """How tasks are worked off."""

    retries: int = 2  # tries after the first one that went wrong
    timeout: float = 0.0  # s that a try may take, 0 = any time


Heard = Callable[[Outcome], None]
"""Told of every outcome as it comes, whatever it is."""


def work_off(tasks: Sequence[Task], engine: Engine, manner: Manner, heard: Heard = lambda _: None) -> list[Outcome]:
    """Do all tasks; one that goes wrong is tried again after the others, and told in the end. Order is the tasks'.

    The engine is closed, whatever happens.
    """
    if len({task.key for task in tasks}) < len(tasks):
        raise ConfigError("two tasks have one key; want every task once")
    left: dict[str, deque[tuple[Task, int]]] = {}
    for task in tasks:
        left.setdefault(task.group, deque()).append((task, 1))
    busy: dict[str, tuple[Task, int, float]] = {}  # key -> task, which try, since when
    found: dict[str, Outcome] = {}
    try:
        while left or busy:
            while left and len(busy) < engine.slots:
                task, number = _next(left, engine.prefers(), {task.group for task, *_ in busy.values()})
                engine.send(task)
                busy[task.key] = task, number, time.monotonic()
            answers = engine.receive(_patience(busy, manner.timeout))
            for key in [key for key, (*_, since) in busy.items() if _is_late(since, manner.timeout)]:
                if all(answer.key != key for answer in answers):
                    engine.stop(key)
                    answers.append(Answer(key, trouble=f"took longer than {manner.timeout:g} s"))
            for answer in answers:
                task, number, since = busy.pop(answer.key)
                if answer.trouble and not answer.hopeless and number <= manner.retries:
                    left.setdefault(task.group, deque()).append((task, number + 1))
                    continue
                seconds = time.monotonic() - since
                found[task.key] = Outcome(task, answer.value, answer.trouble, number, seconds)
                heard(found[task.key])
    finally:
        engine.close()
    return [found[task.key] for task in tasks]


def _next(left: dict[str, deque[tuple[Task, int]]], preferred: str | None, busy: set[str]) -> tuple[Task, int]:
    """Take the next task out: of the group that is preferred, else of one that nobody is at, else any."""
    first = next(iter(left))
    if preferred is None:
        group = first
    else:
        group = preferred if preferred in left else next((one for one in left if one not in busy), first)
    taken = left[group].popleft()
    if not left[group]:
        del left[group]
    return taken


def _is_late(since: float, timeout: float) -> bool:
    return 0 < timeout < time.monotonic() - since


def _patience(busy: dict[str, tuple[Task, int, float]], timeout: float) -> float:
    """How long to wait for answers before looking at the clock again."""
    if not timeout:
        return 60.0
    return max(0.01, min(since for *_, since in busy.values()) + timeout - time.monotonic() + 0.01)
