"""A set of ranks with fast insert, remove and next: the queue of jobs whose priorities are known beforehand.

A tree of 32-bit words: bit b of word w on one level tells that word 32·w + b of the level below is not empty; on the
lowest level it tells that rank 32·w + b is in the set. Ten million ranks make five levels, so every operation touches
at most five words up and five down, and the set of ten million takes 2.6 MB.
"""

import numpy as np

from berth.compiled import njit

_DE_BRUIJN = 0x077CB531
_LOWEST_BIT = np.zeros(32, np.int64)
for _bit in range(32):
    _LOWEST_BIT[((1 << _bit) * _DE_BRUIJN & 0xFFFFFFFF) >> 27] = _bit


def words_for(ranks: int) -> np.ndarray:
    """An empty set for ranks 0..ranks-1. The first words say where each level begins: [levels, begin of each, ...]."""
    sizes = [max(1, -(-ranks // 32))]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // 32))
    header = 1 + len(sizes)
    begins = header + np.concatenate(([0], np.cumsum(sizes)[:-1]))
    words = np.zeros(header + sum(sizes), np.int64)
    words[0] = len(sizes)
    words[1:header] = begins
    return words


@njit
def insert(words: np.ndarray, rank: int) -> None:
    """Put a rank into the set."""
    rank = int(rank)  # a single-precision one would lose bit 31
    for level in range(words[0]):
        at = words[1 + level] + (rank >> 5)
        was = words[at]
        words[at] = was | (1 << (rank & 31))
        if was != 0:
            return
        rank >>= 5


@njit
def remove(words: np.ndarray, rank: int) -> None:
    """Take a rank out of the set."""
    rank = int(rank)
    for level in range(words[0]):
        at = words[1 + level] + (rank >> 5)
        words[at] &= ~(1 << (rank & 31))
        if words[at] != 0:
            return
        rank >>= 5


@njit
def next_from(words: np.ndarray, rank: int, stop: int) -> int:
    """The smallest rank in the set that is >= rank and < stop, or -1."""
    if rank >= stop:
        return -1
    levels = words[0]
    level = 0
    while True:
        rest = (words[words[1 + level] + (rank >> 5)] >> (rank & 31)) << (rank & 31)
        if rest != 0:
            break
        rank = (rank >> 5) + 1
        level += 1
        if level == levels or (rank << (5 * level)) >= stop or (rank >> 5) >= _size(words, level):
            return -1
    rank = ((rank >> 5) << 5) + _lowest(rest)
    while level > 0:
        level -= 1
        rank = (rank << 5) + _lowest(words[words[1 + level] + rank])
    return rank if rank < stop else -1


@njit
def _size(words: np.ndarray, level: int) -> int:
    """How many words a level has."""
    end = words[2 + level] if level + 1 < words[0] else len(words)
    return end - words[1 + level]


@njit
def _lowest(word: int) -> int:
    """The number of the lowest bit that is set, by a De Bruijn sequence."""
    return _LOWEST_BIT[(((word & -word) * _DE_BRUIJN) & 0xFFFFFFFF) >> 27]


@njit
def note_least(words: np.ndarray, least: np.ndarray, values: np.ndarray, rank: int) -> None:
    """Bring the least value below each word up to date after a rank was put in or taken out.

    least (words,): the smallest of values (ranks,) among the ranks in the set below each word.
    """
    for level in range(words[0]):
        at = words[1 + level] + (rank >> 5)
        smallest = np.inf
        rest = words[at]
        while rest != 0:
            below = ((rank >> 5) << 5) + _lowest(rest)
            smallest = min(smallest, values[below] if level == 0 else least[words[level] + below])
            rest &= rest - 1
        if least[at] == smallest:
            return
        least[at] = smallest
        rank >>= 5


@njit
def next_at_most(words: np.ndarray, least: np.ndarray, values: np.ndarray, rank: int, stop: int, limit: float) -> int:
    """The smallest rank in the set that is >= rank and < stop and has a value <= limit, or -1."""
    if rank >= stop:
        return -1
    level = 0
    while True:
        at = _first_at_most(words, least, values, level, rank, limit)
        if at >= 0:
            break
        rank = (rank >> 5) + 1
        level += 1
        if level == words[0] or (rank << (5 * level)) >= stop or (rank >> 5) >= _size(words, level):
            return -1
    while level > 0:
        level -= 1
        at = _first_at_most(words, least, values, level, at << 5, limit)
    return at if at < stop else -1


@njit
def _first_at_most(
    words: np.ndarray, least: np.ndarray, values: np.ndarray, level: int, rank: int, limit: float
) -> int:
    """The first of a level that is >= rank in rank's own word and has a value <= limit below it, or -1."""
    rest = (words[words[1 + level] + (rank >> 5)] >> (rank & 31)) << (rank & 31)
    while rest != 0:
        here = ((rank >> 5) << 5) + _lowest(rest)
        if (values[here] if level == 0 else least[words[level] + here]) <= limit:
            return here
        rest &= rest - 1
    return -1
