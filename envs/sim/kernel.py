"""The clock and the disciplines, compiled.

`replay` runs a simulation. `advance` and `schedule` are its two halves, for callers that decide in between: the first
moves the clock to the next event, the second lets every queue that the event touched start what its discipline allows.
"""

import numpy as np

from berth.compiled import njit
from envs.sim.accasim import reserve_once, start_the_rest, try_held, wait_for_reservation
from envs.sim.backfill import backfill
from envs.sim.conservative import follow_plan
from envs.sim.moves import begin, enqueue, first_by_key, known_unfit, line_up, try_place, vacate
from envs.sim.rankset import next_from
from envs.sim.state import ACCASIM_EASY, CONSERVATIVE, EASY, FIT, account, pop_end, predict, remember


@njit
def replay(
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
    similar: np.ndarray,
    recent: np.ndarray,
    trial: np.ndarray,
    mix: np.ndarray,
    tally: np.ndarray,
    events: int,
) -> bool:
    """Run at most so many events; True while there are more."""
    for _ in range(events):
        if not advance(
            sim, jobs, links, queues, capacity, free, nodes, ends, places, bits, least, lengths, similar, recent, mix
        ):
            for node in range(len(free)):
                account(sim, nodes, capacity, free, node)
            return False
        schedule(
            sim, jobs, links, queues, pools, sizes, capacity, free, nodes, ends, places, bits, by_rank, least,
            lengths, trial, mix, tally,
        )  # fmt: skip
    return True


@njit
def advance(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    queues: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    nodes: np.ndarray,
    ends: np.ndarray,
    places: np.ndarray,
    bits: np.ndarray,
    least: np.ndarray,
    lengths: np.ndarray,
    similar: np.ndarray,
    recent: np.ndarray,
    mix: np.ndarray,
) -> bool:
    """Move the clock to the next second in which a job ends or arrives; False where nothing is left.

    First all jobs that end then give their GPUs back, then all that arrive then join their queues.
    """
    arrival = jobs[sim[0].next].submit if sim[0].next < len(jobs) else np.inf
    end = ends[0].time if sim[0].running > 0 else np.inf
    now = min(arrival, end)
    if now == np.inf:
        return sim[0].discipline == ACCASIM_EASY and wait_for_reservation(sim, queues)
    sim[0].now = now
    for queue in range(len(queues)):
        queues[queue].touched = False
    while sim[0].running > 0 and ends[0].time <= now:
        job = pop_end(sim, ends)
        vacate(sim, jobs, capacity, free, nodes, places, job)
        queues[jobs[job].queue].touched = True
        queues[jobs[job].queue].shadow_of = -1
        if jobs[job].start + jobs[job].estimate != now:
            queues[jobs[job].queue].replan = 0
        if similar.shape[1] > 0:
            remember(similar, recent, job, jobs[job].run_time)
    while sim[0].next < len(jobs) and jobs[sim[0].next].submit <= now:
        job = sim[0].next
        if sim[0].predict:
            jobs[job].estimate = predict(similar, recent, job)
        enqueue(sim, jobs, links, queues, bits, least, lengths, mix, job)
        sim[0].next = job + 1
    return True


@njit
def schedule(
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
) -> None:
    """Let every queue to which something happened start what its discipline allows."""
    for queue in range(len(queues)):
        if not queues[queue].touched or queues[queue].waiting == 0:
            continue
        if sim[0].discipline == FIT:
            _start_what_fits(
                sim, jobs, links, queues, pools, sizes, capacity, free, nodes, ends, places, bits, by_rank, least,
                lengths, mix, tally, queue,
            )  # fmt: skip
        elif sim[0].discipline == CONSERVATIVE:
            follow_plan(
                sim, jobs, links, queues, pools, capacity, free, nodes, ends, places, bits, by_rank, least,
                lengths, trial, mix, tally, queue,
            )  # fmt: skip
        elif sim[0].discipline == ACCASIM_EASY and not try_held(
            sim, jobs, links, queues, pools, capacity, free, nodes, ends, places, bits, least, lengths, mix, tally,
            queue,
        ):  # fmt: skip
            start_the_rest(
                sim, jobs, links, queues, pools, capacity, free, nodes, ends, places, bits, by_rank, least,
                lengths, mix, tally, queue,
            )  # fmt: skip
        else:
            first = _start_in_order(
                sim, jobs, links, queues, pools, sizes, capacity, free, nodes, ends, places, bits, by_rank, least,
                lengths, mix, tally, queue,
            )  # fmt: skip
            if sim[0].discipline == ACCASIM_EASY and first >= 0:
                reserve_once(sim, jobs, queues, pools, free, ends, queue, first)
                start_the_rest(
                    sim, jobs, links, queues, pools, capacity, free, nodes, ends, places, bits, by_rank, least,
                    lengths, mix, tally, queue,
                )  # fmt: skip
            if sim[0].discipline == EASY and first >= 0 and queues[queue].waiting > 1:
                backfill(
                    sim, jobs, links, queues, pools, sizes, capacity, free, nodes, ends, places, bits, by_rank, least,
                    lengths, trial, mix, tally,
                    queue, first,
                )  # fmt: skip


