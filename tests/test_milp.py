"""The integer program against brute force, its limits and its failures."""

import logging

import numpy as np
import pulp
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from allocation import milp
from allocation.choice import Allocation
from allocation.milp import NEXT_WORTH, Planner
from allocation.orders import IMBALANCE_COST, LEFT_COST, NODE_COST, PARTLY_COST
from envs.metrics import summarize
from envs.sim.simulator import DISCIPLINES, simulate
from legacy import placement as slow
from tests.conftest import make_trace, make_workload
from tests.test_kernel_vs_legacy import check_invariants


def own_cost(capacity, free, placed):
    """What a placement costs the job itself."""
    partly, _, _ = slow.scores(range(len(free)), capacity, free, placed)
    imbalance = sum(((capacity[n] - free[n] + t) ** 2 - (capacity[n] - free[n]) ** 2) / capacity[n] for n, t in placed)
    left = sum(free[n] - t for n, t in placed)
    return NODE_COST * len(placed) + LEFT_COST * left + PARTLY_COST * partly + IMBALANCE_COST * imbalance


def after(free, placed):
    left = list(free)
    for node, taken in placed:
        left[node] -= taken
    return left


def room(capacity, free, others):
    """The most that the other jobs (place in line, GPUs, tier) are worth beside each other, by trying everything."""
    if not others:
        return 0.0
    (place, gpus, tier), rest = others[0], others[1:]
    best = room(capacity, free, rest)
    worth = NEXT_WORTH / place
    seen = set()
    for placed in slow.tier(tier, range(len(free)), capacity, free, gpus):
        left = after(free, placed)
        kinds = tuple(sorted(zip(capacity, left, strict=True)))
        if kinds not in seen:
            seen.add(kinds)
            best = max(best, worth + room(capacity, left, rest))
    return best


def value(capacity, free, placed, others):
    return room(capacity, after(free, placed), others) - own_cost(capacity, free, placed)


@st.composite
def cases(draw):
    capacity = draw(st.lists(st.sampled_from([2, 4, 8]), min_size=1, max_size=4))
    free = [draw(st.integers(0, c)) for c in capacity]
    assume(sum(free) > 0)
    gpus = draw(st.integers(1, sum(free)))
    ahead = draw(st.lists(st.integers(1, 8), min_size=1, max_size=3))
    return np.array(free, np.int32), np.array(capacity, np.int32), gpus, ahead


@pytest.mark.parametrize("tiers", [1, 2])
@given(cases())
@settings(max_examples=120)
def test_no_placement_is_worth_more(tiers, case):
    free, capacity, gpus, ahead = case
    answer = Planner(tiers).place(free, capacity, gpus, ahead)
    room_for, sizes, nodes = free.tolist(), capacity.tolist(), range(len(free))
    found = [p for t in range(1, tiers + 1) if gpus <= sum(sizes) for p in slow.tier(t, nodes, sizes, room_for, gpus)]
    if not found:
        assert answer is None
        return
    assert answer.how in ("alone", "solved")
    assert answer.nodes in found
    others = []
    for place, asked in enumerate(ahead, 1):
        if asked <= sum(sizes) and asked <= sum(room_for) - gpus:
            tier = next((t for t in range(1, tiers + 1) if slow.tier(t, nodes, sizes, room_for, asked)), 0)
            others += [(place, asked, tier)] if tier else []
    best = max(value(sizes, room_for, placed, others) for placed in found)
    assert value(sizes, room_for, answer.nodes, others) == pytest.approx(best, abs=1e-6)


def test_makes_room_for_the_next_job():
    """3 GPUs fit the node with 4 free or the one with 8; the next job wants 4, the one after it 8."""
    free, capacity = np.array([8, 4, 4], np.int32), np.array([8, 8, 8], np.int32)
    planner = Planner()
    assert planner.place(free, capacity, 4, [8, 4]).nodes == [(1, 4)]
    assert planner.place(np.array([4, 8, 3], np.int32), capacity, 3, [8]).nodes == [(2, 3)]
    tight = np.array([5, 3, 0], np.int32)  # 2 GPUs: on node 1 a single one would stay, yet node 0 is needed whole
    assert planner.place(tight, capacity, 2, [5]).nodes == [(1, 2)]
    assert planner.place(tight, capacity, 9, []) is None


