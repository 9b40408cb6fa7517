"""Many environments as one, in Gymnasium's way: seeds, resets, masked actions and the ends of episodes."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from berth.errors import ConfigError, SimulationError
from envs.scheduling_env import NOT_BEGUN, known_options

MOST_ENVS = 100_000


class ManyEnvs(VectorEnv[dict[str, np.ndarray], np.ndarray, np.ndarray]):
    """As many copies of an environment with masked actions as asked for; equal seeds give what single ones give.

    `autoreset_mode` is Gymnasium's: NEXT_STEP (the action after the end of an episode is ignored, and begins the next
    one), SAME_STEP (the next one begins at once; the last observation is in info) or DISABLED. With `copy=False` the
    observations are the arrays that the next step writes to again, `seen`.
    """

    seen: dict[str, np.ndarray]  # (environments, ...) each; `mask` tells which actions can be taken
    prior: np.ndarray  # (environments, slots) the order of a policy that is told beside what is seen
    invalid: np.ndarray  # (environments,) masked actions so far that were replaced

    reset_options: tuple[str, ...] = ()
    """What a reset takes besides `reset_mask`."""

    def __init__(
        self, num_envs: int, autoreset_mode: AutoresetMode | str, copy: bool, render_mode: str | None = None
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, int | np.integer) or not 1 <= num_envs <= MOST_ENVS:
            raise ConfigError(f"num_envs {num_envs}: want a whole number from 1 to {MOST_ENVS:,}")
        if render_mode is not None:
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
        self._generators: list[np.random.Generator | None] = [None] * self.num_envs
        self._over = np.ones(self.num_envs, bool)
        self._everyone = np.arange(self.num_envs)
        self._resting = np.zeros(self.num_envs, bool)
        self._begun = np.zeros(self.num_envs, bool)  # False too where an interrupt left an episode half done

    def _set_spaces(self, seen: spaces.Dict, actions: spaces.Discrete) -> None:
        """Tell what a single environment is like."""
        self.single_observation_space, self.single_action_space = seen, actions
        self.actions = int(actions.n)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Begin an episode in every environment, or in those of `options["reset_mask"]`.

        A seed stands for seed, seed + 1, ...
        """
        seeds = self._seeds(seed)
        asked = known_options(options, (*self.reset_options, "reset_mask"))
        who = np.flatnonzero(self._masked(asked.get("reset_mask")))
        for e in who:
            if seeds[e] is not None or self._generators[e] is None:
                self._generators[e] = seeding.np_random(seeds[e])[0]
        self._resting[who] = False
        self._start(who, {name: asked[name] for name in self.reset_options if name in asked})
        return self._observation(), self._told(who, {})

    def rest(self, who: np.ndarray) -> None:
        """Leave environments whose episodes are over as they are, in every step until they are reset."""
        self._resting[who] = self._over[who]

    def step(
        self, actions: np.ndarray
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Act in every environment; raises SimulationError as a single one does, before anything happens."""
        resting = np.flatnonzero(self._resting)
        waiting = np.flatnonzero(self._over & ~self._resting)
        if not self._begun.all() or (len(waiting) and self.autoreset_mode != AutoresetMode.NEXT_STEP):
            raise SimulationError(NOT_BEGUN)
        chosen = self._checked(actions)
        ready, self._begun = self._begun, np.zeros(self.num_envs, bool)
        rewards, terminated, truncated = self._take(chosen)
        self._begun = ready
        for answer in (rewards, terminated, truncated):
            answer[waiting] = answer[resting] = 0
        np.logical_or(terminated, truncated, out=self._over)
        info: dict[str, Any] = {}
        begun = waiting
        for e in np.flatnonzero(self._over) if self._over.any() else ():
            outcome = self._outcome(int(e))
            if self.autoreset_mode == AutoresetMode.SAME_STEP:
                last = {name: array[e].copy() for name, array in self.seen.items()}
                outcome = {"final_obs": last, "final_info": {"invalid_actions": int(self.invalid[e]), **outcome}}
            info = self._add_info(info, outcome, e)
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            begun = np.flatnonzero(self._over)
        if len(begun):
            self._start(begun, {})
        self._over[resting] = True
        return self._observation(), rewards, terminated, truncated, self._told(begun, info)

    @property
    def is_listed(self) -> bool:
        """Whether the episodes are those of a list, one after the other."""
        return False

    @property
    def tells_prior(self) -> bool:
        """Whether `prior` holds the order of a policy."""
        return False

    @abstractmethod
    def parts(self, seen: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """What is seen of each choice (environments, slots, features), and of all else (environments, numbers)."""

    def action_masks(self) -> np.ndarray:
        """Which actions can be taken (environments, actions)."""
        return self.seen["mask"].astype(bool)

    def close_extras(self, **kwargs: Any) -> None:
        """Nothing is open."""

    @abstractmethod
    def _begin(self, who: np.ndarray, asked: dict[str, Any]) -> None:
        """Begin episodes in some environments, as a reset has asked for."""

    @abstractmethod
    def _take(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Act where no episode is over; returns rewards, and who has terminated, and who is cut short."""

    @abstractmethod
    def _outcome(self, e: int) -> dict[str, Any]:
        """What is told of an episode that is over."""

    @abstractmethod
    def _beginning(self, e: int) -> dict[str, Any]:
        """What is told of an episode that has begun."""

    @property
    @abstractmethod
    def _raises(self) -> bool:
        """Whether a masked action is an error."""

    def _start(self, who: np.ndarray, asked: dict[str, Any]) -> None:
        ready, self._begun = self._begun, np.zeros(self.num_envs, bool)
        self._begin(who, asked)
        self._begun = ready
        self._over[who] = False
        self._begun[who] = True

    def _told(self, begun: np.ndarray, info: dict[str, Any]) -> dict[str, Any]:
        """What `info` says of every step, and of the episodes that have just begun."""
        for e in begun:
            info = self._add_info(info, self._beginning(int(e)), e)
        info["invalid_actions"] = self.invalid.astype(int)
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
        if self._raises:
            e = int(np.argmax(masked))
            raise SimulationError(
                f"action {chosen[e]} of environment {e}: masked; valid now: {np.flatnonzero(mask[e])}"
            )
        chosen[masked] = np.argmax(mask[masked], axis=1)
        self.invalid[masked] += 1
        return chosen

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
