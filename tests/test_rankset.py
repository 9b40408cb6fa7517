"""The set of ranks against Python's own sets."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.sim.rankset import insert, next_at_most, next_from, note_least, remove, words_for

SIZES = st.sampled_from([1, 31, 32, 33, 1000, 1024, 1025, 40_000])


@given(SIZES, st.data())
@settings(max_examples=60)
def test_insert_remove_next(size, data):
    words, true = words_for(size), set()
    ranks = st.integers(0, size - 1)
    for rank in data.draw(st.lists(ranks, max_size=60)):
        if rank in true:
            true.remove(rank)
            remove(words, rank)
        else:
            true.add(rank)
            insert(words, rank)
    for _ in range(20):
        low, stop = data.draw(st.integers(0, size)), data.draw(st.integers(0, size))
        assert next_from(words, low, stop) == min((r for r in true if low <= r < stop), default=-1)


@given(SIZES, st.data())
@settings(max_examples=60)
def test_next_with_a_small_value(size, data):
    words, true = words_for(size), set()
    least = np.full(len(words), np.inf)
    values = np.array([(r * 7919) % 101 for r in range(size)], float)
    for rank in data.draw(st.lists(st.integers(0, size - 1), max_size=60)):
        if rank in true:
            true.remove(rank)
            remove(words, rank)
        else:
            true.add(rank)
            insert(words, rank)
        note_least(words, least, values, rank)
    for _ in range(20):
        low, stop = data.draw(st.integers(0, size)), data.draw(st.integers(0, size))
        limit = data.draw(st.integers(-1, 101))
        expected = min((r for r in true if low <= r < stop and values[r] <= limit), default=-1)
        assert next_at_most(words, least, values, low, stop, float(limit)) == expected