@njit
def _start_in_order(
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
    mix: np.ndarray,
    tally: np.ndarray,
    queue: int,
) -> int:
    """Start jobs from the first on; returns the first that does not fit, or -1 where none is left.

    If the rules say hold, that job stays chosen until it starts, whoever arrives meanwhile.
    """
    while queues[queue].waiting > 0:
        job = queues[queue].held
        if job < 0:
            job = first_by_key(sim, jobs, links, queues, pools, sizes, bits, by_rank, queue)
        if not try_place(sim, jobs, pools, capacity, free, places, mix, tally, job):
            if sim[0].hold and queues[queue].held != job:
                queues[queue].held = job
                jobs[job].held = sim[0].now
            return job
        begin(sim, jobs, links, queues, capacity, free, nodes, ends, places, bits, least, lengths, job)
        queues[queue].held = -1
        queues[queue].shadow_of = -1
    return -1


@njit
def _start_what_fits(
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
    mix: np.ndarray,
    tally: np.ndarray,
    pool: int,
) -> None:
    """`fit`: start the first job of the queue that fits, until none does.

    A size that does not fit once cannot fit later at the same event, as GPUs only get fewer. (On tier 2 over nodes of
    different size it can, so there all are tried again after a start.) So where priorities are known beforehand, every
    size of the pool has a stretch of ranks, and only the firsts of the sizes that still fit compete.
    """
    if not sim[0].ranked:
        for size in range(queues[pool].size_low, queues[pool].size_high):
            sizes[size].unfit_at = -1
        line = line_up(sim, jobs, links, queues, pools, bits, by_rank, pool)
        at = 0
        while at < len(line):
            job = line[at]
            at += 1
            if jobs[job].start >= 0.0 or known_unfit(sim, jobs, pools, sizes, job):
                continue
            if not try_place(sim, jobs, pools, capacity, free, places, mix, tally, job):
                sizes[jobs[job].size_class].unfit_at = sim[0].started
                continue
            begin(sim, jobs, links, queues, capacity, free, nodes, ends, places, bits, least, lengths, job)
            if not pools[pool].never_gains:
                at = 0
        return
    for size in range(queues[pool].size_low, queues[pool].size_high):
        sizes[size].first = next_from(bits, sizes[size].low, sizes[size].high)
    while True:
        chosen, best = -1, 0
        for size in range(queues[pool].size_low, queues[pool].size_high):
            rank = sizes[size].first
            if rank >= 0 and (chosen < 0 or links[by_rank[rank]].priority < best):
                chosen, best = size, links[by_rank[rank]].priority
        if chosen < 0:
            return
        rank = sizes[chosen].first
        job = by_rank[rank]
        if try_place(sim, jobs, pools, capacity, free, places, mix, tally, job):
            begin(sim, jobs, links, queues, capacity, free, nodes, ends, places, bits, least, lengths, job)
            sizes[chosen].first = next_from(bits, rank + 1, sizes[chosen].high)
            if not pools[pool].never_gains:
                for size in range(queues[pool].size_low, queues[pool].size_high):
                    sizes[size].first = next_from(bits, sizes[size].low, sizes[size].high)
        else:
            sizes[chosen].first = -1
