"""The metrics of a live run: the fields of a row, and how a file of them is read."""

import csv
import io
import json
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

    Raises ConfigError with file, line and field for what is no row of metrics, or where a job is there twice.
    """
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
            found[name] = bool(int(value)) if plain is bool else plain(value)
        except (TypeError, ValueError):
            raise ConfigError(f"{where}: {name} = {value!r}, want {plain.__name__}") from None
    return Entry(**found)
