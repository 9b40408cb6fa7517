"""How an episode begins, compiled: a window of jobs, and the cluster as the baseline would have left it."""

from typing import Any

import numpy as np

from berth.compiled import njit
from envs.sim.cards import TOLD
from envs.sim.choosing import know_job
from envs.sim.history import TOLD_OF, write_history
from envs.sim.line import join_line, sort_lines
from envs.sim.moves import enqueue, notice
from envs.sim.scale import MANY_GPUS
from envs.sim.state import HISTORY, MEMORY, RECENT, predict, push_end

ENDED = np.dtype([("end", "f8"), ("run_time", "f8"), ("logs", "f8")])
"""The jobs of a group of similar ones, by their ends; `logs` sums up ln(1 + run time) of it and all before it."""


@njit
def set_up(
    roster: np.ndarray,
    groups: np.ndarray,
    past_places: np.ndarray,
    ended_at: np.ndarray,
    ended: np.ndarray,
    past_history: np.ndarray,
    local: np.ndarray,
    chosen: np.ndarray,
    window: int,
    scored: int,
    warm: bool,
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
    by_end: np.ndarray,
    told: np.ndarray,
    history: np.ndarray,
) -> int:
    """Lay out the jobs `chosen` before the first event of an episode: the last are the window's, or scored.

    Returns how many groups of similar jobs there are. local (groups of the trace,) is scratch and stays -1.
    """
    count = len(chosen)
    first, opening = count - scored, chosen[count - window]
    now = roster[opening].submit
    _clear(sim, queues, capacity, free, nodes, episode, kinds, looks, by_end, now, first, scored)
    _divide_line(roster, chosen, looks)
    known = find_groups(groups, ended_at, ended, local, chosen, warm, now, similar, recent, told)
    place_at = 0
    for i in range(count):
        old = roster[chosen[i]]
        _write_job(jobs, links, pools, cards, old, i, place_at)
        place_at += old.most
        if old.submit >= now:
            continue
        know_job(sim, jobs, similar, recent, episode, cards, i)
        history[i] = past_history[chosen[i]]
        if old.start < now:
            jobs[i].start = cards[i].since = old.start
            jobs[i].place_count = old.place_count
            for k in range(old.place_count):
                share = past_places[old.place_at + k]
                places[jobs[i].place_at + k].node = share.node
                places[jobs[i].place_at + k].gpus = share.gpus
                free[share.node] -= share.gpus
            push_end(sim, ends, old.end, i)
        else:
            enqueue(sim, jobs, links, queues, bits, least, lengths, mix, i)
            kinds[old.size_class].waiting += 1
            join_line(sim, jobs, links, pools, episode, cards, keys, looks, line, line_kinds, arrived, i)
            if 0.0 <= old.held < now:
                queues[old.pool].held = i
        sim[0].next = i + 1
    for queue in range(len(queues)):
        queues[queue].touched = False
    if episode[0].changes:
        sort_lines(sim, jobs, links, pools, episode, cards, keys, looks, line, line_kinds, arrived)
    if mix.shape[1] > 0:
        remember_sizes(roster, mix, opening if warm else 0, now)
    return known


@njit
def _clear(
    sim: np.ndarray,
    queues: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    nodes: np.ndarray,
    episode: np.ndarray,
    kinds: np.ndarray,
    looks: np.ndarray,
    by_end: np.ndarray,
    now: float,
    first: int,
    scored: int,
) -> None:
    """An idle cluster with empty queues, at the submit of the window's first job."""
    sim[0].now, sim[0].next, sim[0].running, sim[0].started = now, 0, 0, 0
    for queue in range(len(queues)):
        queues[queue].waiting = 0
        queues[queue].head = queues[queue].tail = queues[queue].held = queues[queue].shadow_of = -1
    for n in range(len(capacity)):
        free[n] = capacity[n]
        nodes[n].since = now
    for k in range(len(kinds)):
        kinds[k].waiting = 0
        kinds[k].version = kinds[k].tried = 0
        kinds[k].fits = kinds[k].choosable = False
    for p in range(len(looks)):
        looks[p].version = looks[p].demand = looks[p].standing = 0
        looks[p].open, looks[p].stale = False, True
    by_end[scored:] = 0
    row = episode[0]
    row.first, row.waiting, row.left, row.steps, row.invalid, row.shown = first, 0, scored, 0, 0, 0
    row.begin, row.horizon, row.arrived_at = now, np.inf, 0
    row.agent = row.total = row.saved = row.latest = row.gain = row.paid = row.reward = 0.0
    row.ended = 0
    row.terminated = row.truncated = row.counts = False


@njit
def _divide_line(roster: np.ndarray, chosen: np.ndarray, looks: np.ndarray) -> None:
    """Give every pool a stretch of the line that has room for all of its jobs."""
    for p in range(len(looks)):
        looks[p].line_at = 0
    for i in range(len(chosen)):
        looks[roster[chosen[i]].pool].line_at += 1
    begin = 0
    for p in range(len(looks)):
        count = looks[p].line_at
        looks[p].line_at = begin
        begin += count


