"""Who plays: heuristics under disciplines, random choice, and trained models."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from gymnasium.vector import AutoresetMode

from allocation.choice import Allocation
from berth.errors import ConfigError
from berth.streams import stream
from envs.options import Options
from envs.policies import POLICIES, Ask, Policy, find_policy
from envs.sim.simulator import DISCIPLINES, check_options
from envs.stage import Listed
from envs.window import Window, simulate_window
from eval.arena import Ground
from eval.played import Played, from_episode, from_schedule
from train.checkpoint import Checkpoint
from train.config import Config, from_settings

if TYPE_CHECKING:
    from envs.vector import SchedulingVectorEnv
    from train.ppo import Learner

RANDOM_FEASIBLE = "random_feasible"
RANDOM_NAMES = (RANDOM_FEASIBLE, "RAND_FEAS_NO0", "rand_feas_no0")
"""Any job that fits now, each as likely; never waits."""

AT_ONCE = 64
"""Windows that a model plays at once, at most."""

Tick = Callable[[int], None]


class Contender(Protocol):
    """Somebody who plays windows."""

    @property
    def name(self) -> str:
        """Unique among contenders."""

    @property
    def policy(self) -> str:
        """The policy's, or the model's, name."""

    @property
    def discipline(self) -> str:
        """By which the queue is served."""

    @property
    def runtime_info(self) -> str:
        """What it knows of run times."""

    @property
    def kind(self) -> str:
        """Heuristic or model."""

    @property
    def marks(self) -> tuple[str, ...]:
        """What a reader of its numbers must know."""

    def play(self, grounds: Sequence[Ground], tick: Tick) -> list[Played]:
        """Play windows from their beginnings; `tick` is told how many are done."""


@dataclass(frozen=True)
class Heuristic:
    """A policy under a discipline."""

    rule: Policy
    discipline: str
    runtime_info: str
    allocation: Allocation
    seed: int
    told: bool  # whether what it knows belongs to its name
    kind: str = "heuristic"
    marks: tuple[str, ...] = ()

    @property
    def policy(self) -> str:
        """The policy's name."""
        return self.rule.name

    @property
    def name(self) -> str:
        """Policy and discipline."""
        known = f" ({self.runtime_info})" if self.told else ""
        return f"{self.rule.name} {self.discipline}{known}"

    def play(self, grounds: Sequence[Ground], tick: Tick) -> list[Played]:
        """Simulate windows, one after the other."""
        return _simulated(self, grounds, lambda _window: self.rule, tick)


@dataclass(frozen=True)
class RandomFeasible:
    """Any job that fits, each as likely: at every event a new random order, of which starts what fits."""

    runtime_info: str
    allocation: Allocation
    seed: int
    name: str = f"{RANDOM_FEASIBLE} fit"
    policy: str = RANDOM_FEASIBLE
    discipline: str = "fit"
    kind: str = "heuristic"
    marks: tuple[str, ...] = ()

    def play(self, grounds: Sequence[Ground], tick: Tick) -> list[Played]:
        """Simulate windows, each with random numbers of its own."""

        def _rule(window: Window) -> Ask:
            rng = stream(self.seed, f"random feasible {window.first} {window.count}")
            return lambda view: rng.random(len(view.job))

        return _simulated(self, grounds, _rule, tick)


def _simulated(
    who: Heuristic | RandomFeasible, grounds: Sequence[Ground], rule: Callable[[Window], Policy | Ask], tick: Tick
) -> list[Played]:
    """Simulate windows, one after the other."""
    played = []
    for done, (window, past) in enumerate(grounds):
        schedule = simulate_window(
            window, rule(window), who.discipline, who.allocation, who.runtime_info, who.seed, past
        )
        played.append(from_schedule(schedule))
        tick(done + 1)
    return played


