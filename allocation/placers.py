"""Placers: which nodes a job gets, compiled."""

from typing import NamedTuple

import numpy as np

from berth.commandline import nearest
from berth.compiled import njit
from berth.errors import ConfigError

LEX, SPREAD, CONSOLIDATE = 0, 1, 2


class Placer(NamedTuple):
    """A placer's number in the compiled code, and what it does in one sentence."""

    code: int
    text: str


PLACERS = {
    "lex": Placer(LEX, "fewest nodes that the pool's capacity allows, the lowest such nodes, filled from the lowest"),
    "spread": Placer(SPREAD, "first fit over any nodes of the pool, filled from the lowest"),
    "consolidate": Placer(
        CONSOLIDATE, "one node, the fullest that has room; larger jobs take whole idle nodes, and the rest of one"
    ),
}
"""Every placer by name; add one here and in the two dispatchers below, and `--allocation` knows it."""


def placer(name: str) -> Placer:
    """Look a placer up; raises ConfigError that names the nearest one."""
    if name not in PLACERS:
        raise ConfigError(f"allocation {name}: {nearest(name, PLACERS)}")
    return PLACERS[name]


def fewest_nodes(capacity: np.ndarray, gpus: np.ndarray) -> np.ndarray:
    """How few nodes of a pool could hold each request if the pool were idle.

    capacity (nodes,) and gpus (jobs,) give (jobs,): the smallest k whose k largest nodes together have the GPUs, or 0
    where the whole pool has too few.
    """
    held = np.cumsum(np.sort(capacity)[::-1])
    k = np.searchsorted(held, gpus, side="left") + 1
    return np.where(k <= len(held), k, 0).astype(np.int32)


def ever_fits(code: int, capacity: np.ndarray, gpus: int) -> bool:
    """Tell whether a request would fit a pool with nothing in it."""
    largest = int(capacity.max())
    if code != CONSOLIDATE or gpus <= largest:
        return gpus <= int(capacity.sum())
    whole, rest = divmod(gpus, largest)
    others = np.sort(capacity)[::-1][whole:]
    return int((capacity == largest).sum()) >= whole and (rest == 0 or (len(others) > 0 and int(others[0]) >= rest))


def most_nodes(code: int, capacity: np.ndarray, gpus: np.ndarray, fewest: np.ndarray) -> np.ndarray:
    """How many nodes a placer may use for each request: what to keep room for."""
    if code == LEX:
        return fewest.astype(np.int64)
    return np.minimum(gpus, len(capacity)).astype(np.int64)


@njit
def place(
    code: int,
    free: np.ndarray,
    capacity: np.ndarray,
    low: int,
    high: int,
    gpus: int,
    fewest: int,
    out: np.ndarray,
    at: int,
    tally: np.ndarray,
) -> int:
    """Choose GPUs on the nodes low..high-1 for a request; nothing is taken, only written to the rows of `out`.

    Returns how many nodes were written from `at` on, 0 where the request does not fit. `tally` is scratch with one
    place more than the largest node has GPUs.
    """
    if code == SPREAD:
        return _spread(free, low, high, gpus, out, at)
    if code == CONSOLIDATE:
        return _consolidate(free, capacity, low, high, gpus, out, at)
    if fewest == 1:
        for n in range(low, high):
            if free[n] >= gpus:
                out[at].node = n
                out[at].gpus = gpus
                return 1
        return 0
    return _lex_many(free, low, high, gpus, fewest, out, at, tally)


@njit
def fits(
    code: int, free: np.ndarray, capacity: np.ndarray, low: int, high: int, gpus: int, fewest: int, tally: np.ndarray
) -> bool:
    """Tell whether `place` would find a placement."""
    if code == CONSOLIDATE:
        largest = capacity[low:high].max()
        if gpus <= largest:
            return bool(free[low:high].max() >= gpus)
        whole, rest = gpus // largest, gpus % largest
        if np.sum(free[low:high] == largest) < whole:
            return False
        last = _freest(free, low, high, largest, whole)
        return rest == 0 or (last >= 0 and free[last] >= rest)
    if code == LEX and fewest == 1:
        for n in range(low, high):
            if free[n] >= gpus:
                return True
        return False
    total = 0
    for n in range(low, high):
        total += free[n]
    if total < gpus or code == SPREAD:
        return total >= gpus
    _count_free(free, low, high, tally)
    return _largest(tally, fewest) >= gpus


@njit
def _count_free(free: np.ndarray, low: int, high: int, tally: np.ndarray) -> None:
    """Count the nodes by their number of free GPUs."""
    tally[:] = 0
    for n in range(low, high):
        tally[free[n]] += 1


@njit
def _largest(tally: np.ndarray, k: int) -> int:
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
def _lex_many(
    free: np.ndarray,
    low: int,
    high: int,
    gpus: int,
    fewest: int,
    out: np.ndarray,
    at: int,
    tally: np.ndarray,
) -> int:
    """The lexicographically smallest set of `fewest` nodes that has the GPUs.

    Walks up the nodes and takes one whenever it and the best of those above it can still hold the rest. As `fewest` is
    the least that any idle pool of this shape needs, every node taken is used.
    """
    _count_free(free, low, high, tally)
    if _largest(tally, fewest) < gpus:
        return 0
    need, left, n = gpus, fewest, low
    while left > 0:
        here = free[n]
        tally[here] -= 1
        if here > 0 and here + _largest(tally, left - 1) >= need:
            taken = min(here, need)
            out[at + fewest - left].node = n
            out[at + fewest - left].gpus = taken
            need -= taken
            left -= 1
        n += 1
    return fewest


@njit
def _spread(free: np.ndarray, low: int, high: int, gpus: int, out: np.ndarray, at: int) -> int:
    """Any nodes, from the lowest."""
    total = 0
    for n in range(low, high):
        total += free[n]
    if total < gpus:
        return 0
    need, used, n = gpus, 0, low
    while need > 0:
        if free[n] > 0:
            out[at + used].node = n
            out[at + used].gpus = min(free[n], need)
            need -= out[at + used].gpus
            used += 1
        n += 1
    return used


@njit
def _freest(free: np.ndarray, low: int, high: int, full: int, skip: int) -> int:
    """The node with most free GPUs, the lowest of equals, passing over `skip` nodes with `full` free; or -1."""
    best = -1
    for n in range(low, high):
        if free[n] == full and skip > 0:
            skip -= 1
        elif best < 0 or free[n] > free[best]:
            best = n
    return best


@njit
def _consolidate(
    free: np.ndarray,
    capacity: np.ndarray,
    low: int,
    high: int,
    gpus: int,
    out: np.ndarray,
    at: int,
) -> int:
    """Helios's rule: the fullest single node with room (the lowest of equals).

    A job larger than a node takes whole idle nodes from the lowest, and what is left over on the freest other node.
    """
    largest = capacity[low:high].max()
    if gpus <= largest:
        best = -1
        for n in range(low, high):
            if free[n] >= gpus and (best < 0 or free[n] < free[best]):
                best = n
        if best < 0:
            return 0
        out[at].node = best
        out[at].gpus = gpus
        return 1
    whole, rest = gpus // largest, gpus % largest
    used = 0
    for n in range(low, high):
        if used < whole and free[n] == largest:
            out[at + used].node = n
            out[at + used].gpus = largest
            used += 1
    if used < whole or rest == 0:
        return used if used == whole else 0
    last = _freest(free, low, high, largest, whole)
    if last < 0 or free[last] < rest:
        return 0
    out[at + used].node = last
    out[at + used].gpus = rest
    return used + 1
