"""Decisions for a Snapshot, by the compiled code that the environments play with."""

from typing import NamedTuple

import numpy as np

from allocation.orders import FGD
from allocation.placers import MILP, most_nodes
from allocation.tiers import fewest_nodes
from berth.compiled import records
from berth.errors import ConfigError, SnapshotError
from envs.episode import SET_UP, Episode
from envs.options import Options
from envs.recalling import PREDICTED
from envs.sim import laying
from envs.sim.cards import LEVELS
from envs.sim.cluster import Nodes, Pool
from envs.sim.history import TOLD_OF
from envs.sim.laying import QUEUED_ROWS, RUNNING_ROWS, fill_roster, find_rows
from envs.sim.members import ROSTER
from envs.sim.nearby import line_up_groups, nobody_near
from envs.sim.playing import STEP, VIEW
from envs.sim.setting import ENDED, set_up
from envs.sim.state import END, PLACE, SIZE
from envs.sim.world import make_world
from envs.snapshot import HOLDING, QUEUED, Snapshot
from envs.stage import Stage
from envs.workload import Workload, can_fit
from traces.trace import Trace

_KNOWN = {"hidden": laying.HIDDEN, "predicted": laying.PREDICTED}

HOUR = 3600.0
"""How long a running job is taken to run, in seconds, where nobody tells anything."""


class Start(NamedTuple):
    """A job that starts now."""

    row: int  # of the Snapshot's queue
    nodes: tuple[tuple[int, int], ...]  # (node, GPUs), nodes by their rows in the Snapshot


class Outcome(NamedTuple):
    """What comes of a decision."""

    starts: tuple[Start, ...]
    holds: int  # the row of a job that was chosen, does not fit and holds its pool; -1 where there is none


def refuse_unknowable(options: Options) -> None:
    """Raise ConfigError for options whose observations or rules rest on more than a Snapshot tells."""
    placer = options.placement.placer.code
    if placer in (MILP, FGD):
        raise ConfigError(
            f"allocation {options.placement.name} rests on jobs that a snapshot does not have; want another placer"
        )
    if options.policy.draw is not None:
        raise ConfigError(
            f"sched_algo {options.sched_algo} draws its keys for a whole trace; want a policy with a formula"
        )
    if options.prior and options.prior_knows:
        raise ConfigError(f"prior {options.prior} knows run times, which nobody does of jobs that wait; want another")


def arranged(view: Snapshot) -> tuple[Nodes, np.ndarray]:
    """The nodes of a Snapshot, pool by pool, and where each of them stands in it."""
    order = np.argsort(view.node_pool, kind="stable")
    pools = int(view.node_pool.max()) + 1
    first = np.concatenate(([0], np.cumsum(np.bincount(view.node_pool, minlength=pools)))).astype(np.int32)
    gpus = np.bincount(view.node_pool, view.capacity, minlength=pools).astype(np.int64)
    return Nodes(view.capacity[order].astype(np.int32), first, gpus), order


