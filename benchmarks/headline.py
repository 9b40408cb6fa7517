"""Train and judge the policies of the headline table: what it is worth to learn, on jobs that nobody has seen.

    python benchmarks/headline.py                        # all of it, hours; what is done already is skipped
    python benchmarks/headline.py --only philly          # experiments whose name has this in it
    python benchmarks/headline.py --train 0 --judge 0    # the page alone, from docs/results/headline.json

Runs go to data/logs/NAME/NAME_s0 ..., evaluations to data/headline/NAME. The real traces are looked for in
../shared/traces, and left out where absent. The page is docs/results/README.md.
"""

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.calibrate import FILES, REAL
from benchmarks.headline_page import write_page
from benchmarks.model_cards import LIMITS, write_card
from berth.commandline import option, parse, run, written_whole
from berth.console import tell
from envs.clusters import CLUSTERS
from eval.commands import Command, run_commands
from eval.paired import compare
from train.checkpoint import BEST, Checkpoint, load, save

ROOT = Path(__file__).resolve().parent.parent
NUMBERS = ROOT / "docs/results/headline.json"
SCORES = ("bounded_slowdown", "wait")
SEEDS_BASELINES = ("fcfs strict", "fcfs reserve", "sjf strict", "sjf reserve")

SHARED = "--warm_rule sjf@easy --report_windows 0 --minibatch 256 --lr 1e-4"
RULES = {
    "hidden": f"{SHARED} --val_windows 64 --window 128 --trajs 48 --action_mode fit --runtime_info predicted "
    "--sched_algo sjf --residual sjf --hidden 64,32,16 --epochs 2 --val_every 1 "
    "--clone saf@oracle --clone_loss log_key --clone_epochs 12 --clone_lr 5e-3 --clone_decay 0,0.01,0.03,0.1,0.3",
    "oracle": f"{SHARED} --val_windows 24 --window 64 --trajs 16 --epochs 1 --val_every 1",
}
"""How policies are trained, by what they know of run times.

Where these are not known, one policy for the bounded slowdown is judged by the wait as well; where they are, there
is a policy for each score.
"""

BEGINNINGS = {
    ("real", "helios", "wait"): "f4@easy",
    ("real", "alibaba", "bounded_slowdown"): "saf@conservative",
    ("real", "alibaba", "wait"): "saf@easy",
    ("sample", "helios", "wait"): "smith@conservative",
}
"""What a policy that knows run times begins as: the heuristic that is strongest on validation windows, as evaluations
print it ("rivals" in results.json). Where the table has none: smith, or for the wait saf, under conservative."""

ORDERS = "fcfs,lcfs,smallest,sjf,saf,srf,smith,f3,f4,fcfs@reserve,sjf@reserve"
RIVALS = {
    "hidden": f"{ORDERS},wfp3@fit,unicep@fit,sjf@fit@oracle,saf@easy@oracle",
    "oracle": f"{ORDERS},saf@conservative,smith@conservative",
}
"""Heuristics that policies are compared with, under strict, easy and fit unless they name their discipline."""


@dataclass(frozen=True)
class Config:
    """What benchmarks/headline.py takes."""

    only: str = option("", "experiments whose names have this in them", metavar="WORD")
    data: str = option(
        "", "experiments on shipped samples, or on real traces; default: both", choices=("sample", "real")
    )
    seeds: int = option(3, "runs of each kind")
    windows: int = option(100, "test windows")
    processes: int = option(2, "programs that run at the same time, on one core each")
    train: bool = option(True, "train what has not been trained")
    judge: bool = option(True, "evaluate what has not been evaluated")
    ship: bool = option(False, "put the runs that are best on validation windows into models/")


