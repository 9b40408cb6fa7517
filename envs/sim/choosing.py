"""An episode from decision to decision, compiled: what happens by the rules, until somebody must choose a job."""

import numpy as np

from berth.compiled import inlined, njit
from envs.sim.backfill import backfill
from envs.sim.conservative import count_reserved, renew
from envs.sim.history import write_history
from envs.sim.kernel import advance
from envs.sim.line import join_line, leave_line, put_first, sort_lines
from envs.sim.moves import begin, try_place
from envs.sim.reckoning import reckon
from envs.sim.room import fits_now, look_at_nodes, mark_what_fits
from envs.sim.scale import scaled
from envs.sim.state import predict


@inlined
def know_job(
    sim: np.ndarray,
    jobs: np.ndarray,
    similar: np.ndarray,
    recent: np.ndarray,
    episode: np.ndarray,
    cards: np.ndarray,
    job: int,
) -> None:
    """Note what is known of a job's run time: its estimate, or what ended jobs tell where that is hidden."""
    estimate = jobs[job].estimate
    cards[job].run_time = 0.0 if np.isnan(estimate) else scaled(estimate)
    cards[job].guess = predict(similar, recent, job) if np.isnan(estimate) else estimate


@njit
def move_on(
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
    similar: np.ndarray,
    recent: np.ndarray,
    mix: np.ndarray,
    episode: np.ndarray,
    cards: np.ndarray,
    keys: np.ndarray,
    kinds: np.ndarray,
    looks: np.ndarray,
    line: np.ndarray,
    line_kinds: np.ndarray,
    arrived: np.ndarray,
    told: np.ndarray,
    history: np.ndarray,
) -> None:
    """Move the clock to the next event, and let the jobs that arrive then join the lines."""
    coming = sim[0].next
    if episode[0].counts:  # the baseline plays without looking
        _doubt(similar, ends, told, sim[0].running, next_event(sim, jobs, ends))
    advance(sim, jobs, links, queues, capacity, free, nodes, ends, places, bits, least, lengths, similar, recent, mix)
    for queue in range(len(queues)):
        looks[queue].stale = looks[queue].stale or queues[queue].touched
    for job in range(coming, sim[0].next):
        if episode[0].counts:
            know_job(sim, jobs, similar, recent, episode, cards, job)
            write_history(similar, recent, told, job, history[job])
        kinds[jobs[job].size_class].waiting += 1
        join_line(sim, jobs, links, pools, episode, cards, keys, looks, line, line_kinds, arrived, job)
    if episode[0].changes:
        sort_lines(sim, jobs, links, pools, episode, cards, keys, looks, line, line_kinds, arrived)


@inlined
def _doubt(similar: np.ndarray, ends: np.ndarray, told: np.ndarray, running: int, now: float) -> None:
    """Mark that what was summed up of the jobs similar to those that end now is no longer true."""
    for i in range(running):
        if ends[i].time <= now:
            for level in range(similar.shape[1]):
                if similar[ends[i].job, level] >= 0:
                    told[similar[ends[i].job, level], 0] = -1.0


@inlined
def next_event(sim: np.ndarray, jobs: np.ndarray, ends: np.ndarray) -> float:
    """When something happens next; infinity where nothing does."""
    arrival = jobs[sim[0].next].submit if sim[0].next < len(jobs) else np.inf
    return min(arrival, ends[0].time) if sim[0].running > 0 else arrival


@inlined
def to_decision(
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
    episode: np.ndarray,
    cards: np.ndarray,
    keys: np.ndarray,
    kinds: np.ndarray,
    looks: np.ndarray,
    line: np.ndarray,
    line_kinds: np.ndarray,
    arrived: np.ndarray,
    base: np.ndarray,
    by_end: np.ndarray,
    told: np.ndarray,
    history: np.ndarray,
    seen: np.ndarray,
    counts: np.ndarray,
) -> bool:
    """Let things happen until a job can be chosen; False where the episode is over, or its horizon is reached."""
    while True:
        if episode[0].fit:
            found = mark_what_fits(sim, queues, pools, capacity, free, tally, episode, kinds, looks, seen, counts)
        else:
            found = _serve_held(
                sim, jobs, links, queues, pools, sizes, capacity, free, nodes, ends, places, bits, by_rank, least,
                lengths, trial, mix, tally, episode, cards, keys, kinds, looks, line, line_kinds, arrived, base, by_end,
                seen, counts,
            )  # fmt: skip
        if episode[0].left == 0:
            return False
        if found:
            return True
        event = next_event(sim, jobs, ends)
        if event == np.inf or event > episode[0].horizon or sim[0].handle < 0:
            return False
        move_on(
            sim, jobs, links, queues, pools, capacity, free, nodes, ends, places, bits, least, lengths, similar,
            recent, mix, episode, cards, keys, kinds, looks, line, line_kinds, arrived, told, history,
        )  # fmt: skip