class Model:
    """A trained policy."""

    kind = "model"

    def __init__(self, name: str, checkpoint: Checkpoint, options: dict[str, Any], sample: int | None) -> None:
        self.name, self.checkpoint, self.sample = name, checkpoint, sample
        self.config = Config(**from_settings(Config, checkpoint.told["settings"], str(checkpoint.path)))
        own = {field.name: getattr(self.config, field.name) for field in dataclasses.fields(Options)}
        kept = ("window", "window_order", "action_mode", "lookahead_mode", "sched_algo", "invalid_action", "backfil")
        self.options = {key: own[key] for key in kept} | {"prior": self.config.residual} | options
        if options["runtime_info"] == "hidden" and own["runtime_info"] == "predicted":
            self.options["runtime_info"] = "predicted"  # as heuristics that need run times: from jobs that have ended
        if own["action_mode"] != "reserve":
            self.options["backfil"] = False  # it is for models that reserve
        checked = Options(**self.options)
        self.policy, self.discipline, self.runtime_info = name, checked.discipline, checked.runtime_info
        self.marks: tuple[str, ...] = ()
        self._learner: Learner | None = None

    def share_networks(self, other: "Model") -> None:
        """Use the networks of another model, of the same checkpoint for the same cluster; they take long to make."""
        self._learner = other._learner

    def play(self, grounds: Sequence[Ground], tick: Tick) -> list[Played]:
        """Play windows with the most likely actions, or with actions drawn by their probabilities."""
        from train.quiet import load_tensorflow

        load_tensorflow(self.config.seed)
        from train.playing import play
        from train.rollouts import shape_of
        from train.run import make_learner, start_from

        env = _environments(grounds, self.options, AT_ONCE)
        if self._learner is None:
            self._learner = make_learner(self.config, shape_of(env))
            start_from(self._learner, self.checkpoint)
        learner = self._learner
        decide = learner.best
        if self.sample is not None:
            rng = stream(self.sample, "sampled actions")
            decide = lambda seen: learner.act(seen, rng, 0.0)  # noqa: E731
        ended: dict[int, Played] = {}
        play(
            env,
            range(len(grounds)),
            decide,
            tick=tick,
            ended=lambda k, e: ended.update({k: from_episode(env.episodes[e])}),
        )
        return [ended[k] for k in range(len(grounds))]


def _environments(grounds: Sequence[Ground], options: dict[str, Any], at_once: int) -> "SchedulingVectorEnv":
    """Environments that play given windows."""
    from envs.vector import SchedulingVectorEnv

    listed = Listed([(ground.window.stage, ground.window.first) for ground in grounds])
    chosen = options | {"seq_len": grounds[0].window.count, "split": "all"}
    return SchedulingVectorEnv(min(at_once, len(grounds)), AutoresetMode.DISABLED, copy=False, source=listed, **chosen)


def heuristics(
    words: Sequence[str],
    disciplines: Sequence[str],
    runtime_info: str,
    allocation: Allocation,
    seed: int,
) -> tuple[list[Contender], list[str]]:
    """The contenders that words like sjf, sjf@easy, sjf@fit@oracle or all name; and what was left out, and why.

    A word without a discipline stands for every one of `disciplines`. Where run times are hidden, whoever needs them
    gets predictions, which rest on jobs that have ended. A word that names all it wants and cannot have it is an error.
    """
    found: dict[str, Contender] = {}
    left: dict[str, list[str]] = {}
    spelled = [name for word in words for name in (POLICIES if word == "all" else (word,))]
    for word in spelled:
        name, *rest = word.split("@")
        if len(rest) > 2 or not all((name, *rest)):
            raise ConfigError(f"sched_algo {word}: want POLICY, POLICY@DISCIPLINE or POLICY@DISCIPLINE@RUNTIME_INFO")
        if name in RANDOM_NAMES:
            if rest:
                raise ConfigError(f"sched_algo {word}: {name} always takes jobs that fit; want it without @")
            found.setdefault(RANDOM_FEASIBLE, RandomFeasible(runtime_info, allocation, seed))
            continue
        rule = find_policy(name)
        for discipline in rest[:1] or disciplines:
            info = rest[1] if len(rest) > 1 else _allowed(rule, discipline, runtime_info)
            try:
                check_options(rule, discipline, "pool", info)
                if discipline.startswith("rlscheduler"):
                    raise ConfigError(f"discipline {discipline} begins with an idle cluster, not in the middle")
            except ConfigError as cannot:
                if rest or discipline not in DISCIPLINES:
                    raise
                left.setdefault(str(cannot), []).append(f"{name} {discipline}")
                continue
            one = Heuristic(rule, discipline, info, allocation, seed, told=info != runtime_info)
            other = found.setdefault(one.name, one)
            if isinstance(other, Heuristic) and other.rule.text != rule.text:
                raise ConfigError(f"sched_algo: two functions are both called {rule.name}; want files of other names")
    return list(found.values()), [f"left out: {', '.join(who)}: {why}" for why, who in left.items()]


def _allowed(rule: Policy, discipline: str, runtime_info: str) -> str:
    """What a policy may know under a discipline: predictions stand for run times that are hidden."""
    how = DISCIPLINES.get(discipline)
    needs = rule.needs_run_time or (how is not None and how.backfills)
    return "predicted" if runtime_info == "hidden" and needs else runtime_info
