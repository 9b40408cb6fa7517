"""EASY backfilling, compiled: jobs may slip past the first one if that does not delay it."""

import numpy as np

from berth.compiled import njit
from envs.sim.moves import begin, known_unfit, line_up, try_place, would_fit
from envs.sim.rankset import next_at_most, next_from


@njit
def expected_end(sim: np.ndarray, jobs: np.ndarray, job: int) -> float:
    """When a running job should end: its start plus its estimate, or in a second if that has passed."""
    end = jobs[job].start + jobs[job].estimate
    return end if end > sim[0].now else sim[0].now + 1.0


@njit
def shadow_time(
    sim: np.ndarray,
    jobs: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    ends: np.ndarray,
    places: np.ndarray,
    trial: np.ndarray,
    tally: np.ndarray,
    first: int,
) -> float:
    """The earliest time at which `first` should fit; leaves in `trial` what should be free then.

    The running jobs of its pool are taken away in the order of their expected ends until a placement is found.
    """
    pool = jobs[first].pool
    low, high = pools[pool].low, pools[pool].high
    trial[low:high] = free[low:high]
    total = np.sum(trial[low:high])
    running = np.empty(sim[0].running, np.int32)
    times = np.empty(sim[0].running)
    found = 0
    for i in range(sim[0].running):
        if jobs[ends[i].job].pool == pool:
            running[found] = ends[i].job
            times[found] = expected_end(sim, jobs, ends[i].job)
            found += 1
    shadow = np.inf
    for i in np.argsort(times[:found]):
        if shadow < times[i]:
            break
        job = running[i]
        for at in range(jobs[job].place_at, jobs[job].place_at + jobs[job].place_count):
            trial[places[at].node] += places[at].gpus
        total += jobs[job].gpus
        if (
            shadow == np.inf
            and total >= jobs[first].gpus
            and would_fit(sim, jobs, pools, capacity, trial, tally, first)
        ):
            shadow = times[i]
    return shadow


@njit
def backfill(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    queues: np.ndarray,
    pools: np.ndarray,
    sizes: np.ndarray,
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
    queue: int,
    first: int,
) -> None:
    """Start, in priority order, every job behind `first` that fits now and does not delay it.

    A job does not delay it if it should end by the shadow time, if it runs in another pool, or if `first` would still
    fit at the shadow time beside it. What slips past changes neither the shadow time nor, but for those that stay,
    what is free then: both hold until a job ends or another one is first, and are kept in the queue and in `trial`.
    Whether a job fits, and whether it fits beside, is the same for all of one size.
    """
    stale = queues[queue].shadow_of != first or queues[queue].shadow < sim[0].now + 1.0
    if stale or not pools[jobs[first].pool].never_gains:
        queues[queue].shadow = shadow_time(sim, jobs, pools, capacity, free, ends, places, trial, tally, first)
        queues[queue].shadow_of = first
    for size in range(queues[queue].size_low, queues[queue].size_high):
        sizes[size].unfit_at = -1
        sizes[size].first = -1
    if sim[0].ranked:
        _slip_by_rank(
            sim, jobs, links, queues, pools, sizes, capacity, free, nodes, ends, places, bits, by_rank, least,
            lengths, trial, mix, tally, queue, first, queues[queue].shadow - sim[0].now,
        )  # fmt: skip
        return
    _slip_in_line(
        sim, jobs, links, queues, pools, sizes, capacity, free, nodes, ends, places, bits, least, lengths, trial,
        mix, tally, line_up(sim, jobs, links, queues, pools, bits, by_rank, queue), first,
        queues[queue].shadow - sim[0].now,
    )  # fmt: skip


@njit
def _slip_in_line(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    queues: np.ndarray,
    pools: np.ndarray,
    sizes: np.ndarray,
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
    first: int,
    spare: float,
) -> None:
    """Start what slips past out of a line of waiting jobs, in its order."""
    for job in line:
        size = jobs[job].size_class
        delays = _in_the_way(jobs, first, job, spare)
        if job == first or known_unfit(sim, jobs, pools, sizes, job):
            continue
        if delays and sizes[size].first == sim[0].started:
            continue
        if not try_place(sim, jobs, pools, capacity, free, places, mix, tally, job):
            sizes[size].unfit_at = sim[0].started
        elif delays and not _fits_beside(sim, jobs, pools, capacity, places, trial, tally, first, job, True):
            sizes[size].first = sim[0].started
        else:
            begin(sim, jobs, links, queues, capacity, free, nodes, ends, places, bits, least, lengths, job)


