"""Conservative backfilling, compiled: every queued job has a reservation.

A plan holds, for each queued job in priority order, the earliest start at which it fits without touching the jobs that
run and the reservations before it. A reservation (start and nodes) stays until a job of higher priority arrives or a
job ends at another time than expected; then it is made anew.
"""

import numpy as np

from berth.compiled import njit
from envs.sim.backfill import expected_end
from envs.sim.moves import begin, line_up, try_place, would_fit

_KEEP_ALL = 2147483647


@njit
def follow_plan(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    queues: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    nodes: np.ndarray,
    ends: np.ndarray,
    places: np.ndarray,
    bits: np.ndarray,
    by_rank: np.ndarray,
    least: np.ndarray,
    lengths: np.ndarray,
    trial: np.ndarray,
    mix: np.ndarray,
    tally: np.ndarray,
    pool: int,
) -> None:
    """Bring the plan of a pool up to date and start the jobs whose reserved time is now."""
    line = line_up(sim, jobs, links, queues, pools, bits, by_rank, pool)
    kept = _still_valid(sim, jobs, queues, ends, line, pool)
    while kept == 0 and len(line) > 0 and try_place(sim, jobs, pools, capacity, free, places, mix, tally, line[0]):
        begin(sim, jobs, links, queues, capacity, free, nodes, ends, places, bits, least, lengths, line[0])
        line = line[1:]  # with no reservation before it, what is idle now stays idle
    renew(
        sim, jobs, links, queues, pools, capacity, free, nodes, ends, places, bits, least, lengths, trial, mix, tally,
        line, kept, pool,
    )  # fmt: skip


@njit
def renew(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    queues: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    nodes: np.ndarray,
    ends: np.ndarray,
    places: np.ndarray,
    bits: np.ndarray,
    least: np.ndarray,
    lengths: np.ndarray,
    trial: np.ndarray,
    mix: np.ndarray,
    tally: np.ndarray,
    line: np.ndarray,
    kept: int,
    pool: int,
) -> None:
    """Make the reservations of a line anew but for the first `kept`, and start the jobs whose time is now."""
    if kept < len(line):
        low, high = pools[pool].low, pools[pool].high
        times, totals, rows, idle = _profile(
            sim, jobs, links, free, ends, places, line[:kept], pool, low, high, len(line) - kept
        )
        for job in line[kept:]:
            rows = _reserve(
                sim, jobs, links, pools, capacity, places, trial, mix, tally, times, totals, rows, idle, low, high, job
            )
    for job in line:
        if links[job].planned == sim[0].now:
            begin(sim, jobs, links, queues, capacity, free, nodes, ends, places, bits, least, lengths, job)
    queues[pool].replan = _KEEP_ALL


@njit
def _still_valid(
    sim: np.ndarray, jobs: np.ndarray, queues: np.ndarray, ends: np.ndarray, line: np.ndarray, pool: int
) -> int:
    """How many jobs at the front of the line keep their reservation."""
    if not sim[0].ranked or _someone_is_late(sim, jobs, ends, pool):
        return 0
    kept = 0
    while kept < len(line) and jobs[line[kept]].rank < queues[pool].replan:
        kept += 1
    return kept


@njit
def count_reserved(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    queues: np.ndarray,
    ends: np.ndarray,
    line: np.ndarray,
    pool: int,
) -> int:
    """The same where jobs have no ranks, but those that arrive have no reservation: planned is -1."""
    if queues[pool].replan == 0 or _someone_is_late(sim, jobs, ends, pool):
        return 0
    kept = 0
    while kept < len(line) and links[line[kept]].planned >= 0.0:
        kept += 1
    return kept


@njit
def _someone_is_late(sim: np.ndarray, jobs: np.ndarray, ends: np.ndarray, pool: int) -> bool:
    """Tell whether a running job of the pool should have ended."""
    for i in range(sim[0].running):
        job = ends[i].job
        if jobs[job].pool == pool and jobs[job].start + jobs[job].estimate <= sim[0].now:
            return True
    return False


