"""How well ended jobs tell run times: rank correlations with the true ones, by trace.

    python benchmarks/prediction.py

Of every job of the test split, at its arrival, as the baseline sjf under EASY has led the cluster. The real traces are
looked for in ../shared/traces, and left out where absent.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.calibrate import FILES, REAL
from berth.commandline import option, parse, run
from berth.console import show_rows
from envs.clusters import CLUSTERS
from envs.options import Options
from envs.stage import Stage, find_source, split_borders

LAST = 10


@dataclass(frozen=True)
class Config:
    """What benchmarks/prediction.py takes."""

    clusters: tuple[str, ...] = option(tuple(CLUSTERS), "which clusters", choices=tuple(CLUSTERS))


def stages(cluster: str) -> list[tuple[str, Stage]]:
    """The sample of a cluster, and the real trace if it is there, both replayed."""
    found: list[tuple[str, dict[str, Any]]] = [("sample", {})]
    if cluster in FILES and (REAL / FILES[cluster]).is_file():
        pools = {"assign_pools": 0} if CLUSTERS[cluster].pool_by else {}
        found.append(("real", {"workload": str(REAL / FILES[cluster]), **pools}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            (data, find_source(Options(cluster=cluster, warm_rule="sjf@easy", **more)).stage) for data, more in found
        ]


def histories(stage: Stage, jobs: range) -> list[np.ndarray]:
    """The last run times of those most like each job that had ended when it arrived, oldest first."""
    found = []
    for job in jobs:
        now, known = stage.roster["submit"][job], np.array([3600.0])
        for group in stage.groups[job]:
            if group < 0:
                continue
            ended = stage.ended[stage.ended_at[group] : stage.ended_at[group + 1]]
            count = int(np.searchsorted(ended["end"], now, side="right"))
            if count:
                known = ended["run_time"][max(0, count - LAST) : count]
                break
        found.append(known)
    return found


def main() -> None:
    """Print the correlations."""
    config = parse(Config, None, str(__doc__))
    rows = []
    for cluster in config.clusters:
        for data, stage in stages(cluster):
            low, high = split_borders(stage.roster["submit"], 0.6, 0.2)["test"]
            known, true = histories(stage, range(low, high)), stage.roster["run_time"][low:high]
            guesses = (
                [float(np.mean(times)) for times in known],
                [float(np.mean(np.log1p(times))) for times in known],
                [float(times[-1]) for times in known],
            )
            rows.append((f"{cluster}, {data}", *(f"{stats.spearmanr(guess, true)[0]:.3f}" for guess in guesses)))
    show_rows("Spearman's correlation with the true run time", ("trace", "mean", "geometric mean", "the last"), rows)


if __name__ == "__main__":
    run(main)
