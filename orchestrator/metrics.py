"""The files of a run's metrics: a line for each job that has ended, on the disk before anything else happens."""

import csv
import io
import json
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from berth.commandline import written_whole
from berth.errors import ConfigError
from eval.ledger import Entry, as_csv, read_ledger
from orchestrator.plans import plan_file

if os.name == "posix":
    import fcntl


class Taken(ConfigError):
    """A name that another run has."""


class Metrics:
    """Appends to metrics_RUN.jsonl and metrics_RUN.csv; the first is the truth, the second can be made from it.

    A file that was cut in the middle of a line is mended when it is opened. Only one process can write to a run.
    """

    def __init__(self, folder: Path, run: str, new: bool = False) -> None:
        """Open the files of a run that is gone on with, or of a `new` one, for which Taken is raised if it is none."""
        self.run = run
        self.path = metrics_file(folder, run)
        self.table = self.path.with_name(f"metrics_{run}.csv")
        self.mended = 0  # bytes of a last line that was cut
        if new:
            check_free(folder, run)
        self._file = _opened(self.path)
        with ExitStack() as undoing:
            undoing.callback(os.close, self._file)
            _lock(self._file, self.path)
            if new:
                check_free(folder, run)  # again: now that it is locked, nobody else can take it any more
            ledger = read_ledger(self.path)
            if ledger.cut:
                self.mended = ledger.cut
                os.truncate(self.path, ledger.whole)
            self.entries = list(ledger.entries)
            with written_whole(self.table) as begun:
                begun.write_text(_lines([list(Entry._fields), *map(as_csv, self.entries)]))
            self._table = _opened(self.table)
            undoing.pop_all()  # all went well: it stays open

    @classmethod
    def claim(cls, folder: Path, run: str, or_next: bool) -> "Metrics":
        """Begin the files of a new run, which nobody else can then have.

        Where the name is taken, the next one with a number is tried, or Taken is raised if it must be this one.
        """
        name, number = run, 1
        while True:
            try:
                return cls(folder, name, new=True)
            except Taken:
                if not or_next:
                    raise
            number += 1
            name = f"{run}_{number}"

    def add(self, entries: Sequence[Entry]) -> None:
        """Append rows, on the disk when this returns.

        Raises ConfigError where they cannot be written; the files then hold whole lines only, as before.
        """
        objects = "".join(json.dumps(entry._asdict(), ensure_ascii=False) + "\n" for entry in entries)
        for file, path, text in (
            (self._file, self.path, objects),
            (self._table, self.table, _lines(list(map(as_csv, entries)))),
        ):
            _append(file, path, text.encode(), len(self.entries))
        self.entries += entries

    def close(self) -> None:
        """Let others write."""
        os.close(self._file)
        os.close(self._table)

    def __enter__(self) -> "Metrics":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, trouble: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


def metrics_file(folder: Path, run: str) -> Path:
    """Where the metrics of a run are."""
    return folder / f"metrics_{run}.jsonl"


def check_free(folder: Path, run: str) -> None:
    """Raise Taken where a name has a plan, or metrics of any job."""
    plan, metrics = plan_file(folder, run), metrics_file(folder, run)
    if plan.exists():
        raise Taken(f"--run {run}: {plan} is there already; want --resume, or another name")
    if metrics.exists() and metrics.stat().st_size:
        raise Taken(f"--run {run}: {metrics} is there already, without {plan.name}; want another name")


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    except OSError as trouble:
        raise ConfigError(f"{path}: {trouble.strerror}, want a file that can be written to") from None


def _lock(file: int, path: Path) -> None:
    """Keep other processes from the run."""
    if os.name != "posix":
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise Taken(f"{path}: another process is at this run; want it to end first, or another --run") from None


def _append(file: int, path: Path, data: bytes, before: int) -> None:
    """Write all of some lines, or nothing."""
    size = os.fstat(file).st_size
    try:
        written = os.write(file, data)
        while written < len(data):
            written += os.write(file, data[written:])
        os.fsync(file)
    except OSError as trouble:
        os.ftruncate(file, size)
        raise ConfigError(
            f"{path}: {trouble.strerror}; the metrics of {before} jobs are in it, and what ran was stopped; want room, "
            "then --resume goes on"
        ) from None


def _lines(rows: list[list[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
