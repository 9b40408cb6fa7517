"""LSF's printed tables in, rows out.

Every function takes `skipped`, a list that gets the lines which it could not read.
"""

import math
import re
from typing import NamedTuple

from berth.errors import SchedulerError
from orchestrator.lsf_state import Host, Job
from orchestrator.lsf_words import MOMENT, count, limit, memory, moment, shares, size

_ROW = re.compile(rf"(\d{{1,12}}) +(\S+) +([A-Z]+) +(\S+) +(\S+) +(\S+) +(?:(.*\S) +)?({MOMENT}) *")
_INDEX = re.compile(r"\[(\d{1,9})\]$")
_FIRST = re.compile(r"^Job <(\d{1,12})(\[\d{1,9}\])?>", re.MULTILINE)
_EVENT = re.compile(rf"^({MOMENT}): (.*)$", re.MULTILINE)
_LIMIT = re.compile(r"^ *RUNLIMIT *\n *(\d[\d.]*) *min", re.MULTILINE)
_REASONS = re.compile(r"^ *PENDING REASONS: *\n((?: .*\S.*\n)*)", re.MULTILINE)
_SLOTS = re.compile(r"(\d{1,9})(?:-\d{1,9})? ?(?:Processors ?Requested|Task\(s\))")
_MUST_RUN_ON = re.compile(r"Specified ?Hosts ((?:<[^<>]+>(?:, *)?)+)")
_STARTED = re.compile(r"(?:\[\d+\] ?)?started", re.IGNORECASE)


class Detail(NamedTuple):
    """What only `bjobs -l` tells of a job."""

    submit: float
    slots: int | None
    memory: float
    start: float
    run_limit: float
    priority: int
    reason: str
    asked: tuple[str, ...]


class Load(NamedTuple):
    """What lshosts and lsload tell of a host."""

    cores: int | None = None
    memory: float = math.nan  # MB


def wide_jobs(text: str, now: float, skipped: list[str]) -> list[Job]:
    """Jobs of `bjobs -w`, in its order; raises SchedulerError where it is no such table."""
    _, lines = _table(text, "JOBID", "bjobs -w")
    jobs = []
    for line in lines:
        found = _ROW.fullmatch(line)
        if found is None:
            skipped.append(line)
            continue
        number, user, state, queue, _, hosts, name, submit = found.groups(default="")
        index = _INDEX.search(name)
        where = shares(hosts)
        try:
            when = moment(submit, now)
        except SchedulerError:
            skipped.append(line)
            continue
        slots = sum(share for _, share in where) or 1
        jobs.append(Job(number + (index[0] if index else ""), user, queue, name, state, when, slots, hosts=where))
    _refuse_garbage(jobs, lines, "bjobs -w")
    return jobs


def long_jobs(text: str, now: float, skipped: list[str]) -> dict[str, Detail]:
    """What `bjobs -l` tells, by job; raises SchedulerError where it tells of none.

    It breaks lines at column 79 and drops a blank that falls on the break, so that a word may be cut ("Que", "ue") and
    two words may be glued ("Output", "File"): what is looked for may or may not have its blanks.
    """
    _refuse_cut(text, "bjobs -l")
    whole = re.sub(r"\n {21}(?=\S)", "", text)
    starts = [found.start() for found in _FIRST.finditer(whole)]
    if not starts:
        raise SchedulerError(f"bjobs -l printed {_opening(text)!r}, want paragraphs that begin with 'Job <...>'")
    details: dict[str, Detail] = {}
    for begin, end in zip(starts, [*starts[1:], len(whole)], strict=True):
        _add_detail(whole[begin:end], now, details, skipped)
    return details


