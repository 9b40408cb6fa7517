"""A Snapshot as JSON: columns of numbers with a version, checked as they come in."""

import json
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import numpy as np

from berth.errors import SnapshotError
from envs.observation import JOB_NAMES
from envs.sim.history import TOLD_OF
from envs.snapshot import UP, Snapshot

VERSION = 1

MOST_JOBS, MOST_NODES, MOST_POOLS = 50_000, 20_000, 1_000
"""How many queued jobs, running jobs, nodes and pools a Snapshot may have that comes from outside."""

MOST_GPUS, MOST_IN_ALL = 1_024, 200_000
"""How many GPUs a node may have, and all nodes together."""

LATEST = 1e12
"""The largest number of seconds."""

LONGEST_NAME = 256

STATES = ("queued", "holding", "cancelled", "failed")
"""What `queued.state` may say, by the numbers of envs/snapshot.py."""

NODE_STATES = ("up", "drained", "down")
"""What `nodes.state` may say, by the numbers of envs/snapshot.py."""

TOLD_NAMES = tuple(JOB_NAMES[JOB_NAMES.index("by_user") :][:TOLD_OF])
"""The columns of `queued` that ended jobs tell, all of them or none."""


class Numbers(NamedTuple):
    """A column of numbers, and what they may be."""

    field: str  # of the Snapshot
    kind: type = np.float64
    least: float = 0.0
    most: float = LATEST
    null: bool = False  # null stands for a number that is not known
    needed: bool = True


_WHOLE = np.int32
_QUEUED = {
    "submit": Numbers("submit"),
    "gpus": Numbers("gpus", _WHOLE, 1, MOST_IN_ALL),
    "run_time": Numbers("run_time", null=True),
    "pool": Numbers("pool", _WHOLE, 0, MOST_POOLS - 1),
    "cores": Numbers("cores", needed=False),
    "memory": Numbers("memory", needed=False),
}
_RUNNING = {
    "start": Numbers("running_start"),
    "gpus": Numbers("running_gpus", _WHOLE, 1, MOST_IN_ALL),
    "end": Numbers("running_end", null=True),
    "pool": Numbers("running_pool", _WHOLE, 0, MOST_POOLS - 1),
    "guess": Numbers("running_guess", needed=False),
}
_NODES = {
    "capacity": Numbers("capacity", _WHOLE, 1, MOST_GPUS),
    "free": Numbers("free", _WHOLE, 0, MOST_GPUS),
    "pool": Numbers("node_pool", _WHOLE, 0, MOST_POOLS - 1),
    "cores": Numbers("node_cores", needed=False),
    "free_cores": Numbers("node_free_cores", needed=False),
    "memory": Numbers("node_memory", needed=False),
    "free_memory": Numbers("node_free_memory", needed=False),
}
_TOP = ("version", "now", "pools", "queued", "running", "nodes")
_SECTIONS = {"queued": _QUEUED, "running": _RUNNING, "nodes": _NODES}
_TOLD = Numbers("history", np.float32, 0.0, 1.0, needed=False)


def read(text: str | bytes) -> Snapshot:
    """The Snapshot of a JSON text; raises SnapshotError that tells where, what came and what was wanted."""
    told = _parsed(text)
    if not isinstance(told, dict):
        _refuse("the snapshot", _kind(told), "an object")
    if told.get("version") != VERSION or isinstance(told["version"], bool):
        _refuse("version", _shown(told.get("version")), str(VERSION))
    for name in told:
        if name not in _TOP:
            _refuse(name[:LONGEST_NAME], "a field that is not known", ", ".join(_TOP))
    now = told.get("now")
    if not isinstance(now, int | float) or isinstance(now, bool) or not 0 <= now <= LATEST:
        _refuse("now", _shown(now), _wanted(Numbers("now")))
    columns: dict[str, Any] = {"now": float(now)}
    if "pools" in told:
        columns["pool_name"] = tuple(_names(told["pools"], "pools", False))
    parts = {name: _section(told, name) for name in _SECTIONS}
    counts = {
        "queued": _count(parts["queued"], "queued", "job", MOST_JOBS),
        "running": _count(parts["running"], "running", "job", MOST_JOBS),
        "nodes": _count(parts["nodes"], "nodes", "capacity", MOST_NODES),
    }
    for name in _SECTIONS:
        columns |= _numbers(parts[name], name, counts[name])
    columns["job"] = _names(parts["queued"]["job"], "queued.job", True)
    columns["running_job"] = _names(parts["running"]["job"], "running.job", True)
    columns |= _worded(parts, counts)
    _check(columns)
    if "nodes" in parts["running"]:
        columns |= _places(parts["running"]["nodes"], columns)
    return Snapshot(wait=columns["now"] - columns["submit"], **columns)


