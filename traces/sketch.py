"""Whether two traces share jobs, told from a few numbers."""

import numpy as np

from traces.trace import Trace

KEPT = 64
"""How many numbers stand for the jobs of a trace."""

ENOUGH = 3
"""How many of them must come again: rows of different traces agree by chance now and then."""


def sketch(trace: Trace) -> list[int]:
    """The KEPT lowest hashes of a trace's jobs: equal jobs have equal hashes, in whatever file they stand."""
    return [int(number) for number in np.sort(_hashes(trace))[:KEPT]]


def shares_jobs(trace: Trace, kept: list[int]) -> bool:
    """Tell whether a trace has jobs of the one that the numbers were kept of."""
    wanted = min(ENOUGH, len(kept))
    return wanted > 0 and int(np.isin(np.array(kept, np.uint64), _hashes(trace)).sum()) >= wanted


def _hashes(trace: Trace) -> np.ndarray:
    """A number (jobs,) for each job: its id, run time and GPUs, whatever its submit time was rescaled to."""
    from pandas.util import hash_array  # takes a while to import

    names = hash_array(np.array([str(name) for name in trace.job_id], dtype=object), categorize=False)
    times, gpus = hash_array(trace.run_time.astype(float)), hash_array(trace.gpus.astype(np.int64))
    hashes: np.ndarray = names * np.uint64(31) + times * np.uint64(17) + gpus
    return hashes
