"""Rows of a trace file as columns, with complaints that name file, line and field."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from berth.errors import TraceError
from traces.cells import Kind, Names
from traces.source import Source, split
from traces.trace import MISSING, Trace, counted, make_trace

MOST = 1e15
"""The largest number that is taken in a trace: seconds and bytes beyond it are mistakes, and sums stay finite."""

MOST_GPUS = 10_000_000
"""The most GPUs that a job may ask for."""

CHUNK = 1 << 18
"""How many letters are cut at a time: columns are made chunk by chunk, so that words stay in the processor's cache."""


class Table:
    """Columns of values with the line of each row; keeps account of rows that are out of scope or malformed.

    A reader first leaves out what its format defines as out of scope, then checks the rest, then asks for the Trace.
    Rows that are out are not checked any further.
    """

    def __init__(
        self,
        source: Source,
        columns: Mapping[str, np.ndarray],
        lines: np.ndarray,
        word: Callable[[int, str], str],
        malformed: Mapping[int, str] | None = None,
    ) -> None:
        self.source = source
        self.columns = dict(columns)
        self.lines = lines  # (rows,) line in the file, from 1
        self.word = word  # (row, field) -> what the file says there
        self.scope = np.ones(len(lines), bool)  # (rows,) still in
        self.left_out: dict[str, int] = {}
        self.notes: list[str] = []  # what else the user should know
        self.skipped: list[str] = []  # malformed rows of other files that were read along
        self.complaints: list[tuple[int, str]] = list((malformed or {}).items())  # (line, what came, what was wanted)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, field: str) -> np.ndarray:
        return self.columns[field]

    def leave_out(self, reason: str, rows: np.ndarray) -> None:
        """Take rows of a mask out of scope, and count them."""
        count = int(np.count_nonzero(self.scope & rows))
        if count:
            self.left_out[reason] = self.left_out.get(reason, 0) + count
            self.scope &= ~rows

    def check(self, field: str, good: np.ndarray, want: str | Callable[[int], str]) -> None:
        """Complain of the rows in scope where `good` is False."""
        for row in np.flatnonzero(self.scope & ~good).tolist():
            wanted = want if isinstance(want, str) else want(row)
            self.complaints.append((int(self.lines[row]), f"{field} = {self.word(row, field)}, want {wanted}"))
        self.scope &= good

    def numbers(self, field: str, low: float = 0, most: float = MOST) -> np.ndarray:
        """A column of numbers from low to most, checked."""
        values = self.columns[field]
        self.check(field, values >= low, f"a number >= {low:g}")
        self.check(field, values <= most, f"a number <= {most:,.0f}" if most < MOST else f"a number <= {most:g}")
        return values

    def known_or_missing(self, field: str) -> np.ndarray:
        """A column of numbers >= 0, or -1 where one is not known, checked."""
        values = self.columns[field]
        self.check(field, (values >= 0) | (values == -1), "a number >= 0, or -1 where it is not known")
        return self.numbers(field, low=-1)

    def if_known(self, field: str) -> np.ndarray:
        """A column of numbers that nothing is reckoned from: -1, counted and said, in the place of what is none."""
        values = self.columns[field]
        sound = (values >= -1) & (values <= MOST)
        odd = int(np.count_nonzero(self.scope & ~sound))
        if odd:
            first = int(np.argmax(self.scope & ~sound))
            where = f"{field} = {self.word(first, field)} on line {self.lines[first]}"
            self.notes.append(f"{counted(odd, 'job')} with a {field} that is no number (the first: {where}): not known")
            self.columns[field] = values = np.where(sound, values, MISSING)
        return values

    def gpus(self, field: str) -> np.ndarray:
        """A column of GPU counts above 0, maybe fractions, checked."""
        values = self.columns[field]
        self.check(field, (values > 0) & (values <= MOST_GPUS), f"a number > 0 and <= {MOST_GPUS:,}")
        return values

    def times(self, field: str, missing: bool = False) -> np.ndarray:
        """A column of times in seconds since 1970, checked; `missing` allows -1."""
        values = self.columns[field]
        self.check(field, (values >= 0) | ((values == -1) & missing), "a time like 2020-06-09 18:41:01")
        return values

    def wait(self, start: np.ndarray, submit: np.ndarray) -> np.ndarray:
        """How long jobs waited; -1, counted and said, for those that start before they are submitted."""
        early = int(np.count_nonzero(self.scope & (start < submit)))
        if early:
            self.notes.append(f"{counted(early, 'job')} with a start before the submission: wait not known")
        with np.errstate(invalid="ignore"):
            return np.where(start >= submit, start - submit, MISSING)

    def unique(self, field: str) -> None:
        """Complain of values that stand twice in a column."""
        values = self.columns[field].tolist()
        if len(set(values)) == len(values):
            return
        first: dict[str, int] = {}
        for row, value in enumerate(values):
            if self.scope[row]:
                first.setdefault(value, row)
        again = np.array([first.get(value, row) != row for row, value in enumerate(values)])
        self.check(field, ~again, lambda row: f"an id that is not on line {self.lines[first[values[row]]]} already")

    def identify(self, field: str) -> np.ndarray:
        """A column of ids, each a name that stands there once, checked."""
        self.check(field, self.columns[field] != "", "a name")
        self.unique(field)
        return self.columns[field]

    def require(self) -> list[str]:
        """List the malformed rows; raises TraceError at the first of them unless they are to be skipped."""
        complaints = [f"{self.source.path}:{line}: {text}" for line, text in sorted(self.complaints)]
        if complaints and not self.source.skip_bad_rows:
            rest = len(complaints) - 1
            more = f" ({counted(rest, 'more malformed row')}; --skip_bad_rows leaves them out)" if rest else ""
            raise TraceError(complaints[0] + more)
        return complaints

    def trace(self, form: str, columns: Mapping[str, np.ndarray | None], **rest: Any) -> Trace:
        """Make the Trace of the rows in scope; raises TraceError for a malformed row unless those are skipped."""
        complaints = self.require()
        kept = {key: values[self.scope] for key, values in columns.items() if values is not None}
        return make_trace(
            self.source.path,
            kept,
            format=form,
            left_out=self.left_out,
            skipped=(*complaints, *self.skipped),
            notes=tuple(self.notes),
            **rest,
        )