def write(view: Snapshot) -> str:
    """The JSON text of a Snapshot; what `read` makes of it is equal to it."""
    told: dict[str, Any] = {"version": VERSION, "now": float(view.now)}
    if view.pool_name is not None:
        told["pools"] = list(view.pool_name)
    for name, wanted in _SECTIONS.items():
        told[name] = {}
        for column, what in wanted.items():
            values = getattr(view, what.field)
            if values is not None:
                told[name][column] = _listed(values)
    told["queued"]["job"], told["running"]["job"] = view.job.tolist(), view.running_job.tolist()
    if view.state is not None:
        told["queued"]["state"] = [STATES[code] for code in view.state]
    if view.history is not None:
        told["queued"] |= {name: view.history[:, i].tolist() for i, name in enumerate(TOLD_NAMES)}
    if view.place_at is not None and view.place_node is not None and view.place_gpus is not None:
        pairs = np.stack((view.place_node, view.place_gpus), axis=1).tolist()
        told["running"]["nodes"] = [
            pairs[low:high] for low, high in zip(view.place_at, view.place_at[1:], strict=False)
        ]
    if view.node_state is not None:
        told["nodes"]["state"] = [NODE_STATES[code] for code in view.node_state]
    if view.node_name is not None:
        told["nodes"]["name"] = view.node_name.tolist()
    return json.dumps(told, allow_nan=False, separators=(",", ":"))


def _listed(values: np.ndarray) -> list[Any]:
    """Numbers as JSON has them, null for those that are not known."""
    found: list[Any] = values.tolist()
    if values.dtype.kind == "f" and np.isnan(values).any():
        return [None if number != number else number for number in found]
    return found


def _constant(word: str) -> NoReturn:
    _refuse("the snapshot", word, "finite numbers")


_DECODER = json.JSONDecoder(parse_constant=_constant)


def _parsed(text: str | bytes) -> Any:
    try:
        return _DECODER.decode(text.decode() if isinstance(text, bytes) else text)
    except RecursionError:
        _refuse("the snapshot", "lists in lists without end", "columns of numbers")
    except ValueError as trouble:  # not JSON, not UTF-8, a number of thousands of digits
        raise SnapshotError(f"the snapshot is not JSON: {trouble}; want an object (docs/serving.md)") from None


def _section(told: dict[str, Any], name: str) -> Mapping[str, Any]:
    part = told.get(name)
    if not isinstance(part, dict):
        _refuse(name, _kind(part), "an object of columns")
    known = (*_SECTIONS[name], *_MORE[name])
    for column in part:
        if column not in known:
            _refuse(f"{name}.{column}"[:LONGEST_NAME], "a column that is not known", ", ".join(known))
    return part


def _count(part: Mapping[str, Any], name: str, column: str, most: int) -> int:
    """How many rows a section has."""
    values = part.get(column)
    if not isinstance(values, list):
        _refuse(f"{name}.{column}", _kind(values), "a list")
    if len(values) > most:
        _refuse(name, f"{len(values):,} of them", f"at most {most:,}")
    return len(values)


def _rows(values: Any, where: str, count: int) -> list[Any]:
    """A column that is as long as the others."""
    if not isinstance(values, list):
        _refuse(where, _kind(values), "a list")
    if len(values) != count:
        _refuse(where, f"{len(values):,} values", f"{count:,}, as many as the other columns have")
    return values


