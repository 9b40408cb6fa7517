"""The log of what was done to a cluster: one JSON object a line, never rewritten."""

import json
import os
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from berth.errors import ConfigError

DONE = ("ok", "unknown")
"""Results after which something may have changed; unknown: the command was cut short."""

SAME = 61.0
"""Submits of one job number that are further apart, in seconds, are two jobs: some of LSF's times are in minutes."""


class Change(NamedTuple):
    """What the log says of a job that was changed, and not put back: from what, to what."""

    job: str
    means: str
    submit: float
    before: int
    after: int

    def is_of(self, submit: float) -> bool:
        """Whether it was this job, and not an earlier one that had the same number."""
        return abs(self.submit - submit) < SAME


class Audit:
    """Appends entries to a log file, and tells what is still changed."""

    def __init__(self, path: Path, warn: Callable[[str], None]) -> None:
        self.path = path
        self.warn = warn

    def add(self, **entry: Any) -> None:
        """Append an entry, on the disk when this returns; raises ConfigError where it cannot be written."""
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        line = json.dumps({"when": now, **entry}, ensure_ascii=False) + "\n"
        try:
            with self.path.open("a", encoding="utf-8") as log:
                log.write(line)
                log.flush()
                os.fsync(log.fileno())
        except OSError as trouble:
            raise ConfigError(f"--log {self.path}: {trouble.strerror}, want a file that can be written to") from None

    def entries(self) -> list[dict[str, Any]]:
        """All entries; a line that is none is named and passed over."""
        if not self.path.exists():
            return []
        found = []
        for number, line in enumerate(self.path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            try:
                entry = json.loads(line)
            except ValueError:
                entry = None
            if isinstance(entry, dict):
                found.append(entry)
            else:
                self.warn(f"{self.path}:{number}: no entry, passed over: {line[:80]!r}")
        return found

    def changes(self, means: str) -> dict[str, Change]:
        """By job: what was changed by these means, and not put back."""
        found: dict[str, Change] = {}
        for entry in self.entries():
            if entry.get("means") != means or entry.get("result") not in DONE:
                continue
            try:
                change = Change(str(entry["job"]), means, float(entry["submit"]), int(entry["from"]), int(entry["to"]))
            except (KeyError, TypeError, ValueError):
                self.warn(f"{self.path}: an entry without job, submit, from or to, passed over: {entry}")
                continue
            earlier = found.pop(change.job, None)
            if entry.get("undo"):
                continue
            again = earlier is not None and earlier.is_of(change.submit)
            found[change.job] = change._replace(before=earlier.before) if earlier and again else change
        return found
