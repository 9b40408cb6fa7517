"""Who names hosts: exported policies, for the first queued job of a Snapshot that fits anywhere."""

from typing import Any

import numpy as np

from berth.compiled import njit
from berth.errors import SnapshotError
from envs.snapshot import HOLDING, UP, Snapshot
from envs.wire import VERSION
from train.forward import Exported
from train.host_forward import HostPolicy


class HostDecider:
    """Names the host that a job starts on."""

    kind = "host"

    def __init__(self, policy: HostPolicy) -> None:
        self.policy, self.name = policy, policy.name

    @property
    def wants(self) -> dict[str, Any]:
        """What a Snapshot must tell, and the largest job that the policy can tell from others."""
        return {
            "cores": True,
            "memory": True,
            "most_cores": self.policy.most_cores,
            "most_memory": self.policy.most_memory,
        }

    def decide(self, view: Snapshot, scores: bool = False) -> dict[str, Any]:
        """The first queued job, by submission, that some host has room for, and the host; or why there is none."""
        hosts, free = _hosts(view)
        wanted = _wanted(view)
        waits = np.ones(len(view.job), bool) if view.state is None else view.state <= HOLDING
        row = first_that_fits(free, wanted, np.array(view.submit, float), waits)
        if row >= 0:
            able = (free[:, 0] >= wanted[row, 0]) & (free[:, 1] >= wanted[row, 1])
            return self._named(view, row, hosts, free, wanted[row], able, scores)
        why = "no job that waits fits now" if waits.any() else "no job waits"
        return {"version": VERSION, "job": None, "host": None, "why": why}

    def warm_up(self) -> None:
        """Decide once for a job and a host, so that all compiled code is there."""
        one, few, none, nobody = np.ones(1), np.ones(1, np.int32), np.zeros(0), np.zeros(0, np.int32)
        self.decide(
            Snapshot(
                1.0, few, 0 * one, one, few, one, 0 * few, nobody, none, nobody, nobody, none, few, few, 0 * few,
                cores=one, memory=one, node_cores=one, node_free_cores=one, node_memory=one, node_free_memory=one,
            )
        )  # fmt: skip

    def choose(
        self, hosts: np.ndarray, free: np.ndarray, wanted: np.ndarray, able: np.ndarray
    ) -> tuple[int, np.ndarray]:
        """The likeliest of the hosts that have room, and all logits; hosts, free (hosts, 2) and wanted (2,)."""
        seen, job = self.policy.state_of(hosts, free, float(wanted[0]), float(wanted[1]))
        logits = self.policy.logits(seen, job)
        return int(np.where(able, logits, -np.inf).argmax()), logits

    def _named(
        self, view: Snapshot, row: int, hosts: np.ndarray, free: np.ndarray, wanted: np.ndarray, able: np.ndarray,
        scores: bool,
    ) -> dict[str, Any]:  # fmt: skip
        chosen, logits = self.choose(hosts, free, wanted, able)
        names = np.arange(len(hosts)) if view.node_name is None else view.node_name
        answer: dict[str, Any] = {"version": VERSION, "job": _plain(view.job[row]), "host": _plain(names[chosen])}
        if scores:
            answer["scores"] = [[_plain(names[h]), float(logits[h])] for h in np.flatnonzero(able)]
        return answer


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _hosts(view: Snapshot) -> tuple[np.ndarray, np.ndarray]:
    """What hosts have (hosts, 2), cores and memory, and what of it is free; nothing where they are not up."""
    columns = {
        "cores": view.node_cores, "free_cores": view.node_free_cores, "memory": view.node_memory,
        "free_memory": view.node_free_memory,
    }  # fmt: skip
    for name, column in columns.items():
        if column is None:
            raise SnapshotError(f"nodes.{name}: nothing; want it: the policy names hosts by cores and memory")
    cores, free_cores, memory, free_memory = (np.asarray(column, float) for column in columns.values())
    hosts, free = np.empty((len(cores), 2)), np.empty((len(cores), 2))
    hosts[:, 0], hosts[:, 1], free[:, 0], free[:, 1] = cores, memory, free_cores, free_memory
    wrong = (hosts <= 0) | (free > hosts)
    if wrong.any():
        row = int(np.argmax(wrong.any(axis=1)))
        had = f"{free_cores[row]:g} of {cores[row]:g} cores and {free_memory[row]:g} of {memory[row]:g} MB free"
        raise SnapshotError(f"nodes[{row}]: {had}; want more than 0 of each, and no more free than there is")
    if view.node_state is not None:
        free[view.node_state != UP] = -1.0
    return hosts, free


def _wanted(view: Snapshot) -> np.ndarray:
    """What queued jobs ask for (queued, 2): cores and memory."""
    if view.cores is None or view.memory is None:
        name = "cores" if view.cores is None else "memory"
        raise SnapshotError(f"queued.{name}: nothing; want it: the policy names hosts by cores and memory")
    found = np.empty((len(view.job), 2))
    found[:, 0], found[:, 1] = view.cores, view.memory
    return found


@njit
def first_that_fits(free: np.ndarray, wanted: np.ndarray, submit: np.ndarray, waits: np.ndarray) -> int:
    """The row of the waiting job that was submitted first of those that some host has room for; -1: there is none.

    free (hosts, 2) and wanted (jobs, 2) are cores and memory. Hosts are sorted by cores, with the most memory of those
    that have as many or more, so that many jobs that fit nowhere cost one search each.
    """
    order = np.argsort(-free[:, 0])
    most = np.empty(len(free))
    for i in range(len(order)):
        most[i] = free[order[i], 1] if i == 0 else max(most[i - 1], free[order[i], 1])
    found = -1
    for row in range(len(wanted)):
        if not waits[row] or (found >= 0 and submit[row] >= submit[found]):
            continue
        low, high = 0, len(order)  # hosts before `low` have enough cores
        while low < high:
            middle = (low + high) >> 1
            if free[order[middle], 0] >= wanted[row, 0]:
                low = middle + 1
            else:
                high = middle
        if low > 0 and most[low - 1] >= wanted[row, 1]:
            found = row
    return found


def of_hosts(exported: Exported) -> HostDecider:
    """Who names hosts by an exported policy."""
    decider = HostDecider(HostPolicy(exported))
    decider.warm_up()
    return decider
