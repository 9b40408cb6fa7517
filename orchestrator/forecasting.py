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
from orchestrator.arrivals import DAY, NOBODY, Coming, drawn, most_of
from orchestrator.doubting import Doubt, Temper, draw_queued, draw_running
from traces.trace import Trace

NEVER = 1e13
"""Seconds after which nothing is foreseen: GPUs that are not to be had are held until then."""

WINK = 1e-3
"""Run time of the job that opens a simulation, in seconds: too short to be in anybody's way."""


REACHES = (2 * DAY, 8 * DAY, 30 * DAY)
"""For how many seconds arrivals are drawn: for longer where jobs still wait then. What lies behind is not foreseen."""

HORIZON = REACHES[-1]
"""Seconds after which no start is foreseen; it is told as infinite."""

EVENTS = 100
"""How many events are simulated between two looks at whether all have started."""

AS_FITTED = Temper()
"""How surprises are drawn where nothing else was fitted."""


class Limits(NamedTuple):
    """After how many seconds a scheduler ends jobs; infinite where it does not."""

    queued: np.ndarray  # (queued,) s from their start
    running: np.ndarray  # (running,) s from now


class Interval(NamedTuple):
    """Between which ends starts are foreseen, in seconds from now; infinite: not within HORIZON."""

    low: np.ndarray  # (queued,)
    middle: np.ndarray  # (queued,) the median
    high: np.ndarray  # (queued,)


class Forecast(NamedTuple):
    """Starts of queued jobs, in seconds from now, draw by draw; infinite where none is within HORIZON."""

    start: np.ndarray  # (draws, queued)

    def quantiles(self, *shares: float) -> np.ndarray:
        """Quantiles (shares, queued)."""
        return np.quantile(self.start, shares, axis=0, method="inverted_cdf")

    def interval(self, inside: float = 0.8) -> Interval:
        """The interval that holds so much of the draws."""
        return Interval(*self.quantiles((1 - inside) / 2, 0.5, (1 + inside) / 2))


class _Fixed(NamedTuple):
    """What is the same in every draw: who holds GPUs where, and who waits."""

    nodes: Nodes
    held: np.ndarray  # (places,) the running job that holds GPUs here, -1 where nobody is known to
    places: np.ndarray  # (places,) PLACE
    pool: np.ndarray  # (places,)
    rows: np.ndarray  # (waiting,) rows of the Snapshot's queue

    def of(self, pool: int, view: Snapshot) -> "_Fixed":
        """What concerns a pool."""
        here = self.pool == pool
        return self._replace(
            held=self.held[here], places=self.places[here], pool=self.pool[here],
            rows=self.rows[view.pool[self.rows] == pool],
        )  # fmt: skip


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
    start, seeds = np.full((draws, len(view.job)), np.inf), rng.integers(2**62, size=draws)
    for pool in np.unique(view.pool[fixed.rows]):  # pools do not mind each other, and some need not go far ahead
        here, reach = fixed.of(pool, view), 0
        for i in range(draws):
            found, reach = _drawn_starts(
                view, here, policy, discipline, known, queued[i], left[i], coming.of(pool), int(seeds[i]), reach
            )
            start[i, here.rows] = found
    return Forecast(start - view.now)


def _drawn_starts(
    view: Snapshot,
    fixed: "_Fixed",
    policy: str | Policy | np.ndarray,
    discipline: str,
    known: np.ndarray,
    queued: np.ndarray,
    left: np.ndarray,
    coming: Coming,
    seed: int,
    reach: int,
) -> tuple[np.ndarray, int]:
    """Starts (waiting,) in one draw, and how far ahead arrivals had to be drawn for it, by its place in REACHES."""
    while True:
        later = drawn(coming, np.random.default_rng(seed), view.now, REACHES[reach])
        go_on = 0 < len(later.submit) < most_of(coming)  # else nobody comes later, however far one looks
        until = view.now + (REACHES[reach] if go_on else HORIZON)
        found = _played(view, fixed, policy, discipline, known, queued, left, later, until)
        if until == view.now + HORIZON or np.isfinite(found).all():
            return found, reach
        reach += 1


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


def _played(
    view: Snapshot,
    fixed: _Fixed,
    policy: str | Policy | np.ndarray,
    discipline: str,
    known: np.ndarray,
    queued: np.ndarray,
    left: np.ndarray,
    later: Coming,
    until: float,
) -> np.ndarray:
    """Starts (waiting,) of the jobs that wait, in one draw; infinite where they are later than `until`."""
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
    pool = np.concatenate((fixed.pool, view.pool[rows], view.pool[rows[:1]], later.pool)).astype(np.int32)
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
    return _starts(simulation, slice(holds, holds + waits), until)


def _starts(simulation: Simulation, asked: slice, until: float) -> np.ndarray:
    """Starts of some jobs; what comes after the last of them, or after `until`, is not simulated."""
    simulation._first_event()
    start, sim = simulation.world.jobs["start"], simulation.world.sim
    while sim["now"][0] <= until and (start[asked] < 0).any() and kernel.replay(*simulation.world, EVENTS):
        pass
    return np.where((start[asked] < 0) | (start[asked] > until), np.inf, start[asked])


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
