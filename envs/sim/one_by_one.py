"""RLScheduler's clock, compiled: one event at a time, with a chosen job that is not reconsidered.

What differs from `reserve` in kernel.py, each the rule of a published table: one queue for all pools; an arrival comes
before a completion of the same second; only one event is handled before the next decision, so jobs of one second become
visible one by one; ties go by the order that the queue, or the list of running jobs, was last sorted into; after a
start the clock stands still while anything waits; backfilling looks at the shadow time alone, which is computed once
from counts of GPUs.
"""

import numpy as np

from berth.compiled import njit
from envs.sim.moves import notice, occupy, try_place, vacate
from envs.sim.priorities import key
from envs.sim.state import ONE_BY_ONE_EASY, account


@njit
def replay_one_by_one(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    nodes: np.ndarray,
    places: np.ndarray,
    mix: np.ndarray,
    tally: np.ndarray,
) -> None:
    """Run jobs, given in the order in which they arrive, until the last has ended."""
    backfill = sim[0].discipline == ONE_BY_ONE_EASY
    queue, running = np.empty(len(jobs), np.int32), np.empty(len(jobs), np.int32)
    count = np.zeros(2, np.int64)  # how many wait, how many run
    sim[0].now = jobs[0].submit
    queue[0], count[0], sim[0].next = 0, 1, 1
    if mix.shape[1] > 0:
        notice(mix, jobs[0].pool, jobs[0].gpus)
    while count[0] > 0:
        keys, ties = np.empty(count[0]), np.empty(count[0])
        for i in range(count[0]):
            keys[i], ties[i] = key(sim, jobs, links, pools, queue[i])
        by_tie = np.argsort(ties, kind="mergesort")
        _stable_sort(queue, ties)
        _stable_sort(queue, keys[by_tie])
        chosen = queue[0]
        if not try_place(sim, jobs, pools, capacity, free, places, mix, tally, chosen):
            shadow = _shadow(jobs, pools, free, running, count[1], chosen) if backfill else -np.inf
            while True:
                if backfill:
                    _start_before(
                        sim, jobs, pools, capacity, free, nodes, places, mix, tally, queue, running, count, shadow
                    )
                _one_event(sim, jobs, capacity, free, nodes, places, mix, queue, running, count)
                if try_place(sim, jobs, pools, capacity, free, places, mix, tally, chosen):
                    break
        _start(sim, jobs, capacity, free, nodes, places, queue, running, count, chosen)
        while count[0] == 0 and (sim[0].next < len(jobs) or count[1] > 0):
            _one_event(sim, jobs, capacity, free, nodes, places, mix, queue, running, count)
    for node in range(len(free)):
        account(sim, nodes, capacity, free, node)


@njit
def _stable_sort(items: np.ndarray, keys: np.ndarray) -> None:
    """Sort the first items in place by their keys; equal ones keep their order."""
    items[: len(keys)] = items[: len(keys)][np.argsort(keys, kind="mergesort")]


@njit
def _start(
    sim: np.ndarray,
    jobs: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    nodes: np.ndarray,
    places: np.ndarray,
    queue: np.ndarray,
    running: np.ndarray,
    count: np.ndarray,
    job: int,
) -> None:
    """Start a queued job on the nodes chosen for it."""
    occupy(sim, jobs, capacity, free, nodes, places, job)
    at = 0
    while queue[at] != job:
        at += 1
    for i in range(at, count[0] - 1):
        queue[i] = queue[i + 1]
    count[0] -= 1
    running[count[1]] = job
    count[1] += 1


@njit
def _one_event(
    sim: np.ndarray,
    jobs: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    nodes: np.ndarray,
    places: np.ndarray,
    mix: np.ndarray,
    queue: np.ndarray,
    running: np.ndarray,
    count: np.ndarray,
) -> None:
    """Handle the next arrival or the earliest completion, whichever comes first; the arrival if both do."""
    ends = np.empty(count[1])
    for i in range(count[1]):
        ends[i] = jobs[running[i]].start + jobs[running[i]].run_time
    _stable_sort(running, ends)
    end = ends.min() if count[1] > 0 else np.inf
    coming = sim[0].next
    if coming < len(jobs) and jobs[coming].submit <= end:
        sim[0].now = max(sim[0].now, jobs[coming].submit)
        if mix.shape[1] > 0:
            notice(mix, jobs[coming].pool, jobs[coming].gpus)
        queue[count[0]] = coming
        count[0] += 1
        sim[0].next = coming + 1
        return
    sim[0].now = max(sim[0].now, end)
    vacate(sim, jobs, capacity, free, nodes, places, running[0])
    for i in range(count[1] - 1):
        running[i] = running[i + 1]
    count[1] -= 1


@njit
def _shadow(
    jobs: np.ndarray, pools: np.ndarray, free: np.ndarray, running: np.ndarray, count: int, chosen: int
) -> float:
    """The estimated end of the running job whose processors let the chosen one fit by count; sorts `running` by it."""
    ends = np.empty(count)
    for i in range(count):
        ends[i] = jobs[running[i]].start + jobs[running[i]].estimate
    _stable_sort(running, ends)
    pool = jobs[chosen].pool
    idle = np.sum(free[pools[pool].low : pools[pool].high])
    for i in range(count):
        if jobs[running[i]].pool == pool:
            idle += jobs[running[i]].gpus
        if idle >= jobs[chosen].gpus:
            return jobs[running[i]].start + jobs[running[i]].estimate
    return ends.max()


@njit
def _start_before(
    sim: np.ndarray,
    jobs: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    nodes: np.ndarray,
    places: np.ndarray,
    mix: np.ndarray,
    tally: np.ndarray,
    queue: np.ndarray,
    running: np.ndarray,
    count: np.ndarray,
    shadow: float,
) -> None:
    """Start every waiting job, in submit order, that fits and should end before the shadow time."""
    submits = np.empty(count[0])
    for i in range(count[0]):
        submits[i] = jobs[queue[i]].submit
    _stable_sort(queue, submits)
    for job in queue[: count[0]].copy():
        soon = sim[0].now + jobs[job].estimate < shadow
        if soon and try_place(sim, jobs, pools, capacity, free, places, mix, tally, job):
            _start(sim, jobs, capacity, free, nodes, places, queue, running, count, job)
