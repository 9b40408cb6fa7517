"""Who decides: exported policies of every kind, and heuristics, for one Snapshot at a time."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from berth.errors import ConfigError, SnapshotError
from envs.desk import Desk, Outcome, Start, arranged, refuse_unknowable
from envs.observation import lookahead_layout
from envs.options import Options
from envs.policies import find_policy
from envs.snapshot import Snapshot
from envs.wire import MOST_IN_ALL, TOLD_NAMES, VERSION, read, write
from orchestrator.host_deciding import of_hosts
from train.forward import Exported, JobPolicy

LAYOUTS, MOST_KEPT = 4, MOST_IN_ALL
"""For how many layouts of nodes arrays are kept, and for how many GPUs in all of them."""


class Decider(Protocol):
    """Somebody who decides for a cluster."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def kind(self) -> str:
        """What it chooses: job or host."""

    @property
    def wants(self) -> dict[str, Any]:
        """What a Snapshot must tell for it."""

    def decide(self, view: Snapshot, scores: bool) -> dict[str, Any]:
        """The answer to a Snapshot, as JSON has it; raises SnapshotError where it cannot be answered."""


class JobDecider:
    """Chooses the job that starts next, and its nodes."""

    kind = "job"

    def __init__(self, name: str, options: Options, policy: JobPolicy | None = None) -> None:
        refuse_unknowable(options)
        self.name, self.options, self.policy = name, options, policy
        self.pool_gpus: list[int] = []
        self._desks: OrderedDict[tuple[bytes, bytes], tuple[Desk, np.ndarray]] = OrderedDict()
        self._kept = 0  # GPUs of all that are kept

    @property
    def wants(self) -> dict[str, Any]:
        """What a Snapshot must tell: run times as they are known to it, histories, and pools that it can see."""
        told: dict[str, Any] = {"runtime_info": self.options.runtime_info, "histories": self.policy is not None}
        if self.policy is not None:
            told["lookahead_values"] = [count for _, count in self.policy.design.shape.pools]
            told["pool_gpus"] = self.pool_gpus
        return told

    def decide(self, view: Snapshot, scores: bool = False) -> dict[str, Any]:
        """One decision: who starts where, who holds a pool, or why nobody starts."""
        desk, order = self._desk(view)
        reserves = self.options.action_mode == "reserve"
        can = desk.look(view, order, anew=reserves)
        starts = desk.started() if reserves else ()
        if starts:  # jobs that held a pool, and now fit
            return _answer(view, Outcome(starts, -1))
        if not can:
            return _nobody(self._why(view, desk))
        if self.policy is None:
            return _answer(view, desk.take(0))  # the window is one slot: the first job in line that can be chosen
        action, logits = self.policy.best(desk.observation, desk.arrays["prior"])
        if np.isnan(logits).any():
            raise SnapshotError(f"{self.name} answers NaN; want numbers: its weights are of no use here")
        told = _scores(view, desk, logits) if scores else {}
        if action >= self.options.window:
            return _nobody("the policy waits") | told
        return _answer(view, desk.take(action)) | told

    def warm_up(self, pool_gpus: Sequence[int]) -> None:
        """Decide once for an idle cluster with such pools, so that all compiled code is there."""
        self.pool_gpus = [int(gpus) for gpus in pool_gpus]
        pools = np.arange(len(pool_gpus), dtype=np.int32)
        gpus = np.array(pool_gpus, np.int32)
        one, none, few = np.ones(1), np.zeros(0), np.zeros(0, np.int32)
        view = Snapshot(
            1.0, pools[:1], one, 0 * one, one.astype(np.int32), one, pools[:1], few, none, few, few, none, gpus, gpus,
            pools, history=np.zeros((1, len(TOLD_NAMES)), np.float32), running_guess=none,
            place_at=np.zeros(1, np.int64), place_node=few, place_gpus=few,
        )  # fmt: skip
        self.decide(view)
        busy = view._replace(
            running_job=pools[:1] + 1, running_start=0 * one, running_gpus=one.astype(np.int32), running_pool=pools[:1],
            running_end=2 * one, running_guess=one, free=gpus - (np.arange(len(gpus)) == 0).astype(np.int32),
            place_at=np.arange(2), place_node=pools[:1], place_gpus=one.astype(np.int32),
        )  # fmt: skip
        read(write(busy))  # what checks the nodes of running jobs is compiled, too
        self._desks.clear()
        self._kept = 0

    def _desk(self, view: Snapshot) -> tuple[Desk, np.ndarray]:
        """Arrays for the nodes of a Snapshot, and where these stand in it."""
        if self.policy is not None and view.history is None:
            raise SnapshotError(f"queued: no {', '.join(TOLD_NAMES)}; want them all: the policy was trained on them")
        key = (view.capacity.tobytes(), view.node_pool.tobytes())
        if key not in self._desks:
            nodes, order = arranged(view)
            self._check_layout(lookahead_layout(nodes))
            gpus = int(nodes.capacity.sum())
            while self._desks and (len(self._desks) >= LAYOUTS or self._kept + gpus > MOST_KEPT):
                self._kept -= int(self._desks.popitem(last=False)[1][0].nodes.capacity.sum())
            self._desks[key] = Desk(self.options, nodes), order
            self._kept += gpus
        self._desks.move_to_end(key)
        return self._desks[key]

    def _check_layout(self, looks: np.ndarray) -> None:
        """Raise SnapshotError for nodes that a network cannot see."""
        if self.policy is None:
            return
        came = tuple((int(at), int(count)) for at, count in zip(looks["at"], looks["count"], strict=True))
        wanted = self.policy.design.shape.pools
        if came != wanted:
            raise SnapshotError(
                f"nodes: pools of {looks['gpus'].tolist()} GPUs, which the network sees as "
                f"{[count for _, count in came]} values; want {[count for _, count in wanted]}, as it was trained"
            )

    def _why(self, view: Snapshot, desk: Desk) -> str:
        """Why nothing can be chosen."""
        if not len(view.job):
            return "no job waits"
        if not desk.now["waiting"]:
            return "no job that waits can ever start"
        return "no job that waits fits now" if desk.now["fit"] else "every pool with waiting jobs is held"


