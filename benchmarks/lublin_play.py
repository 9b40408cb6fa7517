"""RLScheduler's protocol, compiled, for a key that is asked anew at each decision.

The rules are those of legacy/rlscheduler.py, and the waiting job with the lowest sum of INPUTS, each times its weight,
goes next. tests/test_lublin.py compares every start with the readable rules.
"""

import numpy as np

from berth.compiled import njit, records
from berth.errors import ConfigError

INPUTS = (
    "ln r", "ln n", "does not fit", "does not fit · ln n", "does not fit · ln r", "ln r · ln n", "ln n · idle share",
    "ln wait", "ln slowdown", "ln delay", "ln delay · ln r", "ln arrivals in the delay", "ln growth in the delay",
    "ln growth that slips past", "ln arrivals in the run", "ln n · arrival rate", "ln room",
    "ln arrivals until more room", "ln room · ln arrivals until more room",
)  # fmt: skip
"""What is seen of a waiting job; each logarithm is scaled to a few units.

r: requested time; n: processors; delay: until the job fits, by requested times; room: processors that are idle once it
has started; growth: slowdown that the waiting jobs gain in a second, or in the delay if none of them starts; what slips
past is the growth of those that backfilling would start at once. Arrivals are those of the average day.
"""

DAY, SLOT = 86400.0, 1800.0
JOB = np.dtype([(name, np.float64) for name in ("submit", "run_time", "request", "ln_r", "ln_n", "growth", "start",
                                                "end", "expected")] + [("processors", np.int64)])  # fmt: skip
STATE = np.dtype([("now", np.float64), ("waiting", np.int64), ("running", np.int64), ("coming", np.int64),
                  ("idle", np.int64), ("processors", np.int64), ("backfill", np.bool_)])  # fmt: skip


def job_rows(
    submit: np.ndarray, run_time: np.ndarray, request: np.ndarray, processors: np.ndarray, machine: int
) -> np.ndarray:
    """Jobs as `play` takes them; raises ConfigError where they are not in order or one does not fit."""
    if (np.diff(submit) < 0).any():
        raise ConfigError("jobs that are not in the order of their submit times, want them sorted")
    if not ((processors >= 1) & (processors <= machine)).all():
        raise ConfigError(f"a job of {processors.min()} or {processors.max()} processors, want 1 to {machine}")
    jobs = records(len(submit), JOB)
    jobs["submit"], jobs["run_time"], jobs["request"], jobs["processors"] = submit, run_time, request, processors
    jobs["ln_r"], jobs["ln_n"] = np.log(np.maximum(request, 1.0)) / 5 - 1, np.log(processors) / 3 - 1
    jobs["growth"] = 1.0 / np.maximum(request, 10.0)
    return jobs


def cycle_rows(cycle: np.ndarray) -> np.ndarray:
    """The day as `play` takes it, of 48 arrival rates around 1: these, and the s that they have brought before each."""
    return np.stack((cycle, np.concatenate(([0.0], np.cumsum(cycle)[:-1])) * SLOT))


def mean_slowdown(jobs: np.ndarray, machine: int, backfill: bool, day: np.ndarray, weights: np.ndarray) -> float:
    """Mean bounded slowdown of jobs under a key."""
    play(jobs, machine, backfill, day, weights)
    return _mean_slowdown(jobs)


def play(jobs: np.ndarray, machine: int, backfill: bool, day: np.ndarray, weights: np.ndarray) -> None:
    """Write when each job starts and ends."""
    state = records(1, STATE)
    state["now"], state["waiting"], state["coming"] = jobs["submit"][0], 1, 1
    state["idle"], state["processors"], state["backfill"] = machine, machine, backfill
    _play(state, jobs, np.zeros(len(jobs), np.int64), np.empty(len(jobs), np.int64), day, weights)


