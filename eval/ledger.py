"""The metrics of a live run: the fields of a row, and how a file of them is read."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any, NamedTuple, get_args

from berth.errors import ConfigError


class Entry(NamedTuple):
    """What became of one job; the same fields whatever has run it. docs/orchestrator.md explains each."""

    run: str
    session: int  # 0, and one more each time the run was gone on with
    job_id: str
    policy: str
    discipline: str
    backend: str
    model: str  # file of the trained policy, "" where a heuristic decided
    cores: int  # of the host
    speedup: float
    seed: int
    n: int  # cores of the job
    p: float  # s of the workload that it was to run
    submit: float  # s of the workload from the run's beginning; so are start and end
    start: float
    end: float
    submit_time: str  # the same moments by the wall clock, UTC
    start_time: str
    end_time: str
    queue_wait_s: float  # s that passed from submit to start
    duration_s: float  # s that passed from start to end
    success: bool
    reason: str  # why it did not succeed
    exit_code: int | None
    user_s: float | None
    system_s: float | None
    max_rss_kb: int | None
    bogo_ops: float | None


class Ledger(NamedTuple):
    """What a file of metrics holds."""

    path: Path
    entries: tuple[Entry, ...]
    whole: int  # bytes up to the end of the last whole line
    cut: int  # bytes of a line that was begun after it, as a crash leaves it


def read_ledger(path: Path) -> Ledger:
    """Read metrics_*.jsonl or metrics_*.csv; a last line without its end does not count.

    Raises ConfigError with file, line and field for what is no row of metrics, for numbers that no job can have, and
    where a job is there twice.
    """
    if path.suffix not in (".jsonl", ".csv"):
        raise ConfigError(f"{path}: no metrics by its name; want metrics_*.jsonl or metrics_*.csv of a run")
    try:
        data = path.read_bytes()
    except OSError as trouble:
        raise ConfigError(f"{path}: {trouble.strerror}, want metrics_*.jsonl or metrics_*.csv of a run") from None
    whole = data.rfind(b"\n") + 1
    try:
        text = data[:whole].decode()
    except UnicodeDecodeError as trouble:
        raise ConfigError(f"{path}: no UTF-8 at byte {trouble.start}, want the metrics of a run") from None
    rows = _table(path, text) if path.suffix == ".csv" else _objects(path, text)
    entries = tuple(_entry(f"{path}:{line}", row) for line, row in rows)
    seen: dict[str, int] = {}
    for (line, _), entry in zip(rows, entries, strict=True):
        if seen.setdefault(entry.job_id, line) != line:
            raise ConfigError(f"{path}:{line}: job {entry.job_id} has ended in line {seen[entry.job_id]} already")
    return Ledger(path, entries, whole, len(data) - whole)


def as_csv(entry: Entry) -> list[str]:
    """A row of the CSV file: nothing for what is not known, 1 and 0 for yes and no."""
    return ["" if value is None else str(int(value)) if isinstance(value, bool) else str(value) for value in entry]


def _objects(path: Path, text: str) -> list[tuple[int, dict[str, Any]]]:
    rows = []
    for line, words in enumerate(text.split("\n")[:-1], 1):
        try:
            row = json.loads(words)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise ConfigError(f"{path}:{line}: {words[:60]!r}, want a JSON object, as a run writes it")
        rows.append((line, row))
    return rows


def _table(path: Path, text: str) -> list[tuple[int, dict[str, Any]]]:
    reader = csv.reader(io.StringIO(text))
    rows: list[tuple[int, dict[str, Any]]] = []
    for words in reader:
        if reader.line_num == 1:
            if tuple(words) != Entry._fields:
                raise ConfigError(f"{path}:1: columns {','.join(words)[:60]}, want {','.join(Entry._fields)}")
            continue
        if len(words) != len(Entry._fields):
            raise ConfigError(f"{path}:{reader.line_num}: {len(words)} values, want {len(Entry._fields)}")
        named = zip(Entry._fields, words, strict=True)
        rows.append((reader.line_num, {name: None if word == "" else word for name, word in named}))
    return rows


def _entry(where: str, row: dict[str, Any]) -> Entry:
    """A row in its fields' types."""
    missing = [name for name in Entry._fields if name not in row]
    if missing:
        raise ConfigError(f"{where}: no {', '.join(missing[:5])}, want a row of metrics as a run writes it")
    found: dict[str, Any] = {}
    for name, kind in Entry.__annotations__.items():
        value = row[name]
        if value is None and (kind is str or type(None) in get_args(kind)):
            found[name] = "" if kind is str else None
            continue
        plain = next((one for one in get_args(kind) if one is not type(None)), kind)
        try:
            found[name] = _typed(plain, value)
        except (TypeError, ValueError, OverflowError):
            raise ConfigError(f"{where}: {name} = {value!r:.60}, want {_KINDS[plain]}") from None
    entry = Entry(**found)
    _check(where, entry)
    return entry


_KINDS = {str: "text", int: "a whole number", float: "a finite number", bool: "0 or 1"}


def _typed(kind: Any, value: Any) -> Any:
    """A value in a field's type; raises ValueError or TypeError where it is none of it."""
    if kind is bool:
        return bool(int(value))
    typed = kind(value)
    if (kind is int and isinstance(value, float) and typed != value) or (kind is float and not math.isfinite(typed)):
        raise ValueError
    return typed


def _check(where: str, entry: Entry) -> None:
    """Raise ConfigError for numbers that no job can have, or that contradict each other."""
    e = entry
    if not (e.session >= 0 and e.cores >= 1 and e.speedup > 0 and e.p > 0 and 1 <= e.n <= e.cores):
        raise ConfigError(
            f"{where}: session {e.session}, cores {e.cores}, speedup {e.speedup:g}, n {e.n}, p {e.p:g}; want 0 or more "
            "sessions, a speedup and seconds above 0, and 1 to as many cores as the host has"
        )
    if not 0 <= e.submit <= e.start <= e.end:
        raise ConfigError(
            f"{where}: submit {e.submit:g}, start {e.start:g}, end {e.end:g}; want none before the other, nor below 0"
        )
    for name, told, passed in (
        ("queue_wait_s", e.queue_wait_s, e.start - e.submit), ("duration_s", e.duration_s, e.end - e.start),
    ):  # fmt: skip
        if not math.isclose(told, passed / e.speedup, rel_tol=1e-6, abs_tol=1e-3):
            raise ConfigError(
                f"{where}: {name} {told:g}, and {passed / e.speedup:g} by submit {e.submit:g}, start {e.start:g}, end "
                f"{e.end:g} and speedup {e.speedup:g}; want numbers that agree"
            )
