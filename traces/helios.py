"""SenseTime Helios: cluster_log.csv, one row per job."""

import numpy as np

from traces.cells import identity, moment, name, optional_number
from traces.clock import from_midnight
from traces.source import Source, header
from traces.table import Table, cut, whole
from traces.trace import MISSING, Trace

FIELDS = {
    "job_id": identity, "user": name, "vc": name, "gpu_num": optional_number, "cpu_num": optional_number,
    "node_num": optional_number, "state": name, "submit_time": moment, "start_time": moment, "end_time": moment,
    "duration": optional_number, "queue": optional_number,
}  # fmt: skip


def sniff(head: list[str]) -> bool:
    """Recognise the log by its header row."""
    return set(FIELDS) <= set(header(head))


def read(source: Source) -> Trace:
    """Read the log; CPU jobs, jobs with neither start nor duration, and jobs with no end are out of scope."""
    table = cut(source, FIELDS)
    table.identify("job_id")
    exact = table["gpu_num"]
    table.leave_out("CPU-only jobs", exact == 0)
    submit, start, end = (table.times(field, missing=True) for field in ("submit_time", "start_time", "end_time"))
    table.leave_out("never started (no start time)", (start == MISSING) & (table["duration"] <= 0))
    table.leave_out("no submit time", submit == MISSING)
    run_time = _run_time(table, start, end)
    table.leave_out("no end time", run_time == MISSING)
    table.leave_out("run time 0", run_time == 0)
    table.gpus("gpu_num")
    for field in ("cpu_num", "queue"):
        table.known_or_missing(field)
    counted, origin = from_midnight(submit, table.scope)
    wait = np.where(start == MISSING, table["queue"], table.wait(start, submit))
    columns = {
        "job_id": table["job_id"],
        "submit": counted,
        "run_time": run_time,
        "gpus": whole(exact),
        "gpu_fraction": exact,
        "wait": wait,
        "cpus": table["cpu_num"],
        "status": table["state"],
        "user": table["user"],
        "vc": table["vc"],
    }
    return table.trace("Helios cluster_log", columns, origin=origin)


def _run_time(table: Table, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """The duration column, or end - start where that is missing; -1 where neither is known."""
    given = table.known_or_missing("duration")
    both = (start != MISSING) & (end != MISSING)
    table.check("end_time", ~both | (end >= start), "a time that is not before start_time")
    return np.where(given != MISSING, given, np.where(both, end - start, MISSING))
