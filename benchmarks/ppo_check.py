"""Our PPO beside a stranger's: the same environment, the same number of decisions, the same validation windows.

Needs examples/requirements.txt (sb3-contrib's MaskablePPO), as examples/maskable_ppo.py does.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from berth.commandline import option, parse, run
from berth.console import console, tell
from berth.errors import ConfigError
from berth.streams import stream
from train.config import Config
from train.quiet import load_tensorflow


@dataclass(frozen=True)
class Check:
    """What the comparison takes."""

    decisions: int = option(100_000, "decisions to train for")
    seeds: int = option(1, "how many seeds each learner is trained with")
    windows: int = option(64, "validation windows to judge by")


def ours(check: Check, seed: int) -> tuple[int, float, float]:
    """Train a run of ours; returns decisions, seconds of training, mean gain of its last policy."""
    from train.rollouts import judge, make_env
    from train.run import Run

    config = Config(
        cluster="synthetic", seed=seed, total_timesteps=check.decisions, rollout_steps=check.decisions // 8,
        epochs=8, val_every=1000, val_windows=1, report_windows=0,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        training = Run(config, Path(folder))
        while training.interacts < check.decisions:
            training.one_epoch()
        seconds = time.perf_counter() - begin
    env = make_env(config, "validation", check.windows)
    return training.interacts, seconds, float(judge(env, training.learner, windows(check)).gain.mean())


def theirs(check: Check, seed: int) -> tuple[int, float, float]:
    """Train MaskablePPO with its defaults, as its documents show; returns the same."""
    try:
        from sb3_contrib import MaskablePPO
    except ImportError:
        raise ConfigError("sb3-contrib is not installed; want pip install -r examples/requirements.txt") from None
    import gymnasium

    import envs  # noqa: F401 - registers the environments

    begin = time.perf_counter()
    model = MaskablePPO("MultiInputPolicy", gymnasium.make("Synthetic-v0"), seed=seed, device="cpu")
    model.learn(check.decisions)
    seconds = time.perf_counter() - begin
    env = gymnasium.make("Synthetic-v0", split="validation")
    gains = [_played(model, env, window) for window in windows(check)]
    return int(model.num_timesteps), seconds, float(np.mean(gains))


def _played(model: Any, env: Any, window: int) -> float:
    seen, _ = env.reset(seed=window)
    while True:
        action, _ = model.predict(seen, action_masks=env.unwrapped.action_masks(), deterministic=True)
        seen, _, terminated, truncated, info = env.step(int(action))
        if terminated or truncated:
            return float(info["gain"])


def windows(check: Check) -> list[int]:
    """The seeds of the windows that both are judged by."""
    found: list[int] = stream(0, "validation windows").integers(2**31, size=check.windows).tolist()
    return found


def main() -> None:
    """Print the table."""
    check = parse(Check, description=__doc__ or "")
    load_tensorflow(0)
    learners: dict[str, Callable[[Check, int], tuple[int, float, float]]] = {
        "Berth, kernel": ours,
        "sb3-contrib MaskablePPO": theirs,
    }
    title = f"Synthetic-v0, mean gain over fcfs on {check.windows} validation windows, most likely actions"
    table = Table("learner", "seed", "decisions", "seconds", "gain", title=title)
    for name, learner in learners.items():
        for seed in range(check.seeds):
            decisions, seconds, gain = learner(check, seed)
            table.add_row(name, str(seed), f"{decisions:,}", f"{seconds:.0f}", f"{gain:+.3f}")
            tell(f"{name}, seed {seed}: {seconds:.0f} s, gain {gain:+.3f}")
    console().print(table)


if __name__ == "__main__":
    run(main)