@njit
def _mean_slowdown(jobs: np.ndarray) -> float:
    total = 0.0
    for i in range(len(jobs)):
        total += max(1.0, (jobs[i].end - jobs[i].submit) / max(jobs[i].run_time, 10.0))
    return total / len(jobs)


@njit
def _play(
    state: np.ndarray, jobs: np.ndarray, queue: np.ndarray, running: np.ndarray, day: np.ndarray, weights: np.ndarray
) -> None:
    """From the first decision to the last start."""
    while state[0].waiting > 0:
        chosen = _lowest(state, jobs, queue, running, day, weights)
        if jobs[chosen].processors > state[0].idle:
            shadow = _shadow(state, jobs, running, chosen) if state[0].backfill else -np.inf
            while jobs[chosen].processors > state[0].idle:
                if state[0].backfill:
                    _slip_past(state, jobs, queue, running, shadow)
                _one_event(state, jobs, queue, running)
        _begin(state, jobs, queue, running, chosen)
        while state[0].waiting == 0 and state[0].coming < len(jobs):
            _one_event(state, jobs, queue, running)


@njit
def _begin(state: np.ndarray, jobs: np.ndarray, queue: np.ndarray, running: np.ndarray, job: int) -> None:
    """Start a waiting job."""
    at = 0
    while queue[at] != job:
        at += 1
    for i in range(at, state[0].waiting - 1):
        queue[i] = queue[i + 1]
    state[0].waiting -= 1
    running[state[0].running] = job
    state[0].running += 1
    state[0].idle -= jobs[job].processors
    now = state[0].now
    jobs[job].start, jobs[job].end, jobs[job].expected = now, now + jobs[job].run_time, now + jobs[job].request


@njit
def _one_event(state: np.ndarray, jobs: np.ndarray, queue: np.ndarray, running: np.ndarray) -> None:
    """The next arrival, or the earliest end; the arrival if both are at one time."""
    count, coming = state[0].running, state[0].coming
    for i in range(1, count):
        _sink(jobs, running, i, jobs[running[i]].end, False)
    end = jobs[running[0]].end if count > 0 else np.inf
    if coming < len(jobs) and jobs[coming].submit <= end:
        queue[state[0].waiting] = coming
        state[0].waiting += 1
        state[0].coming += 1
        state[0].now = max(state[0].now, jobs[coming].submit)
        return
    state[0].idle += jobs[running[0]].processors
    state[0].now = max(state[0].now, end)
    for i in range(count - 1):
        running[i] = running[i + 1]
    state[0].running -= 1


@njit
def _sink(jobs: np.ndarray, running: np.ndarray, at: int, end: float, expected: bool) -> None:
    """Insert a running job among those before it, by expected or true ends; equal ones keep their order."""
    job = running[at]
    while at > 0 and (jobs[running[at - 1]].expected if expected else jobs[running[at - 1]].end) > end:
        running[at] = running[at - 1]
        at -= 1
    running[at] = job


@njit
def _shadow(state: np.ndarray, jobs: np.ndarray, running: np.ndarray, chosen: int) -> float:
    """The expected end of the running job whose processors let the chosen one fit; sorts `running` by it."""
    for i in range(1, state[0].running):
        _sink(jobs, running, i, jobs[running[i]].expected, True)
    idle, at = state[0].idle, -1
    while idle < jobs[chosen].processors:
        at += 1
        idle += jobs[running[at]].processors
    return jobs[running[at]].expected


@njit
def _slip_past(state: np.ndarray, jobs: np.ndarray, queue: np.ndarray, running: np.ndarray, shadow: float) -> None:
    """Start waiting jobs, in submit order, that fit and should end before the shadow time."""
    at = 0
    while at < state[0].waiting:
        job = queue[at]
        if state[0].now + jobs[job].request < shadow and jobs[job].processors <= state[0].idle:
            _begin(state, jobs, queue, running, job)
        else:
            at += 1


