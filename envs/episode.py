"""One episode after another on arrays of their own, which compiled code plays on."""

import signal
import threading
from typing import Any

import numba
import numpy as np

from allocation.outlined import placers_address
from allocation.placers import MILP
from berth.compiled import records
from berth.errors import SimulationError
from envs.observation import JOB_FEATURES, LOOKAHEAD_MODES, POOL_FEATURES, WINDOW_ORDERS, lookahead_layout
from envs.options import Options
from envs.reward import SCORES, find_score
from envs.sim.cards import CARD, EPISODE, KEY, KIND, LEVELS, TOLD
from envs.sim.cluster import Nodes
from envs.sim.history import TOLD_OF
from envs.sim.members import members, running_first
from envs.sim.nearby import NEAR_LEVELS, NEARBY_OF, SEATS, list_nearby, write_nearby
from envs.sim.outside import register
from envs.sim.playing import ARRAYS, BASELINE, BEGIN, STEP, STUCK, play_one
from envs.sim.priorities import GIVEN
from envs.sim.rankset import words_for
from envs.sim.seen import whole_snapshot
from envs.sim.setting import set_up
from envs.sim.state import JOB, LINK, MEMORY, PLACE
from envs.sim.world import World
from envs.snapshot import Snapshot
from envs.stage import Stage

SET_UP = (
    "sim", "jobs", "links", "queues", "pools", "capacity", "free", "nodes", "ends", "places", "bits", "least",
    "lengths", "similar", "recent", "mix", "episode", "cards", "keys", "kinds", "looks", "line", "line_kinds",
    "arrived", "by_end", "told", "history",
)  # fmt: skip
"""The arrays that `set_up` writes to, as it takes them."""


def sizes(options: Options, nodes: Nodes) -> tuple[int, int]:
    """How many numbers `cluster` has, and how many actions there are."""
    looks = lookahead_layout(nodes)
    return len(looks) * len(POOL_FEATURES) + int(looks["count"].sum()), options.window + (options.action_mode == "fit")


