"""What a training run can be told: one frozen dataclass, from flags, a file, or the run that is gone on with."""

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from berth.commandline import given, holds_numbers, nearest, option, same
from berth.errors import ConfigError
from envs.options import Options
from envs.policies import find_policy
from train.schedules import SCHEDULES

ARCHITECTURES = ("kernel", "mlp", "attn", "cross_attn")
"""The networks of train/networks.py, which takes long to import."""

CLONE_LOSSES = ("action", "log_key")
"""What can be learned of a teacher."""

RUNS = "data/logs"

EXAMPLES = """
examples:
  python train/philly_train.py --epochs 10
  python train/helios_train.py --sched_algo sjf --action_mode fit --runtime_info predicted --policy_arch attn
  python train/philly_train.py --resume_from data/logs/philly/philly_s0 --epochs 20
  python train/synthetic_train.py --preset baseline_stable --arrival_mode bursty --total_timesteps 200000
Dashes and underscores are both taken. docs/ppo.md explains every setting and every number that is logged.
"""


@dataclass(frozen=True)
class Learning(ABC):
    """What every training program takes, whatever is learned."""

    epochs: int = option(10, "epochs in all, those of a run that is gone on with included")
    trajs: int = option(100, "episodes in an epoch")
    rollout_steps: int = option(0, "decisions in an epoch instead of whole episodes (--trajs), 0 = whole episodes")
    total_timesteps: int = option(0, "end after the epoch that reaches so many decisions, 0 = never")
    seed: int = option(0, "seed of weights, windows, actions and minibatches")
    num_envs: int = option(64, "environments played at once")
    workers: int = option(0, "processes of Ray that play, 0 = this process, or as many as --ray-address has cores")
    ray_address: str = option("", "let workers play on the Ray cluster there: HOST:PORT, or auto", metavar="ADDR")
    share: int = option(
        32, "with workers: environments that play a share of an epoch; what comes out depends on it, not on who plays"
    )
    exp_name: str = option("", f"name of the experiment, a folder in {RUNS}/; default: the cluster's name")
    config: str = option("", "read settings from a file (config.json of a run); flags go before it", metavar="FILE")
    pre_trained: bool = option(False, "begin with the weights of --trained_model")
    trained_model: str = option("", "a run (its last checkpoint) or a checkpoint to take weights from", metavar="RUN")
    resume_from: str = option("", "go on with a run, exactly where it stopped", metavar="RUN")
    hidden: tuple[str, ...] = option(("32", "16", "8"), "widths of the layers that judge a job", metavar="N,N,...")
    lr: float | None = option(None, "learning rate of policy and value function; --pi_lr and --vf_lr go before it")
    pi_lr: float | None = option(None, "learning rate of the policy; default: 5e-3")
    vf_lr: float | None = option(None, "learning rate of the value function; default: 5e-3")
    lr_schedule: str = option("constant", "how learning rates go on", choices=tuple(SCHEDULES))
    lr_warmup_steps: int = option(5, "epochs in which warmup_cosine rises")
    lr_decay_epochs: int = option(
        100, "epochs over which a schedule runs, whatever --epochs is, so that a run can be gone on with"
    )
    gamma: float = option(1.0, "discount from decision to decision")
    lam: float = option(0.97, "lambda of generalised advantage estimation")
    clip_ratio: float = option(0.2, "how far the policy may move in an epoch before it earns no more")
    target_kl: float = option(0.015, "stop an epoch's update where the policy has moved further than 1.5 times this")
    train_iters: int = option(3, "passes over the decisions of an epoch")
    minibatch: int = option(1024, "decisions in a minibatch")
    accumulate: int = option(1, "minibatches whose gradients make one step")
    ent_coef: float = option(0.0, "weight of the entropy bonus")
    vf_coef: float = option(0.5, "weight of the value loss where gradients are clipped together")
    max_grad_norm: float = option(
        1.0, "clip the gradient of policy and value function together to this norm, 0 = never"
    )
    normalize_advantages: bool = option(True, "give advantages mean 0 and deviation 1")
    normalize_values: bool = option(True, "give returns mean 0 and deviation 1, as far as they are known")
    exploration_noise: float = option(0.0, "share of decisions taken evenly among the valid ones, at the first epoch")
    exploration_decay: float = option(0.9, "by what that share is multiplied after every epoch")
    exploration_min: float = option(0.0, "below which it does not fall")
    val_every: int = option(2, "epochs between looks at the validation windows")
    val_windows: int = option(32, "windows of the validation split that pick the best checkpoint")
    early_stopping_patience: int = option(0, "stop after so many looks without improvement, 0 = never")
    early_stopping_threshold: float = option(0.001, "how much more gain is an improvement")
    save_freq: int = option(1, "epochs between checkpoints `last`")

    def __post_init__(self) -> None:
        """Raise ConfigError for a value that cannot be, or settings that do not go together."""
        parent = getattr(super(), "__post_init__", None)
        if parent is not None:
            parent()
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name, None)
            if value is not None and not low <= value <= high:
                raise ConfigError(f"{name} {value:g}: want a number from {low:g} to {high:g}")
        if self.pre_trained and not self.trained_model:
            raise ConfigError("pre_trained 1 needs weights: want --trained_model RUN")
        if self.trained_model and not self.pre_trained:
            raise ConfigError(f"trained_model {self.trained_model} does nothing without --pre_trained 1")
        if self.resume_from and self.config:
            raise ConfigError(f"config {self.config}: a run that is gone on with has its own settings; leave it out")
        if self.rollout_steps and self.trajs != _default(type(self), "trajs"):
            raise ConfigError("trajs does nothing with rollout_steps; give one of them")
        if self.share != _default(type(self), "share") and not self.is_spread:
            raise ConfigError(f"share {self.share} does nothing without --workers or --ray-address")
        if not all(width.isdecimal() and 1 <= int(width) <= 4096 for width in self.hidden) or not self.hidden:
            raise ConfigError(f"hidden {','.join(self.hidden)}: want widths from 1 to 4096 with commas, as in 32,16,8")
        if not _is_name(self.exp_name):
            raise ConfigError(
                f"exp_name {self.exp_name!r}: want a folder's name: no /, no dot at its beginning, at most 100 bytes"
            )

    @property
    @abstractmethod
    def subject(self) -> str:
        """What is trained on, in a word."""

    @property
    @abstractmethod
    def architecture(self) -> str:
        """The network's name."""

    @property
    def is_spread(self) -> bool:
        """Whether workers play, not this process."""
        return bool(self.workers or self.ray_address)

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self.exp_name or self.subject

    @property
    def folder(self) -> Path:
        """Where the run is."""
        return Path(RUNS) / self.name / f"{self.name}_s{self.seed}"

    @property
    def rates(self) -> tuple[float, float]:
        """The learning rates of policy and value function, before their schedule."""
        both = (5e-3, 5e-3) if self.lr is None else (self.lr, self.lr)
        return (both[0] if self.pi_lr is None else self.pi_lr, both[1] if self.vf_lr is None else self.vf_lr)

    @property
    def exploration(self) -> tuple[float, float, float]:
        """Share of even decisions at the beginning, its decay, its end."""
        return self.exploration_noise, self.exploration_decay, self.exploration_min


