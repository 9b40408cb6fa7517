"""Windows drawn on their GPUs: which job holds which GPU of which node, and when."""

from typing import Any, NamedTuple

import numpy as np

from eval.arena import Ground
from eval.played import Played


class Bars(NamedTuple):
    """A window of one contender as bars; a job on several runs of neighbouring GPUs has several."""

    job: np.ndarray  # (bars,) place among the window's jobs
    lane: np.ndarray  # (bars,) its first GPU; all GPUs of the cluster are numbered, node after node
    lanes: np.ndarray  # (bars,) how many
    start: np.ndarray  # (jobs,) s from the window's beginning; NaN where it never started
    end: np.ndarray  # (jobs,)
    until: float  # s, the last start of a scored job


def bars(ground: Ground, played: Played) -> Bars:
    """Give every started job GPUs of its own on its nodes: the lowest that are idle when it starts."""
    window, chosen = ground.window, ground.past.chosen
    capacity = window.stage.workload.nodes.capacity
    first = np.concatenate(([0], np.cumsum(capacity)))
    busy_until = np.full(int(first[-1]), -np.inf)
    start = np.where(played.start >= 0, played.start, np.nan)
    end = start + window.stage.roster["run_time"][chosen]  # as the simulator adds: to the last bit
    rows: list[tuple[int, int, int]] = []
    for job in np.argsort(start, kind="stable")[: int(np.isfinite(start).sum())].tolist():
        for place in range(played.place_at[job], played.place_at[job] + played.place_count[job]):
            node, gpus = int(played.place_node[place]), int(played.place_gpus[place])
            mine = np.flatnonzero(busy_until[first[node] : first[node + 1]] <= start[job])[:gpus] + first[node]
            busy_until[mine] = end[job]
            for run in np.split(mine, np.flatnonzero(np.diff(mine) > 1) + 1):
                rows.append((job, int(run[0]), len(run)))
    job_of, lane, lanes = np.array(rows, int).reshape(-1, 3).T
    start, end = start - window.now, end - window.now
    return Bars(job_of, lane, lanes, start, end, float(np.nanmax(start[window.scored])))


def shared_columns(ground: Ground) -> dict[str, Any]:
    """What all contenders' timelines of a window have in common, as JSON can hold it."""
    window, chosen = ground.window, ground.past.chosen
    workload = window.stage.workload
    trace = workload.trace
    names = [pool.name for pool in workload.pools]
    return {
        "id": [str(name) for name in trace.job_id[chosen]],
        "user": [str(name) for name in trace.user[chosen]] if trace.user is not None else [],
        "gpus": trace.gpus[chosen].tolist(),
        "pool": [names[p] for p in workload.pool[chosen]],
        "submit": np.round(trace.submit[chosen] - window.now, 1).tolist(),
        "run": np.round(trace.run_time[chosen], 1).tolist(),
        "scored": window.scored.astype(int).tolist(),
        "first": window.first,
    }


def to_json(one: Bars) -> dict[str, Any]:
    """The bars as JSON can hold them."""
    start = [None if np.isnan(value) else round(float(value), 1) for value in one.start]
    return {"start": start, "bars": np.stack((one.job, one.lane, one.lanes), axis=1).tolist(), "until": one.until}


def over_time(ground: Ground, played: Played, points: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hours since the beginning, GPUs in use and jobs waiting, up to the last start of a scored job (points,)."""
    window, chosen = ground.window, ground.past.chosen
    roster = window.stage.roster[chosen]
    began = played.start >= 0
    until = float(played.start[window.scored].max())
    times = np.linspace(window.now, max(until, window.now + 1), points)
    start, gpus = played.start[began], roster["gpus"][began].astype(float)
    used = _sum_until(start, gpus, times) - _sum_until(start + roster["run_time"][began], gpus, times)
    ones = np.ones(len(chosen))
    waiting = _sum_until(roster["submit"], ones, times) - _sum_until(start, ones[began], times)
    return (times - window.now) / 3600, used, waiting


def _sum_until(moments: np.ndarray, weights: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The sum of the weights of all moments up to each time."""
    order = np.argsort(moments)
    total = np.concatenate(([0.0], np.cumsum(weights[order])))
    summed: np.ndarray = total[np.searchsorted(moments[order], times, side="right")]
    return summed
