"""Jobs that name a host each: queue, hosts and clock of many episodes, compiled.

A job asks for cores and memory of one host. Queued jobs are offered in the order of their submission, those that fit
nowhere now passed over; whoever decides names a host that has room. At equal times jobs end before others arrive.
"""

import numba
import numpy as np

from berth.compiled import njit

JOB = np.dtype([
    ("submit", "f8"), ("run_time", "f8"), ("cores", "i8"), ("memory", "i8"), ("start", "f8"), ("host", "i8"),
])  # fmt: skip
"""A job; `start` and `host` are -1 until it has been placed."""

HOST = np.dtype([("cores", "i8"), ("memory", "i8"), ("free_cores", "i8"), ("free_memory", "i8")])
"""A host: what it has, and what of it is free."""

COURSE = np.dtype([
    ("now", "f8"), ("jobs", "i8"), ("arrived", "i8"), ("queued", "i8"), ("running", "i8"), ("at", "i8"),
    ("current", "i8"), ("horizon", "f8"), ("core_area", "f8"), ("memory_area", "f8"), ("imbalance_area", "f8"),
    ("wait_area", "f8"), ("ended", "i8"), ("ended_in_time", "i8"), ("decisions", "i8"), ("makespan", "f8"),
    ("earned", "f8"), ("reward", "f8"), ("over", "i8"), ("most_cores", "i8"), ("most_memory", "i8"),
    ("cores", "f8"), ("memory", "f8"), ("free_cores", "f8"), ("free_memory", "f8"), ("use", "f8"),
    ("use_squared", "f8"),
])  # fmt: skip
"""Where an episode is: the clock, counters, areas under curves up to the horizon, sums over all hosts.

`use` and `use_squared` are sums of the hosts' core use and of its squares.
"""

WEIGHTS = np.dtype([("completion", "f8"), ("utilization", "f8"), ("waiting", "f8"), ("balance", "f8"), ("unit", "f8")])
"""What a reward is made of; `unit` is the wait, in seconds, that costs as much as `waiting` says."""

FEATURES = 4
"""Numbers that tell of a host: core use, memory use, cores and memory against the largest host's."""

FIRST_AVAILABLE, LEAST_LOADED, BEST_FIT, RANDOM = range(4)
"""The baselines' numbers."""


@njit
def has_room(host: np.record, job: np.record) -> bool:
    """Whether a job fits a host now."""
    return host.free_cores >= job.cores and host.free_memory >= job.memory


@njit
def _take(course: np.ndarray, hosts: np.ndarray, h: int, cores: int, memory: int, state: np.ndarray) -> None:
    """Take cores and memory of a host, or give them back where they are below 0; the sums and the state follow."""
    c, host = course[0], hosts[h]
    before = 1.0 - host.free_cores / host.cores
    host.free_cores -= cores
    host.free_memory -= memory
    use = 1.0 - host.free_cores / host.cores
    c.free_cores -= cores
    c.free_memory -= memory
    c.use += use - before
    c.use_squared += use * use - before * before
    state[FEATURES * h] = use
    state[FEATURES * h + 1] = 1.0 - host.free_memory / host.memory


@njit
def begin(course: np.ndarray, jobs: np.ndarray, hosts: np.ndarray, state: np.ndarray) -> None:
    """Put an episode at its beginning; jobs and hosts have been written already."""
    c = course[0]
    c.now, c.arrived, c.queued, c.running, c.at, c.current = 0.0, 0, 0, 0, 0, -1
    c.core_area, c.memory_area, c.imbalance_area, c.wait_area = 0.0, 0.0, 0.0, 0.0
    c.ended, c.ended_in_time, c.decisions, c.makespan, c.earned, c.reward, c.over = 0, 0, 0, 0.0, 0.0, 0.0, 0
    c.cores, c.memory, c.use, c.use_squared = 0.0, 0.0, 0.0, 0.0
    most_cores, most_memory = 1, 1
    for h in range(len(hosts)):
        hosts[h].free_cores, hosts[h].free_memory = hosts[h].cores, hosts[h].memory
        c.cores += hosts[h].cores
        c.memory += hosts[h].memory
        most_cores, most_memory = max(most_cores, hosts[h].cores), max(most_memory, hosts[h].memory)
    c.free_cores, c.free_memory = c.cores, c.memory
    for h in range(len(hosts)):
        state[FEATURES * h], state[FEATURES * h + 1] = 0.0, 0.0
        state[FEATURES * h + 2] = hosts[h].cores / most_cores
        state[FEATURES * h + 3] = hosts[h].memory / most_memory
    for j in range(c.jobs):
        jobs[j].start, jobs[j].host = -1.0, -1


