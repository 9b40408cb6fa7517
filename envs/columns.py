"""Columns as JSON brings them: lists become arrays, or an error that tells where, what came and what was wanted."""

from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import numpy as np

from berth.errors import SnapshotError

LATEST = 1e12
"""The largest number of seconds."""

LONGEST_NAME = 256

WHOLE = np.int32
"""The kind of columns that have whole numbers."""


class Numbers(NamedTuple):
    """A column of numbers, and what they may be."""

    field: str  # of the Snapshot
    kind: type = np.float64
    least: float = 0.0
    most: float = LATEST
    null: bool = False  # null stands for a number that is not known
    needed: bool = True

    @property
    def wanted(self) -> str:
        """What it may be, in words."""
        number = "a whole number" if self.kind is WHOLE else "a number"
        return f"{number} from {self.least:g} to {self.most:,.0f}" + (", or null" if self.null else "")


class Plan(NamedTuple):
    """The columns of numbers that a section has, in the order in which they are checked: whole numbers first."""

    section: str
    names: tuple[str, ...]
    columns: tuple[Numbers, ...]
    whole: int  # how many have whole numbers
    plain: int  # how many become columns of the Snapshot; the rest become one table
    least: np.ndarray  # (columns, 1)
    most: np.ndarray  # (columns, 1)
    null: np.ndarray  # (columns, 1)


def make_plan(section: str, columns: Mapping[str, Numbers], table: Mapping[str, Numbers]) -> Plan:
    """How to check columns, and those of a table beside them."""
    order = sorted(columns, key=lambda name: columns[name].kind is not WHOLE) + list(table)
    known = tuple({**columns, **table}[name] for name in order)
    rows = ((what.least, what.most, what.null) for what in known)
    least, most, null = (np.array(limits)[:, None] for limits in zip(*rows, strict=True))
    whole = sum(what.kind is WHOLE for what in known)
    return Plan(section, tuple(order), known, whole, len(columns), least, most, null)


def numbers(part: Mapping[str, Any], plan: Plan, count: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The columns of a section and its table (count, columns), all checked at once: one by one would take far longer.

    Columns are named as the Snapshot names them.
    """
    columns = [rows(part.get(name), f"{plan.section}.{name}", count) for name in plan.names]
    values = list(chain.from_iterable(columns))
    kinds = set(map(type, values))
    if not kinds <= _PLAIN:
        _refuse_at(plan, values, next(i for i, value in enumerate(values) if type(value) not in _PLAIN))
    try:
        table = np.array(values, np.float64).reshape(len(columns), count)
    except OverflowError:  # whole numbers of hundreds of digits
        at = next(i for i, value in enumerate(values) if type(value) is int and abs(value) > LATEST)
        _refuse_at(plan, values, at, "a number without end")
    odd = (table < plan.least) | (table > plan.most)
    if type(None) in kinds:
        odd |= np.isnan(table) & ~plan.null
    if odd.any():
        _refuse_at(plan, values, int(odd.argmax()))
    whole = table[: plan.whole].astype(WHOLE)
    if float in kinds and (whole != table[: plan.whole]).any():
        _refuse_at(plan, values, int((whole != table[: plan.whole]).argmax()))
    found = {what.field: column for what, column in zip(plan.columns, whole, strict=False)}
    for i in range(plan.whole, plan.plain):
        found[plan.columns[i].field] = table[i]
    return found, table[plan.plain :].T


def rows(values: Any, where: str, count: int) -> list[Any]:
    """A column that is as long as the others."""
    if not isinstance(values, list):
        refuse(where, kind(values), "a list")
    if len(values) != count:
        refuse(where, f"{len(values):,} values", f"{count:,}, as many as the other columns have")
    return values


def names(values: Any, where: str, or_numbers: bool) -> np.ndarray:
    """Names, or whole numbers in their place; each only once."""
    if not isinstance(values, list):
        refuse(where, kind(values), "a list")
    kinds = set(map(type, values))
    if kinds <= {int} and or_numbers:
        try:
            found = np.array(values, np.int64)
        except OverflowError:
            refuse(where, "a number of more than 64 bits", "numbers or names")
    elif kinds <= {str}:
        if values and max(map(len, values)) > LONGEST_NAME:
            refuse(where, "a longer name", f"names of at most {LONGEST_NAME} letters")
        found = np.empty(len(values), object)
        found[:] = values
    elif or_numbers and kinds <= {int, float} and all(type(x) is int or abs(x) >= _BITS_64 for x in values):
        refuse(where, "a number of more than 64 bits", "numbers or names")
    else:
        refuse(where, "other or mixed kinds", "names" + (", or whole numbers" if or_numbers else ""))
    if len(set(values)) < len(values):
        refuse(where, "one twice", "each only once")
    return found


def words(values: Any, where: str, known: tuple[str, ...], count: int) -> np.ndarray:
    """A column of words as their numbers."""
    column = rows(values, where, count)
    for row, word in enumerate(column):
        if word not in known:
            refuse(f"{where}[{row}]", shown(word), ", ".join(known))
    return np.array([known.index(word) for word in column], np.int8)


def refuse(where: str, came: str, wanted: str) -> NoReturn:
    """Raise SnapshotError."""
    raise SnapshotError(f"{where}: {came}; want {wanted}")


def kind(value: Any) -> str:
    """What something is, in words."""
    return _KINDS.get(type(value), "a number")


def shown(value: Any) -> str:
    """A value as an error message shows it."""
    return kind(value) if isinstance(value, dict | list) else repr(value)[:40]


def _refuse_at(plan: Plan, values: list[Any], at: int, came: str = "") -> NoReturn:
    """Refuse one of the numbers of all columns, counted through."""
    column, row = divmod(at, len(values) // len(plan.names))
    where = f"{plan.section}.{plan.names[column]}[{row}]"
    refuse(where, came or shown(values[at]), plan.columns[column].wanted)


_PLAIN = {int, float, type(None)}
_BITS_64 = 2.0**63
_KINDS = {type(None): "nothing", dict: "an object", list: "a list", str: "a word", bool: "true or false"}
