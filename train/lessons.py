"""What a teacher's keys are learned from: the jobs of a split, each as it was known while it waited."""

import dataclasses
from typing import NamedTuple

import numpy as np

from berth.errors import ConfigError
from berth.streams import stream
from envs.observation import JOB_NAMES as NAMES
from envs.options import Options
from envs.sim.history import TOLD_OF
from envs.sim.nearby import NEARBY_OF, nearby_at
from envs.sim.observing import GREATEST
from envs.sim.priorities import formula, has_ratios
from envs.sim.scale import LONGEST, MANY_GPUS
from envs.stage import Stage

MOMENTS = 3
"""Of how many moments there are lessons of a job that has to wait: its arrival, and others while it waits."""


class Lessons(NamedTuple):
    """Jobs to learn keys from, all numbers in [0, 1]."""

    rows: np.ndarray  # (lessons, features)
    keys: np.ndarray  # (lessons,) the teacher's
    prior: np.ndarray  # (lessons,) those of the policy that is corrected; (0,) where there is none
    job: np.ndarray  # (lessons,) of whom each is, a number of the trace
    moment: np.ndarray  # (lessons,) s, when that was known


def lessons(stage: Stage, low: int, high: int, options: Options, teacher: str) -> Lessons:
    """What is known of jobs low..high - 1 of a trace, with the keys of a teacher and those of the prior policy.

    First all jobs as of their arrivals, then those that waited as of moments at random until they started, or until the
    last of these jobs arrived: what came later is not known. Features that tell of the cluster at a moment, not of the
    job, are 0. Raises ConfigError for a teacher, or a prior policy, whose keys have no logarithms that mean anything.
    """
    job, moment = _moments(stage.roster, low, high)
    roster = stage.roster[job]
    rows = np.zeros((len(job), len(NAMES)), np.float32)
    rows[:, NAMES.index("gpus")] = np.minimum(np.log1p(roster["gpus"]) / np.log1p(MANY_GPUS), 1.0)
    rows[:, NAMES.index("share")] = roster["gpus"] / _pool_gpus(stage, roster)
    rows[:, NAMES.index("run_time")] = np.minimum(np.log1p(np.nan_to_num(roster["estimate"])) / np.log1p(LONGEST), 1.0)
    rows[:, NAMES.index("pool")] = (roster["pool"] + 0.5) / len(stage.workload.nodes.pool_gpus)
    first = NAMES.index("by_user")
    rows[:, first : first + TOLD_OF] = stage.history[job]
    rows[:, first + TOLD_OF : first + TOLD_OF + NEARBY_OF] = nearby_at(
        stage.roster, stage.groups, stage.line, stage.line_at, stage.history, job, moment
    )
    keys = _keys(stage, roster, dataclasses.replace(options, prior=teacher))
    prior = _keys(stage, roster, options) if options.prior else np.zeros(0, np.float32)
    return Lessons(rows, keys, prior, job, moment)


def _moments(roster: np.ndarray, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """Of which jobs there are lessons, and as of when (lessons,)."""
    every, last = np.arange(low, high), roster["submit"][high - 1]
    submit, until = roster["submit"][low:high], np.minimum(roster["start"][low:high], last)
    waited = np.tile(every[until > submit], MOMENTS - 1)
    share = stream(0, "moments of lessons").random(len(waited))
    moment = submit[waited - low] + share * (until - submit)[waited - low]
    return np.concatenate((every, waited)), np.concatenate((submit, moment))


def _pool_gpus(stage: Stage, roster: np.ndarray) -> np.ndarray:
    """The GPUs of each job's pool."""
    gpus: np.ndarray = stage.workload.nodes.pool_gpus[roster["pool"]].astype(float)
    return gpus


def _keys(stage: Stage, roster: np.ndarray, options: Options) -> np.ndarray:
    """The logarithms of the keys of a prior policy (jobs,), in [0, 1]."""
    policy = options.prior_policy
    if not has_ratios(policy.code):
        raise ConfigError(
            f"{options.prior}: its keys cannot be learned, or corrected, by way of their logarithms; want --clone_loss "
            "action, or another policy"
        )
    known = roster["run_time"] if options.prior_knows else roster["estimate"]
    keys = [
        formula(policy.code, float(s), float(r), float(n), 0.0, float(p))[0]
        for s, r, n, p in zip(roster["submit"], known, roster["gpus"], _pool_gpus(stage, roster), strict=True)
    ]
    return np.clip(np.log(np.maximum(keys, 1.0)) / GREATEST, 0.0, 1.0).astype(np.float32)