@dataclass(frozen=True)
class Config(Learning, Options):
    """What the programs take that train on a cluster's queue, besides what every environment takes."""

    score_backlog: bool = same(Options, "score_backlog", default=True)
    policy_arch: str = option("", "the network; default: kernel", choices=ARCHITECTURES)
    attn: bool | None = option(None, "1 is --policy_arch attn, 0 is --policy_arch kernel")
    residual: str = option("", "begin as this policy, and learn the correction to its order", metavar="POLICY")
    clone: str = option(
        "", "first learn to imitate this policy; POLICY@oracle is a teacher who knows run times", metavar="POLICY"
    )
    clone_epochs: int = option(5, "passes over the decisions, or the jobs, to imitate from")
    clone_loss: str = option(
        "action",
        "what is learned of a teacher: its actions, or the logarithms of its keys (where run times are not known)",
        choices=CLONE_LOSSES,
    )
    clone_trajs: int = option(0, "episodes to imitate, 0 = as many as in an epoch (--trajs)")
    clone_lr: float = option(1e-3, "learning rate of imitation")
    clone_decay: tuple[str, ...] = option(
        ("0",),
        "with log_key: how much the sum of squared weights counts beside the error; of several, keys are learned with "
        "each, and those that are best on the validation windows are gone on with",
        metavar="X,...",
    )
    report_windows: int = option(64, "windows of the test split that are played once, at the end; 0 = none")
    report_policies: tuple[str, ...] = option(
        ("fcfs", "sjf", "saf"), "heuristics that play the test windows by the same rules, to compare with"
    )

    def __post_init__(self) -> None:
        """Raise ConfigError for a value that cannot be, or settings that do not go together."""
        super().__post_init__()
        if self.split != "train":
            raise ConfigError(
                f"split {self.split}: a run trains on train, picks the best checkpoint on validation, reports on test"
            )
        if self.attn is not None and self.policy_arch and self.attn != (self.policy_arch == "attn"):
            raise ConfigError(f"attn {int(self.attn)} and policy_arch {self.policy_arch} disagree; give one of them")
        if self.prior:
            raise ConfigError(f"prior {self.prior}: say --residual or --clone, which set it")
        if self.residual.endswith("@oracle"):
            raise ConfigError(f"residual {self.residual}: a policy may imitate one who knows more, but not begin as it")
        if self.residual and self.clone and self.residual != self.clone and self.clone_loss == "action":
            raise ConfigError(f"residual {self.residual} and clone {self.clone}: want one policy, or one of the two")
        if self.clone_loss == "log_key" and self.is_fresh:
            raise ConfigError("clone_loss log_key learns from a trace; want no fresh jobs (preset, arrival_mode)")
        if self.clone_loss == "log_key" and self.architecture == "mlp":
            raise ConfigError("clone_loss log_key learns job by job; want another policy_arch than mlp")
        if not self.clone_decay or not all(_is_share(word) for word in self.clone_decay):
            raise ConfigError(f"clone_decay {','.join(self.clone_decay)}: want numbers from 0 to 1 with commas")
        if self.decays != (0.0,) and not (self.clone and self.clone_loss == "log_key"):
            raise ConfigError(
                f"clone_decay {','.join(self.clone_decay)} does nothing without clone and clone_loss log_key"
            )
        for policy in filter(None, (self.residual, self.clone)):
            Options(**(self.environment("train") | {"prior": policy}))
        for policy in self.report_policies:
            if find_policy(policy).code < 0:
                raise ConfigError(f"report_policies {policy}: want policies with a formula")

    @property
    def architecture(self) -> str:
        """The network's name."""
        return self.policy_arch or ("attn" if self.attn else "kernel")

    @property
    def decays(self) -> tuple[float, ...]:
        """What the squares of weights count where keys are learned, each to be tried once."""
        return tuple(dict.fromkeys(float(word) for word in self.clone_decay))

    @property
    def input_scale(self) -> float:
        """By what the features of jobs are stretched: where keys are learned, small differences must count."""
        return 12.0 if self.clone_loss == "log_key" else 1.0

    @property
    def subject(self) -> str:
        """What is trained on: the cluster."""
        return Path(self.cluster).stem

    def environment(self, split: str) -> dict[str, Any]:
        """The options of the environments of a split."""
        names = [field.name for field in dataclasses.fields(Options)]
        chosen = {name: getattr(self, name) for name in names} | {"split": split}
        if split != "train":
            chosen["batch_job_slice"] = 0  # it limits what is trained on
        return chosen


