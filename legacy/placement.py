"""Where a job goes, once more in plain Python: all placements are tried."""

from fractions import Fraction
from itertools import combinations

Placement = list[tuple[int, int]]
"""The (node, GPUs) that a job gets."""


def fill(nodes: range | list[int], free: list[int], gpus: int) -> Placement:
    """Take GPUs from the first nodes on."""
    placed: Placement = []
    for node in nodes:
        taken = min(free[node], gpus - sum(g for _, g in placed))
        if taken > 0:
            placed.append((node, taken))
    return placed


def fewest(nodes: range, capacity: list[int], gpus: int) -> int:
    """The fewest nodes that could hold a request if all were idle."""
    largest = sorted((capacity[n] for n in nodes), reverse=True)
    return next(k for k in range(1, len(largest) + 1) if sum(largest[:k]) >= gpus)


def lex(nodes: range, capacity: list[int], free: list[int], gpus: int) -> Placement | None:
    """The lowest nodes of tier 1, without trying them all."""
    count = fewest(nodes, capacity, gpus)
    chosen: list[int] = []
    for node in nodes:
        others = sorted((free[n] for n in nodes if n > node), reverse=True)[: max(0, count - len(chosen) - 1)]
        reached = sum(free[n] for n in chosen) + free[node] + sum(others)
        if len(chosen) < count and free[node] > 0 and reached >= gpus:
            chosen.append(node)
    return fill(chosen, free, gpus) if len(chosen) == count else None


def shares(room: list[int], gpus: int) -> list[tuple[int, ...]]:
    """All ways to take so many GPUs from nodes with so much room, at least one from each."""
    if not room:
        return [()] if gpus == 0 else []
    rest, others = sum(room[1:]), len(room) - 1
    first = range(max(1, gpus - rest), min(room[0], gpus - others) + 1)
    return [(taken, *more) for taken in first for more in shares(room[1:], gpus - taken)]


def partly_used(capacity: int, free: int) -> bool:
    """Whether a node has both used and free GPUs."""
    return 0 < free < capacity


def scores(nodes: range, capacity: list[int], free: list[int], placed: Placement) -> tuple[int, int, Fraction]:
    """Change in partly used nodes, in stranded GPUs, and in the variance of node load (nodes count by their GPUs)."""

    def _of(state: dict[int, int]) -> tuple[int, int, Fraction]:
        partly = [n for n in nodes if partly_used(capacity[n], state[n])]
        total = sum(capacity[n] for n in nodes)
        mean = Fraction(sum(capacity[n] - state[n] for n in nodes), total)
        off = sum(capacity[n] * (Fraction(capacity[n] - state[n], capacity[n]) - mean) ** 2 for n in nodes)
        return len(partly), sum(state[n] for n in partly), Fraction(off) / total

    before = {n: free[n] for n in nodes}
    after = dict(before)
    for node, gpus in placed:
        after[node] -= gpus
    one, two = _of(before), _of(after)
    return two[0] - one[0], two[1] - one[1], two[2] - one[2]


def tier(number: int, nodes: range, capacity: list[int], free: list[int], gpus: int) -> list[Placement]:
    """Every placement of a tier, by trying all nodes and all shares."""
    count = fewest(nodes, capacity, gpus) + number - 1
    found = [
        list(zip(chosen, taken, strict=True))
        for chosen in combinations([n for n in nodes if free[n]], count)
        if sum(free[n] for n in chosen) >= gpus
        for taken in shares([free[n] for n in chosen], gpus)
    ]
    return found if number == 1 else [p for p in found if scores(nodes, capacity, free, p)[0] <= 0]


def unusable(nodes: range, capacity: list[int], free: list[int], placed: Placement, recent: list[int]) -> int:
    """GPUs left free that recent jobs could not use, summed over the jobs."""
    left = {n: free[n] for n in nodes}
    for node, gpus in placed:
        left[node] -= gpus
    return sum(left[n] for n in nodes for asked in recent if left[n] < capacity[n] and asked > left[n])


def by_kind(nodes: range, capacity: list[int], free: list[int], placed: Placement) -> tuple[object, ...]:
    """What decides between equal scores: few nodes of the kinds with few free GPUs, then low nodes."""
    largest = max(capacity[n] for n in nodes)
    kinds = []
    for kind in sorted({(free[n], capacity[n]) for n in nodes}):
        taken = sorted(gpus for node, gpus in placed if (free[node], capacity[node]) == kind)
        kinds.append((len(taken), sum(gpus < largest for gpus in taken), taken))
    return (kinds, [node for node, _ in placed], [-gpus for _, gpus in placed])


