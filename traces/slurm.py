"""Slurm's own accounting: sacct --parsable2, or the jobcomp/filetxt log."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from berth.errors import TraceError
from traces.cells import NOTHING, Kind, Names, identity, moment, name, objects, optional_name, optional_number
from traces.clock import from_midnight
from traces.source import Source, first_lines, header
from traces.table import MOST_GPUS, Table, cut, whole
from traces.trace import MISSING, Trace

COMMAND = (
    "sacct --allusers --allocations --parsable2 --starttime=2024-01-01 --format=JobID,User,Account,Partition,QOS,"
    "JobName,Submit,Start,End,ElapsedRaw,TimelimitRaw,State,ReqCPUS,ReqMem,AllocTRES,ReqTRES"
)
"""The command that writes all that we can use."""

_UNITS = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
_DURATION = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?")
_GPU = re.compile(r"(?:^|,)gres/gpu(?::([^=,]+))?=([^,]*)")


def _each(convert: Callable[[str], float]) -> Callable[[Sequence[str], Names], np.ndarray]:
    """A kind of column whose words are converted one by one, each different word once."""

    def _kind(words: Sequence[str], known: Names) -> np.ndarray:
        values = {word: convert(word.strip()) for word in set(words)}
        return np.array([values[word] for word in words], np.float64)

    return _kind


def duration(word: str) -> float:
    """Seconds of [days-][hours:]minutes:seconds; -1 where there is no limit or none is known, NaN for other words."""
    if word in NOTHING or word.upper() in ("UNLIMITED", "PARTITION_LIMIT", "INVALID"):
        return MISSING
    found = _DURATION.fullmatch(word)
    if not found:
        return float("nan")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60.0 + seconds


def minutes(word: str) -> float:
    """Seconds of a number of minutes, or of a duration; -1 where there is no limit."""
    return int(word) * 60.0 if word.isdecimal() else duration(word)


def gpus(tres: str) -> float:
    """GPUs in a list of trackable resources: billing=4,cpu=8,gres/gpu=2,gres/gpu:v100=2,mem=8G; NaN for no number."""
    found = _GPU.findall(tres)
    if not all(count.isdecimal() for _, count in found):
        return float("nan")
    plain = [int(count) for kind, count in found if not kind]
    return float(plain[0] if plain else sum(int(count) for _, count in found))


def gpu_kind(tres: str) -> str:
    """The type of the GPUs in such a list, -1 where it names none."""
    return next((kind for kind, _ in _GPU.findall(tres) if kind), str(MISSING))


def memory(word: str) -> float:
    """MiB of a size like 4000M or 16Gn; -1 where none is given, NaN for other words."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTP]?)[nc]?", word)
    if found:
        return float(found.group(1)) * _UNITS[found.group(2)]
    return MISSING if word in NOTHING else float("nan")


SACCT = {
    "JobID": identity, "User": optional_name, "Group": optional_name, "Account": optional_name,
    "JobName": name, "Partition": optional_name, "QOS": optional_name, "Submit": moment, "Start": moment,
    "End": moment, "Elapsed": _each(duration), "ElapsedRaw": optional_number, "Timelimit": _each(duration),
    "TimelimitRaw": _each(minutes), "State": name, "ReqCPUS": optional_number, "AllocCPUS": optional_number,
    "ReqMem": _each(memory), "AllocTRES": name, "ReqTRES": name,
}  # fmt: skip


JOBCOMP: dict[str, Kind] = {
    "JobId": identity, "UserId": optional_name, "GroupId": optional_name, "Name": optional_name,
    "JobState": optional_name, "Partition": optional_name, "TimeLimit": _each(minutes), "SubmitTime": moment,
    "StartTime": moment, "EndTime": moment, "ProcCnt": optional_number, "Tres": optional_name,
    "Account": optional_name, "QOS": optional_name,
}  # fmt: skip


def sniff_sacct(head: list[str]) -> bool:
    """Recognise sacct's output by its header row."""
    return "JobID" in header(head, "|") and "|" in head[0]


def read_sacct(source: Source) -> Trace:
    """Read `sacct --parsable2` with its header; steps, CPU-only jobs, jobs that did not start or end are left out."""
    _require(source, header(first_lines(source.text) or [""], "|"))
    table = cut(source, SACCT, separator="|", need=("JobID",), loose="JobName")
    table.leave_out("job steps", np.array(["." in job for job in table["JobID"].tolist()], bool))
    table.leave_out("never started (pending array)", np.array(["[" in job for job in table["JobID"].tolist()], bool))
    have = table.columns
    tres = have.get("AllocTRES", have.get("ReqTRES"))
    if "AllocTRES" in have and "ReqTRES" in have:
        tres = np.where(have["AllocTRES"] == "", have["ReqTRES"], have["AllocTRES"])
    elapsed = have.get("ElapsedRaw", have.get("Elapsed"))
    limit = have.get("TimelimitRaw", have.get("Timelimit"))
    for field in ("Elapsed", "ElapsedRaw", "Timelimit", "TimelimitRaw", "ReqMem", "ReqCPUS", "AllocCPUS"):
        if field in have:
            table.known_or_missing(field)
    fields = _Fields("JobID", "Submit", "Start", "End", "AllocTRES" if "AllocTRES" in have else "ReqTRES")
    columns = _times(table, fields, np.asarray(tres), have.get("State"), elapsed)
    columns |= {
        "job_id": table["JobID"],
        "request_time": limit,
        "cpus": have.get("ReqCPUS", have.get("AllocCPUS")),
        "memory": have.get("ReqMem"),
        "status": _first_words(have.get("State")),
        "user": have.get("User"),
        "group": have.get("Account", have.get("Group")),
        "executable": have.get("JobName"),
        "queue": have.get("QOS"),
        "partition": have.get("Partition"),
    }
    return _finish(table, "JobID", "Slurm sacct", columns)