_RANGES: dict[str, tuple[float, float]] = {
    "epochs": (1, 10**6), "trajs": (1, 10**6), "rollout_steps": (0, 10**8), "total_timesteps": (0, 10**12),
    "seed": (0, 2**31 - 1), "num_envs": (1, 4096), "workers": (0, 4096), "share": (1, 4096), "clone_epochs": (1, 1000),
    "clone_trajs": (0, 10**6), "clone_lr": (0, 1), "lr": (0, 1), "pi_lr": (0, 1),
    "vf_lr": (0, 1), "lr_warmup_steps": (0, 10**6), "lr_decay_epochs": (1, 10**6), "gamma": (0, 1), "lam": (0, 1),
    "clip_ratio": (1e-6, 10), "target_kl": (0, 1e6), "train_iters": (1, 1000), "minibatch": (1, 10**7),
    "accumulate": (1, 10**4), "ent_coef": (0, 100), "vf_coef": (0, 1000), "max_grad_norm": (0, 1e9),
    "exploration_noise": (0, 1), "exploration_decay": (0, 1), "exploration_min": (0, 1), "val_every": (1, 10**6),
    "val_windows": (1, 10**5), "report_windows": (0, 10**5), "early_stopping_patience": (0, 10**6),
    "early_stopping_threshold": (0, 1), "save_freq": (1, 10**6),
}  # fmt: skip

