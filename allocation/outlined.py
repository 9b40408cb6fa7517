"""The placers behind a function pointer.

Numba links the code of every function into each compiled function that calls it, directly or not, and optimises it
there again. With all placers in each of the kernel's functions, compiling takes far longer. So the placers are one
compiled C function, and the kernel is told its address.
"""

from functools import lru_cache
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from allocation.placers import SHARE, fits, place
from berth.compiled import njit

_INTS = 13
_POINTERS = 5


@lru_cache(maxsize=1)
def placers_address() -> int:
    """The address of the compiled placers, which stays the same in a process; 0 where nothing is compiled."""
    if numba.config.DISABLE_JIT:
        return 0
    number, small, large = types.int64, types.CPointer(types.int32), types.CPointer(types.int64)
    share = types.CPointer(numba.from_dtype(SHARE))
    signature = number(*[number] * _INTS, small, small, large, share, large)
    compiled = numba.cfunc(signature, cache=True, error_model="numpy")(_placers)
    _kept.append(compiled)
    return int(compiled.address)


_kept: list[Any] = []


def _placers(
    only_fits: int,
    code: int,
    tiers: int,
    low: int,
    high: int,
    gpus: int,
    fewest: int,
    seed: int,
    at: int,
    larger_size: int,
    out_size: int,
    tally_size: int,
    nodes: int,
    free_at: Any,
    capacity_at: Any,
    larger_at: Any,
    out_at: Any,
    tally_at: Any,
) -> int:
    """`fits` or `place` on arrays of which the addresses are known."""
    free, capacity = numba.carray(free_at, nodes), numba.carray(capacity_at, nodes)
    tally = numba.carray(tally_at, tally_size)
    if only_fits:
        return int(fits(code, tiers, free, capacity, low, high, gpus, fewest, tally))
    larger, out = numba.carray(larger_at, larger_size), numba.carray(out_at, out_size)
    return place(code, tiers, free, capacity, low, high, gpus, fewest, larger, seed, out, at, tally)


@intrinsic
def _call(_typing: Any, address: Any, numbers: Any) -> Any:
    """Call the C function at an address with a tuple of numbers, the last few of which are addresses too."""

    def _generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        word, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
        arguments = [builder.extract_value(values[1], i) for i in range(_INTS + _POINTERS)]
        arguments = arguments[:_INTS] + [builder.inttoptr(value, pointer) for value in arguments[_INTS:]]
        kind = ir.FunctionType(word, [word] * _INTS + [pointer] * _POINTERS)
        return builder.call(builder.inttoptr(values[0], kind.as_pointer()), arguments)

    return types.int64(address, numbers), _generate


@njit
def _by_address(
    address: int,
    only_fits: bool,
    code: int,
    tiers: int,
    free: np.ndarray,
    capacity: np.ndarray,
    low: int,
    high: int,
    gpus: int,
    fewest: int,
    larger: np.ndarray,
    seed: int,
    out: np.ndarray,
    at: int,
    tally: np.ndarray,
) -> int:
    """`place`, or whether it would find a placement, by the function at an address."""
    return _call(
        np.int64(address),
        (
            np.int64(only_fits),
            np.int64(code),
            np.int64(tiers),
            np.int64(low),
            np.int64(high),
            np.int64(gpus),
            np.int64(fewest),
            np.int64(seed),
            np.int64(at),
            np.int64(larger.size),
            np.int64(out.size),
            np.int64(tally.size),
            np.int64(free.size),
            np.int64(free.ctypes.data),
            np.int64(capacity.ctypes.data),
            np.int64(larger.ctypes.data),
            np.int64(out.ctypes.data),
            np.int64(tally.ctypes.data),
        ),
    )


def _plain(
    _address: int,
    only_fits: bool,
    code: int,
    tiers: int,
    free: np.ndarray,
    capacity: np.ndarray,
    low: int,
    high: int,
    gpus: int,
    fewest: int,
    larger: np.ndarray,
    seed: int,
    out: np.ndarray,
    at: int,
    tally: np.ndarray,
) -> int:
    """The same where nothing is compiled."""
    if only_fits:
        return int(fits(code, tiers, free, capacity, low, high, gpus, fewest, tally))
    return place(code, tiers, free, capacity, low, high, gpus, fewest, larger, seed, out, at, tally)


placing = _plain if numba.config.DISABLE_JIT else _by_address
