"""Random numbers in named streams, so that adding one use does not shift another."""

import zlib

import numpy as np


def stream(seed: int, name: str) -> np.random.Generator:
    """The generator for one purpose: equal seed and name give equal numbers, other names independent ones."""
    return np.random.default_rng([seed & 0xFFFFFFFF, zlib.crc32(name.encode())])
