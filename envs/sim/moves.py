"""The single moves that every discipline is made of, compiled: queue, place, start, release."""

import numpy as np

from allocation.outlined import placing
from allocation.placers import MILP
from allocation.tiers import mixed
from berth.compiled import njit
from envs.sim.outside import ask_outside
from envs.sim.priorities import key, ranking
from envs.sim.rankset import insert, next_from, note_least, remove
from envs.sim.state import RECENT, account, push_end


@njit
def enqueue(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    queues: np.ndarray,
    bits: np.ndarray,
    least: np.ndarray,
    lengths: np.ndarray,
    mix: np.ndarray,
    job: int,
) -> None:
    """Let an arrived job wait."""
    queue = jobs[job].queue
    if mix.shape[1] > 0:
        notice(mix, jobs[job].pool, jobs[job].gpus)
    queues[queue].touched = True
    queues[queue].waiting += 1
    if sim[0].ranked:
        insert(bits, jobs[job].rank)
        if len(least) > 0:
            lengths[jobs[job].rank] = jobs[job].estimate
            note_least(bits, least, lengths, jobs[job].rank)
        queues[queue].replan = min(queues[queue].replan, jobs[job].rank)
        return
    last = queues[queue].tail
    links[job].before = last
    links[job].after = -1
    queues[queue].tail = job
    if last < 0:
        queues[queue].head = job
    else:
        links[last].after = job


@njit
def dequeue(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    queues: np.ndarray,
    bits: np.ndarray,
    least: np.ndarray,
    lengths: np.ndarray,
    job: int,
) -> None:
    """Take a job out of its queue."""
    queue = jobs[job].queue
    queues[queue].waiting -= 1
    if sim[0].ranked:
        remove(bits, jobs[job].rank)
        if len(least) > 0:
            note_least(bits, least, lengths, jobs[job].rank)
        return
    left, right = links[job].before, links[job].after
    if left < 0:
        queues[queue].head = right
    else:
        links[left].after = right
    if right < 0:
        queues[queue].tail = left
    else:
        links[right].before = left


@njit
def try_place(
    sim: np.ndarray,
    jobs: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    places: np.ndarray,
    mix: np.ndarray,
    tally: np.ndarray,
    job: int,
) -> bool:
    """Choose nodes for a job out of those with `free` GPUs; False where it does not fit."""
    if sim[0].placer == MILP:
        fit = sim[0].handle >= 0 and would_fit(sim, jobs, pools, capacity, free, tally, job)
        jobs[job].place_count = ask_outside(sim[0].handle, job, free) if fit else 0
        return jobs[job].place_count > 0
    pool = jobs[job].pool
    jobs[job].place_count = placing(
        sim[0].placers,
        False,
        sim[0].placer,
        sim[0].tiers,
        free,
        capacity,
        pools[pool].low,
        pools[pool].high,
        jobs[job].gpus,
        jobs[job].fewest,
        mix[pool],
        mixed(mixed(sim[0].seed, int(sim[0].now)), jobs[job].gpus),
        places,
        jobs[job].place_at,
        tally,
    )
    return jobs[job].place_count > 0


@njit
def would_fit(
    sim: np.ndarray,
    jobs: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    tally: np.ndarray,
    job: int,
) -> bool:
    """Tell whether a job would fit where `free` GPUs are idle, choosing no nodes."""
    return room_for(sim, pools, capacity, free, tally, jobs[job].pool, jobs[job].gpus, jobs[job].fewest)


@njit
def room_for(
    sim: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    tally: np.ndarray,
    pool: int,
    gpus: int,
    fewest: int,
) -> bool:
    """Tell whether a job of that size would fit a pool where `free` GPUs are idle."""
    low, high = pools[pool].low, pools[pool].high
    return (
        placing(
            sim[0].placers, True, sim[0].placer, sim[0].tiers, free, capacity, low, high, gpus, fewest, tally, 0,
            tally, 0, tally,
        )
        > 0
    )  # fmt: skip


@njit
def known_unfit(sim: np.ndarray, jobs: np.ndarray, pools: np.ndarray, sizes: np.ndarray, job: int) -> bool:
    """Tell whether jobs of this size were seen not to fit in this walk, and nothing can have changed that."""
    seen = sizes[jobs[job].size_class].unfit_at
    return seen >= 0 and (pools[jobs[job].pool].never_gains or seen == sim[0].started)


