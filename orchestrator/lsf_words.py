"""What single words of LSF's output mean: times, sizes, limits, hosts."""

import math
import re
from calendar import monthrange
from datetime import datetime

from berth.errors import SchedulerError

MOMENT = r"(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} +\d{1,2} \d{2}:\d{2}(?::\d{2})?(?: (?:19|20)\d{2})?"
"""A time as LSF prints it: "Nov 16 04:32", "Mon Nov 16 04:32:47", either with a year behind it."""

AHEAD = 3600.0
"""How many seconds a host's clock may be ahead of ours before a time without a year counts as last year's."""

_PARTS = re.compile(r"(?:[A-Z][a-z]{2} )?([A-Z][a-z]{2}) +(\d{1,2}) (\d{2}):(\d{2})(?::(\d{2}))?(?: ((?:19|20)\d{2}))?")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([KMGTP]?)(?:B|bytes)?", re.IGNORECASE)
_UNITS = {"k": 1 / 1024, "": 1.0, "m": 1.0, "g": 1024.0, "t": 1024.0**2, "p": 1024.0**3}
_MEMORY = re.compile(r"rusage ?\[[^\]]*?\bmem ?= ?(\d[\w.]*)")
_SHARE = re.compile(r"(?:(\d{1,9})\*)?([^\s:*]+)")


def moment(text: str, now: float) -> float:
    """Seconds since 1970 of a time that LSF prints in local time, mostly without a year: the latest not after `now`.

    Raises SchedulerError where it is no time.
    """
    found = _PARTS.fullmatch(text.strip())
    day, hour, minute, second = (int(found[i] or 0) for i in range(2, 6)) if found else (0, 0, 0, 0)
    if found is None or found[1] not in _MONTHS or day < 1 or hour > 23 or minute > 59 or second > 59:
        raise SchedulerError(f"{text!r} is no time, want one such as 'Nov 16 04:32'")
    month = _MONTHS.index(found[1]) + 1
    this = datetime.fromtimestamp(now).year
    years = (int(found[6]),) if found[6] else range(this + 1, this - 9, -1)  # a leap year is at most eight years ago
    for year in years:
        if day > monthrange(year, month)[1]:
            continue
        seconds = datetime(year, month, day, hour, minute, second).timestamp()
        if seconds <= now + AHEAD or found[6]:
            return min(seconds, now)
    raise SchedulerError(f"{text!r} is no day of the calendar")


def size(text: str) -> float:
    """MB of a size such as 24103M or 23G, NaN where there is none."""
    found = _SIZE.fullmatch(text.strip())
    return float(found[1]) * _UNITS[found[2].lower()] if found else math.nan


def limit(text: str) -> float:
    """Seconds of a run limit, told in minutes (60.0, or 60.0/hostA) or as 01:00:00; NaN where there is none."""
    word = text.strip().partition("/")[0]
    if re.fullmatch(r"\d{1,9}:\d{2}:\d{2}", word):
        hours, minutes, seconds = (int(part) for part in word.split(":"))
        return float(hours * 3600 + minutes * 60 + seconds) or math.nan
    found = re.match(r"\d{1,9}(?:\.\d{1,9})?", word)
    return float(found[0]) * 60 or math.nan if found else math.nan


def memory(requirement: str) -> float:
    """MB that a resource requirement reserves (rusage[mem=300]), NaN where it says nothing."""
    found = _MEMORY.search(requirement)
    return size(found[1]) if found else math.nan


def shares(text: str) -> tuple[tuple[str, int], ...]:
    """Hosts with slots each, of `node1:node1:node3`, `2*node1:node3`, or `-` and nothing for none."""
    counts: dict[str, int] = {}
    for part in text.strip().split(":"):
        found = _SHARE.fullmatch(part)
        if found and part != "-":
            counts[found[2]] = counts.get(found[2], 0) + int(found[1] or 1)
    return tuple(counts.items())


def count(text: str) -> int | None:
    """A whole number, None where there is none (`-`, or nothing)."""
    return int(text) if re.fullmatch(r"\d{1,12}", text) else None