@njit
def _push(ends: np.ndarray, who: np.ndarray, count: int, end: float, job: int) -> None:
    """Add to a heap of ends (ties by job) that has room."""
    i = count
    while i > 0:
        up = (i - 1) // 2
        if ends[up] < end or (ends[up] == end and who[up] < job):
            break
        ends[i], who[i] = ends[up], who[up]
        i = up
    ends[i], who[i] = end, job


@njit
def _pop(ends: np.ndarray, who: np.ndarray, count: int) -> int:
    """Take the first off a heap of `count`; returns the job."""
    first = who[0]
    end, job = ends[count - 1], who[count - 1]
    i, left = 0, count - 1
    while 2 * i + 1 < left:
        down = 2 * i + 1
        if down + 1 < left and (
            ends[down + 1] < ends[down] or (ends[down + 1] == ends[down] and who[down + 1] < who[down])
        ):
            down += 1
        if end < ends[down] or (end == ends[down] and job < who[down]):
            break
        ends[i], who[i] = ends[down], who[down]
        i = down
    ends[i], who[i] = end, job
    return int(first)


@njit
def _pass_time(course: np.ndarray, hosts: np.ndarray, until: float) -> None:
    """Let the clock go on, and add to the areas; use and imbalance count up to the horizon, waits always."""
    c = course[0]
    c.wait_area += c.queued * (until - c.now)
    span = min(until, c.horizon) - c.now
    if span > 0.0:
        mean = c.use / len(hosts)
        c.core_area += span * (1.0 - c.free_cores / c.cores)
        c.memory_area += span * (1.0 - c.free_memory / c.memory)
        c.imbalance_area += span * max(c.use_squared / len(hosts) - mean * mean, 0.0)
    c.now = until


@njit
def _next_event(
    course: np.ndarray, jobs: np.ndarray, hosts: np.ndarray, queue: np.ndarray, ends: np.ndarray, who: np.ndarray,
    state: np.ndarray,
) -> bool:  # fmt: skip
    """Go on to when jobs end or arrive, and let them; False where nothing is to come.

    Where nobody has ended, those who waited before still fit nowhere: only the new ones are to be offered.
    """
    c = course[0]
    if c.arrived == c.jobs and c.running == 0:
        return False
    until = np.inf
    if c.arrived < c.jobs:
        until = jobs[c.arrived].submit
    if c.running > 0:
        until = min(until, ends[0])
    _pass_time(course, hosts, until)
    c.at = c.queued
    while c.running > 0 and ends[0] <= c.now:
        j = _pop(ends, who, c.running)
        c.running -= 1
        _take(course, hosts, jobs[j].host, -jobs[j].cores, -jobs[j].memory, state)
        c.ended += 1
        c.makespan = c.now
        if c.now <= c.horizon:
            c.ended_in_time += 1
        c.at = 0
    while c.arrived < c.jobs and jobs[c.arrived].submit <= c.now:
        queue[c.queued] = c.arrived
        c.queued += 1
        c.arrived += 1
    return True


@njit
def _room(hosts: np.ndarray, room: np.ndarray) -> None:
    """Write the most memory that a host with at least so many free cores has; -1 where there is none."""
    room[:] = -1
    last = len(room) - 1
    for h in range(len(hosts)):
        cores = min(hosts[h].free_cores, last)
        room[cores] = max(room[cores], hosts[h].free_memory)
    for cores in range(last - 1, -1, -1):
        room[cores] = max(room[cores], room[cores + 1])


@njit
def to_decision(
    course: np.ndarray, jobs: np.ndarray, hosts: np.ndarray, queue: np.ndarray, ends: np.ndarray, who: np.ndarray,
    room: np.ndarray, state: np.ndarray, mask: np.ndarray,
) -> None:  # fmt: skip
    """Go on until a queued job has room somewhere, and show it; or to the end, when all jobs have ended."""
    c = course[0]
    _room(hosts, room)
    while True:
        while c.at < c.queued:
            job = jobs[queue[c.at]]
            if room[job.cores] >= job.memory:
                c.current = queue[c.at]
                state[FEATURES * len(hosts)] = job.cores / c.most_cores
                state[FEATURES * len(hosts) + 1] = job.memory / c.most_memory
                for h in range(len(hosts)):
                    mask[h] = has_room(hosts[h], job)
                return
            c.at += 1
        if not _next_event(course, jobs, hosts, queue, ends, who, state):
            c.current, c.over = -1, 1
            mask[:] = 1
            state[FEATURES * len(hosts) :] = 0.0
            return
        _room(hosts, room)