def _require(source: Source, fields: list[str]) -> None:
    """Raise TraceError where sacct was not asked for what a trace needs."""
    names = {word.lower() for word in fields}
    wanted = {
        "JobID": {"jobid"},
        "Submit": {"submit"},
        "Start": {"start"},
        "End": {"end"},
        "AllocTRES": {"alloctres", "reqtres"},
    }
    lacking = [field for field, either in wanted.items() if not names & either]
    if lacking:
        raise TraceError(f"{source.path}:1: sacct's output without {', '.join(lacking)}; want that of: {COMMAND}")


def sniff_jobcomp(head: list[str]) -> bool:
    """Recognise the jobcomp/filetxt log by its key=value pairs."""
    return head[0].startswith("JobId=") and " StartTime=" in head[0]


def read_jobcomp(source: Source) -> Trace:
    """Read the jobcomp/filetxt log: one line of key=value pairs for each job that ended."""
    pairs = re.compile(r"(?:^| )([A-Z][A-Za-z]+)=")
    rows, lines, malformed = [], [], {}
    for line, text in enumerate(source.text.split("\n"), 1):
        if not text.strip() or text.lstrip().startswith(";"):
            continue
        parts = pairs.split(text.strip())
        found = dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))
        lacking = [key for key in ("JobId", "SubmitTime", "StartTime", "EndTime") if key not in found]
        if lacking:
            malformed[line] = (
                f"{text[:60]!r} has no {', '.join(lacking)}=, want JobId=... SubmitTime=... StartTime=... EndTime=..."
            )
            continue
        rows.append(found)
        lines.append(line)
    columns = {key: kind([row.get(key, "") for row in rows], Names()) for key, kind in JOBCOMP.items()}
    table = Table(source, columns, np.array(lines, np.int64), lambda row, field: rows[row].get(field, ""), malformed)
    for field in ("TimeLimit", "ProcCnt"):
        table.known_or_missing(field)
    fields = _Fields("JobId", "SubmitTime", "StartTime", "EndTime", "Tres")
    trace = _times(table, fields, table["Tres"], table["JobState"])
    trace |= {
        "job_id": table["JobId"],
        "request_time": table["TimeLimit"],
        "cpus": table["ProcCnt"],
        "status": table["JobState"],
        "user": _without_number(table["UserId"]),
        "group": table["Account"] if (table["Account"] != "-1").any() else _without_number(table["GroupId"]),
        "executable": table["Name"],
        "queue": table["QOS"],
        "partition": table["Partition"],
    }
    return _finish(table, "JobId", "Slurm jobcomp/filetxt", trace)


class _Fields(NamedTuple):
    """What a kind of accounting calls the columns that both have."""

    job: str
    submit: str
    start: str
    end: str
    tres: str


def _times(
    table: Table,
    fields: "_Fields",
    tres: np.ndarray,
    state: np.ndarray | None,
    elapsed: np.ndarray | None = None,
) -> dict[str, np.ndarray | None]:
    """What both kinds of accounting say of a job's GPUs and times; leaves out jobs that are out of scope."""
    exact = np.array([gpus(words) for words in tres.tolist()], np.float64)
    table.leave_out("CPU-only jobs", exact == 0)
    if state is not None:
        table.leave_out("earlier runs of jobs that were requeued", _requeued(table, fields, state))
    submit, start, end = (table.times(field, missing=True) for field in fields[1:4])
    table.leave_out("never started (no start time)", start == MISSING)
    table.leave_out("no end time (still running)", end == MISSING)
    table.check(fields.submit, submit != MISSING, "a time like 2024-06-09T18:41:01")
    table.check(fields.tres, exact <= MOST_GPUS, f"gres/gpu=N with N <= {MOST_GPUS:,}")
    run_time = end - start if elapsed is None else np.where(elapsed >= 0, elapsed, end - start)
    table.check(fields.end, run_time >= 0, f"a time that is not before {fields.start}")
    table.leave_out("run time 0", run_time == 0)
    kind = objects([gpu_kind(words) for words in tres.tolist()])
    return {
        "submit": submit,
        "run_time": run_time,
        "gpus": whole(exact),
        "wait": table.wait(start, submit),
        "gpu_type": kind,
    }


def _requeued(table: Table, fields: "_Fields", state: np.ndarray) -> np.ndarray:
    """Runs that ended in a requeue: REQUEUED in sacct, PENDING in a jobcomp log, or lost while the job ran again."""
    ended = np.isin(state, ["REQUEUED", "PENDING"]) & (table[fields.end] != MISSING)
    jobs = table[fields.job].tolist()
    last = {job: row for row, job in enumerate(jobs)}
    again = np.array([last[job] != row for row, job in enumerate(jobs)], bool)
    return ended | (again & np.isin(state, ["NODE_FAIL", "PREEMPTED", "BOOT_FAIL"]))


def _finish(table: Table, identifier: str, form: str, columns: dict[str, np.ndarray | None]) -> Trace:
    """Number the seconds from midnight, and make the Trace."""
    table.unique(identifier)
    submit, origin = from_midnight(np.asarray(columns["submit"]), table.scope)
    return table.trace(form, columns | {"submit": submit}, origin=origin)


def _first_words(states: np.ndarray | None) -> np.ndarray | None:
    """CANCELLED of "CANCELLED by 1000"."""
    if states is None:
        return None
    return objects([state.split(" ")[0] for state in states.tolist()])


def _without_number(names: np.ndarray) -> np.ndarray:
    """The name of ann(1000)."""
    return objects([word.split("(")[0] for word in names.tolist()])
