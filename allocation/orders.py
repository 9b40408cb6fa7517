"""What a node's share of a placement costs, in the order of each placer; compiled.

A placement's score is the sum over its nodes, so it is enough to say what it costs to take `taken` GPUs from a node of
`size` GPUs of which `free` are free. Every order has three parts, compared one after the other.
"""

import numpy as np

from berth.compiled import njit

_LARGEST_SCALE = 1 << 32

DEFRAG, BALANCE, BEST_FIT, WORST_FIT, FGD, FRUGAL = range(10, 16)
"""The orders' numbers; they are their placers' numbers too (FRUGAL is the own part of the MILP's objective)."""

NODE_COST, LEFT_COST, PARTLY_COST, IMBALANCE_COST = 50, 10, 5, 1
"""FRUGAL: the costs of a node used, of a free GPU left beside the job, of a node that becomes partly used, and of one
more in used² / size (allocation/milp.py)."""


@njit
def partly_change(size: int, free: int, taken: int) -> int:
    """Change in the number of partly used nodes."""
    if free == size:
        return 1 if taken < size else 0
    return -1 if taken == free else 0


@njit
def stranded_change(size: int, free: int, taken: int) -> int:
    """Change in the number of free GPUs on partly used nodes."""
    if free == size:
        return size - taken if taken < size else 0
    return -taken


@njit
def imbalance_change(size: int, free: int, taken: int, scale: int) -> int:
    """Change in used² / size, times `scale`: what the variance of node load grows by, but for a constant.

    The load of a node is its used share, and nodes count by their GPUs. The mean load after a placement is then the
    same wherever the GPUs come from, so the variance differs by the sum of used² / size alone.
    """
    used = size - free
    return (2 * used * taken + taken * taken) * (scale // size)


@njit
def unusable(size: int, free: int, larger: np.ndarray) -> int:
    """Free GPUs of a node times the number of recent jobs that could not use them.

    larger[f] is how many of the recent jobs ask for more than f GPUs. A job larger than the node can use it if it is
    idle.
    """
    return free * larger[free] if free < size else 0


@njit
def share_cost(order: int, part: int, size: int, free: int, taken: int, scale: int, larger: np.ndarray) -> int:
    """One of the three parts (0, 1, 2) of what a node's share costs in an order.

    `defrag` is partly used nodes, stranded GPUs, imbalance; the others put one thing of their own before the first two.
    """
    if order == DEFRAG and part == 2:
        return imbalance_change(size, free, taken, scale)
    place = part if order == DEFRAG else part - 1
    if place == 0:
        return partly_change(size, free, taken)
    if place == 1:
        return stranded_change(size, free, taken)
    if order == BEST_FIT:
        return free
    if order == WORST_FIT:
        return -free
    if order == FGD:
        return unusable(size, free - taken, larger) - unusable(size, free, larger)
    imbalance = imbalance_change(size, free, taken, scale)
    if order == BALANCE:
        return imbalance
    partly = partly_change(size, free, taken)
    return scale * (NODE_COST + LEFT_COST * (free - taken) + PARTLY_COST * partly) + IMBALANCE_COST * imbalance


@njit
def scale_of(sizes: np.ndarray, low: int, high: int) -> int:
    """The least common multiple of the nodes' sizes, so that used² / size is a whole number; not above a limit."""
    scale, before = 1, 0
    for n in range(low, high):
        size = sizes[n]
        if size == before:
            continue
        before = size
        a, b = scale, size
        while b > 0:
            a, b = b, a % b
        scale = scale // a * size
        if scale > _LARGEST_SCALE:
            return _LARGEST_SCALE
    return scale


@njit
def share_costs(
    order: int, size: np.ndarray, idle: np.ndarray, nodes: int, most: int, larger: np.ndarray
) -> np.ndarray:
    """What it costs to take t GPUs from a node of each kind, (kinds, most + 1): the three parts in one number.

    The finer parts are left out where the number would not fit 64 bits (large pools of
    nodes of many different sizes).
    """
    scale = scale_of(size, 0, len(size))
    cost = np.zeros((len(size), most + 1), np.int64)
    reach = 1.0
    for part in range(3):
        high = 0
        for kind in range(len(size)):
            for taken in range(1, idle[kind] + 1):
                high = max(high, abs(share_cost(order, part, size[kind], idle[kind], taken, scale, larger)))
        base = 2 * nodes * high + 1
        reach *= base
        if part > 0 and reach > 1e18:
            break
        for kind in range(len(size)):
            for taken in range(1, idle[kind] + 1):
                value = share_cost(order, part, size[kind], idle[kind], taken, scale, larger)
                cost[kind, taken] = cost[kind, taken] * base + value
    return cost
