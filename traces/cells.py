"""Columns of words turned into numbers, times or names, fast where all is as it should be."""

from collections.abc import Callable, Sequence
from datetime import datetime

import numpy as np

from traces.trace import MISSING

_LAYOUT = "YYYY-YY-YY YY:YY:YY"  # Y is a digit


class Names(dict[str, str]):
    """One copy of each name, blanks around it taken off."""

    def __missing__(self, word: str) -> str:
        self[word] = word.strip()
        return self[word]


Kind = Callable[[Sequence[str], Names], np.ndarray]
"""How a column's words become values, chunk by chunk; Names are kept from one chunk to the next."""

NOTHING = frozenset(("", "None", "none", "null", "NULL", "N/A", "n/a", "NaN", "nan", "Unknown", "unknown"))
"""Words that stand for a value that is not there, in columns where one may be missing."""


def name(words: Sequence[str], known: Names) -> np.ndarray:
    """Words as they stand, blanks around them taken off; equal words share their memory."""
    return objects(list(map(known.__getitem__, words)))


def identity(words: Sequence[str], known: Names) -> np.ndarray:
    """Words that are all different, such as job ids."""
    return objects([word.strip() for word in words])


def optional_name(words: Sequence[str], known: Names) -> np.ndarray:
    """Words of which some may be missing: those become "-1"."""
    return objects([str(MISSING) if word in NOTHING else word for word in name(words, known).tolist()])


def number(words: Sequence[str], known: Names) -> np.ndarray:
    """Numbers; NaN for a word that is none."""
    try:
        values = np.array(words, np.float64)
    except ValueError:
        values = np.array([_number(word) for word in words], np.float64)
    if "_" in "".join(words):  # Python reads 1_000 as a number, and nobody who writes traces means one
        values[["_" in word for word in words]] = np.nan
    return values


def optional_number(words: Sequence[str], known: Names) -> np.ndarray:
    """Numbers of which some may be missing: those become -1; NaN for a word that is none."""
    values = number(words, known)
    for row in np.flatnonzero(np.isnan(values)):
        if words[row].strip() in NOTHING:
            values[row] = MISSING
    return values


def moment(words: Sequence[str], known: Names) -> np.ndarray:
    """Naive times like 2020-06-09 18:41:01 as seconds since 1970; -1 where one is missing, NaN for other words."""
    laid_out = [word or _LAYOUT for word in words]
    if set(map(len, laid_out)) != {len(_LAYOUT)} or not all(map(str.isascii, laid_out)):
        laid_out = [word if len(word) == len(_LAYOUT) and word.isascii() else _LAYOUT for word in laid_out]
    letters = np.frombuffer("".join(laid_out).encode(), np.uint8).reshape(len(words), len(_LAYOUT))
    values, good = _calendar(letters)
    for row in np.flatnonzero(~good):
        values[row] = seconds(words[row].strip())
    return values


def seconds(word: str) -> float:
    """One naive time, or a number of seconds, as seconds since 1970; -1 where it is missing, NaN where it is none."""
    if word in NOTHING:
        return MISSING
    if word.isdecimal() and 9 <= len(word) <= 11:
        return float(word)
    try:
        return (datetime.fromisoformat(word) - datetime(1970, 1, 1)).total_seconds()
    except (ValueError, TypeError):
        return float("nan")


def objects(values: list[str]) -> np.ndarray:
    """An array of names, as a Trace holds them."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return float("nan")


def _calendar(letters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Read (rows, 19) letters laid out as YYYY-MM-DD hh:mm:ss; also tell which rows are."""
    digits = {i: letters[:, i].astype(np.int32) - ord("0") for i, mark in enumerate(_LAYOUT) if mark == "Y"}
    good = (letters[:, 10] == ord(" ")) | (letters[:, 10] == ord("T"))
    for place, mark in ((4, "-"), (7, "-"), (13, ":"), (16, ":")):
        good &= letters[:, place] == ord(mark)
    for digit in digits.values():
        good &= (digit >= 0) & (digit <= 9)
    month, day, hour, minute, second = (np.where(good, digits[i] * 10 + digits[i + 1], 1) for i in (5, 8, 11, 14, 17))
    year = np.where(good, digits[0] * 1000 + digits[1] * 100 + digits[2] * 10 + digits[3], 1970)
    good &= (month >= 1) & (month <= 12) & (day >= 1) & (hour <= 23) & (minute <= 59) & (second <= 59)
    months = (year - 1970) * 12 + np.clip(month, 1, 12) - 1
    first = _first_days(months)
    good &= day <= _first_days(months + 1) - first
    return (first + day - 1) * 86400.0 + (hour * 3600 + minute * 60 + second), good


def _first_days(months: np.ndarray) -> np.ndarray:
    """Days from 1970 to the first of each month, months counted from January 1970."""
    different, place = np.unique(months, return_inverse=True)
    return different.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)[place]
