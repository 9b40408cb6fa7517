"""python -m traces: describe, convert, compare, validate, fit or generate traces."""

import dataclasses
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.markup import escape
from rich.progress import Progress, track
from rich.table import Table

from berth.commandline import argument, nearest, option, parse, printable, run, writable_file, writable_folder
from berth.errors import ConfigError
from eval.tables import console
from traces.generate import RECIPES
from traces.parametric import ARRIVALS, RUN_TIMES, SYNTHETIC, Shape, generate_parametric
from traces.read import FORMATS, read_trace
from traces.table import MOST_GPUS
from traces.trace import Trace, counted

FORMAT = f"format of the trace; default: recognised from its content; one of {', '.join(FORMATS)}"
SKIP = "leave malformed rows out and list them, instead of stopping"


@dataclass(frozen=True)
class Describe:
    """What `describe` takes."""

    file: str = argument("trace file, plain or .gz", "FILE")
    format: str = option("", FORMAT, choices=tuple(FORMATS))
    skip_bad_rows: bool = option(False, SKIP)
    plot: str = option("", "draw it into a picture", metavar="FILE.png")


def describe(config: Describe) -> None:
    """Say what is in a trace: jobs, span, arrivals, hours of the day, sizes, run times, users, what is missing."""
    from traces.describe import describe as sections

    picture = writable_file("--plot", config.plot, ".png") if config.plot else None
    trace = _read(config.file, config.format, config.skip_bad_rows)
    for section in sections(trace):
        if section.rows:
            _show(section.title, section.header, section.rows)
    if picture:
        from eval.trace_plots import draw_trace

        draw_trace(trace, picture)
        _tell(f"picture: {picture}")


@dataclass(frozen=True)
class Convert:
    """What `convert` takes."""

    file: str = argument("trace file, plain or .gz", "FILE")
    out: str = option("", "needed; the 19 columns, or .parquet, which keeps everything", "", "OUT.csv|parquet", "-o")
    format: str = option("", FORMAT, choices=tuple(FORMATS))
    skip_bad_rows: bool = option(False, SKIP)


def convert(config: Convert) -> None:
    """Write a trace as the formatted 19 columns (.csv), or with every column exactly (.parquet)."""
    if not config.out:
        raise ConfigError("convert: want -o OUT.csv (the 19 columns) or -o OUT.parquet (everything)")
    out = writable_file("-o", config.out, ".csv", ".parquet")
    if out.exists() and Path(config.file).exists() and out.samefile(config.file):
        raise ConfigError(f"-o {out}: that is the file to be read, want another")
    _write(_read(config.file, config.format, config.skip_bad_rows), out)


@dataclass(frozen=True)
class Compare:
    """What `compare` takes."""

    a: str = argument("one trace", "A")
    b: str = argument("the other", "B")
    format: str = option("", "format of both traces; default: recognised from their content", choices=tuple(FORMATS))
    skip_bad_rows: bool = option(False, SKIP)
    cluster: str = option("", "compare waits under fcfs and sjf too, on philly, helios, alibaba, synthetic or a file")
    load: float = option(0.95, "offered load of each window, with --cluster")
    windows: int = option(10, "windows, spread evenly over each trace, with --cluster")
    window: int = option(5000, "jobs of a window, with --cluster")
    pools: bool = option(False, "keep the traces' pools, with --cluster; default: one pool over all nodes for both")
    trim: bool = option(False, "leave out the first days of each trace that have hardly a job")
    plot: str = option("", "draw both into a picture", metavar="FILE.png")


def compare(config: Compare) -> None:
    """Say how far apart two traces are: Kolmogorov-Smirnov distances, rank correlations, waits on a cluster."""
    from envs.clusters import find_cluster
    from traces.compare import compare as likeness

    picture = writable_file("--plot", config.plot, ".png") if config.plot else None
    if config.windows < 1 or config.window < 2:
        raise ConfigError(f"--windows {config.windows} --window {config.window}: want at least 1 and 2")
    if not 0 <= config.load < float("inf"):
        raise ConfigError(f"--load {config.load}: want a number > 0, or 0 for the traces' own arrivals")
    cluster = find_cluster(config.cluster) if config.cluster else None
    a, b = (_read(file, config.format, config.skip_bad_rows) for file in (config.a, config.b))
    if config.trim:
        a, b = (_trimmed(trace) for trace in (a, b))
    rows = likeness(a, b)
    header = ("figure", Path(a.name).name, Path(b.name).name, "distance")
    _show("How far apart", header, [(row.what, *(_figure(value) for value in row[1:])) for row in rows])
    if cluster:
        table = _waits(config, cluster, a, b)
        rule = f"strict, load {config.load:g}, {config.windows} windows of {config.window:,}"
        _show(f"Mean wait on {config.cluster}, {rule}",
              ("", Path(a.name).name, Path(b.name).name, "A over B"), table)  # fmt: skip
    if picture:
        from eval.trace_plots import draw_comparison

        draw_comparison(a, b, rows, picture)
        _tell(f"picture: {picture}")


