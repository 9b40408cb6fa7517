"""Placers that are not compiled: the kernel asks Python for a placement in the middle of its work."""

import weakref
from itertools import count

import numba
import numpy as np

from berth.compiled import njit


class Outside:
    """A placer in Python; the kernel knows it by its handle."""

    def __init__(self) -> None:
        self.handle = next(_handles)
        _known[self.handle] = self

    def answer(self, job: int, free: np.ndarray) -> int:
        """Write a placement of a job that fits where `free` GPUs are idle; returns how many nodes it has."""
        raise NotImplementedError


_handles = count(1)
_known: weakref.WeakValueDictionary[int, Outside] = weakref.WeakValueDictionary()


def _answer(handle: int, job: int, free: np.ndarray) -> int:
    return _known[handle].answer(job, free)


@njit
def ask_outside(handle: int, job: int, free: np.ndarray) -> int:
    """Have a Python placer place a job; returns how many nodes it has."""
    with numba.objmode(nodes="int64"):
        nodes = _answer(handle, job, free)
    return nodes
