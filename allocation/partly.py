"""How few partly used nodes a placement can leave, compiled: counted, where a search would take far longer.

The tiers give a job so few nodes that without any one of them it would not fit. So it can fill all of them but one,
which keeps the GPUs left over: of the nodes chosen one is partly used then, or none if nothing is left over. To leave
few, choose as many as possible that are partly used now, and if it can be such that nothing is left over.
"""

import numpy as np

from berth.compiled import njit

MOST_SPARE = 62
"""How many GPUs the nodes of a placement may lack against idle ones of the widest kind; each is a bit of a number."""

_TOO_MUCH = 1 << 40


@njit
def least_change(
    capacity: np.ndarray, free: np.ndarray, low: int, high: int, widest: int, nodes: int, gpus: int
) -> int:
    """By how many the partly used nodes low..high-1 grow at least once a job has been placed on so many of them.

    There is such a placement, and none on fewer nodes. `widest` is the capacity of the largest node.
    """
    spare = nodes * widest - gpus
    partly, idle = np.zeros(widest + 1, np.int64), np.zeros(widest + 1, np.int64)  # nodes by the GPUs that they lack
    found = 0
    for n in range(low, high):
        if free[n] == capacity[n]:
            idle[widest - free[n]] += 1
        elif free[n] > 0:
            partly[widest - free[n]] += 1
            found += 1
    taken = min(found, nodes)
    lacking = _least_lack(partly, taken) + _least_lack(idle, nodes - taken)
    while lacking > spare and taken > 0:
        taken -= 1
        lacking = _least_lack(partly, taken) + _least_lack(idle, nodes - taken)
    if lacking == spare:
        return -taken
    some, others = _lacks(partly, taken, spare), _lacks(idle, nodes - taken, spare)
    for lack in range(spare + 1):
        if (some >> lack) & 1 and (others >> (spare - lack)) & 1:
            return -taken
    return 1 - taken


@njit
def _least_lack(counts: np.ndarray, nodes: int) -> int:
    """How many GPUs so many nodes lack at least; very many where there are not so many nodes."""
    total = 0
    for lack in range(len(counts)):
        more = min(counts[lack], nodes)
        total += more * lack
        nodes -= more
    return total if nodes == 0 else _TOO_MUCH


@njit
def _lacks(counts: np.ndarray, nodes: int, most: int) -> int:
    """How many GPUs so many nodes can lack together: bit i tells whether exactly i of at most `most`."""
    sums = np.zeros(nodes + 1, np.int64)  # of exactly so many nodes that lack some
    sums[0] = 1
    within = (1 << (most + 1)) - 1
    for lack in range(1, min(len(counts) - 1, most) + 1):
        for _ in range(min(counts[lack], most // lack)):
            for n in range(nodes, 0, -1):
                sums[n] |= (sums[n - 1] << lack) & within
    reached = 0
    for n in range(max(0, nodes - counts[0]), nodes + 1):
        reached |= sums[n]
    return reached
