"""Episodes played, compiled: one call steps many of them, each on its own arrays, in several threads.

Numba links all code that a compiled function reaches into it, and optimises it there again. So `play` is one compiled C
function that finds an episode's arrays by a table of addresses, and the loop over many episodes, which Numba runs in
parallel, is told where that function is.
"""

import ctypes
import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from berth.compiled import inlined, njit
from envs.sim.cards import CARD, EPISODE, KEY, KIND, LOOK
from envs.sim.choosing import move_on, next_event, take, to_decision
from envs.sim.line import first_choosable, sort_lines
from envs.sim.observing import fill_window, write_mask, write_prior, write_rows
from envs.sim.outlook import look_at_pools
from envs.sim.reckoning import close_account, note_baseline
from envs.sim.state import END, JOB, LINK, NODE, PLACE, POOL, QUEUE, SIM, SIZE

BASELINE, BEGIN, STEP, VIEW = range(4)
"""What `play` can do: play the baseline to the end, go to the first decision, take an action, see what is laid out."""

STUCK = -1
"""What `play` returns where jobs wait, none can be chosen and nothing will happen, or a placement failed; else 0."""

ARRAYS = (
    "sim", "jobs", "links", "queues", "pools", "sizes", "capacity", "free", "nodes", "ends", "places", "bits",
    "by_rank", "least", "lengths", "similar", "recent", "trial", "mix", "tally", "episode", "cards", "keys",
    "kinds", "line", "line_kinds", "arrived", "base", "by_end", "looks", "told", "spare", "seen", "counts", "later",
    "values", "slots", "rows", "cluster", "mask", "prior", "history", "nearby", "near", "past",
)  # fmt: skip
"""The arrays of an episode in the order in which `play` takes them."""


@inlined
def play(
    what: int,
    action: int,
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
    line: np.ndarray,
    line_kinds: np.ndarray,
    arrived: np.ndarray,
    base: np.ndarray,
    by_end: np.ndarray,
    looks: np.ndarray,
    told: np.ndarray,
    spare: np.ndarray,
    seen: np.ndarray,
    counts: np.ndarray,
    later: np.ndarray,
    values: np.ndarray,
    slots: np.ndarray,
    rows: np.ndarray,
    cluster: np.ndarray,
    mask: np.ndarray,
    prior: np.ndarray,
    history: np.ndarray,
    nearby: np.ndarray,
    near: np.ndarray,
    past: np.ndarray,
) -> int:
    """Play on until a decision is wanted, or the episode is over; `action` is a slot that can be chosen."""
    episode[0].reward = 0.0
    chosen, found = -1, True
    if what == STEP:
        episode[0].steps += 1
        chosen = slots[action] if action < episode[0].shown else -1
        if episode[0].truncated or episode[0].left == 0:
            found = False  # it was over when it began
        elif chosen < 0:
            found = next_event(sim, jobs, ends) <= episode[0].horizon
    while found:
        if what == VIEW:  # nobody moves: all has happened already
            if episode[0].changes:
                sort_lines(sim, jobs, links, pools, episode, cards, keys, looks, line, line_kinds, arrived)
        elif chosen >= 0:
            take(
                sim, jobs, links, queues, pools, sizes, capacity, free, nodes, ends, places, bits, by_rank, least,
                lengths, trial, mix, tally, episode, cards, keys, kinds, looks, line, line_kinds, arrived, base, by_end,
                chosen,
            )  # fmt: skip
            if sim[0].handle < 0:
                return STUCK
        else:  # an episode begins with the event at its first second
            move_on(
                sim, jobs, links, queues, pools, capacity, free, nodes, ends, places, bits, least, lengths, similar,
                recent, mix, episode, cards, keys, kinds, looks, line, line_kinds, arrived, told, history,
            )  # fmt: skip
        found = to_decision(
            sim, jobs, links, queues, pools, sizes, capacity, free, nodes, ends, places, bits, by_rank, least, lengths,
            similar, recent, trial, mix, tally, episode, cards, keys, kinds, looks, line, line_kinds, arrived, base,
            by_end, told, history, seen, counts,
        )  # fmt: skip
        if what != BASELINE or not found:
            break
        chosen = first_choosable(keys, kinds, looks, line, line_kinds)
    if episode[0].left > 0 and not found and episode[0].horizon == np.inf:
        return STUCK
    if what == BASELINE:
        note_baseline(jobs, episode, base, by_end)
        return 0
    if episode[0].left > 0 and not found:
        sim[0].now = episode[0].horizon
    if what in (BEGIN, VIEW):
        episode[0].truncated = episode[0].left > 0 and not found
    else:
        _close(sim, jobs, episode, base, found)
    look_at_pools(
        sim, jobs, queues, pools, capacity, free, ends, places, mix, tally, episode, cards, kinds, looks, spare, seen,
        counts, later, values, cluster,
    )  # fmt: skip
    fill_window(queues, episode, cards, keys, kinds, looks, line, line_kinds, arrived, slots)
    write_rows(sim, jobs, episode, cards, kinds, looks, history, nearby, near, past, slots, rows)
    write_mask(sim, jobs, ends, episode, cards, kinds, slots, mask)
    if episode[0].prior >= 0:
        write_prior(sim, jobs, links, pools, episode, mask, slots, prior)
    return 0


