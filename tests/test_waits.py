"""Waits in windows of a trace."""

import numpy as np
import pytest

from berth.errors import ConfigError
from envs.clusters import find_cluster
from envs.metrics import summarize
from envs.sim.simulator import simulate
from envs.workload import prepare
from eval.waits import TIER_1, Waits, one_pool, starts, waits
from tests.conftest import make_trace


def test_windows_are_spread_evenly():
    assert starts(100, 3, 20) == [0, 40, 80]
    assert starts(20, 2, 20) == [0, 0]
    with pytest.raises(ConfigError, match="19 jobs, want at least 20"):
        starts(19, 2, 20)


def test_each_window_is_simulated_by_itself():
    rng = np.random.default_rng(1)
    trace = make_trace(np.cumsum(rng.exponential(60, 300)), rng.exponential(5000, 300), rng.integers(1, 9, 300))
    found = waits(trace, find_cluster("philly"), load=0.9, windows=2, length=100)
    second = prepare(trace.select(slice(200, 300)), find_cluster("philly"), load=0.9)
    assert found.fcfs[1] == summarize(simulate(second, "fcfs", "strict", allocation=TIER_1))["wait_mean"]
    assert found.sjf[1] == summarize(simulate(second, "sjf", "strict", allocation=TIER_1))["wait_mean"]
    assert found.ratio == pytest.approx(found.fcfs.mean() / found.sjf.mean())
    assert Waits(np.zeros(2), np.zeros(2)).ratio == float("inf")


def test_one_pool():
    trace = make_trace([0], [1], [1], vc=["a"], gpu_type=["T4"])
    assert one_pool(trace).vc is None
    assert one_pool(trace).gpu_type is None
