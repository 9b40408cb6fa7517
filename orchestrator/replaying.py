"""A replayed trace, seen at any moment as whoever forecasts would have seen it."""

import numpy as np

from envs.recalling import Kin, Recalled, recall
from envs.sim.simulator import Schedule, simulate
from envs.snapshot import Snapshot
from envs.workload import Workload
from orchestrator.arrivals import Coming
from orchestrator.calibrating import Told
from orchestrator.doubting import Doubt, learn, unended
from orchestrator.forecasting import forecast


class Replay:
    """A workload under a policy: the cluster as a Snapshot at any moment, what was known then, and what came of it."""

    def __init__(self, workload: Workload, policy: str, discipline: str, runtime_info: str = "predicted") -> None:
        self.workload, self.policy, self.discipline, trace = workload, policy, discipline, workload.trace
        self.schedule: Schedule = simulate(workload, policy, discipline, runtime_info=runtime_info)
        unknown = np.full(len(trace), "-1", object)
        self.kin = Kin(
            unknown if trace.user is None else trace.user, unknown if trace.vc is None else trace.vc, trace.gpus
        )
        self.told: Recalled = recall(self.kin, self.schedule.end, trace.run_time, self.kin, trace.submit)
        self.known = self.told.run_time
        if runtime_info == "request" and trace.request_time is not None:
            self.known = np.where(trace.request_time > 0, trace.request_time, trace.run_time)

    def doubt(self, now: float) -> Doubt:
        """What the jobs that have started by a moment teach, as far as is known by then."""
        start = self.schedule.start
        begun = start <= now
        end = np.where(self.schedule.end <= now, self.schedule.end, np.inf)[begun]
        ran = np.minimum(self.workload.trace.run_time[begun], now - start[begun])
        return learn(Kin(*(column[begun] for column in self.kin)), self.workload.trace.submit[begun], end, ran)

    def at(self, now: float) -> Snapshot:
        """The cluster at a moment."""
        trace, start, end, nodes = self.workload.trace, self.schedule.start, self.schedule.end, self.workload.nodes
        queued = np.flatnonzero((trace.submit <= now) & (start > now))
        running = np.flatnonzero((start <= now) & (end > now))
        counts = self.schedule.place_count[running].astype(np.int64)
        place_at = np.concatenate(([0], np.cumsum(counts)))
        at = np.repeat(self.schedule.place_at[running] - place_at[:-1], counts) + np.arange(place_at[-1])
        node, gpus = self.schedule.place_node[at], self.schedule.place_gpus[at]
        used = np.bincount(node, gpus, minlength=len(nodes.capacity)).astype(np.int64)
        pools = np.repeat(np.arange(len(nodes.pool_gpus)), np.diff(nodes.first))
        guess = self.known[running]
        return Snapshot(
            now, queued, trace.submit[queued], now - trace.submit[queued], trace.gpus[queued],
            self.known[queued], self.workload.pool[queued], running, start[running], trace.gpus[running],
            self.workload.pool[running], start[running] + guess, nodes.capacity - used, nodes.capacity, pools,
            history=self.told.history[queued], running_guess=guess, place_at=place_at, place_node=node, place_gpus=gpus,
        )  # fmt: skip

    def coming(self, now: float, doubt: Doubt | None = None, seed: int = 0) -> Coming:
        """All arrivals until a moment; run times of those that have not ended are as told, or as a doubt draws them."""
        trace = self.workload.trace
        came = np.flatnonzero(trace.submit <= now)
        start, end, told = self.schedule.start[came], self.schedule.end[came], self.told.run_time[came]
        passed = np.maximum(0.0, now - start)
        whole = np.maximum(told, passed)
        if doubt is not None:
            whole = unended(told, passed, trace.gpus[came], doubt, seed)
        ran = np.where(end <= now, trace.run_time[came], whole)
        return Coming(trace.submit[came], trace.gpus[came], ran, self.known[came], self.workload.pool[came])

    def waits_at(self, moments: np.ndarray) -> np.ndarray:
        """Those of some moments at which somebody waits."""
        trace, start = self.workload.trace, self.schedule.start
        return np.array([now for now in moments if np.any((trace.submit <= now) & (start > now))])

    def foretold(self, now: float, doubt: Doubt, draws: int, seed: int, inside: float = 0.8) -> Told:
        """What is forecast at a moment, and what came; starts after the last arrival are not known."""
        view = self.at(now)
        made = forecast(view, self.policy, self.discipline, doubt, self.coming(now, doubt, seed), draws, seed)
        start = self.schedule.start[view.job]
        known = np.where(start > self.workload.trace.submit[-1], np.inf, start - now)
        return Told(now, made.interval(inside), known)
