"""The waiting jobs of an episode in the baseline's order, compiled.

Every pool has a line of its own: a stretch of one array, with room for all of its jobs. Where somebody leaves it, the
jobs on the shorter side of the gap close it; who leaves mostly stands near the front, so a queue of thousands costs
hardly more than a short one.
"""

import numpy as np

from berth.compiled import inlined, njit
from envs.sim.priorities import key, ranking


@njit
def join_line(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    pools: np.ndarray,
    episode: np.ndarray,
    cards: np.ndarray,
    keys: np.ndarray,
    looks: np.ndarray,
    line: np.ndarray,
    line_kinds: np.ndarray,
    arrived: np.ndarray,
    job: int,
) -> None:
    """Put a job that has arrived into both lines: its pool's by the baseline's order, and everybody's by arrival.

    Where the order changes with time it is put at the end, for `sort_lines` to find its place.
    """
    arrived[episode[0].arrived_at + episode[0].waiting] = job
    episode[0].waiting += 1
    keys[job].key, keys[job].tie = key(sim, jobs, links, pools, job)
    look = looks[cards[job].in_pool]
    end = look.line_at + look.standing
    low, high = look.line_at, end
    look.standing += 1
    look.demand += cards[job].asked
    if episode[0].changes:
        low = end
    while low < high:
        middle = (low + high) >> 1
        if goes_first(keys, job, line[middle]):
            high = middle
        else:
            low = middle + 1
    for i in range(end, low, -1):
        line[i] = line[i - 1]
        line_kinds[i] = line_kinds[i - 1]
    line[low] = job
    line_kinds[low] = cards[job].kind


@inlined
def goes_first(keys: np.ndarray, job: int, other: int) -> bool:
    """Tell whether the baseline takes a job before another; what is equal goes in submit order."""
    if keys[job].key != keys[other].key:
        return keys[job].key < keys[other].key
    if keys[job].tie != keys[other].tie:
        return keys[job].tie < keys[other].tie
    return job < other


@njit
def put_first(line: np.ndarray, job: int) -> np.ndarray:
    """A line with one of its jobs before all others, whose order stays."""
    found = np.empty(len(line), np.int32)
    found[0], at = job, 1
    for other in line:
        if other != job:
            found[at] = other
            at += 1
    return found


@inlined
def first_choosable(
    keys: np.ndarray, kinds: np.ndarray, looks: np.ndarray, line: np.ndarray, line_kinds: np.ndarray
) -> int:
    """The job that the baseline takes of those that can be chosen; there is one."""
    best = -1
    for p in range(len(looks)):
        if not looks[p].open:
            continue
        at = looks[p].line_at
        while not kinds[line_kinds[at]].choosable:
            at += 1
        if best < 0 or goes_first(keys, line[at], best):
            best = line[at]
    return best


@njit
def sort_lines(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    pools: np.ndarray,
    episode: np.ndarray,
    cards: np.ndarray,
    keys: np.ndarray,
    looks: np.ndarray,
    line: np.ndarray,
    line_kinds: np.ndarray,
    arrived: np.ndarray,
) -> None:
    """Bring the lines into the baseline's order as it is now, for orders that change with time."""
    first = episode[0].arrived_at
    for i in range(first, first + episode[0].waiting):
        keys[arrived[i]].key, keys[arrived[i]].tie = key(sim, jobs, links, pools, arrived[i])
    for p in range(len(looks)):
        low, high = looks[p].line_at, looks[p].line_at + looks[p].standing
        if not _is_sorted(keys, line, low, high):
            _sort_stretch(cards, keys, line, line_kinds, low, high)


@njit
def _is_sorted(keys: np.ndarray, line: np.ndarray, low: int, high: int) -> bool:
    at = low + 1
    while at < high and not goes_first(keys, line[at], line[at - 1]):
        at += 1
    return at >= high


@njit
def _sort_stretch(
    cards: np.ndarray, keys: np.ndarray, line: np.ndarray, line_kinds: np.ndarray, low: int, high: int
) -> None:
    """Sort a stretch of the line by key, tie and number."""
    there = np.sort(line[low:high])
    by_key, ties = np.empty(len(there)), np.empty(len(there))
    for i in range(len(there)):
        by_key[i], ties[i] = keys[there[i]].key, keys[there[i]].tie
    order = ranking(by_key, ties)
    for i in range(len(there)):
        line[low + i] = there[order[i]]
        line_kinds[low + i] = cards[there[order[i]]].kind


@inlined
def leave_line(
    episode: np.ndarray,
    cards: np.ndarray,
    keys: np.ndarray,
    looks: np.ndarray,
    line: np.ndarray,
    line_kinds: np.ndarray,
    arrived: np.ndarray,
    job: int,
) -> None:
    """Take a job out of both lines."""
    look = looks[cards[job].in_pool]
    first, count = look.line_at, look.standing
    look.standing = count - 1
    look.demand -= cards[job].asked
    low, high = first, first + count - 1
    while low < high:
        middle = (low + high) >> 1
        if goes_first(keys, line[middle], job):
            low = middle + 1
        else:
            high = middle
    if low - first > count // 2:
        for i in range(low, first + count - 1):
            line[i] = line[i + 1]
            line_kinds[i] = line_kinds[i + 1]
    else:
        for i in range(low, first, -1):
            line[i] = line[i - 1]
            line_kinds[i] = line_kinds[i - 1]
        look.line_at = first + 1
    _forget_arrival(episode, arrived, job)


@inlined
def _forget_arrival(episode: np.ndarray, arrived: np.ndarray, job: int) -> None:
    """Take a job out of the line by arrival."""
    first, count = episode[0].arrived_at, episode[0].waiting
    episode[0].waiting = count - 1
    low, high = first, first + count - 1
    while low < high:
        middle = (low + high) >> 1
        if arrived[middle] < job:
            low = middle + 1
        else:
            high = middle
    if low - first > count // 2:
        for i in range(low, first + count - 1):
            arrived[i] = arrived[i + 1]
    else:
        for i in range(low, first, -1):
            arrived[i] = arrived[i - 1]
        episode[0].arrived_at = first + 1
