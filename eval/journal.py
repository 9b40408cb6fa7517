"""What has been done already, in a file that outlives the process: a line for each, whole or not there."""

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from berth.errors import ConfigError


class Journal:
    """A file of JSON lines, each with the `key` of what was done; held by one process at a time.

    A line is on the disk before `add` returns. One that a killed process has left half written is dropped, and so is
    one that lacks any of `fields`: what it tells of is not done.
    """

    def __init__(self, path: Path, fields: tuple[str, ...] = ()) -> None:
        self.path, self.fields = path, fields
        try:
            self._file = path.open("a+b")
        except OSError as trouble:
            raise ConfigError(f"{path}: {trouble.strerror}, want a file that can be written to") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise ConfigError(
                f"{path}: another process is at work on it; want one at a time, or another --out"
            ) from None
        self.rows: dict[str, dict[str, Any]] = {}
        self._read()

    def _read(self) -> None:
        """Take in all whole lines; the file ends after the last of them."""
        self._file.seek(0)
        whole = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            try:
                row = json.loads(line)
                key = str(row["key"])
                if all(name in row for name in self.fields):
                    self.rows[key] = row
            except (ValueError, LookupError, TypeError):
                raise ConfigError(
                    f"{self.path}: line {1 + line_number(self._file, whole)} is damaged; want a file that a sweep has "
                    "written, or another --out"
                ) from None
            whole += len(line)
        self._file.truncate(whole)
        self._file.seek(0, os.SEEK_END)

    def add(self, key: str, **told: Any) -> None:
        """Note what was done; it is on the disk when this returns."""
        row = {"key": key, **told}
        try:
            self._file.write(json.dumps(row).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as trouble:
            raise ConfigError(f"{self.path}: {trouble.strerror}, want a file that can be written to") from None
        self.rows[key] = row

    def close(self) -> None:
        """Let another process have it."""
        self._file.close()


def line_number(file: Any, place: int) -> int:
    """How many lines end before a place in a file."""
    file.seek(0)
    return int(file.read(place).count(b"\n"))
