"""Whether two traces share jobs, told from a few bits for each job."""

import numpy as np

from traces.trace import Trace

BITS, HASHES = 8, 3
"""Bits for each job, and how many of them a job sets: about 3 % of foreign jobs look known by chance."""

ENOUGH, SHARE = 3, 0.1
"""How many jobs of a trace must look known, and which share of them, before it is said to have some."""


def sketch(trace: Trace) -> np.ndarray:
    """A Bloom filter of a trace's jobs: uint8, a byte for each job."""
    size = max(1, len(trace)) * BITS
    bits = np.zeros(size, np.uint8)
    bits[_places(trace, size)] = 1
    return np.packbits(bits)


def shares_jobs(trace: Trace, kept: np.ndarray) -> bool:
    """Tell whether a trace has jobs of the one that the bits were kept of."""
    if not len(kept) or not len(trace):
        return False
    bits = np.unpackbits(kept)
    known = int(bits[_places(trace, len(bits))].all(axis=1).sum())
    return known >= min(ENOUGH, len(trace)) and known >= SHARE * len(trace)


def _places(trace: Trace, size: int) -> np.ndarray:
    """The bits (jobs, HASHES) of each job: by its id, run time and GPUs, whatever its submit time was rescaled to."""
    from pandas.util import hash_array  # takes a while to import

    names = hash_array(np.array([str(name) for name in trace.job_id], dtype=object), categorize=False)
    times, gpus = hash_array(trace.run_time.astype(float)), hash_array(trace.gpus.astype(np.int64))
    one = names * np.uint64(31) + times * np.uint64(17) + gpus
    other = hash_array(one) | np.uint64(1)
    places: np.ndarray = (one[:, None] + np.arange(HASHES, dtype=np.uint64) * other[:, None]) % np.uint64(size)
    return places.astype(np.int64)
