"""The judging of policies that name hosts: the same episodes for all, paired intervals, tables and a picture."""

import csv
import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from berth.commandline import given, option, same, writable_folder, written_whole
from berth.console import show_rows, tell
from berth.errors import ConfigError
from envs.host_courses import METRICS, Courses
from envs.host_env import make_host_options
from envs.host_jobs import make_episode, notes
from envs.host_options import BASELINES, HostOptions
from eval.paired import compare
from train.checkpoint import BEST, LAST, Checkpoint, find, load
from train.config import from_settings
from train.host_config import SUBJECT, TEST_SEEDS, HostConfig

EXAMPLES = """
examples:
  python eval/lsf_eval.py --rlmodel data/logs/trial/trial_s0
  python eval/lsf_eval.py --rlmodel data/logs/trial/trial_s0,data/logs/trial/trial_s1 --num-hosts 100 --episodes 40
  python eval/lsf_eval.py --extract data/lsf_test
Whatever the flags do not say is as the model was trained. docs/hosts.md explains the metrics.
"""


@dataclass(frozen=True)
class Config(HostOptions):
    """What eval/lsf_eval.py takes."""

    split: str = same(HostOptions, "split", default="test")
    rlmodel: tuple[str, ...] = option((), f"runs (their {BEST}) or checkpoints, with commas; none: baselines alone")
    episodes: int = option(
        3, f"episodes: the seeds {', '.join(map(str, TEST_SEEDS))} and, if there are more, those that follow"
    )
    out: str = option("", "write results.csv, results.json and results.png there", metavar="DIR")
    extract: str = option("", "write the hosts and jobs of the episodes there as CSV, and play nothing", metavar="DIR")

    def __post_init__(self) -> None:
        """Raise ConfigError for a value that cannot be."""
        super().__post_init__()
        if not 1 <= self.episodes <= 10_000:
            raise ConfigError(f"episodes {self.episodes}: want a number from 1 to 10,000")

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the episodes."""
        return tuple(range(TEST_SEEDS[0], TEST_SEEDS[0] + self.episodes))

    @property
    def environment(self) -> dict[str, Any]:
        """The environment's options."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(HostOptions)}


def main(argv: Sequence[str] | None = None) -> None:
    """Judge as the command line says."""
    flags = given(Config, argv, f"Compare trained policies that name hosts with baselines.\n{EXAMPLES}")
    words = [word for word in flags.get("rlmodel", ()) if word != "none"]
    models = [_model(word) for word in words]
    known = models[0][1].environment("test") if models else {}
    config = Config(**(known | {"split": "test"} | flags | {"rlmodel": tuple(words)}))
    for note in notes(make_host_options(**config.environment)):
        tell(note)
    if config.extract:
        extract(config)
        return
    folder = writable_folder("--out", config.out) if config.out else None
    rows = judge(config, models)
    show(config, rows)
    if folder is not None:
        write(config, rows, folder)


def _model(word: str) -> tuple[Checkpoint, HostConfig]:
    """A checkpoint of host selection, and how it was trained; raises ConfigError for another."""
    checkpoint = load(find(word, "--rlmodel", (BEST, LAST)))
    settings = checkpoint.told["settings"]
    if "num_hosts" not in settings:
        raise ConfigError(
            f"--rlmodel {word}: chooses jobs from the queue of {settings.get('cluster')}, not hosts; want a run of "
            f"train/{SUBJECT}_train.py"
        )
    return checkpoint, HostConfig(**from_settings(HostConfig, settings, str(checkpoint.path)))


def judge(config: Config, models: Sequence[tuple[Checkpoint, HostConfig]]) -> dict[str, list[dict[str, float]]]:
    """The metrics of every episode, by who decides: models by their runs' names, then the baselines."""
    rows: dict[str, list[dict[str, float]]] = {}
    for checkpoint, trained in models:
        name = checkpoint.path.parent.name or str(checkpoint.path)
        rows[name if name not in rows else str(checkpoint.path)] = _play(config, checkpoint, trained)
    courses = Courses(make_host_options(**config.environment), 1)
    return rows | {who: [courses.judge(0, who, seed) for seed in config.seeds] for who in BASELINES}


def _play(config: Config, checkpoint: Checkpoint, trained: HostConfig) -> list[dict[str, float]]:
    """The metrics of a model's episodes."""
    from train.quiet import load_tensorflow

    load_tensorflow(trained.seed)
    from train.design import Shape
    from train.host_run import make_host_learner, play_seeds
    from train.training import start_from

    learner = make_host_learner(trained, Shape.of_hosts())
    start_from(learner, checkpoint)
    return play_seeds(config.environment, learner.best, config.seeds)