@njit
def _write_job(
    jobs: np.ndarray, links: np.ndarray, pools: np.ndarray, cards: np.ndarray, old: Any, i: int, place_at: int
) -> None:
    """Lay out one job that has not started."""
    jobs[i].submit = old.submit
    jobs[i].run_time = old.run_time
    jobs[i].estimate = old.estimate
    jobs[i].start = -1.0
    jobs[i].held = -1.0
    jobs[i].place_at = place_at
    jobs[i].place_count = 0
    jobs[i].asked = old.gpus
    jobs[i].gpus = old.gpus
    jobs[i].fewest = old.fewest
    jobs[i].pool = old.pool
    jobs[i].queue = old.pool
    jobs[i].size_class = old.size_class
    links[i].key = old.given
    links[i].planned = -1.0
    links[i].after = links[i].before = -1
    cards[i].submit = old.submit
    cards[i].asked = old.gpus
    cards[i].in_pool = old.pool
    cards[i].kind = old.size_class
    cards[i].shown = 0
    cards[i].looked = -1.0
    cards[i].gpus = min(float(np.log1p(old.gpus) / np.log1p(MANY_GPUS)), 1.0)
    cards[i].share = old.gpus / pools[old.pool].gpus
    cards[i].pool = (old.pool + 0.5) / len(pools)


@njit
def find_groups(
    groups: np.ndarray,
    ended_at: np.ndarray,
    ended: np.ndarray,
    local: np.ndarray,
    chosen: np.ndarray,
    warm: bool,
    now: float,
    similar: np.ndarray,
    recent: np.ndarray,
    told: np.ndarray,
) -> int:
    """Number the groups of similar jobs that the episode has, and recall those of each that ended before it.

    Group g of the trace has the jobs ended[ended_at[g]:ended_at[g + 1]], by their ends.
    """
    known = 0
    for i in range(len(chosen)):
        for level in range(groups.shape[1]):
            group = groups[chosen[i], level]
            if group < 0:
                similar[i, level] = -1
                continue
            if local[group] < 0:
                local[group] = known
                recent[known, 0] = recent[known, MEMORY - 1] = 0.0
                if warm:
                    _recall(ended_at, ended, group, now, False, recent[known])
                told[known, 0] = -1.0
                known += 1
            similar[i, level] = local[group]
    for i in range(len(chosen)):
        for level in range(groups.shape[1]):
            if groups[chosen[i], level] >= 0:
                local[groups[chosen[i], level]] = -1
    return known


@njit
def _recall(
    ended_at: np.ndarray,
    ended: np.ndarray,
    group: int,
    now: float,
    at_once: bool,
    memory: np.ndarray,
) -> None:
    """Write what the predictor remembers of a group: how many ended before now, and their run times.

    `at_once` counts those that end now, too.
    """
    low, high = ended_at[group], ended_at[group + 1]
    start = low
    while low < high:
        middle = (low + high) >> 1
        if ended[middle].end < now or (at_once and ended[middle].end == now):
            low = middle + 1
        else:
            high = middle
    count = low - start
    memory[0] = count
    for i in range(max(0, count - HISTORY), count):
        memory[1 + i % HISTORY] = ended[start + i].run_time
    memory[MEMORY - 1] = ended[low - 1].logs if count > 0 else 0.0


@njit
def predict_on_arrival(roster: np.ndarray, groups: np.ndarray, ended_at: np.ndarray, ended: np.ndarray) -> np.ndarray:
    """What the predictor expected of each job (jobs,) when it arrived, given when all of them ended."""
    found = np.empty(len(roster))
    recent = np.zeros((groups.shape[1], MEMORY))
    mine = np.zeros((1, groups.shape[1]), np.int32)
    for job in range(len(roster)):
        for level in range(groups.shape[1]):
            mine[0, level] = -1 if groups[job, level] < 0 else level
            if groups[job, level] >= 0:
                _recall(ended_at, ended, groups[job, level], roster[job].submit, True, recent[level])
        found[job] = predict(mine, recent, 0)
    return found


@njit
def histories_on_arrival(roster: np.ndarray, groups: np.ndarray, ended_at: np.ndarray, ended: np.ndarray) -> np.ndarray:
    """What ended jobs told of each job (jobs, TOLD_OF) when it arrived, given when all of them ended."""
    found = np.empty((len(roster), TOLD_OF), np.float32)
    recent, told = np.zeros((groups.shape[1], MEMORY)), np.empty((groups.shape[1], TOLD), np.float32)
    mine = np.zeros((1, groups.shape[1]), np.int32)
    for job in range(len(roster)):
        for level in range(groups.shape[1]):
            mine[0, level] = -1 if groups[job, level] < 0 else level
            told[level, 0] = -1.0
            if groups[job, level] >= 0:
                _recall(ended_at, ended, groups[job, level], roster[job].submit, True, recent[level])
        write_history(mine, recent, told, 0, found[job])
    return found


@njit
def remember_sizes(roster: np.ndarray, mix: np.ndarray, first: int, now: float) -> None:
    """Let `fgd` have seen the last jobs of each pool that arrived before now."""
    mix[:] = 0
    seen = np.zeros(len(mix), np.int64)
    need = len(mix)
    job = first - 1
    while job >= 0 and need > 0:
        if roster[job].submit < now:
            seen[roster[job].pool] += 1
            if seen[roster[job].pool] == RECENT:
                need -= 1
        job -= 1
    skipped = np.maximum(seen - RECENT, 0)
    for other in range(job + 1, first):
        pool = roster[other].pool
        if roster[other].submit < now:
            if skipped[pool] > 0:
                skipped[pool] -= 1
            else:
                notice(mix, pool, roster[other].gpus)
