"""Run a queue of jobs by a policy: really, as processes of stress-ng, or simulated."""

import dataclasses
import signal
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # this folder is first on the path then, where `import orchestrator` finds this script
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from berth.aliases import ALIASES as ALSO
from berth.commandline import given, nearest, option, run, writable_folder
from berth.console import tell
from berth.errors import ConfigError
from envs.policies import ALIASES, POLICIES, find_policy
from envs.workload import on_one_node
from eval.ledger import read_ledger
from orchestrator.backends import BACKENDS, find_backend, host_cores
from orchestrator.bell import sigterm_as_ctrl_c
from orchestrator.disciplines import DISCIPLINES
from orchestrator.metrics import Metrics, check_free, metrics_file
from orchestrator.plans import Plan, find_plans, is_run_name
from orchestrator.producer import produce, replayed
from orchestrator.session import Session
from orchestrator.starting import Chooser, Heuristic, trained

MODEL = "models/job_policy.pth"
"""Where --rl-train leaves a policy, unless told otherwise."""

LEARNED = "rl"

EXAMPLES = f"""
examples:
  python orchestrator/orchestrator.py --policy fifo --generate-jobs 10 --simulate --output-dir artifacts
  python orchestrator/orchestrator.py --policy sjf --generate-jobs 20 --p-max 5           # real processes (stress-ng)
  python orchestrator/orchestrator.py --policy rl --rl-train --rl-episodes 200 --generate-jobs 50 --simulate
  python orchestrator/orchestrator.py --policy rl --rl-model-path {MODEL} --generate-jobs 50 --simulate
  python orchestrator/orchestrator.py --workload trace.csv --speedup 60 --policy sjf      # an hour in a minute
  python orchestrator/orchestrator.py --resume                                            # what was stopped
docs/orchestrator.md explains the metrics, the backends, the reward, and what happens when something goes wrong.
"""


@dataclass(frozen=True)
class Config:
    """What orchestrator/orchestrator.py takes."""

    policy: str = option(
        "fifo", f"who goes first: fifo, rl (trained), {', '.join(POLICIES)}; numbers 0-15; module:function"
    )
    discipline: str = option(
        "", "how the queue is served; default: strict; a trained policy has its own", choices=tuple(DISCIPLINES)
    )
    generate_jobs: int = option(10, "how many jobs to make")
    n_min: int = option(1, "cores of a job, at least")
    n_max: int | None = option(None, "cores of a job, at most; default: 4, or all cores where there are fewer")
    p_min: int = option(1, "seconds that a job runs, at least")
    p_max: int = option(10, "seconds that a job runs, at most")
    workload: str = option("", "run the jobs of this trace instead, as they arrive; GPUs as cores", metavar="FILE")
    batch_job_slice: int = option(0, "only the first jobs of --workload, 0 = all")
    speedup: float = option(1.0, "seconds of the workload that pass in a second")
    simulate: bool = option(False, "jobs only take their time, and time passes at once")
    realtime: bool = option(False, "simulated jobs sleep as long as they run")
    backend: str = option(
        "", "who runs jobs; default: stress_ng where it is installed, else simulated", choices=tuple(BACKENDS)
    )
    cores: int = option(0, "cores that jobs share; 0: all of this host")
    patience: float = option(10.0, "seconds past its time after which a job counts as hung and is killed", metavar="S")
    output_dir: str = option("artifacts", "where metrics_*.jsonl and metrics_*.csv go", metavar="PATH")
    run: str = option("", "name of the run; default: when it began, and the policy")
    resume: bool = option(False, "go on with the last run in --output-dir that has not ended, or with --run")
    seed: int = option(0, "seed of the jobs, of the policy random, and of training")
    window: int = option(7, "jobs of the queue that a policy in training sees")
    rl_train: bool = option(False, "train a policy first")
    rl_episodes: int = option(200, "episodes of training")
    rl_model_path: str = option("", f"file of the trained policy; default with --rl-train: {MODEL}", metavar="PATH")
    rl_simulate: bool = option(True, "train on simulated jobs; there is no other way")
    rl_gamma: float = option(0.99, "discount from decision to decision")
    rl_lr: float = option(1e-3, "learning rate")
    rl_residual: str = option("sjf", "what the policy in training begins as; none: as nobody", metavar="POLICY")

    def __post_init__(self) -> None:
        """Raise ConfigError for a value that cannot be, or settings that do not go together."""
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                flag = " or --".join((name, *ALSO[name])) if name in ALSO else name
                raise ConfigError(f"--{flag} {value:g}: want a number from {low:g} to {high:g}")
        for low_name, high_name in (("n_min", "n_max"), ("p_min", "p_max")):
            low, high = getattr(self, low_name), getattr(self, high_name)
            if high is not None and low > high:
                raise ConfigError(f"--{low_name} {low} and --{high_name} {high}: want the first to be no more")
        if self.policy == LEARNED and self.discipline:
            raise ConfigError(f"--discipline {self.discipline}: a trained policy has its own; leave it out")
        if self.policy != LEARNED and self.rl_train:
            raise ConfigError(f"--rl_train trains a policy that --policy {self.policy} does not use; want --policy rl")
        if self.policy == LEARNED and not self.rl_train and not self.rl_model_path and not self.resume:
            raise ConfigError(f"--policy rl: want --rl-model-path FILE (as {MODEL}), or --rl-train to train one")
        if self.policy != LEARNED and self.rl_model_path:
            raise ConfigError(f"--rl_model_path does nothing with --policy {self.policy}; want --policy rl")
        if not self.rl_simulate:
            raise ConfigError("--rl_simulate 0: training needs thousands of jobs, which are simulated; leave it out")
        if self.batch_job_slice and not self.workload:
            raise ConfigError("--batch_job_slice does nothing without --workload; want --generate_jobs")
        if not is_run_name(self.run):
            raise ConfigError(f"--run {self.run!r}: want letters, digits, . - _ and no dot first, at most 100 bytes")
        if self.policy != LEARNED:
            _known_policy(self.policy)

    @property
    def all_cores(self) -> int:
        """The cores that jobs share."""
        return self.cores or host_cores()

    @property
    def most_cores(self) -> int:
        """The cores of a job, at most."""
        return min(4, self.all_cores) if self.n_max is None else self.n_max


