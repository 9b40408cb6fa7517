"""What an evaluation can be told: one frozen dataclass, whose gaps the model's own settings fill."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from berth.commandline import option, parse, same
from berth.errors import ConfigError
from envs.knowledge import CHOICES
from envs.options import Options
from envs.policies import POLICIES
from envs.reward import find_score
from envs.sim.simulator import DISCIPLINES
from train.checkpoint import BEST, LAST, Checkpoint, find, load

ROOT = Path(__file__).resolve().parent.parent

NO_MODEL = "none"

EXAMPLES = """
examples:
  python eval/{cluster}_eval.py
  python eval/{cluster}_eval.py --rlmodel data/logs/{cluster}/{cluster}_s0 --len 256 --iter 10
  python eval/{cluster}_eval.py --workload another_trace.csv --sched_algo fcfs,sjf,saf --discipline strict,easy,fit
  python eval/{cluster}_eval.py --runtime_info hidden --sched_algo all,sjf@fit@oracle
  python eval/{cluster}_eval.py --rlmodel none --sched_algo all,random_feasible --job_score_type wait
docs/evaluation.md says what every number means.
"""


@dataclass(frozen=True)
class Config:
    """What the evaluation programs take."""

    rlmodel: tuple[str, ...] = option(
        (), f"runs (their {BEST}) or checkpoints, with commas; none = heuristics alone; default: the one in models/",
        metavar="RUN,...",
    )  # fmt: skip
    workload: str = same(Options, "workload")
    seq_len: int = same(Options, "seq_len", text="jobs in a window")
    windows: int = option(10, "how many windows")
    seed: int = option(1, "seed of the windows, of random priorities and of what is sampled")
    sched_algo: tuple[str, ...] = option(
        ("all",),
        "heuristics, the first is the baseline: all, or a list with commas of POLICY, POLICY@DISCIPLINE or "
        f"POLICY@DISCIPLINE@RUNTIME_INFO, random_feasible; policies: {', '.join(POLICIES)}, 0 to 15, module:function",
    )
    discipline: tuple[str, ...] = option(
        (), f"all, or a list with commas of: {', '.join(DISCIPLINES)}; default: strict,easy,fit", metavar="A,B,..."
    )
    score_type: str = same(
        Options, "score_type", default="", text="what is scored; default: what the model was trained for"
    )
    runtime_info: str = option(
        "", f"what is known of run times: {CHOICES}; where they are hidden, heuristics get predictions; default: as "
        "the model was trained, else oracle",
    )  # fmt: skip
    backfil: bool | None = option(
        None, "models that reserve let jobs slip past by the EASY rule; heuristics: easy (1) or strict (0)"
    )
    sample: bool = option(False, "draw the model's actions by their probabilities, instead of taking the likeliest")
    split: str = same(
        Options, "split", default="",
        text="which part of the trace; default: test, or all of a trace that the model never saw",
    )  # fmt: skip
    train_share: float | None = same(Options, "train_share", default=None)
    validation_share: float | None = same(Options, "validation_share", default=None)
    batch_job_slice: int = same(Options, "batch_job_slice")
    preset: str = same(Options, "preset", text="make fresh jobs for every window, of this shape")
    arrival_mode: str = same(Options, "arrival_mode", text="make fresh jobs for every window, which arrive like this")
    topology: str = same(Options, "topology")
    load: float | None = same(Options, "load")
    assign_pools: int | None = same(Options, "assign_pools")
    warm_start: bool = same(Options, "warm_start", text="begin with running jobs and a backlog, not an idle cluster")
    warm_rule: str = same(
        Options, "warm_rule", default="sjf@easy", text="who has led the cluster until a window begins"
    )
    score_backlog: bool = same(Options, "score_backlog", default=True)
    allocation: str = same(Options, "allocation")
    tiers: str = same(Options, "tiers")
    use_milp_allocation: bool | None = same(Options, "use_milp_allocation")
    milp_time_limit: float | None = same(Options, "milp_time_limit")
    replay: bool = option(True, "play the whole split as well, not only windows of it")
    bound: bool = option(True, "find out how good any schedule could be")
    report: bool = option(True, "draw pictures, and write report.html")
    job_files: bool = option(True, "write what became of every job (jobs.csv.gz, replay_jobs.csv.gz)")
    out: str = option("", "where results go; default: new_exp_figure/CLUSTER", metavar="DIR")
    shown: int = option(12, "contenders in the table on the screen and in the pictures; all are in the files")

    def __post_init__(self) -> None:
        """Raise ConfigError for a value that cannot be."""
        for name, low, high in (("windows", 1, 100_000), ("seed", 0, 2**31 - 1), ("shown", 2, 50)):
            if not low <= getattr(self, name) <= high:
                raise ConfigError(f"{name} {getattr(self, name)}: want a number from {low} to {high:,}")
        if self.score_type:
            find_score(self.score_type)
        if not self.sched_algo:
            raise ConfigError("sched_algo: want at least one heuristic to compare with")
        if self.warm_rule == "":
            raise ConfigError("warm_rule: want POLICY@DISCIPLINE, as in sjf@easy")

    @property
    def disciplines(self) -> tuple[str, ...]:
        """The disciplines of the heuristics that name none."""
        if self.discipline == ("all",):
            return tuple(DISCIPLINES)
        if not self.discipline and self.backfil is not None:
            return ("easy",) if self.backfil else ("strict",)
        return tuple(dict.fromkeys(self.discipline)) or ("strict", "easy", "fit")

    def environment(self, cluster: str, settings: dict[str, Any]) -> dict[str, Any]:
        """The options of the windows that all contenders play; `settings` of a model fill the gaps."""
        names = {field.name for field in dataclasses.fields(Options)} & {f.name for f in dataclasses.fields(self)}
        names -= {"sched_algo", "backfil"}
        mine = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        for name in ("score_type", "runtime_info", "train_share", "validation_share"):
            if not mine.get(name) and settings.get(name):
                mine[name] = settings[name]
        known = {"cluster": cluster, "workload_seed": self.seed} | {k: v for k, v in mine.items() if v != ""}
        if not self.warm_start:
            known.pop("warm_rule")
        return known


def read_config(cluster: str, argv: Sequence[str] | None = None) -> Config:
    """The settings of an evaluation from a command line."""
    text = f"Compare trained models with heuristics on the {cluster} cluster.\n{EXAMPLES.format(cluster=cluster)}"
    return parse(Config, argv, text)


def find_models(config: Config, cluster: str) -> list[tuple[str, Checkpoint]]:
    """The checkpoints that are meant, with names for tables; raises ConfigError that says what was looked for."""
    words = config.rlmodel
    if NO_MODEL in words:
        if len(words) > 1:
            raise ConfigError(f"rlmodel {','.join(words)}: none, and models; want one or the other")
        return []
    if not words:
        return [_shipped(config, cluster)]
    found: dict[str, Checkpoint] = {}
    for word in words:
        path = find(word, "--rlmodel", (BEST, LAST))
        name = path.parent.name if path.name in (BEST, LAST) else path.stem
        if any(path.samefile(other.path) for other in found.values()):
            raise ConfigError(f"rlmodel {word}: named twice; want every model once")
        name = name or path.stem
        found[str(path) if name in found else name] = load(path)
    return list(found.items())


def _shipped(config: Config, cluster: str) -> tuple[str, Checkpoint]:
    """The model that comes with Berth for a cluster, for run times that are known, or that are not."""
    regime = "hidden" if config.runtime_info in ("hidden", "predicted") else "oracle"
    path = ROOT / "models" / cluster / f"{regime}.npz"
    if not path.is_file():
        raise ConfigError(
            f"rlmodel: looked for {path}, and there is no such model; want --rlmodel RUN (a folder with {BEST} or "
            f"{LAST}, as train/{cluster}_train.py writes it), a checkpoint, or --rlmodel none"
        )
    return f"{cluster} {regime}", load(path)
