"""How much room each pool has, compiled: looked at again only where something has happened."""

import numpy as np

from allocation.tiers import count_free, largest
from berth.compiled import inlined, njit
from envs.sim.moves import room_for


@njit
def look_at_nodes(
    pools: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    looks: np.ndarray,
    seen: np.ndarray,
    counts: np.ndarray,
    p: int,
) -> None:
    """Count the nodes of a pool by their idle GPUs, if these have changed."""
    low, high = pools[p].low, pools[p].high
    look = looks[p]
    look.stale = False
    changed = look.version == 0
    for n in range(low, high):
        changed = changed or seen[n] != free[n]
        seen[n] = free[n]
    if not changed:
        return
    look.version += 1
    look.free = look.on_idle = look.partly = look.largest = 0
    count_free(free, low, high, counts[p])
    for n in range(low, high):
        look.free += free[n]
        look.largest = max(look.largest, free[n])
        if free[n] == capacity[n]:
            look.on_idle += free[n]
        elif free[n] > 0:
            look.partly += 1


@inlined
def fits_now(
    sim: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    tally: np.ndarray,
    episode: np.ndarray,
    kinds: np.ndarray,
    looks: np.ndarray,
    counts: np.ndarray,
    k: int,
) -> bool:
    """Tell whether a job of a size would start at once; the placers are asked only where counting does not tell."""
    p, gpus, fewest = kinds[k].pool, kinds[k].gpus, kinds[k].fewest
    if looks[p].free < gpus:
        return False
    if episode[0].tiered:
        if largest(counts[p], fewest) >= gpus:
            return True
        if sim[0].tiers == 1 or largest(counts[p], fewest + 1) < gpus:
            return False
    return room_for(sim, pools, capacity, free, tally, p, gpus, fewest)


@inlined
def mark_what_fits(
    sim: np.ndarray,
    queues: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    tally: np.ndarray,
    episode: np.ndarray,
    kinds: np.ndarray,
    looks: np.ndarray,
    seen: np.ndarray,
    counts: np.ndarray,
) -> bool:
    """Under `fit`, mark the sizes that can be chosen; tell whether there is one."""
    found = False
    for p in range(len(looks)):
        if looks[p].stale:
            look_at_nodes(pools, capacity, free, looks, seen, counts, p)
            looks[p].open = False
            for k in range(queues[p].size_low, queues[p].size_high):
                if kinds[k].waiting > 0 and kinds[k].tried != looks[p].version:
                    kinds[k].tried = looks[p].version
                    kinds[k].fits = fits_now(sim, pools, capacity, free, tally, episode, kinds, looks, counts, k)
                kinds[k].choosable = kinds[k].fits and kinds[k].waiting > 0
                looks[p].open = looks[p].open or kinds[k].choosable
        found = found or looks[p].open
    return found