def whole(exact: np.ndarray) -> np.ndarray:
    """GPUs as they are placed: fractions rounded up. What is no count becomes 0, for rows that are out anyway."""
    sound = (exact > 0) & (exact <= MOST_GPUS)
    return np.ceil(np.where(sound, exact, 0)).astype(np.int32)


def product(count: np.ndarray, each: np.ndarray) -> np.ndarray:
    """GPUs of several instances; 70 × 0.1 is 7, not 7.000000000000001, which would be rounded up to 8."""
    with np.errstate(invalid="ignore", over="ignore"):
        exact = count * each
        near = np.round(exact, 9)
        return np.where(near > 0, near, exact)


def cut(
    source: Source,
    kinds: Mapping[str, Kind],
    comment: str = ";",
    separator: str = ",",
    need: Sequence[str] = (),
    loose: str = "",
) -> Table:
    """Cut text into the named columns; blank lines and comment lines are passed over.

    A first row that holds the names in `need` (all, where none are named) is a header and gives the order of the
    columns; columns with other names are passed over. `separator` " " means any run of blanks. The field `loose` may
    hold the separator itself. Lines with another number of fields are malformed.
    """
    layout: list[str] = []
    malformed: dict[int, str] = {}
    parts: dict[str, list[np.ndarray]] = {field: [] for field in kinds}
    known = {field: Names() for field in kinds}
    lines: list[np.ndarray] = []
    for text, first in _chunks(source.text):
        words: Sequence[Sequence[str]] | None = _straight(text, separator, len(layout)) if layout else None
        numbers: np.ndarray
        if words is not None:
            numbers = np.arange(first, first + len(words[0]))
        else:
            rows, numbers = _rows(text, first, comment, separator)
            if rows and not layout:
                layout, header = _layout(rows[0], kinds, need or tuple(kinds))
                rows, numbers = rows[header:], numbers[header:]
            if loose in layout:
                rows = [_mended(row, len(layout), layout.index(loose), separator) for row in rows]
            rows, numbers = _of_width(rows, numbers, layout, separator, malformed)
            words = list(zip(*rows, strict=True)) if rows else [()] * len(layout)
        lines.append(numbers)
        for field, column in zip(layout, words, strict=True):
            if field in kinds:
                parts[field].append(kinds[field](column, known[field]))
    at = np.concatenate(lines) if lines else np.zeros(0, np.int64)
    columns = {field: np.concatenate(made) for field, made in parts.items() if made}
    if not layout:
        columns = {field: kind((), Names()) for field, kind in kinds.items()}

    @cache
    def _lines() -> list[str]:
        return source.text.split("\n")

    def _word(row: int, field: str) -> str:
        words = split(_lines()[int(at[row]) - 1], separator)
        if loose in layout:
            words = _mended(words, len(layout), layout.index(loose), separator)
        return words[layout.index(field)].strip()

    return Table(source, columns, at, _word, malformed)


