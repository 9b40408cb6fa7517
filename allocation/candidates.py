"""All placements of a request, kind of node by kind, with their scores: for people, and for integer programs."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from allocation.orders import partly_change
from allocation.tiers import fewest_nodes

Kind = tuple[int, int]
"""Size of a node and its free GPUs: nodes of one kind can stand for each other."""
Pattern = dict[tuple[Kind, int], int]
"""From how many nodes of a kind how many GPUs are taken."""
Placement = list[tuple[int, int]]
"""The (node, GPUs) of a job, by node."""


class Scores(NamedTuple):
    """By how much a placement changes what tells good placements from bad ones."""

    partly_used: int  # nodes with both used and free GPUs
    stranded: int  # free GPUs on such nodes
    variance: float  # of node load, the used share of a node; nodes count by their GPUs


def scores(free: np.ndarray, capacity: np.ndarray, placed: Placement) -> Scores:
    """Score a placement on nodes with `free` of `capacity` GPUs (nodes,)."""
    after = free.copy()
    for node, gpus in placed:
        after[node] -= gpus
    partly, stranded, variance = (
        new - old for new, old in zip(_state(after, capacity), _state(free, capacity), strict=True)
    )
    return Scores(int(partly), int(stranded), float(variance))


def _state(free: np.ndarray, capacity: np.ndarray) -> tuple[float, float, float]:
    partly = (free > 0) & (free < capacity)
    load = (capacity - free) / capacity
    mean = np.average(load, weights=capacity)
    return float(partly.sum()), float(free[partly].sum()), float(np.average((load - mean) ** 2, weights=capacity))


def kinds_of(free: np.ndarray, capacity: np.ndarray) -> Counter[Kind]:
    """How many nodes there are of each kind."""
    return Counter(zip(capacity.tolist(), free.tolist(), strict=True))


def on_lowest(pattern: Pattern, free: np.ndarray, capacity: np.ndarray) -> Placement:
    """A pattern on the lowest nodes of each kind, the larger shares first."""
    shares: dict[Kind, list[int]] = {}
    for (kind, taken), count in sorted(pattern.items()):
        shares.setdefault(kind, []).extend([taken] * count)
    placed = []
    for node, kind in enumerate(zip(capacity.tolist(), free.tolist(), strict=True)):
        if shares.get(kind):
            placed.append((node, shares[kind].pop()))
    return placed


def tier_candidates(
    free: np.ndarray, capacity: np.ndarray, gpus: int, tier: int, look_at: int
) -> tuple[list[Placement], bool]:
    """Every placement of a tier, of those that differ only by equal nodes one; and whether that is all.

    There can be very many: no more are looked at than said.
    """
    fewest = int(fewest_nodes(capacity, np.array([gpus]))[0])
    if fewest == 0:
        return [], True
    shares = [
        ((kind, taken), count)
        for kind, count in sorted(kinds_of(free, capacity).items(), key=lambda item: (-item[0][1], -item[0][0]))
        for taken in range(kind[1], 0, -1)
    ]
    patterns = list(islice(_patterns(shares, 0, fewest + tier - 1, gpus, Counter()), look_at))
    allowed = [pattern for pattern in patterns if tier == 1 or partly_growth(pattern) <= 0]
    return [on_lowest(pattern, free, capacity) for pattern in allowed], len(patterns) < look_at


def partly_growth(pattern: Pattern) -> int:
    """By how much a pattern changes the number of partly used nodes."""
    return sum(count * partly_change(*kind, taken) for (kind, taken), count in pattern.items())


def _patterns(
    shares: list[tuple[tuple[Kind, int], int]], at: int, nodes: int, gpus: int, used: Counter[Kind]
) -> Iterator[Pattern]:
    """Every way to take so many GPUs from so many nodes, by the shares from `at` on (most free GPUs first)."""
    if nodes == 0:
        if gpus == 0:
            yield {}
        return
    if at == len(shares) or gpus < nodes or gpus > nodes * shares[at][0][0][1]:
        return
    (kind, taken), count = shares[at]
    for times in range(min(nodes, gpus // taken, count - used[kind]), -1, -1):
        used[kind] += times
        for rest in _patterns(shares, at + 1, nodes - times, gpus - times * taken, used):
            yield {(kind, taken): times} | rest if times else rest
        used[kind] -= times
