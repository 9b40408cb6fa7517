"""What workers need of a trace, carried to them without a copy for each."""

import copy
import ctypes
import dataclasses
from typing import Any, NamedTuple

import numpy as np

from allocation.outlined import placers_address
from envs.sim.world import World
from envs.stage import Source, Windows

SHARED = ("roster", "groups", "ended_at", "ended", "unended_at", "unended", "history")
"""The columns of a stage that are as long as its trace; with `places`, nearly all of it."""

UNUSED = ("jobs", "links", "bits", "by_rank", "least", "lengths", "similar", "recent")
"""What the replay behind a stage has used, and episodes do not."""


class Carried(NamedTuple):
    """A source of windows in two parts: columns that all processes of a machine share, and the little that is left."""

    columns: dict[str, np.ndarray]
    rest: Windows


def carried(source: Source) -> Carried | None:
    """What to carry of a source; nothing where jobs are made anew, which every worker can do by itself."""
    if not isinstance(source, Windows):
        return None
    stage = source.stage
    columns = {name: np.asarray(getattr(stage, name)) for name in SHARED} | {"places": np.asarray(stage.world.places)}
    little = {name: array[:0] for name, array in stage.world._asdict().items() if name in (*UNUSED, "places")}
    whole = stage.workload
    workload = dataclasses.replace(whole, trace=whole.trace.select(slice(0, 0)), pool=whole.pool[:0])
    none: dict[str, Any] = {name: columns[name][:0] for name in SHARED}
    rest = copy.copy(source)
    rest.stage = stage._replace(
        workload=workload,
        world=stage.world._replace(**little),
        **none,
    )
    return Carried({name: np.ascontiguousarray(column) for name, column in columns.items()}, rest)


def taken_up(parts: Carried) -> Source:
    """The source again, on the shared columns."""
    columns: dict[str, Any] = {name: lent(column) for name, column in parts.columns.items()}
    places = columns.pop("places")
    small = {name: array.copy() for name, array in parts.rest.stage.world._asdict().items()}
    small["sim"]["placers"] = placers_address()  # of this process
    source = copy.copy(parts.rest)
    source.stage = parts.rest.stage._replace(world=World(**(small | {"places": places})), **columns)
    return source


def lent(column: np.ndarray) -> np.ndarray:
    """A column of the object store as an array that may be written to, in the same memory.

    Nobody writes to a stage. But Numba takes arrays that cannot be written to for another type, and would compile all
    that works on them anew.
    """
    if column.flags.writeable:
        return column
    if not column.nbytes:
        return column.copy()
    memory: Any = (ctypes.c_char * column.nbytes).from_address(column.ctypes.data)
    memory.owner = column
    array: np.ndarray = np.frombuffer(memory, np.uint8).view(column.dtype).reshape(column.shape)
    return array
