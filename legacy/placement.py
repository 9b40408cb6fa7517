"""Where a job goes, once more in plain Python."""

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


def lex(nodes: range, capacity: list[int], free: list[int], gpus: int) -> Placement | None:
    """The lowest nodes among the fewest that the capacity allows."""
    largest = sorted((capacity[n] for n in nodes), reverse=True)
    fewest = next(k for k in range(1, len(largest) + 1) if sum(largest[:k]) >= gpus)
    chosen: list[int] = []
    for node in nodes:
        others = sorted((free[n] for n in nodes if n > node), reverse=True)[: max(0, fewest - len(chosen) - 1)]
        reached = sum(free[n] for n in chosen) + free[node] + sum(others)
        if len(chosen) < fewest and free[node] > 0 and reached >= gpus:
            chosen.append(node)
    return fill(chosen, free, gpus) if len(chosen) == fewest else None


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
