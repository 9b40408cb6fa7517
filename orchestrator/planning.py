"""The order in which somebody who decides job by job would start the queued jobs of a Snapshot."""

import time
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from envs.desk import HOUR
from envs.sim.outlook import remaining
from envs.snapshot import HOLDING, QUEUED, UP, Snapshot

PATIENCE = 0.5
"""Seconds that a plan may take; what has not been decided by then stays in order of submit."""

STEPS = 20
"""Questions for each job that is to be planned, at most."""


class Asked(Protocol):
    """Somebody who answers a Snapshot with who starts where, as orchestrator/deciding.py does."""

    def decide(self, view: Snapshot, scores: bool) -> dict[str, Any]:
        """The answer, as JSON has it."""


class Plan(NamedTuple):
    """Who would start in which order, and who of them now, where."""

    order: np.ndarray  # (queued,) rows of the Snapshot
    starts: dict[int, tuple[str, ...]]  # rows of those that would start at once: their nodes, by name or row


class _Later:
    """A cluster as it will be: what was decided has started, what should have ended has."""

    def __init__(self, view: Snapshot) -> None:
        self.view = view
        self.now, self.free = view.now, view.free.copy()
        self.queued = np.arange(len(view.job))
        self.holding: set[int] = set()
        told = view.running_end - view.running_start if view.running_guess is None else view.running_guess
        nodes, gpus = (() if column is None else column.tolist() for column in (view.place_node, view.place_gpus))
        at = [0] if view.place_at is None else view.place_at.tolist()
        places = [list(zip(nodes[low:high], gpus[low:high], strict=True)) for low, high in pairwise(at)]
        guess = np.where(np.isnan(told), HOUR, told)
        left = [remaining(view.now, start, one) for start, one in zip(view.running_start, guess, strict=True)]
        self.running = [
            (
                view.running_job[i],
                float(view.running_start[i]),
                view.now + left[i],
                int(view.running_pool[i]),
                places[i],
            )
            for i in range(len(places))
        ]

    def seen(self) -> Snapshot:
        """What can be seen of it."""
        view, rows = self.view, self.queued
        counts = [len(places) for *_, places in self.running]
        shares = [share for *_, places in self.running for share in places]
        held = np.isin(rows, list(self.holding))
        whole = np.int64
        start = np.array([start for _, start, *_ in self.running], float)
        end = np.array([end for _, _, end, *_ in self.running], float)
        return view._replace(
            now=self.now, job=view.job[rows], submit=view.submit[rows], wait=self.now - view.submit[rows],
            gpus=view.gpus[rows], run_time=view.run_time[rows], pool=view.pool[rows],
            running_job=np.array([job for job, *_ in self.running], view.job.dtype), running_start=start,
            running_gpus=np.array([sum(gpus for _, gpus in places) for *_, places in self.running], whole),
            running_pool=np.array([pool for _, _, _, pool, _ in self.running], whole), running_end=end,
            free=self.free.copy(), state=np.where(held, HOLDING, QUEUED).astype(np.int8),
            history=None if view.history is None else view.history[rows],
            nearby=None if view.nearby is None else view.nearby[rows],
            cores=None if view.cores is None else view.cores[rows],
            memory=None if view.memory is None else view.memory[rows], running_guess=end - start,
            place_at=np.concatenate(([0], np.cumsum(counts, dtype=whole))),
            place_node=np.array([node for node, _ in shares], whole),
            place_gpus=np.array([gpus for _, gpus in shares], whole),
        )  # fmt: skip

    def start(self, row: int, places: list[tuple[int, int]], run_time: float) -> None:
        """Let a job start."""
        for node, gpus in places:
            self.free[node] -= gpus
        self.queued = self.queued[self.queued != row]
        self.holding.discard(row)
        self.running.append((self.view.job[row], self.now, self.now + run_time, int(self.view.pool[row]), places))

    def move_on(self) -> bool:
        """Go to the next expected end; whether there is one."""
        if not self.running:
            return False
        self.now = max(self.now, min(end for _, _, end, *_ in self.running))
        states = self.view.node_state
        for _, _, end, _, places in self.running:
            for node, gpus in places if end <= self.now else ():
                if states is None or states[node] == UP:
                    self.free[node] = min(self.free[node] + gpus, self.view.capacity[node])
        self.running = [one for one in self.running if one[2] > self.now]
        self.holding.clear()  # whoever was chosen and did not fit is asked again
        return True


def plan(view: Snapshot, asked: Asked, run_time: np.ndarray, head: int, patience: float = PATIENCE) -> Plan:
    """Ask again and again, as if running jobs ended when they should, until `head` jobs have been chosen.

    run_time (queued,) s, how long each should run. The others follow in order of submit, and so do all that are left
    when `patience` seconds are over. A job that is chosen and does not fit counts as chosen: it is whom room is made
    for. Needs the places of running jobs; without them nothing is foreseen beyond now.
    """
    later = _Later(_placed(view))
    rows = {job: row for row, job in enumerate(view.job.tolist())}
    nodes = {name: i for i, name in enumerate(range(len(view.free)) if view.node_name is None else view.node_name)}
    chosen: dict[int, None] = {}
    starts: dict[int, tuple[str, ...]] = {}
    end, questions = time.monotonic() + patience, STEPS * (min(head, len(rows)) + 1)
    while len(chosen) < min(head, len(rows)) and questions > 0 and time.monotonic() < end:
        questions -= 1
        answer = asked.decide(later.seen(), False)
        if answer["holds"] is not None:
            row = rows[answer["holds"]]
            chosen.setdefault(row)
            later.holding.add(row)
        for start in ([answer] if answer["job"] is not None else []) + answer["also"]:
            row = rows[start["job"]]
            chosen.setdefault(row)
            if later.now == view.now:
                starts[row] = tuple(share["node"] for share in start["nodes"])
            later.start(row, [(nodes[share["node"]], share["gpus"]) for share in start["nodes"]], float(run_time[row]))
        if answer["job"] is None and answer["holds"] is None and not later.move_on():
            break
    first = np.array(list(chosen), np.int64)
    rest = np.setdiff1d(np.arange(len(rows)), first)
    return Plan(np.concatenate((first, rest[np.lexsort((view.job[rest], view.submit[rest]))])), starts)


def _placed(view: Snapshot) -> Snapshot:
    """The same with places; running jobs without them never end."""
    if view.place_at is not None:
        return view
    nothing = np.zeros(0, np.int64)
    return view._replace(
        running_job=view.running_job[:0], running_start=np.zeros(0), running_gpus=nothing, running_pool=nothing,
        running_end=np.zeros(0), running_guess=np.zeros(0), place_at=np.zeros(1, np.int64), place_node=nothing,
        place_gpus=nothing,
    )  # fmt: skip
