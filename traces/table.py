"""Delimited text read into columns, with errors that name file, line and field."""

import gzip
import io
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from berth.errors import TraceError


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
        raise TraceError(f"{path}: not a text file (byte {damage.start} is no UTF-8), want text or .gz of text") from None
    except OSError as trouble:
        raise TraceError(f"{path}: {trouble.strerror}, want a file that can be read") from None


@dataclass(frozen=True)
class Table:
    """Columns of words, each row with the number of its line in the file."""

    path: str
    lines: np.ndarray  # (rows,) line number in the file, from 1
    words: pd.DataFrame  # (rows, fields) strings

    def select(self, rows: np.ndarray) -> "Table":
        """Keep the rows of a mask."""
        return Table(self.path, self.lines[rows], self.words[rows].reset_index(drop=True))

    def names(self, field: str) -> np.ndarray:
        """A column as it stands, blanks around it taken off."""
        return self.words[field].str.strip().to_numpy(dtype=object)

    def numbers(self, field: str, low: float, want: str = "") -> np.ndarray:
        """A column of finite numbers >= low; raises TraceError at the first row that has something else."""
        values = pd.to_numeric(self.words[field].str.strip(), errors="coerce").to_numpy(dtype=np.float64)
        self.check(field, np.isfinite(values) & (values >= low), want or f"a number >= {low:g}")
        return values

    def check(self, field: str, good: np.ndarray, want: str) -> None:
        """Raise TraceError at the first row where `good` is False."""
        if not good.all():
            self.fail(int(np.argmin(good)), field, want)

    def fail(self, row: int, field: str, want: str) -> None:
        """Raise the TraceError for one row and field."""
        raise TraceError(f"{self.path}:{self.lines[row]}: {field} = {self.words[field].iloc[row]}, want {want}")

    def check_unique(self, field: str) -> None:
        """Raise TraceError where a value stands twice in a column."""
        again = self.words[field].str.strip().duplicated().to_numpy()
        if again.any():
            row = int(np.argmax(again))
            first = self.lines[int(np.argmax(self.names(field) == self.names(field)[row]))]
            self.fail(row, field, f"an id that is not on line {first} already")


def read_table(path: str | Path, text: str, fields: tuple[str, ...], comment: str = ";", separator: str = ",") -> Table:
    """Cut text into the named fields; blank lines, comment lines and a header row with these names are passed over.

    `separator` " " means any run of blanks. Raises TraceError for a line with another number of fields.
    """
    kept: list[str] = []
    numbers: list[int] = []
    blanks = separator == " "
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith(comment):
            continue
        found = len(line.split()) if blanks else line.count(separator) + 1
        if found != len(fields):
            raise TraceError(f"{path}:{number}: {found} fields, want {len(fields)} ({', '.join(fields)}): {line[:60]!r}")
        kept.append(line)
        numbers.append(number)
    if kept and not blanks and [word.strip().lower() for word in kept[0].split(separator)] == list(fields):
        kept, numbers = kept[1:], numbers[1:]
    if not kept:
        return Table(str(path), np.empty(0, np.int64), pd.DataFrame({field: [] for field in fields}, dtype=str))
    words = pd.read_csv(
        io.StringIO("\n".join(kept)),
        header=None,
        names=list(fields),
        sep=r"\s+" if blanks else separator,
        dtype=str,
        keep_default_na=False,
        quoting=3,
        skipinitialspace=True,
    )
    return Table(str(path), np.array(numbers), words)
