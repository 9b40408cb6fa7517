"""Any trace file in, recognised from its content."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from berth.commandline import nearest
from berth.errors import TraceError
from traces import formatted, plain, swf
from traces.table import read_text
from traces.trace import Trace


class Format(NamedTuple):
    """How to recognise a format from a file's first lines, and how to read it."""

    sniff: Callable[[list[str]], bool]
    read: Callable[[str | Path, str], Trace]


FORMATS = {
    "formatted": Format(formatted.sniff, formatted.read),
    "swf": Format(swf.sniff, swf.read),
    "arrivals": Format(plain.sniff_arrivals, plain.read_arrivals),
    "philly_passed": Format(plain.sniff_philly, plain.read_philly),
}
"""Every trace format by name; add one here and `--format` knows it."""


def read_trace(path: str | Path, name: str = "") -> Trace:
    """Read a trace file, plain or .gz, in the named format or the one its content shows; raises TraceError."""
    text = read_text(path)
    if name:
        if name not in FORMATS:
            raise TraceError(f"format {name}: {nearest(name, FORMATS)}")
        return FORMATS[name].read(path, text)
    lines = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(";"))
    head = [line for _, line in zip(range(5), lines, strict=False)]
    if not head:
        raise TraceError(f"{path}: no jobs in it, want at least one")
    for known in FORMATS.values():
        if known.sniff(head):
            return known.read(path, text)
    raise TraceError(f"{path}: first row {head[0][:80]!r} is of no known format; known: {', '.join(FORMATS)}")
