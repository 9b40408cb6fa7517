"""Surprises of run times: a line of what was told, and those that still run counted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.recalling import Kin
from orchestrator.doubting import KEPT, Temper, draw_left, fitted_line, learn, unended, unlearned


def alike(count: int) -> Kin:
    """Jobs of nobody known, with a GPU each."""
    nobody = np.full(count, "-1", object)
    return Kin(nobody, nobody, np.ones(count, int))


def test_a_line_by_hand():
    x, ones = np.array([0.0, 1.0, 2.0]), np.ones(3)
    assert fitted_line(x, 5.0 + 0.5 * x, ones).tolist() == pytest.approx([5.0, 0.5])
    assert fitted_line(x, 5.0 - x, ones).tolist() == pytest.approx([4.0, 0.0])  # whoever tells more never means less
    assert fitted_line(x, 3.0 * x, ones).tolist() == pytest.approx([2.0, 1.0])
    assert fitted_line(np.ones(3), x, ones).tolist() == pytest.approx([0.0, 1.0])  # all were told the same
    assert fitted_line(x, np.array([0.0, 0.0, 9.0]), np.array([1.0, 1.0, 0.0])).tolist() == [0.0, 0.0]


@given(st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9), st.floats(0.1, 9)), min_size=2, max_size=9))
def test_no_other_line_has_less_squares(rows):
    x, y, weights = (np.array(column) for column in zip(*rows, strict=True))
    start, slope = fitted_line(x, y, weights)
    if np.average((x - np.average(x, weights=weights)) ** 2, weights=weights) <= 1e-9:
        assert slope == 1.0  # they tell of none
        return
    least = np.dot(weights, (y - start - slope * x) ** 2)
    for other in np.linspace(0.0, 1.0, 11):
        best = np.average(y - other * x, weights=weights)
        assert least <= np.dot(weights, (y - best - other * x) ** 2) + 1e-6


def test_what_is_told_by_chance_is_not_counted_twice():
    rng = np.random.default_rng(0)
    run_time = np.exp(6.0 + 2.0 * rng.standard_normal(4000))  # nothing tells of it but its distribution
    submit = np.arange(4000) * 1e5
    doubt = learn(alike(4000), submit, submit + run_time, run_time)
    drawn = np.expm1(doubt.running_line[0, 0] + doubt.running_line[0, 1] * np.log1p(1e3) + doubt.running[0])
    assert doubt.running_line[0, 1] < 0.2
    assert np.mean(np.log(drawn)) == pytest.approx(6.0, abs=0.3)
    assert np.std(np.log(drawn)) == pytest.approx(2.0, abs=0.15)


def test_jobs_that_still_run_count():
    rng = np.random.default_rng(1)
    run_time = np.exp(6.0 + rng.standard_normal(3000))
    submit, now = np.sort(rng.uniform(0.0, 3000.0, 3000)), 3000.0
    over = submit + run_time <= now
    ended = Kin(*(column[over] for column in alike(3000)))
    alone = learn(ended, submit[over], (submit + run_time)[over], run_time[over])
    end, so_far = np.where(over, submit + run_time, np.inf), np.minimum(run_time, now - submit)
    both = learn(alike(3000), submit, end, so_far)
    middles = [one.running[0, KEPT // 2] + one.running_line[0] @ (1.0, 6.0) for one in (alone, both)]
    assert middles[0] < 5.9
    assert middles[1] == pytest.approx(6.0, abs=0.12)
    assert both.jobs == over.sum()


def test_run_times_of_jobs_that_have_not_ended_are_at_least_what_has_passed():
    passed = np.array([0.0, 50.0, 1e4])
    drawn = unended(np.full(3, 100.0), passed, np.ones(3, int), unlearned(), 0)
    assert (drawn >= passed + 1.0).all()
    left = draw_left(np.full(1, 100.0), np.zeros(1), np.ones(1), unlearned(0.0), np.random.default_rng(0), 5, Temper())
    assert left == pytest.approx(100.0)
