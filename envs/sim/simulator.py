"""Jobs and a cluster in, a complete schedule out."""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from allocation.choice import DEFAULT, Allocation
from allocation.placers import MILP
from berth.commandline import nearest
from berth.errors import ConfigError, SimulationError
from envs.knowledge import Knowledge, know, refuse_hidden
from envs.policies import Ask, Policy, find_policy
from envs.sim import kernel, priorities
from envs.sim.one_by_one import replay_one_by_one
from envs.sim.seen import snapshot_of
from envs.sim.state import ACCASIM_EASY, CONSERVATIVE, EASY, FIT, IN_ORDER, ONE_BY_ONE, ONE_BY_ONE_EASY
from envs.sim.warming import Past, warm_up
from envs.sim.world import World, make_world, used_places
from envs.snapshot import Snapshot
from envs.workload import Workload

if TYPE_CHECKING:
    from envs.sim.foresight import Foresight

EVENTS_AT_A_TIME = 20_000
PLANS_AT_A_TIME = 200
"""How many events run before Python hears of progress and interrupts: fewer where each can take milliseconds."""
QUEUES = ("pool", "global")


_LISTED = (ONE_BY_ONE, ONE_BY_ONE_EASY)


class Discipline(NamedTuple):
    """How a discipline is put together from the kernel's parts."""

    code: int
    hold: bool
    backfills: bool  # needs to know when running jobs end
    text: str


DISCIPLINES = {
    "strict": Discipline(IN_ORDER, False, False, "the first job blocks its queue while it does not fit"),
    "reserve": Discipline(IN_ORDER, True, False, "a chosen job that does not fit holds its queue until it starts"),
    "easy": Discipline(EASY, False, True, "strict, and jobs slip past that do not delay the first"),
    "reserve_easy": Discipline(EASY, True, True, "reserve, and jobs slip past that do not delay the chosen one"),
    "conservative": Discipline(CONSERVATIVE, False, True, "every queued job has a reservation"),
    "fit": Discipline(FIT, False, False, "any queued job that fits, in priority order"),
    "accasim_easy": Discipline(
        ACCASIM_EASY, True, True, "AccaSim's: all that fit pass the first, which waits its time"
    ),
    "rlscheduler": Discipline(ONE_BY_ONE, True, False, "reserve by RLScheduler's rules: one event, one job at a time"),
    "rlscheduler_easy": Discipline(
        ONE_BY_ONE_EASY, True, True, "rlscheduler with its backfilling by shadow time alone"
    ),
}
"""Every discipline by name."""


@dataclass(frozen=True)
class Schedule:
    """Who ran when and where, and under which rules."""

    workload: Workload
    policy: str
    discipline: str
    runtime_info: str
    start: np.ndarray  # (jobs,) float64 s from the trace's start
    place_at: np.ndarray  # (jobs,) int64, where the job's places begin
    place_count: np.ndarray  # (jobs,) int32
    place_node: np.ndarray  # (places,) int32
    place_gpus: np.ndarray  # (places,) int32
    busy: np.ndarray  # (nodes,) float64 GPU-seconds used
    stranded: np.ndarray  # (nodes,) float64 GPU-seconds idle on a partly used node
    allocation: Allocation
    placements: Mapping[str, int]  # how the MILP found its placements, where it did

    @property
    def end(self) -> np.ndarray:
        """When each job ended, in seconds."""
        return self.start + self.workload.trace.run_time

    def nodes_of(self, job: int) -> list[tuple[int, int]]:
        """The (node, GPUs) that a job ran on."""
        at = slice(self.place_at[job], self.place_at[job] + self.place_count[job])
        return list(zip(self.place_node[at].tolist(), self.place_gpus[at].tolist(), strict=True))