def test_the_solver_is_asked_only_where_there_is_something_to_gain():
    planner = Planner()
    free = np.array([8] * 10, np.int32)
    planner.place(free, free, 3, [1, 2, 3])
    assert dict(planner.counts) == {"alone": 1}
    for _ in range(2):
        planner.place(*contested())
    assert planner.counts["solved"] == 2
    assert len(planner._remembered) == 1, "the second answer was remembered"


def contested():
    """The tighter place for one GPU is the node with 3 free, but each of the next jobs needs 3."""
    return np.array([4, 3], np.int32), np.array([8, 8], np.int32), 1, [3, 3]


def test_a_solver_that_fails_is_replaced_by_tier_order_told_once_and_counted(monkeypatch, caplog):
    def broken(*_):
        raise pulp.PulpSolverError("no licence")

    monkeypatch.setattr(milp, "solve", broken)
    planner = Planner()
    with caplog.at_level(logging.WARNING):
        first = planner.place(*contested())
        free, capacity, gpus, ahead = contested()
        planner.place(free, capacity, gpus, [*ahead, 1])
    assert first.how == "failed"
    assert first.nodes == [(0, 1)]
    assert planner.counts["failed"] == 2
    assert caplog.text.count("no licence") == 1


def test_a_model_that_would_be_too_large_is_not_solved():
    rng = np.random.default_rng(1)
    capacity = np.full(60, 500, np.int32)
    free = rng.integers(1, 300, 60).astype(np.int32)
    answer = Planner().place(free, capacity, 700, [650, 900, 20, 600, 800])
    assert answer.how in ("alone", "failed")
    assert sum(taken for _, taken in answer.nodes) == 700


def test_nonsense_from_a_solver_is_not_carried_out(monkeypatch):
    def nonsense(model, *_):
        for variable in model.variables():
            variable.varValue = 1.0
        return "solved"

    monkeypatch.setattr(milp, "solve", nonsense)
    assert Planner().place(*contested()).how == "failed"


def test_cbc_stands_in_where_highs_is_absent(monkeypatch):
    monkeypatch.setattr(pulp.HiGHS, "available", lambda self: False)
    answer = Planner().place(*contested())
    assert answer.how == "solved"
    assert answer.nodes == Planner().place(*contested()).nodes


def test_at_the_limit_on_search_nodes_the_incumbent_is_used(monkeypatch):
    """PuLP does not know what HiGHS calls that limit, and ends in a KeyError after the solution is there."""

    def unknown(*_):
        raise KeyError("kSolutionLimit")

    expected = Planner().place(*contested())
    monkeypatch.setattr(pulp.HiGHS, "findSolutionValues", unknown)
    answer = Planner().place(*contested())
    assert answer.how == "limit"
    assert answer.nodes == expected.nodes


def test_limits_use_the_incumbent_or_tier_order():
    free = np.array([7, 6, 5, 5, 3, 3, 2, 1] * 3, np.int32)
    for planner in (Planner(solver_nodes=0), Planner(time_limit=1e-9)):
        answer = planner.place(free, np.full(24, 8, np.int32), 13, [11, 20, 9, 13, 7])
        assert answer.how in ("alone", "limit", "failed", "solved")
        assert sum(taken for _, taken in answer.nodes) == 13


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_in_a_simulation(discipline):
    rng = np.random.default_rng(4)
    trace = make_trace(np.sort(rng.integers(0, 300, 60)), rng.integers(5, 60, 60), rng.choice([1, 2, 3, 4, 8, 12], 60))
    workload = make_workload(trace, [2, 2, 8, 8, 8])
    for queue in ("pool", "global"):
        schedule = simulate(workload, "sjf", discipline, queue, Allocation("milp"))
        check_invariants(schedule, discipline)
        row = summarize(schedule)
        assert row["milp_alone"] + row["milp_solved"] >= 60
        assert row["milp_failed"] == row["milp_limit"] == 0
    assert "milp_failed" not in summarize(simulate(workload, "sjf", discipline))
