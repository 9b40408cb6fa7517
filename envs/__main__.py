"""`python -m envs`: play episodes of an environment by simple rules, or write the pages about the environments."""

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.progress import track

from berth.commandline import nearest, option, parse, run
from berth.console import console, show_rows, tell
from berth.errors import ConfigError
from envs.options import Options
from envs.policies import POLICIES, find_policy
from envs.sim.priorities import formula
from envs.sim.simulator import check_options

if TYPE_CHECKING:
    from envs.scheduling_env import SchedulingEnv

ABOUT = """Play episodes of an environment, and tell what was earned against the baseline.

  python -m envs play --cluster philly --player sjf --episodes 20
  python -m envs play --cluster helios --action_mode fit --sched_algo sjf --player random --split test
  python -m envs pages        writes docs/environments/
"""


@dataclass(frozen=True)
class Play(Options):
    """What `play` takes."""

    player: str = option(
        "random", f"baseline, random (any valid slot), or a policy that chooses: {', '.join(POLICIES)}"
    )
    episodes: int = option(10, "how many episodes")
    seed: int = option(0, "seed of the windows, and of the player")


def play(config: Play) -> None:
    """Play episodes one after the other, and show how each went."""
    from envs.scheduling_env import SchedulingEnv  # Gymnasium takes a while to import

    if config.episodes < 1:
        raise ConfigError(f"--episodes {config.episodes}: want at least 1")
    if config.seed < 0:
        raise ConfigError(f"--seed {config.seed}: want a number >= 0")
    if config.player == "baseline" and config.window_order != "baseline":
        raise ConfigError("--player baseline: want --window_order baseline, where the window always shows its job")
    if config.player in POLICIES and config.player != "random":
        check_options(find_policy(config.player), "fit", "pool", config.runtime_info)
    if config.player not in ("baseline", "random") and find_policy(config.player).code < 0:
        raise ConfigError(f"--player {config.player}: {nearest(config.player, ['baseline', 'random', *POLICIES])}")
    env = SchedulingEnv(**{field.name: getattr(config, field.name) for field in fields(Options)})
    for note in env.notes:
        tell(f"note: {note}")
    rng = np.random.default_rng(config.seed)
    env.reset(seed=config.seed)
    rows, gains = [], []
    for episode in track(range(config.episodes), "playing", console=console(), transient=True):
        _, begun = env.reset(seed=config.seed if episode == 0 else None)
        over, reward = False, 0.0
        while not over:
            _, earned, terminated, truncated, info = env.step(_choose(env, config.player, rng))
            reward += earned
            over = terminated or truncated
        gains.append(reward)
        figures = (info["score"], info["baseline_score"], reward)
        cut = " (cut short)" if truncated else ""
        rows.append(
            (str(episode), f"{begun['first']:,}", f"{info['decisions']:,}{cut}", *(f"{x:,.4f}" for x in figures))
        )
    o = env.options
    title = (
        f"{o.cluster}, {o.split}, {'fresh jobs' if o.is_fresh else 'windows of the trace'}: {config.player} against "
        f"{o.policy.name} under {o.discipline}; score {env.score_name}"
    )
    show_rows(title, ("episode", "first job", "decisions", "score", "baseline", "reward"), rows)
    tell(f"mean reward {np.mean(gains):.4f} over {len(gains)} episodes")


def _choose(env: "SchedulingEnv", player: str, rng: np.random.Generator) -> int:
    """The action of a player."""
    if player == "baseline":
        return env.baseline_action()
    slots, mask = env.episode.window_jobs(), env.action_masks()
    valid = np.flatnonzero(mask)
    if player == "random" or not len(slots):
        return int(rng.choice(valid))
    jobs, now = env.episode.arrays["jobs"], env.snapshot().now
    pools = env.episode.arrays["pools"]["gpus"]
    code = find_policy(player).code
    keys = {}
    for slot in valid[valid < len(slots)]:
        job = jobs[slots[slot]]
        wait = now - job["submit"]
        keys[int(slot)] = formula(
            code, job["submit"], job["estimate"], float(job["asked"]), wait, float(pools[job["pool"]])
        )
    return min(keys, key=lambda slot: (keys[slot], slots[slot])) if keys else int(valid[0])


def pages() -> None:
    """Write docs/environments/."""
    from envs.pages import write_pages

    for file in write_pages(Path(__file__).resolve().parent.parent / "docs" / "environments"):
        tell(str(file))


def main() -> None:
    """Do what the first word says."""
    words = sys.argv[1:]
    if words[:1] == ["pages"] and len(words) == 1:
        pages()
    elif words[:1] == ["play"]:
        play(parse(Play, words[1:], ABOUT, "python -m envs play"))
    elif not words or words[0] in ("-h", "--help"):
        print(ABOUT)
    else:
        raise ConfigError(
            f"{' '.join(words)}: {nearest(words[0], ['play', 'pages'])}; python -m envs --help tells more"
        )


if __name__ == "__main__":
    run(main)
