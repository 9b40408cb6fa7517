"""Host selection, readable: a slow simulator that the compiled one is checked against."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass
class Host:
    """A host, and what of it is free."""

    cores: int
    memory: int
    free_cores: int = 0
    free_memory: int = 0

    @property
    def use(self) -> float:
        """The share of its cores in use."""
        return 1 - self.free_cores / self.cores


@dataclass
class Job:
    """A job, and when and where it started."""

    submit: float
    run_time: float
    cores: int
    memory: int
    start: float = -1.0
    host: int = -1


Choose = Callable[[Sequence[Host], Job, Sequence[int]], int]
"""Hosts, a job, and the numbers of the hosts that have room -> the host that it runs on."""


def first_available(_hosts: Sequence[Host], _job: Job, able: Sequence[int]) -> int:
    """The lowest number."""
    return able[0]


def least_loaded(hosts: Sequence[Host], _job: Job, able: Sequence[int]) -> int:
    """The host with most left of what it has least of."""
    return max(able, key=lambda h: min(hosts[h].free_cores / hosts[h].cores, hosts[h].free_memory / hosts[h].memory))


def best_fit(hosts: Sequence[Host], job: Job, able: Sequence[int]) -> int:
    """The host with least left after the job has started, cores and memory added as shares."""
    return min(
        able,
        key=lambda h: (
            (hosts[h].free_cores - job.cores) / hosts[h].cores + (hosts[h].free_memory - job.memory) / hosts[h].memory
        ),
    )


CHOICES: dict[str, Choose] = {
    "first_available": first_available,
    "least_loaded": least_loaded,
    "best_fit": best_fit,
}
"""The baselines that draw no lots."""


def simulate(hosts: Sequence[Host], jobs: Sequence[Job], horizon: float, choose: Choose) -> dict[str, float]:
    """Let all jobs run; returns the metrics.

    At equal times jobs end before others arrive, and then queued ones start.
    """
    for host in hosts:
        host.free_cores, host.free_memory = host.cores, host.memory
    times = sorted({job.submit for job in jobs})
    queue: list[Job] = []
    running: list[Job] = []
    came, now, makespan = 0, 0.0, 0.0
    area = {"core": 0.0, "memory": 0.0, "imbalance": 0.0}
    in_time = 0
    while came < len(jobs) or running:
        until = min(
            [job.start + job.run_time for job in running]
            + [t for t in times if came < len(jobs) and t >= jobs[came].submit]
        )
        span = max(min(until, horizon) - now, 0.0)
        uses = [host.use for host in hosts]
        mean = sum(uses) / len(uses)
        area["core"] += span * (1 - sum(h.free_cores for h in hosts) / sum(h.cores for h in hosts))
        area["memory"] += span * (1 - sum(h.free_memory for h in hosts) / sum(h.memory for h in hosts))
        area["imbalance"] += span * sum((use - mean) ** 2 for use in uses) / len(uses)
        now = until
        for job in [job for job in running if job.start + job.run_time <= now]:
            running.remove(job)
            hosts[job.host].free_cores += job.cores
            hosts[job.host].free_memory += job.memory
            makespan = now
            in_time += now <= horizon
        while came < len(jobs) and jobs[came].submit <= now:
            queue.append(jobs[came])
            came += 1
        for job in list(queue):
            able = [
                h for h, host in enumerate(hosts) if host.free_cores >= job.cores and host.free_memory >= job.memory
            ]
            if able:
                job.host = choose(hosts, job, able)
                job.start = now
                hosts[job.host].free_cores -= job.cores
                hosts[job.host].free_memory -= job.memory
                queue.remove(job)
                running.append(job)
    return {
        "completion_rate": in_time / len(jobs),
        "makespan": makespan,
        "core_utilization": area["core"] / horizon,
        "memory_utilization": area["memory"] / horizon,
        "queue_wait": sum(job.start - job.submit for job in jobs) / len(jobs),
        "load_imbalance": area["imbalance"] / horizon,
    }
