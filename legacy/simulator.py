"""The reference simulator: objects, lists and loops, as slow as it is easy to read.

It shares no code with the compiled simulator, which is compared with it job by job (tests/test_kernel_vs_legacy.py).
docs/semantics.md says in words what both do.
"""

import math
from dataclasses import dataclass, field

from legacy.placement import Placement, consolidate, fill, lex, number, tiered
from legacy.policies import CHANGE_WITH_TIME, KEYS, NEED_RUN_TIME

INFINITY = float("inf")


@dataclass
class Job:
    """One job: what it asks for, and what became of it."""

    number: int
    submit: float
    run_time: float
    gpus: int
    pool: int = 0
    estimate: float = 0.0  # what is known of run_time
    user: str = ""
    vc: str = ""
    given_key: float = 0.0  # for policies that are not formulas
    start: float = -1.0
    nodes: Placement = field(default_factory=list)

    @property
    def end(self) -> float:
        """When it ends, once it has started."""
        return self.start + self.run_time


class Simulator:
    """Runs jobs on pools of nodes; `capacity[p]` lists the GPUs of each node of pool p."""

    def __init__(
        self,
        jobs: list[Job],
        capacity: list[list[int]],
        policy: str,
        discipline: str,
        queue: str = "pool",
        placer: str = "lex",
        predict: bool = False,
        tiers: int = 1,
        seed: int = 0,
    ) -> None:
        self.tiers, self.seed = tiers, seed
        self.jobs, self.policy, self.discipline, self.placer, self.predict = jobs, policy, discipline, placer, predict
        self.global_queue = queue == "global"
        self.capacity = [gpus for pool in capacity for gpus in pool]
        self.pool_nodes, first = [], 0
        for pool in capacity:
            self.pool_nodes.append(range(first, first + len(pool)))
            first += len(pool)
        self.free = list(self.capacity)
        self.now = 0.0
        self.arrived: list[Job] = []
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.ended: list[Job] = []
        self.held: dict[int, Job] = {}
        self.plan: dict[int, list[tuple[Job, float, Placement]]] = {}
        self.surprised: set[int] = set()
        self.due: dict[int, float] = {}

    def run(self) -> list[Job]:
        """Simulate until every job has ended."""
        if self.discipline.startswith("rlscheduler"):
            return self.run_one_by_one()
        coming = sorted(self.jobs, key=lambda job: (job.submit, job.number))
        while coming or self.running or self.waiting:
            touched = set()
            events = [job.submit for job in coming[:1]] + [job.end for job in self.running]
            if events:
                self.now = min(events)
            else:  # only accasim_easy lets jobs wait while nothing runs
                self.now += max(math.ceil(min(self.due[queue] for queue in self.held) - self.now), 1)
                touched = set(self.held)
            for job in sorted(self.running, key=lambda job: (job.end, job.number)):
                if job.end <= self.now:
                    self.finish(job)
                    touched.add(self.queue_of(job))
            while coming and coming[0].submit <= self.now:
                job = coming.pop(0)
                self.arrived.append(job)
                if self.predict:
                    job.estimate = self.predicted(job)
                self.waiting.append(job)
                touched.add(self.queue_of(job))
            for queue in sorted(touched):
                self.schedule(queue)
        return self.jobs

    def run_one_by_one(self) -> list[Job]:
        """RLScheduler's loop: choose, wait for the chosen job one event at a time, start it."""
        coming = sorted(self.jobs, key=lambda job: (job.submit, job.number))
        self.waiting, self.now = [coming.pop(0)], self.jobs[0].submit
        self.arrived = list(self.waiting)
        while self.waiting:
            self.waiting.sort(key=lambda job: self.key(job))  # stable: earlier order breaks ties
            chosen = self.waiting[0]
            shadow = -INFINITY
            if self.place(chosen, self.free) is None and self.discipline.endswith("easy"):
                self.running.sort(key=lambda job: job.start + job.estimate)
                idle = sum(self.free[node] for node in self.pool_nodes[chosen.pool])
                for job in self.running:
                    idle += job.gpus if job.pool == chosen.pool else 0
                    if idle >= chosen.gpus:
                        shadow = job.start + job.estimate
                        break
            while not self.start_if(chosen, self.place(chosen, self.free)):
                if self.discipline.endswith("easy"):
                    self.waiting.sort(key=lambda job: job.submit)
                    for job in list(self.waiting):
                        if self.now + job.estimate < shadow:
                            self.start_if(job, self.place(job, self.free))
                self.one_event(coming)
            while not self.waiting and coming:
                self.one_event(coming)
        return self.jobs

    def one_event(self, coming: list[Job]) -> None:
        """The next arrival or the earliest end, whichever comes first; the arrival if both do."""
        self.running.sort(key=lambda job: job.end)
        if coming and (not self.running or coming[0].submit <= self.running[0].end):
            self.now = max(self.now, coming[0].submit)
            self.arrived.append(coming[0])
            self.waiting.append(coming.pop(0))
        else:
            self.now = max(self.now, self.running[0].end)
            self.finish(self.running[0])

    def queue_of(self, job: Job) -> int:
        """The queue in which a job waits."""
        one_for_all = self.global_queue and self.discipline not in ("fit", "conservative")
        return 0 if one_for_all else job.pool

    def key(self, job: Job) -> float | tuple[float, float]:
        """A job's key now."""
        if self.policy not in KEYS:
            return job.given_key
        size = sum(self.capacity[node] for node in self.pool_nodes[job.pool])
        return KEYS[self.policy](job.submit, job.estimate, job.gpus, self.now - job.submit, size)

    def in_order(self, queue: int) -> list[Job]:
        """The waiting jobs of a queue, best first; ties in submit order."""
        mine = (job for job in self.waiting if self.queue_of(job) == queue)
        return sorted(mine, key=lambda job: (self.key(job), job.number))

    def schedule(self, queue: int) -> None:
        """Let one queue start what its discipline allows."""
        if self.discipline == "conservative":
            self.follow_plan(queue)
            return
        if self.discipline == "fit":
            while any(self.start_if(job, self.place(job, self.free)) for job in self.in_order(queue)):
                pass
            return
        if self.discipline == "accasim_easy":
            self.accasim(queue)
            return
        holds, backfills = self.discipline.startswith("reserve"), self.discipline.endswith("easy")
        while line := self.in_order(queue):
            first = self.held.get(queue, line[0])
            if not self.start_if(first, self.place(first, self.free)):
                if holds:
                    self.held[queue] = first
                if backfills:
                    self.backfill(first, [job for job in line if job is not first])
                return
            self.held.pop(queue, None)

    def accasim(self, queue: int) -> None:
        """AccaSim's backfilling: all that fit pass the blocked job, which is not tried before its reservation."""
        held = self.held.get(queue)
        if held is not None and self.due[queue] <= self.now and self.start_if(held, self.place(held, self.free)):
            del self.held[queue]
        while queue not in self.held and (line := self.in_order(queue)):
            if not self.start_if(line[0], self.place(line[0], self.free)):
                self.held[queue], self.due[queue] = line[0], self.now
                idle = sum(self.free[node] for node in self.pool_nodes[line[0].pool])
                mates = [job for job in self.running if job.pool == line[0].pool]
                for job in sorted(mates, key=lambda job: job.start + job.estimate):
                    if idle < line[0].gpus:
                        idle += job.gpus
                        self.due[queue] = job.start + job.estimate
        for job in self.in_order(queue):
            if job is not self.held.get(queue):
                self.start_if(job, self.place(job, self.free))

    def start_if(self, job: Job, nodes: Placement | None) -> bool:
        """Start a job on the nodes found for it, if any."""
        if nodes is None:
            return False
        for node, gpus in nodes:
            self.free[node] -= gpus
        job.start, job.nodes = self.now, nodes
        self.waiting.remove(job)
        self.running.append(job)
        return True

    def finish(self, job: Job) -> None:
        """Give a job's GPUs back."""
        for node, gpus in job.nodes:
            self.free[node] += gpus
        self.running.remove(job)
        self.ended.append(job)
        if job.start + job.estimate != self.now:
            self.surprised.add(job.pool)

    def predicted(self, job: Job) -> float:
        """The mean run time of the last ten ended jobs most like this one."""
        alike = [
            [old for old in self.ended if job.user and old.user == job.user and old.gpus == job.gpus],
            [old for old in self.ended if job.vc and old.vc == job.vc and old.gpus == job.gpus],
            [old for old in self.ended if old.gpus == job.gpus],
            self.ended,
        ]
        for jobs in alike:
            if jobs:
                last = [old.run_time for old in jobs[-10:]]
                return sum(last) / len(last)
        return 3600.0

    def place(self, job: Job, free: list[int]) -> Placement | None:
        """Choose nodes for a job where `free` GPUs are idle; None where it does not fit."""
        nodes = self.pool_nodes[job.pool]
        if self.placer == "spread":
            return fill(nodes, free, job.gpus) if sum(free[n] for n in nodes) >= job.gpus else None
        if self.placer == "consolidate":
            return consolidate(nodes, self.capacity, free, job.gpus)
        if self.placer == "lex" and self.tiers == 1:
            return lex(nodes, self.capacity, free, job.gpus)
        seed = number(number(self.seed, int(self.now)), job.gpus)
        recent = [other.gpus for other in self.arrived if other.pool == job.pool][-1000:]
        return tiered(self.placer, nodes, self.capacity, free, job.gpus, self.tiers, recent, seed)

    def expected_end(self, job: Job) -> float:
        """When a running job should end; one that is late is expected to end in a second."""
        end = job.start + job.estimate
        return end if end > self.now else self.now + 1

    def backfill(self, first: Job, others: list[Job]) -> None:
        """EASY: start others that fit and do not delay the first."""
        then = list(self.free)
        shadow = INFINITY
        for job in sorted((j for j in self.running if j.pool == first.pool), key=self.expected_end):
            if self.expected_end(job) > shadow:
                break
            for node, gpus in job.nodes:
                then[node] += gpus
            if shadow == INFINITY and self.place(first, then) is not None:
                shadow = self.expected_end(job)
        for job in others:
            nodes = self.place(job, self.free)
            if nodes is None:
                continue
            if job.pool == first.pool and job.estimate > shadow - self.now:
                beside = list(then)
                for node, gpus in nodes:
                    beside[node] -= gpus
                if self.place(first, beside) is None:
                    continue
                then = beside
            self.start_if(job, nodes)

    def follow_plan(self, pool: int) -> None:
        """Conservative: renew the reservations that may have changed, then start what is due."""
        line = self.in_order(pool)
        self.renew_plan(pool, line, self.still_reserved(pool, line))

    def still_reserved(self, pool: int, line: list[Job]) -> list[tuple[Job, float, Placement]]:
        """The reservations of the first jobs of a line that stay."""
        late = any(job.pool == pool and job.start + job.estimate <= self.now for job in self.running)
        fixed = self.policy not in CHANGE_WITH_TIME and not (self.predict and self.policy in NEED_RUN_TIME)
        kept: list[tuple[Job, float, Placement]] = []
        if fixed and not late and pool not in self.surprised:
            old = [entry for entry in self.plan.get(pool, []) if entry[0] in line]
            while len(kept) < len(old) and old[len(kept)][0] is line[len(kept)]:
                kept.append(old[len(kept)])
        return kept

    def renew_plan(self, pool: int, line: list[Job], kept: list[tuple[Job, float, Placement]]) -> None:
        """Reserve for all of a line but those that keep their reservation, then start what is due."""
        self.surprised.discard(pool)
        plan = list(kept)
        for job in line[len(kept) :]:
            plan.append((job, *self.earliest(job, plan)))
        self.plan[pool] = plan
        for job, start, nodes in plan:
            if start == self.now:
                self.start_if(job, nodes)

    def earliest(self, job: Job, plan: list[tuple[Job, float, Placement]]) -> tuple[float, Placement]:
        """The earliest start at which a job fits beside the running jobs and a plan, for as long as it should run."""
        booked = [(self.now, self.expected_end(other), other.nodes) for other in self.running if other.pool == job.pool]
        booked += [(start, start + other.estimate, nodes) for other, start, nodes in plan]
        for start in sorted({self.now} | {end for _, end, _ in booked}):
            stop = start + job.estimate
            moments = {start} | {begin for begin, _, _ in booked if start < begin < stop}
            idle = list(self.capacity)
            for moment in moments:
                then = list(self.capacity)
                for begin, end, nodes in booked:
                    if begin <= moment < end:
                        for node, gpus in nodes:
                            then[node] -= gpus
                idle = [min(pair) for pair in zip(idle, then, strict=True)]
            placed = self.place(job, idle)
            if placed is not None:
                return start, placed
        raise AssertionError("a job that fits an idle pool fits once everything has ended")
