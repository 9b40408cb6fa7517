"""The scheduling of a cluster's queue as a Gymnasium environment."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from berth.commandline import nearest
from berth.errors import ConfigError, SimulationError
from envs.episode import Episode, sizes
from envs.observation import JOB_FEATURES
from envs.options import Options, make_options
from envs.reward import find_score
from envs.sim.cluster import Cluster
from envs.snapshot import Snapshot
from envs.stage import Source, Stage, find_source
from traces.trace import Trace

NOT_BEGUN = "step before the beginning, or after the end, of an episode; want reset() first"

SHOWN_JOBS = 10
"""How many jobs of the window `render` shows."""


def make_spaces(options: Options, stage: Stage) -> tuple[spaces.Dict, spaces.Discrete]:
    """The observation space and the action space."""
    cluster, actions = sizes(options, stage.workload.nodes)
    seen = spaces.Dict(
        {
            "jobs": spaces.Box(0.0, 1.0, (options.window, len(JOB_FEATURES)), np.float32),
            "cluster": spaces.Box(0.0, 1.0, (cluster,), np.float32),
            "mask": spaces.MultiBinary(actions),
        }
    )
    return seen, spaces.Discrete(actions)


def make_source(given: dict[str, Any]) -> tuple[Options, Source]:
    """Options from keywords, and where their episodes come from.

    `workload` may be a Trace, `cluster` a Cluster; `source` is another source than the one that the options tell.
    """
    if given.get("source") is not None:
        return make_options(**{name: value for name, value in given.items() if name != "source"}), given["source"]
    trace, cluster = given.get("workload"), given.get("cluster")
    words = dict(given)
    if isinstance(trace, Trace):
        words["workload"] = trace.name
    if isinstance(cluster, Cluster):
        words["cluster"] = cluster.name
    options = make_options(**words)
    return options, find_source(
        options,
        trace if isinstance(trace, Trace) else None,
        cluster if isinstance(cluster, Cluster) else None,
    )


def known_options(options: Any, known: tuple[str, ...]) -> dict[str, Any]:
    """The options of a reset; raises ConfigError for others."""
    if options is None:
        return {}
    if not isinstance(options, dict):
        raise ConfigError(f"reset options {options!r}: want a dictionary with {', '.join(known)}")
    for name in options:
        if name not in known:
            raise ConfigError(f"reset option {name}: {nearest(str(name), known)}")
    return options


def is_action(action: Any, actions: int) -> bool:
    """Whether something is the number of an action."""
    number = np.asarray(action)
    return number.ndim == 0 and number.dtype.kind in "iu" and 0 <= int(number) < actions


class SchedulingEnv(gymnasium.Env[dict[str, np.ndarray], np.int64]):
    """Schedule the jobs of a real trace on a GPU cluster, job by job, and do better than a heuristic.

    ## Description
    An episode is a window of `seq_len` jobs of a trace. It begins with the running jobs and the backlog that the
    baseline (`sched_algo`) has left behind when the first of them arrives. Whenever jobs wait and a choice is to be
    made, the agent chooses one. docs/mdp.md states all this as mathematics.

    ## Action space
    `Discrete(window)`, or `Discrete(window + 1)` with `action_mode="fit"`: a slot of the window; the last one of `fit`
    waits for the next event. `mask` tells which can be chosen.

    ## Observation space
    `Dict` of `jobs` (window, features), `cluster` (numbers,) and `mask` (actions,); all in [0, 1].

    ## Rewards
    F = (base - agent) / max(base, agent, 1) of the score over the window's jobs, in pieces as jobs start (`dense`) or
    at the end (`terminal`); agent - base for utilization. To choose as the baseline does earns exactly 0.

    ## Starting state
    `reset(options={"first": N})` begins at job N of the trace; else the window is drawn.

    ## Episode end
    Terminated when the last scored job has started; truncated at `horizon_factor` or `max_steps`, if given.

    ## Arguments
    The fields of `envs.options.Options`. `workload` may be a Trace too, `cluster` a Cluster.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 - Gymnasium's own way

    def __init__(self, render_mode: str | None = None, **options: Any) -> None:
        if render_mode not in (None, "ansi"):
            raise ConfigError(f"render_mode {render_mode}: want ansi, or none")
        self.render_mode = render_mode
        self.options, self.source = make_source(options)
        self.observation_space, self.action_space = make_spaces(self.options, self.source.stage)
        self.actions = int(self.action_space.n)
        self.episode = Episode(self.options, self.source.stage)
        self._over = True

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know of the workload."""
        return self.source.notes

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Begin an episode: at job `first` of the trace, if `options` has it, else at a window that is drawn."""
        super().reset(seed=seed)
        asked = known_options(options, ("first",)).get("first")
        stage, first = self.source.draw(self.np_random) if asked is None else self.source.find(asked)
        self._over = True
        self.episode.begin(stage, first)
        self._over = False
        return self._seen(), {
            "first": first,
            "baseline_score": float(self.episode.now["baseline"]),
            "invalid_actions": 0,
        }

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Choose a slot; raises SimulationError out of range or after the end, or where a masked one shall raise."""
        if self._over:
            raise SimulationError(NOT_BEGUN)
        if not is_action(action, self.actions):
            raise SimulationError(f"action {action!r}: want a whole number from 0 to {self.actions - 1}")
        episode, chosen = self.episode, int(action)
        if self.options.invalid_action == "raise" and not episode.arrays["mask"][chosen]:
            raise SimulationError(f"action {action}: masked; valid now: {np.flatnonzero(episode.arrays['mask'])}")
        self._over = True  # until the step is done: an interrupted one leaves nothing to go on with
        episode.step(episode.replaced(chosen))
        self._over = False
        now = episode.now
        terminated, truncated = bool(now["terminated"]), bool(now["truncated"])
        info: dict[str, Any] = {"invalid_actions": int(now["invalid"])}
        if terminated or truncated:
            self._over = True
            info |= {name: kind(now[field]) for name, (field, kind) in OUTCOME.items()}
        return self._seen(), float(now["reward"]), terminated, truncated, info

    def action_masks(self) -> np.ndarray:
        """Which actions can be taken, as sb3-contrib's MaskablePPO asks for it."""
        return self.episode.arrays["mask"].astype(bool)

    def baseline_action(self) -> int:
        """The action that the baseline takes here; -1 where the window does not show its job."""
        return self.episode.baseline_action()

    @property
    def prior(self) -> np.ndarray:
        """The order of the policy `prior` (window,): how many jobs that can be chosen it takes before each, / window.

        1 where a slot cannot be chosen; zeros where no such policy is asked for.
        """
        return self.episode.arrays["prior"].copy()

    def snapshot(self) -> Snapshot:
        """What a decision may rest on."""
        return self.episode.snapshot()

    def render(self) -> str | None:
        """The clock, the pools and the first jobs of the window, as text."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() draws nothing without a render mode; make the environment with one: ansi")
            return None
        view = self.snapshot()
        names = [pool.name for pool in self.source.stage.workload.pools]
        text = [f"{view.now:,.0f} s; {len(view.job):,} jobs wait, {len(view.running_job):,} run"]
        for p, name in enumerate(names):
            mine = view.node_pool == p
            text.append(f"pool {name}: {view.free[mine].sum():,} of {view.capacity[mine].sum():,} GPUs idle")
        slots, mask = self.episode.window_jobs(), self.episode.arrays["mask"]
        where = {int(job): i for i, job in enumerate(view.job)}
        for slot, job in enumerate(slots[:SHOWN_JOBS]):
            i = where[int(job)]
            known = "unknown" if np.isnan(view.run_time[i]) else f"{view.run_time[i]:,.0f} s"
            text.append(
                f"{'*' if mask[slot] else ' '} slot {slot}: {view.gpus[i]} GPUs in {names[view.pool[i]]}, "
                f"waited {view.wait[i]:,.0f} s, run time {known}"
            )
        if len(slots) > SHOWN_JOBS:
            text.append(f"  ... {len(slots) - SHOWN_JOBS} more in the window")
        return "\n".join(text)

    def _seen(self) -> dict[str, np.ndarray]:
        return {name: array.copy() for name, array in self.episode.observation.items()}

    @property
    def score_name(self) -> str:
        """What is scored."""
        return find_score(self.options.score_type)


OUTCOME = {
    "score": ("agent", float),
    "baseline_score": ("baseline", float),
    "gain": ("gain", float),
    "decisions": ("steps", int),
}
"""What `info` tells at the end of an episode, from which field of the episode's row."""