class Experiment(NamedTuple):
    """Policies of one kind on one trace, each seed a run."""

    data: str  # sample or real
    cluster: str
    info: str  # what is known of run times: of RULES

    @property
    def name(self) -> str:
        """The runs' name."""
        return f"{'real_' if self.data == 'real' else ''}{self.cluster}_{self.info}"

    @property
    def trace(self) -> list[str]:
        """The flags that name the trace."""
        if self.data == "sample":
            return []
        pools = ["--assign_pools", "0"] if CLUSTERS[self.cluster].pool_by else []
        return ["--workload", os.path.relpath(REAL / FILES[self.cluster], ROOT), *pools]

    def runs(self, score: str) -> str:
        """The name of the runs that are judged by a score."""
        return f"{self.name}_wait" if self.info == "oracle" and score == "wait" else self.name

    def training(self, score: str, seed: int) -> list[str]:
        """The command that trains a run for a score."""
        own = ["--exp_name", self.runs(score), "--seed", str(seed), *self.trace]
        if self.info == "oracle":
            usual = "saf@conservative" if score == "wait" else "smith@conservative"
            policy, mode = BEGINNINGS.get((self.data, self.cluster, score), usual).split("@")
            own += ["--sched_algo", policy, "--residual", policy, "--action_mode", mode, "--score_type", score]
        return [f"train/{self.cluster}_train.py", *shlex.split(RULES[self.info]), *own]

    def evaluation(self, seeds: int, windows: int) -> list[str]:
        """The command that judges the runs, by all scores."""
        names = dict.fromkeys(self.runs(score) for score in SCORES)
        runs = ",".join(f"data/logs/{name}/{name}_s{seed}" for name in names for seed in range(seeds))
        return [
            f"eval/{self.cluster}_eval.py", "--rlmodel", runs, "--runtime_info", self.info, "--iter", str(windows),
            "--sched_algo", RIVALS[self.info], "--no_replay", "--no_bound", "--no_report", "--no_job_files",
            "--split", "test", "--out", str(self.folder), *self.trace,
        ]  # fmt: skip

    @property
    def folder(self) -> Path:
        """Where an evaluation is written."""
        return Path("data/headline") / self.name


def experiments(only: str = "", data: str = "") -> list[Experiment]:
    """All experiments whose traces are there, of a kind."""
    found = [
        Experiment(kind, cluster, info)
        for info in RULES
        for kind in ("sample", "real")
        for cluster in CLUSTERS
        if kind == "sample" or (cluster in FILES and (REAL / FILES[cluster]).is_file())
    ]
    return [one for one in found if only in one.name and data in ("", one.data)]


def trainings(config: Config) -> Iterator[tuple[str, list[str], Path]]:
    """What there is to train: a name, a command, and the file that tells that it is done."""
    for seed in range(config.seeds if config.train else 0):
        for one in experiments(config.only, config.data):
            for name, score in {one.runs(score): score for score in reversed(SCORES)}.items():
                done = Path(f"data/logs/{name}/{name}_s{seed}/report.json")
                yield f"{name} seed {seed}", one.training(score, seed), done


def evaluations(config: Config) -> Iterator[tuple[str, list[str], Path]]:
    """The same for evaluations."""
    for one in experiments(config.only, config.data) if config.judge else ():
        yield f"{one.name} judged", one.evaluation(config.seeds, config.windows), one.folder / "results.json"


def work_off(tasks: Sequence[tuple[str, list[str], Path]], processes: int) -> None:
    """Run commands that are not done, some at a time; one that fails is told, and the others go on."""
    logs = ROOT / "data/headline"
    commands = [
        Command(name, [sys.executable, *words], str(ROOT), str(logs / f"{name.replace(' ', '_')}.log"))
        for name, words, done in tasks
        if not (ROOT / done).is_file()
    ]
    run_commands(commands, processes)


