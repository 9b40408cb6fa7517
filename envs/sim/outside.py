"""Placers that are not compiled: the kernel asks Python for a placement in the middle of its work."""

import weakref
from collections.abc import Callable
from itertools import count

import numba
import numpy as np

from berth.compiled import njit

Answer = Callable[[int, np.ndarray], int]
"""Writes a placement of a job that fits where so many GPUs are free (nodes,); returns how many nodes it has."""

_handles = count(1)
_known: dict[int, "weakref.WeakMethod[Answer]"] = {}


def register(answer: Answer) -> int:
    """Let the kernel know a method that places; returns the handle to call it by, for as long as its object lives."""
    handle = next(_handles)
    _known[handle] = weakref.WeakMethod(answer, lambda _: _known.pop(handle, None))
    return handle


def _answer(handle: int, job: int, free: np.ndarray) -> int:
    method = _known[handle]()
    assert method is not None
    return method(job, free)


@njit
def ask_outside(handle: int, job: int, free: np.ndarray) -> int:
    """Have a Python placer place a job; returns how many nodes it has."""
    with numba.objmode(nodes="int64"):
        nodes = _answer(handle, job, free)
    return nodes