def _numbers(part: Mapping[str, Any], name: str, count: int) -> dict[str, np.ndarray]:
    """The columns of numbers of a section, checked all at once: one by one would take longer than reading the text."""
    wanted = {column: what for column, what in _SECTIONS[name].items() if what.needed or column in part}
    plain = len(wanted)
    if name == "queued" and any(column in part for column in TOLD_NAMES):
        wanted |= dict.fromkeys(TOLD_NAMES, _TOLD)
    rows = [_rows(part.get(column), f"{name}.{column}", count) for column in wanted]
    odd = set(map(type, chain.from_iterable(rows))) - {int, float, type(None)}
    if odd:
        at, row = next((i, j) for i, column in enumerate(rows) for j, x in enumerate(column) if type(x) in odd)
        _refuse_number(name, wanted, at, row, rows)
    try:
        table = np.array(rows, np.float64)
    except OverflowError:
        _refuse(name, "a number without end", "finite numbers")
    least, most, whole, null = _limits(tuple(wanted.values()))
    sound = (table >= least) & (table <= most) & (~whole | (table == np.floor(table))) | (null & np.isnan(table))
    if not sound.all():
        at, row = (int(i) for i in np.unravel_index(np.argmin(sound), sound.shape))
        _refuse_number(name, wanted, at, row, rows)
    found = {what.field: column.astype(what.kind) for what, column in zip(wanted.values(), table[:plain], strict=False)}
    if len(wanted) > plain:
        found["history"] = np.ascontiguousarray(table[plain:].T, np.float32)
    return found


@lru_cache(maxsize=64)
def _limits(wanted: tuple[Numbers, ...]) -> tuple[np.ndarray, ...]:
    """What columns may be, each limit as a column of an array."""
    rows = ((what.least, what.most, what.kind is _WHOLE, what.null) for what in wanted)
    return tuple(np.array(limits)[:, None] for limits in zip(*rows, strict=True))


def _refuse_number(name: str, wanted: Mapping[str, Numbers], at: int, row: int, rows: list[list[Any]]) -> NoReturn:
    column, what = list(wanted.items())[at]
    _refuse(f"{name}.{column}[{row}]", _shown(rows[at][row]), _wanted(what))


def _wanted(what: Numbers) -> str:
    number = "a whole number" if what.kind is _WHOLE else "a number"
    return f"{number} from {what.least:g} to {what.most:,.0f}" + (", or null" if what.null else "")


def _names(values: Any, where: str, numbers: bool) -> np.ndarray:
    """Names, or whole numbers in their place; each only once."""
    if not isinstance(values, list):
        _refuse(where, _kind(values), "a list")
    kinds = set(map(type, values))
    if kinds <= {int} and numbers:
        try:
            found = np.array(values, np.int64)
        except OverflowError:
            _refuse(where, "a number of more than 64 bits", "numbers or names")
    elif kinds <= {str}:
        if any(len(name) > LONGEST_NAME for name in values):
            _refuse(where, "a longer name", f"names of at most {LONGEST_NAME} letters")
        found = np.empty(len(values), object)
        found[:] = values
    else:
        _refuse(where, "other or mixed kinds", "names" + (", or whole numbers" if numbers else ""))
    if len(set(values)) < len(values):
        _refuse(where, "one twice", "each only once")
    return found


def _words(values: Any, where: str, known: tuple[str, ...], count: int) -> np.ndarray:
    """A column of words as their numbers."""
    rows = _rows(values, where, count)
    for row, word in enumerate(rows):
        if word not in known:
            _refuse(f"{where}[{row}]", _shown(word), ", ".join(known))
    return np.array([known.index(word) for word in rows], np.int8)


def _worded(parts: dict[str, Mapping[str, Any]], counts: dict[str, int]) -> dict[str, Any]:
    """The columns of words."""
    found: dict[str, Any] = {}
    if "state" in parts["queued"]:
        found["state"] = _words(parts["queued"]["state"], "queued.state", STATES, counts["queued"])
    if "state" in parts["nodes"]:
        found["node_state"] = _words(parts["nodes"]["state"], "nodes.state", NODE_STATES, counts["nodes"])
    if "name" in parts["nodes"]:
        found["node_name"] = _names(_rows(parts["nodes"]["name"], "nodes.name", counts["nodes"]), "nodes.name", False)
    return found


