"""What an agent is paid for: the scores, the gain over the baseline, and when it is given."""

from typing import NamedTuple

import numpy as np

from berth.commandline import nearest
from berth.errors import ConfigError
from envs.sim import reckoning


class Score(NamedTuple):
    """One score of the scored jobs of an episode."""

    code: int  # envs/sim/reckoning.py, and seed 004's number
    unit: str
    text: str


SCORES = {
    "bounded_slowdown": Score(reckoning.BOUNDED_SLOWDOWN, "", "mean of max(1, (w + r) / max(r, 10 s))"),
    "wait": Score(reckoning.WAIT, "s", "mean of w"),
    "turnaround": Score(reckoning.TURNAROUND, "s", "mean of w + r"),
    "utilization": Score(
        reckoning.UTILIZATION, "", "Σ r·n / (GPUs of the cluster · time from the first submit to the last end)"
    ),
    "slowdown": Score(reckoning.SLOWDOWN, "", "mean of (w + r) / r"),
}
"""Every score by name; w is a scored job's wait, r its run time, n its GPUs."""

REWARDS = {
    "dense": "the change of F at every decision, where jobs not yet started count as in the baseline",
    "terminal": "F at the end of the episode, 0 before",
}
"""When the reward is given."""


def find_score(word: str | int) -> str:
    """A score's name, from its name or seed 004's number; raises ConfigError that names the nearest known one."""
    for name, score in SCORES.items():
        if str(word) in (name, str(score.code)):
            return name
    numbers = ", ".join(f"{score.code} {name}" for name, score in SCORES.items())
    raise ConfigError(f"score_type {word}: {nearest(str(word), SCORES)}; by number: {numbers}")


def gain(score: str, base: float, agent: float) -> float:
    """F: (base - agent) / max(base, agent, 1), or agent - base for utilization, of which more is better."""
    if score == "utilization":
        return agent - base
    return (base - agent) / max(base, agent, 1.0)


def window_score(
    score: str, submit: np.ndarray, start: np.ndarray, run_time: np.ndarray, gpus: np.ndarray, cluster_gpus: int
) -> float:
    """The score of scored jobs, by columns (jobs,) in seconds: what the compiled reckoning adds up job by job."""
    wait = start - submit
    if score == "utilization":
        span = float((start + run_time).max() - submit.min())
        return float((run_time * gpus).sum()) / (cluster_gpus * span)
    per_job = {
        "bounded_slowdown": np.maximum(1.0, (wait + run_time) / np.maximum(run_time, reckoning.BOUND)),
        "wait": wait,
        "turnaround": wait + run_time,
        "slowdown": (wait + run_time) / run_time,
    }
    return float(per_job[score].mean())
