"""What the kernel works on: rows of named fields, one array for each kind of thing."""

import math

import numpy as np

from allocation.placers import SHARE
from berth.compiled import njit

IN_ORDER, EASY, FIT, CONSERVATIVE, ONE_BY_ONE, ONE_BY_ONE_EASY, ACCASIM_EASY = range(7)
"""The kernel's disciplines; envs/sim/simulator.py gives them names."""

SIM = np.dtype([
    ("now", "f8"),  # s from the trace's start
    ("next", "i8"),  # number of the job that arrives next
    ("running", "i8"),  # how many jobs run
    ("started", "i8"),  # how many jobs have started
    ("seed", "i8"),  # of the placer `random`
    ("placers", "i8"),  # address of the compiled placers (allocation/outlined.py)
    ("handle", "i8"),  # number of the Python object that places (outside.py), -1 once it has failed
    ("placer", "i4"),  # allocation/placers.py
    ("tiers", "i4"),  # the highest tier on which a job may start
    ("policy", "i4"),  # priorities.py
    ("discipline", "i4"),  # IN_ORDER, EASY, ...
    ("hold", "?"),  # a chosen job holds its queue until it starts
    ("predict", "?"),  # estimates are made when a job arrives, from those that have ended
    ("ranked", "?"),  # priorities are known beforehand: the queue is a set of ranks, else a linked list
    ("by_size", "?"),  # every size class, not every queue, is a stretch of ranks
])  # fmt: skip
"""The clock, the counters and the rules: one row."""

JOB = np.dtype([
    ("submit", "f8"),  # s from the trace's start
    ("run_time", "f8"),  # s, > 0
    ("estimate", "f8"),  # s, what policies and backfilling know of run_time
    ("start", "f8"),  # s, -1 before the start
    ("held", "f8"),  # s, since when it has held its queue under `reserve`, -1 if it never has
    ("place_at", "i8"),  # where its nodes stand among the places
    ("place_count", "i4"),  # how many nodes it has, as planned or as it runs
    ("asked", "f4"),  # the n of the priority formulas
    ("gpus", "i4"),  # what is placed
    ("fewest", "i4"),  # fewest nodes that could hold it
    ("pool", "i4"),
    ("queue", "i4"),
    ("size_class", "i4"),  # its size class: same pool and same GPUs
    ("rank", "i4"),  # place in the order, where priorities are known beforehand
])  # fmt: skip
"""The jobs, sorted by submit time."""

LINK = np.dtype([
    ("planned", "f8"),  # s, start reserved under `conservative`
    ("key", "f8"),  # key given from outside
    ("after", "i4"),  # next in the queue's list in arrival order, or -1
    ("before", "i4"),  # the one before, or -1
    ("priority", "i4"),  # place among all jobs, where ranks are by size
])  # fmt: skip
"""More about each job; only there for the simulations that need it."""

QUEUE = np.dtype([
    ("waiting", "i8"),  # how many jobs wait
    ("shadow", "f8"),  # s, when the job `shadow_of` (`held` under `accasim_easy`) should fit
    ("shadow_of", "i4"),  # -1 where the shadow time must be found anew
    ("head", "i4"),  # first of the list in arrival order, or -1
    ("tail", "i4"),
    ("held", "i4"),  # job that holds the queue under `reserve`, or -1
    ("replan", "i4"),  # first rank whose reservation must be made anew under `conservative`
    ("low", "i4"),  # its ranks are low..high - 1, unless they are by size
    ("high", "i4"),
    ("size_low", "i4"),  # the size classes of its jobs are size_low..size_high - 1
    ("size_high", "i4"),
    ("touched", "?"),  # a job arrived or ended at this event
])  # fmt: skip
"""The queues: one for each pool, or one for all."""

POOL = np.dtype([
    ("gpus", "i8"),
    ("low", "i4"),  # its nodes are low..high - 1
    ("high", "i4"),
    ("never_gains", "?"),  # what does not fit cannot fit once more GPUs are taken
])  # fmt: skip
"""The pools of nodes."""

