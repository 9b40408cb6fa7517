"""What a policy sees of a cluster at one moment."""

from typing import NamedTuple

import numpy as np


class Snapshot(NamedTuple):
    """The queued jobs, the running jobs and the nodes, as columns; all that a decision may rest on."""

    now: float  # s from the trace's start
    job: np.ndarray  # (queued,) number of the job in the workload
    submit: np.ndarray  # (queued,) s
    wait: np.ndarray  # (queued,) s, now - submit
    gpus: np.ndarray  # (queued,)
    run_time: np.ndarray  # (queued,) s, as far as --runtime_info tells; NaN where it is hidden
    pool: np.ndarray  # (queued,)
    running_job: np.ndarray  # (running,)
    running_start: np.ndarray  # (running,) s
    running_gpus: np.ndarray  # (running,)
    running_pool: np.ndarray  # (running,)
    running_end: np.ndarray  # (running,) s, expected: start + run_time as far as it is known
    free: np.ndarray  # (nodes,) idle GPUs
    capacity: np.ndarray  # (nodes,) GPUs
    node_pool: np.ndarray  # (nodes,)
