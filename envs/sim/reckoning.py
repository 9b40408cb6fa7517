"""What an episode has earned so far, compiled: the agent's starts against the baseline's."""

import numpy as np

from berth.compiled import njit

BOUNDED_SLOWDOWN, WAIT, TURNAROUND, UTILIZATION, SLOWDOWN = range(5)
"""The scores by seed 004's numbers; envs/reward.py gives them names."""

BOUND = 10.0
"""Seconds below which a run time counts as this much in the bounded slowdown."""


@njit
def cost(score: int, wait: float, run_time: float) -> float:
    """One job's part of a score of which less is better."""
    if score == BOUNDED_SLOWDOWN:
        return max(1.0, (wait + run_time) / max(run_time, BOUND))
    if score == WAIT:
        return wait
    if score == TURNAROUND:
        return wait + run_time
    return (wait + run_time) / run_time


@njit
def note_baseline(jobs: np.ndarray, episode: np.ndarray, base: np.ndarray, by_end: np.ndarray) -> None:
    """Keep what the baseline has done in an episode that it has just played: base (scored,) its starts."""
    first, count = episode[0].first, len(base)
    total, work, latest, last = 0.0, 0.0, 0.0, 0.0
    ends = np.empty(count)
    for i in range(count):
        job = first + i
        base[i] = jobs[job].start
        ends[i] = -(jobs[job].start + jobs[job].run_time)
        last = max(last, jobs[job].start)
        latest = max(latest, -ends[i])
        work += jobs[job].run_time * jobs[job].gpus
        if episode[0].score != UTILIZATION:
            submit = max(jobs[job].submit, episode[0].begin)
            total += cost(episode[0].score, base[i] - submit, jobs[job].run_time)
    order = np.argsort(ends, kind="mergesort")
    for i in range(count):
        by_end[i] = order[i]
    episode[0].work = work
    episode[0].baseline_last = last
    episode[0].baseline = total / count
    if episode[0].score == UTILIZATION:
        episode[0].baseline = _utilization(episode, latest)


@njit
def reckon(jobs: np.ndarray, episode: np.ndarray, base: np.ndarray, by_end: np.ndarray, job: int, start: float) -> None:
    """Count the start of a job, and bring the gain F up to date: as if the rest would start as in the baseline.

    F = (b - a) / max(b, a, 1), where a is b plus what the jobs started so far cost more than in the baseline; for
    utilization F = a - b.
    """
    i = job - episode[0].first
    if i < 0:
        return
    episode[0].left -= 1
    if episode[0].score == UTILIZATION:
        episode[0].latest = max(episode[0].latest, start + jobs[job].run_time)
        by_end[len(base) + i] = 1
        while episode[0].ended < len(base) and by_end[len(base) + by_end[episode[0].ended]] == 1:
            episode[0].ended += 1
        latest = episode[0].latest
        if episode[0].ended < len(base):
            rest = by_end[episode[0].ended]
            latest = max(latest, base[rest] + jobs[episode[0].first + rest].run_time)
        episode[0].agent = _utilization(episode, latest)
        episode[0].gain = episode[0].agent - episode[0].baseline
        return
    submit, run_time = max(jobs[job].submit, episode[0].begin), jobs[job].run_time
    mine = cost(episode[0].score, start - submit, run_time)
    episode[0].total += mine
    episode[0].saved += cost(episode[0].score, base[i] - submit, run_time) - mine
    saved, b = episode[0].saved / len(base), episode[0].baseline
    episode[0].agent = episode[0].total / len(base)
    episode[0].gain = saved / max(b, b - saved, 1.0)


@njit
def _utilization(episode: np.ndarray, latest: float) -> float:
    """The scored jobs' GPU-seconds over those that there are until the latest of them ends."""
    return episode[0].work / (episode[0].gpus * (latest - episode[0].begin))


@njit
def close_account(sim: np.ndarray, jobs: np.ndarray, episode: np.ndarray, base: np.ndarray) -> None:
    """Add up the agent's score at the end, in the order in which the baseline's was.

    In an episode that is cut short both are cut at the same moment: a scored job that one of them has not started by
    now counts for it as if it started now, or at its submit time if that is later.
    """
    first, count, score = episode[0].first, len(base), episode[0].score
    mine, its, my_latest, its_latest = 0.0, 0.0, 0.0, 0.0
    for i in range(count):
        submit, run_time, start, other = (
            max(jobs[first + i].submit, episode[0].begin),
            jobs[first + i].run_time,
            jobs[first + i].start,
            base[i],
        )
        if episode[0].truncated:
            cut = max(sim[0].now, submit)
            start = start if start >= 0.0 else cut
            other = min(other, cut)
        my_latest, its_latest = max(my_latest, start + run_time), max(its_latest, other + run_time)
        if score != UTILIZATION:
            mine += cost(score, start - submit, run_time)
            its += cost(score, other - submit, run_time)
    if score == UTILIZATION:
        episode[0].agent, episode[0].baseline = _utilization(episode, my_latest), _utilization(episode, its_latest)
        episode[0].gain = episode[0].agent - episode[0].baseline
        return
    a, b = mine / count, its / count
    episode[0].agent, episode[0].baseline = a, b
    episode[0].gain = (b - a) / max(b, a, 1.0)