SIZE = np.dtype([
    ("first", "i8"),  # scratch: a rank, or how many jobs had started when it was seen to delay
    ("low", "i4"),  # its ranks are low..high - 1, where ranks are by size
    ("high", "i4"),
    ("unfit_at", "i8"),  # scratch: how many jobs had started when it was last seen not to fit in this walk, or -1
])  # fmt: skip
"""The size classes: jobs of one pool with equal GPUs."""

NODE = np.dtype([
    ("since", "f8"),  # s, last change
    ("busy", "f8"),  # GPU-seconds used
    ("stranded", "f8"),  # GPU-seconds idle while the node was partly used
])  # fmt: skip
"""The books of each node; capacity and free GPUs are plain arrays, as placers take them."""

END = np.dtype([("time", "f8"), ("job", "i4")])
"""The running jobs as a heap by (end, job)."""

PLACE = SHARE
"""Where jobs run: job j has the places place_at..place_at + place_count - 1."""

RECENT = 1000
"""How many of a pool's last jobs the placer `fgd` looks back on."""

HISTORY = 10
"""How many ended jobs of a kind the run-time predictor looks back on."""

MEMORY = HISTORY + 2
"""What is remembered of the ended jobs of a kind: how many, the last run times, and the sum of all ln(1 + run time)."""


@njit
def push_end(sim: np.ndarray, ends: np.ndarray, time: float, job: int) -> None:
    """Add a running job to the heap."""
    at = sim[0].running
    sim[0].running = at + 1
    while at > 0:
        parent = (at - 1) >> 1
        if ends[parent].time < time or (ends[parent].time == time and ends[parent].job < job):
            break
        ends[at].time = ends[parent].time
        ends[at].job = ends[parent].job
        at = parent
    ends[at].time = time
    ends[at].job = job


@njit
def pop_end(sim: np.ndarray, ends: np.ndarray) -> int:
    """Take the running job that ends first off the heap."""
    first = ends[0].job
    last = sim[0].running - 1
    sim[0].running = last
    time, job = ends[last].time, ends[last].job
    at = 0
    while True:
        child = 2 * at + 1
        if child >= last:
            break
        if child + 1 < last and _earlier(ends[child + 1].time, ends[child + 1].job, ends[child].time, ends[child].job):
            child += 1
        if _earlier(time, job, ends[child].time, ends[child].job):
            break
        ends[at].time = ends[child].time
        ends[at].job = ends[child].job
        at = child
    ends[at].time = time
    ends[at].job = job
    return first


@njit
def _earlier(time: float, job: int, other_time: float, other_job: int) -> bool:
    return time < other_time or (time == other_time and job < other_job)


@njit
def account(sim: np.ndarray, nodes: np.ndarray, capacity: np.ndarray, free: np.ndarray, node: int) -> None:
    """Book a node's GPU-seconds up to now; called before its free GPUs change."""
    passed = sim[0].now - nodes[node].since
    idle = free[node]
    nodes[node].busy += passed * (capacity[node] - idle)
    if 0 < idle < capacity[node]:
        nodes[node].stranded += passed * idle
    nodes[node].since = sim[0].now


@njit
def predict(similar: np.ndarray, recent: np.ndarray, job: int) -> float:
    """Expect a job to run as long as the last HISTORY ended jobs most like it did on average.

    similar (jobs, levels): the groups of a job by falling likeness, or -1. recent (groups, MEMORY): how many have
    ended, then their run times. Takes the first level that has seen an end; 3,600 s while nothing at all has ended.
    """
    for level in range(similar.shape[1]):
        group = similar[job, level]
        if group >= 0 and recent[group, 0] > 0:
            known = min(int(recent[group, 0]), HISTORY)
            total = 0.0
            for i in range(known):
                total += recent[group, 1 + i]
            return total / known
    return 3600.0


@njit
def remember(similar: np.ndarray, recent: np.ndarray, job: int, run_time: float) -> None:
    """Let the predictor see a job that has just ended."""
    for level in range(similar.shape[1]):
        group = similar[job, level]
        if group >= 0:
            recent[group, 1 + int(recent[group, 0]) % HISTORY] = run_time
            recent[group, MEMORY - 1] += math.log1p(run_time)
            recent[group, 0] += 1
