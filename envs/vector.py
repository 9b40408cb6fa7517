"""Many scheduling environments at once: all are stepped by one compiled call, in several threads."""

from typing import Any

import numba
import numpy as np
from gymnasium.vector import AutoresetMode

from allocation.placers import MILP
from berth.compiled import records
from berth.errors import ConfigError
from envs.episode import Episode
from envs.many import ManyEnvs
from envs.scheduling_env import OUTCOME, make_source, make_spaces
from envs.sim.cards import EPISODE
from envs.sim.playing import ARRAYS, BASELINE, BEGIN, STEP, play_many
from envs.stage import Listed


class SchedulingVectorEnv(ManyEnvs):
    """As many copies of SchedulingEnv as asked for; equal seeds give what single ones give, step by step.

    A reset's `options["first"]` is a window's first job, or one for each environment.
    """

    reset_options = ("first",)

    def __init__(
        self,
        num_envs: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(num_envs, autoreset_mode, copy, options.pop("render_mode", None))
        self.options, self.source = make_source(options)
        seen, actions = make_spaces(self.options, self.source.stage)
        self._set_spaces(seen, actions)
        self._alone = self.options.placement.placer.code == MILP or bool(numba.config.DISABLE_JIT)
        self.tables = np.zeros((self.num_envs, len(ARRAYS), 3), np.int64)
        self.rows = records(self.num_envs, EPISODE)
        self.invalid = self.rows["invalid"]
        self.seen = {
            name: np.zeros((self.num_envs, *(space.shape or ())), space.dtype) for name, space in seen.spaces.items()
        }
        self.prior = np.zeros((self.num_envs, self.options.window), np.float32)  # see SchedulingEnv.prior
        self.episodes = [
            Episode(self.options, self.source.stage, self.tables[e], self._shared(e)) for e in range(self.num_envs)
        ]

    @property
    def is_listed(self) -> bool:
        """Whether the windows are those of a list."""
        return isinstance(self.source, Listed)

    @property
    def tells_prior(self) -> bool:
        """Whether `prior` holds the order of a policy."""
        return bool(self.options.prior)

    def parts(self, seen: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The jobs and the cluster of an observation."""
        return seen["jobs"], seen["cluster"]

    def baseline_actions(self) -> np.ndarray:
        """The action that the baseline takes in each environment (environments,); -1 where its job is not shown."""
        return np.array([episode.baseline_action() for episode in self.episodes])

    @property
    def _raises(self) -> bool:
        return self.options.invalid_action == "raise"

    def _begin(self, who: np.ndarray, asked: dict[str, Any]) -> None:
        """Begin episodes in some environments, all at once."""
        first = asked.get("first")
        firsts: Any = first if isinstance(first, list | tuple | np.ndarray) else [first] * self.num_envs
        if len(firsts) != self.num_envs:
            raise ConfigError(f"first {first}: want one, or {self.num_envs}")
        drawn = []
        for e in who:
            rng = self._generators[e]
            assert rng is not None
            drawn.append(self.source.draw(rng) if first is None else self.source.find(firsts[e]))
        what, idle = np.full(self.num_envs, -1), np.zeros(self.num_envs, np.int64)
        for again, part in ((False, BASELINE), (True, BEGIN)):
            for e, (stage, at) in zip(who, drawn, strict=True):
                self.episodes[e].set_up(stage, at, again)
            what[who] = part
            self._play(what, idle)

    def _take(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self._play(np.where(self._over, -1, STEP), actions)
        return self.rows["reward"].copy(), self.rows["terminated"].copy(), self.rows["truncated"].copy()

    def _outcome(self, e: int) -> dict[str, Any]:
        return {name: kind(self.rows[e][field]) for name, (field, kind) in OUTCOME.items()}

    def _beginning(self, e: int) -> dict[str, Any]:
        return {"first": self.episodes[e].first, "baseline_score": float(self.rows[e]["baseline"])}

    def _play(self, what: np.ndarray, actions: np.ndarray) -> None:
        """Let compiled code play where `what` says so, and raise what went wrong."""
        answers = np.zeros(self.num_envs, np.int64)
        if self._alone:
            for e in np.flatnonzero(what >= 0):
                self.episodes[e].play(int(what[e]), int(actions[e]))
        else:
            play_many(what, actions, self.tables, answers)
            for e in np.flatnonzero(answers) if answers.any() else ():
                self.episodes[e].check(int(answers[e]))

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
        self.invalid = self.rows["invalid"]
        self.tables = np.zeros((self.num_envs, len(ARRAYS), 3), np.int64)
        for e, episode in enumerate(self.episodes):
            episode.adopt(self.tables[e], self._shared(e))