@njit
def place(
    course: np.ndarray, jobs: np.ndarray, hosts: np.ndarray, queue: np.ndarray, ends: np.ndarray, who: np.ndarray,
    state: np.ndarray, h: int,
) -> None:  # fmt: skip
    """Start the current job on a host that has room for it."""
    c = course[0]
    j = c.current
    jobs[j].start, jobs[j].host = c.now, h
    _take(course, hosts, h, jobs[j].cores, jobs[j].memory, state)
    _push(ends, who, c.running, c.now + jobs[j].run_time, j)
    c.running += 1
    c.queued -= 1
    for i in range(c.at, c.queued):
        queue[i] = queue[i + 1]
    c.decisions += 1


@njit
def worth(course: np.ndarray, weights: np.ndarray) -> float:
    """What an episode has earned so far: completions + use - waits - imbalance, each by its weight."""
    c, w = course[0], weights[0]
    span = max(c.horizon, 1e-9)
    use = 0.5 * (c.core_area + c.memory_area) / span
    waited = c.wait_area / max(c.jobs, 1) / w.unit
    return (
        w.completion * c.ended_in_time / max(c.jobs, 1)
        + w.utilization * use
        - w.waiting * waited
        - w.balance * c.imbalance_area / span
    )


@njit
def choose(code: int, hosts: np.ndarray, job: np.record, mask: np.ndarray, draw: int) -> int:
    """The host that a baseline names; ties go to the lowest number. `draw` is a number that `random` goes by."""
    best, least, valid = -1, np.inf, 0
    for h in range(len(hosts)):
        if mask[h]:
            if code == FIRST_AVAILABLE:
                return h
            value = 0.0
            if code == LEAST_LOADED:
                value = -min(hosts[h].free_cores / hosts[h].cores, hosts[h].free_memory / hosts[h].memory)
            elif code == BEST_FIT:
                left = (hosts[h].free_cores - job.cores) / hosts[h].cores
                value = left + (hosts[h].free_memory - job.memory) / hosts[h].memory
            valid += 1
            if value < least:
                best, least = h, value
    if code != RANDOM or valid == 0:
        return best
    pick = draw % valid
    for h in range(len(hosts)):
        if mask[h]:
            if pick == 0:
                return h
            pick -= 1
    return best


@njit
def next_draw(draw: int) -> int:
    """The next of a sequence of numbers in [0, 2^31) that look random (Park and Miller's)."""
    return draw * 48271 % 2147483647


@njit
def begin_one(
    e: int, weights: np.ndarray, course: np.ndarray, jobs: np.ndarray, hosts: np.ndarray, queue: np.ndarray,
    ends: np.ndarray, who: np.ndarray, room: np.ndarray, state: np.ndarray, mask: np.ndarray,
) -> None:  # fmt: skip
    """Put one episode of many at its first decision."""
    begin(course[e : e + 1], jobs[e], hosts[e], state[e])
    to_decision(course[e : e + 1], jobs[e], hosts[e], queue[e], ends[e], who[e], room[e], state[e], mask[e])
    course[e].earned = worth(course[e : e + 1], weights[e : e + 1])


@njit
def play_whole(
    code: int, draw: int, e: int, weights: np.ndarray, course: np.ndarray, jobs: np.ndarray, hosts: np.ndarray,
    queue: np.ndarray, ends: np.ndarray, who: np.ndarray, room: np.ndarray, state: np.ndarray, mask: np.ndarray,
) -> None:  # fmt: skip
    """Play one episode of many from its beginning to its end with a baseline."""
    begin_one(e, weights, course, jobs, hosts, queue, ends, who, room, state, mask)
    mine = course[e : e + 1]
    while not mine[0].over:
        draw = next_draw(draw)
        h = choose(code, hosts[e], jobs[e][mine[0].current], mask[e], draw)
        place(mine, jobs[e], hosts[e], queue[e], ends[e], who[e], state[e], h)
        to_decision(mine, jobs[e], hosts[e], queue[e], ends[e], who[e], room[e], state[e], mask[e])
    mine[0].earned = worth(mine, weights[e : e + 1])


@numba.njit(cache=True, error_model="numpy", parallel=True, nogil=True)
def step_many(
    actions: np.ndarray, weights: np.ndarray, course: np.ndarray, jobs: np.ndarray, hosts: np.ndarray,
    queue: np.ndarray, ends: np.ndarray, who: np.ndarray, room: np.ndarray, state: np.ndarray, mask: np.ndarray,
) -> None:  # fmt: skip
    """Take a decision in every episode that goes on; `reward` is what it earned."""
    for e in numba.prange(len(actions)):
        mine = course[e : e + 1]
        mine[0].reward = 0.0
        if not mine[0].over:
            place(mine, jobs[e], hosts[e], queue[e], ends[e], who[e], state[e], actions[e])
            to_decision(mine, jobs[e], hosts[e], queue[e], ends[e], who[e], room[e], state[e], mask[e])
            earned = worth(mine, weights[e : e + 1])
            mine[0].reward = earned - mine[0].earned
            mine[0].earned = earned
