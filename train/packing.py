"""Observations packed to two bytes a number, as the networks see them."""

import numpy as np

STEPS = 65535
"""Into how many steps the numbers of an observation, all in [0, 1], are divided to be kept."""


def pack(numbers: np.ndarray) -> np.ndarray:
    """Numbers in [0, 1] as whole numbers of two bytes; the networks see what comes of it, also when they act."""
    return (numbers * np.float32(STEPS) + np.float32(0.5)).astype(np.uint16)


def unpack(packed: np.ndarray) -> np.ndarray:
    """The numbers that the networks see."""
    return packed.astype(np.float32) * np.float32(1.0 / STEPS)
