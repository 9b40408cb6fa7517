"""Who is next in line, compiled: what a placer with foresight looks at."""

import numpy as np

from berth.compiled import njit
from envs.sim.backfill import behind
from envs.sim.moves import line_up
from envs.sim.rankset import next_from


@njit
def next_in_line(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    queues: np.ndarray,
    pools: np.ndarray,
    sizes: np.ndarray,
    bits: np.ndarray,
    by_rank: np.ndarray,
    job: int,
    wanted: int,
) -> np.ndarray:
    """The first waiting jobs of a job's pool as they go now, without it; at most so many."""
    found = np.empty(wanted, np.int32)
    count, queue, pool = 0, jobs[job].queue, jobs[job].pool
    if sim[0].by_size:
        passed = -1
        while count < wanted:
            best = -1
            for size in range(queues[queue].size_low, queues[queue].size_high):
                low = behind(links, by_rank, sizes[size].low, sizes[size].high, passed)
                rank = next_from(bits, low, sizes[size].high)
                if rank < 0 or jobs[by_rank[rank]].pool != pool:
                    continue
                if best < 0 or links[by_rank[rank]].priority < links[best].priority:
                    best = by_rank[rank]
            if best < 0:
                break
            passed = links[best].priority
            if best != job:
                found[count] = best
                count += 1
    elif sim[0].ranked:
        rank = queues[queue].low - 1
        while count < wanted:
            rank = next_from(bits, rank + 1, queues[queue].high)
            if rank < 0:
                break
            other = by_rank[rank]
            if other != job and jobs[other].pool == pool:
                found[count] = other
                count += 1
    else:
        for other in line_up(sim, jobs, links, queues, pools, bits, by_rank, queue):
            if other != job and jobs[other].pool == pool and count < wanted:
                found[count] = other
                count += 1
    return found[:count]
