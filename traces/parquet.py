"""Traces kept exactly, in Parquet: every column, with its type, and what was said of the file."""

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from berth.errors import TraceError
from traces.table import MOST, MOST_GPUS
from traces.trace import NEEDED, Trace

MAGIC = b"PAR1"
"""How a Parquet file begins."""

_KEY = b"berth"
_TOLD = ("name", "format", "left_out", "machine", "origin", "skipped", "notes")


def write_parquet(trace: Trace, path: str | Path) -> None:
    """Write a Trace, all of it."""
    import pyarrow
    from pyarrow import parquet

    columns = {}
    for column in trace.columns():
        values = getattr(trace, column)
        if values.dtype == object:
            columns[column] = pyarrow.array([str(value) for value in values.tolist()], pyarrow.string())
        else:
            columns[column] = pyarrow.array(values)
    told = json.dumps({field: getattr(trace, field) for field in _TOLD})
    table = pyarrow.table(columns).replace_schema_metadata({_KEY: told.encode()})
    parquet.write_table(table, path)


def read_parquet(path: str | Path, raw: bytes) -> Trace:
    """Read a file that `write_parquet` wrote; raises TraceError for another one."""
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(io.BytesIO(raw))
        told: dict[str, Any] = dict(json.loads((table.schema.metadata or {})[_KEY]))
    except (pyarrow.ArrowException, OSError) as damage:
        raise TraceError(f"{path}: damaged or cut off Parquet file ({str(damage)[:80]}), want a whole one") from None
    except (KeyError, ValueError, TypeError):
        raise TraceError(f"{path}: a Parquet file of others, want one that python -m traces convert wrote") from None
    known = {field.name for field in dataclasses.fields(Trace)}
    columns: dict[str, Any] = {name: _values(table[name]) for name in table.column_names if name in known}
    lacking = [name for name in NEEDED if name not in columns]
    if lacking:
        raise TraceError(
            f"{path}: a Parquet file without {', '.join(lacking)}, want one that python -m traces convert wrote"
        )
    _check(path, columns)
    told["machine"] = tuple(told["machine"]) if told.get("machine") else None
    for field in ("skipped", "notes"):
        told[field] = tuple(told[field]) if isinstance(told.get(field), list) else ()
    told["name"] = str(path)
    return Trace(**{field: told[field] for field in _TOLD if field in told}, **columns)


def _check(path: str | Path, columns: dict[str, np.ndarray]) -> None:
    """Raise TraceError for values that no trace has; files are edited by other programs too."""
    for name in NEEDED[1:]:
        if columns[name].dtype.kind not in "fiu":
            raise TraceError(f"{path}: {name} is a column of {columns[name].dtype}, want numbers")
    submit, run_time, gpus = (columns[name] for name in ("submit", "run_time", "gpus"))
    wrong = {
        "no jobs in it, want at least one": len(submit) == 0,
        f"submit, want numbers from 0 to {MOST:g}": not ((submit >= 0) & (submit <= MOST)).all(),
        f"run_time, want numbers > 0 and <= {MOST:g}": not ((run_time > 0) & (run_time <= MOST)).all(),
        f"gpus, want whole numbers from 1 to {MOST_GPUS:,}": not ((gpus >= 1) & (gpus <= MOST_GPUS)).all(),
        "job_id, want every one once": len(set(columns["job_id"].tolist())) < len(submit),
    }
    for text, is_so in wrong.items():
        if is_so:
            raise TraceError(f"{path}: {text}")


def _values(column: Any) -> np.ndarray:
    values = column.to_numpy()
    return values if values.dtype != object else np.array(values.tolist(), dtype=object)
