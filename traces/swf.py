"""The Standard Workload Format of the Parallel Workloads Archive."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from berth.errors import TraceError
from traces.cells import identity, name, number
from traces.source import Source, read_text
from traces.table import MOST_GPUS, Table, cut, whole
from traces.trace import Trace

FIELDS = {
    "job_number": identity, "submit_time": number, "wait_time": number, "run_time": number,
    "allocated_processors": number, "cpu_time": number, "used_memory": number, "requested_processors": number,
    "requested_time": number, "requested_memory": number, "status": name, "user_id": name, "group_id": name,
    "executable": name, "queue": name, "partition": name, "preceding_job": name, "think_time": name,
}  # fmt: skip
"""The 18 blank-separated fields; -1 = not known."""


@dataclass(frozen=True)
class SwfLog:
    """An SWF file as it stands: its machine and its rows, before anything is left out."""

    table: Table
    max_procs: int  # processors of the machine, 0 where the header does not say
    max_nodes: int  # nodes of the machine, 0 where the header does not say


def sniff(head: list[str]) -> bool:
    """Recognise the format from a file's first lines."""
    return len(head[0].split()) == len(FIELDS) and not any(mark in head[0] for mark in ",|=")


def read_log(path: str | Path, text: str | None = None) -> SwfLog:
    """Read the rows and the machine's size, nothing checked yet."""
    return _log(Source(str(path), read_text(path) if text is None else text))


def _log(source: Source) -> SwfLog:
    table = cut(source, FIELDS, separator=" ")
    return SwfLog(table, _header_number(source.text, "MaxProcs"), _header_number(source.text, "MaxNodes"))


def read(source: Source) -> Trace:
    """Read an SWF file as a Trace: a processor counts as a GPU, max(allocated, requested) of them a job.

    Rows with run time 0 or unknown, and jobs cancelled before they started, are out of scope.
    """
    log = _log(source)
    table = log.table
    table.unique("job_number")
    run_time = table.known_or_missing("run_time")
    table.numbers("submit_time")
    table.leave_out("cancelled before start", (table["status"] == "5") & (run_time <= 0))
    table.leave_out("run time 0", run_time == 0)
    table.leave_out("run time not known (-1)", run_time < 0)
    count = processors(table)
    for field in ("used_memory", "requested_time", "requested_memory"):
        table.numbers(field, low=-1)
    for field in ("wait_time", "cpu_time"):
        table.if_known(field)
    renamed = {"wait_time": "wait", "user_id": "user", "group_id": "group", "job_number": "job_id"}
    renamed |= {"submit_time": "submit", "requested_time": "request_time", "requested_memory": "memory"}
    other = ("run_time", "cpu_time", "used_memory", "status", "executable", "queue", "partition", "preceding_job")
    columns = {new: table[old] for old, new in renamed.items()} | {field: table[field] for field in other}
    return table.trace("SWF", columns | {"gpus": whole(count)}, machine=machine(log))


def machine(log: SwfLog) -> tuple[int, int] | None:
    """Nodes and processors per node as the header tells, or None where it does not."""
    if not log.max_procs and not log.max_nodes:
        return None
    nodes = log.max_nodes or log.max_procs
    return nodes, max(1, (log.max_procs or nodes) // nodes)


def processors(table: Table) -> np.ndarray:
    """Processors of each job: max(allocated, requested); complains where neither is known."""
    fields = ("requested_processors", "allocated_processors")
    count = np.maximum(*(table.numbers(field, low=-1, most=MOST_GPUS) for field in fields))
    table.check(fields[0], count > 0, "a number > 0 here or in allocated_processors")
    return count


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
