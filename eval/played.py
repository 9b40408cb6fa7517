"""What became of a window, and what that is worth."""

from typing import NamedTuple

import numpy as np

from envs.episode import Episode
from envs.metrics import METRICS, job_metrics
from envs.reward import window_score
from envs.sim.simulator import Schedule
from envs.sim.world import used_places
from envs.window import Window

PER_JOB = tuple(name for name, metric in METRICS.items() if metric.per_job)
PER_WINDOW = (*(name for name, metric in METRICS.items() if not metric.per_job), "backlog_wait")
"""Metrics of single jobs, and of a window as a whole."""

UNITS = {name: metric.unit for name, metric in METRICS.items()} | {"backlog_wait": "s"}
LESS_IS_BETTER = {name: metric.less_is_better for name, metric in METRICS.items()} | {"backlog_wait": True}


class Played(NamedTuple):
    """Who started when and where, of all jobs of a window (jobs,), its own last."""

    start: np.ndarray  # s from the trace's start; -1 where it had not started when the last scored job had
    place_at: np.ndarray
    place_count: np.ndarray
    place_node: np.ndarray  # (places,)
    place_gpus: np.ndarray


def from_schedule(schedule: Schedule) -> Played:
    """What a simulation has made of a window."""
    s = schedule
    return Played(s.start, s.place_at, s.place_count, s.place_node, s.place_gpus)


def from_episode(episode: Episode) -> Played:
    """What an episode that is over has made of a window."""
    jobs, order = episode.arrays["jobs"], episode.in_trace_order()
    at, node, gpus = used_places(jobs, episode.arrays["places"])
    return Played(jobs["start"][order], at[order], jobs["place_count"][order], node, gpus)


def scored_metrics(window: Window, played: Played) -> dict[str, np.ndarray]:
    """The metrics of every scored job (scored,)."""
    run_time = window.stage.roster["run_time"][window.jobs[window.scored]]
    return job_metrics(played.start[window.scored] - window.since, run_time)


def window_metrics(window: Window, played: Played, jobs: np.ndarray) -> dict[str, float]:
    """The metrics of a window as a whole; docs/evaluation.md defines them. `jobs` are `window.jobs`.

    Load imbalance, fragmentation and the backlog's wait are taken from the beginning to the last start of a scored job,
    as what happens after it is no part of the window.
    """
    roster, nodes = window.stage.roster, window.stage.workload.nodes
    mine, start = roster[jobs[window.scored]], played.start[window.scored]
    end = start + mine["run_time"]
    makespan = float(end.max() - window.now)
    until = float(start.max())
    busy, stranded, there = _books(window, played, jobs, until)
    idle = float(there.sum() - busy.sum())
    began = played.start[: -window.count][window.waits]
    began = np.where(began < 0, until, np.minimum(began, until))
    gpus = int(nodes.capacity.sum())
    return {
        "utilization": window_score("utilization", window.since, start, mine["run_time"], mine["gpus"], gpus),
        "makespan": makespan,
        "throughput": 3600.0 * len(mine) / makespan,
        "load_imbalance": float(np.std(busy / there)) if until > window.now else 0.0,
        "fragmentation": float(stranded.sum()) / idle if idle > 0 else 0.0,
        "backlog_wait": float((began - window.now).mean()) if len(began) else 0.0,
    }


def _books(window: Window, played: Played, jobs: np.ndarray, until: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """GPU-seconds of each node (nodes,) used, idle on a partly used node, and all there are, from now to `until`."""
    capacity = window.stage.workload.nodes.capacity.astype(float)
    run_time = window.stage.roster["run_time"][jobs]
    began = played.start >= 0
    count = np.where(began, played.place_count, 0)
    owner = np.repeat(np.arange(len(jobs)), count)
    at = np.repeat(played.place_at, count) + _places_in(count)
    node, gpus = played.place_node[at], played.place_gpus[at].astype(float)
    time = np.concatenate((played.start[owner], played.start[owner] + run_time[owner], np.full(len(capacity), until)))
    time = np.clip(np.concatenate((time, np.full(len(capacity), window.now))), window.now, until)
    where = np.concatenate((node, node, np.arange(len(capacity)), np.arange(len(capacity))))
    change = np.concatenate((gpus, -gpus, np.zeros(2 * len(capacity))))
    order = np.lexsort((time, where))
    time, where, change = time[order], where[order], change[order]
    total = np.cumsum(change)
    used = total - _before(total, where)[where]
    length = np.where(np.diff(where, append=-1) == 0, np.diff(time, append=until), 0.0)
    free = capacity[where] - used
    busy = np.bincount(where, used * length, len(capacity))
    partly = np.where((free > 0.5) & (used > 0.5), free, 0.0)
    stranded = np.bincount(where, partly * length, len(capacity))
    return busy, stranded, capacity * (until - window.now)


def _places_in(count: np.ndarray) -> np.ndarray:
    """0, 1, ... for each job's places, one job after the other."""
    ends = np.cumsum(count)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - count, count)


def _before(total: np.ndarray, where: np.ndarray) -> np.ndarray:
    """The running total (nodes,) before the first row of each node; rows are sorted by node, and each node has one."""
    first = np.flatnonzero(np.diff(where, prepend=-1))
    return np.where(first > 0, total[first - 1], 0.0)
