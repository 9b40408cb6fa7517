"""What contenders' windows come to: metrics, paired statistics, bounds, and tables by kinds of jobs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from envs.metrics import statistics
from envs.reward import SCORES
from eval.arena import Arena, Ground
from eval.bounds import bound
from eval.contenders import Contender
from eval.paired import Paired, compare, mean_intervals
from eval.played import LESS_IS_BETTER, PER_JOB, PER_WINDOW, Played, scored_metrics, window_metrics

METRICS = (*PER_JOB, *PER_WINDOW)

LENGTHS = ((60.0, "< 1 min"), (600.0, "1-10 min"), (3600.0, "10-60 min"), (21600.0, "1-6 h"), (86400.0, "6-24 h"),
           (np.inf, "> 1 day"))  # fmt: skip
"""Classes of run times, each below so many seconds."""

SIZES = ((1, "1 GPU"), (2, "2 GPUs"), (4, "3-4 GPUs"), (8, "5-8 GPUs"), (16, "9-16 GPUs"), (np.inf, "> 16 GPUs"))

FEW_JOBS, MOST_USERS = 5, 20
"""Users with fewer scored jobs do not count for fairness; so many users, those with most jobs, have own rows."""


@dataclass
class Judged:
    """All that an evaluation found out."""

    contenders: list[Contender]
    baseline: int  # which of the contenders
    score: str
    per_job: list[dict[str, np.ndarray]] = field(default_factory=list)  # contender -> metric -> (scored jobs,)
    users: np.ndarray | None = None  # (scored jobs,) numbers of their users
    values: dict[str, np.ndarray] = field(default_factory=dict)  # metric -> (contenders, windows)
    paired: dict[str, Paired] = field(default_factory=dict)  # metric -> against the baseline
    bounds: dict[str, np.ndarray] = field(default_factory=dict)  # score -> (windows,)
    groups: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)  # by -> group -> which jobs, all windows
    rival: int = -1  # the strongest heuristic, -1 where there is none to choose
    rival_by: str = ""  # on which windows it was the strongest
    rivals: dict[str, str] = field(default_factory=dict)  # score -> the strongest heuristic by it
    against_rival: dict[str, Paired] = field(default_factory=dict)  # metric -> the models against the rival
    replay: dict[str, dict[str, float]] = field(default_factory=dict)  # contender -> metric -> of the whole split
    replay_bound: dict[str, float] = field(default_factory=dict)

    def order(self) -> list[int]:
        """The contenders, models first, then by their scores."""
        mean = self.values[self.score].mean(axis=1)
        sign = 1.0 if LESS_IS_BETTER[self.score] else -1.0
        return sorted(range(len(mean)), key=lambda i: (self.contenders[i].kind != "model", sign * mean[i]))

    def chosen(self, count: int) -> list[int]:
        """As many contenders as shall be shown: models, baseline, rival, then the best, equal ones last."""
        order = self.order()
        must = [i for i in order if self.contenders[i].kind == "model" or i in (self.baseline, self.rival)]
        seen = {self.values[self.score][i].tobytes() for i in must}
        rest = []
        for i in order:
            alike = self.values[self.score][i].tobytes()
            if i not in must and alike not in seen:
                rest.append(i)
            seen.add(alike)
        rest += [i for i in order if i not in must and i not in rest]
        kept = {*must, *rest[: max(0, count - len(must))]}
        return [i for i in order if i in kept]

    def telling(self, chosen: Sequence[int]) -> int:
        """The window in which contenders differ most."""
        scores = self.values[self.score][list(chosen)]
        apart = np.log1p(scores).std(axis=0) if (scores >= 0).all() else scores.std(axis=0)
        return int(np.argmax(apart))

    def summary(self, i: int) -> dict[str, float]:
        """Mean, median, p90 and p99 of every metric: over all scored jobs, or over windows."""
        told: dict[str, float] = {}
        for name in METRICS:
            values = self.per_job[i][name] if name in PER_JOB else self.values[name][i]
            told |= statistics(name, values)
        return told

    def left(self, i: int) -> float:
        """The share of a contender's score that could be gained at most: how far it is from the bound."""
        if self.score not in self.bounds:
            return float("nan")
        mine, best = float(self.values[self.score][i].mean()), float(self.bounds[self.score].mean())
        if LESS_IS_BETTER[self.score]:
            return (mine - best) / mine if mine > 0 else 0.0
        return (best - mine) / best if best > 0 else 0.0

    def of_group(self, i: int, rows: np.ndarray) -> dict[str, float]:
        """Statistics of a contender's scored jobs in a group."""
        told: dict[str, float] = {"jobs": float(rows.sum())}
        for name in PER_JOB:
            told |= statistics(name, self.per_job[i][name][rows])
        return told

    def fairness(self, i: int) -> dict[str, float]:
        """How evenly users are served, by the mean bounded slowdown of each: Jain's index, worst over median."""
        if self.users is None:
            return {}
        jobs, total = np.bincount(self.users), np.bincount(self.users, self.per_job[i]["bounded_slowdown"])
        means = (total / np.maximum(jobs, 1))[jobs >= FEW_JOBS]
        if not len(means):
            return {}
        return {
            "users": float(len(means)),
            "jain": float(means.sum() ** 2 / (len(means) * (means**2).sum())),
            "worst_over_median": float(means.max() / np.median(means)),
        }