@njit
def _brought(day: np.ndarray, time: float) -> float:
    """Seconds that the day's cycle has brought until a time: as many as have passed, at the end of each day."""
    begin = np.floor(time / DAY) * DAY
    slot = int((time - begin) / SLOT)
    return begin + day[1, slot] + (time - begin - slot * SLOT) * day[0, slot]


@njit
def _some(arrivals: float) -> float:
    """The logarithm of arrivals, given as seconds of the average day."""
    return np.log1p(arrivals / 100) / 3


@njit
def _outlook(
    state: np.ndarray, jobs: np.ndarray, queue: np.ndarray, growth: float, day: np.ndarray, begins: float
) -> np.ndarray:
    """What is seen of any job that would start at a later time: inputs 9, 11, 12, 13, the time, s brought until it."""
    now, slips = state[0].now, 0.0
    if state[0].backfill and begins > now:
        for i in range(state[0].waiting):
            job = queue[i]
            if jobs[job].processors <= state[0].idle and now + jobs[job].request < begins:
                slips += jobs[job].growth
    delay, brought = begins - now, _brought(day, begins)
    arrivals = _some(brought - _brought(day, now))
    blocked = np.log1p((growth - slips) * delay) / 5
    return np.array([np.log1p(delay) / 5, arrivals, blocked, np.log1p(10.0 * slips), begins, brought])


@njit
def _lowest(
    state: np.ndarray, jobs: np.ndarray, queue: np.ndarray, running: np.ndarray, day: np.ndarray, weights: np.ndarray
) -> int:
    """The waiting job with the lowest key; the first of equal ones."""
    waiting, count, now = state[0].waiting, state[0].running, state[0].now
    if waiting == 1:
        return queue[0]
    order = running[:count].copy()
    for i in range(1, count):
        _sink(jobs, order, i, jobs[order[i]].expected, True)
    free = np.full(count + 1, state[0].idle)  # idle processors now, and after each expected end
    for i in range(count):
        free[i + 1] = free[i] + jobs[order[i]].processors
    growth = 0.0
    for i in range(waiting):
        growth += jobs[queue[i]].growth
    idle = state[0].idle / state[0].processors
    rate = day[0, int((now - np.floor(now / DAY) * DAY) / SLOT)] - 1.0
    ends, known = np.empty((count + 1, 6)), np.zeros(count + 1, np.bool_)
    best, lowest = queue[0], np.inf
    for i in range(waiting):
        job = jobs[queue[i]]
        after = np.searchsorted(free, job.processors)
        if not known[after]:
            begins = max(now, jobs[order[after - 1]].expected) if after > 0 else now
            ends[after], known[after] = _outlook(state, jobs, queue, growth, day, begins), True
        delay, begins, brought = ends[after, 0], ends[after, 4], ends[after, 5]
        over = begins + job.request
        more = min(over, max(begins, jobs[order[after]].expected)) if after < count else over
        unfit, r, n, wait = 1.0 if after > 0 else 0.0, job.ln_r, job.ln_n, now - job.submit
        room = np.log1p(free[after] - job.processors) / 3 - 1
        until_more = _some(_brought(day, more) - brought) - 1
        key = weights[0] * r + weights[1] * n + weights[2] * unfit + weights[3] * unfit * n + weights[4] * unfit * r
        key += weights[5] * r * n + weights[6] * n * idle + weights[7] * (np.log1p(wait) / 5 - 1)
        key += weights[8] * np.log1p(wait * job.growth) / 5 + weights[9] * delay + weights[10] * delay * r
        key += weights[11] * ends[after, 1] + weights[12] * ends[after, 2] + weights[13] * ends[after, 3]
        key += weights[14] * (_some(_brought(day, over) - brought) - 1) + weights[15] * n * rate
        key += weights[16] * room + weights[17] * until_more + weights[18] * room * until_more
        if key < lowest:
            best, lowest = queue[i], key
    return best
