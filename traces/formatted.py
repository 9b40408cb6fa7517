"""The formatted 19 columns, as RLTune's GPU_Traces have them."""

from pathlib import Path

import numpy as np

from traces.cells import identity, name, number
from traces.source import Source, header
from traces.table import cut, whole
from traces.trace import GPU_TYPES, Trace

FIELDS = {
    "job_id": identity, "submit_time": number, "wait_time": number, "run_time": number, "num_gpus": number,
    "cpu_time": number, "used_memory": number, "request_cpus": number, "request_time": number,
    "request_memory": number, "status": name, "user_id": name, "group_id": name, "executable": name, "queue": name,
    "partition": name, "preceding_job": name, "vc_id": name, "gpu_type": name,
}  # fmt: skip
"""The columns, in order; comma separated, no header row, lines that begin with ; are comments, -1 = not available."""

_TRACE_COLUMN = {
    "submit_time": "submit", "wait_time": "wait", "num_gpus": "gpu_fraction", "request_cpus": "cpus",
    "request_memory": "memory", "user_id": "user", "group_id": "group", "vc_id": "vc",
}  # fmt: skip
"""What the Trace calls a column, where the names differ."""


def sniff(head: list[str]) -> bool:
    """Recognise the format from a file's first lines."""
    return len(header(head)) == len(FIELDS)


def read(source: Source) -> Trace:
    """Read a formatted file; raises TraceError for a malformed row.

    Rows with run_time 0 or -1 are out of scope: the job never ran, or nobody knows how long.
    """
    table = cut(source, FIELDS)
    table.identify("job_id")
    table.numbers("submit_time")
    run_time = table.known_or_missing("run_time")
    exact = table.gpus("num_gpus")
    table.leave_out("run time 0", run_time == 0)
    table.leave_out("run time not known (-1)", run_time == -1)
    for field in ("wait_time", "cpu_time", "used_memory", "request_cpus", "request_time", "request_memory"):
        table.numbers(field, low=-1)
    columns = {_TRACE_COLUMN.get(field, field): table[field] for field in FIELDS}
    columns |= {"gpus": whole(exact), "gpu_type": gpu_type_names(table["gpu_type"])}
    return table.trace("formatted (19 columns)", columns)


def gpu_type_names(codes: np.ndarray) -> np.ndarray:
    """Replace the numbers 0 to 4 by the GPU types' names; other words stay as they are."""
    names = {str(code): name for code, name in enumerate(GPU_TYPES)}
    return np.array([names.get(code, code) for code in codes], dtype=object)


def write(trace: Trace, path: str | Path) -> None:
    """Write a Trace as the 19 columns: whole numbers without a point, others with as many digits as they need."""
    rows = [",".join(row) for row in zip(*(_words(trace, field) for field in FIELDS), strict=True)]
    Path(path).write_text("\n".join(rows) + "\n", encoding="utf-8")


def _words(trace: Trace, field: str) -> list[str]:
    """One column of a Trace as it is written in the file."""
    values = getattr(trace, _TRACE_COLUMN.get(field, field))
    if field == "num_gpus" and values is None:
        values = trace.gpus
    if values is None:
        return ["-1"] * len(trace)
    if field == "gpu_type":
        codes = {name: str(code) for code, name in enumerate(GPU_TYPES)}
        values = np.array([codes.get(name, name) for name in values], dtype=object)
    return [_word(value) for value in values.tolist()]


def _word(value: object) -> str:
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    word = str(value)
    if "\n" in word or "\r" in word:
        word = " ".join(word.splitlines())
    if any(mark in word for mark in ',"') or word.startswith(";"):
        return '"' + word.replace('"', '""') + '"'
    return word