def judge(
    arena: Arena, contenders: list[Contender], baseline: int, score: str, played: Sequence[Sequence[Played]], seed: int
) -> Judged:
    """Metrics of all windows of all contenders, and their differences to the baseline."""
    told = Judged(contenders, baseline, score)
    grounds = arena.grounds(arena.options.runtime_info)
    shape = (len(contenders), len(grounds))
    told.values = {name: np.zeros(shape) for name in METRICS}
    for i, windows in enumerate(played):
        rows = [scored_metrics(ground.window, one) for ground, one in zip(grounds, windows, strict=True)]
        told.per_job.append({name: np.concatenate([row[name] for row in rows]) for name in PER_JOB})
        for k, (ground, one) in enumerate(zip(grounds, windows, strict=True)):
            whole = window_metrics(ground.window, one, ground.past.chosen)
            for name in METRICS:
                told.values[name][i, k] = rows[k][name].mean() if name in PER_JOB else whole[name]
    for name, values in told.values.items():
        told.paired[name] = compare(values, values[baseline], LESS_IS_BETTER[name], arena.groups, seed)
    told.groups, told.users = group_jobs(grounds)
    return told


def add_rival(told: Judged, arena: Arena, rival: int, chosen_by: str, seed: int) -> None:
    """Compare the models with the strongest heuristic as well."""
    told.rival, told.rival_by = rival, chosen_by
    for metric, values in told.values.items():
        mine = values[[i for i, one in enumerate(told.contenders) if one.kind == "model"]]
        told.against_rival[metric] = compare(mine, values[rival], LESS_IS_BETTER[metric], arena.groups, seed)


def add_replay(told: Judged, whole: Ground, replayed: Sequence[Sequence[Played]], bounded: bool) -> None:
    """Judge the whole split, played in one go; and how good any schedule of it could be."""
    for contender, (one,) in zip(told.contenders, replayed, strict=True):
        told.replay[contender.name] = judge_replay(whole, one)
    if bounded:
        told.replay_bound = {score: bound(whole.window, score) for score in SCORES}


def add_bounds(told: Judged, grounds: Sequence[Ground]) -> None:
    """Find out how good any schedule of the windows could be."""
    for score in SCORES:
        told.bounds[score] = np.array([bound(ground.window, score) for ground in grounds])


def score_of(ground: Ground, one: Played, score: str) -> float:
    """The score of one window."""
    if score in PER_JOB:
        return float(scored_metrics(ground.window, one)[score].mean())
    return window_metrics(ground.window, one, ground.past.chosen)[score]


def judge_replay(ground: Ground, one: Played) -> dict[str, float]:
    """All metrics of a whole split."""
    found: dict[str, float] = {}
    for name, values in scored_metrics(ground.window, one).items():
        found |= statistics(name, values)
    return found | window_metrics(ground.window, one, ground.past.chosen)


