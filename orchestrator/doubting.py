"""How long jobs may run, as far as ended jobs tell: a distribution for each, drawn from."""

from typing import NamedTuple

import numpy as np

from envs.desk import HOUR
from envs.recalling import Kin, recall
from envs.sim.history import LIKENESS, WIDEST
from envs.sim.scale import LONGEST
from envs.snapshot import Snapshot

LEVELS = len(LIKENESS) + 1
"""How alike the ended jobs are that tell of a job: any, of its size, of its account, of its user."""

SPREADS = (0.25, 0.75, 1.5)
"""Standard deviations of logarithms that part calm groups of jobs from restless ones."""

FEWEST = 40
"""How many surprises a class must have seen; one with fewer takes those of all jobs."""

KEPT = 200
"""How many quantiles of surprises are kept of a class."""

_TYPICAL, _SPREAD, _LIKENESS = 0, 7, 9
_WHOLE = np.log1p(LONGEST)


class Doubt(NamedTuple):
    """Surprises: the logarithm of a run time less the one that was expected, as quantiles for each class of jobs."""

    queued: np.ndarray  # (classes, KEPT), against the mean logarithm of the ended jobs most alike
    running: np.ndarray  # (1, KEPT), against the predicted run time
    jobs: int  # how many jobs it was learned from
    longest: float = LONGEST  # s, the longest run time that was seen


def classes(history: np.ndarray) -> np.ndarray:
    """The class of each job (jobs,): how alike those were that told of it, and how restless."""
    likeness = np.rint(history[:, _LIKENESS] * len(LIKENESS)).astype(np.int64)
    spread = np.searchsorted(SPREADS, history[:, _SPREAD] * WIDEST)
    return np.clip(likeness, 0, LEVELS - 1) * (len(SPREADS) + 1) + spread


def learn(kin: Kin, submit: np.ndarray, end: np.ndarray, run_time: np.ndarray) -> Doubt:
    """Learn surprises from ended jobs: what those before each had told of it, and how long it then ran."""
    told = recall(kin, end, run_time, kin, submit)
    logs = np.log1p(run_time)
    surprise = logs - told.history[:, _TYPICAL] * _WHOLE
    kinds, every = classes(told.history), _quantiles(surprise)
    queued = np.tile(every, (LEVELS * (len(SPREADS) + 1), 1))
    for kind in range(len(queued)):
        here = surprise[kinds == kind]
        if len(here) >= FEWEST:
            queued[kind] = _quantiles(here)
    return Doubt(
        queued, _quantiles(logs - np.log1p(told.run_time))[None], len(submit), float(run_time.max(initial=1.0))
    )


def unlearned(deviation: float = 1.2) -> Doubt:
    """A doubt for clusters of which nothing is known: normal, of this standard deviation."""
    draws = np.random.default_rng(0).normal(0.0, deviation, 100_000)
    every = _quantiles(draws)
    return Doubt(np.tile(every, (LEVELS * (len(SPREADS) + 1), 1)), every[None], 0)


class Temper(NamedTuple):
    """How surprises are drawn; fitted on moments whose outcome is known (benchmarks/forecasts.py)."""

    wide: float = 1.0  # by what they are stretched
    shared: float = 1.0  # how often a job has the surprise that others like it have in the same draw


def draw_queued(view: Snapshot, doubt: Doubt, rng: np.random.Generator, draws: int, temper: Temper) -> np.ndarray:
    """Run times of the queued jobs (draws, queued) in seconds."""
    if view.history is None:
        expected = np.log1p(np.where(np.isnan(view.run_time), HOUR, view.run_time))
        kinds = np.zeros(len(view.job), np.int64)
    else:
        expected, kinds = view.history[:, _TYPICAL].astype(float) * _WHOLE, classes(view.history)
    picked = np.floor(_shares(expected, view.gpus, rng, draws, temper.shared) * KEPT).astype(np.int64)
    drawn = np.expm1(np.clip(expected + temper.wide * doubt.queued[kinds, picked], 0.0, _WHOLE))
    return np.clip(drawn, 1.0, doubt.longest)


def draw_running(view: Snapshot, doubt: Doubt, rng: np.random.Generator, draws: int, temper: Temper) -> np.ndarray:
    """How long the running jobs still run (draws, running) in seconds, given that they have not ended yet."""
    told = view.running_end - view.running_start if view.running_guess is None else view.running_guess
    expected = np.log1p(np.where(np.isnan(told), HOUR, told))
    passed = view.now - view.running_start
    surprises = np.sort(temper.wide * doubt.running[0])
    first = np.searchsorted(surprises, np.log1p(passed) - expected)  # those below are excluded by now
    share = _shares(expected, view.running_gpus, rng, draws, temper.shared)
    at = first + np.floor(share * (KEPT - first)).astype(np.int64)
    drawn = np.expm1(np.clip(expected + surprises[np.minimum(at, KEPT - 1)], 0.0, _WHOLE)) - passed
    outrun = first >= KEPT  # longer than ever seen: as long again, more or less
    again = np.maximum(passed, 1.0) * np.exp(rng.standard_normal((draws, len(expected))))
    return np.maximum(1.0, np.minimum(np.where(outrun, again, drawn), np.maximum(doubt.longest - passed, again)))


def _shares(expected: np.ndarray, gpus: np.ndarray, rng: np.random.Generator, draws: int, shared: float) -> np.ndarray:
    """Numbers from 0 to 1 (draws, jobs), at times the same for jobs of which the same ended jobs tell."""
    alike = np.unique(np.stack((expected, gpus.astype(float))), axis=1, return_inverse=True)[1].reshape(-1)
    own = rng.random((draws, len(expected)))
    theirs = rng.random((draws, int(alike.max(initial=-1)) + 1))
    return np.where(rng.random(own.shape) < shared, theirs[:, alike], own)


def _quantiles(values: np.ndarray) -> np.ndarray:
    """The middles of KEPT equal parts."""
    return np.quantile(values, (np.arange(KEPT) + 0.5) / KEPT) if len(values) else np.zeros(KEPT)
