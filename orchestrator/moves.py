"""The fewest changes that put pending jobs into a wanted order."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise

import numpy as np

NONE = -1


def headed(current: Sequence[str], wanted: Sequence[str], head: int) -> list[str]:
    """The first `head` jobs that are wanted, and behind them the others as they are."""
    first = dict.fromkeys(wanted[:head])
    return [*first, *(job for job in current if job not in first)]


def to_top(current: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Jobs to move to the top, one after the other, so that `wanted` results.

    The end of `wanted` that stands in order already is left alone; of what goes before it, the last is moved first.
    """
    place = {job: i for i, job in enumerate(current)}
    kept = len(wanted)
    while kept > 0 and (kept == len(wanted) or place[wanted[kept - 1]] < place[wanted[kept]]):
        kept -= 1
    return list(reversed(wanted[:kept]))


def to_top_by_priority(current: Sequence[str], wanted: Sequence[str], priority: Mapping[str, int]) -> list[str]:
    """The same where a job passes only those of its own priority: each priority is put into order by itself."""
    moves: list[str] = []
    for _, group in groupby(sorted(wanted, key=lambda job: -priority[job]), key=lambda job: priority[job]):
        jobs = dict.fromkeys(group)
        moves += to_top([job for job in current if job in jobs], list(jobs))
    return moves


def levels(
    current: Sequence[str], wanted: Sequence[str], level: Mapping[str, int], highest: int
) -> dict[str, int] | None:
    """New levels for as few jobs as possible, so that `wanted` results where the highest level goes first.

    Equal levels go as in `current`, which is in order of levels. Levels that are given are from the lowest that a job
    has now, and at least 1, to `highest`: a job below all others would be passed by whoever comes, if nobody looked
    after it any more. No other job has the same: LSF does not say who goes first then. None where there are not enough.

    The jobs that keep their levels are a longest chain in `wanted` that stands in order already, with room between the
    levels of neighbours for the jobs that go between them.
    """
    count = len(wanted)
    place = {job: i for i, job in enumerate(current)}
    at = np.array([place[job] for job in wanted], np.int64)
    old = np.minimum([level[job] for job in wanted], highest + 1)  # what an administrator gave may be higher still
    lowest = max(1, int(old.min(initial=highest)))
    kept = _chain(at, old, lowest, highest)
    if not kept and count > highest - lowest + 1:
        return None
    new: dict[str, int] = {}
    fences = [NONE, *kept, count]
    for left, right in pairwise(fences):
        above = highest + 1 if left == NONE else int(old[left])
        below = lowest - 1 if right == count else int(old[right])
        between = right - left - 1
        for i in range(between):
            new[wanted[left + 1 + i]] = below + (above - below) * (between - i) // (between + 1)
    return {job: value for job, value in new.items() if value != level[job]}


def first_levels(
    current: Sequence[str],
    wanted: Sequence[str],
    level: Mapping[str, int],
    highest: int,
    head: int,
    allowed: Callable[[Mapping[str, int]], bool] = lambda found: True,
    fewer: Callable[[int], None] = lambda head: None,
) -> dict[str, int] | None:
    """New levels for as many of the first `head` jobs as there are levels for that are `allowed`; None for no job.

    `fewer` is told whenever fewer jobs than before are tried.
    """
    head = min(head, len(wanted))
    while head > 0:
        found = levels(current, headed(current, wanted, head), level, highest)
        if found is not None and allowed(found):
            return found
        head = head * 3 // 4
        fewer(head)
    return None


def _chain(at: np.ndarray, old: np.ndarray, lowest: int, highest: int) -> list[int]:
    """Positions in `wanted` of the jobs that keep their levels; [] where none can."""
    count = len(at)
    length, before = np.zeros(count, np.int64), np.full(count, NONE)
    for j in range(count):
        if j == 0 or j <= highest - old[j]:
            length[j] = 1
        gaps = j - np.arange(j) - 1
        fits = (at[:j] < at[j]) & (length[:j] > 0) & ((gaps == 0) | (gaps < old[:j] - old[j]))
        reached = np.where(fits, length[:j] + 1, 0)
        if j and reached.max() > length[j]:
            before[j] = int(reached.argmax())
            length[j] = reached[before[j]]
    behind = count - 1 - np.arange(count)
    ends = np.where((behind == 0) | (behind <= old - lowest), length, 0)
    chain: list[int] = []
    j = int(ends.argmax()) if count and ends.max() > 0 else NONE
    while j != NONE:
        chain.insert(0, j)
        j = int(before[j])
    return chain
