"""All placements of a request, kind of node by kind, with their scores: for people, and for integer programs."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from allocation.orders import imbalance_change, partly_change, stranded_change
from allocation.tiers import fewest_nodes

Kind = tuple[int, int]
"""Size of a node and its free GPUs: nodes of one kind can stand for each other."""
Pattern = dict[tuple[Kind, int], int]
"""From how many nodes of a kind how many GPUs are taken."""
Placement = list[tuple[int, int]]
"""The (node, GPUs) of a job, by node."""

MOST_SHARES = 400
"""How many different shares, by kind and GPUs taken, placements are looked for with."""


class Scores(NamedTuple):
    """By how much a placement changes what tells good placements from bad ones."""

    partly_used: int  # nodes with both used and free GPUs
    stranded: int  # free GPUs on such nodes
    variance: float  # of node load, the used share of a node; nodes count by their GPUs


def scores(free: np.ndarray, capacity: np.ndarray, pattern: Pattern) -> Scores:
    """Score a pattern on nodes with `free` of `capacity` GPUs (nodes,)."""
    stranded = sum(count * stranded_change(*kind, taken) for (kind, taken), count in pattern.items())
    squares = sum(
        count * imbalance_change(*kind, taken, scale=kind[0]) / kind[0] for (kind, taken), count in pattern.items()
    )
    there, used = int(capacity.sum()), int(capacity.sum() - free.sum())
    now = used + sum(count * taken for (_, taken), count in pattern.items())
    return Scores(partly_growth(pattern), stranded, squares / there - (now**2 - used**2) / there**2)


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


def pattern_of(placed: Placement, free: np.ndarray, capacity: np.ndarray) -> Pattern:
    """The pattern that a placement is an instance of."""
    return dict(Counter(((int(capacity[node]), int(free[node])), taken) for node, taken in placed))


def tier_candidates(
    free: np.ndarray, capacity: np.ndarray, gpus: int, tier: int, look_at: int
) -> tuple[list[Pattern], bool]:
    """Every placement of a tier, kind by kind; and whether that is all.

    There can be very many: no more are looked at than said, and none where nodes have hundreds of GPUs.
    """
    fewest = int(fewest_nodes(capacity, np.array([gpus]))[0])
    if fewest == 0 or fewest + tier - 1 > int((free > 0).sum()):
        return [], True
    shares = [
        Share(kind, taken, count)
        for kind, count in sorted(kinds_of(free, capacity).items(), key=lambda item: (-item[0][1], -item[0][0]))
        for taken in range(kind[1], 0, -1)
    ]
    if len(shares) > MOST_SHARES:
        return [], False
    most = [max(share.taken for share in shares[at:]) for at in range(len(shares))]
    patterns = list(islice(_patterns(shares, most, 0, fewest + tier - 1, gpus, Counter()), look_at))
    allowed = [pattern for pattern in patterns if tier == 1 or partly_growth(pattern) <= 0]
    return allowed, len(patterns) < look_at


def partly_growth(pattern: Pattern) -> int:
    """By how much a pattern changes the number of partly used nodes."""
    return sum(count * partly_change(*kind, taken) for (kind, taken), count in pattern.items())


class Share(NamedTuple):
    """So many GPUs taken from a node of a kind, of which there are some."""

    kind: Kind
    taken: int
    nodes: int


def _patterns(
    shares: list[Share], most: list[int], at: int, nodes: int, gpus: int, used: Counter[Kind]
) -> Iterator[Pattern]:
    """Every way to take so many GPUs from so many nodes by the shares from `at` on, none larger than most[at]."""
    if nodes == 0:
        if gpus == 0:
            yield {}
        return
    if at == len(shares) or not nodes <= gpus <= nodes * most[at]:
        return
    kind, taken, count = shares[at]
    for times in range(min(nodes, gpus // taken, count - used[kind]), -1, -1):
        used[kind] += times
        for rest in _patterns(shares, most, at + 1, nodes - times, gpus - times * taken, used):
            yield {(kind, taken): times} | rest if times else rest
        used[kind] -= times
