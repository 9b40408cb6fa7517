"""Baselines in the environments themselves: blocks of episodes, each with its own seed, by the agent's own rules."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from rich.progress import track

from berth.commandline import option, parse, run, same, writable_file, written_whole
from berth.console import console, show_rows, tell
from berth.errors import ConfigError
from berth.streams import stream
from envs.options import Options
from envs.policies import find_policy
from envs.reward import find_score
from envs.vector import SchedulingVectorEnv
from eval.contenders import RANDOM_NAMES
from train.playing import Decide, Episodes, follow, play

DESCRIPTION = """Play episodes of an environment with heuristics that choose from the agent's own window.

  python eval/baselines.py --seed 1 --jobs-per-episode 400 --max-queue-size 50 --eval-num-blocks 3 --eval-episodes 20
  python eval/baselines.py --jobs-per-episode 400 --arrival-mode bursty --horizon-factor 1.25 --lookahead-mode per_gpu
  python eval/baselines.py --cluster philly --workload trace.csv --policies fcfs,sjf,saf --action_mode reserve

Without --workload, --preset or --arrival-mode the jobs are fresh ones of the preset baseline_stable. Blocks are
disjoint: each has its own seed. Told are the mean over blocks and how much blocks differ.
"""

PRESET = "baseline_stable"


@dataclass(frozen=True)
class Config(Options):
    """What eval/baselines.py takes, besides what every environment takes."""

    cluster: str = same(Options, "cluster", default="synthetic")
    split: str = same(Options, "split", default="test")
    action_mode: str = same(Options, "action_mode", default="fit")
    policies: tuple[str, ...] = option(
        ("fifo", "sjf", RANDOM_NAMES[1]), "heuristics that choose, with commas; RAND_FEAS_NO0: any job that fits"
    )
    seed: int = option(0, "seed of the first block")
    eval_num_blocks: int = option(3, "blocks of episodes, each with its own seed")
    eval_episodes: int = option(20, "episodes in a block")
    out: str = option("", "write every episode's numbers there", metavar="FILE.json")

    def __post_init__(self) -> None:
        """Raise ConfigError for a value that cannot be."""
        super().__post_init__()
        for name, low, high in (("seed", 0, 2**31 - 1), ("eval_num_blocks", 1, 10_000), ("eval_episodes", 1, 10**6)):
            if not low <= getattr(self, name) <= high:
                raise ConfigError(f"{name} {getattr(self, name)}: want a number from {low} to {high:,}")
        for word in self.policies:
            if word not in RANDOM_NAMES and find_policy(word).code < 0:
                raise ConfigError(f"policies {word}: want policies with a formula, or {RANDOM_NAMES[1]}")


def main(words: Sequence[str] | None = None) -> None:
    """Play the blocks, and tell how they went."""
    config = parse(Config, words, DESCRIPTION)
    out = writable_file("--out", config.out, ".json") if config.out else None
    options = {field.name: getattr(config, field.name) for field in dataclasses.fields(Options)}
    if not (config.workload or config.is_fresh):
        options["preset"] = PRESET
    score = find_score(config.score_type)
    table: dict[str, list[Episodes]] = {}
    for word in track(config.policies, "playing", console=console(), transient=True):
        table[word] = [
            play_block(options, word, config.seed + b, config.eval_episodes) for b in range(config.eval_num_blocks)
        ]
    rows = []
    for word, blocks in table.items():
        means = np.array([[block.agent.mean(), block.gain.mean(), block.decisions.mean()] for block in blocks])
        spread = means.std(axis=0, ddof=1) if len(means) > 1 else np.full(3, np.nan)
        apart = [f"{x:,.4f}" if np.isfinite(x) else "-" for x in spread]
        rows.append((word, f"{means[:, 0].mean():,.3f}", apart[0], f"{means[:, 1].mean():+.4f}", apart[1],
                     f"{means[:, 2].mean():,.0f}"))  # fmt: skip
    jobs = "fresh jobs" if Options(**options).is_fresh else f"{config.split} windows"
    title = (
        f"{config.cluster}: {config.eval_num_blocks} blocks of {config.eval_episodes} episodes of {config.seq_len} "
        f"{jobs}, window {config.window}, {config.action_mode}, run times {config.runtime_info}"
    )
    header = ("who", f"mean {score}", "± blocks", f"gain over {config.policy.name}", "± blocks", "decisions")
    show_rows(title, header, rows)
    if out is not None:
        with written_whole(out) as begun:
            begun.write_text(json.dumps(_told(options, config, table), indent=1) + "\n")
        tell(f"every episode: {out}")


def play_block(options: dict[str, Any], word: str, seed: int, episodes: int) -> Episodes:
    """One block: as many episodes, from windows that the seed draws."""
    random = word in RANDOM_NAMES
    env = SchedulingVectorEnv(
        min(64, episodes), AutoresetMode.DISABLED, copy=False, **(options | {"prior": "" if random else word})
    )
    seeds = stream(seed, "baseline episodes").integers(2**31, size=episodes).tolist()
    decide: Decide = random_feasible(env, seed) if random else follow(env)
    return play(env, seeds, decide)[0]


def random_feasible(env: SchedulingVectorEnv, seed: int) -> Decide:
    """Decide for any job that can be chosen, each as likely; wait only where none can."""
    rng, slots = stream(seed, "random feasible"), env.options.window

    def _decide(seen: dict[str, np.ndarray]) -> np.ndarray:
        can = seen["mask"][:, :slots]
        drawn = np.where(can == 1, rng.random(can.shape), -1.0).argmax(axis=1)
        return np.where(can.any(axis=1), drawn, slots).astype(np.int32)

    return _decide


def _told(options: dict[str, Any], config: Config, table: dict[str, list[Episodes]]) -> dict[str, Any]:
    """Everything as JSON can hold it."""
    blocks = {
        word: [{name: column.tolist() for name, column in block._asdict().items()} for block in blocks]
        for word, blocks in table.items()
    }
    return {"options": options, "seed": config.seed, "blocks": blocks}


if __name__ == "__main__":
    run(main)
