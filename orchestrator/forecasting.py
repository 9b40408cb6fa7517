"""When queued jobs will start: the cluster of a Snapshot simulated many times, with run times that are drawn."""

from typing import NamedTuple

import numpy as np

from berth.compiled import records
from berth.errors import ConfigError, SnapshotError
from envs.desk import HOUR, arranged
from envs.policies import Policy, find_policy
from envs.recalling import predicted
from envs.sim import kernel
from envs.sim.cluster import Nodes, Pool
from envs.sim.members import ROSTER
from envs.sim.simulator import Simulation
from envs.sim.state import PLACE
from envs.sim.warming import Past
from envs.snapshot import HOLDING, UP, Snapshot
from envs.workload import Workload, can_fit
from orchestrator.doubting import Doubt, Temper, draw_queued, draw_running
from traces.trace import Trace

NEVER = 1e13
"""Seconds after which nothing is foreseen: GPUs that are not to be had are held until then."""

WINK = 1e-3
"""Run time of the job that opens a simulation, in seconds: too short to be in anybody's way."""


AHEAD, STRETCH_OF = 1_600, 100
"""How many arrivals are drawn for each simulation, and how many of them in a row."""

EVENTS = 100
"""How many events are simulated between two looks at whether all have started."""

STRETCH = 1.35
"""How far the ends of intervals are moved away from the median where nothing else was fitted (docs/slurm.md)."""

AS_FITTED = Temper()
"""How surprises are drawn where nothing else was fitted."""


class Coming(NamedTuple):
    """Jobs that came one after the other, of which those to come are drawn."""

    submit: np.ndarray  # (jobs,) s, rising
    gpus: np.ndarray  # (jobs,)
    run_time: np.ndarray  # (jobs,) s
    estimate: np.ndarray  # (jobs,) s, what was known of it
    pool: np.ndarray  # (jobs,)


NOBODY = Coming(*(np.zeros(0) for _ in range(5)))
"""Nobody comes."""


class Limits(NamedTuple):
    """After how many seconds a scheduler ends jobs; infinite where it does not."""

    queued: np.ndarray  # (queued,) s from their start
    running: np.ndarray  # (running,) s from now


