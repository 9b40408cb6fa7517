"""How long jobs may run, as far as jobs before them tell: a distribution for each, drawn from."""

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from envs.desk import HOUR
from envs.recalling import Kin, recall
from envs.sim.history import LIKENESS, WIDEST
from envs.sim.scale import LONGEST
from envs.snapshot import Snapshot
from orchestrator.surviving import quantiles

LEVELS = len(LIKENESS) + 1
"""How alike the ended jobs are that tell of a job: any, of its size, of its account, of its user."""

SPREADS = (0.25, 0.75, 1.5)
"""Standard deviations of logarithms that part calm groups of jobs from restless ones."""

FEWEST = 40
"""How many surprises a class must have seen; one with fewer takes those of all jobs."""

KEPT = 200
"""How many quantiles of surprises are kept of a class."""

CLASSES = LEVELS * (len(SPREADS) + 1)
"""How many classes of jobs there are."""

AS_TOLD = (0.0, 1.0)
"""The line of whoever takes others at their word: what is expected where 0 is told, and the slope."""

_TYPICAL, _SPREAD, _LIKENESS = 0, 7, 9
_WHOLE = np.log1p(LONGEST)
_MIDDLES = (np.arange(KEPT) + 0.5) / KEPT
_FLAT = 1e-9


class Doubt(NamedTuple):
    """Surprises: the logarithm of a run time less the one that was expected, as quantiles for each class of jobs.

    What is expected is a line of what was told: jobs before it tell of a job with an error of their own, so that the
    more they tell, up or down, the less of it comes. Taking them at their word would count that error twice.
    """

    queued: np.ndarray  # (classes, KEPT), against the line of the mean logarithm of the ended jobs most alike
    running: np.ndarray  # (1, KEPT), against the line of the logarithm of the predicted run time
    jobs: int  # how many ended jobs it was learned from
    longest: float = LONGEST  # s, the longest run time that was seen
    queued_line: np.ndarray = np.tile(AS_TOLD, (CLASSES, 1))  # (classes, 2) what is expected where 0 is told; slope
    running_line: np.ndarray = np.tile(AS_TOLD, (1, 1))  # (1, 2)


def classes(history: np.ndarray) -> np.ndarray:
    """The class of each job (jobs,): how alike those were that told of it, and how restless."""
    likeness = np.rint(history[:, _LIKENESS] * len(LIKENESS)).astype(np.int64)
    spread = np.searchsorted(SPREADS, history[:, _SPREAD] * WIDEST)
    return np.clip(likeness, 0, LEVELS - 1) * (len(SPREADS) + 1) + spread


def learn(kin: Kin, submit: np.ndarray, end: np.ndarray, run_time: np.ndarray) -> Doubt:
    """Learn surprises from jobs that have started: what those before each had told of it, and how long it then ran.

    An infinite end says that a job still runs, for `run_time` seconds so far: without them, what is known of late would
    be short jobs alone. Jobs count by their GPUs, since that is what others wait for.
    """
    over = np.isfinite(end)
    told = recall(Kin(*(column[over] for column in kin)), end[over], run_time[over], kin, submit)
    known = _Known(np.log1p(run_time), ~over, kin.gpus.astype(float))
    kinds, typical = classes(told.history), told.history[:, _TYPICAL].astype(float) * _WHOLE
    every = known.learned(typical)
    found = [every] * CLASSES
    for kind in range(CLASSES):
        here = kinds == kind
        if np.count_nonzero(here & over) >= FEWEST:
            found[kind] = known.of(here).learned(typical[here])
    running = known.learned(np.log1p(told.run_time))
    return Doubt(
        np.stack([one[1] for one in found]), running[1][None], int(over.sum()), float(run_time.max(initial=1.0)),
        np.stack([one[0] for one in found]), running[0][None],
    )  # fmt: skip


