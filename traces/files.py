"""Trace files read or written by a program, which tells the user about it."""

from pathlib import Path

from rich.markup import escape

from berth.commandline import written_whole
from berth.console import console, tell
from traces.formatted import write
from traces.parquet import write_parquet
from traces.read import FORMATS, read_trace
from traces.trace import Trace, counted

FORMAT = f"format of the trace; default: recognised from its content; one of {', '.join(FORMATS)}"
SKIP = "leave malformed rows out and list them, instead of stopping"


def read_told(file: str, form: str, skip_bad_rows: bool) -> Trace:
    """Read a trace, and tell how."""
    with console().status(f"reading {escape(file)}"):
        trace = read_trace(file, form, skip_bad_rows)
    for sentence in trace.sentences():
        tell(sentence)
    return trace


def write_told(trace: Trace, out: Path) -> None:
    """Write a trace by the name's ending, and tell; the file is there whole or not at all."""
    with written_whole(out) as begun:
        (write_parquet if out.suffix == ".parquet" else write)(trace, begun)
    tell(f"{out}: {counted(len(trace), 'job')}")
