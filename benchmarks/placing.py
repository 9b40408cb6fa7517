"""How long a placement takes, by placer, request and number of nodes; and an integer program, by number of nodes."""

import time
from collections.abc import Iterator

import numpy as np
from rich.table import Table

from allocation.milp import Planner
from allocation.placers import PLACERS, SHARE, place
from allocation.tiers import fewest_nodes
from berth.commandline import run
from berth.compiled import records
from berth.console import console
from berth.streams import stream

STATES = 60
REPEATS = 5
REQUESTS = (1, 8, 12, 64, 512)
PLACERS_BY_CODE = {placer.code: placer for placer in PLACERS.values()}
SIZES, SHARES = (1, 2, 4, 8, 16, 32), (0.55, 0.1, 0.12, 0.15, 0.06, 0.02)


def states(nodes: int, gpus: int, tier: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Random pools of 8-GPU nodes: full, partly used and idle, with as many idle ones as a request needs.

    For tier 2 there is an idle node too few, and partly used ones stand in.
    """
    rng = stream(1, f"placing {nodes} {gpus} {tier}")
    capacity = np.full(nodes, 8, np.int32)
    needed = -(-gpus // 8)
    for _ in range(STATES):
        free = np.where(rng.random(nodes) < 0.4, 0, rng.integers(1, 8, nodes))
        if tier == 1:
            free[rng.random(nodes) < 0.2] = 8
        free[rng.permutation(nodes)[: needed + 1]] = 8 if tier == 1 else 7
        free[rng.permutation(np.flatnonzero(free == 7))[: needed - 1]] = 8
        yield free.astype(np.int32), capacity


def microseconds(code: int, nodes: int, gpus: int, tier: int) -> float:
    """The median over random states of the shortest of a few placements, with the call from Python."""
    fewest = -(-gpus // 8)
    out, tally, larger = records(gpus, SHARE), np.zeros(9, np.int64), np.arange(9)[::-1].copy()
    times = []
    for free, capacity in states(nodes, gpus, tier):
        shortest = np.inf
        for _ in range(REPEATS):
            begin = time.perf_counter()
            placed = place(code, 2, free, capacity, 0, nodes, gpus, fewest, larger, 1, out, 0, tally)
            shortest = min(shortest, time.perf_counter() - begin)
        assert placed == fewest + tier - 1 or not PLACERS_BY_CODE[code].tiered
        times.append(1e6 * shortest)
    return float(np.median(times))


def placements() -> Table:
    """Every compiled placer."""
    names = [name for name in PLACERS if name != "milp"]
    title = "Microseconds a placement, median (8-GPU nodes)"
    table = Table("nodes", "GPUs", "tier", *names, "wanted", title=title)
    for nodes in (36, 300, 2_000, 10_000):
        for gpus in REQUESTS:
            if gpus > 4 * nodes:
                continue
            wanted = "< 20" if nodes == 36 else "< 1,000" if nodes == 10_000 else ""
            for tier in (1, 2) if gpus % 8 == 0 else (1,):
                times = [microseconds(PLACERS[name].code, nodes, gpus, tier) for name in names]
                table.add_row(f"{nodes:,}", str(gpus), str(tier), *(f"{value:.1f}" for value in times), wanted)
    return table


def programs() -> Table:
    """The integer program on crowded pools, with nothing remembered: all placements, then those that were solved."""
    title = "MILP, milliseconds a placement (crowded pools of 8-GPU nodes, five jobs ahead)"
    table = Table("nodes", "placements", "mean", "p99", "solved", "mean", "p99", "wanted", title=title)
    warm = np.array([4, 3], np.int32)
    Planner().place(warm, warm + 4, 1, [3, 3])
    for nodes in (36, 300, 2_000):
        rng = stream(2, f"milp {nodes}")
        capacity = np.full(nodes, 8, np.int32)
        every: list[float] = []
        solved: list[float] = []
        while len(every) < 200:
            free = np.where(rng.random(nodes) < 0.75, 0, rng.integers(1, 8, nodes))
            free = np.where(rng.random(nodes) < 4 / nodes, 8, free).astype(np.int32)
            gpus, *ahead = (int(size) for size in rng.choice(SIZES, 6, p=SHARES))
            if not fewest_nodes(capacity, np.array([gpus]))[0]:
                continue
            planner = Planner()
            begin = time.perf_counter()
            answer = planner.place(free, capacity, gpus, ahead)
            passed = 1e3 * (time.perf_counter() - begin)
            if answer is None:
                continue
            every.append(passed)
            if answer.how != "alone":
                solved.append(passed)
        cells = [f"{value:.2f}" for times in (every, solved) for value in (np.mean(times), np.percentile(times, 99))]
        wanted = "< 5 mean" if nodes == 36 else ""
        table.add_row(f"{nodes:,}", str(len(every)), *cells[:2], str(len(solved)), *cells[2:], wanted)
    return table


def main() -> None:
    """Print both tables."""
    for section in (placements, programs):
        console().print(section())


if __name__ == "__main__":
    run(main)
