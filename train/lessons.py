"""What a teacher's keys are learned from: the jobs of a split, each as it was known when it arrived."""

import dataclasses
from typing import NamedTuple

import numpy as np

from berth.errors import ConfigError
from envs.observation import JOB_NAMES as NAMES
from envs.options import Options
from envs.sim.history import TOLD_OF
from envs.sim.observing import GREATEST
from envs.sim.priorities import formula, has_ratios
from envs.sim.scale import LONGEST, MANY_GPUS
from envs.stage import Stage


class Lessons(NamedTuple):
    """Jobs to learn keys from, all numbers in [0, 1]."""

    rows: np.ndarray  # (jobs, features)
    keys: np.ndarray  # (jobs,) the teacher's
    prior: np.ndarray  # (jobs,) those of the policy that is corrected; (0,) where there is none


def lessons(stage: Stage, low: int, high: int, options: Options, teacher: str) -> Lessons:
    """What is known of jobs low..high - 1 of a trace, with the keys of a teacher and those of the prior policy.

    Features that tell of a moment, not of the job, are 0. Raises ConfigError for a teacher, or a prior policy, whose
    keys have no logarithms that mean anything.
    """
    roster = stage.roster[low:high]
    rows = np.zeros((high - low, len(NAMES)), np.float32)
    rows[:, NAMES.index("gpus")] = np.minimum(np.log1p(roster["gpus"]) / np.log1p(MANY_GPUS), 1.0)
    rows[:, NAMES.index("share")] = roster["gpus"] / _pool_gpus(stage, roster)
    rows[:, NAMES.index("run_time")] = np.minimum(np.log1p(np.nan_to_num(roster["estimate"])) / np.log1p(LONGEST), 1.0)
    rows[:, NAMES.index("pool")] = (roster["pool"] + 0.5) / len(stage.workload.nodes.pool_gpus)
    first = NAMES.index("by_user")
    rows[:, first : first + TOLD_OF] = stage.history[low:high]
    keys = _keys(stage, roster, dataclasses.replace(options, prior=teacher))
    prior = _keys(stage, roster, options) if options.prior else np.zeros(0, np.float32)
    return Lessons(rows, keys, prior)


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
