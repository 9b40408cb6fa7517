"""The compiled priority formulas: one number per policy, the job with the lowest key goes first."""

import math

import numpy as np

from berth.compiled import njit

FCFS, LCFS, SMALLEST, LARGEST, SJF, LPF, SAF, LAF, SEXP, LEXP, SRF, LRF, MULTIFACTOR, F1, WFP3, UNICEP = range(16)
F2, F3, F4, SPT, SMITH = 16, 17, 18, 19, 20
GIVEN = 100
"""Keys that are given from outside."""

MAX_AGE = 12 * 3600.0
"""The waiting time, in seconds, that is worth as much as the whole size factor in multifactor."""


@njit
def key(sim: np.ndarray, jobs: np.ndarray, links: np.ndarray, pools: np.ndarray, job: int) -> tuple[float, float]:
    """The key of a queued job now, and a second one for ties; what is equal in both goes in submit order."""
    if sim[0].policy == GIVEN:
        return links[job].key, 0.0
    s = jobs[job].submit
    pool = float(pools[jobs[job].pool].gpus)
    return formula(sim[0].policy, s, jobs[job].estimate, float(jobs[job].asked), sim[0].now - s, pool)


@njit
def formula(policy: int, s: float, r: float, n: float, w: float, pool: float) -> tuple[float, float]:
    """The formulas themselves: key and tie key.

    s submit time from the trace's start, r what is known of the run time, n GPUs, w waiting time so far, pool the GPUs
    of its pool. docs/semantics.md lists them.
    """
    if policy == FCFS:
        return s, 0.0
    if policy == LCFS:
        return -s, 0.0
    if policy == SMALLEST:
        return n, 0.0
    if policy == LARGEST:
        return -n, 0.0
    if policy == SJF:
        return r, n
    if policy == SPT:
        return r, 0.0
    if policy == LPF:
        return -r, 0.0
    if policy == SAF:
        return r * n, 0.0
    if policy == SMITH:
        return r * n * max(r, 10.0), 0.0
    if policy == LAF:
        return -r * n, 0.0
    if policy == SEXP:
        return (w + r) / n, 0.0
    if policy == LEXP:
        return -(w + r) / n, 0.0
    if policy == SRF:
        return r / n, 0.0
    if policy == LRF:
        return -r / n, 0.0
    if policy == MULTIFACTOR:
        return -(1000.0 * w / MAX_AGE + 1000.0 * (1.0 - n / pool)), 0.0
    return _by_waiting(policy, r, n, w) if policy in (WFP3, UNICEP) else _by_regression(policy, s, r, n)


@njit
def _by_waiting(policy: int, r: float, n: float, w: float) -> tuple[float, float]:
    """WFP3 and UNICEP, of Tang et al. (CLUSTER 2009)."""
    if policy == WFP3:
        ratio = w / r
        return -(ratio * ratio * ratio) * n, 0.0
    return -(w + 1e-15) / (math.log2(n + 1e-15) * r), 0.0


@njit
def _by_regression(policy: int, s: float, r: float, n: float) -> tuple[float, float]:
    """F1 to F4, of Carastan-Santos and de Camargo (SC 2017); 0.1 stands for what has no logarithm."""
    log_s = math.log10(s if s > 0.0 else 0.1)
    if policy == F1:
        return math.log10(r if r > 0.0 else 0.1) * n + 870.0 * log_s, 0.0
    if policy == F2:
        return math.sqrt(r) * n + 25600.0 * log_s, 0.0
    if policy == F3:
        return r * n + 6860000.0 * log_s, 0.0
    return r * math.sqrt(n) + 530000.0 * log_s, 0.0


@njit
def has_ratios(policy: int) -> bool:
    """Whether keys are positive and their ratios mean something: times, sizes, areas."""
    return policy in (SMALLEST, SJF, SPT, SAF, SEXP, SRF, SMITH)


@njit
def ranking(keys: np.ndarray, ties: np.ndarray) -> np.ndarray:
    """In which order jobs go by keys (jobs,), then by keys for ties; what is equal stays in order."""
    by_tie = np.argsort(ties, kind="mergesort")
    return by_tie[np.argsort(keys[by_tie], kind="mergesort")]
