"""python -m traces: describe, convert, compare, validate, fit or generate traces."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.markup import escape
from rich.progress import track
from rich.table import Table

from berth.commandline import argument, nearest, option, parse, run, writable_file
from berth.errors import ConfigError
from eval.tables import console
from traces.read import FORMATS, read_trace
from traces.trace import Trace

FORMAT = "format of the trace; default: recognised from its content"
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
    out: str = option("", "where to: the 19 columns, or .parquet, which keeps everything", "", "OUT.csv|parquet", "-o")
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
    cluster: str = option("", "compare the waits under fcfs and sjf on this cluster too")
    load: float = option(0.95, "offered load of each window, with --cluster")
    windows: int = option(10, "windows, spread evenly over each trace, with --cluster")
    window: int = option(5000, "jobs of a window, with --cluster")
    pools: bool = option(False, "keep the traces' pools, with --cluster; default: one pool over all nodes for both")
    plot: str = option("", "draw both into a picture", metavar="FILE.png")


def compare(config: Compare) -> None:
    """Say how far apart two traces are: Kolmogorov-Smirnov distances, rank correlations, waits on a cluster."""
    from traces.compare import Likeness
    from traces.compare import compare as likeness

    picture = writable_file("--plot", config.plot, ".png") if config.plot else None
    if config.windows < 1 or config.window < 2:
        raise ConfigError(f"--windows {config.windows} --window {config.window}: want at least 1 and 2")
    a, b = (_read(file, config.format, config.skip_bad_rows) for file in (config.a, config.b))
    rows = likeness(a, b)
    header = ("figure", Path(a.name).name, Path(b.name).name, "distance")
    _show("How far apart", header, [(row.what, *(_figure(value) for value in row[1:])) for row in rows])
    if config.cluster:
        table = _waits(config, a, b)
        rule = f"strict, load {config.load:g}, {config.windows} windows of {config.window:,}"
        _show(f"Mean wait on {config.cluster}, {rule}",
              ("", Path(a.name).name, Path(b.name).name, "A over B"), table)  # fmt: skip
    if picture:
        from eval.trace_plots import draw_comparison

        draw_comparison(a, b, [row for row in rows if isinstance(row, Likeness)], picture)
        _tell(f"picture: {picture}")


def _waits(config: Compare, a: Trace, b: Trace) -> list[tuple[str, ...]]:
    """The waits of both traces, window by window behind a progress bar."""
    import numpy as np

    from envs.clusters import find_cluster
    from eval.waits import Waits, one_pool, window_waits

    cluster = find_cluster(config.cluster)
    found = []
    for trace in (a, b):
        asked = trace if config.pools else one_pool(trace)
        runs = window_waits(asked, cluster, config.load, config.windows, config.window)
        steps = track(runs, Path(trace.name).name, config.windows, console=console(), transient=True)
        found.append(Waits(*np.array(list(steps)).T))
    first, second = found
    rows = []
    for name in ("fcfs", "sjf"):
        means = [float(getattr(waits, name).mean()) for waits in found]
        rows.append((f"{name}, s", *(f"{mean:,.0f}" for mean in means), f"{means[0] / means[1]:.3f}"))
    ratio = first.ratio / second.ratio
    rows.append(("fcfs : sjf", f"{first.ratio:.3f}", f"{second.ratio:.3f}", f"{ratio:.3f} ({ratio - 1:+.1%})"))
    return rows


@dataclass(frozen=True)
class Validate:
    """What `validate` takes."""

    file: str = argument("trace file, plain or .gz", "FILE")
    cluster: str = option("", "a cluster's name, or a file NAME.toml, LOG.swf[.gz] or MACHINES.csv (docs/clusters.md)")
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
    finally:
        begun.unlink(missing_ok=True)
    _tell(f"{out}: {len(trace):,} jobs")


def _tell(text: str) -> None:
    console().print(text, markup=False, highlight=False, soft_wrap=True)


def _show(title: str, header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print a table; columns of numbers stand to the right."""
    table = Table(title=escape(title), title_justify="left", header_style="")
    for i, name in enumerate(header):
        numbers = i > 0 and all(row[i][:1].isdigit() or row[i][:1] in "-+" for row in rows)
        table.add_column(escape(name), justify="right" if numbers else "left")
    for row in rows:
        table.add_row(*(escape(word) for word in row))
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