CHANGEABLE = ("epochs", "total_timesteps", "save_freq", "early_stopping_patience", "early_stopping_threshold",
              "report_windows", "report_policies", "workers", "ray_address")  # fmt: skip
"""What may be different in a run that is gone on with."""


def _default(config: type[Any], name: str) -> Any:
    """The default of a setting."""
    return next(field.default for field in dataclasses.fields(config) if field.name == name)


def _is_share(word: str) -> bool:
    """Whether a word is a number from 0 to 1."""
    try:
        return 0.0 <= float(word) <= 1.0
    except ValueError:
        return False


def _is_name(name: str) -> bool:
    sound = Path(name).name == name and not name.startswith(".") and name.isprintable()
    return not name or (sound and len(name.encode(errors="replace")) <= 100)


def read_config(cluster: str, argv: Sequence[str] | None = None) -> tuple[Config, dict[str, Any]]:
    """The settings of a run on a cluster from a command line, and those of them that it names."""
    flags = given(Config, argv, f"Train a policy on the {cluster} cluster with PPO.\n{EXAMPLES}")
    told = {"cluster": cluster} | from_file(Config, flags) | flags
    return Config(**told), flags


def from_file(config: type[Learning], flags: dict[str, Any]) -> dict[str, Any]:
    """The settings of the file that flags name, if they do; raises ConfigError where it cannot be read."""
    if not flags.get("config"):
        return {}
    path = flags["config"]
    try:
        told = json.loads(Path(path).read_text())
    except (OSError, ValueError, RecursionError) as trouble:
        raise ConfigError(f"config {path}: {trouble}; want a JSON file of settings") from None
    if not isinstance(told, dict):
        raise ConfigError(f"config {path}: want a JSON object of settings")
    return from_settings(config, told, f"config {path}")


def from_settings(config: type[Learning], told: dict[str, Any], where: str) -> dict[str, Any]:
    """Settings as JSON gave them, in the fields' types; raises ConfigError for names that are not known."""
    known = {field.name: field for field in dataclasses.fields(config)}
    for one, what in (("num_hosts", "names hosts (train/lsf_train.py)"), ("cluster", "chooses jobs from a queue")):
        if one in told and one not in known:
            raise ConfigError(f"{where}: {what}, which is of no use here; want one that does the other")
    for name in told:
        if name not in known:
            raise ConfigError(f"{where}: {name} is no setting; {nearest(name, known)}")
    return {name: _in_type(known[name], value) for name, value in told.items()}


def _in_type(field: "dataclasses.Field[Any]", value: Any) -> Any:
    """A value of a setting: JSON's lists are tuples, of words unless the setting holds numbers."""
    if not isinstance(value, list):
        return value
    return tuple(value) if holds_numbers(field.type) else tuple(map(str, value))


def to_settings(config: Learning) -> dict[str, Any]:
    """The settings as JSON can hold them, without where they came from."""
    told = dataclasses.asdict(config) | {"resume_from": "", "config": ""}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in told.items()}
