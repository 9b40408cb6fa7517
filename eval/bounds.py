"""How good any schedule of a window could be: bounds that no contender can pass.

Each pool by itself, and as if its GPUs were one heap without nodes. GPUs of running jobs come back when these end; jobs
of a backlog that is not scored are left out, as if they never asked for anything. What is found so is a bound for every
real schedule.

The relaxation: jobs may be interrupted and may use all idle GPUs at once. Let M be the mean moment at which a job's
GPU-seconds are worked off. A real job that ends at C with the run time r has M = C - r/2, so that

    sum of weight · C  >=  sum of weight · (M + r/2),

and the right side is smallest where the job with the largest weight per GPU-second always goes first (Goemans 1997, for
one machine with release dates). A job never ends before its earliest start + r either; any part of the jobs may be
bounded by that instead, so several divisions are tried, and the best bound is kept.
"""

import heapq
from typing import NamedTuple

import numpy as np

from envs.sim.reckoning import BOUND
from envs.window import Window

ROUNDS = 12
"""Divisions of the jobs that are tried."""


class Demand(NamedTuple):
    """The scored jobs of one pool, and when GPUs are there for them; times in seconds from the window's beginning."""

    submit: np.ndarray  # (jobs,)
    run_time: np.ndarray  # (jobs,)
    gpus: np.ndarray  # (jobs,)
    release: np.ndarray  # (jobs,) earliest start: submitted, and as many GPUs idle as it asks for
    times: np.ndarray  # (steps,) when GPUs come back, the first is 0
    idle: np.ndarray  # (steps,) GPUs idle from then on, as far as the running jobs go


def demands(window: Window) -> list[Demand]:
    """What each pool with scored jobs has to do."""
    roster, jobs = window.stage.roster, window.jobs
    running, new = roster[jobs[: -window.count]][window.runs], roster[jobs[window.scored]]
    found = []
    for pool, gpus in enumerate(window.stage.workload.nodes.pool_gpus):
        here = new["pool"] == pool
        mine, busy = new[here], running[running["pool"] == pool]
        if not len(mine):
            continue
        ends = np.unique(busy["end"])
        back = np.array([busy["gpus"][busy["end"] == end].sum() for end in ends], float)
        times = np.concatenate(([0.0], ends - window.now))
        idle = float(gpus) - busy["gpus"].sum() + np.concatenate(([0.0], np.cumsum(back)))
        first = times[np.searchsorted(idle, mine["gpus"])]
        submit = window.since[here] - window.now
        found.append(
            Demand(submit, mine["run_time"].copy(), mine["gpus"].astype(float), np.maximum(submit, first), times, idle)
        )
    return found


def weights(score: str, run_time: np.ndarray) -> np.ndarray:
    """What a second of waiting costs each job (jobs,) in the sum that a score is the mean of."""
    if score == "bounded_slowdown":
        return 1.0 / np.maximum(run_time, BOUND)
    return 1.0 / run_time if score == "slowdown" else np.ones(len(run_time))


def bound(window: Window, score: str) -> float:
    """The lowest score (the highest utilization) that any schedule of a window's jobs could have."""
    pools = demands(window)
    if score == "utilization":
        return _most_utilization(window, pools)
    total = sum(_least_sum(pool, score) for pool in pools)
    return total / float(window.scored.sum())


def _least_sum(pool: Demand, score: str) -> float:
    """The least sum of a score over the jobs of a pool."""
    from eval.optimum import FEW, least_cost  # PuLP takes a while to import

    least = relaxed(pool, score)
    return max(least, least_cost(pool, score)) if len(pool.submit) <= FEW else least


def relaxed(pool: Demand, score: str) -> float:
    """The bound by relaxation of the sum of a score over the jobs of a pool."""
    weight = weights(score, pool.run_time)
    alone = cost(pool, score, pool.release)
    best = float(alone.sum())
    in_line = np.ones(len(alone), bool)
    for _ in range(ROUNDS):
        moment = mean_moments(pool, weight, in_line)
        together = weight * (moment + pool.run_time / 2 - pool.submit)
        if score == "wait":
            together -= pool.run_time
        best = max(best, float(np.where(in_line, together, alone).sum()))
        keep = in_line & (together >= alone)
        if (keep == in_line).all() or not keep.any():
            break
        in_line = keep
    return best


def cost(pool: Demand, score: str, start: np.ndarray) -> np.ndarray:
    """What each job (jobs,) adds to the sum of a score if it starts then."""
    wait = start - pool.submit
    if score == "wait":
        return wait
    values = weights(score, pool.run_time) * (wait + pool.run_time)
    return np.maximum(values, 1.0) if score == "bounded_slowdown" else values


def mean_moments(pool: Demand, weight: np.ndarray, in_line: np.ndarray) -> np.ndarray:
    """The mean moments (jobs,) at which work is done, where the largest weight per GPU-second always goes first.

    Only the jobs in line ask for anything; of the others the release is returned.
    """
    work = pool.run_time * pool.gpus
    urgency, left, moment = -(weight / work), work.copy(), np.zeros(len(work))
    arriving = [int(j) for j in np.argsort(pool.release, kind="stable") if in_line[j]]
    events = np.unique(np.concatenate((pool.times, pool.release[in_line]))).tolist()
    rates = pool.idle[np.searchsorted(pool.times, events, side="right") - 1].tolist()
    waiting: list[tuple[float, int]] = []
    at = 0
    for k, now in enumerate(events):
        while at < len(arriving) and pool.release[arriving[at]] <= now:
            heapq.heappush(waiting, (urgency[arriving[at]], arriving[at]))
            at += 1
        until, rate = events[k + 1] if k + 1 < len(events) else np.inf, rates[k]
        while waiting and now < until and rate > 0:
            job = waiting[0][1]
            done = min(left[job], (until - now) * rate)
            moment[job] += done * (now + done / rate / 2)
            left[job] -= done
            now += done / rate
            if left[job] <= 1e-9 * work[job]:
                moment[job] += left[job] * now
                heapq.heappop(waiting)
            else:
                break
    return np.where(in_line, moment / work, pool.release)


def _most_utilization(window: Window, pools: list[Demand]) -> float:
    """Work over the shortest time in which it could be done."""
    last = 0.0
    for pool in pools:
        last = max(last, float((pool.release + pool.run_time).max()), _soonest(pool))
    work = sum(float((pool.run_time * pool.gpus).sum()) for pool in pools)
    first = min(float(pool.submit.min()) for pool in pools)
    return work / (float(window.stage.workload.nodes.capacity.sum()) * (last - first))


def _soonest(pool: Demand) -> float:
    """When the pool's last work could be done, if all idle GPUs always had some."""
    events = np.unique(np.concatenate((pool.times, pool.submit)))
    rates = pool.idle[np.searchsorted(pool.times, events, side="right") - 1]
    work = pool.run_time * pool.gpus
    left, done = 0.0, 0.0
    for k, now in enumerate(events.tolist()):
        left += float(work[pool.submit == now].sum())
        could = rates[k] * (events[k + 1] - now) if k + 1 < len(events) else np.inf
        if left > 0 and rates[k] > 0:
            done = now + min(left, could) / rates[k]
        left = max(0.0, left - could)
    return float(done)
