"""Placers: which nodes a job gets, compiled."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from allocation.cheapest import cheapest
from allocation.orders import BALANCE, BEST_FIT, DEFRAG, FGD, FRUGAL, WORST_FIT
from allocation.tiers import draw, fewest_nodes, tier_of, walk
from berth.commandline import nearest
from berth.compiled import njit, records
from berth.errors import ConfigError

LEX, RANDOM, SPREAD, CONSOLIDATE = range(4)
MILP = FRUGAL


SHARE = np.dtype([("node", "i4"), ("gpus", "i4")])
"""A row of a placement: GPUs on a node."""


class Placer(NamedTuple):
    """A placer's number in the compiled code, whether it keeps to the tiers, and what it does in one sentence."""

    code: int
    tiered: bool
    text: str


PLACERS = {
    "lex": Placer(LEX, True, "the lowest nodes, filled from the lowest"),
    "defrag": Placer(DEFRAG, True, "fewest partly used nodes left, then fewest stranded GPUs, then even load"),
    "balance": Placer(BALANCE, True, "most even load, then fewest partly used nodes, then fewest stranded GPUs"),
    "best_fit": Placer(BEST_FIT, True, "the nodes with fewest free GPUs that have room"),
    "worst_fit": Placer(WORST_FIT, True, "the nodes with most free GPUs"),
    "fgd": Placer(FGD, True, "fewest GPUs left that the pool's recent jobs could not use"),
    "random": Placer(RANDOM, True, "nodes drawn at random"),
    "milp": Placer(MILP, True, "room for most of the next jobs of the pool, by integer programming (slow)"),
    "spread": Placer(SPREAD, False, "first fit over any nodes of the pool, filled from the lowest"),
    "consolidate": Placer(
        CONSOLIDATE,
        False,
        "one node, the fullest that has room; larger jobs take whole idle nodes, and the rest of one",
    ),
}
"""Every placer by name; add one here and in `place` below, and `--allocation` knows it."""


def placer(name: str) -> Placer:
    """Look a placer up; raises ConfigError that names the nearest one."""
    if name not in PLACERS:
        raise ConfigError(f"allocation {name}: {nearest(name, PLACERS)}")
    return PLACERS[name]


_UNTIERED = {placer.code for placer in PLACERS.values() if not placer.tiered}


def is_tiered(code: int) -> bool:
    """Tell whether a placer keeps to the tiers."""
    return code not in _UNTIERED


def ever_fits(code: int, capacity: np.ndarray, gpus: int) -> bool:
    """Tell whether a request would fit a pool with nothing in it."""
    largest = int(capacity.max())
    if code != CONSOLIDATE or gpus <= largest:
        return gpus <= int(capacity.sum())
    whole, rest = divmod(gpus, largest)
    others = np.sort(capacity)[::-1][whole:]
    return int((capacity == largest).sum()) >= whole and (rest == 0 or (len(others) > 0 and int(others[0]) >= rest))


def most_nodes(code: int, tiers: int, capacity: np.ndarray, gpus: np.ndarray, fewest: np.ndarray) -> np.ndarray:
    """How many nodes a placer may use for each request: what to keep room for."""
    limit = fewest + tiers - 1 if is_tiered(code) else gpus
    return np.minimum(limit, len(capacity)).astype(np.int64)


def never_gains(code: int, tiers: int, capacity: np.ndarray) -> bool:
    """Tell whether a request that does not fit a pool cannot fit once more GPUs are taken.

    True but for tier 2 over nodes of different size: there, two idle nodes may not be started on because one would
    become partly used, until it is partly used by somebody else.
    """
    return not is_tiered(code) or tiers == 1 or int(capacity.min()) == int(capacity.max())


def place_request(
    name: str,
    free: np.ndarray,
    capacity: np.ndarray,
    gpus: int,
    tiers: int = 2,
    recent: Sequence[int] = (),
    seed: int = 0,
) -> list[tuple[int, int]] | None:
    """What a compiled placer chooses on nodes with `free` of `capacity` GPUs (nodes,): (node, GPUs), None for nothing.

    `recent` are the GPUs of recent jobs, for `fgd`; `seed` is for `random`.
    """
    code = placer(name).code
    fewest = fewest_nodes(capacity, np.array([gpus]))
    if fewest[0] == 0:
        return None
    out = records(int(most_nodes(code, tiers, capacity, np.array([gpus]), fewest)[0]), SHARE)
    tally = np.zeros(int(capacity.max()) + 1, np.int64)
    larger = np.array([np.sum(np.array(recent) > f) for f in range(len(tally))], np.int64)
    count = place(code, tiers, free, capacity, 0, len(free), gpus, int(fewest[0]), larger, seed, out, 0, tally)
    return [(int(node), int(taken)) for node, taken in out[:count]] or None


@njit
def place(
    code: int,
    tiers: int,
    free: np.ndarray,
    capacity: np.ndarray,
    low: int,
    high: int,
    gpus: int,
    fewest: int,
    larger: np.ndarray,
    seed: int,
    out: np.ndarray,
    at: int,
    tally: np.ndarray,
) -> int:
    """Choose GPUs on the nodes low..high-1 for a request; nothing is taken, only written to the rows of `out`.

    Returns how many nodes were written from `at` on, 0 where the request does not fit. `larger` is for `fgd`: how many
    recent jobs ask for more than f GPUs; `seed` is for `random`; `tally` is scratch with one place more than the
    largest node has GPUs.
    """
    if code == SPREAD:
        return _spread(free, low, high, gpus, out, at)
    if code == CONSOLIDATE:
        return _consolidate(free, capacity, low, high, gpus, out, at)
    tier = tier_of(free, capacity, low, high, gpus, fewest, tiers, tally)
    if tier == 0:
        return 0
    nodes = fewest + tier - 1
    if code == LEX:
        return walk(free, capacity, low, high, gpus, nodes, tier, out, at, tally)
    if code == RANDOM:
        return draw(free, capacity, low, high, gpus, nodes, tier, seed, out, at, tally)
    return cheapest(code, free, capacity, low, high, gpus, nodes, tier, larger, out, at)


@njit
def fits(
    code: int,
    tiers: int,
    free: np.ndarray,
    capacity: np.ndarray,
    low: int,
    high: int,
    gpus: int,
    fewest: int,
    tally: np.ndarray,
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
    if code == SPREAD:
        total = 0
        for n in range(low, high):
            total += free[n]
        return total >= gpus
    return tier_of(free, capacity, low, high, gpus, fewest, tiers, tally) > 0


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