def _trimmed(trace: Trace) -> Trace:
    """The trace from its first day with a tenth of the usual number of jobs."""
    from traces.fit import lead_in

    first = lead_in(trace.submit)
    _tell(f"{trace.name}: {counted(first, 'job')} of thin first days left out")
    return trace.select(slice(first, None))


def _waits(config: Compare, cluster: Any, a: Trace, b: Trace) -> list[tuple[str, ...]]:
    """The waits of both traces, window by window behind a progress bar."""
    import numpy as np

    from eval.waits import Waits, one_pool, window_waits

    found = []
    for trace in (a, b):
        asked = trace if config.pools else one_pool(trace)
        runs = window_waits(asked, cluster, config.load, config.windows, config.window)
        steps = track(runs, Path(trace.name).name, config.windows, console=console(), transient=True)
        found.append(Waits(*np.array(list(steps)).T))
    rows = []
    for name in ("fcfs", "sjf"):
        means = [float(getattr(waits, name).mean()) for waits in found]
        rows.append((f"{name}, s", *(f"{mean:,.0f}" for mean in means), _over(*means)))
    with np.errstate(divide="ignore", invalid="ignore"):
        medians = [float(np.median(waits.fcfs / waits.sjf)) for waits in found]
        ratios = [float(waits.fcfs.mean() / waits.sjf.mean()) for waits in found]
    for name, values in (("fcfs : sjf, median window", medians), ("fcfs : sjf", ratios)):
        rows.append((name, *(_figure(value if math.isfinite(value) else None) for value in values), _over(*values)))
    return rows


def _over(a: float, b: float) -> str:
    """How many times b a number is, where that can be said."""
    if not (math.isfinite(a) and math.isfinite(b) and b):
        return "-"
    return f"{a / b:.3f} ({a / b - 1:+.1%})"


@dataclass(frozen=True)
class Validate:
    """What `validate` takes."""

    file: str = argument("trace file, plain or .gz", "FILE")
    cluster: str = option(
        "", "needed; philly, helios, alibaba, synthetic, or NAME.toml, LOG.swf[.gz], MACHINES.csv[.gz]"
    )
    topology: str = option("", "one of the cluster's topologies; default: its first")
    format: str = option("", FORMAT, choices=tuple(FORMATS))
    skip_bad_rows: bool = option(False, SKIP)


def validate(config: Validate) -> None:
    """Look for contradictions between a trace and a cluster; exit code 1 where there is one."""
    from envs.clusters import CLUSTERS, find_cluster
    from envs.validate import validate as findings

    if not config.cluster:
        raise ConfigError(f"validate: want --cluster with one of {', '.join(CLUSTERS)}, or a file (docs/clusters.md)")
    cluster = find_cluster(config.cluster)
    trace = _read(config.file, config.format, config.skip_bad_rows)
    found = findings(trace, cluster, config.topology)
    topology = config.topology or cluster.default_topology
    _show(f"{Path(trace.name).name} on {cluster.name} {topology}", ("", "what", "found"), [tuple(one) for one in found])
    if any(one.level == "contradiction" for one in found):
        sys.exit(1)


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
    from traces.recipe import write_recipe
    from traces.tune import tune

    if not config.out:
        raise ConfigError("fit: want -o RECIPE.json")
    if config.tries < 0:
        raise ConfigError(f"--tries {config.tries}: want a number >= 0")
    out = writable_file("-o", config.out, ".json")
    vcs, types = _shares("--vcs", config.vcs), _shares("--gpu_types", config.gpu_types)
    if vcs and types:
        raise ConfigError("--vcs and --gpu_types: want one of them")
    trace = _read(config.file, config.format, config.skip_bad_rows)
    with Progress(console=console(), transient=True) as bar:
        task = bar.add_task("fitting", total=ROUNDS + config.tries)
        recipe = fitted(trace, out.stem, vcs, types, lambda: bar.advance(task))
        if config.tries:
            recipe = tune(recipe, trace, config.tries, progress=lambda: bar.advance(task))
    write_recipe(recipe, out)
    _tell(f"{out}: a recipe of {len(trace):,} jobs; python -m traces generate --like {out} -o SAMPLE.csv")


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
    from traces.generate import generate as calibrated
    from traces.recipe import read_recipe

    if not config.out:
        raise ConfigError("generate: want -o OUT.csv (the 19 columns) or -o OUT.parquet")
    if not 2 <= config.jobs <= 10_000_000:
        raise ConfigError(f"--jobs {config.jobs}: want a number from 2 to 10,000,000")
    if config.seed < 0:
        raise ConfigError(f"--seed {config.seed}: want a number >= 0")
    out = writable_file("-o", config.out, ".csv", ".parquet")
    if config.like == "synthetic":
        _write(generate_parametric(_shape(config), config.jobs, config.seed, "synthetic"), out)
        return
    if config.like not in RECIPES and not config.like.endswith(".json"):
        raise ConfigError(f"--like {config.like}: {nearest(config.like, ['synthetic', *RECIPES])}; or a RECIPE.json")
    idle = [one.name for one in dataclasses.fields(Generate) if one.name not in ("like", "out", "jobs", "seed")]
    idle = [name for name in idle if getattr(config, name) != getattr(Generate(), name)]
    if idle:
        raise ConfigError(f"--{idle[0]} does nothing with --like {config.like}: only --like synthetic takes it")
    recipe = read_recipe(RECIPES.get(config.like, Path(config.like)))
    _write(calibrated(recipe, config.jobs, config.seed, config.like), out)


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
            shares[name.strip()] = float(number)
        except ValueError:
            colon = ""
        if not colon or not name.strip() or not 0 < shares[name.strip()] < float("inf"):
            raise ConfigError(f"{flag} {words}: {part!r}, want names with numbers > 0 like a:1,b:0.5")
    return shares


