"""Files as they come: plain or gzip, with or without a byte-order mark."""

import csv
import gzip
import io
import zlib
from dataclasses import dataclass
from pathlib import Path

from berth.errors import TraceError

_TAR_MAGIC = slice(257, 262)


@dataclass(frozen=True)
class Source:
    """The text of one trace file, and how strictly it is to be read."""

    path: str  # for messages, and to find tables that lie beside it
    text: str
    skip_bad_rows: bool = False  # leave malformed rows out and list them, instead of raising


def split(line: str, separator: str = ",") -> list[str]:
    """Cut one line; between commas a field in double quotes may hold the separator. " " means any run of blanks."""
    if separator == " ":
        return line.split()
    if separator == "," and '"' in line:
        try:
            return next(csv.reader([line]))
        except csv.Error:
            return line.split(separator)
    return line.split(separator)


def header(head: list[str], separator: str = ",") -> list[str]:
    """The words of a file's first row."""
    return [word.strip() for word in split(head[0], separator)]


def first_lines(text: str) -> list[str]:
    """The first few lines that are neither blank nor a comment."""
    head: list[str] = []
    begin = 0
    while begin < len(text) and len(head) < 5:
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        line = text[begin:end]
        if line.strip() and not line.lstrip().startswith(";"):
            head.append(line)
        begin = end + 1
    return head


def read_bytes(path: str | Path) -> bytes:
    """Read a whole file, plain or .gz; raises TraceError for a missing or damaged one."""
    path = Path(path)
    if path.is_dir():
        raise TraceError(f"{path}: a folder, want a file")
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
    except FileNotFoundError:
        raise TraceError(f"{path}: no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as damage:
        raise TraceError(f"{path}: damaged or cut off gzip file ({damage}), want a whole one") from None
    except OSError as trouble:
        raise TraceError(f"{path}: {trouble.strerror}, want a file that can be read") from None
    if raw[_TAR_MAGIC] == b"ustar":
        raise TraceError(f"{path}: a tar archive, want one of the files in it (tar -xf {path})")
    if raw[:4] == b"PK\x03\x04":
        raise TraceError(f"{path}: a zip archive, want one of the files in it (unzip {path})")
    return raw


def read_text(path: str | Path) -> str:
    """Read a whole text file, plain or .gz; raises TraceError for a missing, damaged or non-text one."""
    return as_text(path, read_bytes(path))


def as_text(path: str | Path, raw: bytes) -> str:
    """Decode a file's bytes, with one kind of line end; raises TraceError where they are no text."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as damage:
        raise TraceError(
            f"{path}: not a text file (byte {damage.start} is no UTF-8), want text or .gz of text"
        ) from None
    if "\r" in text:
        text = io.IncrementalNewlineDecoder(None, translate=True).decode(text, final=True)
    return text
