"""Delimited text read into columns, with errors that name file, line and field."""

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from berth.errors import TraceError

MOST = 1e15
"""The largest number that is taken in a trace: seconds and bytes beyond it are mistakes, and sums stay finite."""

MOST_GPUS = 10_000_000
"""The most GPUs that a job may ask for."""


def read_text(path: str | Path) -> str:
    """Read a whole text file, plain or .gz; raises TraceError for a missing, damaged or non-text one."""
    path = Path(path)
    if path.is_dir():
        raise TraceError(f"{path}: a folder, want a file")
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        return raw.decode("utf-8-sig")
    except FileNotFoundError:
        raise TraceError(f"{path}: no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as damage:
        raise TraceError(f"{path}: damaged or cut off gzip file ({damage}), want a whole one") from None
    except UnicodeDecodeError as damage:
        raise TraceError(
            f"{path}: not a text file (byte {damage.start} is no UTF-8), want text or .gz of text"
        ) from None
    except OSError as trouble:
        raise TraceError(f"{path}: {trouble.strerror}, want a file that can be read") from None


@dataclass(frozen=True)
class Table:
    """Columns of words, each row with the number of its line in the file."""

    path: str
    lines: np.ndarray  # (rows,) line number in the file, from 1
    words: dict[str, np.ndarray]  # field -> (rows,) strings, blanks around them taken off

    def select(self, rows: np.ndarray) -> "Table":
        """Keep the rows of a mask."""
        return Table(self.path, self.lines[rows], {field: words[rows] for field, words in self.words.items()})

    def names(self, field: str) -> np.ndarray:
        """A column as it stands."""
        return self.words[field]

    def numbers(self, field: str, low: float, want: str = "") -> np.ndarray:
        """A column of numbers from low to MOST; raises TraceError at the first row that has something else."""
        words = self.words[field]
        try:
            values = words.astype(np.float64)
        except ValueError:
            values = np.array([_number(word) for word in words])
        self.check(field, values >= low, want or f"a number >= {low:g}")
        self.check(field, values <= MOST, f"a number <= {MOST:g}")
        return values

    def gpus(self, field: str) -> tuple[np.ndarray, np.ndarray]:
        """A column of GPU counts: whole GPUs, a fraction rounded up, and the exact numbers; raises TraceError."""
        exact = self.numbers(field, low=-np.inf, want=f"a number > 0 and <= {MOST_GPUS:,}")
        self.check(field, (exact > 0) & (exact <= MOST_GPUS), f"a number > 0 and <= {MOST_GPUS:,}")
        return np.ceil(exact).astype(np.int32), exact

    def check(self, field: str, good: np.ndarray, want: str) -> None:
        """Raise TraceError at the first row where `good` is False."""
        if not good.all():
            self.fail(int(np.argmin(good)), field, want)

    def fail(self, row: int, field: str, want: str) -> None:
        """Raise the TraceError for one row and field."""
        raise TraceError(f"{self.path}:{self.lines[row]}: {field} = {self.words[field][row]}, want {want}")

    def check_unique(self, field: str) -> None:
        """Raise TraceError where a value stands twice in a column."""
        seen: dict[str, int] = {}
        for row, word in enumerate(self.words[field]):
            if word in seen:
                self.fail(row, field, f"an id that is not on line {self.lines[seen[word]]} already")
            seen[word] = row


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return float("nan")


def read_table(path: str | Path, text: str, fields: tuple[str, ...], comment: str = ";", separator: str = ",") -> Table:
    """Cut text into the named fields; blank lines, comment lines and a header row with these names are passed over.

    `separator` " " means any run of blanks. Raises TraceError for a line with another number of fields.
    """
    rows: list[list[str]] = []
    numbers: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith(comment):
            continue
        row = line.split() if separator == " " else [word.strip() for word in line.split(separator)]
        if len(row) != len(fields):
            raise TraceError(
                f"{path}:{number}: {len(row)} fields, want {len(fields)} ({', '.join(fields)}): {line[:60]!r}"
            )
        if not rows and not numbers and [word.lower() for word in row] == list(fields):
            continue
        rows.append(row)
        numbers.append(number)
    columns = zip(*rows, strict=True) if rows else ([] for _ in fields)
    words = {field: np.array(column, dtype=object) for field, column in zip(fields, columns, strict=True)}
    return Table(str(path), np.array(numbers, np.int64), words)
