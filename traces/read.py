"""Any trace file in, recognised from its content."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from berth.commandline import nearest
from berth.errors import TraceError
from traces import alibaba, formatted, helios, machines, openb, philly, plain, slurm, swf
from traces.parquet import MAGIC, read_parquet
from traces.source import Source, as_text, first_lines, read_bytes
from traces.trace import Trace


class Format(NamedTuple):
    """How to recognise a format from a file's first lines that are not blank, and how to read it."""

    sniff: Callable[[list[str]], bool]
    read: Callable[[Source], Trace]


FORMATS = {
    "philly_log": Format(philly.sniff_log, philly.read_log),
    "formatted": Format(formatted.sniff, formatted.read),
    "swf": Format(swf.sniff, swf.read),
    "arrivals": Format(plain.sniff, plain.read),
    "philly_passed": Format(philly.sniff_passed, philly.read_passed),
    "helios": Format(helios.sniff, helios.read),
    "pai_tasks": Format(alibaba.sniff_tasks, alibaba.read_tasks),
    "pai_jobs": Format(alibaba.sniff_jobs, alibaba.read_jobs),
    "pai_plain": Format(alibaba.sniff_plain, alibaba.read_plain),
    "pai_estimated": Format(alibaba.sniff_estimated, alibaba.read_estimated),
    "spot": Format(alibaba.sniff_spot, alibaba.read_spot),
    "openb": Format(openb.sniff, openb.read),
    "sacct": Format(slurm.sniff_sacct, slurm.read_sacct),
    "jobcomp": Format(slurm.sniff_jobcomp, slurm.read_jobcomp),
}
"""Every trace format of text by name; add one here and `--format` knows it. Parquet is known by its first bytes."""


def read_trace(path: str | Path, name: str = "", skip_bad_rows: bool = False) -> Trace:
    """Read a trace file, plain or .gz, in the named format or the one its content shows; raises TraceError.

    `skip_bad_rows` leaves malformed rows out, and the Trace lists them.
    """
    if name and name not in FORMATS:
        raise TraceError(f"format {name}: {nearest(name, FORMATS)}")
    raw = read_bytes(path)
    if raw[:4] == MAGIC and name:
        raise TraceError(f"{path}: a Parquet file, want it without --format {name}")
    if raw[:4] == MAGIC:
        return read_parquet(path, raw)
    source = Source(str(path), as_text(path, raw), skip_bad_rows)
    del raw
    head = first_lines(source.text)
    if not head:
        raise TraceError(f"{path}: no jobs in it, want at least one")
    if name:
        return FORMATS[name].read(source)
    for known in FORMATS.values():
        if known.sniff(head):
            return known.read(source)
    if machines.recognise(head):
        raise TraceError(f"{path}: a list of machines, want jobs; as a cluster it is --cluster {path}")
    raise TraceError(
        f"{path}: first row {head[0][:80]!r} is of no known format; known: {', '.join(FORMATS)} "
        "(docs/formats.md); --format NAME reads it as one of them all the same"
    )
