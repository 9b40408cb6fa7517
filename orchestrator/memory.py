"""The memory of a process that runs for months: what is given back goes back to the system."""

import ctypes
import gc
from pathlib import Path

LARGE, SPARE = 128 * 1024, 512 * 1024
"""Bytes from which a block is mapped by itself, and how many may stay free at the heap's end."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""The numbers of these settings in glibc's malloc.h."""

_MADV_DONTNEED = 4
"""The number of this advice in Linux's mman.h."""


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
    let_code_go("libllvmlite")


def let_code_go(library: str) -> None:
    """Give back the memory of a library's code, as the compiler's when all is compiled.

    Nothing is lost: should some of the code be needed after all, the system brings it again. Only Linux does so.
    """
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return
    for line in maps.read_text().splitlines():
        where, rights = line.split()[:2]
        if rights == "r-xp" and library in line:  # code alone: other parts have been written to by the loader
            low, high = (int(word, 16) for word in where.split("-"))
            ctypes.CDLL(None).madvise(ctypes.c_void_p(low), ctypes.c_size_t(high - low), _MADV_DONTNEED)
