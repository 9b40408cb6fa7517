"""Workloads made from a few numbers: Poisson arrivals, heavy-tailed run times, a mix of sizes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from berth.errors import ConfigError
from berth.streams import stream
from traces.trace import Trace

FILES = {
    "philly": "Philly_Formatted_withGPUType.csv",
    "helios": "Helios_Formatted_withGPUType.csv",
    "alibaba": "Alibaba_Formatted_withGPUType.csv",
    "synthetic": "synthetic_trace.csv",
}
"""The sample that ships for each cluster."""


@dataclass(frozen=True)
class Recipe:
    """The shape of a workload. Run times are lognormal, cut at `longest`, with the given median and mean."""

    gpus: Mapping[int, float]  # GPUs -> share of jobs
    median: float  # s, of run times
    mean: float  # s, of run times before the cut
    gap: float  # s between arrivals on average
    longest: float = 3 * 86400.0  # s
    vcs: Mapping[str, float] | None = None  # virtual cluster -> share of jobs
    gpu_types: Mapping[str, float] | None = None  # GPU type -> share of jobs
    users: int = 0  # how many users share the jobs, the first most


PUBLISHED = {
    "philly": Recipe({1: 0.859, 2: 0.04, 4: 0.034, 8: 0.055, 16: 0.009, 32: 0.003}, 1144, 13136, 62, users=300),
    "helios": Recipe(
        {1: 0.518, 2: 0.06, 4: 0.08, 8: 0.262, 16: 0.055, 32: 0.025}, 204, 13041, 125, users=200,
        vcs={"vcJsw": 256, "vcvGl": 160, "vcKeu": 96, "vcYVn": 88, "vcefl": 80, "vcEwI": 72, "vcHvQ": 64, "vcLTP": 64,
             "vc8Gr": 48, "vcWoR": 40, "vcKrE": 32, "vchbv": 32, "vchA3": 24, "vcvlY": 16, "vcgkz": 8},
    ),
    "alibaba": Recipe(
        {1: 0.92, 2: 0.05, 4: 0.02, 8: 0.01}, 481, 4787, 8, users=500,
        gpu_types={"MISC": 0.67, "T4": 0.218, "P100": 0.07, "V100_16GB": 0.025, "V100_32GB": 0.017},
    ),
    "synthetic": Recipe({1: 0.5, 2: 0.2, 4: 0.15, 8: 0.12, 16: 0.03}, 600, 3600, 60, users=50),
}  # fmt: skip
"""Recipes from published summary figures of the clusters (GPU_Traces/README.md names them)."""


def generate(recipe: Recipe, jobs: int, seed: int, name: str = "generated") -> Trace:
    """Make a workload; equal arguments give equal jobs. Raises ConfigError for a recipe that cannot be met."""
    if not 0 < recipe.median <= recipe.mean:
        raise ConfigError(f"{name}: median {recipe.median} and mean {recipe.mean}, want 0 < median <= mean")
    draw = {
        purpose: stream(seed, f"generate {purpose}") for purpose in ("gap", "gpus", "run_time", "vc", "type", "user")
    }
    sigma = np.sqrt(2 * np.log(recipe.mean / recipe.median))
    run_time = recipe.median * np.exp(sigma * draw["run_time"].standard_normal(jobs))
    sizes = np.array(list(recipe.gpus), np.int32)
    user = None
    if recipe.users:
        share = 1.0 / np.arange(1, recipe.users + 1)
        user = _pick(draw["user"], np.array([f"u{i}" for i in range(recipe.users)], object), share, jobs)
    return Trace(
        name=name,
        format="generated",
        job_id=np.arange(1, jobs + 1),
        submit=np.floor(np.cumsum(draw["gap"].exponential(recipe.gap, jobs))),
        run_time=np.clip(np.round(run_time), 1, recipe.longest),
        gpus=_pick(draw["gpus"], sizes, np.array(list(recipe.gpus.values())), jobs),
        user=user,
        vc=_named(draw["vc"], recipe.vcs, jobs),
        gpu_type=_named(draw["type"], recipe.gpu_types, jobs),
    )


def _named(rng: np.random.Generator, shares: Mapping[str, float] | None, jobs: int) -> np.ndarray | None:
    if shares is None:
        return None
    return _pick(rng, np.array(list(shares), dtype=object), np.array(list(shares.values()), float), jobs)


def _pick(rng: np.random.Generator, values: np.ndarray, shares: np.ndarray, jobs: int) -> np.ndarray:
    """Draw values with the given shares."""
    return values[np.searchsorted(np.cumsum(shares) / shares.sum(), rng.random(jobs), side="right")]
