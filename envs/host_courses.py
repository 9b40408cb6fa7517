"""Episodes of host selection side by side, in arrays that compiled code works on."""

from typing import Any

import numpy as np

from berth.compiled import records
from envs.host_jobs import Episode, largest_job, make_episode, room_for_jobs
from envs.host_options import BASELINES, HostOptions
from envs.sim.hosts import COURSE, FEATURES, HOST, JOB, WEIGHTS, begin_one, play_whole, step_many

METRICS = {
    "completion_rate": "share of the jobs that ended while jobs still arrived",
    "makespan": "when the last job ended, s",
    "core_utilization": "mean share of the cores in use while jobs arrived",
    "memory_utilization": "mean share of the memory in use while jobs arrived",
    "queue_wait": "mean time from submission to start, s",
    "load_imbalance": "mean variance of the hosts' core use while jobs arrived",
}
"""What an episode is judged by."""


class Courses:
    """Some episodes with the same number of hosts; each has a row in every array."""

    def __init__(self, options: HostOptions, count: int) -> None:
        self.options = options
        hosts, jobs = options.num_hosts, room_for_jobs(options)
        self.most_cores, self.most_memory = largest_job(options)
        self.course = records(count, COURSE)
        self.jobs = records(count * jobs, JOB).reshape(count, jobs)
        self.hosts = records(count * hosts, HOST).reshape(count, hosts)
        self.queue, self.who = (np.zeros((count, jobs), np.int64) for _ in range(2))
        self.ends = np.zeros((count, jobs))
        self.room = np.zeros((count, self.most_cores + 1), np.int64)
        self.state = np.zeros((count, FEATURES * hosts + 2), np.float32)
        self.mask = np.ones((count, hosts), np.int8)
        self.weights = records(count, WEIGHTS)
        for name in ("completion", "utilization", "waiting", "balance"):
            self.weights[name] = getattr(options, f"reward_{name}")
        self.baseline = np.zeros(count)  # what the baseline earns in the same episode

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What every compiled function takes."""
        return (
            self.weights, self.course, self.jobs, self.hosts, self.queue, self.ends, self.who, self.room, self.state,
            self.mask,
        )  # fmt: skip

    def begin(self, e: int, seed: int) -> None:
        """Put an episode of a seed at its first decision, after the baseline has played it."""
        self.set_up(e, make_episode(self.options, seed))
        self.play(e, self.options.baseline, seed)
        self.baseline[e] = self.course["earned"][e]
        begin_one(e, *self.arrays)

    def play(self, e: int, who: str, seed: int) -> None:
        """Let a baseline play an episode that is set up, from its beginning to its end."""
        play_whole(BASELINES[who], 1 + seed % 2147483645, e, *self.arrays)

    def judge(self, e: int, who: str, seed: int) -> dict[str, float]:
        """The metrics of a baseline on the episode of a seed."""
        self.set_up(e, make_episode(self.options, seed))
        self.play(e, who, seed)
        return self.metrics(e)

    def step(self, actions: np.ndarray) -> None:
        """Take a decision in every episode that is not over; the hosts named have room."""
        step_many(actions, *self.arrays)

    def metrics(self, e: int) -> dict[str, float]:
        """How an episode went, by METRICS."""
        c = self.course[e]
        jobs, span = max(int(c["jobs"]), 1), float(c["horizon"])
        return {
            "completion_rate": float(c["ended_in_time"]) / jobs, "makespan": float(c["makespan"]),
            "core_utilization": float(c["core_area"]) / span, "memory_utilization": float(c["memory_area"]) / span,
            "queue_wait": float(c["wait_area"]) / jobs, "load_imbalance": float(c["imbalance_area"]) / span,
        }  # fmt: skip

    def outcome(self, e: int) -> dict[str, Any]:
        """What is told of an episode that is over."""
        earned, baseline = float(self.course["earned"][e]), float(self.baseline[e])
        told = {"score": earned, "baseline_score": baseline, "gain": earned - baseline}
        return told | {"decisions": int(self.course["decisions"][e])} | self.metrics(e)

    def set_up(self, e: int, episode: Episode) -> None:
        """Put hosts and jobs into an episode's arrays."""
        count = len(episode.jobs)
        self.jobs[e, :count] = episode.jobs
        self.hosts[e] = episode.hosts
        c = self.course[e]
        c["jobs"], c["horizon"] = count, episode.horizon
        c["most_cores"], c["most_memory"] = self.most_cores, self.most_memory
        self.weights["unit"][e] = float(episode.jobs["run_time"].mean())
