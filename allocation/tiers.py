"""The two tiers: which node counts a request may use, and whether it fits; compiled.

Tier 1 is the fewest nodes that the pool's capacity allows. Tier 2 is one node more, if the number of partly used nodes
does not grow; a request starts on tier 2 only where tier 1 has no placement. A node is partly used if it has both used
and free GPUs.

Where tier 1 has none, any k of the pool's nodes together lack GPUs (k the fewest nodes). So of k + 1 nodes that do have
enough, k are filled and the last gets at least one GPU: the partly used nodes do not grow if one of them was partly
used before, or if all are filled. That is all that `tier_of` has to look for.
"""

import numpy as np

from berth.compiled import njit

MOST_CELLS = 4_000_000
"""How large the tables of a search may be."""

TIERS = {"1": 1, "1+2": 2}
"""What `--tiers` may say, and the highest tier it allows."""


def fewest_nodes(capacity: np.ndarray, gpus: np.ndarray) -> np.ndarray:
    """How few nodes of a pool could hold each request if the pool were idle.

    capacity (nodes,) and gpus (jobs,) give (jobs,): the smallest k whose k largest nodes together have the GPUs, or 0
    where the whole pool has too few.
    """
    held = np.cumsum(np.sort(capacity)[::-1])
    k = np.searchsorted(held, gpus, side="left") + 1
    return np.where(k <= len(held), k, 0).astype(np.int32)


@njit
def tier_of(
    free: np.ndarray,
    capacity: np.ndarray,
    low: int,
    high: int,
    gpus: int,
    fewest: int,
    tiers: int,
    tally: np.ndarray,
) -> int:
    """The tier on which a request fits the nodes low..high-1: 1, 2, or 0 where it does not."""
    if fewest == 1:
        for n in range(low, high):
            if free[n] >= gpus:
                return 1
        if tiers == 1:
            return 0
    total = 0
    for n in range(low, high):
        total += free[n]
    if total < gpus:
        return 0
    count_free(free, low, high, tally)
    if fewest > 1 and largest(tally, fewest) >= gpus:
        return 1
    if tiers == 1 or fewest + 1 > high - low or largest(tally, fewest + 1) < gpus:
        return 0
    partly = freest_partly(free, capacity, low, high)
    if partly > 0:
        tally[partly] -= 1
        enough = partly + largest(tally, fewest) >= gpus
        tally[partly] += 1
        if enough:
            return 2
    return 2 if exactly_idle(free, capacity, low, high, fewest + 1, gpus) else 0


@njit
def count_free(free: np.ndarray, low: int, high: int, tally: np.ndarray) -> None:
    """Count the nodes by their number of free GPUs."""
    for f in range(len(tally)):
        tally[f] = 0
    for n in range(low, high):
        tally[free[n]] += 1


@njit
def largest(tally: np.ndarray, k: int) -> int:
    """Add up the free GPUs of the k nodes that have most."""
    total = 0
    f = len(tally) - 1
    while k > 0 and f > 0:
        taken = min(k, tally[f])
        total += taken * f
        k -= taken
        f -= 1
    return total


@njit
def freest_partly(free: np.ndarray, capacity: np.ndarray, low: int, high: int) -> int:
    """The most free GPUs on a partly used node, 0 where there is none."""
    best = 0
    for n in range(low, high):
        if best < free[n] < capacity[n]:
            best = free[n]
    return best


@njit
def exactly_idle(free: np.ndarray, capacity: np.ndarray, low: int, high: int, nodes: int, gpus: int) -> bool:
    """Tell whether so many idle nodes have exactly so many GPUs.

    With nodes of one or two sizes that is arithmetic; with more, a search, for which no room means no.
    """
    small, large = gpus + 1, 0
    for n in range(low, high):
        if free[n] == capacity[n]:
            small, large = min(small, capacity[n]), max(large, capacity[n])
    if small * nodes > gpus or large * nodes < gpus:
        return False
    idle = np.zeros(large - small + 1, np.int64)
    between = False
    for n in range(low, high):
        if free[n] == capacity[n]:
            idle[free[n] - small] += 1
            between = between or small < free[n] < large
    if not between:
        spread, over = large - small, gpus - small * nodes
        few = over // spread if spread > 0 else 0
        return few * spread == over and few <= idle[-1] and nodes - few <= idle[0]
    if (nodes + 1.0) * (gpus + 1.0) > MOST_CELLS:
        return False
    reached = np.zeros((nodes + 1, gpus + 1), np.bool_)
    used = np.zeros((nodes + 1, gpus + 1), np.int32)
    reached[0, 0] = True
    for size in range(small, large + 1):
        if idle[size - small] == 0:
            continue
        for j in range(nodes + 1):
            for g in range(gpus + 1):
                used[j, g] = 0
        for j in range(1, nodes + 1):
            for g in range(size, gpus + 1):
                if not reached[j, g] and reached[j - 1, g - size] and used[j - 1, g - size] < idle[size - small]:
                    reached[j, g] = True
                    used[j, g] = used[j - 1, g - size] + 1
    return bool(reached[nodes, gpus])