class Desk(Episode):
    """Looks at one Snapshot after the other of a cluster, and tells what an action would start.

    `look` lays a Snapshot out as an episode has it, so that `observation` and `prior` are what an environment would
    show; `take` plays an action on it.
    """

    def __init__(self, options: Options, nodes: Nodes) -> None:
        refuse_unknowable(options)
        self.nodes = nodes
        self._sizes = np.concatenate(([0], np.cumsum(nodes.pool_gpus)))  # where each pool's sizes begin
        super().__init__(options, _stage(options, nodes, self._sizes))
        roster = self.stage.roster
        self._possible = can_fit(nodes, roster["pool"], roster["gpus"], options.placement.placer.code)
        self._needs_places = self.now["backfill"] or options.lookahead_mode in ("per_gpu", "sorted")
        self._fewest, self._most = roster["fewest"].copy(), roster["most"].copy()
        self._known = _KNOWN.get(options.runtime_info, laying.TOLD)
        self._size("base", np.zeros(1))
        self._size("by_end", np.zeros(2, np.int32))
        self._make_room(64, 64, 64)

    def look(self, view: Snapshot, nodes: np.ndarray, anew: bool = False) -> bool:
        """Lay a Snapshot out and see it; tells whether something can be chosen.

        `nodes` says where each node stands in the Snapshot (`arranged`). `anew` asks jobs that hold a pool again, as an
        environment does when something has happened in the pool.
        """
        if self._needs_places and view.place_at is None:
            raise SnapshotError("running.nodes: nothing; want the nodes of every running job, which this policy needs")
        self._view, self._order = view, nodes
        self._tell(view)
        self._lay_out_rows(view)
        a = self.arrays
        a["free"][:] = view.free[nodes]
        a["sim"]["now"] = a["episode"]["horizon"] = view.now
        a["queues"]["touched"] = anew
        self.play(VIEW)
        return not self.now["truncated"]

    def started(self) -> tuple[Start, ...]:
        """The jobs that have started since the Snapshot was laid out, in the order of the queue."""
        a, ran = self.arrays, len(self._view.running_job)
        found = []
        for i in np.flatnonzero(a["jobs"]["start"][ran : ran + len(self._rows)] >= 0):
            row = a["jobs"][ran + i]
            places = a["places"][row["place_at"] : row["place_at"] + row["place_count"]]
            shares = zip(self._order[places["node"]].tolist(), places["gpus"].tolist(), strict=True)
            found.append(Start(int(self._rows[i]), tuple(shares)))
        return tuple(found)

    def take(self, action: int) -> Outcome:
        """Take an action that the mask allows: a slot, or the last one of `fit`, to wait."""
        slots, ran = self.window_jobs(), len(self._view.running_job)
        chosen = int(slots[action]) if action < len(slots) else -1
        self.play(STEP, action)
        starts = self.started()
        row = int(self._rows[chosen - ran]) if chosen >= 0 else -1
        held = chosen >= 0 and self.arrays["jobs"]["start"][chosen] < 0
        first = tuple(one for one in starts if one.row == row)
        return Outcome(first + tuple(one for one in starts if one.row != row), row if held else -1)

    def window_rows(self) -> np.ndarray:
        """The jobs in the window, slot by slot, by their rows in the Snapshot's queue."""
        return self._rows[self.window_jobs() - len(self._view.running_job)]

    def _make_room(self, queued: int, running: int, places: int) -> None:
        """Make the tables that Snapshots are copied to for compiled code, which wants its arrays always alike."""
        count = queued + running + 1
        self._queued, self._running = np.zeros((len(QUEUED_ROWS), queued)), np.zeros((len(RUNNING_ROWS), running))
        self._told, self._waiting = np.zeros((queued, TOLD_OF), np.float32), np.zeros(queued, np.int64)
        self._roster, self._history = records(count, ROSTER), np.zeros((count, TOLD_OF), np.float32)
        self._groups, self._all = np.full((count, LEVELS), -1, np.int32), np.arange(count, dtype=np.int32)
        self._past_places = records(places, PLACE)

    def _tell(self, view: Snapshot) -> None:
        """Copy what is told of jobs to the tables, and find the rows of those that wait and could ever start."""
        count, ran = len(view.job), len(view.running_job)
        places = 0 if view.place_node is None else len(view.place_node)
        if count > self._queued.shape[1] or ran > self._running.shape[1] or places > len(self._past_places):
            self._make_room(*(64 + 3 * need // 2 for need in (count, ran, places)))
        queued, running = self._queued, self._running
        queued[0, :count], queued[1, :count], queued[2, :count] = view.submit, view.gpus, view.run_time
        queued[3, :count], queued[4, :count] = view.pool, QUEUED if view.state is None else view.state
        self._told[:count] = 0.0 if view.history is None else view.history
        running[0, :ran], running[1, :ran], running[2, :ran] = view.running_start, view.running_gpus, view.running_pool
        running[3, :ran], guess = view.running_end, view.running_guess
        running[4, :ran] = view.running_end - view.running_start if guess is None else guess
        if view.place_at is not None:
            running[5, :ran] = np.diff(view.place_at)
        found = find_rows(queued, count, HOLDING, self.nodes.pool_gpus, self._sizes, self._possible, self._waiting)
        self._rows = self._waiting[:found]

    def _lay_out_rows(self, view: Snapshot) -> None:
        """Lay out the running jobs, those that wait, and one that comes later."""
        ran = len(view.running_job)
        count = ran + len(self._rows) + 1
        need = fill_roster(
            view.now, self._known if view.history is not None else min(self._known, laying.TOLD), HOLDING, PREDICTED,
            self._queued, self._running, self._told, view.place_at is not None, self._rows, ran, self.nodes.pool_gpus,
            self._sizes, self._fewest, self._most, self._roster, self._history,
        )  # fmt: skip
        if need == laying.UNKNOWN:
            raise SnapshotError("queued.run_time: null; want seconds, as far as they are known: this policy needs them")
        self._hold(count, need, 0)
        self._size("jobs", self._buffers["jobs"][:count])
        if len(self.arrays["ends"]) < count:
            self._size("ends", records(2 * count, END))
            self._size("later", np.zeros(2 * count))
        if view.place_node is not None:
            stands = np.empty(len(self._order), np.int32)
            stands[self._order] = np.arange(len(self._order))
            past = self._past_places[: len(view.place_node)]
            past["node"], past["gpus"] = stands[view.place_node], view.place_gpus
        set_up(
            self._roster, self._groups, self._past_places, _NO_GROUPS, _NONE_ENDED, self._history, self._local,
            self._all[:count], 1, 1, False, *(self.arrays[name] for name in SET_UP),
        )  # fmt: skip
        nearby = view.nearby if view.nearby is not None else nobody_near(self._told[: len(view.job)])
        self.arrays["nearby"][ran : count - 1] = nearby[self._rows]
        guess = self._running[4, :ran]
        self.arrays["cards"]["guess"][:ran] = np.where(np.isnan(guess), HOUR, guess)


def _stage(options: Options, nodes: Nodes, sizes: np.ndarray) -> Stage:
    """A stage with one job of every size that there can be, which never plays."""
    pools, count = len(nodes.pool_gpus), int(sizes[-1])
    pool = np.repeat(np.arange(pools, dtype=np.int32), nodes.pool_gpus)
    gpus = (np.arange(count) - sizes[pool] + 1).astype(np.int32)
    zeros, code, tiers = np.zeros(count), options.placement.placer.code, options.placement.highest_tier
    one = slice(0, 1)
    world = make_world(
        nodes, pool[one], zeros[one], zeros[one] + 1.0, gpus[one], zeros[one], np.empty((1, 0), np.int32), False, code,
        tiers, options.workload_seed,
    )  # fmt: skip
    world.queues["size_low"], world.queues["size_high"] = sizes[:-1], sizes[1:]
    roster = records(count, ROSTER)
    roster["pool"], roster["gpus"], roster["size_class"] = pool, gpus, np.arange(count)
    for p in range(pools):
        here = slice(sizes[p], sizes[p + 1])
        capacity = nodes.capacity[nodes.first[p] : nodes.first[p + 1]]
        roster["fewest"][here] = fewest_nodes(capacity, gpus[here])
        roster["most"][here] = most_nodes(code, tiers, capacity, gpus[here], roster["fewest"][here])
    names = np.arange(count).astype(object)
    trace = Trace("sizes", "sizes", names, zeros, zeros + 1.0, gpus)
    layout = tuple(Pool(str(p), ((1, int(gpus)),)) for p, gpus in enumerate(nodes.pool_gpus))
    workload = Workload("", "", trace, layout, pool, nodes, 0.0)
    nothing = np.zeros(0, np.int64)
    world = world._replace(sizes=records(count, SIZE))
    return Stage(
        workload, world, roster, np.empty((count, 0), np.int32), _NO_GROUPS, _NONE_ENDED, 1, nothing, nothing,
        np.zeros((0, TOLD_OF), np.float32), *line_up_groups(np.empty((count, 0), np.int32)),
    )  # fmt: skip


_NO_GROUPS, _NONE_ENDED = np.zeros(1, np.int64), records(0, ENDED)