class Forecast(NamedTuple):
    """Starts of queued jobs, in seconds from now, draw by draw; infinite where none is foreseen."""

    start: np.ndarray  # (draws, queued)

    def quantiles(self, *shares: float) -> np.ndarray:
        """Quantiles (shares, queued)."""
        return np.quantile(self.start, shares, axis=0, method="inverted_cdf")

    def interval(self, inside: float = 0.8, stretch: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The lower end, the median and the upper end (queued,) of an interval that holds so much of the draws.

        `stretch` moves the ends away from the median on a logarithmic scale, as found on moments whose outcome is
        known: what the draws leave out makes intervals too narrow.
        """
        low, middle, high = self.quantiles((1 - inside) / 2, 0.5, (1 + inside) / 2)
        return stretched(middle, low, stretch), middle, stretched(middle, high, stretch)


def stretched(middle: np.ndarray, end: np.ndarray, stretch: float) -> np.ndarray:
    """An end of an interval, moved away from its middle on the scale ln(1 + s)."""
    finite = np.isfinite(middle) & np.isfinite(end)
    about, away = np.log1p(np.where(finite, middle, 0.0)), np.log1p(np.where(finite, end, 0.0))
    return np.where(finite, np.expm1(np.clip(about + stretch * (away - about), 0.0, 700.0)), end)


class _Fixed(NamedTuple):
    """What is the same in every draw: who holds GPUs where, and who waits."""

    nodes: Nodes
    held: np.ndarray  # (places,) the running job that holds GPUs here, -1 where nobody is known to
    places: np.ndarray  # (places,) PLACE
    pool: np.ndarray  # (places,)
    rows: np.ndarray  # (waiting,) rows of the Snapshot's queue


def forecast(
    view: Snapshot,
    policy: str | Policy | np.ndarray,
    discipline: str,
    doubt: Doubt,
    coming: Coming = NOBODY,
    draws: int = 200,
    seed: int = 0,
    temper: Temper = AS_FITTED,
    limits: Limits | None = None,
) -> Forecast:
    """Simulate what a Snapshot may become under a policy, `draws` times.

    A policy may also be an order: ranks (queued,), the lowest first, ahead of whoever comes later. Policies that
    need run times go by what the Snapshot tells of them, or ended jobs; `limits` are what no run time exceeds. Raises
    ConfigError for a policy that is a Python function, SnapshotError for running jobs without places.
    """
    fixed = _fixed(view)
    rng = np.random.default_rng(seed)
    known = _known(view)
    queued = draw_queued(view, doubt, rng, draws, temper)
    left = draw_running(view, doubt, rng, draws, temper)
    if limits is not None:
        queued, left = np.minimum(queued, limits.queued), np.minimum(left, limits.running)
    start = np.full((draws, len(view.job)), np.inf)
    for i in range(draws):
        later = _drawn(coming, rng, view.now)
        start[i, fixed.rows] = _played(view, fixed, policy, discipline, known, queued[i], left[i], later)
    return Forecast(np.where(start - view.now >= NEVER / 2, np.inf, start - view.now))


def _known(view: Snapshot) -> np.ndarray:
    """What policies and backfilling know of the queued jobs' run times."""
    told = np.full(len(view.job), HOUR)
    if view.history is not None:
        told = predicted(view.history)
    return np.maximum(1.0, np.where(np.isnan(view.run_time), told, view.run_time))


def _fixed(view: Snapshot) -> _Fixed:
    """Who holds GPUs, node by node; what nobody is known to hold, and nodes that are not up, are held for good."""
    if view.place_at is None or view.place_node is None or view.place_gpus is None:
        raise SnapshotError("running.nodes: nothing; want the nodes of every running job to foresee when they are free")
    nodes, order = arranged(view)
    stands = np.empty(len(order), np.int64)
    stands[order] = np.arange(len(order))
    held = np.repeat(np.arange(len(view.running_job)), np.diff(view.place_at))
    used = np.bincount(view.place_node, view.place_gpus, minlength=len(order))
    lost = (view.capacity - used - view.free).astype(np.int64)
    if view.node_state is not None:
        lost = np.where(view.node_state == UP, lost, view.capacity - used)
    gone = np.flatnonzero(lost > 0)
    places = records(len(held) + len(gone), PLACE)
    places["node"] = stands[np.concatenate((view.place_node, gone)).astype(np.int64)]
    places["gpus"] = np.concatenate((view.place_gpus, lost[gone]))
    pool = view.node_pool[np.concatenate((view.place_node, gone)).astype(np.int64)]
    waits = np.ones(len(view.job), bool) if view.state is None else view.state <= HOLDING
    waits &= can_fit(nodes, view.pool, view.gpus, 0)
    rows = np.flatnonzero(waits)
    rows = rows[np.argsort(view.submit[rows], kind="stable")]
    return _Fixed(nodes, np.concatenate((held, np.full(len(gone), -1))), places, pool, rows)


def _drawn(coming: Coming, rng: np.random.Generator, now: float) -> Coming:
    """Arrivals of the next while: stretches of those that came before, one after the other, each begun at random."""
    count = len(coming.submit)
    if count < 2:
        return NOBODY
    gaps = np.diff(coming.submit, append=coming.submit[-1] + (coming.submit[-1] - coming.submit[0]) / (count - 1))
    steps = np.arange(min(count, STRETCH_OF))
    rounds = AHEAD // len(steps)
    order = np.concatenate([(rng.integers(count) + steps) % count for _ in range(rounds)])
    submit = now + np.cumsum(gaps[order])
    return Coming(submit, *(column[order] for column in coming[1:]))


def _played(
    view: Snapshot,
    fixed: _Fixed,
    policy: str | Policy | np.ndarray,
    discipline: str,
    known: np.ndarray,
    queued: np.ndarray,
    left: np.ndarray,
    later: Coming,
) -> np.ndarray:
    """Starts (waiting,) of the jobs that wait, in one draw."""
    rows, holds, waits = fixed.rows, len(fixed.places), len(fixed.rows)
    end = np.where(fixed.held >= 0, np.append(left, NEVER)[fixed.held], NEVER)
    begin = view.running_start[fixed.held] if len(view.running_start) else np.zeros(holds)
    begun = np.where(fixed.held >= 0, np.minimum(begin, view.now - WINK) if holds else 0.0, 0.0)
    told = view.running_end - view.running_start if view.running_guess is None else view.running_guess
    guess = np.where(np.isnan(told), HOUR, told)
    expected = np.where(fixed.held >= 0, np.append(guess, NEVER)[fixed.held], NEVER)
    first = min(float(view.submit[rows].min(initial=view.now)), float(begun.min(initial=view.now))) - 1.0
    submit = np.concatenate(
        (np.full(holds, first), np.minimum(view.submit[rows], view.now - WINK), [view.now], later.submit)
    )
    run_time = np.concatenate((view.now + end - begun, queued[rows], [WINK], later.run_time))
    estimate = np.concatenate((expected, known[rows], [WINK], later.estimate))
    gpus = np.concatenate((fixed.places["gpus"], view.gpus[rows], [1], later.gpus)).astype(np.int32)
    pool = np.concatenate((fixed.pool, view.pool[rows], [0], later.pool)).astype(np.int32)
    count = len(submit)
    roster = records(count, ROSTER)
    roster["submit"], roster["run_time"], roster["estimate"] = submit, run_time, estimate
    roster["start"], roster["end"] = np.inf, np.inf
    roster["start"][:holds], roster["end"][:holds] = begun, view.now + end
    roster["place_at"][:holds], roster["place_count"][:holds] = np.arange(holds), 1
    names = np.arange(count).astype(object)
    trace = Trace("forecast", "forecast", names, submit, run_time, gpus)
    layout = tuple(Pool(str(p), ((1, int(size)),)) for p, size in enumerate(fixed.nodes.pool_gpus))
    workload = Workload("", "", trace, layout, pool, fixed.nodes, 0.0)
    past = Past(roster, fixed.places, np.arange(count, dtype=np.int32), count - holds - waits,
                np.empty((count, 0), np.int32), np.zeros((0, 0)))  # fmt: skip
    chosen = _as_policy(policy, rows, holds, count)
    simulation = Simulation(workload, chosen, discipline, runtime_info="request", past=past)
    return _starts(simulation, slice(holds, holds + waits))


def _starts(simulation: Simulation, asked: slice) -> np.ndarray:
    """Starts of some jobs; what comes after the last of them is not simulated."""
    simulation._first_event()
    start = simulation.world.jobs["start"]
    while (start[asked] < 0).any() and kernel.replay(*simulation.world, EVENTS):
        pass
    return np.where(start[asked] < 0, np.inf, start[asked])


def _as_policy(policy: str | Policy | np.ndarray, rows: np.ndarray, holds: int, count: int) -> Policy:
    """A policy of the registry, or one that keeps to an order."""
    if not isinstance(policy, np.ndarray):
        found = find_policy(policy)
        if found.ask is not None:
            raise ConfigError(
                f"policy {found.name}: a Python function is too slow to be asked in every draw; want a name"
            )
        return found
    keys = np.full(count, float(len(policy)))
    keys[holds : holds + len(rows)] = policy[rows]
    keys[holds + len(rows) :] += np.arange(count - holds - len(rows))
    return Policy("order", "a given order", draw=lambda jobs, seed: keys)
