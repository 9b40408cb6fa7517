"""What an agent sees, compiled: the window of the queue, job by job."""

import numpy as np

from berth.compiled import njit
from envs.sim.choosing import next_event
from envs.sim.scale import PER_LONGEST, ln, scaled
from envs.sim.state import HISTORY

BASELINE_ORDER, ARRIVAL_ORDER, MIX = range(3)
"""Which jobs the window shows; envs/observation.py gives the orders names."""

JOB_FEATURES = 18
"""How many numbers the observation has for each job."""

LIKENESS = (1.0, 2.0 / 3.0, 1.0 / 3.0)
"""How like a job those of its user, of its VC and of its size are."""

PER_HISTORY = np.float32(1.0 / HISTORY)

WIDEST = 8.0
"""The standard deviation of logarithms at which the feature `spread` is 1."""


@njit
def fill_window(
    episode: np.ndarray,
    cards: np.ndarray,
    kinds: np.ndarray,
    line: np.ndarray,
    line_kinds: np.ndarray,
    arrived: np.ndarray,
    slots: np.ndarray,
) -> None:
    """Choose the jobs to show: those that can be chosen first, then others, as far as there is room."""
    window, order = episode[0].window, episode[0].order
    choosable = 0
    for k in range(len(kinds)):
        if kinds[k].choosable:
            choosable += kinds[k].waiting
    if order != ARRIVAL_ORDER:
        _show_first(episode, kinds, line, line_kinds, slots, choosable, (window + 1) // 2 if order == MIX else window)
    if order == ARRIVAL_ORDER:
        episode[0].shown = 0
    if order != BASELINE_ORDER:
        _show_oldest(episode, cards, kinds, arrived, slots, choosable)


@njit
def _show_first(
    episode: np.ndarray,
    kinds: np.ndarray,
    line: np.ndarray,
    line_kinds: np.ndarray,
    slots: np.ndarray,
    choosable: int,
    room: int,
) -> None:
    """Show the jobs that the baseline takes first, at most so many."""
    low, others, shown = episode[0].line_at, max(0, room - choosable), 0
    for i in range(low, low + episode[0].waiting):
        if shown == room:
            break
        if not kinds[line_kinds[i]].choosable:
            if others == 0:
                continue
            others -= 1
        slots[shown] = line[i]
        shown += 1
    episode[0].shown = shown


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


@njit
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
def write_rows(
    sim: np.ndarray,
    similar: np.ndarray,
    recent: np.ndarray,
    episode: np.ndarray,
    cards: np.ndarray,
    kinds: np.ndarray,
    looks: np.ndarray,
    told: np.ndarray,
    slots: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Write the features of the jobs in the window; empty slots are zeros."""
    now, per_slot = sim[0].now, 1.0 / episode[0].window
    for slot in range(episode[0].shown):
        job = slots[slot]
        card = cards[job]
        kind, look = kinds[card.kind], looks[card.in_pool]
        look.ahead += card.asked
        rows[slot, 0] = scaled(now - card.submit)
        rows[slot, 1] = card.gpus
        rows[slot, 2] = card.share
        rows[slot, 3] = card.run_time
        rows[slot, 4] = kind.demand
        rows[slot, 5] = look.soon / (look.soon + look.ahead)
        rows[slot, 6] = kind.fragmentation
        rows[slot, 7] = kind.ways
        rows[slot, 8] = kind.fits
        rows[slot, 9] = card.pool
        rows[slot, 17] = (slot + 1) * per_slot
        best = similar[job, 3]
        if told[best, 0] < 0.0:
            _sum_up(recent, told, best)
        typical, likeness = told[best, 1], 0.0
        for level in (2, 1, 0):  # same size, same VC, same user
            group = similar[job, level]
            if group >= 0:
                if told[group, 0] < 0.0:
                    _sum_up(recent, told, group)
                if told[group, 0] > 0.0:
                    best, typical, likeness = group, told[group, 1], LIKENESS[level]
            rows[slot, 10 + level] = typical
        rows[slot, 13] = told[best, 2]
        rows[slot, 14] = told[best, 3]
        rows[slot, 15] = told[best, 0] * PER_HISTORY
        rows[slot, 16] = likeness
    rows[episode[0].shown : episode[0].written] = 0.0
    episode[0].written = episode[0].shown


@njit
def _sum_up(recent: np.ndarray, told: np.ndarray, group: int) -> None:
    """Sum up a group's last ended jobs: how many, mean of logarithms, mean, spread of logarithms."""
    known = min(int(recent[group, 0]), HISTORY)
    told[group, 0] = known
    if known == 0:
        told[group, 1] = told[group, 2] = scaled(3600.0)
        told[group, 3] = 0.0
        return
    total, logs = 0.0, 0.0
    for i in range(known):
        total += recent[group, 1 + i]
        logs += ln(1.0 + recent[group, 1 + i])
    mean, squares = logs / known, 0.0
    for i in range(known):
        away = ln(1.0 + recent[group, 1 + i]) - mean
        squares += away * away
    told[group, 1] = min(mean * PER_LONGEST, 1.0)
    told[group, 2] = scaled(total / known)
    told[group, 3] = min(np.sqrt(squares / known) / WIDEST, 1.0)