def show(config: Config, rows: dict[str, list[dict[str, float]]]) -> None:
    """Print means, and what changes against the baseline, with 95 % intervals over the episodes."""
    load = "its own" if config.load is None and config.workload else f"{1.0 if config.load is None else config.load:g}"
    tell(f"{config.num_hosts} hosts, load {load}, {config.episodes} episodes from seed {config.seeds[0]} on")
    table = []
    for who, its in rows.items():
        words = [f"{np.mean([row['completion_rate'] for row in its]):.4f}"]
        for name in ("makespan", "queue_wait", "load_imbalance"):
            mean = float(np.mean([row[name] for row in its]))
            words.append(f"{mean:,.4f}" if name == "load_imbalance" else f"{mean:,.1f}")
            words.append("" if who == config.baseline else change(rows, who, config.baseline, name))
        use = (f"{np.mean([row[name] for row in its]):.4f}" for name in ("core_utilization", "memory_utilization"))
        table.append((who, *words, *use))
    against = f"against {config.baseline} [95 %]"
    show_rows(
        "means over the episodes; less is better of makespan, wait and imbalance",
        ("who decides", "completed", "makespan, s", against, "queue wait, s", against, "imbalance", against, "core use",
         "memory use"),
        table,
    )  # fmt: skip


def change(rows: dict[str, list[dict[str, float]]], who: str, baseline: str, name: str) -> str:
    """By how much a metric's mean differs from the baseline's, in percent, with its interval over episodes."""
    mine, base = (np.array([row[name] for row in rows[one]]) for one in (who, baseline))
    if not base.any():
        return "none waits" if name == "queue_wait" else "-"
    paired = compare(mine[None], base, True, np.arange(len(base)))
    low, high = 100 * float(paired.change_low[0]), 100 * float(paired.change_high[0])
    return f"{100 * float(paired.change[0]):+.1f} % [{low:+.1f}, {high:+.1f}]"


def write(config: Config, rows: dict[str, list[dict[str, float]]], folder: Path) -> None:
    """Write all episodes' metrics, the settings, and a picture."""
    with written_whole(folder / "results.csv") as begun, begun.open("w", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["who", "seed", *METRICS])
        for who, its in rows.items():
            table.writerows([who, seed, *row.values()] for seed, row in zip(config.seeds, its, strict=True))
    told = {"settings": dataclasses.asdict(config), "means": {
        who: {name: float(np.mean([row[name] for row in its])) for name in METRICS} for who, its in rows.items()
    }}  # fmt: skip
    with written_whole(folder / "results.json") as begun:
        begun.write_text(json.dumps(told, indent=1) + "\n")
    _draw(config, rows, folder / "results.png")
    tell(f"{folder}: results.csv, results.json, results.png")


def _draw(config: Config, rows: dict[str, list[dict[str, float]]], path: Path) -> None:
    """Draw waits against imbalance: down and to the left is better."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 5), layout="constrained")
    for who, its in rows.items():
        x, y = (np.array([row[name] for row in its]) for name in ("load_imbalance", "queue_wait"))
        marker = "s" if who in BASELINES else "o"
        points = axes.scatter(x, y, s=14, alpha=0.35, marker=marker)
        axes.scatter(x.mean(), y.mean(), s=90, marker=marker, label=who, color=points.get_facecolor()[0], alpha=1.0)
    axes.set_xlabel("imbalance: variance of the hosts' core use")
    axes.set_ylabel("mean queue wait, s")
    axes.set_title(f"{config.num_hosts} hosts; each dot is an episode, each large one a mean")
    axes.legend()
    with written_whole(path) as begun:
        figure.savefig(begun, dpi=130, format="png")
    pyplot.close(figure)


def extract(config: Config) -> None:
    """Write the hosts and the jobs of every episode, and the options that made them."""
    folder = writable_folder("--extract", config.extract)
    options = make_host_options(**config.environment)
    for seed in config.seeds:
        episode = make_episode(options, seed)
        for what, columns in (("hosts", ("cores", "memory")), ("jobs", ("submit", "run_time", "cores", "memory"))):
            with written_whole(folder / f"{what}_{seed}.csv") as begun, begun.open("w", newline="") as out:
                table = csv.writer(out, lineterminator="\n")
                table.writerow([what[:-1], *columns])
                rows = getattr(episode, what)
                table.writerows([i, *(row[name].item() for name in columns)] for i, row in enumerate(rows))
    with written_whole(folder / "options.json") as begun:
        begun.write_text(json.dumps(dataclasses.asdict(options), indent=1) + "\n")
    tell(f"{folder}: hosts and jobs of the seeds {', '.join(map(str, config.seeds))}, and options.json")
