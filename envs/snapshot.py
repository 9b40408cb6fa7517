"""What a policy sees of a cluster at one moment."""

from typing import NamedTuple

import numpy as np

QUEUED, HOLDING, CANCELLED, FAILED = range(4)
"""What a job of the queue is up to: it waits, or was chosen and holds its pool until it fits, or will never start."""

UP, DRAINED, DOWN = range(3)
"""What a node is up to: only one that is up gets jobs."""


class Snapshot(NamedTuple):
    """The queued jobs, the running jobs and the nodes, as columns; all that a decision may rest on.

    A column that is None was not told. envs/wire.py has its JSON form.
    """

    now: float  # s from the trace's start
    job: np.ndarray  # (queued,) number of the job in the workload, or its name
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
    free: np.ndarray  # (nodes,) idle GPUs; none where the node is not up
    capacity: np.ndarray  # (nodes,) GPUs
    node_pool: np.ndarray  # (nodes,)
    state: np.ndarray | None = None  # (queued,) int8 QUEUED, HOLDING, ...; all wait where it is not told
    history: np.ndarray | None = None  # (queued, TOLD_OF) float32, what ended jobs told of each (envs/sim/history.py)
    nearby: np.ndarray | None = None  # (queued, NEARBY_OF) float32, what jobs nearby tell by now (envs/sim/nearby.py)
    cores: np.ndarray | None = None  # (queued,) processor cores
    memory: np.ndarray | None = None  # (queued,) MB
    running_guess: np.ndarray | None = None  # (running,) s, how long each should run: as known, or as ended jobs tell
    place_at: np.ndarray | None = None  # (running + 1,) int64, where the nodes of each running job stand below
    place_node: np.ndarray | None = None  # (places,) int32, a node
    place_gpus: np.ndarray | None = None  # (places,) int32, the GPUs that the job has there
    node_state: np.ndarray | None = None  # (nodes,) int8 UP, DRAINED, DOWN; all are up where it is not told
    node_name: np.ndarray | None = None  # (nodes,) names
    node_cores: np.ndarray | None = None  # (nodes,) processor cores
    node_free_cores: np.ndarray | None = None  # (nodes,) idle ones
    node_memory: np.ndarray | None = None  # (nodes,) MB
    node_free_memory: np.ndarray | None = None  # (nodes,) MB that is free
    pool_name: tuple[str, ...] | None = None  # the pools' names, in the order of their numbers
