"""How much a queue's order matters on a trace: mean wait under fcfs against mean wait under sjf, in windows."""

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from allocation.choice import Allocation
from berth.errors import ConfigError
from envs.metrics import summarize
from envs.sim.cluster import Cluster
from envs.sim.simulator import Simulation
from envs.workload import prepare
from traces.trace import Trace

TIER_1 = Allocation("lex", "1")
"""The rule under which the published waits were measured."""


class Waits(NamedTuple):
    """Mean waits (windows,) in seconds under both policies."""

    fcfs: np.ndarray
    sjf: np.ndarray

    @property
    def ratio(self) -> float:
        """Mean wait under fcfs over that under sjf, all windows together."""
        return float(self.fcfs.mean() / self.sjf.mean()) if self.sjf.any() else float("inf")

    @property
    def median(self) -> float:
        """The median of the windows' ratios; NaN where a window has no wait at all."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.median(self.fcfs / self.sjf))


def starts(jobs: int, windows: int, length: int) -> list[int]:
    """Where windows begin that are spread evenly over a trace; raises ConfigError for a trace that is too short."""
    if jobs < length:
        raise ConfigError(f"{jobs:,} jobs, want at least {length:,} for a window; --window N makes it shorter")
    return np.linspace(0, jobs - length, windows).astype(int).tolist()


def one_pool(trace: Trace) -> Trace:
    """The trace without what chooses a pool, so that it meets one pool over all nodes."""
    return dataclasses.replace(trace, vc=None, gpu_type=None)


def window_waits(
    trace: Trace, cluster: Cluster, load: float = 0.95, windows: int = 10, length: int = 5000
) -> Iterator[tuple[float, float]]:
    """Mean waits under fcfs and sjf, strict, on the cluster's first topology, for each window at that load."""
    for first in starts(len(trace), windows, length):
        workload = prepare(trace.select(slice(first, first + length)), cluster, load=load)
        fcfs, sjf = (
            summarize(Simulation(workload, policy, "strict", allocation=TIER_1).run())["wait_mean"]
            for policy in ("fcfs", "sjf")
        )
        yield fcfs, sjf


def waits(trace: Trace, cluster: Cluster, load: float = 0.95, windows: int = 10, length: int = 5000) -> Waits:
    """The mean waits of all windows."""
    return Waits(*np.array(list(window_waits(trace, cluster, load, windows, length))).T)
