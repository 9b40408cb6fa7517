"""A Snapshot as JSON: columns of numbers with a version, checked as they come in."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate, chain
from typing import Any, NoReturn

import numpy as np
import orjson

from berth.errors import SnapshotError
from envs.columns import (
    LATEST,
    LONGEST_NAME,
    WHOLE,
    Numbers,
    Plan,
    kind,
    make_plan,
    names,
    numbers,
    refuse,
    rows,
    shown,
    words,
)
from envs.observation import JOB_NAMES
from envs.sim.history import TOLD_OF
from envs.sim.nearby import NEARBY_OF
from envs.sim.placed import NOT_THE_JOBS, OTHER_POOL, OUT_OF_RANGE, TOO_MANY, fill_places
from envs.snapshot import UP, Snapshot

VERSION = 1

MOST_JOBS, MOST_NODES, MOST_POOLS = 50_000, 20_000, 1_000
"""How many queued jobs, running jobs, nodes and pools a Snapshot may have that comes from outside."""

MOST_GPUS, MOST_IN_ALL = 1_024, 200_000
"""How many GPUs a node may have, and all nodes together."""

STATES = ("queued", "holding", "cancelled", "failed")
"""What `queued.state` may say, by the numbers of envs/snapshot.py."""

NODE_STATES = ("up", "drained", "down")
"""What `nodes.state` may say, by the numbers of envs/snapshot.py."""

TOLD_NAMES = tuple(JOB_NAMES[JOB_NAMES.index("by_user") :][:TOLD_OF])
"""The columns of `queued` that ended jobs tell, all of them or none."""

NEAR_NAMES = tuple(JOB_NAMES[JOB_NAMES.index("near_by_user") :][:NEARBY_OF])
"""The columns of `queued` that jobs nearby tell, all of them or none."""


_QUEUED = {
    "submit": Numbers("submit"),
    "gpus": Numbers("gpus", WHOLE, 1, MOST_IN_ALL),
    "run_time": Numbers("run_time", null=True),
    "pool": Numbers("pool", WHOLE, 0, MOST_POOLS - 1),
    "cores": Numbers("cores", needed=False),
    "memory": Numbers("memory", needed=False),
}
_RUNNING = {
    "start": Numbers("running_start"),
    "gpus": Numbers("running_gpus", WHOLE, 1, MOST_IN_ALL),
    "end": Numbers("running_end", null=True),
    "pool": Numbers("running_pool", WHOLE, 0, MOST_POOLS - 1),
    "guess": Numbers("running_guess", needed=False),
}
_NODES = {
    "capacity": Numbers("capacity", WHOLE, 1, MOST_GPUS),
    "free": Numbers("free", WHOLE, 0, MOST_GPUS),
    "pool": Numbers("node_pool", WHOLE, 0, MOST_POOLS - 1),
    "cores": Numbers("node_cores", needed=False),
    "free_cores": Numbers("node_free_cores", needed=False),
    "memory": Numbers("node_memory", needed=False),
    "free_memory": Numbers("node_free_memory", needed=False),
}
_TOP = ("version", "now", "pools", "queued", "running", "nodes")
_SECTIONS = {"queued": _QUEUED, "running": _RUNNING, "nodes": _NODES}
_TOLD = Numbers("history", np.float32, 0.0, 1.0, needed=False)


def read(text: str | bytes | bytearray) -> Snapshot:
    """The Snapshot of a JSON text; raises SnapshotError that tells where, what came and what was wanted."""
    told = _parsed(text)
    if not isinstance(told, dict):
        refuse("the snapshot", kind(told), "an object")
    if told.get("version") != VERSION or isinstance(told["version"], bool):
        refuse("version", shown(told.get("version")), str(VERSION))
    for name in told:
        if name not in _TOP:
            refuse(name[:LONGEST_NAME], "a field that is not known", ", ".join(_TOP))
    now = told.get("now")
    if not isinstance(now, int | float) or isinstance(now, bool) or not 0 <= now <= LATEST:
        refuse("now", shown(now), Numbers("now").wanted)
    columns: dict[str, Any] = {"now": float(now)}
    if "pools" in told:
        columns["pool_name"] = tuple(names(told["pools"], "pools", False))
    for name, (first, most) in _FIRST.items():
        columns |= _section(told.get(name), name, first, most)
    _check(columns)
    if "nodes" in told["running"]:
        columns |= _places(told["running"]["nodes"], columns)
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
    if view.nearby is not None:
        told["queued"] |= {name: view.nearby[:, i].tolist() for i, name in enumerate(NEAR_NAMES)}
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
    refuse("the snapshot", word, "finite numbers")


_DECODER = json.JSONDecoder(parse_constant=_constant)


def _parsed(text: str | bytes | bytearray) -> Any:
    with suppress(orjson.JSONDecodeError):  # it holds a copy of the text, which must be gone before the next is made
        return orjson.loads(text)
    return _parsed_slowly(text)


def _parsed_slowly(text: str | bytes | bytearray) -> Any:
    """What Python's own parser makes of a text: it tells more of what is wrong, and knows numbers of any length."""
    try:
        return _DECODER.decode(text if isinstance(text, str) else text.decode())
    except RecursionError:
        refuse("the snapshot", "lists in lists without end", "columns of numbers")
    except UnicodeDecodeError as trouble:
        why = f"byte {trouble.start} is not UTF-8"
    except json.JSONDecodeError as trouble:
        why = f"line {trouble.lineno}, letter {trouble.colno}"
    except ValueError:  # Python's own limit
        why = "a number of thousands of digits"
    raise SnapshotError(f"the snapshot is not JSON: {why}; want an object (docs/serving.md)") from None


