"""The MILP at work in a simulation: the kernel's jobs and nodes in, a placement out."""

import numpy as np

from allocation.choice import AHEAD, Allocation
from allocation.milp import HOW, Planner
from berth.errors import SimulationError
from envs.sim.ahead import next_in_line
from envs.sim.outside import register
from envs.sim.state import ONE_BY_ONE, ONE_BY_ONE_EASY
from envs.sim.world import World


class Foresight:
    """Places a simulation's jobs by integer programs."""

    def __init__(self, allocation: Allocation, world: World) -> None:
        self.planner = Planner(allocation.highest_tier, allocation.milp_time_limit)
        self.world = world
        world.sim["handle"] = register(self.answer)

    @property
    def counts(self) -> dict[str, int]:
        """How many placements were found in which way."""
        return {how: self.planner.counts[how] for how in HOW}

    def answer(self, job: int, free: np.ndarray) -> int:
        """Place a job that fits."""
        world = self.world
        row = world.jobs[job]
        low, high = int(world.pools["low"][row["pool"]]), int(world.pools["high"][row["pool"]])
        ahead = world.jobs["gpus"][self._next(job)].tolist()
        placed = self.planner.place(free[low:high], world.capacity[low:high], int(row["gpus"]), ahead)
        if placed is None:
            raise SimulationError(f"job {job} fits its pool, but the MILP found no placement")
        at = int(row["place_at"])
        for i, (node, gpus) in enumerate(placed.nodes):
            world.places["node"][at + i], world.places["gpus"][at + i] = low + node, gpus
        return len(placed.nodes)

    def _next(self, job: int) -> np.ndarray:
        """The jobs that come next; in submit order where the discipline keeps a list of its own."""
        w = self.world
        if w.sim["discipline"][0] in (ONE_BY_ONE, ONE_BY_ONE_EASY):
            known = w.jobs[: w.sim["next"][0]]
            waiting = np.flatnonzero((known["start"] < 0) & (known["pool"] == w.jobs["pool"][job]))
            return waiting[waiting != job][:AHEAD]
        return next_in_line(w.sim, w.jobs, w.links, w.queues, w.pools, w.sizes, w.bits, w.by_rank, job, AHEAD)
