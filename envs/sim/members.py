"""Who is there when an episode begins, compiled: found in the baseline's replay of the whole trace."""

import numpy as np

from berth.compiled import njit

ROSTER = np.dtype([
    ("submit", "f8"),
    ("run_time", "f8"),
    ("estimate", "f8"),  # s, as it was when the job arrived
    ("given", "f8"),  # key given from outside
    ("start", "f8"),  # s, in the baseline's replay
    ("end", "f8"),
    ("held", "f8"),  # s, since when it has held its queue there, -1 if it never has
    ("place_at", "i8"),  # its places there
    ("place_count", "i4"),
    ("gpus", "i4"),
    ("fewest", "i4"),  # fewest nodes that could hold it
    ("most", "i4"),  # most nodes that the placer may use for it
    ("pool", "i4"),
    ("size_class", "i4"),
])  # fmt: skip
"""The jobs of a whole trace, with what became of them when the baseline replayed it."""

EVERY = 256
"""After how many jobs, at least, the jobs that have not ended are listed; and how many lists there are at most."""


@njit
def list_unended(roster: np.ndarray, every: int) -> tuple[np.ndarray, np.ndarray]:
    """At every so many arrivals, the earlier jobs that have not ended: where each list begins, and all lists."""
    lists = len(roster) // every + 1
    begin = np.zeros(lists + 1, np.int64)
    found = np.empty(1024, np.int32)
    count = 0
    for i in range(lists):
        now = roster[i * every].submit if i * every < len(roster) else np.inf
        for old in range(begin[max(i - 1, 0)], begin[i]):
            if roster[found[old]].end >= now:
                found = _room(found, count)
                found[count] = found[old]
                count += 1
        for job in range(max(i - 1, 0) * every, i * every):
            if roster[job].end >= now:
                found = _room(found, count)
                found[count] = job
                count += 1
        begin[i + 1] = count
    return begin, found[:count].copy()


@njit
def _room(found: np.ndarray, count: int) -> np.ndarray:
    """The same array, with room for one more."""
    if count < len(found):
        return found
    larger = np.empty(2 * len(found), np.int32)
    larger[:count] = found
    return larger


@njit
def members(
    roster: np.ndarray, every: int, begin: np.ndarray, unended: np.ndarray, since: int, first: int, count: int
) -> np.ndarray:
    """The jobs of an episode: those before `first` that run or wait when it arrives, then the window's.

    Of those that wait, only jobs from number `since` on are there: the others are of an earlier split, whose jobs may
    have been learned from.
    """
    now = roster[first].submit
    at = first // every
    found = np.empty(begin[at + 1] - begin[at] + first - at * every + count, np.int32)
    n = 0
    for i in range(begin[at], begin[at + 1]):
        n = _add(roster, found, n, unended[i], since, now)
    for job in range(at * every, first):
        n = _add(roster, found, n, job, since, now)
    for job in range(first, first + count):
        found[n] = job
        n += 1
    return found[:n]


@njit
def _add(roster: np.ndarray, found: np.ndarray, n: int, job: int, since: int, now: float) -> int:
    """Put a job behind the `n` that were found, if it is there; returns how many there are then."""
    if roster[job].end < now or (job < since and roster[job].start >= now):
        return n
    found[n] = job
    return n + 1


@njit
def running_first(roster: np.ndarray, chosen: np.ndarray, count: int) -> tuple[np.ndarray, int]:
    """The jobs of an episode, those before the window's `count` that run when it begins first; and how many run."""
    now, before = roster[chosen[len(chosen) - count]].submit, len(chosen) - count
    found = chosen.copy()
    n = 0
    for waits in (False, True):
        for i in range(before):
            if (roster[chosen[i]].start >= now) == waits:
                found[n] = chosen[i]
                n += 1
        if not waits:
            running = n
    return found, running
