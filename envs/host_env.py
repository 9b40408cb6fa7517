"""The choice of a host for every job, as a Gymnasium environment."""

import dataclasses
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from berth.commandline import nearest
from berth.errors import ConfigError, SimulationError
from envs.host_courses import Courses
from envs.host_jobs import notes
from envs.host_options import HostOptions
from envs.many import ManyEnvs
from envs.scheduling_env import NOT_BEGUN, is_action, known_options
from envs.sim.hosts import FEATURES

MOST_SEED = 2**31


def make_host_options(**given: Any) -> HostOptions:
    """Options from keywords; raises ConfigError for a name that is none."""
    known = [field.name for field in dataclasses.fields(HostOptions)]
    for name in given:
        if name not in known:
            raise ConfigError(f"{name} is no option of LSF-v0; {nearest(name, known)}")
    return HostOptions(**given)


def make_spaces(options: HostOptions) -> tuple[spaces.Dict, spaces.Discrete]:
    """The observation space and the action space."""
    state = spaces.Box(0.0, 1.0, (FEATURES * options.num_hosts + 2,), np.float32)
    return (
        spaces.Dict({"state": state, "mask": spaces.MultiBinary(options.num_hosts)}),
        spaces.Discrete(options.num_hosts),
    )


class HostEnv(gymnasium.Env[dict[str, np.ndarray], np.int64]):
    """Name the host that each job runs on, so that jobs wait little and hosts are loaded alike.

    ## Description
    Jobs that ask for cores and memory arrive at a cluster of unlike hosts. Whenever the first queued job that fits
    anywhere is found, the agent names its host. A job that fits nowhere waits in the queue, and others pass it.
    docs/hosts.md states the workload, the rewards and the metrics.

    ## Action space
    `Discrete(num_hosts)`: the host. `mask` tells which have room.

    ## Observation space
    `Dict` of `state` (num_hosts * 4 + 2,): of every host core use, memory use, cores and memory (against the largest
    host's), then the job's cores and memory (against the largest job's); and `mask` (num_hosts,).

    ## Rewards
    What the decision, and the time until the next one, adds to: completions + use - waits - imbalance, each by its
    weight (`reward_completion` ...).

    ## Starting state
    All hosts empty. `reset(seed=N)` plays episode N, always the same one; later resets draw episodes.

    ## Episode end
    Terminated when all jobs have ended. `info` then has the metrics, and `gain`: what was earned more than by the
    baseline.

    ## Arguments
    The fields of `envs.host_options.HostOptions`.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 - Gymnasium's own way

    def __init__(self, render_mode: str | None = None, **options: Any) -> None:
        if render_mode not in (None, "ansi"):
            raise ConfigError(f"render_mode {render_mode}: want ansi, or none")
        self.render_mode = render_mode
        self.options = make_host_options(**options)
        self.observation_space, self.action_space = make_spaces(self.options)
        self.courses = Courses(self.options, 1)
        self.notes = tuple(notes(self.options))
        self._over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Begin the episode of a seed, or one that is drawn."""
        super().reset(seed=seed)
        known_options(options, ())
        episode = int(self.np_random.integers(MOST_SEED)) if seed is None else int(seed)
        self._over = True
        self.courses.begin(0, episode)
        self._over = False
        return self._seen(), {"episode": episode, "baseline_score": float(self.courses.baseline[0])}

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Start the job on a host; raises SimulationError for one without room, out of range, or after the end."""
        if self._over:
            raise SimulationError(NOT_BEGUN)
        if not is_action(action, self.options.num_hosts):
            raise SimulationError(f"action {action!r}: want a whole number from 0 to {self.options.num_hosts - 1}")
        if not self.courses.mask[0, int(action)]:
            raise SimulationError(
                f"action {action}: the host has no room; valid now: {np.flatnonzero(self.courses.mask[0])}"
            )
        self._over = True
        self.courses.step(np.array([int(action)]))
        self._over = bool(self.courses.course["over"][0])
        info = self.courses.outcome(0) if self._over else {}
        return self._seen(), float(self.courses.course["reward"][0]), self._over, False, info

    def action_masks(self) -> np.ndarray:
        """Which hosts have room, as sb3-contrib's MaskablePPO asks for it."""
        return self.courses.mask[0].astype(bool)

    def render(self) -> str | None:
        """The clock, the queue, the job and the fullest and emptiest hosts, as text."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() draws nothing without a render mode; make the environment with one: ansi")
            return None
        course, hosts = self.courses.course[0], self.courses.hosts[0]
        use = 1.0 - hosts["free_cores"] / hosts["cores"]
        text = [f"{course['now']:,.0f} s; {course['queued']:,} jobs wait, {course['running']:,} run"]
        if course["current"] >= 0:
            job = self.courses.jobs[0][course["current"]]
            text.append(f"job {course['current']}: {job['cores']} cores, {job['memory']:,} MB")
        for word, h in (("fullest", int(use.argmax())), ("emptiest", int(use.argmin()))):
            host = hosts[h]
            text.append(
                f"{word} host {h}: {host['free_cores']} of {host['cores']} cores and {host['free_memory']:,} of "
                f"{host['memory']:,} MB free"
            )
        return "\n".join(text)

    def _seen(self) -> dict[str, np.ndarray]:
        return {"state": self.courses.state[0].copy(), "mask": self.courses.mask[0].copy()}


class HostVectorEnv(ManyEnvs):
    """As many copies of HostEnv as asked for; equal seeds give what single ones give, step by step."""

    def __init__(
        self,
        num_envs: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(num_envs, autoreset_mode, copy, options.pop("render_mode", None))
        self.options = make_host_options(**options)
        self._set_spaces(*make_spaces(self.options))
        self.courses = Courses(self.options, self.num_envs)
        self.notes = tuple(notes(self.options))
        self.seen = {"state": self.courses.state, "mask": self.courses.mask}
        self.prior = np.zeros((self.num_envs, 0), np.float32)
        self.invalid = np.zeros(self.num_envs, np.int64)
        self._fresh: list[int | None] = [None] * self.num_envs
        self._episode = np.zeros(self.num_envs, np.int64)

    @property
    def _raises(self) -> bool:
        return True

    def parts(self, seen: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The hosts and the job of an observation."""
        state = seen["state"]
        return state[:, :-2].reshape(len(state), -1, FEATURES), state[:, -2:]

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        """Begin the episodes of seeds (seed, seed + 1, ... of one number), or episodes that are drawn."""
        self._fresh = self._seeds(seed)
        return super().reset(seed=seed, options=options)

    def _begin(self, who: np.ndarray, asked: dict[str, Any]) -> None:
        fresh, self._fresh = self._fresh, [None] * self.num_envs
        for e in who:
            rng, seed = self._generators[e], fresh[e]
            assert rng is not None
            self._episode[e] = int(rng.integers(MOST_SEED)) if seed is None else seed
            self.courses.begin(int(e), int(self._episode[e]))

    def _take(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self.courses.step(actions)
        course = self.courses.course
        return course["reward"].copy(), course["over"].astype(bool), np.zeros(self.num_envs, bool)

    def _outcome(self, e: int) -> dict[str, Any]:
        return self.courses.outcome(e)

    def _beginning(self, e: int) -> dict[str, Any]:
        return {"episode": int(self._episode[e]), "baseline_score": float(self.courses.baseline[e])}