def tiered(
    name: str,
    nodes: range,
    capacity: list[int],
    free: list[int],
    gpus: int,
    tiers: int,
    recent: list[int],
    seed: int,
) -> Placement | None:
    """Place by the tiers: the best of tier 1, else the best of tier 2, in the order of the placer's name."""
    which, found = 0, list[Placement]()
    while not found and which < tiers:
        which += 1
        found = tier(which, nodes, capacity, free, gpus)
    if not found:
        return None
    if name == "random":
        return drawn(which, found, nodes, capacity, free, gpus, seed)
    return min(found, key=lambda placed: order(name, nodes, capacity, free, placed, recent))


def order(
    name: str, nodes: range, capacity: list[int], free: list[int], placed: Placement, recent: list[int]
) -> tuple[object, ...]:
    """What a placer makes least."""
    if name == "lex":
        return [node for node, _ in placed], [-gpus for _, gpus in placed]
    partly, stranded, imbalance = scores(nodes, capacity, free, placed)
    equal = by_kind(nodes, capacity, free, placed)
    if name == "defrag":
        return partly, stranded, imbalance, equal
    first = {
        "balance": lambda: imbalance,
        "best_fit": lambda: sum(free[node] for node, _ in placed),
        "worst_fit": lambda: -sum(free[node] for node, _ in placed),
        "fgd": lambda: unusable(nodes, capacity, free, placed, recent),
    }[name]()
    return first, partly, stranded, equal


def number(seed: int, index: int) -> int:
    """The index-th of the numbers that `random` draws from a seed."""
    x = (seed * 2654435761 + index * 2246822519 + 374761393) % 2**31
    for shift, factor in ((15, 739982445), (12, 695872825)) * 2:
        x = ((x ^ (x >> shift)) * factor) % 2**31
    return x ^ (x >> 15)


def drawn(
    which: int, found: list[Placement], nodes: range, capacity: list[int], free: list[int], gpus: int, seed: int
) -> Placement:
    """A random one of the tier's sets of nodes, filled from the lowest."""
    sets = {tuple(node for node, _ in placed) for placed in found}
    first: list[int] = []
    if which == 2:
        for node in nodes:
            if partly_used(capacity[node], free[node]) and any(node in chosen for chosen in sets):
                first.append(node)
        picked = [node for i, node in enumerate(first, 1) if number(seed, -i) % i == 0]
        if not picked:
            return fill(list(min(sets)), free, gpus)
        first = picked[-1:]
    counts = [tuple(sorted(free[n] for n in chosen if n not in first)) for chosen in sets if set(first) <= set(chosen)]
    taken: list[int] = []
    for i in range(len(counts[0])):
        rest = [n for n in nodes if n not in first]
        there = {f: sum(free[n] == f for n in rest) - taken.count(f) for f in sorted({free[n] for n in rest})}
        possible = [f for f in there if there[f] and any(_within([*taken, f], c) for c in counts)]
        ticket = number(seed, i) % sum(there[f] for f in possible)
        taken.append(next(f for f in possible if ticket < sum(there[g] for g in possible if g <= f)))
    chosen, left, wanted = list(first), {}, {f: taken.count(f) for f in taken}
    for f in wanted:
        left[f] = sum(free[n] == f for n in nodes if n not in first)
    for n in nodes:
        if n in first or not wanted.get(free[n]):
            continue
        if number(seed, len(first) + len(taken) + n - nodes[0]) % left[free[n]] < wanted[free[n]]:
            chosen.append(n)
            wanted[free[n]] -= 1
        left[free[n]] -= 1
    return fill(sorted(chosen), free, gpus)


def _within(part: list[int], whole: tuple[int, ...]) -> bool:
    return all(part.count(f) <= whole.count(f) for f in part)


def consolidate(nodes: range, capacity: list[int], free: list[int], gpus: int) -> Placement | None:
    """Helios's rule: one node, the fullest with room; a larger job takes idle nodes and part of the freest other."""
    largest = max(capacity[n] for n in nodes)
    if gpus <= largest:
        room = [n for n in nodes if free[n] >= gpus]
        return [(min(room, key=lambda n: (free[n], n)), gpus)] if room else None
    whole, rest = divmod(gpus, largest)
    idle = [n for n in nodes if free[n] == largest][:whole]
    others = sorted((n for n in nodes if n not in idle), key=lambda n: (-free[n], n))
    if len(idle) < whole or (rest and (not others or free[others[0]] < rest)):
        return None
    return [(n, largest) for n in idle] + ([(others[0], rest)] if rest else [])
