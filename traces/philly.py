"""Microsoft Philly: the original log (JSON), or the passed jobs in 5 columns."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from berth.errors import TraceError
from traces.cells import Names, moment, name, number, optional_name, seconds
from traces.clock import from_midnight
from traces.source import Source, header
from traces.table import Table, cut, whole
from traces.trace import MISSING, Trace

PASSED = {"timestamp": moment, "duration": number, "num_gpus": number, "gpu_time": number, "cluster": name}

KEYS = ("status", "vc", "jobid", "attempts", "submitted_time", "user")
"""What every entry of the log has."""

CLOCK_CHANGE = 3600.0
"""Times are local, without a zone: when clocks go back, an attempt may seem to end up to an hour before it starts."""


def sniff_passed(head: list[str]) -> bool:
    """Recognise the 5 columns by their header row."""
    return header(head) == list(PASSED)


def read_passed(source: Source) -> Trace:
    """Read the passed jobs: timestamp, duration, num_gpus, gpu_time, cluster (the virtual cluster).

    The file names no jobs, so they are called by their line.
    """
    table = cut(source, PASSED)
    stamps = table.times("timestamp")
    run_time = table.numbers("duration")
    exact = table.gpus("num_gpus")
    table.numbers("gpu_time")
    table.leave_out("run time 0", run_time == 0)
    submit, origin = from_midnight(stamps, table.scope)
    columns = {
        "job_id": np.array([f"line{line}" for line in table.lines], dtype=object),
        "submit": submit,
        "run_time": run_time,
        "gpus": whole(exact),
        "gpu_fraction": exact,
        "vc": table["cluster"],
    }
    return table.trace("Philly passed jobs (5 columns)", columns, origin=origin)


def sniff_log(head: list[str]) -> bool:
    """Recognise the JSON list by how it opens."""
    return head[0].lstrip().startswith("[")


def read_log(source: Source) -> Trace:
    """Read cluster_job_log: run time is the sum of a job's attempts, GPUs those of its largest attempt.

    Jobs without an attempt never started; jobs one of whose attempts has no end are left out too.
    """
    entries = list(_entries(source))
    records = [_Record(entry) for _, entry in entries]
    lines = np.array([line for line, _ in entries], np.int64)

    def _word(row: int, field: str) -> str:
        if field == "entry":
            return records[row].fault
        return json.dumps(records[row].entry.get(field))[:80]

    columns = {
        "jobid": _names([record.text("jobid") for record in records]),
        "status": _names([record.text("status") for record in records]),
        "vc": _names([record.text("vc") for record in records]),
        "user": _names([record.text("user") for record in records]),
        "submitted_time": moment([record.text("submitted_time") for record in records], Names()),
        "start": np.array([record.start for record in records], float),
        "run_time": np.array([record.run_time for record in records], float),
        "gpus": np.array([record.gpus for record in records], float),
    }
    table = Table(source, columns, lines, _word)
    table.check("entry", np.array([not record.fault for record in records], bool), f"an object with {', '.join(KEYS)}")
    return _log_trace(table, records)


def _log_trace(table: Table, records: list["_Record"]) -> Trace:
    """Leave out what never ran, check the rest, and make the Trace."""
    table.check("jobid", table["jobid"] != str(MISSING), "a name")
    table.unique("jobid")
    table.leave_out("never started (no attempts)", np.array([not record.attempts for record in records], bool))
    table.leave_out(
        "never started (an attempt has no start time)", np.array([record.no_start for record in records], bool)
    )
    table.leave_out("no end time", np.array([record.no_end for record in records], bool))
    submitted = table.times("submitted_time", missing=True)
    table.leave_out("no submission time", submitted == MISSING)
    table.check("attempts", ~np.isnan(table["run_time"]), "times like 2017-10-07 01:12:09")
    backwards = np.array([record.backwards for record in records], float)
    table.leave_out(
        "an attempt ends before it starts (clocks went back)", (backwards > 0) & (backwards <= CLOCK_CHANGE)
    )
    table.check("attempts", backwards <= 0, "attempts that end after they start")
    table.leave_out("no GPUs listed", table["gpus"] == 0)
    table.leave_out("run time 0", table["run_time"] == 0)
    submit, origin = from_midnight(submitted, table.scope)
    columns = {
        "job_id": table["jobid"],
        "submit": submit,
        "run_time": table["run_time"],
        "gpus": whole(table["gpus"]),
        "wait": table.wait(table["start"], submitted),
        "status": table["status"],
        "user": table["user"],
        "vc": table["vc"],
    }
    return table.trace("Philly cluster_job_log (JSON)", columns, origin=origin)


class _Record:
    """What one entry of the log says, with its faults."""

    def __init__(self, entry: Any) -> None:
        self.entry = entry if isinstance(entry, dict) else {}
        self.attempts: list[dict[str, Any]] = []
        self.run_time = self.start = float("nan")
        self.gpus = 0.0
        self.backwards = 0.0
        self.no_start = self.no_end = False
        self.fault = self._fault(entry)
        if self.fault:
            return
        self.attempts = self.entry["attempts"] or []
        if not self.attempts:
            return
        starts = [seconds(_text(attempt.get("start_time"))) for attempt in self.attempts]
        ends = [seconds(_text(attempt.get("end_time"))) for attempt in self.attempts]
        self.no_start = MISSING in starts
        self.no_end = MISSING in ends
        self.start = starts[0]
        self.backwards = max(start - end for start, end in zip(starts, ends, strict=True))
        self.run_time = sum(ends) - sum(starts)
        self.gpus = float(max(sum(len(part["gpus"]) for part in attempt["detail"]) for attempt in self.attempts))

    def text(self, key: str) -> str:
        """A value as a word."""
        return _text(self.entry.get(key))

    def _fault(self, entry: Any) -> str:
        """What is wrong with the shape of an entry, or nothing."""
        if not isinstance(entry, dict):
            return f"{json.dumps(entry)[:60]}"
        lacking = [key for key in KEYS if key not in entry]
        if lacking:
            return f"an entry without {', '.join(lacking)}"
        attempts = entry["attempts"]
        if attempts is not None and not isinstance(attempts, list):
            return f"attempts {json.dumps(attempts)[:60]}"
        for attempt in attempts or []:
            details = attempt.get("detail") if isinstance(attempt, dict) else None
            if not isinstance(details, list):
                return f"an attempt without a list of detail: {json.dumps(attempt)[:60]}"
            if not all(isinstance(part, dict) and isinstance(part.get("gpus"), list) for part in details):
                return f"a detail without a list of gpus: {json.dumps(details)[:60]}"
        return ""


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _names(words: list[str]) -> np.ndarray:
    return optional_name(words, Names())


def _entries(source: Source) -> Iterator[tuple[int, Any]]:
    """Every entry of a JSON list with the line it begins on; raises TraceError for text that is cut off or no JSON."""
    text, decoder = source.text, json.JSONDecoder()
    at = _after_blanks(text, 0)
    line, counted = 1, 0
    if text[at : at + 1] != "[":
        raise TraceError(f"{source.path}:1: {text[at : at + 20]!r}, want a JSON list: [")
    at = _after_blanks(text, at + 1)
    first = True
    while text[at : at + 1] != "]":
        line, counted = line + text.count("\n", counted, at), at
        if not first:
            if text[at : at + 1] != ",":
                raise TraceError(_broken(source, line, text, at))
            at = _after_blanks(text, at + 1)
            line, counted = line + text.count("\n", counted, at), at
        try:
            entry, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):  # also a number of thousands of digits
            raise TraceError(_broken(source, line, text, at)) from None
        yield line, entry
        at = _after_blanks(text, at)
        first = False
    rest = _after_blanks(text, at + 1)
    if rest < len(text):
        raise TraceError(f"{source.path}: {text[rest : rest + 20]!r} after the list's end, want nothing there")


def _broken(source: Source, line: int, text: str, at: int) -> str:
    if at >= len(text):
        return f"{source.path}:{line}: the JSON list is cut off, want a whole file that ends in ]"
    return (
        f"{source.path}:{line}: no JSON, or cut off, in the entry that begins {text[at : at + 30]!r}; want a whole file"
    )


def _after_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at