@njit
def _profile(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    free: np.ndarray,
    ends: np.ndarray,
    places: np.ndarray,
    kept: np.ndarray,
    pool: int,
    low: int,
    high: int,
    coming: int,
) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
    """Idle GPUs of the pool from now on, as rows: times and totals (rows,), how many rows, idle (rows, nodes).

    There is room for as many more rows as reservations are coming.
    """
    most = sim[0].running + 2 * len(kept)
    when, who, sign = np.empty(most), np.empty(most, np.int32), np.empty(most, np.int32)
    changes = 0
    for i in range(sim[0].running):
        job = ends[i].job
        if jobs[job].pool == pool:
            when[changes], who[changes], sign[changes] = expected_end(sim, jobs, job), job, 1
            changes += 1
    for job in kept:
        start = links[job].planned
        when[changes], who[changes], sign[changes] = start, job, -1
        when[changes + 1], who[changes + 1], sign[changes + 1] = start + jobs[job].estimate, job, 1
        changes += 2
    times = np.empty(1 + changes + coming)
    totals = np.empty(1 + changes + coming, np.int64)
    idle = np.empty((1 + changes + coming, high - low), np.int32)
    times[0], rows = sim[0].now, 1
    idle[0] = free[low:high]
    totals[0] = np.sum(free[low:high])
    for c in np.argsort(when[:changes], kind="mergesort"):
        if when[c] != times[rows - 1]:
            times[rows] = when[c]
            totals[rows] = totals[rows - 1]
            idle[rows] = idle[rows - 1]
            rows += 1
        job = who[c]
        totals[rows - 1] += sign[c] * jobs[job].gpus
        for at in range(jobs[job].place_at, jobs[job].place_at + jobs[job].place_count):
            idle[rows - 1, places[at].node - low] += sign[c] * places[at].gpus
    return times, totals, rows, idle


@njit
def _reserve(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    places: np.ndarray,
    trial: np.ndarray,
    mix: np.ndarray,
    tally: np.ndarray,
    times: np.ndarray,
    totals: np.ndarray,
    rows: int,
    idle: np.ndarray,
    low: int,
    high: int,
    job: int,
) -> int:
    """Give a job the earliest start at which it fits for as long as it should run; returns the new number of rows."""
    row = 0
    while True:
        stop = times[row] + jobs[job].estimate
        ruled_out = _place_from(
            sim, jobs, pools, capacity, places, trial, mix, tally, times, totals, rows, idle, low, high, job, row, stop
        )
        if ruled_out < 0:
            break
        if sim[0].handle < 0:  # whoever places has failed, and everything stops
            links[job].planned = np.inf
            return rows
        row = ruled_out + 1
    links[job].planned = times[row]
    last = row
    while last < rows and times[last] < stop:
        last += 1
    if last == rows or times[last] != stop:
        for r in range(rows, last, -1):
            times[r] = times[r - 1]
            totals[r] = totals[r - 1]
            idle[r] = idle[r - 1]
        times[last] = stop
        totals[last] = totals[last - 1]
        idle[last] = idle[last - 1]
        rows += 1
    for r in range(row, last):
        totals[r] -= jobs[job].gpus
        for at in range(jobs[job].place_at, jobs[job].place_at + jobs[job].place_count):
            idle[r, places[at].node - low] -= places[at].gpus
    return rows


@njit
def _place_from(
    sim: np.ndarray,
    jobs: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    places: np.ndarray,
    trial: np.ndarray,
    mix: np.ndarray,
    tally: np.ndarray,
    times: np.ndarray,
    totals: np.ndarray,
    rows: int,
    idle: np.ndarray,
    low: int,
    high: int,
    job: int,
    row: int,
    stop: float,
) -> int:
    """Place a job on what is idle all the time from a row until `stop`; -1 if it fits, else the last row ruled out."""
    never_gains = pools[jobs[job].pool].never_gains
    trial[low:high] = idle[row]
    r = row
    while r < rows and times[r] < stop:
        if totals[r] < jobs[job].gpus:
            return r
        for n in range(high - low):
            trial[low + n] = min(trial[low + n], idle[r, n])
        if never_gains and not would_fit(sim, jobs, pools, capacity, trial, tally, job):
            return _last_ruled_out(sim, jobs, pools, capacity, trial, tally, idle, low, high, job, r)
        r += 1
    return -1 if try_place(sim, jobs, pools, capacity, trial, places, mix, tally, job) else row


@njit
def _last_ruled_out(
    sim: np.ndarray,
    jobs: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    trial: np.ndarray,
    tally: np.ndarray,
    idle: np.ndarray,
    low: int,
    high: int,
    job: int,
    row: int,
) -> int:
    """The last row from which nothing fits that stays until `row`: no start up to it can work, as all reach `row`."""
    trial[low:high] = idle[row]
    while would_fit(sim, jobs, pools, capacity, trial, tally, job):
        row -= 1
        for n in range(high - low):
            trial[low + n] = min(trial[low + n], idle[row, n])
    return row
