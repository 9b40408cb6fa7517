"""Log scales, compiled, fast enough to be taken for every job at every decision."""

from typing import Any

import numpy as np

from berth.compiled import njit

LONGEST = 1e8
"""Seconds that log scales reach to, about three years."""

MANY_GPUS, MANY_JOBS = 1e4, 1e6
"""Where the log scales of GPUs and of waiting jobs end."""

_ROOT_HALF = np.int32(0x3F3504F3)  # the bits of 1/√2 in single precision
_MANTISSA = np.int32(23)
_LN_2 = np.float32(np.log(2.0))
_ONE, _TWO = np.float32(1.0), np.float32(2.0)
_THIRD, _FIFTH, _SEVENTH = np.float32(2 / 3), np.float32(2 / 5), np.float32(2 / 7)
PER_LONGEST = np.float32(1.0 / np.log1p(LONGEST))
"""1 / ln(1 + LONGEST)."""


@njit
def ln(x: Any) -> Any:
    """The natural logarithm of x > 0 in single precision.

    x = 2^e · m with m in [1/√2, √2); ln m = 2 artanh((m - 1) / (m + 1)), of which four terms of the series are enough.
    A call of the C library's logarithm takes five times as long.
    """
    bits = np.float32(x).view(np.int32)
    e = np.int32((bits - _ROOT_HALF) >> _MANTISSA)
    m = np.int32(bits - (e << _MANTISSA)).view(np.float32)
    s = (m - _ONE) / (m + _ONE)
    q = s * s
    return np.float32(e) * _LN_2 + s * (_TWO + q * (_THIRD + q * (_FIFTH + q * _SEVENTH)))


@njit
def scaled(seconds: float) -> Any:
    """Seconds on a log scale from 0 to 1: ln(1 + seconds) / ln(1 + LONGEST)."""
    return min(ln(_ONE + np.float32(seconds)) * PER_LONGEST, _ONE)
