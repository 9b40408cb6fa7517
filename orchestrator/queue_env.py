"""Environments that pay for throughput and waiting time, on jobs drawn anew for every episode."""

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from berth.errors import ConfigError
from berth.streams import stream
from envs.options import Options
from envs.stage import Stage, set_stage
from envs.vector import SchedulingVectorEnv
from envs.workload import on_one_node
from orchestrator.producer import produce

AT_ONCE = 0.5
"""Share of the episodes whose jobs are all submitted at once; in the others they arrive while jobs run."""


class DrawnJobs:
    """Episodes of jobs within ranges of cores and seconds, drawn anew for each; every split has its own."""

    notes: tuple[str, ...] = ()

    def __init__(
        self, options: Options, split: str, host: int, jobs: int, cores: tuple[int, int], seconds: tuple[int, int]
    ) -> None:
        self.options, self.split, self.host = options, split, host
        self.jobs, self.cores, self.seconds = jobs, cores, seconds
        self.stage = self._stage(0, 0.0)

    def draw(self, rng: np.random.Generator) -> tuple[Stage, int]:
        """A stage of its own, whose first job is the first that is scored."""
        number = int(rng.integers(2**31))
        own = stream(number, f"drawn jobs {self.split}")
        work = sum(self.cores) / 2 * sum(self.seconds) / 2 / self.host  # s that a job keeps the host busy, on average
        gap = 0.0 if own.random() < AT_ONCE else float(own.uniform(0.2, 1.2)) * work
        return self._stage(int(own.integers(2**31)), gap), 0

    def find(self, asked: Any) -> tuple[Stage, int]:
        """Raises ConfigError."""
        raise ConfigError(f"first {asked}: drawn jobs have no windows to choose from; want a seed")

    def _stage(self, seed: int, gap: float) -> Stage:
        made = produce(self.jobs, self.cores, self.seconds, seed, gap, f"drawn jobs ({self.split})")
        return set_stage(on_one_node(made, self.host), self.options)


class QueueEnv(SchedulingVectorEnv):
    """Environments whose episodes earn half the gain in mean wait, and half the gain in throughput.

    gain = ½ (w' - w) / max(w', w, 1 s) + ½ (m' - m) / max(m', m): w the mean wait; m the time from the first submit to
    the last end, which is jobs / throughput; w' and m' of the baseline. The first half comes as jobs start, the second
    at the end. To choose as the baseline does earns exactly 0.
    """

    def __init__(self, num_envs: int, source: DrawnJobs, options: dict[str, Any]) -> None:
        super().__init__(num_envs, AutoresetMode.DISABLED, copy=False, source=source, **options)

    def _take(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        over = self._over.copy()
        rewards, terminated, truncated = super()._take(actions)
        rewards = 0.5 * rewards
        for e in np.flatnonzero((terminated | truncated) & ~over):
            rewards[e] += 0.5 * self.throughput_gain(int(e))
        return rewards, terminated, truncated

    def _outcome(self, e: int) -> dict[str, Any]:
        told = super()._outcome(e)
        return told | {"gain": 0.5 * told["gain"] + 0.5 * self.throughput_gain(e)}

    def throughput_gain(self, e: int) -> float:
        """What an episode that is over has gained in throughput: (m' - m) / max(m', m)."""
        a = self.episodes[e].arrays
        jobs, base = a["jobs"], a["base"]
        begin = float(jobs["submit"].min())
        mine = float((jobs["start"] + jobs["run_time"]).max()) - begin
        its = float((base + jobs["run_time"][: len(base)]).max()) - begin
        return (its - mine) / max(its, mine)
