"""The memory of a process that runs for months: what is given back goes back to the system."""

import ctypes
import gc

LARGE, SPARE = 128 * 1024, 512 * 1024
"""Bytes from which a block is mapped by itself, and how many may stay free at the heap's end."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""The numbers of these settings in glibc's malloc.h."""


def keep_small() -> None:
    """Have large blocks given back as soon as they are free.

    glibc maps them by themselves, too, but only until the first is given back: from then on it takes blocks of that
    size from the heap, where one small block behind them keeps all of their memory. Fixed thresholds end that. Where
    the C library is another, nothing is done.
    """
    settle = getattr(ctypes.CDLL(None), "mallopt", None)
    if settle is not None:
        settle(_M_MMAP_THRESHOLD, LARGE)
        settle(_M_TRIM_THRESHOLD, SPARE)


def settle_down() -> None:
    """Give back what loading has left, and keep the collector from looking through what stays again and again."""
    gc.collect()
    gc.freeze()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