def check_options(policy: Policy, discipline: str, queue: str, runtime_info: str) -> None:
    """Raise ConfigError for names that are not known and options that do not go together."""
    if discipline not in DISCIPLINES:
        raise ConfigError(f"discipline {discipline}: {nearest(discipline, DISCIPLINES)}")
    if queue not in QUEUES:
        raise ConfigError(f"queue {queue}: {nearest(queue, QUEUES)}")
    how = DISCIPLINES[discipline]
    if how.code in _LISTED and (policy.ask is not None or runtime_info == "predicted"):
        raise ConfigError(
            f"discipline {discipline} takes no Python functions and no predicted run times; choose others"
        )
    if runtime_info == "hidden":
        refuse_hidden(policy.name, policy.needs_run_time, discipline, how.backfills)


class Simulation:
    """One simulation that can be run at once, or event by event."""

    def __init__(
        self,
        workload: Workload,
        policy: str | Ask | Policy = "fcfs",
        discipline: str = "strict",
        queue: str = "pool",
        allocation: str | Allocation = DEFAULT,
        runtime_info: str = "oracle",
        seed: int = 0,
        past: Past | None = None,
    ) -> None:
        self.workload = workload
        self.policy = find_policy(policy)
        check_options(self.policy, discipline, queue, runtime_info)
        if past is not None and DISCIPLINES[discipline].code in _LISTED:
            raise ConfigError(f"discipline {discipline} begins with an idle cluster; want another where one is warm")
        self.discipline = discipline
        self.runtime_info = runtime_info
        self.allocation = Allocation(allocation) if isinstance(allocation, str) else allocation
        how = DISCIPLINES[discipline]
        known = know(workload.trace, runtime_info, seed) if past is None else _recalled(past, runtime_info)
        self.world: World = make_world(
            workload.nodes,
            workload.pool,
            workload.trace.submit,
            workload.trace.run_time,
            workload.trace.gpus,
            known.estimate,
            known.similar,
            one_queue=queue == "global" and how.code in (IN_ORDER, EASY, ACCASIM_EASY),
            placer=self.allocation.placer.code,
            tiers=self.allocation.highest_tier,
            seed=seed,
        )
        sim = self.world.sim[0]
        sim["discipline"], sim["hold"] = how.code, how.hold
        by_size = how.code in (FIT, EASY)
        if self.policy.ask is not None:
            self.world = self.world.listed(priorities.GIVEN)
        elif self.policy.draw is not None and how.code in _LISTED:
            self.world = self.world.listed(priorities.GIVEN)
            self.world.links["key"] = self.policy.draw(len(workload), seed)
        elif self.policy.draw is not None:
            drawn = self.policy.draw(len(workload) if past is None else len(past.roster), seed)
            self.world = self.world.ranked(drawn if past is None else drawn[past.chosen], by_size)
        elif how.code in _LISTED or self.policy.changes or (sim["predict"] and self.policy.needs_run_time):
            self.world = self.world.listed(self.policy.code)
        else:
            self.world = self.world.ranked_by(self.policy.code, by_size)
        self._is_warm = past is not None
        if past is not None:
            self._warm_up(past)
        self._outside: Foresight | None = None
        if self.allocation.placer.code == MILP:
            from envs.sim import foresight  # PuLP takes a while to import

            self._outside = foresight.Foresight(self.allocation, self.world)

    def run(self, progress: Callable[[int], None] | None = None) -> Schedule:
        """Run to the end; `progress` is told the number of jobs started, now and then."""
        if DISCIPLINES[self.discipline].code in _LISTED:
            replay_one_by_one(*self.world.single())
            return self._complete()
        if self._is_warm:
            self._first_event()
        if self.policy.ask is not None:
            self._run_asking(self.policy.ask, progress)
        events = PLANS_AT_A_TIME if self.discipline == "conservative" else EVENTS_AT_A_TIME
        while kernel.replay(*self.world, events):
            if progress is not None:
                progress(int(self.world.sim["started"][0]))
        return self._complete()

    def _warm_up(self, past: Past) -> None:
        """Let the jobs before the window run and wait."""
        w = self.world
        if past.recent.size and w.sim["predict"][0]:
            self.world = w = w._replace(recent=past.recent)
        if not past.warm:
            return
        first = len(past.chosen) - past.scored
        warm_up(
            past.roster, past.places, past.chosen, first, past.now, w.sim, w.jobs, w.links, w.queues, w.free, w.nodes,
            w.ends, w.places, w.bits, w.least, w.lengths, w.mix,
        )  # fmt: skip

    def _first_event(self) -> None:
        """Let every queue start what it may, not only those that the event touches: others led it until now."""
        kernel.advance(*self.world.clockwork())
        if self.policy.ask is not None:
            self._ask(self.policy.ask)
        self.world.queues["touched"] = True
        kernel.schedule(*self.world.desk())

    def _complete(self) -> Schedule:
        """The schedule, in which every job has started."""
        if (self.world.jobs["start"] < 0).any():
            job = self.workload.trace.job_id[int(np.argmax(self.world.jobs["start"] < 0))]
            raise SimulationError(f"job {job} has not started although it fits its idle pool: a placement failed")
        return self.schedule()

    def schedule(self) -> Schedule:
        """What has come out; complete once everything has run."""
        world = self.world
        at, node, gpus = used_places(world.jobs, world.places)
        return Schedule(
            workload=self.workload,
            policy=self.policy.name,
            discipline=self.discipline,
            runtime_info=self.runtime_info,
            start=world.jobs["start"].copy(),
            place_at=at,
            place_count=world.jobs["place_count"].copy(),
            place_node=node,
            place_gpus=gpus,
            busy=world.nodes["busy"].copy(),
            stranded=world.nodes["stranded"].copy(),
            allocation=self.allocation,
            placements=self._outside.counts if self._outside else {},
        )

    def snapshot(self) -> Snapshot:
        """What a policy may see now."""
        return snapshot_of(self.world)

    def _run_asking(self, ask: Ask, progress: Callable[[int], None] | None) -> None:
        """Run to the end, asking a Python function for keys whenever something waits."""
        world = self.world
        while kernel.advance(*world.clockwork()):
            self._ask(ask)
            kernel.schedule(*world.desk())
            if progress is not None:
                progress(int(world.sim["started"][0]))

    def _ask(self, ask: Ask) -> None:
        """Have the waiting jobs' keys from a Python function."""
        if self.world.queues["waiting"].any():
            view = self.snapshot()
            self.world.links["key"][view.job] = self._keys(ask, view)

    def _keys(self, ask: Ask, view: Snapshot) -> np.ndarray:
        """The function's answer, checked."""
        try:
            answer = np.asarray(ask(view))
            keys = answer.astype(np.float64, casting="same_kind" if answer.dtype.kind == "c" else "unsafe")
        except Exception as trouble:
            last = traceback.extract_tb(trouble.__traceback__)[-1]
            raise SimulationError(
                f"policy {self.policy.name} at {view.now:g} s: {type(trouble).__name__}: {trouble} "
                f"({last.filename}:{last.lineno})"
            ) from trouble
        if keys.shape != view.job.shape or np.isnan(keys).any():
            came = "NaN" if keys.shape == view.job.shape else f"shape {keys.shape}"
            raise SimulationError(
                f"policy {self.policy.name} at {view.now:g} s: answered {came}, "
                f"want {len(view.job)} numbers, one per queued job"
            )
        return keys


def _recalled(past: Past, runtime_info: str) -> Knowledge:
    """What is known of the jobs of a window, as the whole trace has it."""
    similar = past.similar if runtime_info == "predicted" else past.similar[:, :0]
    return Knowledge(past.roster["estimate"][past.chosen], similar)


def simulate(
    workload: Workload,
    policy: str | Ask | Policy = "fcfs",
    discipline: str = "strict",
    queue: str = "pool",
    allocation: str | Allocation = DEFAULT,
    runtime_info: str = "oracle",
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Schedule:
    """Run one simulation from beginning to end; raises ConfigError for options that do not go together."""
    return Simulation(workload, policy, discipline, queue, allocation, runtime_info, seed).run(progress)
