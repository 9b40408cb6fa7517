"""The best placement on a given number of nodes in any order of orders.py, exactly; compiled.

Nodes of the same size with as many free GPUs are of one kind and can stand for each other. Let `most` be the GPUs of
the largest node and say that a node of which t GPUs are taken loses most - t. A placement of R GPUs on k nodes then
loses k·most - R =: S in all. As k is about the fewest nodes that can hold R, S is less than two nodes' GPUs. Only idle
nodes of the largest size, wholly taken, lose nothing; so at most S other nodes take part, however large request and
pool are.

The search is a table over (nodes still to choose, GPUs lost so far), renewed by one more node of a kind at a time, the
kinds with most free GPUs first. On tier 2 a third dimension counts the partly used nodes. All tables are kept, and the
placement is read off backwards. Of equal costs it is the one with the fewest nodes of the kind that has the fewest free
GPUs (of these, the smallest), and of that kind the smallest shares; then of the next kind, and so on; of the largest
nodes, if idle, the fewest not wholly taken. Of each kind it takes the lowest nodes, with the largest shares first.

S is large, and so are the tables, only for a request that needs more nodes than the pool has of its largest ones, or on
nodes with dozens of GPUs. Beyond MOST_CELLS, or MOST_STEPS, the placement is the lowest nodes of the tier.
"""

import numpy as np

from allocation.orders import partly_change, scale_of, share_cost, share_costs
from allocation.tiers import MOST_CELLS, tier_of, walk
from berth.compiled import njit

MOST_STEPS = 100_000_000
_NEVER = 1 << 62


@njit
def cheapest(
    order: int,
    free: np.ndarray,
    capacity: np.ndarray,
    low: int,
    high: int,
    gpus: int,
    nodes: int,
    tier: int,
    larger: np.ndarray,
    out: np.ndarray,
    at: int,
) -> int:
    """Write the best placement on `nodes` nodes of a tier into the rows of `out`; returns how many were written.

    0 where there is none. On tier 2 the number of partly used nodes may not grow.
    """
    if nodes == 1:
        return _one_node(order, free, capacity, low, high, gpus, larger, out, at)
    most = 0
    for n in range(low, high):
        most = max(most, capacity[n])
    loss = nodes * most - gpus
    if loss < 0:
        return 0
    if (most + 1.0) * (most + 1.0) > MOST_CELLS:
        return _lowest(free, capacity, low, high, gpus, nodes, tier, most, out, at)
    kind_of = np.full((most + 1, most + 1), -1, np.int32)
    size, idle, count = _kinds(free, capacity, low, high, most, kind_of)
    if len(count) == 0:
        return 0
    whole = count[0] if idle[0] == most else 0
    cost = share_costs(order, size, idle, nodes, most, larger)
    layers = _layers(idle, count, most, nodes, loss)
    lossy = min(nodes, loss)
    counts = 2 * lossy + 1 if tier == 2 else 1
    cells = (len(layers) + 1.0) * (lossy + 1) * (loss + 1) * counts
    if cells > MOST_CELLS or cells * min(most, loss + 1) > MOST_STEPS:
        return _lowest(free, capacity, low, high, gpus, nodes, tier, most, out, at)
    tables = np.full((len(layers) + 1, lossy + 1, loss + 1, counts), _NEVER, np.int64)
    middle = lossy if tier == 2 else 0  # where the number of partly used nodes is unchanged
    for taken in range(max(0, nodes - lossy), min(whole, nodes) + 1):
        tables[0, nodes - taken, 0, middle] = taken * cost[0, most]
    _search(tables, cost, size, idle, layers, max(0, nodes - whole), most)
    best = 0
    for partly in range(1, middle + 1):
        if tables[len(layers), 0, loss, partly] < tables[len(layers), 0, loss, best]:
            best = partly
    if tables[len(layers), 0, loss, best] == _NEVER:
        return 0
    shares = _read_off(tables, cost, size, idle, layers, most, nodes, best)
    return _on_nodes(shares, kind_of, free, capacity, low, high, out, at)


@njit
def _lowest(
    free: np.ndarray,
    capacity: np.ndarray,
    low: int,
    high: int,
    gpus: int,
    nodes: int,
    tier: int,
    most: int,
    out: np.ndarray,
    at: int,
) -> int:
    """The lowest nodes instead, where the tables would be too large; on tier 2 only if tier 1 has no placement."""
    tally = np.zeros(most + 1, np.int64)
    if tier_of(free, capacity, low, high, gpus, nodes - tier + 1, tier, tally) != tier:
        return 0
    return walk(free, capacity, low, high, gpus, nodes, tier, out, at, tally)


@njit
def _one_node(
    order: int,
    free: np.ndarray,
    capacity: np.ndarray,
    low: int,
    high: int,
    gpus: int,
    larger: np.ndarray,
    out: np.ndarray,
    at: int,
) -> int:
    """The same for a single node, by looking at each."""
    scale = scale_of(capacity, low, high)
    best, first, second, third = -1, _NEVER, _NEVER, _NEVER
    for n in range(low, high):
        f, size = free[n], capacity[n]
        if f < gpus or (best >= 0 and f == free[best] and size == capacity[best]):
            continue
        a = share_cost(order, 0, size, f, gpus, scale, larger)
        if a > first:
            continue
        b = share_cost(order, 1, size, f, gpus, scale, larger)
        c = share_cost(order, 2, size, f, gpus, scale, larger)
        if a < first or b < second or (b == second and c < third):
            better = True
        elif b == second and c == third:
            better = f > free[best] or (f == free[best] and size > capacity[best])
        else:
            better = False
        if better:
            best, first, second, third = n, a, b, c
    if best < 0:
        return 0
    out[at].node = best
    out[at].gpus = gpus
    return 1


