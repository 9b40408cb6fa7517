"""The reference episode: who can be chosen, what is seen and what is earned, as slow as it is easy to read.

It plays a window of jobs on an idle cluster. docs/mdp.md says in words and formulas what it does; the compiled
environments are compared with it, decision by decision (tests/test_environment_vs_legacy.py).
"""

import math
from itertools import combinations

from legacy.simulator import INFINITY, Job, Simulator

HOUR, LONGEST = 3600.0, 1e8


class Episode:
    """An agent chooses among the waiting jobs of a simulator that does not choose by itself."""

    def __init__(self, simulator: Simulator, mode: str, backfill: bool, window: int, order: str = "baseline") -> None:
        self.sim, self.mode, self.window, self.order = simulator, mode, window, order
        self.fit, self.backfill = mode == "fit", backfill or mode == "easy"
        self.asks_again = mode in ("easy", "conservative")
        self.coming = sorted(simulator.jobs, key=lambda job: (job.submit, job.number))
        self.touched: set[int] = set()
        self.told: dict[int, list[float]] = {}  # what ended jobs told of a job when it arrived
        self.to_decision()

    @property
    def over(self) -> bool:
        """The last job has started."""
        return not self.coming and not self.sim.waiting

    def line(self) -> list[Job]:
        """All waiting jobs in the baseline's order."""
        return sorted(self.sim.waiting, key=lambda job: (self.sim.key(job), job.number))

    def can(self, job: Job) -> bool:
        """Whether a job can be chosen."""
        return self.sim.place(job, self.sim.free) is not None if self.fit else job.pool not in self.sim.held

    def shown(self) -> list[Job]:
        """The jobs in the window: those that can be chosen first, all in the order asked for."""
        by_arrival = sorted(self.sim.waiting, key=lambda job: job.number)
        if self.order == "baseline":
            return self.first(self.line(), self.window)
        if self.order == "arrival":
            return self.first(by_arrival, self.window)
        half = self.first(self.line(), (self.window + 1) // 2)
        return half + self.first([job for job in by_arrival if job not in half], self.window - len(half))

    def first(self, line: list[Job], room: int) -> list[Job]:
        """As many jobs of a line as there is room for, the ones that can be chosen before the others."""
        can = [job for job in line if self.can(job)][:room]
        cannot = [job for job in line if not self.can(job)][: room - len(can)]
        return [job for job in line if job in can or job in cannot]

    def can_wait(self) -> bool:
        """Whether waiting is an action: something will happen."""
        return self.fit and bool(self.coming or self.sim.running)

    def choose(self, job: Job | None) -> None:
        """Take a decision; None waits for the next event."""
        if job is None:
            self.next_event()
        else:
            self.take(job)
        self.to_decision()

    def take(self, job: Job) -> None:
        """Start a job, or let it hold its pool while others may slip past."""
        if self.mode == "conservative":
            self.take_by_plan(job)
            return
        if self.sim.start_if(job, self.sim.place(job, self.sim.free)):
            self.sim.held.pop(job.pool, None)
            return
        self.sim.held[job.pool] = job
        self.touched.discard(job.pool)
        if self.backfill:
            self.sim.backfill(job, [other for other in self.line() if other.pool == job.pool and other is not job])

    def take_by_plan(self, job: Job) -> None:
        """Start a job whose reservation, the first of its pool, is for now; else let it hold, and reserve behind it.

        Reservations stay while the baseline's first job is chosen. Whoever else is chosen, all are made anew.
        """
        sim = self.sim
        line = sim.in_order(job.pool)
        kept = sim.still_reserved(job.pool, line) if job is line[0] else []
        start, nodes = kept[0][1:] if kept else sim.earliest(job, [])
        if start == sim.now:
            sim.start_if(job, nodes)
        else:
            sim.held[job.pool] = job
            self.touched.discard(job.pool)
            sim.renew_plan(job.pool, [job, *(other for other in line if other is not job)], kept)
        if job is not line[0] or (start == sim.now and not kept):
            sim.plan.pop(job.pool, None)

    def to_decision(self) -> None:
        """Let things happen until a job can be chosen."""
        while not self.over:
            for pool, job in sorted(self.sim.held.items()):
                if pool in self.touched and self.asks_again:
                    del self.sim.held[pool]
                elif pool in self.touched:
                    self.take(job)
            if any(self.can(job) for job in self.sim.waiting) or self.over:
                return
            self.next_event()

    def next_event(self) -> None:
        """Move the clock to the next second in which a job ends or arrives."""
        sim = self.sim
        sim.now = min([job.submit for job in self.coming[:1]] + [job.end for job in sim.running])
        self.touched = set()
        for job in sorted(sim.running, key=lambda job: (job.end, job.number)):
            if job.end <= sim.now:
                sim.finish(job)
                self.touched.add(job.pool)
        while self.coming and self.coming[0].submit <= sim.now:
            job = self.coming.pop(0)
            sim.arrived.append(job)
            if sim.predict:
                job.estimate = sim.predicted(job)
            sim.waiting.append(job)
            self.told[job.number] = self.history(job)
            self.touched.add(job.pool)

    def remaining(self, job: Job) -> float:
        """How long a running job should still run; one that has outrun its estimate, as long again."""
        passed = self.sim.now - job.start
        return job.estimate - passed if job.estimate > passed else max(passed, 1.0)

    def features(self) -> list[list[float]]:
        """The features of every job in the window."""
        rows, ahead = [], dict.fromkeys(range(len(self.sim.pool_nodes)), 0)
        for slot, job in enumerate(self.shown()):
            ahead[job.pool] += job.gpus
            rows.append(self.row(slot, job, ahead[job.pool]))
        return rows

    def row(self, slot: int, job: Job, ahead: int) -> list[float]:
        """The features of one job, in the order of docs/mdp.md."""
        sim = self.sim
        nodes = sim.pool_nodes[job.pool]
        gpus = sum(sim.capacity[n] for n in nodes)
        idle = sum(sim.free[n] for n in nodes)
        mates = [other for other in sim.running if other.pool == job.pool]
        soon = idle + sum(other.gpus for other in mates if self.remaining(other) <= HOUR)
        fits, ways, partly = self.placements(job)
        return [
            scaled(sim.now - job.submit),
            min(math.log(1 + job.gpus) / math.log(1 + 1e4), 1.0),
            job.gpus / gpus,
            scaled(job.estimate),
            job.gpus / (job.gpus + idle + 1),
            soon / (soon + ahead),
            partly / len(nodes),
            math.log(1 + ways) / math.log(1 + len(nodes)),
            float(fits),
            (job.pool + 0.5) / len(sim.pool_nodes),
            *self.told[job.number],
            *self.nearby(job),
            (slot + 1) / self.window,
        ]

    def placements(self, job: Job) -> tuple[bool, int, int]:
        """Whether a job fits, how many nodes some placement could use, and the fewest partly used nodes after one.

        Tries every set of as many nodes as the job's tier has.
        """
        sim = self.sim
        nodes = list(sim.pool_nodes[job.pool])
        now = sum(0 < sim.free[n] < sim.capacity[n] for n in nodes)
        placed = sim.place(job, sim.free)
        if placed is None:
            return False, 0, now
        useful, best = set(), INFINITY
        for chosen in combinations(nodes, len(placed)):
            if sum(sim.free[n] for n in chosen) < job.gpus or min(sim.free[n] for n in chosen) == 0:
                continue
            useful |= set(chosen)
            best = min(best, self.fewest_partly(chosen, job.gpus))
        return True, len(useful), now + int(best)

    def fewest_partly(self, chosen: tuple[int, ...], gpus: int) -> float:
        """By how many the partly used nodes grow at least if a job takes GPUs of each of some nodes."""
        sim = self.sim
        change = {0: 0}  # GPUs taken -> fewest
        for n in chosen:
            partly = 0 < sim.free[n] < sim.capacity[n]
            grown: dict[int, int] = {}
            for before, cost in change.items():
                for taken in range(1, sim.free[n] + 1):
                    after = cost + (sim.free[n] - taken > 0) - partly
                    grown[before + taken] = min(after, grown.get(before + taken, after))
            change = grown
        return change.get(gpus, INFINITY)

    def nearby(self, job: Job) -> list[float]:
        """What the jobs submitted next to one have told by now: of its user, its VC and its size."""
        everybody = sorted(self.sim.jobs, key=lambda other: other.number)
        alike = [
            [other for other in everybody if job.user and other.user == job.user and other.gpus == job.gpus],
            [other for other in everybody if job.vc and other.vc == job.vc and other.gpus == job.gpus],
            [other for other in everybody if other.gpus == job.gpus],
        ]
        near, going, near_seen, going_seen = [], [], [], []
        for level, group in enumerate(alike):
            ended, run = [(0.5, self.told[job.number][level])], []  # weights and values on a log scale
            for place, other in enumerate(group):
                away = abs(place - group.index(job))
                if not 1 <= away <= 16 or not 0 <= other.start < self.sim.now:
                    continue
                if other.end <= self.sim.now:
                    ended.append((1 / away, math.log(1 + other.run_time) / math.log(1 + LONGEST)))
                else:
                    run.append((1 / away, math.log(1 + self.sim.now - other.start) / math.log(1 + LONGEST)))
            near.append(min(_weighted(ended), 1.0))
            going.append(min(_weighted(run), 1.0) if run else 0.0)
            near_seen.append((sum(weight for weight, _ in ended) - 0.5) / 8)
            going_seen.append(sum(weight for weight, _ in run) / 8)
        return [*near, *going, *near_seen, *going_seen]

    def history(self, job: Job) -> list[float]:
        """What ended jobs tell: of its user, its VC and its size; then of those most like it."""
        ended = self.sim.ended
        groups = [
            [old for old in ended if job.user and old.user == job.user and old.gpus == job.gpus],
            [old for old in ended if job.vc and old.vc == job.vc and old.gpus == job.gpus],
            [old for old in ended if old.gpus == job.gpus],
            ended,
        ]
        known = [[old.run_time for old in group[-10:]] for group in groups]
        typical, last, ever = [], [], []
        for level in range(3):
            wider = next((times for times in known[level:] if times), [HOUR])
            typical.append(_geometric(wider))
            last.append(scaled(wider[-1]))
            ever.append(
                _geometric(next(([old.run_time for old in group] for group in groups[level:] if group), [HOUR]))
            )
        most_like = next((level for level in range(4) if known[level]), 3)
        times = known[most_like] or [HOUR]
        logs = [math.log(1 + t) for t in times]
        mean = sum(logs) / len(logs)
        spread = math.sqrt(max(sum(x * x for x in logs) / len(logs) - mean * mean, 0.0))
        seen = len(known[most_like]) / 10
        told = [*typical, *last, scaled(sum(times) / len(times)), min(spread / 8, 1.0), seen, (3 - most_like) / 3]
        return [*told, *ever]


def _weighted(values: list[tuple[float, float]]) -> float:
    """The mean of values with weights."""
    return sum(weight * value for weight, value in values) / sum(weight for weight, _ in values)


def _geometric(times: list[float]) -> float:
    """Their geometric mean, on a log scale."""
    return scaled(math.exp(sum(math.log(1 + t) for t in times) / len(times)) - 1)


def scaled(seconds: float) -> float:
    """Seconds on a log scale."""
    return min(math.log(1 + seconds) / math.log(1 + LONGEST), 1.0)
