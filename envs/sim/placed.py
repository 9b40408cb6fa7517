"""Where running jobs are, as a Snapshot tells it, compiled: checked while it is laid out."""

import numpy as np

from berth.compiled import njit

SOUND, OUT_OF_RANGE, NOT_THE_JOBS, OTHER_POOL, TOO_MANY = range(5)
"""What may be wrong: a number, a job's GPUs in all, the pool of a node, or the GPUs of a node in all."""


@njit
def fill_places(
    pairs: np.ndarray, place_at: np.ndarray, gpus: np.ndarray, pool: np.ndarray, node_pool: np.ndarray,
    capacity: np.ndarray, free: np.ndarray, most: int, place_node: np.ndarray, place_gpus: np.ndarray,
) -> tuple[int, int, int]:  # fmt: skip
    """Write the nodes and GPUs of all places; tells what is wrong, of which job or node, and the GPUs counted there.

    pairs (2 places,) has node and GPUs by turns, place_at (jobs + 1,) where the places of each job begin.
    """
    used = np.zeros(len(capacity), np.int64)
    for job in range(len(gpus)):
        total, least = 0, np.int64(1)
        for i in range(place_at[job], place_at[job + 1]):
            node, share = pairs[2 * i], pairs[2 * i + 1]
            if node < 0 or node >= len(capacity) or share < 0 or share > most:
                return OUT_OF_RANGE, job, 0
            if node_pool[node] != pool[job]:
                return OTHER_POOL, job, 0
            place_node[i], place_gpus[i] = node, share
            used[node] += share
            total, least = total + share, min(least, share)
        if total != gpus[job] or least < 1:
            return NOT_THE_JOBS, job, total
    for node in range(len(capacity)):
        if used[node] + free[node] > capacity[node]:
            return TOO_MANY, node, used[node] + free[node]
    return SOUND, -1, 0
