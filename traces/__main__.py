"""python -m traces: describe, convert, compare, validate, fit or generate traces."""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.progress import track

from berth.commandline import argument, nearest, option, parse, run, writable_file
from berth.console import console, show_rows, tell
from berth.errors import ConfigError
from traces.files import FORMAT, SKIP, read_told, write_told
from traces.making import Fit, Generate, Samples, fit, generate, samples
from traces.read import FORMATS
from traces.trace import Trace, counted


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
    trace = read_told(config.file, config.format, config.skip_bad_rows)
    for section in sections(trace):
        if section.rows:
            show_rows(section.title, section.header, section.rows)
    if picture:
        from eval.trace_plots import draw_trace

        draw_trace(trace, picture)
        tell(f"picture: {picture}")


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
    write_told(read_told(config.file, config.format, config.skip_bad_rows), out)


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
    a, b = (read_told(file, config.format, config.skip_bad_rows) for file in (config.a, config.b))
    if config.trim:
        a, b = (_trimmed(trace) for trace in (a, b))
    rows = likeness(a, b)
    header = ("figure", Path(a.name).name, Path(b.name).name, "distance")
    show_rows("How far apart", header, [(row.what, *(_figure(value) for value in row[1:])) for row in rows])
    if cluster:
        table = _waits(config, cluster, a, b)
        rule = f"strict, load {config.load:g}, {config.windows} windows of {config.window:,}"
        show_rows(f"Mean wait on {config.cluster}, {rule}",
              ("", Path(a.name).name, Path(b.name).name, "A over B"), table)  # fmt: skip
    if picture:
        from eval.trace_plots import draw_comparison

        draw_comparison(a, b, rows, picture)
        tell(f"picture: {picture}")


def _trimmed(trace: Trace) -> Trace:
    """The trace from its first day with a tenth of the usual number of jobs."""
    from traces.describe import lead_in

    first = lead_in(trace.submit)
    tell(f"{trace.name}: {counted(first, 'job')} of thin first days left out")
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
    medians, ratios = [waits.median for waits in found], [waits.ratio for waits in found]
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
    trace = read_told(config.file, config.format, config.skip_bad_rows)
    found = findings(trace, cluster, config.topology)
    topology = config.topology or cluster.default_topology
    show_rows(
        f"{Path(trace.name).name} on {cluster.name} {topology}", ("", "what", "found"), [tuple(one) for one in found]
    )
    if any(one.level == "contradiction" for one in found):
        sys.exit(1)


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
        tell(f"{__doc__}\n")
        for known, command in COMMANDS.items():
            tell(f"  python -m traces {known:<10} {(command.act.__doc__ or '').splitlines()[0]}")
        tell("\npython -m traces COMMAND --help tells more; docs/formats.md has every format.")
        return
    if name not in COMMANDS:
        raise ConfigError(f"{name}: {nearest(name, COMMANDS)}")
    command = COMMANDS[name]
    config = parse(command.config, sys.argv[2:], command.act.__doc__ or "", f"python -m traces {name}")
    command.act(config)


if __name__ == "__main__":
    run(main)