def _add_detail(paragraph: str, now: float, details: dict[str, Detail], skipped: list[str]) -> None:
    """Read the paragraph of one job; one without the time of its submit is skipped."""
    opening = paragraph.partition("\n")[0]
    found = _FIRST.match(opening)
    events = [(found[1], found[2]) for found in _EVENT.finditer(paragraph)]
    try:
        times = [moment(when, now) for when, _ in events]
    except SchedulerError:
        times = []
    if found is None or not times:
        skipped.append(opening)
        return
    title = re.split(r", ?Command ?<", opening)[0]
    name = re.search(r"Job ?Name <([^<>]*)>", title)
    element = _INDEX.search(name[1]) if name else None
    index = found[2] or (element[0] if element else "")
    priorities = re.findall(r"Job ?Priority ?<(\d{1,9})>", title)
    slots = _SLOTS.search(events[0][1])
    asked = _MUST_RUN_ON.search(events[0][1])
    begun = [when for when, (_, what) in zip(times, events, strict=True) if _STARTED.match(what)]
    minutes, reasons = _LIMIT.search(paragraph), _REASONS.search(paragraph)
    details[found[1] + index] = Detail(
        submit=times[0],
        slots=int(slots[1]) if slots else None,
        memory=memory(events[0][1]),
        start=begun[-1] if begun else math.nan,
        run_limit=limit(minutes[1]) if minutes else math.nan,
        priority=int(priorities[-1]) if priorities else 0,
        reason=" ".join(reasons[1].split()) if reasons else "",
        asked=tuple(re.findall(r"<([^<>]+)>", asked[1])) if asked else (),
    )


def wide_hosts(text: str, skipped: list[str]) -> list[Host]:
    """Hosts of `bhosts -w`; where MAX is no number, slots are 0 until somebody knows the cores."""
    header, lines = _table(text, "HOST_NAME", "bhosts -w")
    hosts = []
    for line in lines:
        row = dict(zip(header, line.split(), strict=False))
        used = count(row.get("NJOBS", ""))
        if used is None or len(line.split()) != len(header):
            skipped.append(line)
            continue
        hosts.append(Host(row["HOST_NAME"], row.get("STATUS", ""), count(row.get("MAX", "")) or 0, used))
    _refuse_garbage(hosts, lines, "bhosts -w")
    return hosts


def capacities(text: str, skipped: list[str]) -> dict[str, Load]:
    """Cores and memory of hosts, as `lshosts -w` tells them."""
    return _loads(text, "lshosts -w", "ncpus", "maxmem", skipped)


def loads(text: str, skipped: list[str]) -> dict[str, Load]:
    """Free memory of hosts, as `lsload -w` tells it; a host that is not available has a row of two words."""
    return _loads(text, "lsload -w", "", "mem", skipped)


def highest_priority(text: str) -> int:
    """MAX_USER_PRIORITY as `bparams -l` tells it, 0 where it does not."""
    found = re.search(r"MAX_USER_PRIORITY\s*[=:]\s*(\d{1,9})", text)
    return int(found[1]) if found else 0


def _loads(text: str, what: str, cores: str, free: str, skipped: list[str]) -> dict[str, Load]:
    header, lines = _table(text, "HOST_NAME", what)
    found: dict[str, Load] = {}
    for line in lines:
        words = line.split(None, len(header) - 1)
        row = dict(zip(header, words, strict=False))
        if len(words) < 2 or (len(words) < len(header) - 1 and len(words) != 2):  # RESOURCES may be empty
            skipped.append(line)
            continue
        found[words[0]] = Load(count(row.get(cores, "")), size(row.get(free, "")))
    return found


def _table(text: str, first: str, what: str) -> tuple[list[str], list[str]]:
    """A table's header and its lines; LSF may say that it waits for its master before it."""
    _refuse_cut(text, what)
    lines = [line for line in text.splitlines() if line.strip()]
    for i, line in enumerate(lines):
        if line.split()[0] == first:
            return line.split(), lines[i + 1 :]
    raise SchedulerError(f"{what} printed {_opening(text)!r}, want a table whose first column is {first}")


def _refuse_cut(text: str, what: str) -> None:
    """Raise SchedulerError where the text does not end with a line's end."""
    if not text.endswith("\n"):
        last = text.rpartition("\n")[2]
        raise SchedulerError(f"{what} ends in the middle of a line, {last[-60:]!r}; want all of its output")


def _refuse_garbage(rows: list[Job] | list[Host], lines: list[str], what: str) -> None:
    """Raise SchedulerError where there are lines, and none of them could be read."""
    if lines and not rows:
        raise SchedulerError(f"{what} printed {lines[0][:80]!r} under its header, want rows that fit it")


def _opening(text: str) -> str:
    return " ".join(text[:200].split())[:80]
