"""What an agent sees, compiled: the window of the queue, job by job."""

import numpy as np

from berth.compiled import inlined, njit
from envs.sim.choosing import next_event
from envs.sim.history import TOLD_OF
from envs.sim.line import goes_first
from envs.sim.nearby import NEARBY_OF, write_nearby
from envs.sim.priorities import has_ratios, key, ranking
from envs.sim.scale import scaled

BASELINE_ORDER, ARRIVAL_ORDER, MIX = range(3)
"""Which jobs the window shows; envs/observation.py gives the orders names."""

JOB_FEATURES = 36
"""How many numbers the observation has for each job."""

GREATEST = 45.0
"""The logarithm of a key that is told as 1 where another policy's keys are told."""

PER_RANK = 0.5
"""How far apart neighbours are where keys have no logarithms that mean anything, as submit times have not."""

STEP = 2.0 / 65535.0
"""By how much jobs of equal keys differ, so that their order is kept where numbers are packed to two bytes."""


@inlined
def fill_window(
    queues: np.ndarray,
    episode: np.ndarray,
    cards: np.ndarray,
    keys: np.ndarray,
    kinds: np.ndarray,
    looks: np.ndarray,
    line: np.ndarray,
    line_kinds: np.ndarray,
    arrived: np.ndarray,
    slots: np.ndarray,
) -> None:
    """Choose the jobs to show: those that can be chosen first, then others, as far as there is room."""
    window, order = episode[0].window, episode[0].order
    choosable = 0
    for p in range(len(looks)):
        looks[p].choosable = 0
        if looks[p].open:
            for k in range(queues[p].size_low, queues[p].size_high):
                if kinds[k].choosable:
                    looks[p].choosable += kinds[k].waiting
        choosable += looks[p].choosable
    if order != ARRIVAL_ORDER:
        room = (window + 1) // 2 if order == MIX else window
        _show_first(episode, keys, kinds, looks, line, line_kinds, slots, choosable, room)
    if order == ARRIVAL_ORDER:
        episode[0].shown = 0
    if order != BASELINE_ORDER:
        _show_oldest(episode, cards, kinds, arrived, slots, choosable)


@inlined
def _show_first(
    episode: np.ndarray,
    keys: np.ndarray,
    kinds: np.ndarray,
    looks: np.ndarray,
    line: np.ndarray,
    line_kinds: np.ndarray,
    slots: np.ndarray,
    choosable: int,
    room: int,
) -> None:
    """Show the jobs that the baseline takes first, at most so many: the lines of the pools are merged."""
    others, shown = max(0, room - choosable), 0
    for p in range(len(looks)):
        looks[p].cursor = looks[p].line_at
    while shown < room:
        pool, rival = _next_two(keys, looks, line, others)
        if pool < 0:
            break
        look = looks[pool]
        at, end = look.cursor, look.line_at + look.standing
        while at < end and shown < room:
            can = kinds[line_kinds[at]].choosable
            if can or others > 0:
                if rival >= 0 and goes_first(keys, rival, line[at]):
                    break
                slots[shown] = line[at]
                shown += 1
                if can:
                    look.choosable -= 1
                else:
                    others -= 1
            at += 1
        look.cursor = at
    episode[0].shown = shown


@inlined
def _next_two(keys: np.ndarray, looks: np.ndarray, line: np.ndarray, others: int) -> tuple[int, int]:
    """The pool whose next job goes first, or -1, and the job that goes first of the other pools' next ones, or -1."""
    pool, first, second = -1, -1, -1
    for p in range(len(looks)):
        if looks[p].cursor == looks[p].line_at + looks[p].standing or (others == 0 and looks[p].choosable == 0):
            continue
        job = line[looks[p].cursor]
        if first < 0 or goes_first(keys, job, first):
            pool, first, second = p, job, first
        elif second < 0 or goes_first(keys, job, second):
            second = job
    return pool, second


@njit
def _show_oldest(
    episode: np.ndarray, cards: np.ndarray, kinds: np.ndarray, arrived: np.ndarray, slots: np.ndarray, choosable: int
) -> None:
    """Fill the window with those of the jobs not yet shown that arrived first."""
    stamp, low, shown, room = episode[0].steps + 1, episode[0].arrived_at, episode[0].shown, episode[0].window
    for slot in range(shown):
        cards[slots[slot]].shown = stamp
        if kinds[cards[slots[slot]].kind].choosable:
            choosable -= 1
    others = max(0, room - shown - choosable)
    for i in range(low, low + episode[0].waiting):
        if shown == room:
            break
        card = cards[arrived[i]]
        if card.shown == stamp:
            continue
        if not kinds[card.kind].choosable:
            if others == 0:
                continue
            others -= 1
        slots[shown] = arrived[i]
        shown += 1
    episode[0].shown = shown


