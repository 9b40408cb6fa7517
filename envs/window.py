"""A window of a trace under any policy and discipline, from the beginning that all contenders share."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from allocation.choice import DEFAULT, Allocation
from envs.policies import Ask, Policy
from envs.sim.cards import LEVELS, TOLD
from envs.sim.members import members
from envs.sim.setting import find_groups
from envs.sim.simulator import Schedule, Simulation
from envs.sim.state import MEMORY
from envs.sim.warming import Past
from envs.stage import Stage


@dataclass(frozen=True, eq=False)
class Window:
    """Jobs first..first + count - 1 of a stage, which are scored; those that run or wait then are there as well.

    With `backlog` those that wait are scored, too, by what they wait from the window's beginning on.
    """

    stage: Stage
    first: int
    count: int
    warm: bool = True  # False: the cluster is idle, and nobody waits
    backlog: bool = False  # whether those that wait at its beginning are scored

    @property
    def now(self) -> float:
        """When it begins, in seconds from the trace's start."""
        return float(self.stage.roster["submit"][self.first])

    @cached_property
    def scored(self) -> np.ndarray:
        """Which jobs are scored (jobs,)."""
        before = ~self.runs if self.backlog else np.zeros(len(self.jobs) - self.count, bool)
        return np.append(before, np.ones(self.count, bool))

    @cached_property
    def since(self) -> np.ndarray:
        """From when on the waiting of each scored job counts (scored,): its submit, or the window's beginning."""
        return np.maximum(self.stage.roster["submit"][self.jobs[self.scored]], self.now)

    @cached_property
    def jobs(self) -> np.ndarray:
        """The numbers in the trace of all jobs there are, the window's own last."""
        s = self.stage
        if not self.warm:
            return np.arange(self.first, self.first + self.count, dtype=np.int32)
        return members(s.roster, s.every, s.unended_at, s.unended, s.since, self.first, self.count)

    @property
    def runs(self) -> np.ndarray:
        """Which of the jobs before the window's own run when it begins (jobs - count,)."""
        return self.stage.roster["start"][self.jobs[: -self.count]] < self.now

    @property
    def waits(self) -> np.ndarray:
        """Which of them wait: the backlog (jobs - count,); the others run, or arrive in that very second."""
        return ~self.runs & (self.stage.roster["submit"][self.jobs[: -self.count]] < self.now)


def past_of(window: Window) -> Past:
    """What came before a window."""
    stage, chosen = window.stage, window.jobs
    similar = np.empty((len(chosen), LEVELS), np.int32)
    recent, told = np.zeros((similar.size, MEMORY)), np.zeros((similar.size, TOLD), np.float32)
    local = np.full(len(stage.ended_at) - 1, -1, np.int32)
    known = find_groups(
        stage.groups, stage.ended_at, stage.ended, local, chosen, window.warm, window.now, similar, recent, told
    )
    return Past(stage.roster, stage.world.places, chosen, window.count, similar, recent[:known], window.warm)


def simulate_window(
    window: Window,
    policy: str | Ask | Policy,
    discipline: str,
    allocation: str | Allocation = DEFAULT,
    runtime_info: str = "oracle",
    seed: int = 0,
    past: Past | None = None,
    progress: Callable[[int], None] | None = None,
) -> Schedule:
    """Run a window; the schedule has the jobs of `window.jobs`. `past` saves making it again.

    The stage must know what `runtime_info` allows (stage.knowing). Raises ConfigError for options that do not go
    together, or a discipline that begins with an idle cluster.
    """
    past = past_of(window) if past is None else past
    if past.recent.size:
        past = past._replace(recent=past.recent.copy())  # the simulation goes on writing to it
    whole = window.stage.workload
    workload = dataclasses.replace(whole, trace=whole.trace.select(past.chosen), pool=whole.pool[past.chosen])
    return Simulation(workload, policy, discipline, "pool", allocation, runtime_info, seed, past).run(progress)
