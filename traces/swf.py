"""The Standard Workload Format of the Parallel Workloads Archive."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from berth.errors import TraceError
from traces.table import MOST_GPUS, Table, read_table, read_text
from traces.trace import Trace, make_trace

FIELDS = (
    "job_number", "submit_time", "wait_time", "run_time", "allocated_processors", "cpu_time", "used_memory",
    "requested_processors", "requested_time", "requested_memory", "status", "user_id", "group_id", "executable",
    "queue", "partition", "preceding_job", "think_time",
)  # fmt: skip
"""The 18 blank-separated fields; -1 = not known."""


@dataclass(frozen=True)
class SwfLog:
    """An SWF file as it stands: its machine and its rows, before anything is left out."""

    table: Table
    max_procs: int  # processors of the machine, 0 where the header does not say
    max_nodes: int  # nodes of the machine, 0 where the header does not say


def sniff(head: list[str]) -> bool:
    """Recognise the format from a file's first lines."""
    return bool(head) and len(head[0].split()) == len(FIELDS) and "," not in head[0]


def read_log(path: str | Path, text: str | None = None) -> SwfLog:
    """Read the rows and the machine's size; raises TraceError for a malformed row."""
    text = read_text(path) if text is None else text
    table = read_table(path, text, FIELDS, separator=" ")
    return SwfLog(table, _header_number(text, "MaxProcs"), _header_number(text, "MaxNodes"))


def read(path: str | Path, text: str | None = None) -> Trace:
    """Read an SWF file as a Trace: a processor counts as a GPU, max(allocated, requested) of them a job.

    Rows with run time 0 or unknown, and jobs cancelled before they started, are out of scope.
    """
    log = read_log(path, text)
    table = log.table
    table.check_unique("job_number")
    run_time = table.numbers("run_time", low=-1)
    table.check("run_time", (run_time >= 0) | (run_time == -1), "a number >= 0, or -1 where it is not known")
    table.numbers("submit_time", low=0)
    status = table.names("status")
    cancelled = (status == "5") & (run_time <= 0)
    left_out = {
        "cancelled before start": cancelled,
        "run time 0": (run_time == 0) & ~cancelled,
        "run time not known (-1)": (run_time < 0) & ~cancelled,
    }
    scope = table.select(run_time > 0)
    return make_trace(
        str(path),
        _columns(scope),
        format="SWF",
        left_out={reason: int(rows.sum()) for reason, rows in left_out.items() if rows.any()},
        machine=machine(log),
    )


def machine(log: SwfLog) -> tuple[int, int] | None:
    """Nodes and processors per node as the header tells, or None where it does not."""
    if not log.max_procs and not log.max_nodes:
        return None
    nodes = log.max_nodes or log.max_procs
    return nodes, max(1, (log.max_procs or nodes) // nodes)


def processors(table: Table) -> np.ndarray:
    """Processors of each job: max(allocated, requested); raises TraceError where neither is known."""
    fields = ("requested_processors", "allocated_processors")
    count = np.maximum(*(table.numbers(field, low=-1) for field in fields))
    table.check(fields[0], count > 0, "a number > 0 here or in allocated_processors")
    for field in fields:
        table.check(field, table.numbers(field, low=-1) <= MOST_GPUS, f"a number <= {MOST_GPUS:,}")
    return np.ceil(count).astype(np.int32)


def _columns(table: Table) -> dict[str, np.ndarray]:
    """Turn the rows in scope into a Trace's columns."""
    return {
        "job_id": table.names("job_number"),
        "submit": table.numbers("submit_time", low=0),
        "run_time": table.numbers("run_time", low=0),
        "gpus": processors(table),
        "request_time": table.numbers("requested_time", low=-1),
        "wait": table.numbers("wait_time", low=-1),
        "memory": table.numbers("requested_memory", low=-1),
        "cpu_time": table.numbers("cpu_time", low=-1),
        "used_memory": table.numbers("used_memory", low=-1),
        "status": table.names("status"),
        "user": table.names("user_id"),
        "group": table.names("group_id"),
        "executable": table.names("executable"),
        "queue": table.names("queue"),
        "partition": table.names("partition"),
        "preceding_job": table.names("preceding_job"),
    }


def _header_number(text: str, key: str) -> int:
    """The first number after a header line's key, 0 where there is none; of several such lines the last counts."""
    found = re.findall(rf"^;\s*{key}\s*:\s*(\d+)", text, re.MULTILINE)
    return int(found[-1]) if found else 0


def require_machine(path: str | Path, log: SwfLog) -> tuple[int, int]:
    """The machine, or a TraceError that says which header lines are missing."""
    found = machine(log)
    if found is None:
        raise TraceError(
            f"{path}: no header line '; MaxProcs: N' or '; MaxNodes: N', want one (the size of the machine)"
        )
    return found
