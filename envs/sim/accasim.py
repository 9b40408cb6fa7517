"""The backfilling of AccaSim 1.1, compiled: whatever fits passes the blocked job, which waits for its reservation.

One reservation, computed once when a job is blocked, from counts of GPUs. Until then the job is not tried, even if it
would fit; every other job that fits starts, however long it is. AccaSim calls this EASY.
"""

import numpy as np

from berth.compiled import njit
from envs.sim.moves import begin, line_up, try_place


@njit
def try_held(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    queues: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    nodes: np.ndarray,
    ends: np.ndarray,
    places: np.ndarray,
    bits: np.ndarray,
    least: np.ndarray,
    lengths: np.ndarray,
    mix: np.ndarray,
    tally: np.ndarray,
    queue: int,
) -> bool:
    """Start the blocked job if its time has come and it fits; False while it stays blocked."""
    job = queues[queue].held
    if job < 0:
        return True
    if queues[queue].shadow > sim[0].now or not try_place(sim, jobs, pools, capacity, free, places, mix, tally, job):
        return False
    begin(sim, jobs, links, queues, capacity, free, nodes, ends, places, bits, least, lengths, job)
    queues[queue].held = -1
    return True


@njit
def reserve_once(
    sim: np.ndarray,
    jobs: np.ndarray,
    queues: np.ndarray,
    pools: np.ndarray,
    free: np.ndarray,
    ends: np.ndarray,
    queue: int,
    first: int,
) -> None:
    """Find when the blocked job should fit by count, from the expected ends of the running jobs; it may be past."""
    pool = jobs[first].pool
    idle = np.sum(free[pools[pool].low : pools[pool].high])
    times = np.empty(sim[0].running)
    for i in range(sim[0].running):
        times[i] = jobs[ends[i].job].start + jobs[ends[i].job].estimate
    queues[queue].shadow = sim[0].now
    for i in np.argsort(times):
        if idle >= jobs[first].gpus:
            return
        if jobs[ends[i].job].pool == pool:
            idle += jobs[ends[i].job].gpus
            queues[queue].shadow = times[i]


@njit
def start_the_rest(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    queues: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    nodes: np.ndarray,
    ends: np.ndarray,
    places: np.ndarray,
    bits: np.ndarray,
    by_rank: np.ndarray,
    least: np.ndarray,
    lengths: np.ndarray,
    mix: np.ndarray,
    tally: np.ndarray,
    queue: int,
) -> None:
    """Start every waiting job but the blocked one that fits."""
    for job in line_up(sim, jobs, links, queues, pools, bits, by_rank, queue):
        if job != queues[queue].held and try_place(sim, jobs, pools, capacity, free, places, mix, tally, job):
            begin(sim, jobs, links, queues, capacity, free, nodes, ends, places, bits, least, lengths, job)


@njit
def wait_for_reservation(sim: np.ndarray, queues: np.ndarray) -> bool:
    """Where no event is left, step whole seconds on to the first reservation; False where no blocked job waits."""
    first = np.inf
    for queue in range(len(queues)):
        queues[queue].touched = queues[queue].held >= 0
        if queues[queue].held >= 0:
            first = min(first, queues[queue].shadow)
    if first == np.inf:
        return False
    sim[0].now += max(np.ceil(first - sim[0].now), 1.0)
    return True
