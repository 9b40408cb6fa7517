"""Ends of intervals: fitted so that they hold what they should, by what is known and by who still waits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.calibrating import Ends, Told, fitted, held, in_turn, moved, scores
from orchestrator.forecasting import HORIZON, Interval


def interval(count: int, low: float = 300.0, middle: float = 1000.0, high: float = 3000.0) -> Interval:
    return Interval(np.full(count, low), np.full(count, middle), np.full(count, high))


def surprised(rng: np.random.Generator, wide: float, moments: int = 60, jobs: int = 40) -> list[Told]:
    """Moments an hour apart whose starts are `wide` times as far from their medians as intervals say."""
    told = []
    for i in range(moments):
        drawn = np.exp(np.log(1000.0) + wide * np.log(3.0) / 1.2816 * rng.standard_normal(jobs))
        told.append(Told(3600.0 * i, interval(jobs, 1000.0 / 3, 1000.0, 3000.0), drawn))
    return told


def inside(told: list[Told], ends: Ends) -> float:
    return float(np.mean([held(moved(one.interval, ends), one.start) == 0 for one in told]))


@pytest.mark.parametrize("wide", [0.5, 1.0, 2.0])
def test_ends_hold_what_they_should_on_moments_that_they_were_not_fitted_on(wide):
    rng = np.random.default_rng(1)
    ends = fitted(surprised(rng, wide), 1e9)
    assert inside(surprised(rng, wide), ends) == pytest.approx(0.8, abs=0.04)
    assert ends.high == pytest.approx(wide, rel=0.25)


def test_who_still_waits_counts():
    told = surprised(np.random.default_rng(2), 1.0)
    now = told[-1].when + 1200.0
    early = [Told(now - 1200.0, one.interval, one.start) for one in told]  # half of them have not started
    soon = [one.start <= 1200.0 for one in early]
    known = [
        Told(one.when, Interval(*(end[there] for end in one.interval)), one.start[there])
        for one, there in zip(early, soon, strict=True)
    ]
    assert fitted(known, 1e9).high < 0.5  # what ended soon alone would have intervals end far too early
    assert fitted(early, now).high > 0.75
    later = [one._replace(start=np.where(one.start > 1200.0, np.inf, one.start)) for one in early]
    assert fitted(later, now) == fitted(early, now)  # nothing is known of what comes after


def test_ends_are_somewhat_wider_than_drawn_where_nothing_is_known():
    ends = fitted([], 0.0)
    assert -2.0 < ends.low < -1.0  # wider than drawn, since nothing is known
    assert 1.0 < ends.high < 2.0
    future = [one._replace(when=one.when + 1e9) for one in surprised(np.random.default_rng(0), 3.0)]
    assert fitted(future, 10.0).moments == 0


def test_every_moment_counts_the_same():
    one = Told(0.0, interval(2000), np.full(2000, 1000.0))
    others = [Told(float(i), interval(3), np.full(3, 9000.0)) for i in range(1, 12)]
    assert fitted([one, *others], 1e9).high > 1.5


def test_what_is_beyond_the_horizon_is_one_thing():
    never = Interval(np.array([100.0]), np.array([np.inf]), np.array([np.inf]))
    assert scores(never, np.array([HORIZON * 5])).tolist() == [0.0]
    assert held(never, np.array([HORIZON * 5])).tolist() == [0]
    assert held(never, np.array([50.0])).tolist() == [-1]
    assert held(interval(1), np.array([HORIZON * 5])).tolist() == [1]
    assert np.isinf(moved(never, Ends(-1.0, 1.0)).high[0])


def test_an_interval_without_an_upper_end_leaves_out_as_much_before_it():
    rng = np.random.default_rng(4)

    def open_ended(moments: int) -> list[Told]:
        found = []
        for i in range(moments):
            start = np.where(rng.random(40) < 0.3, np.inf, rng.uniform(0.0, HORIZON, 40))
            drawn = np.quantile(start[np.isfinite(start)], 0.1)
            told = Interval(np.full(40, drawn), np.full(40, HORIZON / 2), np.full(40, np.inf))
            found.append(Told(HORIZON * i, told, start))
        return found

    ends = fitted(open_ended(60), 1e12)
    assert inside(open_ended(60), ends) == pytest.approx(0.8, abs=0.04)


def test_no_end_is_before_now():
    assert (moved(interval(3), Ends(-50.0, 1.0)).low >= 0.0).all()


@pytest.mark.parametrize("ends", [Ends(0.4, 2.0), Ends(-2.0, -0.5), Ends(1.0, 0.5)])
def test_the_median_lies_between_the_ends(ends):
    low, middle, high = moved(interval(1), ends)
    assert low[0] <= middle[0] <= high[0]


def drifting(seed: int, moments: int = 200, jobs: int = 40) -> list[Told]:
    """Moments an hour apart at which all jobs are surprised alike, by a level that wanders, besides each by its own."""
    rng, level, told = np.random.default_rng(seed), 0.0, []
    for i in range(moments):
        level = 0.97 * level + 0.15 * rng.standard_normal()
        away = level + (0.4 + 0.6 * i / moments) * rng.standard_normal(jobs)
        told.append(Told(3600.0 * i, interval(jobs, 1000.0 / 3, 1000.0, 3000.0), 1000.0 * np.exp(away)))
    return told


@pytest.mark.parametrize("seed", range(5))
def test_four_fifths_are_held_where_surprises_drift(seed):
    told = drifting(seed)
    ends = in_turn(told, 1e9)
    sides = [held(moved(one.interval, end), one.start) == 0 for one, end in zip(told[50:], ends[50:-1], strict=True)]
    assert 0.75 <= np.mean(sides) <= 0.85


def test_intervals_that_held_too_little_are_wider_next():
    calm, wild = surprised(np.random.default_rng(6), 1.0), surprised(np.random.default_rng(7), 3.0)
    late = [one._replace(when=one.when + 3600.0 * len(calm)) for one in wild[:5]]
    before, after = fitted(calm, 1e9), fitted([*calm, *late], 1e9)
    assert after.low < 1.1 * before.low < 0
    assert after.high > 1.1 * before.high > 0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 12), st.floats(0.0, 20_000.0))
def test_ends_owe_nothing_to_what_is_not_known_yet(seed, moments, later):
    rng = np.random.default_rng(seed)
    told = surprised(rng, 2.0, moments, 8)
    now = told[-1].when + later
    other = [
        one._replace(start=np.where(one.start > now - one.when, now - one.when + rng.uniform(1, 1e7, 8), one.start))
        for one in told
    ]
    assert fitted(other, now) == fitted(told, now)


def test_the_ends_of_each_moment_are_those_fitted_then():
    told = surprised(np.random.default_rng(8), 1.5, 12)
    turns = in_turn(told, 1e9)
    assert turns[:-1] == [fitted(told, one.when) for one in told]
    assert turns[-1] == fitted(told, 1e9)