@lru_cache(maxsize=64)
def _plan(section: str, there: tuple[str, ...]) -> Plan:
    """How the columns of numbers are checked of a section that has such columns; raises for one that is not known."""
    known = (*_SECTIONS[section], *_MORE[section])
    for column in there:
        if column not in known:
            refuse(f"{section}.{column}"[:LONGEST_NAME], "a column that is not known", ", ".join(known))
    wanted = {column: what for column, what in _SECTIONS[section].items() if what.needed or column in there}
    return make_plan(section, wanted, dict.fromkeys(_stacked(there) if section == "queued" else (), _TOLD))


def _stacked(there: Iterable[str]) -> tuple[str, ...]:
    """The columns that stand together and belong to a queue that has some of them."""
    return tuple(name for group in (TOLD_NAMES, NEAR_NAMES) if not set(group).isdisjoint(there) for name in group)


def _section(part: Any, name: str, first: str, most: int) -> dict[str, Any]:
    """The columns of a section, as the Snapshot names them; the first tells how long they are."""
    if not isinstance(part, dict):
        refuse(name, kind(part), "an object of columns")
    plan = _plan(name, tuple(part))
    values = part.get(first)
    if not isinstance(values, list):
        refuse(f"{name}.{first}", kind(values), "a list")
    if len(values) > most:
        refuse(name, f"{len(values):,} of them", f"at most {most:,}")
    found: dict[str, Any]
    found, histories = numbers(part, plan, len(values))
    stacked = _stacked(part) if histories.shape[1] else ()
    for field, group in (("history", TOLD_NAMES), ("nearby", NEAR_NAMES)):
        if group[0] in stacked:
            at = stacked.index(group[0])
            found[field] = histories[:, at : at + len(group)].astype(np.float32, order="C")
    return found | _worded(part, name, len(values))


def _worded(part: Mapping[str, Any], name: str, count: int) -> dict[str, Any]:
    """The columns of names and words."""
    found: dict[str, Any] = {}
    if name == "nodes":
        if "state" in part:
            found["node_state"] = words(part["state"], "nodes.state", NODE_STATES, count)
        if "name" in part:
            found["node_name"] = names(rows(part["name"], "nodes.name", count), "nodes.name", False)
        return found
    found["job" if name == "queued" else "running_job"] = names(part["job"], f"{name}.job", True)
    if name == "queued" and "state" in part:
        found["state"] = words(part["state"], "queued.state", STATES, count)
    return found


