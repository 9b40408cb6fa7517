"""A run that learns to choose jobs from a cluster's queue."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from berth.console import show_rows, tell
from berth.errors import ConfigError
from berth.streams import stream
from envs.reward import find_score
from train.config import Config, read_config
from train.imitation import imitate_actions, key_lessons, learn_keys
from train.resume import resumed
from train.training import Training, start_from

if TYPE_CHECKING:
    from envs.vector import SchedulingVectorEnv
    from train.carrying import Carried
    from train.design import Shape
    from train.ppo import Learner
    from train.ray_rollouts import Recipe

__all__ = ["Run", "main", "make_learner", "start_from"]


def main(cluster: str) -> None:
    """Train on a cluster as the command line says."""
    config, flags = read_config(cluster)
    if config.resume_from:
        config, checkpoint = resumed(config, flags)
        Run(config, checkpoint.path.parent, checkpoint).go()
    else:
        Run(config, config.folder).go()


class Run(Training):
    """A run on a cluster's queue."""

    config: Config
    env: "SchedulingVectorEnv"

    def make_env(self, split: str, episodes: int, prior: str | None = None) -> "SchedulingVectorEnv":
        """Environments of a split; the order of `prior` is told beside what is seen: of the corrected policy, if any.

        A run whose jobs come from elsewhere, or are paid otherwise, has its own.
        """
        from train.rollouts import make_env

        return make_env(self.config, split, episodes, self.config.residual if prior is None else prior)

    def sketch(self, env: Any) -> np.ndarray:
        """A few bits by which the jobs of a split are known again."""
        from train.rollouts import split_sketch

        return split_sketch(env)

    def shape_of(self, env: Any) -> "Shape":
        """What the networks need to know of a cluster."""
        from train.rollouts import shape_of

        return shape_of(env)

    def make_learner(self, shape: "Shape") -> "Learner":
        """The networks that the settings ask for."""
        return make_learner(self.config, shape)

    def recipe(self) -> "Recipe":
        """What workers make environments and networks from: the trace, carried to them, and two functions."""
        from train.carrying import carried
        from train.ray_rollouts import Recipe

        return Recipe(self.config, carried(self.env.source), worker_env, make_learner, self.shape_of(self.env))

    def notes(self) -> tuple[str, ...]:
        """What the user should know of the trace."""
        return self.env.source.notes

    def prepare(self) -> None:
        """Imitate, if asked for; where it began as a policy, look first what that is worth: it may stay the best."""
        c = self.config
        if c.clone and c.residual:
            self._look({})
        if c.clone and c.clone_loss == "log_key":
            self._learn_keys()
        elif c.clone:
            imitate_actions(c, self.learner, self.screen)

    def _learn_keys(self) -> None:
        """Learn a teacher's keys with every decay that is asked for, from the same beginning, and keep the best."""
        told, decays = key_lessons(self.config, self.env), self.config.decays
        begin = self._policy_state()
        best = -np.inf, begin
        for decay in decays:
            self._put_policy(begin)
            learn_keys(self.config, told, self.learner, self.screen, decay)
            looked: dict[str, float] = {"ValGain": 0.0}
            if len(decays) > 1:
                self._look(looked)
                tell(f"gain {looked['ValGain']:+.4f} on the validation windows")
            best = max(best, (looked["ValGain"], self._policy_state()), key=lambda found: found[0])
        self._put_policy(best[1])

    def _policy_state(self) -> list[np.ndarray]:
        """The weights of the policy and all that its optimiser remembers."""
        return [variable.numpy().copy() for variable in self._policy_variables]

    def _put_policy(self, state: list[np.ndarray]) -> None:
        for variable, value in zip(self._policy_variables, state, strict=True):
            variable.assign(value)

    @property
    def _policy_variables(self) -> list[Any]:
        return [*self.learner.policy.variables, *self.learner.pi_optimizer.variables]

    def test(self) -> dict[str, Any] | None:
        """Play test windows with the best policy, and with heuristics; print what came of it."""
        c = self.config
        if not c.report_windows:
            return None
        with self.screen:
            table = self._play_test()
        mine, trace = table["agent"], self.env.source.stage.workload.trace.name
        tell(
            f"REPORT  gain {mine['gain']:+.4f} ± {mine['half_interval']:.4f} over {c.sched_algo} ({c.discipline}) "
            f"on {c.report_windows} windows of the test split of {trace}"
        )
        name = find_score(c.score_type)
        show_rows(
            f"{name} on the same windows, by the same rules ({c.runtime_info} run times)",
            ("who decides", f"mean {name}", "gain over the baseline", "± (95 %)"),
            [(who, f"{row['score']:,.2f}", f"{row['gain']:+.4f}", f"{row['half_interval']:.4f}")
             for who, row in table.items()],
        )  # fmt: skip
        return table

    def _play_test(self) -> dict[str, dict[str, float]]:
        """How the agent and heuristics do on the test windows."""
        from train.playing import follow, play

        c = self.config
        seeds = stream(0, "report windows").integers(2**31, size=c.report_windows).tolist()
        table: dict[str, dict[str, float]] = {}
        for who in ("agent", *c.report_policies):
            self.screen.judging(c.report_windows, who)
            try:
                env = self.make_env("test", c.report_windows, None if who == "agent" else who)
            except ConfigError as cannot:
                tell(f"{who} is left out: {cannot}")
                continue
            episodes = play(env, seeds, self.learner.best if who == "agent" else follow(env), tick=self.screen.tick)[0]
            half = 1.96 * float(episodes.gain.std(ddof=1)) / len(seeds) ** 0.5 if len(seeds) > 1 else float("nan")
            table[who] = {
                "score": float(episodes.agent.mean()),
                "gain": float(episodes.gain.mean()),
                "half_interval": half,
            }
        return table


def make_learner(config: Config, shape: "Shape") -> "Learner":
    """The networks that settings ask for."""
    from train.design import Design
    from train.networks import build
    from train.ppo import Learner, rules_of

    hidden = tuple(int(width) for width in config.hidden)
    design = Design(shape, hidden, bool(config.residual), config.seed, config.input_scale)
    return Learner(build(config.architecture, design), design, rules_of(config))


def worker_env(config: Config, parts: "Carried | None", count: int) -> "SchedulingVectorEnv":
    """The environments of a worker, so many at once, on what was carried to it."""
    from train.carrying import taken_up
    from train.rollouts import make_env

    source = None if parts is None else taken_up(parts)
    return make_env(dataclasses.replace(config, num_envs=count), "train", count, config.residual, source)
