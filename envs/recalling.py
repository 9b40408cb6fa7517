"""What ended jobs tell of others, from a list of them: the columns that the simulator fills in as it runs."""

from typing import NamedTuple

import numpy as np

from berth.compiled import records
from envs.knowledge import similar_jobs
from envs.observation import JOB_NAMES
from envs.sim.history import TOLD_OF
from envs.sim.members import ROSTER
from envs.sim.nearby import line_up_groups, nearby_at, nobody_near
from envs.sim.scale import LONGEST
from envs.sim.setting import histories_on_arrival, predict_on_arrival
from envs.stage import by_end
from traces.trace import Trace

PREDICTED = JOB_NAMES.index("predicted") - JOB_NAMES.index("by_user")
"""The column of a history that tells the predicted run time."""


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
    if not len(submit):
        return Recalled(np.zeros((0, TOLD_OF), np.float32), np.zeros(0))
    known = len(end)
    similar = similar_jobs(_trace(ended, asking))
    roster = records(known + len(submit), ROSTER)
    roster["submit"][known:], roster["end"] = submit, np.inf
    roster["end"][:known], roster["run_time"][:known] = end, run_time
    groups = by_end(similar, roster)
    asked = roster[known:], similar[known:]
    return Recalled(histories_on_arrival(*asked, *groups), predict_on_arrival(*asked, *groups))


def tell_nearby(
    jobs: Kin,
    number: np.ndarray,
    submit: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    history: np.ndarray,
    now: float,
) -> np.ndarray:
    """What jobs submitted next to each of the last ones have told by now: (asking, NEARBY_OF) float32.

    All columns (jobs,) have those that have ended, then those that run (`end` inf), then those that wait (`start` inf
    as well), which ask; `number` orders jobs of the same second; history (asking, TOLD_OF) is what was told of those
    that ask when they arrived.
    """
    if not len(history):
        return nobody_near(history)
    order = np.lexsort((number, submit))
    roster = records(len(order), ROSTER)
    roster["submit"], roster["start"], roster["end"] = submit[order], start[order], end[order]
    over = np.isfinite(roster["end"])
    roster["run_time"][over] = roster["end"][over] - roster["start"][over]
    groups = similar_jobs(_trace(jobs, Kin(*(column[:0] for column in jobs))))[order]
    told = np.zeros((len(order), history.shape[1]), np.float32)
    told[len(order) - len(history) :] = history
    asked = np.flatnonzero(order >= len(order) - len(history))
    found = nearby_at(roster, groups, *line_up_groups(groups), told[order], asked, np.full(len(asked), now))
    back = np.empty_like(found)
    back[order[asked] - (len(order) - len(history))] = found
    return back


def predicted(history: np.ndarray) -> np.ndarray:
    """The run times that histories (jobs, TOLD_OF) predict, in seconds (jobs,)."""
    return np.expm1(history[:, PREDICTED].astype(float) * np.log1p(LONGEST))


def _trace(first: Kin, then: Kin) -> Trace:
    """Both as one trace, in this order."""
    user, vc, gpus = (np.concatenate(pair) for pair in zip(first, then, strict=True))
    zeros = np.zeros(len(gpus))
    names = np.arange(len(gpus)).astype(object)
    return Trace("jobs", "jobs", names, zeros, zeros + 1.0, gpus.astype(np.int32), user=user, vc=vc)
