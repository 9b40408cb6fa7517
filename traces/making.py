"""Traces made: the commands fit, generate, samples."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

from berth.commandline import argument, nearest, option, writable_file, writable_folder
from berth.console import console, show_rows, tell
from berth.errors import ConfigError
from traces.compare import compare
from traces.files import FORMAT, SKIP, read_told, write_told
from traces.generate import RECIPES, SAMPLE_JOBS, SAMPLES, sample
from traces.generate import generate as calibrated
from traces.parametric import ARRIVALS, RUN_TIMES, SYNTHETIC, Shape, generate_parametric
from traces.read import FORMATS
from traces.recipe import LONGEST_GAP, Recipe, read_recipe, write_recipe
from traces.table import MOST, MOST_GPUS
from traces.trace import Trace, counted


@dataclass(frozen=True)
class Fit:
    """What `fit` takes."""

    file: str = argument("trace file, plain or .gz", "FILE")
    out: str = option("", "where the recipe goes", metavar="RECIPE.json", short="-o")
    tries: int = option(60, "trials for what no single statistic gives (users, likeness of their jobs); 0 = none")
    vcs: str = option("", "GPUs of virtual clusters, for a trace without them: vcA:64,vcB:32", metavar="NAME:N,...")
    gpu_types: str = option("", "shares of jobs by GPU type, small jobs' first: T4:0.2,V100:0.1", metavar="NAME:X,...")
    format: str = option("", FORMAT, choices=tuple(FORMATS))
    skip_bad_rows: bool = option(False, SKIP)


def fit(config: Fit) -> None:
    """Summarise a trace as a recipe to generate from: tables and shares, no rows of it."""
    from traces.fit import ROUNDS
    from traces.fit import fit as fitted
    from traces.tune import tune

    if not config.out:
        raise ConfigError("fit: want -o RECIPE.json")
    if config.tries < 0:
        raise ConfigError(f"--tries {config.tries}: want a number >= 0")
    out = writable_file("-o", config.out, ".json")
    vcs, types = _shares("--vcs", config.vcs), _shares("--gpu_types", config.gpu_types)
    if vcs and types:
        raise ConfigError("--vcs and --gpu_types: want one of them")
    trace = read_told(config.file, config.format, config.skip_bad_rows)
    with Progress(console=console(), transient=True) as bar:
        task = bar.add_task("fitting", total=ROUNDS + config.tries + bool(config.tries))
        recipe = fitted(trace, out.stem, vcs, types, lambda: bar.advance(task))
        if config.tries:
            recipe = tune(recipe, trace, config.tries, progress=lambda: bar.advance(task))
    write_recipe(recipe, out)
    _judge(recipe, trace)
    tell(f"{out}: a recipe of {len(trace):,} jobs; python -m traces generate --like {out} -o SAMPLE.csv")


def _judge(recipe: Recipe, trace: Trace) -> None:
    """Show how near a sample of the recipe is to the trace; what is not like it is for the user to judge."""
    rows = [
        (row.what, *("-" if value is None else f"{value:,.3f}" for value in row[1:]))
        for row in compare(calibrated(recipe, min(len(trace), SAMPLE_JOBS), 1, "a sample"), trace)
    ]
    show_rows("A sample of the recipe against the trace", ("figure", "sample", "trace", "distance"), rows)
    cut = int(np.count_nonzero(np.diff(trace.submit) > LONGEST_GAP))
    if cut:
        tell(f"note: {counted(cut, 'gap')} of over {LONGEST_GAP / 3600:g} h cut to that")


@dataclass(frozen=True)
class Generate:
    """What `generate` takes."""

    like: str = option(
        "synthetic", f"{', '.join(RECIPES)} (calibrated), synthetic (by the flags below), or RECIPE.json"
    )
    out: str = option("", "where to: the 19 columns, or .parquet", metavar="OUT.csv|parquet", short="-o")
    jobs: int = option(20_000, "how many jobs")
    seed: int = option(1, "seed of everything random")
    arrival_mode: str = option(SYNTHETIC.arrival_mode, "how jobs arrive", choices=ARRIVALS)
    gap: float = option(SYNTHETIC.gap, "s between arrivals on average")
    burst_size: float = option(SYNTHETIC.burst_size, "jobs in a burst on average, with bursty arrivals")
    burst_gap: float = option(SYNTHETIC.burst_gap, "s between the jobs of a burst on average")
    daily_swing: float = option(
        SYNTHETIC.daily_swing, "0: nights like days; 1: no arrivals at midnight, twice as many at noon"
    )
    run_time: str = option(SYNTHETIC.run_time, "distribution of run times", choices=tuple(RUN_TIMES))
    median: float = option(SYNTHETIC.median, "s, median run time")
    mean: float = option(SYNTHETIC.mean, "s, mean run time before the cut")
    longest: float = option(SYNTHETIC.longest, "s, where run times are cut")
    gpus: str = option(
        ",".join(f"{size}:{share:g}" for size, share in SYNTHETIC.gpus.items()),
        "GPUs with shares of jobs",
        metavar="N:X,...",
    )
    correlation: float = option(SYNTHETIC.correlation, "of GPUs and run time, -1 to 1")
    users: int = option(SYNTHETIC.users, "how many users, the first most active")
    likeness: float = option(SYNTHETIC.likeness, "of the run times of a user's jobs, 0 to 1")
    vcs: str = option("", "virtual clusters with shares of jobs", metavar="NAME:X,...")
    gpu_types: str = option("", "GPU types with shares of jobs", metavar="NAME:X,...")


def generate(config: Generate) -> None:
    """Make a workload: like a real trace, from a recipe; or synthetic, from a few numbers."""
    if not config.out:
        raise ConfigError("generate: want -o OUT.csv (the 19 columns) or -o OUT.parquet")
    if not 2 <= config.jobs <= 10_000_000:
        raise ConfigError(f"--jobs {config.jobs}: want a number from 2 to 10,000,000")
    if config.seed < 0:
        raise ConfigError(f"--seed {config.seed}: want a number >= 0")
    out = writable_file("-o", config.out, ".csv", ".parquet")
    if config.like == "synthetic":
        _refuse_idle(config)
        write_told(generate_parametric(_shape(config), config.jobs, config.seed, "synthetic"), out)
        return
    if config.like not in RECIPES and not config.like.endswith(".json"):
        raise ConfigError(f"--like {config.like}: {nearest(config.like, ['synthetic', *RECIPES])}; or a RECIPE.json")
    idle = [one.name for one in dataclasses.fields(Generate) if one.name not in ("like", "out", "jobs", "seed")]
    idle = [name for name in idle if getattr(config, name) != getattr(Generate(), name)]
    if idle:
        raise ConfigError(f"--{idle[0]} does nothing with --like {config.like}: only --like synthetic takes it")
    recipe = read_recipe(RECIPES.get(config.like, Path(config.like)))
    write_told(calibrated(recipe, config.jobs, config.seed, config.like), out)
    tell(f"note: a calibrated sample, made from a recipe of {recipe.source_jobs:,} jobs; not a real trace")


def _refuse_idle(config: Generate) -> None:
    """Raise ConfigError for a flag that was given and cannot act."""
    idle = {
        "burst_size": config.arrival_mode == "poisson",
        "burst_gap": config.arrival_mode == "poisson",
        "median": config.run_time == "exponential",
        "likeness": config.users == 0,
    }
    why = {"median": "--run_time exponential", "likeness": "--users 0"}
    for name, is_idle in idle.items():
        if is_idle and getattr(config, name) != getattr(Generate(), name):
            raise ConfigError(f"--{name} does nothing with {why.get(name, '--arrival_mode poisson')}")


def _shape(config: Generate) -> Shape:
    """The shape that the flags describe."""
    sizes: dict[int, float] = {}
    for word, share in _shares("--gpus", config.gpus).items():
        if not word.isdecimal() or not 1 <= int(word) <= MOST_GPUS:
            raise ConfigError(f"--gpus {config.gpus}: {word} is no number of GPUs, want 1:0.5,8:0.5")
        sizes[int(word)] = share
    named: dict[str, Any] = {
        "gpus": sizes,
        "vcs": _shares("--vcs", config.vcs),
        "gpu_types": _shares("--gpu_types", config.gpu_types),
    }
    rest = {one.name: getattr(config, one.name) for one in dataclasses.fields(Shape) if one.name not in named}
    return Shape(**named, **rest)


def _shares(flag: str, words: str) -> dict[str, float]:
    """Names with numbers > 0: a:1,b:0.5."""
    shares: dict[str, float] = {}
    for part in words.split(",") if words else []:
        name, colon, number = part.rpartition(":")
        try:
            share = float(number)
        except ValueError:
            share = 0.0
        if not colon or not name.strip() or not 0 < share <= MOST:
            raise ConfigError(f"{flag} {words}: {part!r}, want names with numbers > 0 like a:1,b:0.5")
        if name.strip() in shares:
            raise ConfigError(f"{flag} {words}: {name.strip()} stands there twice, want it once")
        shares[name.strip()] = share
    return shares


@dataclass(frozen=True)
class Samples:
    """What `samples` takes."""

    out: str = option("GPU_Traces", "folder to write to", metavar="DIR")


def samples(config: Samples) -> None:
    """Write the samples that ship in GPU_Traces/, byte for byte."""
    if not config.out:
        raise ConfigError("samples: want --out DIR")
    folder = writable_folder("--out", config.out)
    for cluster, (file, _) in SAMPLES.items():
        write_told(sample(cluster), folder / file)
    tell("note: these are calibrated samples, not the real traces (GPU_Traces/README.md)")