def _check(columns: dict[str, Any]) -> None:
    """Raise SnapshotError for columns that contradict each other."""
    now, capacity, node_pool = columns["now"], columns["capacity"], columns["node_pool"]
    for where, field in (("queued.submit", "submit"), ("running.start", "running_start")):
        if (columns[field] > now).any():
            refuse(f"{where}[{int(np.argmax(columns[field]))}]", f"{columns[field].max():g}", f"at most now, {now:g}")
    if "node_state" in columns:
        columns["free"][columns["node_state"] != UP] = 0
    if (columns["free"] > capacity).any():
        node = int(np.argmax(columns["free"] > capacity))
        refuse(f"nodes.free[{node}]", f"{columns['free'][node]}", f"at most its capacity, {capacity[node]}")
    if not len(capacity):
        refuse("nodes", "none", "at least one")
    if capacity.sum(dtype=np.int64) > MOST_IN_ALL:
        refuse("nodes.capacity", f"{capacity.sum(dtype=np.int64):,} GPUs in all", f"at most {MOST_IN_ALL:,}")
    there = np.bincount(node_pool)
    if not there.all():
        refuse("nodes.pool", f"no node of pool {int(np.argmin(there))}", "pools numbered from 0 without gaps")
    for where, field in (("queued.pool", "pool"), ("running.pool", "running_pool")):
        if len(columns[field]) and columns[field].max() >= len(there):
            row = int(np.argmax(columns[field]))
            refuse(f"{where}[{row}]", f"{columns[field][row]}, an unknown pool", f"0 to {len(there) - 1}")
    names = columns.get("pool_name")
    if names is not None and len(names) != len(there):
        refuse("pools", f"{len(names):,} names", f"{len(there):,}, as many as the nodes' pools")


def _places(values: Any, columns: dict[str, Any]) -> dict[str, Any]:
    """Where the running jobs are: a list of [node, GPUs] for each."""
    lists = rows(values, "running.nodes", len(columns["running_gpus"]))
    wanted = "a list of pairs [node, GPUs] of whole numbers for each running job"
    if set(map(type, lists)) - {list}:
        refuse("running.nodes", "another kind", wanted)
    pairs = list(chain.from_iterable(lists))
    if set(map(type, pairs)) - {list} or set(map(len, pairs)) - {2}:
        refuse("running.nodes", "other lists", wanted)
    flat = list(chain.from_iterable(pairs))
    try:
        found = np.array(flat, np.int64)
    except (OverflowError, ValueError, TypeError):  # more than 64 bits, words, lists
        refuse("running.nodes", "another kind", wanted)
    if set(map(type, flat)) - {int}:
        refuse("running.nodes", "another kind", wanted)
    ran, capacity, free = columns["running_gpus"], columns["capacity"], columns["free"]
    place_at = np.zeros(len(lists) + 1, np.int64)
    place_at[1:] = list(accumulate(map(len, lists)))
    place_node, place_gpus = np.empty(len(pairs), np.int32), np.empty(len(pairs), np.int32)
    wrong, at, used = fill_places(
        found, place_at, ran, columns["running_pool"], columns["node_pool"], capacity, free, MOST_GPUS, place_node,
        place_gpus,
    )  # fmt: skip
    if wrong == OUT_OF_RANGE:
        refuse("running.nodes", "a number out of range", f"nodes from 0 to {len(capacity) - 1:,}, GPUs from 1")
    if wrong == NOT_THE_JOBS:
        refuse(f"running.nodes[{at}]", "GPUs that are not the job's", f"{ran[at]} in all, each >= 1")
    if wrong == OTHER_POOL:
        refuse(f"running.nodes[{at}]", "a node of another pool", "nodes of the job's pool")
    if wrong == TOO_MANY:
        refuse(f"nodes[{at}]", f"{used} GPUs used and free", f"at most its {capacity[at]}")
    return {"place_at": place_at, "place_node": place_node, "place_gpus": place_gpus}


_MORE = {"queued": ("job", "state", *TOLD_NAMES, *NEAR_NAMES), "running": ("job", "nodes"), "nodes": ("name", "state")}
"""The columns of each section that are no numbers, or stand together."""

_FIRST = {"queued": ("job", MOST_JOBS), "running": ("job", MOST_JOBS), "nodes": ("capacity", MOST_NODES)}
"""The sections, the column by whose length each is counted, and how many rows it may have."""
