"""Priorities that are known before the start, as ranks."""

from typing import NamedTuple

import numpy as np

from berth.compiled import njit
from envs.sim.priorities import formula


class Order(NamedTuple):
    """Jobs by rank: every queue, or every size class, is a stretch of ranks, best first."""

    by_rank: np.ndarray  # (jobs,) int32, the job at each rank
    low: np.ndarray  # (stretches + 1,) first rank of each stretch


def size_classes(pool: np.ndarray, gpus: np.ndarray, pools: int) -> tuple[np.ndarray, np.ndarray]:
    """Number the distinct (pool, GPUs) pairs: the class of each job, and where each pool's begin (pools + 1,)."""
    width = int(gpus.max()) + 1
    pair = pool.astype(np.int64) * width + gpus
    if pools * width > 10_000_000:
        pairs, size = np.unique(pair, return_inverse=True)
    else:  # the same without sorting the jobs
        there = np.bincount(pair, minlength=pools * width) > 0
        pairs, size = np.flatnonzero(there), (np.cumsum(there) - 1).astype(np.int32)[pair]
    return size.astype(np.int32), np.searchsorted(pairs // width, np.arange(pools + 1)).astype(np.int32)


def rank_jobs(keys: np.ndarray, ties: np.ndarray, stretch: np.ndarray, stretches: int) -> Order:
    """Order jobs by key, tie key and number inside each of the stretches, which `stretch` (jobs,) numbers from 0."""
    columns = [column for column in (ties, keys, stretch) if len(column) and (column is keys or column.any())]
    by_rank = np.argsort(keys, kind="stable") if len(columns) == 1 else np.lexsort(columns)
    low = np.concatenate(([0], np.cumsum(np.bincount(stretch, minlength=stretches)))).astype(np.int32)
    return Order(by_rank.astype(np.int32), low)


def ranks(by_rank: np.ndarray) -> np.ndarray:
    """Turn jobs in order into the place of each job."""
    rank = np.empty(len(by_rank), np.int32)
    rank[by_rank] = np.arange(len(by_rank), dtype=np.int32)
    return rank


@njit
def all_keys(policy: int, submit: np.ndarray, estimate: np.ndarray, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Keys and tie keys of all jobs, for a policy that does not look at the clock; no ties where there are none."""
    keys, ties = np.empty(len(submit)), np.empty(len(submit))
    two = False
    for job in range(len(submit)):
        keys[job], ties[job] = formula(policy, submit[job], estimate[job], asked[job], 0.0, 1.0)
        two = two or ties[job] != 0.0
    return keys, (ties if two else ties[:0])