@njit
def walk(
    free: np.ndarray,
    capacity: np.ndarray,
    low: int,
    high: int,
    gpus: int,
    nodes: int,
    tier: int,
    out: np.ndarray,
    at: int,
    tally: np.ndarray,
) -> int:
    """The lexicographically smallest set of `nodes` nodes that the tier allows, filled from the lowest.

    There must be one. Walks up the nodes and takes one whenever the best of those above it can still make the set.
    """
    if nodes == 1:
        n = low
        while n < high - 1 and free[n] < gpus:
            n += 1
        out[at].node = n
        out[at].gpus = gpus
        return 1
    count_free(free, low, high, tally)
    need, left, partly, n = gpus, nodes, tier == 1, low
    while left > 0 and n < high:
        here = free[n]
        tally[here] -= 1
        if here > 0 and can_finish(
            free, capacity, n + 1, high, need - here, left - 1, partly or here < capacity[n], tally
        ):
            taken = min(here, need)
            out[at + nodes - left].node = n
            out[at + nodes - left].gpus = taken
            need -= taken
            left -= 1
            partly = partly or here < capacity[n]
        n += 1
    return nodes if left == 0 else 0


@njit
def can_finish(
    free: np.ndarray, capacity: np.ndarray, low: int, high: int, need: int, left: int, partly: bool, tally: np.ndarray
) -> bool:
    """Tell whether `left` of the nodes low..high-1, counted in `tally`, can give what is still needed.

    `partly` says that a partly used node is in the set, or that none has to be (tier 1). Without one, all must be idle
    and filled.
    """
    if largest(tally, left) < need:
        return False
    if partly:
        return True
    if left == 0:
        return need == 0
    most = freest_partly(free, capacity, low, high)
    if most > 0:
        tally[most] -= 1
        enough = most + largest(tally, left - 1) >= need
        tally[most] += 1
        if enough:
            return True
    return need > 0 and exactly_idle(free, capacity, low, high, left, need)


@njit
def draw(
    free: np.ndarray,
    capacity: np.ndarray,
    low: int,
    high: int,
    gpus: int,
    nodes: int,
    tier: int,
    seed: int,
    out: np.ndarray,
    at: int,
    tally: np.ndarray,
) -> int:
    """A random set of `nodes` nodes that the tier allows, filled from the lowest; there must be one.

    Free counts are drawn one after another, each by the number of nodes that have it, among those with which the set
    can still be made; then the nodes that have them. On tier 2 the first is a partly used node; where only idle nodes
    will do, they are the lowest.
    """
    count_free(free, low, high, tally)
    first, need, left = -1, gpus, nodes
    if tier == 2:
        first = _draw_partly(free, capacity, low, high, gpus, nodes, seed, tally)
        if first < 0:
            return walk(free, capacity, low, high, gpus, nodes, tier, out, at, tally)
        tally[free[first]] -= 1
        need, left = need - free[first], left - 1
    there, picked = tally.copy(), np.zeros(len(tally), np.int64)
    for i in range(left):
        allowed = 0
        for f in range(1, len(tally)):
            allowed += _ways(tally, f, need, left - 1 - i)
        number = mixed(seed, i) % allowed
        f = 0
        while number >= 0:
            f += 1
            number -= _ways(tally, f, need, left - 1 - i)
        tally[f] -= 1
        picked[f] += 1
        need -= f
    need, written = gpus, 0
    for n in range(low, high):
        f = free[n]
        if n != first:
            if picked[f] == 0:
                continue
            chosen = mixed(seed, nodes + n - low) % there[f] < picked[f]
            there[f] -= 1
            if not chosen:
                continue
            picked[f] -= 1
        out[at + written].node = n
        out[at + written].gpus = min(f, need)
        need -= f
        written += 1
    return nodes


@njit
def _ways(tally: np.ndarray, f: int, need: int, left: int) -> int:
    """How many nodes with f free GPUs there are, 0 if the `left` freest others could not give the rest."""
    if tally[f] == 0:
        return 0
    tally[f] -= 1
    enough = f + largest(tally, left) >= need
    tally[f] += 1
    return tally[f] if enough else 0


@njit
def _draw_partly(
    free: np.ndarray, capacity: np.ndarray, low: int, high: int, gpus: int, nodes: int, seed: int, tally: np.ndarray
) -> int:
    """A partly used node, drawn evenly among those that the freest others complete; -1 where there is none."""
    chosen, allowed = -1, 0
    for n in range(low, high):
        if 0 < free[n] < capacity[n] and _ways(tally, free[n], gpus, nodes - 1) > 0:
            allowed += 1
            if mixed(seed, -allowed) % allowed == 0:
                chosen = n
    return chosen


@njit
def mixed(seed: int, number: int) -> int:
    """A number in 0..2^31-1 that looks random, from two others (a multiplicative hash with xor shifts)."""
    x = (int(seed) * 0x9E3779B1 + int(number) * 0x85EBCA77 + 0x165667B1) & 0x7FFFFFFF
    for _ in range(2):
        x = ((x ^ (x >> 15)) * 0x2C1B3C6D) & 0x7FFFFFFF
        x = ((x ^ (x >> 12)) * 0x297A2D39) & 0x7FFFFFFF
    return x ^ (x >> 15)