@inlined
def _serve_held(
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
    episode: np.ndarray,
    cards: np.ndarray,
    keys: np.ndarray,
    kinds: np.ndarray,
    looks: np.ndarray,
    line: np.ndarray,
    line_kinds: np.ndarray,
    arrived: np.ndarray,
    base: np.ndarray,
    by_end: np.ndarray,
    seen: np.ndarray,
    counts: np.ndarray,
) -> bool:
    """Start the jobs that hold a pool and now fit, or let them go; tell whether a pool with waiting jobs is open."""
    found = False
    for queue in range(len(queues)):
        held = queues[queue].held
        if held >= 0 and queues[queue].touched:
            queues[queue].touched = False
            if looks[queue].stale:
                look_at_nodes(pools, capacity, free, looks, seen, counts, queue)
            if episode[0].again:
                queues[queue].held = -1
            elif episode[0].backfill or fits_now(
                sim, pools, capacity, free, tally, episode, kinds, looks, counts, cards[held].kind
            ):
                take(
                    sim, jobs, links, queues, pools, sizes, capacity, free, nodes, ends, places, bits, by_rank, least,
                    lengths, trial, mix, tally, episode, cards, keys, kinds, looks, line, line_kinds, arrived, base,
                    by_end, held,
                )  # fmt: skip
        is_open = queues[queue].held < 0 and queues[queue].waiting > 0
        if is_open != looks[queue].open:
            looks[queue].open = is_open
            for k in range(queues[queue].size_low, queues[queue].size_high):
                kinds[k].choosable = is_open
        found = found or is_open
    return found


@njit
def take(
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
    episode: np.ndarray,
    cards: np.ndarray,
    keys: np.ndarray,
    kinds: np.ndarray,
    looks: np.ndarray,
    line: np.ndarray,
    line_kinds: np.ndarray,
    arrived: np.ndarray,
    base: np.ndarray,
    by_end: np.ndarray,
    job: int,
) -> None:
    """Start a chosen job; one that does not fit holds its pool, and others may slip past it.

    They do by the EASY rule, or by reservations behind its own. Reservations stay while the baseline's first job is
    chosen; any other choice has all of them made anew, now and at the next event.
    """
    queue = jobs[job].queue
    front, kept = line[looks[queue].line_at], 0
    if episode[0].keeps and episode[0].reserves and job == front:
        standing = line[looks[queue].line_at : looks[queue].line_at + looks[queue].standing]
        kept = count_reserved(sim, jobs, links, queues, ends, standing, queue)
    if kept > 0:
        starts = links[job].planned == sim[0].now
    else:
        starts = try_place(sim, jobs, pools, capacity, free, places, mix, tally, job)
    if starts:
        begin(sim, jobs, links, queues, capacity, free, nodes, ends, places, bits, least, lengths, job)
        queues[queue].held = -1
        queues[queue].shadow_of = -1
        if kept == 0:
            queues[queue].replan = 0
        _note_start(sim, jobs, episode, cards, keys, kinds, looks, line, line_kinds, arrived, base, by_end, job)
        return
    queues[queue].held = job
    queues[queue].touched = False
    if episode[0].reserves or (episode[0].backfill and queues[queue].waiting > 1):
        look = looks[queue]
        if episode[0].reserves:
            behind = put_first(line[look.line_at : look.line_at + look.standing], job)
            renew(
                sim, jobs, links, queues, pools, capacity, free, nodes, ends, places, bits, least, lengths, trial, mix,
                tally, behind, kept, queue,
            )  # fmt: skip
            if job != front:
                queues[queue].replan = 0
        else:
            backfill(
                sim, jobs, links, queues, pools, sizes, capacity, free, nodes, ends, places, bits, by_rank, least,
                lengths, trial, mix, tally, queue, job,
            )  # fmt: skip
        at = look.line_at
        while at < look.line_at + look.standing:
            first = look.line_at
            if jobs[line[at]].start >= 0.0:
                _note_start(
                    sim, jobs, episode, cards, keys, kinds, looks, line, line_kinds, arrived, base, by_end, line[at]
                )
                at += look.line_at - first  # the next job has moved up, or stands behind
            else:
                at += 1


@inlined
def _note_start(
    sim: np.ndarray,
    jobs: np.ndarray,
    episode: np.ndarray,
    cards: np.ndarray,
    keys: np.ndarray,
    kinds: np.ndarray,
    looks: np.ndarray,
    line: np.ndarray,
    line_kinds: np.ndarray,
    arrived: np.ndarray,
    base: np.ndarray,
    by_end: np.ndarray,
    job: int,
) -> None:
    """Strike a job that has started off the lines, and count it."""
    leave_line(episode, cards, keys, looks, line, line_kinds, arrived, job)
    looks[cards[job].in_pool].stale = True
    cards[job].since = sim[0].now
    kinds[jobs[job].size_class].waiting -= 1
    if episode[0].counts:
        reckon(jobs, episode, base, by_end, job, sim[0].now)
    elif job >= episode[0].first:
        episode[0].left -= 1
