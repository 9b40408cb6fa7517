"""Lookahead against architecture: trains every pair, judges all on the same windows, and writes the table."""

import dataclasses
import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from berth.commandline import option, parse, run, writable_folder, written_whole
from berth.console import tell
from berth.errors import ConfigError, SimulationError
from envs.observation import LOOKAHEAD_MODES
from eval.commands import Command, run_commands
from eval.config import Config as Evaluation
from eval.paired import compare, mean_intervals
from eval.run import evaluate
from train.checkpoint import LAST
from train.config import ARCHITECTURES

ROOT = Path(__file__).resolve().parent.parent

DESCRIPTION = """Train every lookahead mode with every architecture, and compare them on the same fresh test windows.

  python eval/ablation.py --budget 200000 --seeds 3
  python eval/ablation.py --budget 4000 --architectures kernel,mlp --lookaheads off,cdf --seeds 1   # a quick look

It may be stopped at any time: runs that are done are kept in data/logs/ablation_*, a run that was begun is gone on
with, and the same command does the rest. The table goes to docs/results/ablation.md.
"""


@dataclass(frozen=True)
class Config:
    """What eval/ablation.py takes."""

    budget: int = option(200_000, "decisions that each run trains for")
    seeds: int = option(1, "seeds of every pair")
    lookaheads: tuple[str, ...] = option(tuple(LOOKAHEAD_MODES), "lookahead modes", choices=tuple(LOOKAHEAD_MODES))
    architectures: tuple[str, ...] = option(ARCHITECTURES, "architectures", choices=ARCHITECTURES)
    jobs_per_episode: int = option(400, "jobs in an episode")
    max_queue_size: int = option(50, "slots of the window")
    arrival_mode: str = option("bursty", "how fresh jobs arrive", choices=("poisson", "bursty"))
    preset: str = option("baseline_stable", "shape of the fresh jobs")
    windows: int = option(60, "fresh test windows that all runs play")
    lr: float = option(1e-3, "learning rate")
    processes: int = option(2, "runs that are trained at the same time, on one core each")
    out: str = option(str(ROOT / "docs" / "results"), "where ablation.md and ablation.json go", metavar="DIR")

    def __post_init__(self) -> None:
        """Raise ConfigError for a value that cannot be."""
        for name, low in (("budget", 1), ("seeds", 1), ("windows", 2), ("jobs_per_episode", 1), ("max_queue_size", 1),
                          ("processes", 1)):  # fmt: skip
            if getattr(self, name) < low:
                raise ConfigError(f"{name} {getattr(self, name)}: want a number >= {low}")
        if not self.lookaheads or not self.architectures:
            raise ConfigError("lookaheads and architectures: want at least one of each")


def main(words: Sequence[str] | None = None) -> None:
    """Train what is not trained yet, judge, and write the page."""
    config = parse(Config, words, DESCRIPTION)
    out = writable_folder("--out", config.out)
    pairs = list(product(config.lookaheads, config.architectures, range(config.seeds)))
    runs: dict[tuple[str, str], list[str]] = {}
    commands: list[Command] = []
    for lookahead, architecture, seed in pairs:
        folder, left = training(config, lookahead, architecture, seed)
        runs.setdefault((lookahead, architecture), []).append(str(folder))
        commands += left
    failed = [one for one in run_commands(commands, config.processes) if one.trouble]
    if failed:
        raise SimulationError(f"{failed[0].task.name}: {failed[0].trouble}; the same command does what is left")
    numbers = judge_all(config, [run_ for same in runs.values() for run_ in same])
    write_page(config, runs, numbers, out)


def training(config: Config, lookahead: str, architecture: str, seed: int) -> tuple[Path, list[Command]]:
    """The run of a pair, and the command that trains it, unless that is done; a run that was begun is gone on with."""
    flags = {
        "lookahead_mode": lookahead, "policy_arch": architecture,
        "total_timesteps": config.budget, "epochs": 1_000_000, "jobs_per_episode": config.jobs_per_episode,
        "max_queue_size": config.max_queue_size, "arrival_mode": config.arrival_mode, "preset": config.preset,
        "action_mode": "fit", "lr": config.lr, "rollout_steps": min(config.budget, 10_000), "report_windows": 0,
    }  # fmt: skip
    digest = hashlib.sha256(json.dumps(flags).encode()).hexdigest()[:8]  # other settings are other runs
    name = f"ablation_{lookahead}_{architecture}_{digest}"
    folder = Path("data/logs") / name / f"{name}_s{seed}"
    if (folder / "report.json").is_file():
        return folder, []
    program = [sys.executable, str(ROOT / "train" / "synthetic_train.py")]
    flags |= {"exp_name": name, "seed": seed}
    words = ["--resume_from", str(folder)] if (folder / LAST).is_file() else [f"--{k}={v}" for k, v in flags.items()]
    log = Path("data/logs/ablation") / f"{name}_s{seed}.log"
    return folder, [Command(f"{name} seed {seed}", [*program, *words], str(Path.cwd()), str(log.absolute()))]


