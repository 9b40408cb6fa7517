"""Placers against brute force, and by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocation.choice import Allocation
from allocation.placers import PLACERS, ever_fits, fits, never_gains, place_request, placer
from allocation.tiers import fewest_nodes
from berth.errors import ConfigError
from legacy import placement as slow

NODES = st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=6)
ALIKE = st.builds(lambda size, count: [size] * count, st.sampled_from([2, 4, 8]), st.integers(1, 6))
COMPILED = sorted(set(PLACERS) - {"milp"})
TIERED = [name for name in COMPILED if PLACERS[name].tiered]


def placed(name, free, capacity, gpus, tiers=2, recent=(), seed=0):
    """What a placer chooses, as [(node, gpus)], or None."""
    free, capacity = np.array(free, np.int32), np.array(capacity, np.int32)
    answer = place_request(name, free, capacity, gpus, tiers, recent, seed)
    fewest = int(fewest_nodes(capacity, np.array([gpus]))[0])
    tally = np.zeros(capacity.max() + 1, np.int64)
    assert (answer is not None) == (
        fewest > 0 and fits(PLACERS[name].code, tiers, free, capacity, 0, len(free), gpus, fewest, tally)
    )
    return answer


@st.composite
def pools(draw):
    capacity = draw(st.one_of(NODES, ALIKE))
    free = [draw(st.one_of(st.integers(0, c), st.just(c))) for c in capacity]
    return free, capacity, draw(st.integers(1, sum(capacity)))


@pytest.mark.parametrize("tiers", [1, 2])
@pytest.mark.parametrize("name", TIERED)
@given(pools(), st.lists(st.integers(1, 12), max_size=5), st.integers(0, 1000))
@settings(max_examples=150)
def test_the_best_of_all_placements(name, tiers, case, recent, seed):
    """Every tiered placer gives what trying all nodes and all shares gives, down to the last node."""
    free, capacity, gpus = case
    expected = slow.tiered(name, range(len(free)), capacity, free, gpus, tiers, recent, seed)
    assert placed(name, free, capacity, gpus, tiers, recent, seed) == expected


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
    assert placed("consolidate", free, capacity, gpus) == slow.consolidate(range(len(free)), capacity, free, gpus)


@given(pools(), st.data())
@settings(max_examples=300)
def test_taking_gpus_away_never_makes_a_request_fit_where_never_gains_says_so(case, data):
    free, capacity, gpus = case
    less = [data.draw(st.integers(0, f)) for f in free]
    for name in COMPILED:
        for tiers in (1, 2):
            if never_gains(PLACERS[name].code, tiers, np.array(capacity)) and placed(name, less, capacity, gpus, tiers):
                assert placed(name, free, capacity, gpus, tiers)


def test_over_two_node_sizes_tier_2_can_gain():
    """Why `never_gains` says no: an idle node may not become partly used, one that already is may be filled."""
    assert placed("lex", [2, 2, 0], [2, 2, 8], 3) is None
    assert placed("lex", [2, 1, 0], [2, 2, 8], 3) == [(0, 2), (1, 1)]


@pytest.mark.parametrize(
    ("name", "free", "gpus", "expected"),
    [
        ("lex", [0, 3, 8, 8], 4, [(2, 4)]),
        ("lex", [8, 1, 8, 8], 10, [(0, 8), (2, 2)]),
        ("lex", [3, 8, 8, 8], 10, [(0, 3), (1, 7)]),
        ("lex", [4, 3, 5, 0], 8, [(0, 4), (2, 4)]),  # no node has 8 free: tier 2, two nodes
        ("lex", [3, 3, 2, 0], 8, None),  # three nodes would be needed
        ("defrag", [8, 8, 3, 1], 3, [(2, 3)]),
        ("defrag", [8, 8, 2, 1], 10, [(0, 8), (2, 2)]),
        ("defrag", [8, 5, 3, 0], 2, [(1, 2)]),  # no node more is opened; the emptier of two for even load
        ("balance", [8, 8, 3, 1], 10, [(0, 5), (1, 5)]),
        ("balance", [8, 5, 3, 0], 2, [(0, 2)]),
        ("best_fit", [8, 5, 3, 2], 3, [(2, 3)]),
        ("best_fit", [8, 8, 5, 4], 12, [(0, 8), (3, 4)]),
        ("worst_fit", [3, 5, 8, 8], 3, [(2, 3)]),
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


def test_tier_1_alone_does_not_start_on_one_node_more():
    assert placed("lex", [4, 4, 0, 0], [8] * 4, 8, tiers=1) is None
    assert placed("lex", [4, 4, 0, 0], [8] * 4, 8, tiers=2) == [(0, 4), (1, 4)]


def test_fgd_keeps_what_recent_jobs_could_use():
    """A GPU is wanted; 4 are free on one node, 2 on another. Which one is broken up depends on who came lately."""
    assert placed("fgd", [4, 2], [8, 8], 1, recent=[4, 4, 4]) == [(1, 1)]
    assert placed("fgd", [4, 2], [8, 8], 1, recent=[2, 2, 3]) == [(0, 1)]


def test_random_draws_every_node_about_as_often():
    count = np.zeros(6)
    for seed in range(1200):
        count[placed("random", [8, 8, 3, 8, 1, 8], [8] * 6, 4, seed=seed)[0][0]] += 1
    assert (count[[2, 4]] == 0).all()
    assert (np.abs(count[[0, 1, 3, 5]] - 300) < 60).all(), "four nodes have room"


@given(NODES, st.integers(1, 40), st.sampled_from(COMPILED))
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


@pytest.mark.parametrize("name", COMPILED)
def test_large_pools_and_requests(name):
    """No exponential case: hundreds of GPUs on thousands of nodes, of one size or several, idle or nearly full."""
    rng = np.random.default_rng(1)
    for sizes in ([8], [2, 8], [1, 2, 4, 8, 16]):
        capacity = np.sort(rng.choice(sizes, 5000))
        for free in (capacity.copy(), rng.integers(0, capacity + 1), np.minimum(rng.integers(0, 3, 5000), capacity)):
            for gpus in (1, 7, 64, 500, 512, int(free.sum())):
                answer = placed(name, free, capacity, gpus)
                assert answer is None or sum(taken for _, taken in answer) == gpus
                assert all(0 < taken <= free[node] for node, taken in answer or [])


def test_odd_sizes_are_balanced_exactly():
    """The least common multiple of the sizes is large; used² / size must not be rounded."""
    capacity, free = [9, 19, 11, 7, 13, 23], [5, 11, 6, 4, 8, 13]
    assert placed("balance", free, capacity, 3) == [(5, 3)]


@pytest.mark.parametrize("name", COMPILED)
def test_huge_nodes_neither_take_all_memory_nor_forever(name):
    assert sum(taken for _, taken in placed(name, [60_000, 59_000], [60_000] * 2, 118_999, tiers=1)) == 118_999


def test_what_is_not_known_is_refused():
    with pytest.raises(ConfigError, match="did you mean spread"):
        placer("spred")
    with pytest.raises(ConfigError, match=r"tiers 2: known: 1, 1\+2"):
        Allocation("lex", "2")
    with pytest.raises(ConfigError, match="milp_time_limit -1: want finite seconds > 0"):
        Allocation("milp", milp_time_limit=-1)
