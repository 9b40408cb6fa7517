"""The loop: what has ended and arrived, a Snapshot, a decision, starts, and waiting for what comes next."""

from collections.abc import Callable, Sequence

from berth.errors import SchedulerError
from orchestrator.host import Host
from orchestrator.running import Backend, Ended
from orchestrator.starting import Chooser

Record = Callable[[Sequence[Ended]], None]
"""Told of the jobs that have ended, at once, so that they are written down before anything else happens."""


def run_jobs(
    host: Host, chooser: Chooser, backend: Backend, record: Record, is_stopped: Callable[[], bool] = lambda: False
) -> bool:
    """Run all jobs that have not ended; tells whether all have, or somebody has asked to stop before.

    Whatever happens, nothing runs any more when this returns or raises.
    """
    try:
        while host.unfinished:
            if is_stopped():
                return False
            _round(host, chooser, backend, record)
            if host.unfinished:
                backend.wait(host.next_submit())
        return True
    finally:
        backend.stop()


def _round(host: Host, chooser: Chooser, backend: Backend, record: Record) -> None:
    """What has happened, and what is done about it; nothing is decided where nothing has happened."""
    ended = backend.ended()
    for one in ended:
        host.finish(one)
    if ended:
        record(ended)
    now = backend.now()
    if not host.arrive(now) and not ended:
        return
    if not chooser.holds_on:
        host.holding[:] = False
    again = True
    while again:
        choice = chooser.choose(host.snapshot(now))
        if choice.holds >= 0:
            host.holding[choice.holds] = True
        for number in choice.starts:
            _check_room(host, number)
            host.begin(number, backend.start(host.job(number)))
        again = choice.again


def _check_room(host: Host, number: int) -> None:
    """Raise SchedulerError where a decision would take more cores than the host has: a fault of ours."""
    free = host.free
    if host.gpus[number] > free:
        raise SchedulerError(f"job {host.name[number]} was to start on {host.gpus[number]} cores, and {free} are free")
