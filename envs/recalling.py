"""What ended jobs tell of others, from a list of them: the columns that the simulator fills in as it runs."""

from typing import NamedTuple

import numpy as np

from envs.knowledge import similar_jobs
from envs.sim.cards import TOLD
from envs.sim.history import TOLD_OF, write_history
from envs.sim.state import HISTORY, predict, remember
from traces.trace import Trace

UNKNOWN = -1.0
"""What marks sums of a group that must be made anew (envs/sim/history.py)."""


class Kin(NamedTuple):
    """Jobs by what they are recognised by; "-1" stands for a user or a virtual cluster that is not known."""

    user: np.ndarray  # (jobs,) names
    vc: np.ndarray  # (jobs,) names of virtual clusters, or accounts
    gpus: np.ndarray  # (jobs,) int


class Recalled(NamedTuple):
    """What ended jobs told of each job when it arrived."""

    history: np.ndarray  # (jobs, TOLD_OF) float32
    run_time: np.ndarray  # (jobs,) s, the run time that was predicted


def recall(ended: Kin, end: np.ndarray, run_time: np.ndarray, asking: Kin, submit: np.ndarray) -> Recalled:
    """What jobs that ended at `end` after `run_time` seconds told of those that arrived at `submit`.

    An end in the second of an arrival counts before it, as in the simulator.
    """
    count, known = len(submit), len(end)
    if not count:
        return Recalled(np.zeros((0, TOLD_OF), np.float32), np.zeros(0))
    similar = similar_jobs(_trace(ended, asking))
    groups = int(similar.max(initial=0)) + 1
    recent, told = np.zeros((groups, 1 + HISTORY)), np.full((groups, TOLD), UNKNOWN, np.float32)
    found = Recalled(np.zeros((count, TOLD_OF), np.float32), np.zeros(count))
    by_end = np.lexsort((np.arange(known), end))
    next_end = 0
    for i in np.argsort(submit, kind="stable"):
        while next_end < known and end[by_end[next_end]] <= submit[i]:
            job = by_end[next_end]
            remember(similar, recent, job, run_time[job])
            told[similar[job][similar[job] >= 0], 0] = UNKNOWN
            next_end += 1
        write_history(similar, recent, told, known + i, found.history[i])
        found.run_time[i] = predict(similar, recent, known + i)
    return found


def _trace(first: Kin, then: Kin) -> Trace:
    """Both as one trace, in this order."""
    user, vc, gpus = (np.concatenate(pair) for pair in zip(first, then, strict=True))
    zeros = np.zeros(len(gpus))
    names = np.arange(len(gpus)).astype(object)
    return Trace("jobs", "jobs", names, zeros, zeros + 1.0, gpus.astype(np.int32), user=user, vc=vc)