@dataclass(frozen=True)
class Samples:
    """What `samples` takes."""

    out: str = option("GPU_Traces", "folder to write to", metavar="DIR")


def samples(config: Samples) -> None:
    """Write the samples that ship in GPU_Traces/, byte for byte."""
    from traces.generate import SAMPLES, sample

    folder = writable_folder("--out", config.out)
    for cluster, (file, _) in SAMPLES.items():
        _write(sample(cluster), folder / file)


def _read(file: str, form: str, skip_bad_rows: bool) -> Trace:
    """Read a trace, and tell how."""
    with console().status(f"reading {escape(file)}"):
        trace = read_trace(file, form, skip_bad_rows)
    for sentence in trace.sentences():
        _tell(sentence)
    return trace


def _write(trace: Trace, out: Path) -> None:
    """Write a trace by the name's ending; the file is there whole or not at all."""
    from traces.formatted import write
    from traces.parquet import write_parquet

    begun = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        (write_parquet if out.suffix == ".parquet" else write)(trace, begun)
        begun.replace(out)
    except OSError as trouble:
        raise ConfigError(f"{out}: {trouble.strerror}, want a place that can be written to") from None
    finally:
        begun.unlink(missing_ok=True)
    _tell(f"{out}: {counted(len(trace), 'job')}")


def _tell(text: str) -> None:
    console().print(printable(text), markup=False, highlight=False, soft_wrap=True)


def _show(title: str, header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print a table; columns of numbers stand to the right."""
    table = Table(title=escape(title), title_justify="left", header_style="")
    for i, name in enumerate(header):
        numbers = i > 0 and all(row[i][:1].isdigit() or row[i][:1] in "-+" for row in rows)
        table.add_column(escape(name), justify="right" if numbers else "left")
    for row in rows:
        table.add_row(*(escape(printable(word)) for word in row))
    console().print(table)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4f}" if abs(value) < 100 else f"{value:,.0f}"


class Command(NamedTuple):
    """A subcommand: what it takes and what it does."""

    config: type[Any]
    act: Callable[[Any], None]


COMMANDS = {
    "describe": Command(Describe, describe),
    "convert": Command(Convert, convert),
    "compare": Command(Compare, compare),
    "validate": Command(Validate, validate),
    "fit": Command(Fit, fit),
    "generate": Command(Generate, generate),
    "samples": Command(Samples, samples),
}
"""Every subcommand by name."""


def main() -> None:
    """Run the subcommand that is named first."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in ("-h", "--help"):
        _tell(f"{__doc__}\n")
        for known, command in COMMANDS.items():
            _tell(f"  python -m traces {known:<10} {(command.act.__doc__ or '').splitlines()[0]}")
        _tell("\npython -m traces COMMAND --help tells more; docs/formats.md has every format.")
        return
    if name not in COMMANDS:
        raise ConfigError(f"{name}: {nearest(name, COMMANDS)}")
    command = COMMANDS[name]
    config = parse(command.config, sys.argv[2:], command.act.__doc__ or "", f"python -m traces {name}")
    command.act(config)


if __name__ == "__main__":
    run(main)