@inlined
def _close(
    sim: np.ndarray,
    jobs: np.ndarray,
    episode: np.ndarray,
    base: np.ndarray,
    found: bool,
) -> None:
    """Tell whether the episode is over, and what the last decision has earned."""
    row = episode[0]
    row.terminated = row.left == 0
    row.truncated = row.left > 0 and (not found or 0 < row.max_steps <= row.steps)
    if row.terminated or row.truncated:
        close_account(sim, jobs, episode, base)
    if row.dense or row.terminated or row.truncated:
        row.reward = row.gain - row.paid
        row.paid = row.gain


@intrinsic
def _pointer(_typing: Any, address: Any) -> Any:
    """An address as a pointer."""

    def _generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], context.get_value_type(signature.return_type))

    return types.voidptr(address), _generate


@njit
def _column(table: np.ndarray, i: int, kind: Any) -> np.ndarray:
    """The array of number i, if it has one dimension."""
    return numba.carray(_pointer(table[i, 0]), table[i, 1], kind)


@njit
def _table(table: np.ndarray, i: int, kind: Any) -> np.ndarray:
    """The array of number i, if it has two dimensions."""
    return numba.carray(_pointer(table[i, 0]), (table[i, 1], table[i, 2]), kind)


def _played(what: int, action: int, table_at: Any) -> int:
    """`play` on the arrays of a table: address, rows and columns of each."""
    table = numba.carray(table_at, (len(ARRAYS), 3))
    return play(
        what,
        action,
        _column(table, 0, SIM),
        _column(table, 1, JOB),
        _column(table, 2, LINK),
        _column(table, 3, QUEUE),
        _column(table, 4, POOL),
        _column(table, 5, SIZE),
        _column(table, 6, np.int32),
        _column(table, 7, np.int32),
        _column(table, 8, NODE),
        _column(table, 9, END),
        _column(table, 10, PLACE),
        _column(table, 11, np.int64),
        _column(table, 12, np.int32),
        _column(table, 13, np.float64),
        _column(table, 14, np.float64),
        _table(table, 15, np.int32),
        _table(table, 16, np.float64),
        _column(table, 17, np.int32),
        _table(table, 18, np.int64),
        _column(table, 19, np.int64),
        _column(table, 20, EPISODE),
        _column(table, 21, CARD),
        _column(table, 22, KEY),
        _column(table, 23, KIND),
        _column(table, 24, np.int32),
        _column(table, 25, np.int32),
        _column(table, 26, np.int32),
        _column(table, 27, np.float64),
        _column(table, 28, np.int32),
        _column(table, 29, LOOK),
        _table(table, 30, np.float32),
        _column(table, 31, PLACE),
        _column(table, 32, np.int32),
        _table(table, 33, np.int64),
        _column(table, 34, np.float64),
        _column(table, 35, np.float32),
        _column(table, 36, np.int32),
        _table(table, 37, np.float32),
        _column(table, 38, np.float32),
        _column(table, 39, np.int8),
        _column(table, 40, np.float32),
        _table(table, 41, np.float32),
        _table(table, 42, np.float32),
        _table(table, 43, np.int32),
        _table(table, 44, np.float64),
    )


@lru_cache(maxsize=1)
def _compiled() -> Any:
    """`play` as a C function."""
    signature = types.int64(types.int64, types.int64, types.CPointer(types.int64))
    return numba.cfunc(signature, cache=True, error_model="numpy")(_played)


@intrinsic
def _call(_typing: Any, address: Any, what: Any, action: Any, table: Any) -> Any:
    """Call the C function at an address."""

    def _generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        word, pointer = ir.IntType(64), ir.IntType(64).as_pointer()
        kind = ir.FunctionType(word, [word, word, pointer])
        function = builder.inttoptr(values[0], kind.as_pointer())
        return builder.call(function, [values[1], values[2], builder.inttoptr(values[3], pointer)])

    return types.int64(address, what, action, table), _generate


@numba.njit(cache=True, error_model="numpy", parallel=True, nogil=True)
def _play_many(address: int, what: np.ndarray, actions: np.ndarray, tables: np.ndarray, answers: np.ndarray) -> None:
    for e in numba.prange(len(tables)):
        if what[e] >= 0:
            answers[e] = _call(np.int64(address), what[e], actions[e], np.int64(tables[e].ctypes.data))


def play_one(what: int, action: int, table: np.ndarray, arrays: Sequence[np.ndarray]) -> int:
    """Play one episode on; `table` (arrays, 3) says where its arrays are."""
    if numba.config.DISABLE_JIT:
        return play(what, action, *arrays)
    return int(_compiled().ctypes(what, action, table.ctypes.data_as(_POINTER)))


def play_many(what: np.ndarray, actions: np.ndarray, tables: np.ndarray, answers: np.ndarray) -> None:
    """Play many episodes on, in several threads; what (episodes,) is -1 where one shall stand still.

    tables (episodes, arrays, 3) says where their arrays are; answers (episodes,) is written to.
    """
    process = os.getpid()
    if _parallel.setdefault("process", process) != process:  # OpenMP's threads do not live on in a fork
        for e in np.flatnonzero(what >= 0):
            answers[e] = play_one(int(what[e]), int(actions[e]), tables[e], ())
        return
    _play_many(_compiled().address, what, actions, tables, answers)


_POINTER = ctypes.POINTER(ctypes.c_int64)
_parallel: dict[str, int] = {}
"""The process that has begun to play in parallel."""