@njit
def _kinds(
    free: np.ndarray, capacity: np.ndarray, low: int, high: int, most: int, kind_of: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The kinds of nodes with free GPUs: size, free GPUs and how many (kinds,), those with most free GPUs first.

    Fills kind_of[size, free] with the kinds' numbers.
    """
    there = np.zeros((most + 1, most + 1), np.int32)
    for n in range(low, high):
        there[capacity[n], free[n]] += 1
    kinds = 0
    for f in range(most, 0, -1):
        for s in range(most, f - 1, -1):
            if there[s, f] > 0:
                kind_of[s, f] = kinds
                kinds += 1
    size, idle, count = np.empty(kinds, np.int64), np.empty(kinds, np.int64), np.empty(kinds, np.int64)
    for f in range(1, most + 1):
        for s in range(f, most + 1):
            kind = kind_of[s, f]
            if kind >= 0:
                size[kind], idle[kind], count[kind] = s, f, there[s, f]
    return size, idle, count


@njit
def _layers(idle: np.ndarray, count: np.ndarray, most: int, nodes: int, loss: int) -> np.ndarray:
    """The kind of each node that might be taken at a loss, kind after kind."""
    layers = 0
    limit = np.empty(len(count), np.int64)
    for kind in range(len(count)):
        limit[kind] = min(count[kind], nodes, loss // max(1, most - idle[kind]))
        layers += limit[kind]
    result = np.empty(layers, np.int64)
    layers = 0
    for kind in range(len(count)):
        for _ in range(limit[kind]):
            result[layers] = kind
            layers += 1
    return result


@njit
def _search(
    tables: np.ndarray,
    cost: np.ndarray,
    size: np.ndarray,
    idle: np.ndarray,
    layers: np.ndarray,
    floor: int,
    most: int,
) -> None:
    """Fill the tables: after each layer, the least cost of every (nodes still to choose, GPUs lost, partly used)."""
    _, choose, losses, counts = tables.shape
    loss = losses - 1
    middle = counts // 2  # a node changes the number of partly used ones by one at most
    for layer in range(len(layers)):
        old, new = tables[layer], tables[layer + 1]
        kind = layers[layer]
        f = idle[kind]
        least = max(1, most - f)  # what each node from here on loses
        low = floor + 1 if f == most else 1
        for left in range(choose):
            so_many = choose - 1 - left  # nodes have been chosen; in the end the partly used ones may not have grown
            for lost in range(loss - left * least + 1):
                for partly in range(max(0, middle - so_many), min(counts, middle + min(so_many, left) + 1)):
                    so_far = old[left, lost, partly]
                    if so_far == _NEVER:
                        continue
                    new[left, lost, partly] = so_far
                    if left < low:
                        continue
                    for more in range(least, loss - lost - (left - 1) * least + 1):
                        taken = most - more
                        if taken < 1:
                            break
                        now = partly + partly_change(size[kind], f, taken) if counts > 1 else partly
                        total = so_far + cost[kind, taken]
                        if total < new[left - 1, lost + more, now]:
                            new[left - 1, lost + more, now] = total


@njit
def _read_off(
    tables: np.ndarray,
    cost: np.ndarray,
    size: np.ndarray,
    idle: np.ndarray,
    layers: np.ndarray,
    most: int,
    nodes: int,
    partly: int,
) -> np.ndarray:
    """How many nodes of each kind give how many GPUs, (kinds, most + 1), from the last table back to the first."""
    shares = np.zeros(cost.shape, np.int64)
    left, lost, counts = 0, tables.shape[2] - 1, tables.shape[3]
    for layer in range(len(layers) - 1, -1, -1):
        total = tables[layer + 1, left, lost, partly]
        if tables[layer, left, lost, partly] == total:
            continue
        kind = layers[layer]
        for taken in range(max(1, most - lost), min(idle[kind], most - 1) + 1):
            before = partly - partly_change(size[kind], idle[kind], taken) if counts > 1 else partly
            if not 0 <= before < counts:
                continue
            so_far = tables[layer, left + 1, lost - most + taken, before]
            if so_far < _NEVER and so_far + cost[kind, taken] == total:
                shares[kind, taken] += 1
                left, lost, partly = left + 1, lost - most + taken, before
                break
    if nodes > left:
        shares[0, most] += nodes - left
    return shares


@njit
def _on_nodes(
    shares: np.ndarray,
    kind_of: np.ndarray,
    free: np.ndarray,
    capacity: np.ndarray,
    low: int,
    high: int,
    out: np.ndarray,
    at: int,
) -> int:
    """Put the shares on the lowest nodes of each kind, the largest first; returns how many nodes were written."""
    largest = np.full(len(shares), shares.shape[1] - 1, np.int64)
    written = 0
    for n in range(low, high):
        kind = kind_of[capacity[n], free[n]]
        if kind < 0:
            continue
        while largest[kind] > 0 and shares[kind, largest[kind]] == 0:
            largest[kind] -= 1
        if largest[kind] > 0:
            shares[kind, largest[kind]] -= 1
            out[at + written].node = n
            out[at + written].gpus = largest[kind]
            written += 1
    return written
