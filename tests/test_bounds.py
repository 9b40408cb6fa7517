"""No schedule is better than the bound, and of a handful of jobs the bound is the best schedule."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.policies import POLICIES
from envs.reward import SCORES, window_score
from envs.window import Window, simulate_window
from eval.bounds import Demand, bound, cost, mean_moments, relaxed, weights
from eval.optimum import least_cost
from tests.test_windows import WARM, stage_of, tiny_workloads

SUMS = [score for score in SCORES if score != "utilization"]


def score_of(window, schedule, score):
    trace = schedule.workload.trace
    mine = slice(len(trace) - window.count, None)
    gpus = int(schedule.workload.nodes.capacity.sum())
    return window_score(score, trace.submit[mine], schedule.start[mine], trace.run_time[mine], trace.gpus[mine], gpus)


@given(
    tiny_workloads(), st.sampled_from(list(POLICIES)), st.sampled_from(WARM), st.sampled_from(list(SCORES)), st.data()
)
@settings(max_examples=200)
def test_no_schedule_is_better_than_the_bound(workload, policy, discipline, score, data):
    stage = stage_of(workload, warm_rule="fcfs@easy")
    first = data.draw(st.integers(0, len(workload) - 1))
    window = Window(stage, first, data.draw(st.integers(1, len(workload) - first)))
    mine = score_of(window, simulate_window(window, policy, discipline), score)
    best = bound(window, score)
    assert mine <= best + 1e-9 if score == "utilization" else mine >= best - 1e-9


@st.composite
def demands(draw, most=5):
    """What a pool of up to four GPUs has to do, with running jobs that give some back."""
    jobs = draw(st.integers(1, most))
    idle = [*sorted(draw(st.lists(st.integers(0, 4), min_size=2, max_size=2))), 4]
    times = np.array([0.0, 5.0, 11.0])
    submit = np.sort(draw(st.lists(st.integers(0, 12), min_size=jobs, max_size=jobs))).astype(float)
    submit[0] = 0.0
    run_time = np.array(draw(st.lists(st.integers(1, 30), min_size=jobs, max_size=jobs)), float)
    gpus = np.array(draw(st.lists(st.integers(1, 4), min_size=jobs, max_size=jobs)), float)
    first = times[np.searchsorted(idle, gpus)]
    return Demand(submit, run_time, gpus, np.maximum(submit, first), times, np.array(idle, float))


def starts_in_order(pool, order):
    """Every job as early as it can, one after the other in a given order: some order of this kind is optimal."""
    start = np.full(len(order), np.nan)
    for job in order:
        placed = [int(i) for i in np.flatnonzero(~np.isnan(start))]
        moments = [pool.release[job], *pool.times, *(start[i] + pool.run_time[i] for i in placed)]
        start[job] = min(m for m in moments if m >= pool.release[job] and _fits(pool, start, placed, job, m))
    return start


def _fits(pool, start, placed, job, moment):
    for at in [moment, *(start[i] for i in placed if moment < start[i] < moment + pool.run_time[job])]:
        there = pool.idle[np.searchsorted(pool.times, at, side="right") - 1]
        used = sum(pool.gpus[i] for i in placed if start[i] <= at < start[i] + pool.run_time[i])
        if there - used < pool.gpus[job]:
            return False
    return True


def best_of_all(pool, score):
    orders = itertools.permutations(range(len(pool.submit)))
    return min(float(cost(pool, score, starts_in_order(pool, order)).sum()) for order in orders)


@given(demands(), st.sampled_from(SUMS))
@settings(max_examples=40)
def test_the_integer_program_finds_the_optimum(pool, score):
    best = best_of_all(pool, score)
    assert least_cost(pool, score) == pytest.approx(best, rel=2e-4, abs=1e-3)
    assert least_cost(pool, score) <= best + 1e-9


@given(demands(most=6), st.sampled_from(SUMS))
@settings(max_examples=60)
def test_the_relaxation_is_a_bound(pool, score):
    alone = float(cost(pool, score, pool.release).sum())
    assert alone - 1e-9 <= relaxed(pool, score) <= best_of_all(pool, score) + 1e-9


def test_by_hand():
    """Two GPUs, three jobs of 10 s on both at once, all at 0: waits of 0, 10 and 20 s, and no schedule has less."""
    three = np.zeros(3)
    pool = Demand(three, three + 10, three + 2, three, np.array([0.0]), np.array([2.0]))
    moments = mean_moments(pool, weights("wait", pool.run_time), np.ones(3, bool))
    assert sorted(moments.tolist()) == [5.0, 15.0, 25.0]
    assert relaxed(pool, "wait") == pytest.approx(30.0)
    assert least_cost(pool, "wait") == pytest.approx(30.0, rel=1e-4)
    assert best_of_all(pool, "wait") == 30.0
