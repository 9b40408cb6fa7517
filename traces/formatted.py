"""The formatted 19 columns, as RLTune's GPU_Traces have them."""

from pathlib import Path

import numpy as np

from traces.table import Table, read_table, read_text
from traces.trace import GPU_TYPES, Trace, make_trace

FIELDS = (
    "job_id", "submit_time", "wait_time", "run_time", "num_gpus", "cpu_time", "used_memory", "request_cpus",
    "request_time", "request_memory", "status", "user_id", "group_id", "executable", "queue", "partition",
    "preceding_job", "vc_id", "gpu_type",
)  # fmt: skip
"""The columns, in order; comma separated, no header row, lines that begin with ; are comments, -1 = not available."""


def sniff(head: list[str]) -> bool:
    """Recognise the format from a file's first lines."""
    return bool(head) and head[0].count(",") == len(FIELDS) - 1


def read(path: str | Path, text: str | None = None) -> Trace:
    """Read a formatted file; raises TraceError for a malformed row.

    Rows with run_time 0 or -1 are out of scope: the job never ran, or nobody knows how long.
    """
    table = read_table(path, read_text(path) if text is None else text, FIELDS)
    table.check("job_id", table.names("job_id") != "", "a name")
    table.check_unique("job_id")
    run_time = table.numbers("run_time", low=-1)
    table.check("run_time", (run_time >= 0) | (run_time == -1), "a number >= 0, or -1 where it is not known")
    table.gpus("num_gpus")
    table.numbers("submit_time", low=0)
    kept = run_time > 0
    left_out = {"run time 0": int((run_time == 0).sum()), "run time not known (-1)": int((run_time == -1).sum())}
    return make_trace(
        str(path),
        _columns(table.select(kept)),
        format="formatted (19 columns)",
        left_out={reason: rows for reason, rows in left_out.items() if rows},
    )


def _columns(table: Table) -> dict[str, np.ndarray]:
    """Turn the words of the rows in scope into a Trace's columns."""
    gpus, fraction = table.gpus("num_gpus")
    return {
        "job_id": table.names("job_id"),
        "submit": table.numbers("submit_time", low=0),
        "run_time": table.numbers("run_time", low=0),
        "gpus": gpus,
        "gpu_fraction": fraction,
        "request_time": table.numbers("request_time", low=-1),
        "wait": table.numbers("wait_time", low=-1),
        "cpus": table.numbers("request_cpus", low=-1),
        "memory": table.numbers("request_memory", low=-1),
        "cpu_time": table.numbers("cpu_time", low=-1),
        "used_memory": table.numbers("used_memory", low=-1),
        "status": table.names("status"),
        "user": table.names("user_id"),
        "group": table.names("group_id"),
        "executable": table.names("executable"),
        "queue": table.names("queue"),
        "partition": table.names("partition"),
        "preceding_job": table.names("preceding_job"),
        "vc": table.names("vc_id"),
        "gpu_type": gpu_type_names(table.names("gpu_type")),
    }


def gpu_type_names(codes: np.ndarray) -> np.ndarray:
    """Replace the numbers 0 to 4 by the GPU types' names; other words stay as they are."""
    names = {str(code): name for code, name in enumerate(GPU_TYPES)}
    return np.array([names.get(code, code) for code in codes], dtype=object)


def write(trace: Trace, path: str | Path) -> None:
    """Write a Trace as the 19 columns."""
    rows = [",".join(row) for row in zip(*(_words(trace, field) for field in FIELDS), strict=True)]
    Path(path).write_text("\n".join(rows) + "\n")


_TRACE_COLUMN = {
    "submit_time": "submit", "wait_time": "wait", "num_gpus": "gpu_fraction", "request_cpus": "cpus",
    "request_memory": "memory", "user_id": "user", "group_id": "group", "vc_id": "vc",
}  # fmt: skip


def _words(trace: Trace, field: str) -> list[str]:
    """One column of a Trace as it is written in the file."""
    values = getattr(trace, _TRACE_COLUMN.get(field, field))
    if field == "num_gpus" and values is None:
        values = trace.gpus
    if values is None:
        return ["-1"] * len(trace)
    if field == "gpu_type":
        codes = {name: str(code) for code, name in enumerate(GPU_TYPES)}
        return [codes.get(name, name) for name in values]
    return [f"{value:.15g}" if isinstance(value, float) else str(value) for value in values.tolist()]