def _mended(row: list[str], width: int, at: int, separator: str) -> list[str]:
    """Put a field together again that was cut because it holds the separator."""
    extra = len(row) - width
    return row if extra <= 0 else [*row[:at], separator.join(row[at : at + extra + 1]), *row[at + extra + 1 :]]


def _layout(row: list[str], kinds: Mapping[str, Kind], need: Sequence[str]) -> tuple[list[str], int]:
    """The order of the columns, and how many rows of names stand before the data."""
    by_lower = {field.lower(): field for field in kinds}
    names = [by_lower.get(word.strip().lower(), word.strip()) for word in row]
    if not set(need) <= set(names):
        return list(kinds), 0
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name in seen and name in kinds:
            names[i] = f"{name} again"  # the first column of a name counts
        seen.add(name)
    return names, 1


def _chunks(text: str) -> Iterator[tuple[str, int]]:
    """Whole lines of a text in chunks, each with the number of its first line."""
    begin, line = 0, 1
    while begin < len(text):
        end = text.find("\n", begin + CHUNK)
        end = len(text) if end < 0 else end
        chunk = text[begin:end]
        yield chunk, line
        begin, line = end + 1, line + chunk.count("\n") + 1


def _straight(text: str, separator: str, width: int) -> list[list[str]] | None:
    """The columns of a chunk all of whose lines are rows of the right width, the fast way; None where some are not."""
    if separator == " " or '"' in text or ";" in text or width < 2:
        return None
    letters = np.frombuffer((text + "\n").encode(), np.uint8)
    ends = letters == ord("\n")
    is_end = ends[(letters == ord(separator)) | ends]  # of each mark: is it a line's end?
    if len(is_end) % width or not (is_end.reshape(-1, width) == (np.arange(width) == width - 1)).all():
        return None
    words = text.replace("\n", separator).split(separator)
    return [words[i::width] for i in range(width)]


def _rows(text: str, first: int, comment: str, separator: str) -> tuple[list[list[str]], np.ndarray]:
    """The rows of a chunk that are neither blank nor comments, with the numbers of their lines."""
    kept = [(i, line) for i, line in enumerate(text.split("\n"), first) if line and not line.isspace()]
    kept = [(i, line) for i, line in kept if line.lstrip()[:1] != comment]
    return [split(line, separator) for _, line in kept], np.array([i for i, _ in kept], np.int64)


def _of_width(
    rows: list[list[str]], numbers: np.ndarray, layout: list[str], separator: str, malformed: dict[int, str]
) -> tuple[list[list[str]], np.ndarray]:
    """Keep rows with as many fields as there are columns; note the others as malformed."""
    good = np.array([len(row) == len(layout) for row in rows], bool)
    for i in np.flatnonzero(~good).tolist():
        began = separator.join(rows[i])[:60]
        named = ", ".join(layout) if len(layout) <= 20 else f"{', '.join(layout[:5])}, ..."
        malformed[int(numbers[i])] = f"{counted(len(rows[i]), 'field')}, want {len(layout)} ({named}): {began!r}"
    return [rows[i] for i in np.flatnonzero(good).tolist()], numbers[good]