_RANGES: dict[str, tuple[float, float]] = {
    "generate_jobs": (1, 10**6), "n_min": (1, 10**4), "n_max": (1, 10**4), "p_min": (1, 10**6), "p_max": (1, 10**6),
    "batch_job_slice": (0, 10**9), "speedup": (1e-6, 1e9), "cores": (0, 10**4), "patience": (0.1, 1e6),
    "seed": (0, 2**31 - 1), "window": (1, 10**4), "rl_episodes": (1, 10**6), "rl_gamma": (0, 1), "rl_lr": (1e-9, 1),
}  # fmt: skip


def _known_policy(word: str) -> None:
    """Raise ConfigError for a policy that is not known, and name the nearest."""
    if ":" in word or word.isdecimal():
        find_policy(word)
    elif word not in (*POLICIES, *ALIASES):
        raise ConfigError(f"--policy {word}: {nearest(word, [LEARNED, *ALIASES, *POLICIES])}; or module:function")


def planned(config: Config, folder: Path) -> Plan:
    """The run that settings ask for; raises ConfigError where its jobs cannot run here."""
    cores = config.all_cores
    if config.workload:
        workload = replayed(config.workload, cores, config.batch_job_slice)
    else:
        if config.most_cores > cores or config.n_min > cores:
            raise ConfigError(
                f"--n_min {config.n_min} and --n_max {config.most_cores}: the host has {cores} cores, on which such "
                "jobs can never run; want fewer, or --simulate with more --cores"
            )
        if config.n_min > config.most_cores:
            raise ConfigError(f"--n_min {config.n_min}: jobs have {config.most_cores} cores at most; want --n_max too")
        made = produce(
            config.generate_jobs, (config.n_min, config.most_cores), (config.p_min, config.p_max), config.seed
        )
        workload = on_one_node(made, cores)
    for note in workload.notes:
        tell(f"note: {note}")
    began = time.time()
    if config.run:
        check_free(folder, config.run)  # early: nobody wants to train a policy first
    return Plan(config.run or _name(began, config.policy), {}, began, cores, workload)


def _name(began: float, policy: str) -> str:
    """What a run is called that was given no name; where another is called so, a number is added later."""
    word = "".join(c for c in policy.rpartition(":")[2] if c.isalnum() or c in "_-")
    return f"{datetime.fromtimestamp(began, timezone.utc):%Y%m%dT%H%M%S}_{word[:20]}"