def summarize(one: Experiment, score: str, told: dict[str, Any]) -> dict[str, Any]:
    """One row of the table, from the numbers of an evaluation: the mean of the seeds' policies against others."""
    rows = {name: np.array(metrics[score]) for name, metrics in told["by_window"].items()}
    runs = re.compile(rf"{re.escape(one.runs(score))}_s\d+")
    models = [c["name"] for c in told["contenders"] if c["kind"] == "model" and runs.fullmatch(c["name"])]
    mine = np.mean([rows[name] for name in models], axis=0)
    groups = np.array([window["group"] for window in told["windows"]])

    def _against(name: str) -> dict[str, Any]:
        paired = compare(mine[None], rows[name], True, groups)
        return {
            "name": name, "mean": float(rows[name].mean()), "change": float(paired.change[0]),
            "low": float(paired.change_low[0]), "high": float(paired.change_high[0]),
            "seeds": [float(rows[model].mean() / rows[name].mean() - 1) for model in models],
        }  # fmt: skip

    known = " (predicted)" if one.info == "hidden" else ""
    allowed = ("hidden", "predicted") if one.info == "hidden" else (one.info,)
    fair = [c["name"] for c in told["contenders"] if c["kind"] == "heuristic" and c["runtime_info"] in allowed]
    found = {
        "data": one.data, "cluster": one.cluster, "info": one.info, "score": score, "trace": told["data"]["trace"],
        "windows": len(mine), "groups": len(np.unique(groups)), "jobs": told["data"]["jobs"],
        "mean": float(mine.mean()), "training": shlex.join(["python", *one.training(score, 0)]),
        "command": told["command"],
        "rival": _against(told["rivals"][score]),
        "hindsight": _against(min(fair, key=lambda name: float(rows[name].mean()))),
        "seeds_baselines": [_against(n if n in rows else f"{n}{known}") for n in SEEDS_BASELINES],
    }  # fmt: skip
    if one.info == "hidden":
        found["predicted_sjf"] = _against("sjf fit (predicted)")
        found["clairvoyant"] = _against("sjf fit (oracle)")
        found["clairvoyant_easy"] = _against("saf easy (oracle)")
    return found


def ship(rows: list[dict[str, Any]]) -> None:
    """Put policies, without their value functions, into models/, with cards: of each kind the best on validation."""
    shipped: dict[str, dict[str, Checkpoint]] = {}
    for one in experiments():
        name = f"real_{one.info}" if one.data == "real" else one.info
        if name not in LIMITS:
            continue
        runs = [load(path) for path in sorted((ROOT / "data/logs" / one.name).glob(f"{one.name}_s?/{BEST}"))]
        if runs:
            best = max(runs, key=lambda checkpoint: float(checkpoint.told["val_gain"]))
            arrays = {name: array for name, array in best.arrays.items() if not name.startswith("vf_")}
            save(ROOT / "models" / one.cluster / f"{name}.npz", arrays, best.told)
            shipped.setdefault(one.cluster, {})[name] = best
            gain = float(best.told["val_gain"])
            tell(f"models/{one.cluster}/{name}.npz: {best.path.parent.name}, gain {gain:+.4f} on validation")
    for cluster, models in shipped.items():
        tell(str(write_card(cluster, models, rows).relative_to(ROOT)))


def main() -> None:
    """Train, judge, and write the page."""
    config = parse(Config, None, str(__doc__))
    work_off(list(trainings(config)), config.processes)
    work_off(list(evaluations(config)), config.processes)
    rows = {row["name"]: row for row in json.loads(NUMBERS.read_text())} if NUMBERS.is_file() else {}
    for one in experiments():
        done = ROOT / one.folder / "results.json"
        told = json.loads(done.read_text()) if done.is_file() else {}
        for score in SCORES if told else ():
            name = f"{one.name} by {score}"
            rows[name] = {"name": name} | summarize(one, score, told)
    with written_whole(NUMBERS) as begun:
        begun.write_text(json.dumps(list(rows.values()), indent=1) + "\n")
    write_page(list(rows.values()))
    tell(f"{len(rows)} rows: docs/results/README.md")
    if config.ship:
        ship(list(rows.values()))


if __name__ == "__main__":
    run(main)
