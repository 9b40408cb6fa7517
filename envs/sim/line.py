"""The waiting jobs of an episode in the baseline's order, compiled.

A line is a stretch of an array. Where somebody leaves it, the jobs on the shorter side of the gap close it; who leaves
mostly stands near the front, so a queue of thousands costs hardly more than a short one.
"""

import numpy as np

from berth.compiled import njit
from envs.sim.priorities import key


@njit
def join_line(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    pools: np.ndarray,
    episode: np.ndarray,
    cards: np.ndarray,
    keys: np.ndarray,
    line: np.ndarray,
    line_kinds: np.ndarray,
    arrived: np.ndarray,
    job: int,
) -> None:
    """Put a job that has arrived into both lines: by the baseline's order, and by arrival.

    Where the order changes with time it is put at the end, for `sort_line` to find its place.
    """
    count = episode[0].waiting
    episode[0].waiting = count + 1
    arrived[episode[0].arrived_at + count] = job
    keys[job].key, keys[job].tie = key(sim, jobs, links, pools, job)
    end = episode[0].line_at + count
    low, high = episode[0].line_at, end
    if episode[0].changes:
        low = end
    while low < high:
        middle = (low + high) >> 1
        if _goes_first(keys, job, line[middle]):
            high = middle
        else:
            low = middle + 1
    for i in range(end, low, -1):
        line[i] = line[i - 1]
        line_kinds[i] = line_kinds[i - 1]
    line[low] = job
    line_kinds[low] = cards[job].kind


@njit
def _goes_first(keys: np.ndarray, job: int, other: int) -> bool:
    """Tell whether the baseline takes a job before another; what is equal goes in submit order."""
    if keys[job].key != keys[other].key:
        return keys[job].key < keys[other].key
    if keys[job].tie != keys[other].tie:
        return keys[job].tie < keys[other].tie
    return job < other


@njit
def sort_line(
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    pools: np.ndarray,
    episode: np.ndarray,
    cards: np.ndarray,
    keys: np.ndarray,
    line: np.ndarray,
    line_kinds: np.ndarray,
    arrived: np.ndarray,
) -> None:
    """Bring the line into the baseline's order as it is now, for orders that change with time."""
    count, low, first = episode[0].waiting, episode[0].line_at, episode[0].arrived_at
    for i in range(first, first + count):
        keys[arrived[i]].key, keys[arrived[i]].tie = key(sim, jobs, links, pools, arrived[i])
    for i in range(low + 1, low + count):
        if _goes_first(keys, line[i], line[i - 1]):
            break
    else:
        return
    by_key, ties = np.empty(count), np.empty(count)
    for i in range(count):
        by_key[i], ties[i] = keys[arrived[first + i]].key, keys[arrived[first + i]].tie
    by_tie = np.argsort(ties, kind="mergesort")
    order = by_tie[np.argsort(by_key[by_tie], kind="mergesort")]
    for i in range(count):
        line[low + i] = arrived[first + order[i]]
        line_kinds[low + i] = cards[line[low + i]].kind


@njit
def leave_line(episode: np.ndarray, line: np.ndarray, line_kinds: np.ndarray, arrived: np.ndarray, job: int) -> None:
    """Take a job out of both lines."""
    first, count = episode[0].line_at, episode[0].waiting
    at = first
    while line[at] != job:
        at += 1
    if at - first > count // 2:
        for i in range(at, first + count - 1):
            line[i] = line[i + 1]
            line_kinds[i] = line_kinds[i + 1]
    else:
        for i in range(at, first, -1):
            line[i] = line[i - 1]
            line_kinds[i] = line_kinds[i - 1]
        episode[0].line_at = first + 1
    first = episode[0].arrived_at
    low, high = first, first + count - 1
    while low < high:
        middle = (low + high) >> 1
        if arrived[middle] < job:
            low = middle + 1
        else:
            high = middle
    for i in range(low, first, -1):
        arrived[i] = arrived[i - 1]
    episode[0].arrived_at = first + 1
    episode[0].waiting = count - 1