@inlined
def write_mask(
    sim: np.ndarray,
    jobs: np.ndarray,
    ends: np.ndarray,
    episode: np.ndarray,
    cards: np.ndarray,
    kinds: np.ndarray,
    slots: np.ndarray,
    mask: np.ndarray,
) -> None:
    """Mark the slots that can be chosen; under `fit` also the last action, to wait, where something will happen.

    Where nothing can be chosen because the episode is over, the first slot stands open, and does nothing.
    """
    mask[:] = 0
    if episode[0].left == 0 or episode[0].terminated or episode[0].truncated:
        mask[0] = 1
        return
    for slot in range(episode[0].shown):
        mask[slot] = kinds[cards[slots[slot]].kind].choosable
    if episode[0].fit:
        mask[episode[0].window] = next_event(sim, jobs, ends) < np.inf


@njit
def write_prior(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    pools: np.ndarray,
    episode: np.ndarray,
    mask: np.ndarray,
    slots: np.ndarray,
    prior: np.ndarray,
) -> None:
    """Tell another policy's keys of the jobs that can be chosen, on a log scale; 1 for the others.

    ln(key) / GREATEST where the key is a time, an area or the like, else so much for each job that goes before. A
    little is added for each of those, so that the order is exact, and jobs of nearly equal keys are near.
    """
    shown, own = episode[0].shown, sim[0].policy
    keys, ties = np.empty(shown), np.empty(shown)
    order = np.argsort(slots[:shown])
    sim[0].policy = episode[0].prior
    for i in range(shown):
        job = slots[order[i]]
        told = jobs[job].estimate
        if episode[0].prior_knows:
            jobs[job].estimate = jobs[job].run_time
        keys[i], ties[i] = key(sim, jobs, links, pools, job)
        jobs[job].estimate = told
    sim[0].policy = own
    line = ranking(keys, ties)
    by_ratio = has_ratios(episode[0].prior)
    small = min(0.5, STEP * episode[0].window)
    prior[:] = 1.0
    before = 0
    for i in line:
        slot = order[i]
        if mask[slot]:
            told = np.log(max(keys[i], 1.0)) if by_ratio else PER_RANK * before
            prior[slot] = (1.0 - small) * min(told / GREATEST, 1.0) + small * before / episode[0].window
            before += 1


@inlined
def write_rows(
    sim: np.ndarray,
    jobs: np.ndarray,
    episode: np.ndarray,
    cards: np.ndarray,
    kinds: np.ndarray,
    looks: np.ndarray,
    history: np.ndarray,
    nearby: np.ndarray,
    near: np.ndarray,
    past: np.ndarray,
    slots: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Write the features of the jobs in the window; empty slots are zeros.

    What jobs nearby tell is told from outside where nobody is noted beside a job (`near` has no rows).
    """
    now, shown, per_slot = sim[0].now, episode[0].shown, np.float32(1.0 / episode[0].window)
    waits, soon, ahead = np.empty(shown, np.float32), np.empty(shown, np.float32), np.empty(shown, np.float32)
    for slot in range(shown):
        card = cards[slots[slot]]
        look = looks[card.in_pool]
        look.ahead += card.asked
        waits[slot], soon[slot], ahead[slot] = now - card.submit, look.soon, look.ahead
    for slot in range(shown):  # a loop of its own, which the compiler turns into vectors
        waits[slot] = scaled(waits[slot])
        soon[slot] = soon[slot] / (soon[slot] + ahead[slot])
    for slot in range(shown):
        job = slots[slot]
        card = cards[job]
        kind = kinds[card.kind]
        rows[slot, 0] = waits[slot]
        rows[slot, 1] = card.gpus
        rows[slot, 2] = card.share
        rows[slot, 3] = card.run_time
        rows[slot, 4] = kind.demand
        rows[slot, 5] = soon[slot]
        rows[slot, 6] = kind.fragmentation
        rows[slot, 7] = kind.ways
        rows[slot, 8] = kind.fits
        rows[slot, 9] = card.pool
        rows[slot, JOB_FEATURES - 1] = np.float32(slot + 1) * per_slot
        rows[slot, 10 : 10 + TOLD_OF] = history[job]
        if len(near) > 0 and card.looked != now:  # who starts now counts from the next event on
            write_nearby(jobs, near, past, history, job, now, nearby[job])
            card.looked = now
        rows[slot, 10 + TOLD_OF : 10 + TOLD_OF + NEARBY_OF] = nearby[job]
    rows[shown : episode[0].written] = 0.0
    episode[0].written = shown