def gone_on_with(flags: dict[str, Any], folder: Path) -> Plan | None:
    """The run that --resume means, as its own settings have it; None where all have ended."""
    for plan in find_plans(folder, flags.get("run", "")):
        metrics = metrics_file(folder, plan.run)
        left = len(plan.workload) - (len(read_ledger(metrics).entries) if metrics.exists() else 0)
        if not left:
            continue
        for name, value in flags.items():
            its = plan.settings.get(name, value)
            if name not in ("resume", "run", "output_dir", "rl_train") and not _same(name, its, value):
                raise ConfigError(f"--{name} {value}: run {plan.run} has {its}; with --resume it keeps its own")
        tell(f"going on with run {plan.run}: {left:,} of {len(plan.workload):,} jobs have not ended")
        return plan.again()
    tell(f"nothing to go on with: all jobs of all runs in {folder} have ended")
    return None


def _same(name: str, its: Any, value: Any) -> bool:
    """Whether a run's setting is what was given; a policy may have several names."""
    if name == "policy" and LEARNED not in (its, value) and ":" not in f"{its}{value}":
        return find_policy(its).name == find_policy(value).name
    return bool(its == value)


def _settled(plan: Plan, folder: Path) -> Config:
    """The settings of a run that is gone on with; raises ConfigError where its file has others."""
    try:
        return Config(**(plan.settings | {"resume": True, "output_dir": str(folder)}))
    except TypeError as trouble:
        raise ConfigError(f"{plan.file(folder)}: settings of another version, or damaged ({trouble})") from None


def carry_out(config: Config, plan: Plan, folder: Path) -> int:
    """Run a plan's jobs; returns the exit status: 0, 1 where jobs failed, 128 and the signal that stopped it."""
    backend, note = find_backend(config.backend, config.simulate)
    if note:
        tell(f"note: {note}")
    _check_backend(config, backend, plan)
    model = config.rl_model_path
    if config.rl_train and not plan.session:
        with sigterm_as_ctrl_c():
            from orchestrator.learning import learn

            model = learn(config, plan.cores, model or MODEL)
    chooser = find_chooser(config, model, plan.cores)
    if plan.digest and plan.digest != chooser.digest:
        raise ConfigError(
            f"--rl-model-path {model}: holds another policy than when run {plan.run} began; want the file as it was, "
            "or a new run"
        )
    settings = dataclasses.asdict(config) | {
        "rl_train": False, "rl_model_path": model, "backend": backend, "resume": False, "run": "",
    }  # fmt: skip
    plan = dataclasses.replace(plan, settings=settings, digest=chooser.digest)
    session = Session(plan, chooser, backend, folder)
    named = bool(config.run)
    with Metrics(folder, plan.run) if plan.session else Metrics.claim(folder, plan.run, not named) as metrics:
        stopped = session.go(metrics)
        session.report(metrics)
    if stopped:
        print(f"stopped by {signal.Signals(stopped).name}; --resume goes on", file=sys.stderr)
        return 128 + stopped
    return 0 if all(entry.success for entry in metrics.entries) else 1


def find_chooser(config: Config, model: str, cores: int) -> Chooser:
    """Who chooses."""
    if config.policy == LEARNED:
        chooser = trained(model, cores)
        if chooser.window != config.window:
            tell(f"note: the policy sees {chooser.window} jobs, as in training; --rl-window-size changes nothing now")
        return chooser
    return Heuristic(config.policy, config.discipline or "strict", config.seed)


def _check_backend(config: Config, backend: str, plan: Plan) -> None:
    """Raise ConfigError, or tell, where settings do not go with the backend."""
    if backend == "simulated":
        if config.speedup != 1.0 and not config.realtime:
            tell(f"note: --speedup {config.speedup:g}: virtual time takes none; only the seconds of waits are divided")
        return
    if config.realtime:
        raise ConfigError(f"--realtime does nothing with backend {backend}, whose time is real; want --simulate too")
    if plan.cores > host_cores():
        raise ConfigError(f"--cores {plan.cores}: the host has {host_cores()}; want no more, or --simulate")
    short = int(np.count_nonzero(plan.workload.trace.run_time / config.speedup < 1.0))
    if short:
        tell(
            f"note: {short:,} of {len(plan.workload):,} jobs run for less than a second; starting a process takes a "
            "noticeable part of that"
        )


def main() -> None:
    """Plan a run, or find the one to go on with, and carry it out."""
    flags = given(Config, description=f"{__doc__}\n{EXAMPLES}")
    config = Config(**flags)
    folder = Path(config.output_dir)
    if not config.resume or folder.exists():  # --resume makes none: there would be nothing in it
        folder = writable_folder("--output-dir", config.output_dir)
    if config.resume:
        plan = gone_on_with(flags, folder)
        if plan is None:
            return
        config = _settled(plan, folder)
    else:
        plan = planned(config, folder)
    status = carry_out(config, plan, folder)
    if status:
        sys.exit(status)


if __name__ == "__main__":
    run(main)
