"""The short CSVs in which public job lists are passed on: Venus and PAI (4 columns), Philly's passed jobs (5)."""

from datetime import datetime
from pathlib import Path

import numpy as np

from traces.table import Table, read_table, read_text
from traces.trace import Trace, make_trace

ARRIVAL_FIELDS = ("job_id", "arrival_s", "service_sec", "gpu_count")
PHILLY_FIELDS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")


def sniff_arrivals(head: list[str]) -> bool:
    """Recognise the 4 columns by their header row."""
    return bool(head) and head[0].strip() == ",".join(ARRIVAL_FIELDS)


def sniff_philly(head: list[str]) -> bool:
    """Recognise the 5 columns by their header row."""
    return bool(head) and head[0].strip() == ",".join(PHILLY_FIELDS)


def read_arrivals(path: str | Path, text: str | None = None) -> Trace:
    """Read job_id, arrival_s, service_sec, gpu_count; raises TraceError for a malformed row."""
    table = read_table(path, read_text(path) if text is None else text, ARRIVAL_FIELDS)
    table.check_unique("job_id")
    columns = _sizes(table, "service_sec", "gpu_count")
    columns |= {"job_id": table.names("job_id"), "submit": table.numbers("arrival_s", low=0)}
    return _in_scope(path, columns, "job list (4 columns)")


def read_philly(path: str | Path, text: str | None = None) -> Trace:
    """Read Philly's passed jobs: timestamp, duration, num_gpus, gpu_time, cluster (the virtual cluster).

    Times count from the first job's timestamp; the file names no jobs, so they are called by their line.
    """
    table = read_table(path, read_text(path) if text is None else text, PHILLY_FIELDS)
    stamps = np.array([_seconds(word) for word in table.names("timestamp")])
    table.check("timestamp", np.isfinite(stamps), "a time like 2017-10-03 14:05:59")
    columns = _sizes(table, "duration", "num_gpus")
    columns |= {
        "job_id": np.array([f"line{line}" for line in table.lines], dtype=object),
        "submit": stamps - stamps.min(initial=np.inf),
        "vc": table.names("cluster"),
    }
    return _in_scope(path, columns, "Philly passed jobs (5 columns)")


def _seconds(word: str) -> float:
    """Seconds since 1970 of a naive time, NaN where it is none."""
    try:
        return (datetime.fromisoformat(word) - datetime(1970, 1, 1)).total_seconds()
    except (ValueError, TypeError):
        return float("nan")


def _sizes(table: Table, run_time: str, gpus: str) -> dict[str, np.ndarray]:
    whole, exact = table.gpus(gpus)
    return {"run_time": table.numbers(run_time, low=0), "gpus": whole, "gpu_fraction": exact}


def _in_scope(path: str | Path, columns: dict[str, np.ndarray], form: str) -> Trace:
    ran = columns["run_time"] > 0
    left_out = {"run time 0": int((~ran).sum())} if not ran.all() else {}
    return make_trace(str(path), {key: values[ran] for key, values in columns.items()}, format=form, left_out=left_out)