@njit
def notice(mix: np.ndarray, pool: int, gpus: int) -> None:
    """Let `fgd` see a job that has arrived, in place of the oldest of its pool's last jobs.

    mix (pools, largest + 2 + RECENT): how many of them ask for more than 0, 1, ... GPUs, how many have come, and their
    sizes.
    """
    seen = mix.shape[1] - RECENT - 1
    at = seen + 1 + mix[pool, seen] % RECENT
    for f in range(min(mix[pool, at], seen)):
        mix[pool, f] -= 1
    for f in range(min(gpus, seen)):
        mix[pool, f] += 1
    mix[pool, at] = gpus
    mix[pool, seen] += 1


@njit
def occupy(
    sim: np.ndarray,
    jobs: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    nodes: np.ndarray,
    places: np.ndarray,
    job: int,
) -> None:
    """Take the GPUs of a job that starts now on the nodes chosen for it."""
    for at in range(jobs[job].place_at, jobs[job].place_at + jobs[job].place_count):
        account(sim, nodes, capacity, free, places[at].node)
        free[places[at].node] -= places[at].gpus
    jobs[job].start = sim[0].now
    sim[0].started += 1


@njit
def vacate(
    sim: np.ndarray,
    jobs: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    nodes: np.ndarray,
    places: np.ndarray,
    job: int,
) -> None:
    """Give back the GPUs of a job that has ended."""
    for at in range(jobs[job].place_at, jobs[job].place_at + jobs[job].place_count):
        account(sim, nodes, capacity, free, places[at].node)
        free[places[at].node] += places[at].gpus


@njit
def begin(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    queues: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    nodes: np.ndarray,
    ends: np.ndarray,
    places: np.ndarray,
    bits: np.ndarray,
    least: np.ndarray,
    lengths: np.ndarray,
    job: int,
) -> None:
    """Start a queued job now on the nodes chosen for it."""
    occupy(sim, jobs, capacity, free, nodes, places, job)
    dequeue(sim, jobs, links, queues, bits, least, lengths, job)
    push_end(sim, ends, sim[0].now + jobs[job].run_time, job)


@njit
def first_by_key(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    queues: np.ndarray,
    pools: np.ndarray,
    sizes: np.ndarray,
    bits: np.ndarray,
    by_rank: np.ndarray,
    queue: int,
) -> int:
    """The waiting job that goes first now; there is one."""
    if sim[0].by_size:
        best = -1
        for size in range(queues[queue].size_low, queues[queue].size_high):
            rank = next_from(bits, sizes[size].low, sizes[size].high)
            if rank >= 0 and (best < 0 or links[by_rank[rank]].priority < links[best].priority):
                best = by_rank[rank]
        return best
    if sim[0].ranked:
        return by_rank[next_from(bits, queues[queue].low, queues[queue].high)]
    best = job = queues[queue].head
    best_key, best_tie = key(sim, jobs, links, pools, job)
    while links[job].after >= 0:
        job = links[job].after
        this_key, this_tie = key(sim, jobs, links, pools, job)
        if this_key < best_key or (this_key == best_key and this_tie < best_tie):
            best, best_key, best_tie = job, this_key, this_tie
    return best


@njit
def line_up(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    queues: np.ndarray,
    pools: np.ndarray,
    bits: np.ndarray,
    by_rank: np.ndarray,
    queue: int,
) -> np.ndarray:
    """All waiting jobs of a queue as they go now, best first."""
    line = np.empty(queues[queue].waiting, np.int32)
    if sim[0].ranked:
        rank, high = queues[queue].low - 1, queues[queue].high
        for i in range(len(line)):
            rank = next_from(bits, rank + 1, high)
            line[i] = by_rank[rank]
        return line
    keys, ties = np.empty(len(line)), np.empty(len(line))
    job = queues[queue].head
    for i in range(len(line)):
        line[i] = job
        keys[i], ties[i] = key(sim, jobs, links, pools, job)
        job = links[job].after
    return line[ranking(keys, ties)]
