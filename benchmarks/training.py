"""How long an epoch of training takes, playing and learning apart, and how much memory."""

import resource
import time

from rich.table import Table

from berth.commandline import run
from berth.console import console
from berth.streams import stream
from train.config import Config
from train.quiet import load_tensorflow

EPOCHS = {
    "25,600 decisions": {"rollout_steps": 25_600},
    "100 episodes of 256 jobs": {},
    "100 episodes, idle cluster": {"warm_start": False},
    "25,600 decisions, attn": {"rollout_steps": 25_600, "policy_arch": "attn"},
}
"""The epochs that are timed, on the Philly testbed; a warm start brings a backlog, which is scheduled as well."""


def main() -> None:
    """Print the table."""
    load_tensorflow(0)
    from train.rollouts import collect, make_env, shape_of
    from train.run import make_learner

    title = "One epoch on the Philly testbed, kernel network unless named (seconds)"
    table = Table(
        "epoch", "decisions", "playing", "learning", "both", "wanted", "peak GB so far", "wanted", title=title
    )
    for name, settings in EPOCHS.items():
        config = Config(cluster="philly", **settings)  # type: ignore[arg-type]
        env = make_env(config, "train", 25 if config.rollout_steps else config.trajs)
        learner = make_learner(config, shape_of(env))
        seeds = stream(0, "windows 0").integers(2**31, size=config.rollout_steps or config.trajs).tolist()
        begin = time.perf_counter()
        batch, _ = collect(env, learner, seeds, stream(0, "actions 0"), 0.0, 1.0, 0.97, config.rollout_steps)
        played = time.perf_counter()
        learner.update(batch, stream(0, "minibatches 0"), *config.rates, 0.0)
        learned = time.perf_counter()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        table.add_row(
            name, f"{len(batch.action):,}", f"{played - begin:.1f}", f"{learned - played:.1f}",
            f"{learned - begin:.1f}", "" if "attn" in name else "< 20", f"{peak:.2f}", "" if "attn" in name else "< 2",
        )  # fmt: skip
    console().print(table)


if __name__ == "__main__":
    run(main)