def _check(columns: dict[str, Any]) -> None:
    """Raise SnapshotError for columns that contradict each other."""
    now, capacity, node_pool = columns["now"], columns["capacity"], columns["node_pool"]
    for where, field in (("queued.submit", "submit"), ("running.start", "running_start")):
        if (columns[field] > now).any():
            _refuse(f"{where}[{int(np.argmax(columns[field]))}]", f"{columns[field].max():g}", f"at most now, {now:g}")
    if "node_state" in columns:
        columns["free"][columns["node_state"] != UP] = 0
    if (columns["free"] > capacity).any():
        node = int(np.argmax(columns["free"] > capacity))
        _refuse(f"nodes.free[{node}]", f"{columns['free'][node]}", f"at most its capacity, {capacity[node]}")
    if not len(capacity):
        _refuse("nodes", "none", "at least one")
    if capacity.sum(dtype=np.int64) > MOST_IN_ALL:
        _refuse("nodes.capacity", f"{capacity.sum(dtype=np.int64):,} GPUs in all", f"at most {MOST_IN_ALL:,}")
    there = np.bincount(node_pool)
    if not there.all():
        _refuse("nodes.pool", f"no node of pool {int(np.argmin(there))}", "pools numbered from 0 without gaps")
    for where, field in (("queued.pool", "pool"), ("running.pool", "running_pool")):
        if len(columns[field]) and columns[field].max() >= len(there):
            row = int(np.argmax(columns[field]))
            _refuse(f"{where}[{row}]", f"{columns[field][row]}, an unknown pool", f"0 to {len(there) - 1}")
    names = columns.get("pool_name")
    if names is not None and len(names) != len(there):
        _refuse("pools", f"{len(names):,} names", f"{len(there):,}, as many as the nodes' pools")


def _places(values: Any, columns: dict[str, Any]) -> dict[str, Any]:
    """Where the running jobs are: a list of [node, GPUs] for each."""
    rows = _rows(values, "running.nodes", len(columns["running_gpus"]))
    wanted = "a list of pairs [node, GPUs] of whole numbers for each running job"
    if set(map(type, rows)) - {list}:
        _refuse("running.nodes", "another kind", wanted)
    try:
        pairs = np.array(list(chain.from_iterable(rows)) or np.zeros((0, 2), np.int64))
    except (ValueError, OverflowError):  # lists of different lengths
        _refuse("running.nodes", "other lists", wanted)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype != np.int64:
        _refuse("running.nodes", "another kind", wanted)
    nodes, (node, gpus) = len(columns["capacity"]), pairs.T
    if len(pairs) and (pairs.min() < 0 or node.max() >= nodes or gpus.max() > MOST_GPUS):
        _refuse("running.nodes", "a number out of range", f"nodes from 0 to {nodes - 1:,}, GPUs from 1")
    place_at = np.zeros(len(rows) + 1, np.int64)
    counts = np.fromiter(map(len, rows), np.int64, len(rows))
    np.cumsum(counts, out=place_at[1:])
    sums = np.add.reduceat(np.append(gpus, 0), place_at[:-1]) if len(rows) else np.zeros(0, np.int32)
    wrong = (sums != columns["running_gpus"]) | (counts == 0)
    if wrong.any() or (gpus < 1).any():
        row = int(np.argmax(wrong))
        _refuse(
            f"running.nodes[{row}]", "GPUs that are not the job's", f"{columns['running_gpus'][row]} in all, each >= 1"
        )
    if (columns["node_pool"][node] != np.repeat(columns["running_pool"], counts)).any():
        _refuse("running.nodes", "a node of another pool", "nodes of the job's pool")
    used = np.bincount(node, gpus, minlength=nodes) + columns["free"]
    if (used > columns["capacity"]).any():
        one = int(np.argmax(used > columns["capacity"]))
        _refuse(f"nodes[{one}]", f"{used[one]:.0f} GPUs used and free", f"at most its {columns['capacity'][one]}")
    return {"place_at": place_at, "place_node": node.astype(np.int32), "place_gpus": gpus.astype(np.int32)}


def _refuse(where: str, came: str, wanted: str) -> NoReturn:
    raise SnapshotError(f"{where}: {came}; want {wanted}")


def _kind(value: Any) -> str:
    return {type(None): "nothing", dict: "an object", list: "a list", str: "a word"}.get(type(value), "a number")


def _shown(value: Any) -> str:
    """A value as an error message shows it."""
    return _kind(value) if isinstance(value, dict | list) else repr(value)[:40]


_MORE = {"queued": ("job", "state", *TOLD_NAMES), "running": ("job", "nodes"), "nodes": ("name", "state")}
"""The columns of each section that are no numbers, or stand together."""