@njit
def _slip_by_rank(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    queues: np.ndarray,
    pools: np.ndarray,
    sizes: np.ndarray,
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
    queue: int,
    first: int,
    spare: float,
) -> None:
    """Start what slips past where ranks are by size: always the next by priority that may."""
    passed = -1
    while True:
        job = _next_to_slip(
            sim, jobs, links, queues, pools, sizes, capacity, free, places, bits, by_rank, least, lengths, trial,
            mix, tally, queue, first, spare, passed,
        )  # fmt: skip
        if job < 0:
            return
        if try_place(sim, jobs, pools, capacity, free, places, mix, tally, job) and (
            not _in_the_way(jobs, first, job, spare)
            or _fits_beside(sim, jobs, pools, capacity, places, trial, tally, first, job, True)
        ):
            begin(sim, jobs, links, queues, capacity, free, nodes, ends, places, bits, least, lengths, job)
        passed = links[job].priority


@njit
def _in_the_way(jobs: np.ndarray, first: int, job: int, spare: float) -> bool:
    """Tell whether a job would still hold GPUs of the pool of `first` at the shadow time."""
    return jobs[job].pool == jobs[first].pool and jobs[job].estimate > spare


@njit
def _next_to_slip(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    queues: np.ndarray,
    pools: np.ndarray,
    sizes: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    places: np.ndarray,
    bits: np.ndarray,
    by_rank: np.ndarray,
    least: np.ndarray,
    lengths: np.ndarray,
    trial: np.ndarray,
    mix: np.ndarray,
    tally: np.ndarray,
    queue: int,
    first: int,
    spare: float,
    passed: int,
) -> int:
    """The first job by priority, behind the priority `passed`, that may slip past as things stand; or -1.

    Ranks are by size: of every size that fits now, the first job, or the first that is short enough, competes.
    """
    best = -1
    for size in range(queues[queue].size_low, queues[queue].size_high):
        low = behind(links, by_rank, sizes[size].low, sizes[size].high, passed)
        rank = next_from(bits, low, sizes[size].high)
        if rank < 0 or (best >= 0 and links[by_rank[rank]].priority > links[best].priority):
            continue
        job = by_rank[rank]
        if known_unfit(sim, jobs, pools, sizes, job):
            continue
        if not would_fit(sim, jobs, pools, capacity, free, tally, job):
            sizes[size].unfit_at = sim[0].started
            continue
        if _in_the_way(jobs, first, job, spare) and not (
            try_place(sim, jobs, pools, capacity, free, places, mix, tally, job)
            and _fits_beside(sim, jobs, pools, capacity, places, trial, tally, first, job, False)
        ):
            rank = next_at_most(bits, least, lengths, rank + 1, sizes[size].high, spare)
        if rank >= 0 and (best < 0 or links[by_rank[rank]].priority < links[best].priority):
            best = by_rank[rank]
    return best


@njit
def behind(links: np.ndarray, by_rank: np.ndarray, low: int, high: int, passed: int) -> int:
    """The first rank of a stretch whose job's priority lies behind `passed`."""
    while low < high:
        middle = (low + high) >> 1
        if links[by_rank[middle]].priority <= passed:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def _fits_beside(
    sim: np.ndarray,
    jobs: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    places: np.ndarray,
    trial: np.ndarray,
    tally: np.ndarray,
    first: int,
    job: int,
    take: bool,
) -> bool:
    """Tell whether `first` still fits at the shadow time if `job` keeps its nodes; take them if so and asked to."""
    at, stop = jobs[job].place_at, jobs[job].place_at + jobs[job].place_count
    for i in range(at, stop):
        trial[places[i].node] -= places[i].gpus
    fits = would_fit(sim, jobs, pools, capacity, trial, tally, first)
    if not (fits and take):
        for i in range(at, stop):
            trial[places[i].node] += places[i].gpus
    return fits
