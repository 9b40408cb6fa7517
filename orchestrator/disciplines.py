"""How a host's queue is served, given the order that a policy wants: which jobs start now."""

from collections.abc import Callable

import numpy as np

from envs.snapshot import Snapshot

Serve = Callable[[Snapshot, np.ndarray], list[int]]
"""A Snapshot of one host, and the rows of its queue in order -> the rows that start now, in this order."""


def strict(view: Snapshot, order: np.ndarray) -> list[int]:
    """Jobs start from the first on while they fit; the first that does not fit blocks the queue."""
    free, starts = int(view.free.sum()), []
    for row in order.tolist():
        if view.gpus[row] > free:
            break
        free -= int(view.gpus[row])
        starts.append(row)
    return starts


def fit(view: Snapshot, order: np.ndarray) -> list[int]:
    """Every job that fits starts, in order."""
    free, starts = int(view.free.sum()), []
    for row in order.tolist():
        if view.gpus[row] <= free:
            free -= int(view.gpus[row])
            starts.append(row)
    return starts


def easy(view: Snapshot, order: np.ndarray) -> list[int]:
    """As strict, and jobs slip past the first that does not fit, if that does not delay it.

    It should start when enough running jobs have ended, the shadow time; who slips past should end by then, or fit
    beside it.
    """
    starts = strict(view, order)
    if len(starts) == len(order):
        return starts
    free = int(view.free.sum() - view.gpus[starts].sum())
    first = int(order[len(starts)])
    shadow, beside = _shadow(view, starts, free, int(view.gpus[first]))
    for row in order[len(starts) + 1 :].tolist():
        cores = int(view.gpus[row])
        in_time = view.now + view.run_time[row] <= shadow
        if cores > free or not (in_time or cores <= beside):
            continue
        free -= cores
        beside -= 0 if in_time else cores
        starts.append(row)
    return starts


def _shadow(view: Snapshot, starts: list[int], free: int, wanted: int) -> tuple[float, int]:
    """When so many cores should be free, and how many beside them are then."""
    end = np.concatenate((np.maximum(view.running_end, view.now), view.now + view.run_time[starts]))
    cores = np.concatenate((view.running_gpus, view.gpus[starts]))
    for moment in np.unique(end):
        free += int(cores[end == moment].sum())
        if free >= wanted:
            return float(moment), free - wanted
    return float("inf"), 0


DISCIPLINES: dict[str, Serve] = {"strict": strict, "fit": fit, "easy": easy}
"""Every discipline of the orchestrator by name; each starts what the simulator's of that name would."""
