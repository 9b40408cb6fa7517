"""Metrics of a schedule small enough to add up by hand."""

import numpy as np
import pytest

from envs.metrics import METRICS, STATISTICS, summarize
from envs.sim.simulator import simulate
from eval.plots import over_time
from tests.conftest import make_trace, make_workload

#  two nodes of 4: job 0 takes node 0 whole from 0 to 100; job 1 takes 1 GPU of node 1 from 0 to 50;
#  job 2 (4 GPUs) comes at 10, waits for node 1 until 50, runs 5 s
WORKLOAD = make_workload(make_trace([0, 0, 10], [100, 50, 5], [4, 1, 4]), [4, 4])
SUMMARY = summarize(simulate(WORKLOAD))


def test_schedule_by_hand():
    schedule = simulate(WORKLOAD)
    assert schedule.start.tolist() == [0, 0, 50]
    assert schedule.nodes_of(2) == [(1, 4)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("wait_mean", 40 / 3),
        ("wait_median", 0),
        ("wait_p90", 32),
        ("wait_p99", 39.2),
        ("turnaround_mean", (100 + 50 + 45) / 3),
        ("slowdown_mean", (1 + 1 + 45 / 5) / 3),
        ("bounded_slowdown_mean", (1 + 1 + 45 / 10) / 3),
        ("makespan", 100),
        ("utilization", (400 + 50 + 20) / 800),
        ("throughput", 3 * 36),
        ("load_imbalance", (1.0 - 70 / 400) / 2),
        ("fragmentation", 150 / 330),  # 3 GPUs for 50 s, of 800 - 470 idle GPU-seconds
        ("jobs", 3),
    ],
)
def test_by_hand(name, value):
    assert SUMMARY[name] == pytest.approx(value)


def test_every_metric_is_there():
    for name, metric in METRICS.items():
        for key in [f"{name}_{s}" for s in STATISTICS] if metric.per_job else [name]:
            assert np.isfinite(SUMMARY[key])


def test_per_pool():
    workload = make_workload(make_trace([0, 0], [10, 20], [2, 1], vc=["0", "1"]), [2], [4])
    schedule = simulate(workload)
    assert summarize(schedule, 0)["utilization"] == pytest.approx(0.5)
    assert summarize(schedule, 1)["utilization"] == pytest.approx(0.25)
    assert summarize(schedule)["utilization"] == pytest.approx(40 / 120)
    assert summarize(schedule, 1)["fragmentation"] == pytest.approx(1.0)
    empty = make_workload(make_trace([0, 1], [10, 20], [2, 1], vc=["1", "1"]), [2], [4])
    assert np.isnan(summarize(simulate(empty), 0)["wait_mean"])


def test_curves_add_up():
    schedule = simulate(WORKLOAD)
    days, busy, waiting = over_time(schedule, points=100)
    assert busy.mean() * 100 == pytest.approx(470)
    assert days[-1] == pytest.approx(100 / 86400)
    assert waiting.max() == 1
    assert waiting[-1] == 0
