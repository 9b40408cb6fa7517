"""The fewest partly used nodes that a placement leaves, against every placement there is."""

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from allocation.partly import MOST_SPARE, least_change
from legacy.environment import Episode


class Nodes:
    """What Episode.fewest_partly asks a simulator for."""

    def __init__(self, capacity, free):
        self.sim, self.capacity, self.free = self, capacity, free


def tried(capacity, free, gpus):
    """The fewest nodes that can hold a job, and the least change over all placements on so many."""
    usable = [n for n in range(len(free)) if free[n] > 0]
    for nodes in range(1, len(usable) + 1):
        sets = [chosen for chosen in combinations(usable, nodes) if sum(free[n] for n in chosen) >= gpus]
        if sets:
            return nodes, min(Episode.fewest_partly(Nodes(capacity, free), chosen, gpus) for chosen in sets)
    return 0, 0


pools = st.lists(st.tuples(st.sampled_from([1, 2, 4, 8]), st.integers(0, 8)), min_size=1, max_size=7)


@given(pools, st.integers(1, 30))
@settings(max_examples=1500)
def test_equals_trying_everything(pool, gpus):
    capacity = [size for size, _ in pool]
    free = [min(idle, size) for size, idle in pool]
    nodes, least = tried(capacity, free, gpus)
    spare = nodes * max(capacity) - gpus
    if nodes == 0 or spare > MOST_SPARE:
        return
    arrays = np.array(capacity, np.int32), np.array(free, np.int32)
    assert least_change(*arrays, 0, len(capacity), max(capacity), nodes, gpus) == least


def test_by_hand():
    capacity, free = np.full(4, 8, np.int32), np.array([8, 8, 5, 3], np.int32)
    assert least_change(capacity, free, 0, 4, 8, 1, 5) == -1  # fills the node with 5 idle GPUs
    assert least_change(capacity, free, 0, 4, 8, 1, 4) == 0  # goes there, and leaves one
    assert least_change(capacity, free, 0, 4, 8, 1, 6) == 1  # only idle nodes have room
    assert least_change(capacity, free, 0, 4, 8, 2, 13) == -1  # 8 + 5
    assert least_change(capacity, free, 0, 4, 8, 2, 16) == 0  # two idle ones, filled
    assert least_change(capacity, free, 0, 4, 8, 3, 20) == 0  # 8 + 8 + 4 of 5: still partly used
    assert least_change(capacity, free, 0, 4, 8, 3, 21) == -1  # 8 + 8 + 5
