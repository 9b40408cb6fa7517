"""Placers against brute force, and by hand."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocation.placers import PLACERS, ever_fits, fewest_nodes, fits, most_nodes, place, placer
from berth.compiled import records
from berth.errors import ConfigError
from envs.sim.state import PLACE
from legacy.placement import consolidate as slow_consolidate

NODES = st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=6)


def placed(name, free, capacity, gpus):
    """What a placer chooses, as [(node, gpus)], or None."""
    free, capacity = np.array(free, np.int32), np.array(capacity, np.int32)
    fewest = fewest_nodes(capacity, np.array([gpus], np.int32))
    if fewest[0] == 0:
        return None
    out = records(int(most_nodes(PLACERS[name].code, capacity, np.array([gpus]), fewest)[0]), PLACE)
    tally = np.zeros(capacity.max() + 1, np.int64)
    count = place(PLACERS[name].code, free, capacity, 0, len(free), gpus, int(fewest[0]), out, 0, tally)
    assert fits(PLACERS[name].code, free, capacity, 0, len(free), gpus, int(fewest[0]), tally) == (count > 0)
    return [(int(n), int(g)) for n, g in zip(out["node"][:count], out["gpus"][:count], strict=True)] or None


@st.composite
def pools(draw):
    capacity = draw(NODES)
    free = [draw(st.integers(0, c)) for c in capacity]
    return free, capacity, draw(st.integers(1, sum(capacity)))


@given(pools())
@settings(max_examples=400)
def test_lex_is_the_smallest_set_of_the_fewest_nodes(case):
    free, capacity, gpus = case
    fewest = next(k for k in range(1, 9) if sum(sorted(capacity)[-k:]) >= gpus)
    sets = [nodes for nodes in combinations(range(len(free)), fewest) if sum(free[n] for n in nodes) >= gpus]
    answer = placed("lex", free, capacity, gpus)
    if not sets:
        assert answer is None
        return
    assert tuple(n for n, _ in answer) == min(sets)
    assert sum(g for _, g in answer) == gpus
    for node, taken in answer[:-1]:
        assert taken == free[node], "filled from the lowest"
    assert all(0 < taken <= free[node] for node, taken in answer)


@given(pools())
@settings(max_examples=200)
def test_spread_takes_any_nodes_from_the_lowest(case):
    free, capacity, gpus = case
    answer = placed("spread", free, capacity, gpus)
    assert (answer is not None) == (sum(free) >= gpus)
    if answer:
        last = answer[-1][0]
        assert sum(free[:last]) < gpus <= sum(free[: last + 1])
        assert [taken for _, taken in answer[:-1]] == [free[n] for n in range(last) if free[n]]


@given(pools())
@settings(max_examples=300)
def test_consolidate_agrees_with_the_slow_one(case):
    free, capacity, gpus = case
    assert placed("consolidate", free, capacity, gpus) == slow_consolidate(range(len(free)), capacity, free, gpus)


@pytest.mark.parametrize(
    ("name", "free", "gpus", "expected"),
    [
        ("lex", [0, 3, 8, 8], 4, [(2, 4)]),
        ("lex", [8, 1, 8, 8], 10, [(0, 8), (2, 2)]),
        ("lex", [3, 8, 8, 8], 10, [(0, 3), (1, 7)]),
        ("lex", [4, 4, 0, 0], 8, None),  # tier 1 means one node
        ("spread", [4, 4, 0, 0], 8, [(0, 4), (1, 4)]),
        ("consolidate", [8, 5, 3, 3], 3, [(2, 3)]),
        ("consolidate", [8, 5, 8, 3], 16, [(0, 8), (2, 8)]),
        ("consolidate", [8, 5, 8, 3], 12, [(0, 8), (2, 4)]),
        ("consolidate", [8, 5, 4, 3], 12, [(0, 8), (1, 4)]),
        ("consolidate", [8, 3, 3, 3], 12, None),
    ],
)
def test_by_hand(name, free, gpus, expected):
    assert placed(name, free, [8] * len(free), gpus) == expected


@given(NODES, st.integers(1, 40), st.sampled_from(sorted(PLACERS)))
def test_ever_fits_is_what_an_idle_pool_says(capacity, gpus, name):
    assert ever_fits(PLACERS[name].code, np.array(capacity), gpus) == (
        placed(name, capacity, capacity, gpus) is not None
    )


def test_two_node_sizes_fill_the_small_nodes_first():
    """Philly's testbed: 1- and 2-GPU jobs go to the 2-GPU nodes, 4-GPU jobs to one 8-GPU node."""
    capacity = [2] * 16 + [8] * 20
    assert placed("lex", capacity, capacity, 2) == [(0, 2)]
    assert placed("lex", capacity, capacity, 4) == [(16, 4)]
    assert placed("lex", capacity, capacity, 16) == [(16, 8), (17, 8)]


def test_unknown_placer_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean spread"):
        placer("spred")
