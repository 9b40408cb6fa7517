"""The jobs of a Snapshot as the roster of a trace would have them, compiled."""

import numpy as np

from berth.compiled import njit
from envs.sim.history import TOLD_OF
from envs.sim.scale import LONGEST

QUEUED_ROWS = ("submit", "gpus", "run_time", "pool", "state")
"""The rows of the table that queued jobs are told in."""

RUNNING_ROWS = ("running_start", "running_gpus", "running_pool", "running_end", "guess", "place_count")
"""The rows of the table that running jobs are told in."""

HIDDEN, TOLD, PREDICTED = range(3)
"""What is known of run times: nothing; what is told; what is told, and else what ended jobs tell."""

UNKNOWN = -1
"""What `fill_roster` returns where a run time is wanted that nobody tells."""

_LN_LONGEST = np.log1p(LONGEST)


@njit
def find_rows(
    queued: np.ndarray, count: int, holding: int, pool_gpus: np.ndarray, sizes: np.ndarray, possible: np.ndarray,
    rows: np.ndarray,
) -> int:  # fmt: skip
    """Write the rows of the queued jobs that wait and could ever start, in the order of arrival; tells how many."""
    shown, sorted_already = 0, True
    for row in range(count):
        pool, gpus = int(queued[3, row]), int(queued[1, row])
        if queued[4, row] <= holding and gpus <= pool_gpus[pool] and possible[sizes[pool] + gpus - 1]:
            if shown > 0 and queued[0, rows[shown - 1]] > queued[0, row]:
                sorted_already = False
            rows[shown] = row
            shown += 1
    if not sorted_already:
        submit = np.empty(shown)
        for i in range(shown):
            submit[i] = queued[0, rows[i]]
        rows[:shown] = rows[:shown][np.argsort(submit, kind="mergesort")]
    return shown


@njit
def fill_roster(
    now: float, known: int, holding: int, predicted: int, queued: np.ndarray, running: np.ndarray, told: np.ndarray,
    placed: bool, rows: np.ndarray, ran: int, pool_gpus: np.ndarray, sizes: np.ndarray, fewest: np.ndarray,
    most: np.ndarray, roster: np.ndarray, history: np.ndarray,
) -> int:  # fmt: skip
    """Write the running jobs, those that wait, and one that comes later, as no episode is without.

    rows (waiting,) of the queue; told (queued, TOLD_OF) what ended jobs told, of which `predicted` is the column of run
    times; fewest, most (sizes,) nodes. Tells how many places there are at most, or UNKNOWN.
    """
    place_at, places = 0, 0
    for i in range(ran):
        job = roster[i]
        job.submit = job.start = running[0, i]
        job.estimate = np.nan if known == HIDDEN else running[3, i] - running[0, i]
        job.held = -1.0
        _size(job, int(running[2, i]), int(running[1, i]), pool_gpus, sizes, fewest, most)
        job.place_at = job.place_count = 0
        if placed:
            job.place_at, job.place_count = place_at, int(running[5, i])
            job.most = job.place_count
            place_at += job.place_count
        places += job.most
        history[i] = 0.0
    for i in range(len(rows)):
        job, row = roster[ran + i], rows[i]
        job.submit, job.start = queued[0, row], np.inf
        job.estimate = np.nan if known == HIDDEN else queued[2, row]
        if known == PREDICTED and np.isnan(job.estimate):
            job.estimate = np.expm1(told[row, predicted] * _LN_LONGEST)
        if known != HIDDEN and np.isnan(job.estimate):
            return UNKNOWN
        job.held = 0.0 if queued[4, row] == holding else -1.0
        _size(job, int(queued[3, row]), int(queued[1, row]), pool_gpus, sizes, fewest, most)
        job.place_at = job.place_count = 0
        places += job.most
        for k in range(TOLD_OF):
            history[ran + i, k] = told[row, k]
    last = ran + len(rows)
    roster[last].submit, roster[last].start, roster[last].estimate, roster[last].held = now + 1.0, np.inf, np.nan, -1.0
    _size(roster[last], 0, 1, pool_gpus, sizes, fewest, most)
    roster[last].place_at = roster[last].place_count = 0
    history[last] = 0.0
    return places + roster[last].most


@njit
def _size(
    job: np.record, pool: int, gpus: int, pool_gpus: np.ndarray, sizes: np.ndarray, fewest: np.ndarray,
    most: np.ndarray,
) -> None:  # fmt: skip
    """Write a job's size; one that has more GPUs than its pool counts as if it had them all."""
    size = sizes[pool] + min(gpus, pool_gpus[pool]) - 1
    job.pool, job.gpus, job.size_class = pool, gpus, size
    job.fewest, job.most = fewest[size], most[size]
    job.run_time, job.end = 1.0, np.inf