class Episode:
    """The state of an episode; `begin` starts a new one, `step` takes a decision."""

    def __init__(
        self,
        options: Options,
        stage: Stage,
        table: np.ndarray | None = None,
        shared: dict[str, np.ndarray] | None = None,
    ) -> None:
        self.options = options
        self.first = -1  # number of the first scored job in the trace
        self.table = np.zeros((len(ARRAYS), 3), np.int64) if table is None else table
        self._trouble: BaseException | None = None
        self._foresight: Any = None
        self.arrays: dict[str, np.ndarray] = {}
        self._lay_out(stage, shared or {})
        self._hold(64, 64, 64)
        self._enter(stage)

    @property
    def now(self) -> np.void:
        """The episode's row (envs/sim/cards.py)."""
        return self.arrays["episode"][0]

    @property
    def observation(self) -> dict[str, np.ndarray]:
        """What the agent sees; the arrays are written to again at the next step."""
        return {"jobs": self.arrays["rows"], "cluster": self.arrays["cluster"], "mask": self.arrays["mask"]}

    def begin(self, stage: Stage, first: int) -> None:
        """Let the baseline play the window that begins at a job, then go to the agent's first decision."""
        self.set_up(stage, first)
        self.play(BASELINE)
        self.set_up(stage, first, again=True)
        self.play(BEGIN)

    def step(self, action: int) -> None:
        """Take an action that can be taken."""
        self.play(STEP, action)

    def play(self, what: int, action: int = 0) -> None:
        """Let compiled code play on; where it asks Python for placements, an interrupt waits until it has come back."""
        arrays = self.in_order() if numba.config.DISABLE_JIT else ()
        if self._foresight is None or threading.current_thread() is not threading.main_thread():
            self.check(play_one(what, action, self.table, arrays))
            return
        handler = signal.signal(signal.SIGINT, self._note_interrupt)
        try:
            answer = play_one(what, action, self.table, arrays)
        finally:
            signal.signal(signal.SIGINT, handler)
        self.check(answer)

    def _note_interrupt(self, *_: Any) -> None:
        self._trouble = KeyboardInterrupt()

    def replaced(self, action: int) -> int:
        """A valid action in the place of a masked one, which is counted."""
        mask = self.arrays["mask"]
        if mask[action]:
            return action
        self.arrays["episode"]["invalid"] += 1
        return int(np.argmax(mask))

    def in_trace_order(self) -> np.ndarray:
        """The episode's jobs by their numbers in it, in the order of the trace."""
        return np.argsort(self._chosen)

    def window_jobs(self) -> np.ndarray:
        """The jobs in the window, slot by slot, by their numbers in the episode."""
        return self.arrays["slots"][: self.now["shown"]]

    def baseline_action(self) -> int:
        """The slot of the job that the baseline would take; -1 where the window does not show it."""
        a, row = self.arrays, self.now
        waiting = a["arrived"][row["arrived_at"] : row["arrived_at"] + row["waiting"]]
        can = waiting[a["kinds"]["choosable"][a["cards"]["kind"][waiting]]]
        if not len(can):
            return int(np.argmax(a["mask"]))
        first = can[np.lexsort((can, a["keys"]["tie"][can], a["keys"]["key"][can]))[0]]
        at = np.flatnonzero(self.window_jobs() == first)
        return int(at[0]) if len(at) else -1

    def snapshot(self) -> Snapshot:
        """What a decision may rest on; jobs have the numbers that they have in the episode."""
        a, now = self.arrays, float(self.arrays["sim"]["now"][0])
        view = whole_snapshot(self._world(), a["cards"]["guess"], a["history"])
        nearby = a["nearby"][view.job]
        for row, job in zip(nearby, view.job, strict=True):  # those that the window does not show were not looked at
            write_nearby(a["jobs"], a["near"], a["past"], a["history"], job, now, row)
        return view._replace(nearby=nearby)

    def check(self, answer: int) -> None:
        """Raise what went wrong while compiled code played."""
        if self._trouble is not None:
            trouble, self._trouble = self._trouble, None
            self._foresight = None
            self._foresee()
            raise trouble
        if answer == STUCK:
            raise SimulationError(f"the episode from job {self.first} on is stuck: jobs wait, and nothing can happen")

    def in_order(self) -> list[np.ndarray]:
        """The arrays as `play` takes them."""
        return [self.arrays[name] for name in ARRAYS]

    def set_up(self, stage: Stage, first: int, again: bool = False) -> None:
        """Lay out the beginning of a window; `again` after the baseline has played it."""
        if stage is not self.stage:
            self._enter(stage)
        a, options = self.arrays, self.options
        if not again:
            self.first = first
            if options.warm_start:
                self._chosen = members(
                    stage.roster, stage.every, stage.unended_at, stage.unended, stage.since, first, options.seq_len
                )
            else:
                self._chosen = np.arange(first, first + options.seq_len, dtype=np.int32)
            count = len(self._chosen)
            self._scored = options.seq_len
            if options.score_backlog:
                self._chosen, running = running_first(stage.roster, self._chosen, options.seq_len)
                self._scored = count - running
            self._size("base", np.zeros(self._scored))
            self._size("by_end", np.zeros(2 * self._scored, np.int32))
            self._hold(count, int(stage.roster["most"][self._chosen].sum()), count * LEVELS)
            self._size("jobs", self._buffers["jobs"][:count])
            if self._foresight is not None:
                self._foresight.world = self._world()
        set_up(
            stage.roster,
            stage.groups,
            stage.world.places,
            stage.ended_at,
            stage.ended,
            stage.history,
            self._local,
            self._chosen,
            options.seq_len,
            self._scored,
            options.warm_start,
            *(a[name] for name in SET_UP),
        )
        if again:
            self._note_nearby(stage, float(a["episode"]["begin"][0]))
            row = a["episode"]
            row["counts"] = True
            if options.horizon_factor:
                row["horizon"] = row["begin"] + options.horizon_factor * (row["baseline_last"] - row["begin"])

    def _note_nearby(self, stage: Stage, now: float) -> None:
        """Note who stands beside each job in the order of submission."""
        a, count = self.arrays, len(self._chosen)
        if len(a["near"]) < count:
            self._size("near", np.zeros((count + count // 2, SEATS), np.int32))
            self._size("past", np.zeros((count + count // 2, 2 * NEAR_LEVELS)))
        list_nearby(
            stage.roster, stage.groups, stage.line, stage.line_at, self._chosen, self.options.warm_start, now,
            self._number, a["near"], a["past"],
        )  # fmt: skip

    def _lay_out(self, stage: Stage, shared: dict[str, np.ndarray]) -> None:
        """Make the arrays whose size the cluster and the options give; some are rows of arrays for many episodes."""
        options, world = self.options, stage.world
        cluster, actions = sizes(options, stage.workload.nodes)
        gpus = int(world.capacity.sum())
        policy = options.policy
        sim = world.sim.copy()
        sim["placer"], sim["tiers"] = options.placement.placer.code, options.placement.highest_tier
        sim["policy"] = GIVEN if policy.draw is not None else policy.code
        sim["ranked"] = sim["by_size"] = False
        episode = shared.get("episode", records(1, EPISODE))
        episode["gpus"], episode["score"] = gpus, SCORES[find_score(options.score_type)].code
        episode["window"], episode["order"] = options.window, WINDOW_ORDERS[options.window_order]
        episode["lookahead"], episode["max_steps"] = LOOKAHEAD_MODES[options.lookahead_mode], options.max_steps
        episode["fit"], episode["again"] = options.action_mode == "fit", options.asks_again
        episode["backfill"] = options.backfil or options.asks_again
        episode["reserves"] = options.action_mode == "conservative"
        episode["keeps"] = not (policy.changes or (sim["predict"][0] and policy.needs_run_time))
        episode["prior"] = options.prior_policy.code if options.prior else -1
        episode["prior_knows"] = options.prior_knows
        episode["changes"], episode["dense"] = policy.changes, options.reward == "dense"
        episode["tiered"] = options.placement.placer.tiered
        fixed = {
            "sim": sim, "pools": world.pools, "capacity": world.capacity, "free": world.free.copy(),
            "nodes": world.nodes.copy(), "ends": world.ends.copy(), "bits": words_for(0),
            "by_rank": np.zeros(0, np.int32), "least": np.zeros(0), "lengths": np.zeros(0), "trial": world.trial.copy(),
            "mix": world.mix.copy(), "tally": world.tally.copy(), "episode": episode, "base": np.zeros(options.seq_len),
            "by_end": np.zeros(2 * options.seq_len, np.int32), "looks": lookahead_layout(stage.workload.nodes),
            "spare": records(len(world.capacity), PLACE), "seen": np.zeros(len(world.capacity), np.int32),
            "counts": np.zeros((len(world.pools), len(world.tally)), np.int64), "later": np.zeros(gpus),
            "values": np.zeros(gpus, np.float32), "slots": np.zeros(options.window, np.int32),
            "rows": np.zeros((options.window, len(JOB_FEATURES)), np.float32),
            "cluster": np.zeros(cluster, np.float32), "mask": np.zeros(actions, np.int8),
            "prior": np.zeros(options.window, np.float32), "near": np.zeros((0, SEATS), np.int32),
            "past": np.zeros((0, 2 * NEAR_LEVELS)),
        }  # fmt: skip
        self._buffers: dict[str, np.ndarray] = {}
        for name, array in (fixed | shared).items():
            self._size(name, array)

    def _enter(self, stage: Stage) -> None:
        """Make the arrays whose size a stage gives."""
        self.stage = stage
        world, roster = stage.world, stage.roster
        kinds = records(len(world.sizes), KIND)
        for name in ("pool", "gpus", "fewest"):
            kinds[name][roster["size_class"]] = roster[name]
        self._local = np.full(len(stage.ended_at) - 1, -1, np.int32)
        self._number = np.full(len(roster), -1, np.int32)
        self._size("kinds", kinds)
        self._size("sizes", world.sizes.copy())
        self._size("queues", world.queues.copy())
        if self.options.placement.placer.code == MILP:
            self._foresee()

    def _hold(self, jobs: int, places: int, groups: int) -> None:
        """Make room for so many jobs, places and groups of similar jobs."""
        need = {
            "jobs": (jobs, JOB), "links": (jobs, LINK), "cards": (jobs, CARD), "keys": (jobs, KEY),
            "line": (jobs, np.dtype("i4")), "line_kinds": (jobs, np.dtype("i4")),
            "arrived": (jobs, np.dtype("i4")), "places": (places, PLACE),
        }  # fmt: skip
        for name, (count, kind) in need.items():
            if len(self._buffers.get(name, ())) < count:
                self._size(
                    name, records(count + count // 2, kind) if kind.names else np.zeros(count + count // 2, kind)
                )
                self._buffers[name] = self.arrays[name]
        if len(self.arrays.get("similar", ())) < jobs:
            self._size("similar", np.zeros((jobs + jobs // 2, LEVELS), np.int32))
            self._size("history", np.zeros((jobs + jobs // 2, TOLD_OF), np.float32))
            self._size("nearby", np.zeros((jobs + jobs // 2, NEARBY_OF), np.float32))
        if len(self.arrays.get("recent", ())) < groups:
            self._size("recent", np.zeros((groups, MEMORY)))
            self._size("told", np.zeros((groups, TOLD), np.float32))

    def _size(self, name: str, array: np.ndarray) -> None:
        """Take an array into use, and note where it is."""
        self.arrays[name] = array
        columns = array.shape[1] if array.ndim == 2 else 1
        self.table[ARRAYS.index(name)] = array.ctypes.data, len(array), columns

    def _world(self) -> World:
        return World(**{name: self.arrays[name] for name in World._fields})

    def _foresee(self) -> None:
        """Have the kernel ask a planner for placements."""
        from envs.sim.foresight import Foresight  # PuLP takes a while to import

        if self._foresight is None:
            self._foresight = Foresight(self.options.placement, self._world())
            self.arrays["sim"]["handle"] = register(self._place)

    def _place(self, job: int, free: np.ndarray) -> int:
        """Place a job by the MILP; compiled code cannot raise, so what goes wrong is kept for `check`."""
        try:
            if self._trouble is None:
                return int(self._foresight.answer(job, free))
        except BaseException as trouble:  # noqa: BLE001 - an interrupt, too, must come out in the end
            self._trouble = trouble
        self.arrays["sim"]["handle"] = -1
        return 0

    def __getstate__(self) -> dict[str, Any]:
        """All but what belongs to this process."""
        state = self.__dict__.copy()
        state["table"] = state["_foresight"] = state["_trouble"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Find the arrays anew."""
        self.__dict__.update(state)
        self.adopt(np.zeros((len(ARRAYS), 3), np.int64))

    def adopt(self, table: np.ndarray, shared: dict[str, np.ndarray] | None = None) -> None:
        """Use another table of addresses, and arrays for many episodes that hold what this one's held."""
        self.table = table
        for name, array in (self.arrays | (shared or {})).items():
            self._size(name, array)
        self.arrays["sim"]["placers"] = placers_address()
        if self.options.placement.placer.code == MILP:
            self._foresee()