def heuristic(word: str, action_mode: str, allocation: str = "") -> JobDecider:
    """A policy of the registry under an action mode; raises ConfigError for one that is not known."""
    policy = find_policy(word)
    needs = policy.needs_run_time or action_mode in ("easy", "conservative")
    options = Options(
        sched_algo=policy.name if policy.ask is None else word, action_mode=action_mode, window=1,
        runtime_info="oracle" if needs else "hidden", lookahead_mode="off", allocation=allocation,
    )  # fmt: skip
    decider = JobDecider(f"{policy.name} {action_mode}", options)
    decider.warm_up([8])
    return decider


def _of_jobs(exported: Exported) -> Decider:
    policy = JobPolicy(exported)
    decider = JobDecider(policy.name, policy.options, policy)
    decider.warm_up(exported.told["pool_gpus"])
    return decider


DECIDERS: dict[str, Callable[[Exported], Decider]] = {"job": _of_jobs, "host": of_hosts}
"""Who decides by an exported policy, by its kind."""


def of_exported(exported: Exported) -> Decider:
    """Who decides by an exported policy; raises ConfigError for a kind that cannot be served."""
    kind = exported.told["kind"]
    if kind not in DECIDERS:
        raise ConfigError(f"{exported.path}: chooses {kind}s; want a policy that chooses: {', '.join(DECIDERS)}")
    return DECIDERS[kind](exported)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _placed(view: Snapshot, start: Start) -> dict[str, Any]:
    """A start as JSON has it; nodes by their names, if they have any."""
    names = view.node_name
    nodes = [{"node": node if names is None else names[node], "gpus": gpus} for node, gpus in start.nodes]
    return {"job": _plain(view.job[start.row]), "nodes": nodes}


def _answer(view: Snapshot, outcome: Outcome) -> dict[str, Any]:
    """The starts that come of a decision; the first is the chosen job, if it fits."""
    holds = _plain(view.job[outcome.holds]) if outcome.holds >= 0 else None
    if not outcome.starts:
        return _nobody("the chosen job does not fit, and holds its pool") | {"holds": holds}
    placed = [_placed(view, start) for start in outcome.starts]
    return {"version": VERSION, **placed[0], "also": placed[1:], "holds": holds}


def _nobody(why: str) -> dict[str, Any]:
    return {"version": VERSION, "job": None, "nodes": [], "also": [], "holds": None, "why": why}


def _scores(view: Snapshot, desk: Desk, logits: np.ndarray) -> dict[str, Any]:
    """The logits of the jobs that could be chosen, and of waiting, if that could be."""
    rows, mask = desk.window_rows(), desk.arrays["mask"]
    told = [[_plain(view.job[row]), float(logits[i])] for i, row in enumerate(rows) if mask[i]]
    waits = len(mask) > desk.options.window
    return {"scores": told, "wait_score": float(logits[-1]) if waits else None}
