"""The log of what was done to a cluster: one JSON object a line, never rewritten."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from berth.errors import ConfigError

SENDING = "sending"
"""The result of what is logged before it is sent, so that nothing is done that the log does not tell of."""

DONE = ("ok", "unknown", SENDING)
"""Results after which something may have changed; unknown: the command was cut short."""

FAILED = ("gone", "refused")
"""Results after which nothing has changed."""

SAME = 61.0
"""Submits of one job number that are further apart, in seconds, are two jobs: some of LSF's times are in minutes."""


class Change(NamedTuple):
    """What the log says of a job that was changed, and not put back: from what, to what."""

    job: str
    means: str
    submit: float
    before: Any  # a number, or a word
    after: Any
    given: tuple[Any, ...] = ()  # all that it was changed to, the last one included

    def is_of(self, submit: float) -> bool:
        """Whether it was this job, and not an earlier one that had the same number."""
        return abs(self.submit - submit) < SAME


class Audit:
    """Appends entries to a log file, and tells what is still changed."""

    def __init__(self, path: Path, warn: Callable[[str], None]) -> None:
        self.path = path
        self.warn = warn
        self._told: set[str] = set()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let nobody else act by this log meanwhile; raises ConfigError where somebody does already."""
        try:
            with self.path.open("a", encoding="utf-8") as log:
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)  # ends with the process, however that ends
                yield
        except BlockingIOError:
            raise ConfigError(
                f"--log {self.path}: another agent acts by it; want it stopped first, or another log"
            ) from None

    def add(self, **entry: Any) -> None:
        """Append an entry, on the disk when this returns; raises ConfigError where it cannot be written."""
        self.add_all([entry])

    def add_all(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Append entries, all of them on the disk when this returns; raises ConfigError where that cannot be."""
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        lines = [json.dumps({"when": now, **entry}, ensure_ascii=False) + "\n" for entry in entries]
        try:
            with self.path.open("ab+") as log:
                if log.seek(0, os.SEEK_END) > 0:
                    log.seek(-1, os.SEEK_END)
                    if log.read(1) != b"\n":  # whoever wrote last was cut short
                        lines.insert(0, "\n")
                log.write("".join(lines).encode("utf-8", "replace"))
                log.flush()
                os.fsync(log.fileno())
        except OSError as trouble:
            raise ConfigError(f"--log {self.path}: {trouble.strerror}, want a file that can be written to") from None

    def entries(self) -> list[dict[str, Any]]:
        """All entries; a line that is none is named and passed over."""
        if not self.path.exists():
            return []
        found = []
        for number, line in enumerate(self.path.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
            if not line:
                continue
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                entry = None
            if isinstance(entry, dict):
                found.append(entry)
            else:
                self._tell_once(f"{self.path}:{number}: no entry, passed over: {line[:80]!r}")
        return found

    def changes(self, means: str, kind: Callable[[Any], Any] = int) -> dict[str, Change]:
        """By job: what was changed by these means, and not put back; `kind` makes of the log's values what they are."""
        found: dict[str, Change] = {}
        for entry in self.entries():
            if entry.get("means") != means or entry.get("result") not in DONE:
                continue
            try:
                before, after = kind(entry["from"]), kind(entry["to"])
                change = Change(str(entry["job"]), means, float(entry["submit"]), before, after, (after,))
            except (KeyError, TypeError, ValueError, OverflowError):
                self._tell_once(f"{self.path}: an entry without job, submit, from or to, passed over: {entry}")
                continue
            earlier = found.pop(change.job, None)
            if entry.get("undo"):
                continue
            again = earlier is not None and earlier.is_of(change.submit)
            if earlier and again:
                change = change._replace(before=earlier.before, given=(*earlier.given, change.after))
            found[change.job] = change
        return found

    def noted(self, change: Change, name: str) -> Any:
        """What a field said of a job when a change that still stands was first made; None where it said nothing."""
        found = before = None
        for entry in self.entries():
            if (entry.get("means"), str(entry.get("job"))) != (change.means, change.job) or not _is_of(change, entry):
                continue
            result, first = entry.get("result"), entry.get(name) if found is None else found
            if entry.get("undo"):
                found = None if result in DONE else found
            elif result == SENDING:
                before, found = found, first
            elif result in DONE:
                found = first
            elif result in FAILED:  # what was about to be sent has changed nothing
                found = before
        return found

    def _tell_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self.warn(text)


def _is_of(change: Change, entry: Mapping[str, Any]) -> bool:
    """Whether an entry tells of the same job, and not of one that had its number before."""
    submit = entry.get("submit")
    return isinstance(submit, int | float) and change.is_of(submit)
