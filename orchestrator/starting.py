"""Who chooses the jobs that start on a host: a policy under a discipline, or a trained policy."""

from typing import NamedTuple, Protocol

import numpy as np

from berth.errors import ConfigError
from envs.policies import find_policy
from envs.snapshot import HOLDING, Snapshot
from orchestrator.deciding import JobDecider
from orchestrator.disciplines import DISCIPLINES
from orchestrator.ordering import order
from train.export import find_exported
from train.forward import Exported, JobPolicy


class Choice(NamedTuple):
    """What starts now, by the jobs' numbers, in this order."""

    starts: tuple[int, ...]
    holds: int = -1  # a job that was chosen and does not fit, -1 where there is none
    again: bool = False  # whether to ask again once these have started


class Chooser(Protocol):
    """Somebody who chooses jobs."""

    @property
    def name(self) -> str:
        """The policy's name."""

    @property
    def discipline(self) -> str:
        """By which the queue is served."""

    @property
    def needs_histories(self) -> bool:
        """Whether a Snapshot must tell what ended jobs told."""

    @property
    def holds_on(self) -> bool:
        """Whether a job that was chosen and does not fit is held over the next event."""

    @property
    def digest(self) -> str:
        """By which a trained policy is known again, "" for others."""

    def choose(self, view: Snapshot) -> Choice:
        """Who starts now."""


class Heuristic:
    """A policy of the registry, or a Python function, under a discipline."""

    needs_histories = holds_on = False
    digest = ""

    def __init__(self, word: str, discipline: str, seed: int) -> None:
        self.policy, self.discipline, self.seed = find_policy(word), discipline, seed
        self.name = word if ":" in word else self.policy.name  # a function must be found again by what is written
        self._serve = DISCIPLINES[discipline]

    def choose(self, view: Snapshot) -> Choice:
        """All that start at this event."""
        rows = self._serve(view, order(view, self.policy, self.seed))
        return Choice(tuple(int(view.job[row]) for row in rows))


class Trained:
    """A trained policy, which is asked for one job at a time."""

    name, needs_histories = "rl", True

    def __init__(self, exported: Exported, cores: int) -> None:
        if exported.told["kind"] != "job":
            raise ConfigError(f"{exported.path}: chooses {exported.told['kind']}s; want a policy that chooses jobs")
        trained_on = exported.told.get("pool_gpus")
        if trained_on != [cores]:
            raise ConfigError(
                f"{exported.path}: was trained on pools of {trained_on} GPUs or cores, and the host has {cores}; want "
                "--cores as in training, or a policy that is trained for this host (--rl-train)"
            )
        policy = JobPolicy(exported)
        self._decider = JobDecider(policy.name, policy.options, policy)
        self._decider.warm_up([cores])
        self.discipline, self.window = policy.options.discipline, policy.options.window
        self.holds_on = policy.options.action_mode == "reserve"
        self.digest = exported.digest

    def choose(self, view: Snapshot) -> Choice:
        """The next job, and whoever slips past it."""
        if not len(view.job):
            return Choice(())
        answer = self._decider.decide(view)
        chosen = [] if answer["job"] is None else [answer["job"], *(one["job"] for one in answer["also"])]
        holds = -1 if answer["holds"] is None else int(answer["holds"])
        held = view.job[view.state == HOLDING] if view.state is not None else np.zeros(0, int)
        return Choice(tuple(map(int, chosen)), holds, bool(chosen) or (holds >= 0 and holds not in held))


def trained(word: str, cores: int) -> Trained:
    """A trained policy: what --rl-train or train/export.py wrote, a checkpoint or a run; raises ConfigError."""
    return Trained(find_exported(word, "--rl-model-path"), cores)
