"""What a run of host selection can be told: what every training program takes, and the environment's options."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from berth.commandline import given, option, same
from berth.errors import ConfigError
from envs.host_options import HostOptions
from train.config import Learning, from_file

SUBJECT = "lsf"

TEST_SEEDS = (42, 43, 44)
"""The episodes that policies are compared on, always the same."""

EXAMPLES = """
examples:
  python train/lsf_train.py --log-dir trial --num-hosts 50 --episode-length 200 --max-jobs-per-step 50
  python train/lsf_train.py --log-dir eda --job-cores-range 1 16 --job-memory-range 512 65536 --load 1.0 --epochs 40
  python train/lsf_train.py --resume-from data/logs/trial/trial_s0 --epochs 80
docs/hosts.md explains the workload, the rewards and what is measured, docs/ppo.md what is logged.
"""


@dataclass(frozen=True)
class HostConfig(Learning, HostOptions):
    """What train/lsf_train.py takes."""

    epochs: int = same(Learning, "epochs", default=12)
    trajs: int = same(Learning, "trajs", default=16)
    num_envs: int = same(Learning, "num_envs", default=16)
    share: int = same(Learning, "share", default=4)
    exp_name: str = same(Learning, "exp_name", text="name of the experiment, a folder in data/logs/; default: lsf")
    hidden: tuple[str, ...] = same(
        Learning, "hidden", default=("32", "16"), text="widths of the layers that judge a host"
    )
    lr: float | None = same(Learning, "lr", default=3e-3)
    gamma: float = same(Learning, "gamma", default=0.995)
    lam: float = same(Learning, "lam", default=1.0)
    target_kl: float = same(Learning, "target_kl", default=0.05)
    exploration_noise: float = same(Learning, "exploration_noise", default=0.05)
    train_iters: int = same(Learning, "train_iters", default=3)
    minibatch: int = same(Learning, "minibatch", default=2048)
    val_windows: int = same(
        Learning, "val_windows", default=8, text="episodes of the validation seeds that pick the best checkpoint"
    )
    test_every: int = option(
        4, f"epochs between looks at the test episodes (seeds {', '.join(map(str, TEST_SEEDS))}), 0 = at the end alone"
    )

    def __post_init__(self) -> None:
        """Raise ConfigError for a value that cannot be, or settings that do not go together."""
        super().__post_init__()
        if self.split != "train":
            raise ConfigError(f"split {self.split}: a run trains on train, and picks the best checkpoint on validation")
        if not 0 <= self.test_every <= 10**6:
            raise ConfigError(f"test_every {self.test_every}: want a number from 0 to 1,000,000")

    @property
    def subject(self) -> str:
        """What is trained on."""
        return SUBJECT

    @property
    def architecture(self) -> str:
        """The network's name."""
        return "variable_host"

    def environment(self, split: str) -> dict[str, Any]:
        """The options of the environments of a split."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(HostOptions)} | {"split": split}


def read_host_config(argv: Sequence[str] | None = None) -> tuple[HostConfig, dict[str, Any]]:
    """The settings of a run from a command line, and those of them that it names."""
    flags = given(HostConfig, argv, f"Train a policy that names a host for every job, with PPO.\n{EXAMPLES}")
    return HostConfig(**(from_file(HostConfig, flags) | flags)), flags
