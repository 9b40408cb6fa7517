"""Many scheduling environments at once: all are stepped by one compiled call, in several threads."""

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from allocation.placers import MILP
from berth.compiled import records
from berth.errors import ConfigError, SimulationError
from envs.episode import Episode
from envs.scheduling_env import NOT_BEGUN, OUTCOME, known_options, make_source, make_spaces
from envs.sim.cards import EPISODE
from envs.sim.playing import ARRAYS, BASELINE, BEGIN, STEP, play_many

MOST_ENVS = 100_000


class SchedulingVectorEnv(VectorEnv[dict[str, np.ndarray], np.ndarray, np.ndarray]):
    """As many copies of SchedulingEnv as asked for; equal seeds give what single ones give, step by step.

    `autoreset_mode` is Gymnasium's: NEXT_STEP (the action after the end of an episode is ignored, and begins the next
    one), SAME_STEP (the next one begins at once; the last observation is in info) or DISABLED. With `copy=False` the
    observations are the arrays that the next step writes to again.
    """

    def __init__(
        self,
        num_envs: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        **options: Any,
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, int | np.integer) or not 1 <= num_envs <= MOST_ENVS:
            raise ConfigError(f"num_envs {num_envs}: want a whole number from 1 to {MOST_ENVS:,}")
        if options.pop("render_mode", None) is not None:
            raise ConfigError("render_mode: many environments at once are not drawn; want none, or gymnasium.make")
        if not isinstance(copy, bool):
            raise ConfigError(f"copy {copy!r}: want True or False")
        self.num_envs = int(num_envs)
        self.copy = copy
        try:
            self.autoreset_mode = AutoresetMode(autoreset_mode)
        except ValueError:
            known = ", ".join(mode.value for mode in AutoresetMode)
            raise ConfigError(f"autoreset_mode {autoreset_mode}: known: {known}") from None
        self.metadata = {"autoreset_mode": self.autoreset_mode, "render_modes": []}
        self.options, self.source = make_source(options)
        seen, actions = make_spaces(self.options, self.source.stage)
        self.single_observation_space, self.single_action_space = seen, actions
        self.actions = int(actions.n)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._generators: list[np.random.Generator | None] = [None] * self.num_envs
        self._over = np.ones(self.num_envs, bool)
        self._everyone = np.arange(self.num_envs)
        self._resting = np.zeros(self.num_envs, bool)
        self._begun = np.zeros(self.num_envs, bool)  # False too where an interrupt left an episode half done
        self._alone = self.options.placement.placer.code == MILP or bool(numba.config.DISABLE_JIT)
        self.tables = np.zeros((self.num_envs, len(ARRAYS), 3), np.int64)
        self.rows = records(self.num_envs, EPISODE)
        self.seen = {
            name: np.zeros((self.num_envs, *(space.shape or ())), space.dtype) for name, space in seen.spaces.items()
        }
        self.prior = np.zeros((self.num_envs, self.options.window), np.float32)  # see SchedulingEnv.prior
        self.episodes = [
            Episode(self.options, self.source.stage, self.tables[e], self._shared(e)) for e in range(self.num_envs)
        ]

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Begin an episode in every environment, or in those of `options["reset_mask"]`.

        A seed stands for seed, seed + 1, ...; `options["first"]` is a window's first job, or one for each environment.
        """
        seeds = self._seeds(seed)
        asked = known_options(options, ("first", "reset_mask"))
        who = np.flatnonzero(self._masked(asked.get("reset_mask")))
        for e in who:
            if seeds[e] is not None or self._generators[e] is None:
                self._generators[e] = seeding.np_random(seeds[e])[0]
        self._resting[who] = False
        self._begin(who, asked.get("first"))
        return self._observation(), self._told(who, {})

    def rest(self, who: np.ndarray) -> None:
        """Leave environments whose episodes are over as they are, in every step until they are reset."""
        self._resting[who] = self._over[who]

    def step(
        self, actions: np.ndarray
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Choose a slot in every environment; raises SimulationError as SchedulingEnv does, before anything happens."""
        resting = np.flatnonzero(self._resting)
        waiting = np.flatnonzero(self._over & ~self._resting)
        if not self._begun.all() or (len(waiting) and self.autoreset_mode != AutoresetMode.NEXT_STEP):
            raise SimulationError(NOT_BEGUN)
        self._play(np.where(self._over, -1, STEP), self._checked(actions))
        rewards, terminated, truncated = (self.rows[name].copy() for name in ("reward", "terminated", "truncated"))
        for answer in (rewards, terminated, truncated):
            answer[waiting] = answer[resting] = 0
        np.logical_or(terminated, truncated, out=self._over)
        info: dict[str, Any] = {}
        begun = waiting
        for e in np.flatnonzero(self._over) if self._over.any() else ():
            outcome = {name: kind(self.rows[e][field]) for name, (field, kind) in OUTCOME.items()}
            if self.autoreset_mode == AutoresetMode.SAME_STEP:
                last = {name: array[e].copy() for name, array in self.seen.items()}
                outcome = {
                    "final_obs": last,
                    "final_info": {"invalid_actions": int(self.rows[e]["invalid"]), **outcome},
                }
            info = self._add_info(info, outcome, e)
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            begun = np.flatnonzero(self._over)
        if len(begun):
            self._begin(begun)
        self._over[resting] = True
        return self._observation(), rewards, terminated, truncated, self._told(begun, info)

    def action_masks(self) -> np.ndarray:
        """Which actions can be taken (environments, actions)."""
        return self.seen["mask"].astype(bool)

    def baseline_actions(self) -> np.ndarray:
        """The action that the baseline takes in each environment (environments,); -1 where its job is not shown."""
        return np.array([episode.baseline_action() for episode in self.episodes])

    def close_extras(self, **kwargs: Any) -> None:
        """Nothing is open."""

    def _told(self, begun: np.ndarray, info: dict[str, Any]) -> dict[str, Any]:
        """What `info` says of every step, and of the episodes that have just begun."""
        for e in begun:
            beginning = {"first": self.episodes[e].first, "baseline_score": float(self.rows[e]["baseline"])}
            info = self._add_info(info, beginning, e)
        info["invalid_actions"] = self.rows["invalid"].astype(int)
        info["_invalid_actions"] = np.ones(self.num_envs, bool)
        return info

    def _observation(self) -> dict[str, np.ndarray]:
        return {name: array.copy() for name, array in self.seen.items()} if self.copy else dict(self.seen)

    def _checked(self, actions: Any) -> np.ndarray:
        """The actions with masked ones replaced; raises SimulationError for what cannot be."""
        chosen = np.asarray(actions)
        most = self.actions
        if chosen.shape != (self.num_envs,) or chosen.dtype.kind not in "iu":
            raise SimulationError(
                f"actions of shape {chosen.shape} and type {chosen.dtype}: want {self.num_envs} whole numbers"
            )
        if chosen.min() < 0 or chosen.max() >= most:
            e = int(np.argmax((chosen < 0) | (chosen >= most)))
            raise SimulationError(f"action {chosen[e]} of environment {e}: want a whole number from 0 to {most - 1}")
        chosen = chosen.astype(np.int64)
        mask = self.seen["mask"]
        open_ = mask[self._everyone, chosen]
        if open_.all():
            return chosen
        masked = (open_ == 0) & ~self._over
        if not masked.any():
            return chosen
        if self.options.invalid_action == "raise":
            e = int(np.argmax(masked))
            raise SimulationError(
                f"action {chosen[e]} of environment {e}: masked; valid now: {np.flatnonzero(mask[e])}"
            )
        chosen[masked] = np.argmax(mask[masked], axis=1)
        self.rows["invalid"][masked] += 1
        return chosen

    def _begin(self, who: np.ndarray, asked: Any = None) -> None:
        """Begin episodes in some environments, all at once."""
        firsts: Any = asked if isinstance(asked, list | tuple | np.ndarray) else [asked] * self.num_envs
        if len(firsts) != self.num_envs:
            raise ConfigError(f"first {asked}: want one, or {self.num_envs}")
        drawn = []
        for e in who:
            rng = self._generators[e]
            assert rng is not None
            drawn.append(self.source.draw(rng) if asked is None else self.source.find(firsts[e]))
        what, idle = np.full(self.num_envs, -1), np.zeros(self.num_envs, np.int64)
        for again, part in ((False, BASELINE), (True, BEGIN)):
            for e, (stage, first) in zip(who, drawn, strict=True):
                self.episodes[e].set_up(stage, first, again)
            what[who] = part
            self._play(what, idle)
        self._over[who] = False
        self._begun[who] = True

    def _play(self, what: np.ndarray, actions: np.ndarray) -> None:
        """Let compiled code play where `what` says so, and raise what went wrong."""
        answers = np.zeros(self.num_envs, np.int64)
        ready, self._begun = self._begun, np.zeros(self.num_envs, bool)
        if self._alone:
            for e in np.flatnonzero(what >= 0):
                self.episodes[e].play(int(what[e]), int(actions[e]))
        else:
            play_many(what, actions, self.tables, answers)
            for e in np.flatnonzero(answers) if answers.any() else ():
                self.episodes[e].check(int(answers[e]))
        self._begun = ready

    def _seeds(self, seed: Any) -> list[int | None]:
        """A seed for each environment."""
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer):
            return [int(seed) + e for e in range(self.num_envs)]
        if not isinstance(seed, list | tuple | np.ndarray) or len(seed) != self.num_envs:
            raise ConfigError(f"seed {seed!r}: want one, or a list of {self.num_envs}")
        for one in seed:
            if one is not None and (isinstance(one, bool) or not isinstance(one, int | np.integer)):
                raise ConfigError(f"seed {one!r}: want a whole number, or None")
        return [None if one is None else int(one) for one in seed]

    def _masked(self, mask: Any) -> np.ndarray:
        """Which environments a reset is for."""
        if mask is None:
            return np.ones(self.num_envs, bool)
        if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise ConfigError(f"reset_mask {mask!r}: want an array of {self.num_envs} truth values, not all False")
        return mask

    def _shared(self, e: int) -> dict[str, np.ndarray]:
        """The arrays of one environment that are rows of everyone's."""
        seen = {"rows": "jobs", "cluster": "cluster", "mask": "mask"}
        own = {"episode": self.rows[e : e + 1], "prior": self.prior[e]}
        return {**own, **{name: self.seen[of][e] for name, of in seen.items()}}

    def __getstate__(self) -> dict[str, Any]:
        """All but what belongs to this process."""
        return {**self.__dict__, "tables": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Let the environments write into everyone's arrays again."""
        self.__dict__.update(state)
        self.tables = np.zeros((self.num_envs, len(ARRAYS), 3), np.int64)
        for e, episode in enumerate(self.episodes):
            episode.adopt(self.tables[e], self._shared(e))
