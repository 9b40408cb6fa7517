"""Placers that are not compiled: the kernel asks Python for a placement in the middle of its work."""

import ctypes
import weakref
from collections.abc import Callable
from itertools import count
from typing import Any

import numba
import numpy as np

from berth.compiled import njit

Answer = Callable[[int, np.ndarray], int]
"""Writes a placement of a job that fits where so many GPUs are free (nodes,); returns how many nodes it has."""

_handles = count(1)
_known: dict[int, tuple["weakref.ref[Any]", Callable[..., int]]] = {}


def register(answer: Answer) -> int:
    """Let the kernel know a method that places; returns the handle to call it by, for as long as its object lives."""
    handle = next(_handles)
    owner, function = answer.__self__, answer.__func__  # type: ignore[attr-defined]
    _known[handle] = weakref.ref(owner), function
    weakref.finalize(owner, _known.pop, handle, None).atexit = False
    return handle


def _answer(handle: int, job: int, address: int, nodes: int) -> int:
    owner, function = _known[handle]
    return function(owner(), job, np.ctypeslib.as_array((ctypes.c_int32 * nodes).from_address(address)))


@njit
def _compiled_address(array: np.ndarray) -> int:
    return array.ctypes.data


def _plain_address(array: np.ndarray) -> int:
    return int(array.ctypes.data)


address_of = _plain_address if numba.config.DISABLE_JIT else _compiled_address
"""Where an array's numbers are."""


@njit
def ask_outside(handle: int, job: int, free: np.ndarray) -> int:
    """Have a Python placer place a job; returns how many nodes it has.

    Only numbers pass the border: a C function that was compiled in another process cannot make an array for Python.
    """
    address, count = address_of(free), len(free)
    with numba.objmode(nodes="int64"):
        nodes = _answer(handle, job, address, count)
    return nodes
