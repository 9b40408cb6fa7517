"""Arrivals to come: like those of whole days ago, or going round where there are few days."""

import numpy as np

from orchestrator.arrivals import DAY, NOBODY, Coming, drawn, most_of


def came(submit, pool=None) -> Coming:
    count = len(submit)
    rows = np.arange(count, dtype=float)
    return Coming(np.array(submit, float), rows + 1, rows + 10, rows + 20, np.zeros(count) if pool is None else pool)


def test_arrivals_keep_their_hour_and_their_rows():
    at_noon = came([DAY * day + DAY / 2 + 60 * i for day in range(10) for i in range(5)])
    for seed in range(20):
        found = drawn(at_noon, np.random.default_rng(seed), 10 * DAY, 6 * DAY)
        assert (np.abs((found.submit % DAY) - DAY / 2) <= 300).all()
        assert np.array_equal(found.run_time, found.gpus + 9)
        assert np.array_equal(found.estimate, found.gpus + 19)
        assert (np.diff(found.submit) >= 0).all()
        assert ((found.submit >= 10 * DAY) & (found.submit <= 16 * DAY)).all()
        assert len(found.submit) == 30


def test_quiet_days_and_busy_ones_are_both_drawn():
    submit = np.concatenate([day * DAY + np.linspace(60, DAY - 60, 1 if day % 2 else 100) for day in range(12)])
    counts = [len(drawn(came(submit), np.random.default_rng(s), 12 * DAY, DAY).submit) for s in range(40)]
    assert (min(counts), max(counts)) == (1, 100)


def test_few_days_go_round():
    found = drawn(came([0.0, 10.0, 20.0]), np.random.default_rng(0), 1000.0, 100.0)
    assert np.allclose(np.diff(found.submit), 10.0)
    assert found.submit.max() <= 1100.0


def test_nobody_came_or_all_at_once():
    for coming in (NOBODY, came([5.0]), came([5.0, 5.0])):
        assert len(drawn(coming, np.random.default_rng(0), 1000.0, DAY).submit) == 0


def test_a_pool_that_nobody_came_to_of_late_is_quiet():
    submit = np.concatenate((np.arange(10) * DAY, [0.5 * DAY, 0.6 * DAY]))
    order = np.argsort(submit)
    pool = np.array([0] * 10 + [1] * 2)[order]
    quiet = came(submit[order], pool).of(1)
    counts = [len(drawn(quiet, np.random.default_rng(s), 10 * DAY, 2 * DAY).submit) for s in range(50)]
    assert np.mean(np.array(counts) == 0) > 0.5  # it was quiet on nine days of ten


def test_a_minute_is_not_drawn_out_to_a_month():
    few = came(np.arange(8) * 2.0)
    found = drawn(few, np.random.default_rng(0), 100.0, 30 * DAY)
    assert len(found.submit) == most_of(few) == 800