def group_jobs(grounds: Sequence[Ground]) -> tuple[dict[str, dict[str, np.ndarray]], np.ndarray | None]:
    """Which of the scored jobs of all windows (jobs,) belong to which pool, size, length, user; all users' numbers."""
    columns: dict[str, list[np.ndarray]] = {"pool": [], "gpus": [], "run_time": [], "user": []}
    for window, _ in grounds:
        trace, rows = window.stage.workload.trace, window.jobs[window.scored]
        pools = np.array([pool.name for pool in window.stage.workload.pools], dtype=object)
        columns["pool"].append(pools[window.stage.workload.pool[rows]])
        columns["gpus"].append(trace.gpus[rows])
        columns["run_time"].append(trace.run_time[rows])
        if trace.user is not None:
            columns["user"].append(trace.user[rows].astype(str))
    joined = {name: np.concatenate(parts) for name, parts in columns.items() if parts}
    found = {
        "size": _classes(joined["gpus"], SIZES, upto=True),
        "length": _classes(joined["run_time"], LENGTHS, upto=False),
    }
    if len(set(joined["pool"])) > 1:
        found["pool"] = {name: joined["pool"] == name for name in dict.fromkeys(sorted(joined["pool"]))}
    if "user" not in joined:
        return found, None
    names, numbers, jobs = np.unique(joined["user"], return_inverse=True, return_counts=True)
    most = np.argsort(-jobs, kind="stable")[:MOST_USERS]
    found["user"] = {str(names[u]): numbers == u for u in most if jobs[u] >= FEW_JOBS}
    return found, numbers


def _classes(values: np.ndarray, classes: Sequence[tuple[float, str]], upto: bool) -> dict[str, np.ndarray]:
    """Which values (jobs,) are in which class; a class ends at its border (`upto`), or before it."""
    number = np.searchsorted([high for high, _ in classes], values, side="left" if upto else "right")
    return {text: number == k for k, (_, text) in enumerate(classes) if (number == k).any()}


def to_json(told: Judged, arena: Arena) -> dict[str, Any]:
    """Every number, as JSON can hold it."""
    names = [contender.name for contender in told.contenders]
    low, high = mean_intervals(told.values[told.score], arena.groups)
    models = [one.name for one in told.contenders if one.kind == "model"]
    return {
        "score": told.score,
        "baseline": names[told.baseline],
        "contenders": [
            {
                "name": c.name,
                "policy": c.policy,
                "discipline": c.discipline,
                "runtime_info": c.runtime_info,
                "kind": c.kind,
                "marks": list(c.marks),
            }
            for c in told.contenders
        ],
        "windows": [
            {
                "first_job": first,
                "begin_s": float(stage.roster["submit"][first]),
                "group": int(group),
                "backlog": int(arena.ground(k, arena.options.runtime_info).window.waits.sum()),
            }
            for k, ((stage, first), group) in enumerate(zip(arena.begins, arena.groups, strict=True))
        ],
        "by_window": {
            name: {metric: told.values[metric][i].tolist() for metric in METRICS} for i, name in enumerate(names)
        },
        "summary": {name: told.summary(i) for i, name in enumerate(names)},
        "mean_interval": {name: [float(low[i]), float(high[i])] for i, name in enumerate(names)},
        "paired": {
            name: {
                metric: {key: float(column[i]) for key, column in told.paired[metric]._asdict().items()}
                for metric in METRICS
            }
            for i, name in enumerate(names)
        },
        "rival": names[told.rival] if told.rival >= 0 else None,
        "rival_by": told.rival_by,
        "rivals": told.rivals,
        "against_rival": {
            name: {
                metric: {key: float(column[i]) for key, column in paired._asdict().items()}
                for metric, paired in told.against_rival.items()
            }
            for i, name in enumerate(models)
        },
        "bounds": {score: values.tolist() for score, values in told.bounds.items()},
        "left": {name: told.left(i) for i, name in enumerate(names)},
        "groups": {
            by: {group: {name: told.of_group(i, rows) for i, name in enumerate(names)} for group, rows in of.items()}
            for by, of in told.groups.items()
        },
        "fairness": {name: told.fairness(i) for i, name in enumerate(names)},
        "replay": told.replay,
        "replay_bounds": told.replay_bound,
    }