def judge_all(config: Config, runs: Sequence[str]) -> dict[str, Any]:
    """All runs and three heuristics on the same fresh windows."""
    evaluation = Evaluation(
        rlmodel=tuple(runs), seq_len=config.jobs_per_episode, windows=config.windows, arrival_mode=config.arrival_mode,
        preset=config.preset, sched_algo=("fcfs@fit", "sjf@fit", "random_feasible"), report=False, replay=False,
        bound=False, out="data/logs/ablation",
    )  # fmt: skip
    return evaluate("synthetic", evaluation, sys.argv[1:])


def write_page(config: Config, runs: dict[tuple[str, str], list[str]], numbers: dict[str, Any], out: Path) -> None:
    """Write ablation.md and ablation.json."""
    score, by_window = numbers["score"], numbers["by_window"]
    groups = np.arange(config.windows)
    means = {pair: np.mean([by_window[Path(one).name][score] for one in same], axis=0) for pair, same in runs.items()}
    fcfs = np.array(by_window["fcfs fit"][score])
    others = {name: np.array(by_window[name][score]) for name in ("fcfs fit", "sjf fit", "random_feasible fit")}
    head = " | ".join(config.architectures)
    lines = [
        "# Lookahead against architecture", "",
        f"Mean {score.replace('_', ' ')} on {config.windows} fresh test windows of {config.jobs_per_episode} jobs "
        f"(preset {config.preset}, {config.arrival_mode} arrivals, synthetic testbed, action mode fit, run times "
        f"known), the same for all; {config.seeds} seed(s), {config.budget:,} decisions of training each; 95 % "
        "intervals over windows. Less is better.", "",
        f"    python eval/ablation.py{_flags(config)}", "",
        f"| lookahead | {head} |", f"|---|{'--:|' * len(config.architectures)}",
    ]  # fmt: skip
    for lookahead in config.lookaheads:
        cells = [_cell(means[lookahead, architecture], groups) for architecture in config.architectures]
        lines.append(f"| {lookahead} | {' | '.join(cells)} |")
    lines += ["", "| heuristic | on the same windows |", "|---|--:|"]
    lines += [f"| {name} | {_cell(values, groups)} |" for name, values in others.items()]
    lines += ["", "Change of the mean against fcfs fit, in pairs:", "", f"| lookahead | {head} |",
              f"|---|{'--:|' * len(config.architectures)}"]  # fmt: skip
    for lookahead in config.lookaheads:
        cells = []
        for architecture in config.architectures:
            p = compare(means[lookahead, architecture][None], fcfs, True, groups)
            cells.append(f"{100 * p.change[0]:+.1f} % [{100 * p.change_low[0]:+.1f}, {100 * p.change_high[0]:+.1f}]")
        lines.append(f"| {lookahead} | {' | '.join(cells)} |")
    lines += ["", "The intervals are over windows, not over training: " + (
        "with one seed a cell, neighbours may differ by the luck of a run." if config.seeds == 1 else
        f"each cell is the mean of {config.seeds} runs, whose spread ablation.json has.")]  # fmt: skip
    with written_whole(out / "ablation.md") as begun:
        begun.write_text("\n".join(lines) + "\n")
    told: dict[str, Any] = {
        f"{a} {b}": [by_window[Path(one).name][score] for one in same] for (a, b), same in runs.items()
    }
    told |= {name: values.tolist() for name, values in others.items()}
    names = {f"{a} {b}": [Path(one).name for one in same] for (a, b), same in runs.items()}
    with written_whole(out / "ablation.json") as begun:
        begun.write_text(json.dumps({"score": score, "windows": told, "runs": names}, indent=1) + "\n")
    tell(f"written: {out / 'ablation.md'}, {out / 'ablation.json'}")


def _flags(config: Config) -> str:
    """The flags that are not as they are by default."""
    words = ""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name not in ("out", "processes") and value != field.default:
            words += f" --{field.name} {','.join(value) if isinstance(value, tuple) else value}"
    return words


def _cell(values: np.ndarray, groups: np.ndarray) -> str:
    low, high = mean_intervals(values[None], groups)
    return f"{values.mean():.3f} [{low[0]:.3f}, {high[0]:.3f}]"


if __name__ == "__main__":
    run(main)
