"""Alibaba PAI 2020: its task table, its job table, the two simulator samples; also the spot trace of 2026."""

from pathlib import Path

import numpy as np

from berth.errors import TraceError
from traces.cells import identity, name, objects, optional_name, optional_number
from traces.source import Source, header, read_text
from traces.table import MOST_GPUS, Table, cut, product, whole
from traces.trace import MISSING, Trace, counted

TASKS = {
    "job_name": name, "task_name": name, "inst_num": optional_number, "status": name, "start_time": optional_number,
    "end_time": optional_number, "plan_cpu": optional_number, "plan_mem": optional_number,
    "plan_gpu": optional_number, "gpu_type": optional_name,
}  # fmt: skip
"""pai_task_table: no header row; CPU and GPU in percent, for each instance."""

JOBS = {
    "job_name": identity, "inst_id": identity, "user": name, "status": name, "start_time": optional_number,
    "end_time": optional_number,
}  # fmt: skip
"""pai_job_table: no header row; start_time is when the job was submitted."""

PLAIN = {
    "job_id": identity, "num_inst": optional_number, "submit_time": optional_number, "num_cpu": optional_number,
    "num_gpu": optional_number, "gpu_type": optional_name, "duration": optional_number, "user": name,
}  # fmt: skip
"""pai_job_no_estimate_100K.csv: CPU and GPU for each instance."""

ESTIMATED = {
    "job_id": identity, "user": name, "num_gpu": optional_number, "num_cpu": optional_number,
    "num_pod": optional_number, "duration": optional_number, "job_name": name, "submit_time": optional_number,
    "group": name,
    "gpu_type": optional_name, "wait_time": optional_number, "user_dur": optional_number,
    "group_dur": optional_number, "group_gpu_dur": optional_number,
}  # fmt: skip
"""pai_job_duration_estimate_100K.csv: totals over a job's instances, and run times that histories foretell."""

SPOT = {
    "job_name": identity, "organization": name, "gpu_model": optional_name, "cpu_request": optional_number,
    "gpu_request": optional_number, "worker_num": optional_number, "submit_time": optional_number,
    "duration": optional_number, "job_type": name,
}  # fmt: skip
"""job_info_df.csv of the spot trace: CPU and GPU for each worker."""

STATES = ("Running", "Terminated", "Failed", "Waiting", "Cancelled", "Interrupted")
SAME_TYPE = {"V100": "V100_16GB", "V100M32": "V100_32GB", "V100M16": "V100_16GB"}
"""What Alibaba calls the GPU types, where we call them otherwise."""


def same_types(kind: str) -> set[str]:
    """All names of a GPU type, Alibaba's and ours."""
    ours = SAME_TYPE.get(kind, kind)
    return {ours} | {theirs for theirs, name in SAME_TYPE.items() if name == ours}


def sniff_tasks(head: list[str]) -> bool:
    """Recognise the task table: ten columns, the fourth a status, the fifth a number or nothing."""
    words = header(head)
    return len(words) == len(TASKS) and (words[3] in STATES or words[:2] == ["job_name", "task_name"])


def sniff_jobs(head: list[str]) -> bool:
    """Recognise the job table: six columns, the fourth a status."""
    words = header(head)
    return len(words) == len(JOBS) and (words[3] in STATES or words[:2] == ["job_name", "inst_id"])


def sniff_plain(head: list[str]) -> bool:
    """Recognise the sample without estimates by its header row."""
    return set(PLAIN) <= set(header(head)) and "num_pod" not in header(head)


def sniff_estimated(head: list[str]) -> bool:
    """Recognise the sample with estimates by its header row."""
    return {"num_pod", "group_dur", "user_dur"} <= set(header(head))


def sniff_spot(head: list[str]) -> bool:
    """Recognise the spot trace by its header row."""
    return set(SPOT) <= set(header(head))


def read_tasks(source: Source) -> Trace:
    """Read a task table: each GPU task is a job; it asks for inst_num × plan_gpu / 100 GPUs.

    Where pai_job_table.csv[.gz] lies beside it the users come from there, and a job's submission is its submit time;
    without it a task is submitted when it starts.
    """
    table = cut(source, TASKS)
    job_id = _joined(table["job_name"], table["task_name"])
    table.check("job_name", table["job_name"] != "", "a name")
    gpu, instances = table.known_or_missing("plan_gpu"), table.known_or_missing("inst_num")
    table.leave_out("CPU-only tasks", (gpu == 0) | (gpu == MISSING))
    start, end = table.known_or_missing("start_time"), table.known_or_missing("end_time")
    table.leave_out("never started (no start time)", start == MISSING)
    table.leave_out("no end time", end == MISSING)
    table.check("end_time", end >= start, "a time that is not before start_time")
    table.leave_out("run time 0", end == start)
    table.check("inst_num", instances >= 1, "a number >= 1")
    exact = product(instances, gpu / 100)
    table.check("plan_gpu", exact <= MOST_GPUS, f"inst_num × plan_gpu / 100 <= {MOST_GPUS:,}")
    _unique_tasks(table, job_id)
    asked, user = _submitted(source, table, start)
    known = asked != MISSING
    submit = np.where(known, asked, start)
    columns = {
        "job_id": job_id,
        "submit": submit,
        "run_time": end - start,
        "gpus": whole(exact),
        "gpu_fraction": exact,
        "wait": np.where(known, start - asked, MISSING),
        "cpus": _times(table.known_or_missing("plan_cpu"), instances, 100),
        "memory": _times(table.known_or_missing("plan_mem"), instances),
        "status": table["status"],
        "user": user,
        "group": table["job_name"],
        "executable": table["task_name"],
        "gpu_type": _types(table["gpu_type"]),
    }
    return table.trace("Alibaba PAI task table", columns)


