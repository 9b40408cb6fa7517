"""Who orders a queue: a heuristic by its name, a Python function, or an exported policy."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from berth.errors import BerthError, ConfigError, SchedulerError
from envs.policies import find_policy
from envs.snapshot import Snapshot
from orchestrator.deciding import JobDecider, heuristic, of_exported
from orchestrator.ordering import order
from orchestrator.planning import PATIENCE, Plan, plan


class Orderer(NamedTuple):
    """Puts the queued jobs of a Snapshot into an order, and may name nodes for those that would start at once."""

    name: str
    word: str  # a policy for orchestrator/ordering.py, "" for an exported one
    decider: JobDecider | None  # who decides job by job, where somebody does
    seed: int = 0

    @property
    def runtime_info(self) -> str:
        """What it was trained to know of run times, "" for a heuristic, which takes what it is given."""
        if self.word or self.decider is None:
            return ""
        trained = self.decider.options.runtime_info
        return trained if trained in ("predicted", "hidden") else "request"

    def plan(self, view: Snapshot, expected: np.ndarray, head: int, patience: float = PATIENCE) -> Plan:
        """The order of a Snapshot's queued jobs, and who would start now, where, if it decides job by job.

        expected (queued,) s, how long each should run. Raises SchedulerError where it fails in any way: the queue
        is left to the scheduler then.
        """
        try:
            if not len(view.job):
                return Plan(np.zeros(0, np.int64), {})
            if not self.word and self.decider is not None:
                return plan(view, self.decider, expected, head, patience)
            ordered = order(view, self.word, self.seed)
            starts = plan(view, self.decider, expected, head, patience).starts if self.decider else {}
            return Plan(ordered, starts)
        except BerthError as trouble:
            raise SchedulerError(f"{self.name} decides nothing: {trouble}") from trouble
        except (Exception, SystemExit) as trouble:  # whatever a model or a function does must not end the agent
            raise SchedulerError(f"{self.name} fails: {type(trouble).__name__}: {trouble}") from trouble


def find_orderer(word: str, seed: int = 0, nodes: bool = False) -> Orderer:
    """Who orders, by a name, module:function or FILE.npz of train/export.py; raises ConfigError for others.

    `nodes` asks for somebody who names nodes, too; a Python function cannot.
    """
    if not word.endswith(".npz"):
        policy = find_policy(word)
        if nodes and policy.ask is not None:
            raise ConfigError(f"policy {word}: a function names no nodes; want a policy by name, or FILE.npz")
        return Orderer(policy.name, word, heuristic(word, "fit") if nodes else None, seed)
    from train.forward import read_exported

    exported = read_exported(Path(word))
    decider = of_exported(exported)
    if not isinstance(decider, JobDecider):
        raise ConfigError(f"policy {word}: chooses {exported.told['kind']}s; want one that chooses jobs")
    return Orderer(decider.name, "", decider, seed)
