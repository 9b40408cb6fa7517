"""What jobs submitted shortly before or after a waiting one have told by now, compiled: twelve of its features.

Jobs come in groups that are alike: who submits twenty at once mostly submits twenty of a kind. So the jobs of the same
user, VC or size that stand next to one in the order of submission tell more of it than the last ones that ended. Some
have ended since it arrived; others run, and have run for so long already. That changes while a job waits, unlike what
history.py tells.
"""

import numpy as np

from berth.compiled import njit
from envs.sim.scale import PER_LONGEST, ln

NEAR_LEVELS = 3
"""Same user and GPUs, same VC and GPUs, same GPUs: the first levels of groups that are alike."""

NEARBY_OF = 4 * NEAR_LEVELS
"""How many features they tell of a job: of each level a typical run time, a time run so far, and two weights."""

REACH = 16
"""How many jobs on either side are looked at; the d-th has the weight 1/d."""

SEATS = 2 * REACH * NEAR_LEVELS
"""Jobs around one: level by level, by distance, first the earlier one, then the later one."""

FORMER = 0.5
"""The weight of what was known when the job arrived, among those that have ended since."""

PER_WEIGHT = np.float32(1.0 / 8.0)
"""By what the sums of weights, at most 6.77, are multiplied."""


def line_up_groups(groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The jobs of a trace group by group, each in the order of submission: who stands where, and where each stands.

    groups (jobs, levels), -1 for none. Returns line (NEAR_LEVELS, jobs) int32 and at (jobs, NEAR_LEVELS) int32.
    """
    jobs = len(groups)
    line, at = np.empty((NEAR_LEVELS, jobs), np.int32), np.empty((jobs, NEAR_LEVELS), np.int32)
    for level in range(NEAR_LEVELS if groups.shape[1] else 0):
        line[level] = np.argsort(groups[:, level], kind="stable")
        at[line[level], level] = np.arange(jobs, dtype=np.int32)
    return line, at


@njit
def beside(groups: np.ndarray, line: np.ndarray, at: np.ndarray, job: int, seat: int) -> int:
    """The job of the trace that has a seat beside another (line_up_groups), or -1."""
    level, place = seat // (2 * REACH), seat % (2 * REACH)
    away = place // 2 + 1
    i = at[job, level] + (away if place % 2 else -away)
    if groups[job, level] < 0 or i < 0 or i >= line.shape[1]:
        return -1
    other = line[level, i]
    return other if groups[other, level] == groups[job, level] else -1


@njit
def list_nearby(
    roster: np.ndarray,
    groups: np.ndarray,
    line: np.ndarray,
    at: np.ndarray,
    chosen: np.ndarray,
    warm: bool,
    now: float,
    number: np.ndarray,
    near: np.ndarray,
    past: np.ndarray,
) -> None:
    """Note who stands beside each job of an episode: near (jobs, SEATS) the episode's own jobs, or -1.

    past (jobs, 2 · NEAR_LEVELS) sums up those that ended before it: weights, then weights times ln(1 + run time), level
    by level. number (jobs of the trace,) is scratch and stays -1.
    """
    for i in range(len(chosen)):
        number[chosen[i]] = i
    for i in range(len(chosen)):
        past[i] = 0.0
        for seat in range(SEATS):
            other = beside(groups, line, at, chosen[i], seat)
            near[i, seat] = number[other] if other >= 0 else -1
            if other >= 0 and near[i, seat] < 0 and warm and roster[other].end < now:
                weight, level = _weight(seat), seat // (2 * REACH)
                past[i, level] += weight
                past[i, NEAR_LEVELS + level] += weight * ln(1.0 + roster[other].run_time)
    for i in range(len(chosen)):
        number[chosen[i]] = -1


@njit
def write_nearby(
    jobs: np.ndarray, near: np.ndarray, past: np.ndarray, history: np.ndarray, job: int, now: float, row: np.ndarray
) -> None:
    """Write the features (NEARBY_OF,) of a waiting job of an episode as of now; `history` is what its arrival told."""
    for level in range(NEAR_LEVELS):
        sums = past[job, level], past[job, NEAR_LEVELS + level], 0.0, 0.0
        for seat in range(2 * REACH * level, 2 * REACH * (level + 1)):
            other = near[job, seat]
            if other >= 0 and 0.0 <= jobs[other].start < now:
                end = jobs[other].start + jobs[other].run_time
                sums = _counted(sums, jobs[other].start, end, jobs[other].run_time, now, _weight(seat))
        _write_level(sums, history[job, level], level, row)


@njit
def nearby_at(
    roster: np.ndarray,
    groups: np.ndarray,
    line: np.ndarray,
    at: np.ndarray,
    history: np.ndarray,
    asked: np.ndarray,
    moments: np.ndarray,
) -> np.ndarray:
    """What had been told of the jobs `asked` (asked,) at `moments`, given when all others started and ended.

    history (jobs, TOLD_OF) is what was told when they arrived. Returns (asked, NEARBY_OF).
    """
    found = np.empty((len(asked), NEARBY_OF), np.float32)
    for k in range(len(asked)):
        for level in range(NEAR_LEVELS):
            sums = 0.0, 0.0, 0.0, 0.0
            for seat in range(2 * REACH * level, 2 * REACH * (level + 1)):
                other = beside(groups, line, at, asked[k], seat)
                if other >= 0 and roster[other].start < moments[k]:
                    old = roster[other]
                    sums = _counted(sums, old.start, old.end, old.run_time, moments[k], _weight(seat))
            _write_level(sums, history[asked[k], level], level, found[k])
    return found


@njit
def _weight(seat: int) -> float:
    """What the job on a seat counts."""
    return 1.0 / (seat % (2 * REACH) // 2 + 1)


@njit
def _counted(
    sums: tuple[float, float, float, float], start: float, end: float, run_time: float, now: float, weight: float
) -> tuple[float, float, float, float]:
    """The sums with a job that has started: weights of the ended and of their logarithms, then of those that run."""
    ended, logs, going, run = sums
    if end <= now:
        return ended + weight, logs + weight * ln(1.0 + run_time), going, run
    return ended, logs, going + weight, run + weight * ln(1.0 + now - start)


@njit
def _write_level(sums: tuple[float, float, float, float], former: float, level: int, row: np.ndarray) -> None:
    """Write the features of a level: typical run time, time run so far, and both sums of weights."""
    ended, logs, going, run = sums
    row[level] = min((logs * PER_LONGEST + FORMER * former) / (ended + FORMER), 1.0)
    row[NEAR_LEVELS + level] = min(run / going * PER_LONGEST, 1.0) if going > 0.0 else 0.0
    row[2 * NEAR_LEVELS + level] = ended * PER_WEIGHT
    row[3 * NEAR_LEVELS + level] = going * PER_WEIGHT


def nobody_near(history: np.ndarray) -> np.ndarray:
    """The features (jobs, NEARBY_OF) of jobs beside which nobody is known, by what their arrivals told."""
    found = np.zeros((len(history), NEARBY_OF), np.float32)
    found[:, :NEAR_LEVELS] = history[:, :NEAR_LEVELS]
    return found
