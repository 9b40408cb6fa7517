"""Metrics of a schedule; each is defined in docs/glossary.md."""

from typing import NamedTuple

import numpy as np

from envs.sim.reckoning import BOUND
from envs.sim.simulator import Schedule

STATISTICS = ("mean", "median", "p90", "p99")


class Metric(NamedTuple):
    """One metric: its unit and whether less of it is better."""

    unit: str
    less_is_better: bool
    per_job: bool


METRICS = {
    "bounded_slowdown": Metric("", True, True),
    "slowdown": Metric("", True, True),
    "wait": Metric("s", True, True),
    "turnaround": Metric("s", True, True),
    "utilization": Metric("", False, False),
    "makespan": Metric("s", True, False),
    "throughput": Metric("jobs/h", False, False),
    "load_imbalance": Metric("", True, False),
    "fragmentation": Metric("", True, False),
}
"""Every metric by name; those per job come as mean, median, p90 and p99."""


def bounded_slowdown(wait: np.ndarray, run_time: np.ndarray) -> np.ndarray:
    """max(1, (wait + run_time) / max(run_time, 10 s)) of each job."""
    return np.maximum(1.0, (wait + run_time) / np.maximum(run_time, BOUND))


def job_metrics(wait: np.ndarray, run_time: np.ndarray) -> dict[str, np.ndarray]:
    """The metrics of every single job (jobs,)."""
    return {
        "bounded_slowdown": bounded_slowdown(wait, run_time),
        "slowdown": (wait + run_time) / run_time,
        "wait": wait,
        "turnaround": wait + run_time,
    }


def summarize(schedule: Schedule, pool: int | None = None) -> dict[str, float]:
    """All metrics of a schedule, or of one pool's jobs and nodes in it; NaN where a pool had no jobs.

    Job metrics are named like `wait_mean`, `wait_p99`; the others by their own name. Time counts from the first submit
    to the last end of the whole schedule, for a pool too. Where the MILP placed, how often it did in which way is there
    too, of all pools together.
    """
    trace, nodes = schedule.workload.trace, schedule.workload.nodes
    jobs = slice(None) if pool is None else schedule.workload.pool == pool
    of_pool = slice(None) if pool is None else slice(nodes.first[pool], nodes.first[pool + 1])
    makespan = float(schedule.end.max() - trace.submit[0])
    wait = (schedule.start - trace.submit)[jobs]
    result: dict[str, float] = {}
    for name, values in job_metrics(wait, trace.run_time[jobs]).items():
        result |= statistics(name, values)
    capacity, busy, stranded = nodes.capacity[of_pool], schedule.busy[of_pool], schedule.stranded[of_pool]
    there = float(capacity.sum()) * makespan
    idle = there - float(busy.sum())
    return (
        result
        | {
            "utilization": float(busy.sum()) / there,
            "makespan": makespan,
            "throughput": 3600.0 * len(wait) / makespan,
            "load_imbalance": float(np.std(busy / (capacity * makespan))),
            "fragmentation": float(stranded.sum()) / idle if idle > 0 else 0.0,
            "jobs": float(len(wait)),
        }
        | {f"milp_{how}": float(count) for how, count in schedule.placements.items()}
    )


def statistics(name: str, values: np.ndarray) -> dict[str, float]:
    """Mean, median, p90 and p99 of a metric's values, as wait_mean and so on; NaN where there are none."""
    found = [values.mean(), *np.percentile(values, [50, 90, 99])] if len(values) else [np.nan] * len(STATISTICS)
    return {f"{name}_{statistic}": float(value) for statistic, value in zip(STATISTICS, found, strict=True)}
