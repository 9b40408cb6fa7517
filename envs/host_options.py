"""What the host-selection environment can be told: one frozen dataclass, for `gymnasium.make` as for command lines."""

from dataclasses import dataclass

import numpy as np

from berth.commandline import nearest, option
from berth.errors import ConfigError
from envs.sim.hosts import BEST_FIT, FIRST_AVAILABLE, LEAST_LOADED, RANDOM

BASELINES = {
    "first_available": FIRST_AVAILABLE,
    "least_loaded": LEAST_LOADED,
    "best_fit": BEST_FIT,
    "random": RANDOM,
}
"""Who can name hosts without having learned to, and their numbers in the kernel."""

SPLITS = ("train", "validation", "test")

MOST_HOSTS, MOST_JOBS, MOST_MEMORY = 100_000, 2_000_000, 2**40


@dataclass(frozen=True)
class HostOptions:
    """What `LSF-v0` takes; the fields are keywords of `gymnasium.make` and flags of the programs."""

    num_hosts: int = option(50, "hosts of the cluster")
    episode_length: int = option(200, "steps in which jobs arrive; an episode ends when all of them have ended")
    max_jobs_per_step: int = option(50, "most jobs that arrive in a step; between 0 and this many do")
    step_seconds: float = option(60.0, "how long a step is, s")
    host_cores_range: tuple[int, int] = option((16, 32), "fewest and most cores of a host")
    host_memory_range: tuple[int, int] = option((65536, 131072), "least and most memory of a host, MB")
    job_cores_range: tuple[int, int] = option((1, 4), "fewest and most cores of a job")
    job_memory_range: tuple[int, int] = option((512, 4096), "least and most memory of a job, MB")
    load: float | None = option(
        None, "offered load, of cores or of memory, whichever is scarcer; default: 1, of a trace its own"
    )
    run_time_spread: float = option(1.5, "deviation of the run times' logarithms: 0 is all alike, 2 very heavy tails")
    workload: str = option("", "a trace whose jobs have cores and memory, instead of generated jobs", metavar="FILE")
    memory_per_core: float | None = option(
        None, "MB for each core of a trace's jobs that tell no memory; default: they are left out"
    )
    trace_jobs: int = option(2000, "jobs of the trace in an episode")
    split: str = option("train", "which part of the trace, by time, or which seeds of generated jobs", choices=SPLITS)
    baseline: str = option("first_available", "whom the agent is compared with", choices=tuple(BASELINES))
    reward_completion: float = option(1.0, "weight of the share of jobs that end while jobs still arrive")
    reward_utilization: float = option(1.0, "weight of the mean use of cores and memory while jobs arrive")
    reward_waiting: float = option(4.0, "weight of the mean wait, in mean run times, which is taken off")
    reward_balance: float = option(
        4.0, "weight of the variance of the hosts' core use while jobs arrive, which is taken off"
    )

    def __post_init__(self) -> None:
        """Raise ConfigError for a value that cannot be, or settings that do not go together."""
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if not isinstance(value, int | float | np.number | None) or isinstance(value, bool):
                raise ConfigError(f"{name} {value!r}: want a number from {low:g} to {high:g}")
            if value is not None and not low <= value <= high:
                raise ConfigError(f"{name} {value:g}: want a number from {low:g} to {high:g}")
        for name, most in _PAIRS.items():
            pair = getattr(self, name)
            if len(pair) != 2 or not 1 <= pair[0] <= pair[1] <= most:
                came = " ".join(map(str, pair))
                raise ConfigError(f"{name} {came}: want two whole numbers, 1 <= low <= high <= {most:,}")
        for job, host in (("job_cores_range", "host_cores_range"), ("job_memory_range", "host_memory_range")):
            if not self.workload and getattr(self, job)[1] > getattr(self, host)[0]:
                raise ConfigError(
                    f"{job} up to {getattr(self, job)[1]} and {host} from {getattr(self, host)[0]}: want jobs that "
                    "every host can hold when it is empty"
                )
        if self.memory_per_core is not None and not self.workload:
            raise ConfigError("memory_per_core is for the jobs of a trace; want --workload FILE, or --job_memory_range")
        if self.baseline not in BASELINES:
            raise ConfigError(f"baseline {self.baseline}: {nearest(self.baseline, BASELINES)}")
        if self.split not in SPLITS:
            raise ConfigError(f"split {self.split}: {nearest(self.split, SPLITS)}")
        if not self.workload and self.episode_length * self.max_jobs_per_step > MOST_JOBS:
            raise ConfigError(
                f"episode_length {self.episode_length} and max_jobs_per_step {self.max_jobs_per_step}: want at most "
                f"{MOST_JOBS:,} jobs in an episode"
            )


_RANGES: dict[str, tuple[float, float]] = {
    "num_hosts": (1, MOST_HOSTS), "episode_length": (1, 10**6), "max_jobs_per_step": (1, 10**6),
    "step_seconds": (1e-3, 10**6), "load": (1e-3, 100), "run_time_spread": (0, 3), "trace_jobs": (1, MOST_JOBS),
    "memory_per_core": (0, MOST_MEMORY),
    "reward_completion": (0, 10**6), "reward_utilization": (0, 10**6), "reward_waiting": (0, 10**6),
    "reward_balance": (0, 10**6),
}  # fmt: skip

_PAIRS = {
    "host_cores_range": 10**6, "host_memory_range": MOST_MEMORY, "job_cores_range": 10**6,
    "job_memory_range": MOST_MEMORY,
}  # fmt: skip