def _unique_tasks(table: Table, job_id: np.ndarray) -> None:
    """Complain of a task that stands twice."""
    line: dict[str, int] = {}
    fresh = np.ones(len(table), bool)
    for row in np.flatnonzero(table.scope).tolist():
        fresh[row] = line.setdefault(job_id[row], int(table.lines[row])) == table.lines[row]
    table.check("task_name", fresh, lambda row: f"a task of its job that is not on line {line[job_id[row]]} already")


def _submitted(source: Source, table: Table, start: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """When each task's job was submitted (-1: nobody knows) and its user, from the job table beside the task table."""
    beside = _beside(source.path, "pai_task_table", "pai_job_table")
    if beside is None:
        table.notes.append("no pai_job_table beside it: no users, and a task is submitted when it starts")
        return np.full(len(table), float(MISSING)), None
    jobs = cut(Source(str(beside), read_text(beside), source.skip_bad_rows), JOBS)
    jobs.known_or_missing("start_time")
    table.skipped += jobs.require()
    row: dict[str, int] = {}
    for i in np.flatnonzero(jobs.scope).tolist():
        row.setdefault(jobs["job_name"][i], i)
    at = np.array([row.get(job, len(jobs)) for job in table["job_name"].tolist()], np.int64)
    asked = np.append(jobs["start_time"], float(MISSING))[at]
    user = np.append(jobs["user"], str(MISSING))[at]
    table.notes.append(f"users and submit times from {beside} ({counted(len(row), 'job')})")
    known = (asked != MISSING) & (asked <= start)
    unknown = int(np.count_nonzero(~known & table.scope))
    if unknown:
        table.notes.append(
            f"{counted(unknown, 'task')} without a submission before its start there: submitted when it starts"
        )
    return np.where(known, asked, float(MISSING)), user


def _beside(path: str, mine: str, other: str) -> Path | None:
    """The other table of a download, where it lies in the same folder."""
    here = Path(path)
    if mine not in here.name:
        return None
    for ending in ("", ".gz"):
        candidate = here.with_name(here.name.replace(mine, other).removesuffix(".gz") + ending)
        if candidate.is_file():
            return candidate
    return None


def read_jobs(source: Source) -> Trace:
    """Read the task table that lies beside a job table: the job table itself does not say how many GPUs a job has."""
    beside = _beside(source.path, "pai_job_table", "pai_task_table")
    if beside is None:
        raise TraceError(
            f"{source.path}: a PAI job table, which has no GPU counts; want pai_task_table.csv with this beside it"
        )
    return read_tasks(Source(str(beside), read_text(beside), source.skip_bad_rows))


def read_plain(source: Source) -> Trace:
    """Read the simulator's sample without estimates: num_inst instances of num_gpu GPUs each."""
    return _sample(source, PLAIN, "Alibaba PAI simulator sample (no estimates)", "num_inst", "num_gpu", "num_cpu")


def read_estimated(source: Source) -> Trace:
    """Read the simulator's sample with estimates: num_gpu is a job's total, request_time its group's run time."""
    return _sample(source, ESTIMATED, "Alibaba PAI simulator sample (with estimates)", "", "num_gpu", "num_cpu")


def read_spot(source: Source) -> Trace:
    """Read the spot trace's jobs: worker_num workers of gpu_request GPUs each; status is HP or Spot."""
    return _sample(source, SPOT, "Alibaba spot 2026 jobs", "worker_num", "gpu_request", "cpu_request")


def _sample(source: Source, kinds: dict, form: str, instances: str, gpu: str, cpu: str) -> Trace:
    """Read one of the tables that have a row for each job, with a submit time and a duration."""
    table = cut(source, kinds)
    identifier = "job_id" if "job_id" in kinds else "job_name"
    table.identify(identifier)
    each = table.known_or_missing(gpu)
    table.leave_out("CPU-only jobs", each == 0)
    run_time = table.known_or_missing("duration")
    table.leave_out("run time not known", run_time == MISSING)
    table.leave_out("run time 0", run_time == 0)
    table.numbers("submit_time")
    table.gpus(gpu)
    times = np.ones(len(table)) if not instances else table[instances]
    if instances:
        table.check(
            instances, (times >= 1) & (times * each <= MOST_GPUS), f"a number >= 1, and <= {MOST_GPUS:,} GPUs in all"
        )
    exact = product(times, each)
    have = table.columns.get
    columns = {
        "job_id": table[identifier],
        "submit": table["submit_time"],
        "run_time": run_time,
        "gpus": whole(exact),
        "gpu_fraction": exact,
        "cpus": _times(table.known_or_missing(cpu), times),
        "user": have("user", have("organization")),
        "group": have("group"),
        "executable": table["job_name"] if identifier == "job_id" and "job_name" in kinds else None,
        "status": have("job_type"),
        "wait": table.known_or_missing("wait_time") if "wait_time" in kinds else None,
        "request_time": table.known_or_missing("group_dur") if "group_dur" in kinds else None,
        "gpu_type": _types(have("gpu_type", have("gpu_model"))),
    }
    return table.trace(form, columns)


def _joined(job: np.ndarray, task: np.ndarray) -> np.ndarray:
    return objects([f"{one}/{other}" for one, other in zip(job.tolist(), task.tolist(), strict=True)])


def _times(each: np.ndarray, count: np.ndarray, percent: float = 1.0) -> np.ndarray:
    """Each instance's share times the instances, -1 where it is not known."""
    return np.where(each == MISSING, MISSING, each * count / percent)


def _types(words: np.ndarray | None) -> np.ndarray | None:
    return None if words is None else objects([SAME_TYPE.get(word, word) for word in words.tolist()])