class _Known(NamedTuple):
    """What is known of run times."""

    logs: np.ndarray  # (jobs,) ln(1 + s)
    runs: np.ndarray  # (jobs,) whether it still runs
    gpus: np.ndarray  # (jobs,)

    def of(self, rows: np.ndarray) -> "_Known":
        """What is known of some."""
        return _Known(self.logs[rows], self.runs[rows], self.gpus[rows])

    def learned(self, told: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The line (2,) of what was told, fitted by least squares to those that ended; surprises against it (KEPT,)."""
        if self.runs.all():
            return np.array(AS_TOLD), np.zeros(KEPT)
        line = fitted_line(told[~self.runs], self.logs[~self.runs], self.gpus[~self.runs])
        return line, quantiles(self.logs - line[0] - line[1] * told, self.runs, self.gpus, _MIDDLES)


def fitted_line(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The line (2,), y at 0 and slope, with the least weighted squares of those with slopes from 0 to 1.

    The slope is 1 where all x are so near each other that they tell of none.
    """
    middle, height = np.average(x, weights=weights), np.average(y, weights=weights)
    spread = np.average((x - middle) ** 2, weights=weights)
    slope = np.average((x - middle) * (y - height), weights=weights) / spread if spread > _FLAT else 1.0
    slope = min(1.0, max(0.0, slope))
    return np.array((height - slope * middle, slope))


def unlearned(deviation: float = 1.2) -> Doubt:
    """A doubt for clusters of which nothing is known: normal, of this standard deviation."""
    every = deviation * norm.ppf(_MIDDLES)
    return Doubt(np.tile(every, (CLASSES, 1)), every[None], 0)


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
    start, slope = doubt.queued_line[kinds].T
    picked = np.floor(_shares(expected, view.gpus, rng, draws, temper.shared) * KEPT).astype(np.int64)
    drawn = np.expm1(np.clip(start + slope * expected + temper.wide * doubt.queued[kinds, picked], 0.0, _WHOLE))
    return np.clip(drawn, 1.0, doubt.longest)


def draw_running(view: Snapshot, doubt: Doubt, rng: np.random.Generator, draws: int, temper: Temper) -> np.ndarray:
    """How long the running jobs still run (draws, running) in seconds, given that they have not ended yet."""
    told = view.running_end - view.running_start if view.running_guess is None else view.running_guess
    return draw_left(told, view.now - view.running_start, view.running_gpus, doubt, rng, draws, temper)


def draw_left(
    told: np.ndarray,
    passed: np.ndarray,
    gpus: np.ndarray,
    doubt: Doubt,
    rng: np.random.Generator,
    draws: int,
    temper: Temper,
) -> np.ndarray:
    """How long jobs of which run times were told still run (draws, jobs), that have run for `passed` seconds so far."""
    start, slope = doubt.running_line[0]
    expected = start + slope * np.log1p(np.where(np.isnan(told), HOUR, told))
    surprises = np.sort(temper.wide * doubt.running[0])
    first = np.searchsorted(surprises, np.log1p(passed) - expected)  # those below are excluded by now
    share = _shares(expected, gpus, rng, draws, temper.shared)
    at = first + np.floor(share * (KEPT - first)).astype(np.int64)
    drawn = np.expm1(np.clip(expected + surprises[np.minimum(at, KEPT - 1)], 0.0, _WHOLE)) - passed
    outrun = first >= KEPT  # longer than ever seen: as long again, more or less
    again = np.maximum(passed, 1.0) * np.exp(rng.standard_normal((draws, len(expected))))
    return np.maximum(1.0, np.minimum(np.where(outrun, again, drawn), np.maximum(doubt.longest - passed, again)))


def unended(told: np.ndarray, passed: np.ndarray, gpus: np.ndarray, doubt: Doubt, seed: int) -> np.ndarray:
    """Run times (jobs,) as they may turn out to be of jobs that have not ended, each with a surprise of its own."""
    return passed + draw_left(told, passed, gpus, doubt, np.random.default_rng(seed), 1, Temper(shared=0.0))[0]


def _shares(expected: np.ndarray, gpus: np.ndarray, rng: np.random.Generator, draws: int, shared: float) -> np.ndarray:
    """Numbers from 0 to 1 (draws, jobs), at times the same for jobs of which the same ended jobs tell."""
    alike = np.unique(np.stack((expected, gpus.astype(float))), axis=1, return_inverse=True)[1].reshape(-1)
    own = rng.random((draws, len(expected)))
    theirs = rng.random((draws, int(alike.max(initial=-1)) + 1))
    return np.where(rng.random(own.shape) < shared, theirs[:, alike], own)
