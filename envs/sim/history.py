"""What ended jobs tell of a job when it arrives, compiled: thirteen of its features."""

import numpy as np

from berth.compiled import njit
from envs.sim.scale import PER_LONGEST, ln, scaled
from envs.sim.state import HISTORY, MEMORY

TOLD_OF = 13
"""How many features ended jobs tell of a job."""

LIKENESS = (1.0, 2.0 / 3.0, 1.0 / 3.0)
"""How like a job those of its user, of its VC and of its size are."""

PER_HISTORY = np.float32(1.0 / HISTORY)

WIDEST = 8.0
"""The standard deviation of logarithms at which the feature `spread` is 1."""


@njit
def write_history(similar: np.ndarray, recent: np.ndarray, told: np.ndarray, job: int, row: np.ndarray) -> None:
    """Write the features (TOLD_OF,) that ended jobs tell of a job: those of its user, VC and size, then the most alike.

    similar (jobs, levels) has its groups, recent (groups, MEMORY) what is remembered of them, told (groups, TOLD)
    the sums of that, whose first number is -1 where they must be made anew.
    """
    best, likeness = similar[job, 2], LIKENESS[2]
    if told[best, 0] < 0.0:
        _sum_up(recent, told, best)
    if told[best, 0] == 0.0:  # no job of its size has ended: any job stands for them
        best, likeness = similar[job, 3], 0.0
        if told[best, 0] < 0.0:
            _sum_up(recent, told, best)
    typical, last, ever = told[best, 1], told[best, 4], told[best, 5]
    row[2] = typical
    row[5] = last
    row[12] = ever
    for level in (1, 0):  # same VC, same user
        group = similar[job, level]
        if group >= 0:
            if told[group, 0] < 0.0:
                _sum_up(recent, told, group)
            if told[group, 0] > 0.0:
                best, likeness = group, LIKENESS[level]
                typical, last, ever = told[group, 1], told[group, 4], told[group, 5]
        row[level] = typical
        row[3 + level] = last
        row[10 + level] = ever
    row[6] = told[best, 2]
    row[7] = told[best, 3]
    row[8] = told[best, 0] * PER_HISTORY
    row[9] = likeness


@njit
def _sum_up(recent: np.ndarray, told: np.ndarray, group: int) -> None:
    """Sum up a group's ended jobs.

    Of the last: how many, mean of logarithms, mean, spread of logarithms, the very last; of all: mean of logarithms.
    """
    known = min(int(recent[group, 0]), HISTORY)
    told[group, 0] = known
    if known == 0:
        told[group, 1] = told[group, 2] = told[group, 4] = told[group, 5] = scaled(3600.0)
        told[group, 3] = 0.0
        return
    total, logs = 0.0, 0.0
    for i in range(known):
        total += recent[group, 1 + i]
        logs += ln(1.0 + recent[group, 1 + i])
    mean, squares = logs / known, 0.0
    for i in range(known):
        away = ln(1.0 + recent[group, 1 + i]) - mean
        squares += away * away
    told[group, 1] = min(mean * PER_LONGEST, 1.0)
    told[group, 2] = scaled(total / known)
    told[group, 3] = min(np.sqrt(squares / known) / WIDEST, 1.0)
    told[group, 4] = scaled(recent[group, 1 + (int(recent[group, 0]) - 1) % HISTORY])
    told[group, 5] = min(recent[group, MEMORY - 1] / recent[group, 0] * PER_LONGEST, 1.0)
