"""What a teacher's keys are learned from: the jobs of a split, each as it was known when it arrived."""

import numpy as np

from berth.errors import ConfigError
from envs.observation import JOB_NAMES as NAMES
from envs.options import Options
from envs.sim.history import TOLD_OF
from envs.sim.observing import GREATEST
from envs.sim.priorities import formula, has_ratios
from envs.sim.scale import LONGEST, MANY_GPUS
from envs.stage import Stage


def lessons(stage: Stage, low: int, high: int, options: Options) -> tuple[np.ndarray, np.ndarray]:
    """Features (jobs, features) and the teacher's keys (jobs,), both in [0, 1], of jobs low..high - 1 of a trace.

    The teacher is `options.prior`. Features that tell of a moment, not of the job, are 0. Raises ConfigError for a
    teacher whose keys have no logarithms that mean anything.
    """
    teacher = options.prior_policy
    if not has_ratios(teacher.code):
        raise ConfigError(
            f"clone {options.prior}: its keys cannot be learned, only its actions; want --clone_loss action"
        )
    roster = stage.roster[low:high]
    pool_gpus = stage.workload.nodes.pool_gpus[roster["pool"]].astype(float)
    rows = np.zeros((high - low, len(NAMES)), np.float32)
    told = stage.history[low:high]
    rows[:, NAMES.index("gpus")] = np.minimum(np.log1p(roster["gpus"]) / np.log1p(MANY_GPUS), 1.0)
    rows[:, NAMES.index("share")] = roster["gpus"] / pool_gpus
    rows[:, NAMES.index("run_time")] = np.minimum(np.log1p(np.nan_to_num(roster["estimate"])) / np.log1p(LONGEST), 1.0)
    rows[:, NAMES.index("pool")] = (roster["pool"] + 0.5) / len(stage.workload.nodes.pool_gpus)
    first = NAMES.index("by_user")
    rows[:, first : first + TOLD_OF] = told
    known = roster["run_time"] if options.prior_knows else roster["estimate"]
    keys = [
        formula(teacher.code, float(s), float(r), float(n), 0.0, float(p))[0]
        for s, r, n, p in zip(roster["submit"], known, roster["gpus"], pool_gpus, strict=True)
    ]
    return rows, np.clip(np.log(np.maximum(keys, 1.0)) / GREATEST, 0.0, 1.0).astype(np.float32)
