"""A stranger's learner on our environments: sb3-contrib's MaskablePPO trains on one, and is compared with the baseline.

Needs examples/requirements.txt. `python examples/maskable_ppo.py --steps 20000`
"""

from dataclasses import dataclass

import gymnasium
import numpy as np

import envs  # noqa: F401 - registers the environments
from berth.commandline import option, parse, run
from berth.console import tell
from berth.errors import ConfigError
from envs.registration import IDS


@dataclass(frozen=True)
class Config:
    """What the example takes."""

    env: str = option("Synthetic-v0", "which environment", choices=tuple(IDS))
    steps: int = option(20_000, "decisions to train for")
    episodes: int = option(5, "validation episodes to play afterwards")
    seq_len: int = option(64, "scored jobs in an episode")
    window: int = option(16, "slots of the queue that are seen")
    seed: int = option(0, "seed of the windows and of the learner")


def train(config: Config) -> float:
    """Train, then play validation windows; returns the mean reward, which is 0 for the baseline itself."""
    try:
        from sb3_contrib import MaskablePPO
    except ImportError:
        raise ConfigError("sb3-contrib is not installed; want pip install -r examples/requirements.txt") from None
    shape = {"seq_len": config.seq_len, "window": config.window, "action_mode": "fit"}
    env = gymnasium.make(config.env, split="train", **shape)
    batch = min(256, config.steps)
    model = MaskablePPO("MultiInputPolicy", env, n_steps=batch, batch_size=batch, seed=config.seed, device="cpu")
    model.learn(config.steps, progress_bar=False)
    judge = gymnasium.make(config.env, split="validation", **shape)
    rewards = []
    for episode in range(config.episodes):
        seen, _ = judge.reset(seed=config.seed if episode == 0 else None)
        total, over = 0.0, False
        while not over:
            action, _ = model.predict(seen, action_masks=judge.unwrapped.action_masks(), deterministic=True)
            seen, reward, terminated, truncated, info = judge.step(int(action))
            total, over = total + reward, terminated or truncated
        assert info["invalid_actions"] == 0
        rewards.append(total)
    return float(np.mean(rewards))


def main() -> None:
    """Train and tell."""
    config = parse(Config, description=__doc__ or "")
    gain = train(config)
    tell(f"{config.env}: {config.steps:,} decisions; mean reward on {config.episodes} validation windows {gain:.4f}")


if __name__ == "__main__":
    run(main)
