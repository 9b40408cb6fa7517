"""The JSON that LSF 10 prints in, rows out."""

import json
import re
from typing import Any

from berth.errors import SchedulerError
from orchestrator.lsf_state import WAITING, Host, Job
from orchestrator.lsf_words import count, limit, memory, moment, shares

JOB_FIELDS = (
    "jobid jobindex stat user queue job_name exec_host nreq_slot nalloc_slot submit_time start_time runtimelimit "
    "pend_reason effective_resreq"
)
"""What `bjobs -o` is asked for."""

HOST_FIELDS = "host_name status max njobs run ssusp ususp rsv"
"""What `bhosts -o` is asked for."""


def records(text: str, command: str, skipped: list[str]) -> list[dict[str, str]]:
    """The records of a command's JSON; raises SchedulerError where it is cut off, or something else.

    Lines such as "Cannot connect to LSF. Please wait ..." may stand before it.
    """
    begin = re.search(r"^\s*\{", text, re.MULTILINE)
    try:
        whole: Any = json.loads(text[begin.start() :]) if begin else None
    except (ValueError, RecursionError) as trouble:
        raise SchedulerError(f"{command} -json is cut off, or is no JSON: {trouble}") from None
    rows = whole.get("RECORDS") if isinstance(whole, dict) else None
    if not isinstance(rows, list):
        raise SchedulerError(
            f"{command} -json printed {' '.join(text[:200].split())[:80]!r}, want an object with RECORDS"
        )
    told = whole.get("JOBS", whole.get("HOSTS", len(rows)))
    if str(told) != str(len(rows)):
        raise SchedulerError(f"{command} -json has {len(rows)} records and says {told}; want all of them")
    good = []
    for row in rows:
        if not isinstance(row, dict) or "ERROR" in row:
            skipped.append(json.dumps(row))
            continue
        good.append({str(key).upper(): value if isinstance(value, str) else str(value) for key, value in row.items()})
    return good


def jobs(text: str, now: float, skipped: list[str]) -> list[Job]:
    """Jobs of `bjobs -o ... -json`, in its order."""
    found = []
    for row in records(text, "bjobs", skipped):
        try:
            found.append(_job(row, now))
        except (KeyError, SchedulerError):
            skipped.append(json.dumps(row))
    return found


def hosts(text: str, skipped: list[str]) -> list[Host]:
    """Hosts of `bhosts -o ... -json`."""
    found = []
    for row in records(text, "bhosts", skipped):
        name, used = row.get("HOST_NAME", ""), count(row.get("NJOBS", ""))
        if not name or used is None:
            skipped.append(json.dumps(row))
            continue
        found.append(Host(name, row.get("STATUS", ""), count(row.get("MAX", "")) or 0, used))
    return found


def _job(row: dict[str, str], now: float) -> Job:
    """One record; raises KeyError or SchedulerError where something that every job has is missing."""
    if count(row["JOBID"]) is None:
        raise SchedulerError(f"JOBID {row['JOBID']!r}, want a number")
    index = count(row.get("JOBINDEX", ""))
    waits, where = row["STAT"] in WAITING, shares(row.get("EXEC_HOST", ""))
    slots = count(row.get("NREQ_SLOT" if waits else "NALLOC_SLOT", "")) or sum(share for _, share in where)
    start = row.get("START_TIME", "").strip("- ")
    job = Job(
        id=row["JOBID"] + (f"[{index}]" if index else ""),
        user=row["USER"],
        queue=row["QUEUE"],
        name=row.get("JOB_NAME", ""),
        state=row["STAT"],
        submit=moment(row["SUBMIT_TIME"], now),
        slots=slots or 1,
        memory=memory(row.get("EFFECTIVE_RESREQ", "")),
        run_limit=limit(row.get("RUNTIMELIMIT", "")),
        reason=" ".join(row.get("PEND_REASON", "").split()),
        hosts=() if waits else where,
    )
    return job._replace(start=moment(start, now)) if start and not waits else job
