"""The statistics of the allocation study, on runs whose outcome is known."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from benchmarks.allocation_study import by_trace, estimate, every_cell, left_out, run_window, tables, window_starts
from berth.errors import ConfigError


def runs(factor, windows=10, traces=("a", "b")):
    """Runs in which `other` waits `factor(window)` times as long as lex, and uses one point more of the GPUs."""
    rng = np.random.default_rng(0)
    rows = []
    for trace, window, policy, discipline, load in product(
        traces, range(windows), ("fcfs", "sjf"), ("strict", "easy"), (0.7, 0.9, 1.1)
    ):
        wait = rng.uniform(10, 1000)
        for placer, times, more in (("lex", 1.0, 0.0), ("best_fit", factor(window), 0.01)):
            row = {"trace": trace, "window": window, "policy": policy, "discipline": discipline, "load": load}
            row |= {"placer": placer, "failed": 0.0, "wait_mean": wait * times, "wait_p99": 3 * wait * times}
            rows.append(row | {"utilization": 0.5 + more, "fragmentation": 0.2})
    return pd.DataFrame(rows)


def test_a_known_change_is_found_and_the_windows_are_kept_apart():
    """Twice as long in the first 80 % of the windows, half as long in the rest."""
    table = by_trace(runs(lambda window: 2.0 if window < 8 else 0.5))
    for late, expected in ((False, np.log(2)), (True, np.log(0.5))):
        found = estimate(table, ["a", "b"], late)["best_fit"]
        assert found[0] == pytest.approx((expected,) * 3)
        assert found[1] == pytest.approx((expected,) * 3)
        assert found[2] == pytest.approx((0.01,) * 3)
        assert found[3] == pytest.approx((0.0,) * 3)
    text = tables(runs(lambda window: 2.0 if window < 8 else 0.5))
    assert "| best_fit | +100.0 [+100.0, +100.0] |" in text
    assert "| best_fit | -50.0 [-50.0, -50.0] |" in text
    assert "4 / 0 / 0" in text


def test_intervals_hold_the_truth_and_are_not_points():
    table = by_trace(runs(lambda window: 1.5 if window % 2 else 1.0, windows=40))
    middle, low, high = estimate(table, ["a", "b"], False)["best_fit"][0]
    assert low < np.log(1.25) < high
    assert low < middle < high
    assert high - low > 0.01


def test_nobody_waiting_is_no_change_and_only_the_other_waiting_is_left_out_and_counted():
    still = runs(lambda window: 1.0)
    still.loc[:, ["wait_mean", "wait_p99"]] = 0.0
    assert estimate(by_trace(still), ["a"], True)["best_fit"][0] == (0.0, 0.0, 0.0)
    assert left_out(by_trace(still)) == 0
    still.loc[(still.placer == "best_fit") & (still.load == 0.7), "wait_mean"] = 5.0
    assert left_out(by_trace(still)) == 2 * 4
    assert estimate(by_trace(still), ["a"], True)["best_fit"][0] == (0.0, 0.0, 0.0)


def test_every_cell_is_written():
    cells = every_cell(runs(lambda window: 2.0))
    assert len(cells) == 2 * 12
    assert cells.wait_mean_change.tolist() == pytest.approx([1.0] * 24)


def test_windows_do_not_overlap_and_too_few_are_refused():
    assert window_starts(2500, 40, 1000) == [0, 1500]
    with pytest.raises(ConfigError, match="4 windows; want at least 5"):
        tables(runs(lambda window: 1.0, windows=4))


def test_a_window_is_run_under_all_rules():
    rows = run_window("sample synthetic", 3, 0, 60, ("lex", "lex_tier_1", "milp"))
    assert len(rows) == 3 * 12
    assert {row["placer"] for row in rows} == {"lex", "lex_tier_1", "milp"}
    assert all(row["failed"] == 0 for row in rows)
