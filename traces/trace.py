"""The one type that every trace format is read into."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from berth.errors import TraceError

GPU_TYPES = ("T4", "MISC", "P100", "V100_16GB", "V100_32GB")
"""Names of the GPU types that the formatted files give as the numbers 0 to 4."""

MISSING = -1
"""What the formats write where a value is not available."""

NEEDED = ("job_id", "submit", "run_time", "gpus")
"""The columns that every Trace has."""

SHOWN = 50
"""How many malformed rows are listed to the user."""


@dataclass(frozen=True)
class Trace:
    """Jobs as columns, one row per job, sorted by submit time (stable: equal times keep the file's order).

    Times are the file's own seconds, or, where it has dates, seconds from the midnight before its first job. A column
    that the file does not have is None; a single value that is missing is -1 in a column of numbers, "-1" in one of
    names. `gpus` is what is placed: whole GPUs, a fraction rounded up; the fraction itself stays in `gpu_fraction`.
    """

    name: str  # the file, for messages
    format: str  # the format it was read as
    job_id: np.ndarray  # (jobs,) names, unique
    submit: np.ndarray  # (jobs,) float64 s
    run_time: np.ndarray  # (jobs,) float64 s, > 0
    gpus: np.ndarray  # (jobs,) int32, >= 1
    gpu_fraction: np.ndarray | None = None  # (jobs,) float64, GPUs asked for, exactly
    request_time: np.ndarray | None = None  # (jobs,) float64 s, the user's estimate
    wait: np.ndarray | None = None  # (jobs,) float64 s, historic
    cpus: np.ndarray | None = None  # (jobs,) float64
    memory: np.ndarray | None = None  # (jobs,) float64, requested
    cpu_time: np.ndarray | None = None  # (jobs,) float64 s, used
    used_memory: np.ndarray | None = None  # (jobs,) float64
    status: np.ndarray | None = None  # (jobs,) names
    user: np.ndarray | None = None  # (jobs,) names
    group: np.ndarray | None = None  # (jobs,) names
    executable: np.ndarray | None = None  # (jobs,) names
    queue: np.ndarray | None = None  # (jobs,) names
    partition: np.ndarray | None = None  # (jobs,) names
    preceding_job: np.ndarray | None = None  # (jobs,) names
    vc: np.ndarray | None = None  # (jobs,) names of virtual clusters
    gpu_type: np.ndarray | None = None  # (jobs,) names
    left_out: Mapping[str, int] = field(default_factory=dict)  # reason -> rows the format defines as out of scope
    machine: tuple[int, int] | None = None  # (nodes, processors per node), where the file describes its machine
    origin: str = ""  # the moment that second 0 stands for, where the file tells: 2017-10-03 00:00:00
    skipped: tuple[str, ...] = ()  # what was wrong with each malformed row that was left out
    notes: tuple[str, ...] = ()  # what else a user should know about how the file was read

    def __post_init__(self) -> None:
        order = np.argsort(self.submit, kind="stable")
        if not np.array_equal(order, np.arange(len(order))):
            for column in self.columns():
                object.__setattr__(self, column, getattr(self, column)[order])

    def __len__(self) -> int:
        return len(self.submit)

    def columns(self) -> list[str]:
        """Names of the columns that this trace has."""
        return [f.name for f in dataclasses.fields(self) if isinstance(getattr(self, f.name), np.ndarray)]

    def select(self, rows: np.ndarray | slice) -> "Trace":
        """Keep some rows, given as a mask, indices or a slice."""
        return dataclasses.replace(self, **{column: getattr(self, column)[rows] for column in self.columns()})

    def sentences(self) -> list[str]:
        """What a user should be told about how the file was read."""
        said = [f"{self.name}: {counted(len(self), 'job')}, read as {self.format}"]
        for reason, rows in self.left_out.items():
            said.append(f"{self.name}: {counted(rows, 'row')} left out: {reason}")
        said += [f"{self.name}: {note}" for note in self.notes]
        if self.skipped:
            said.append(f"{self.name}: {counted(len(self.skipped), 'malformed row')} skipped:")
            said += [f"  {row}" for row in self.skipped[:SHOWN]]
            said += [f"  ... and {len(self.skipped) - SHOWN:,} more"] if len(self.skipped) > SHOWN else []
        if self.gpu_fraction is not None:
            fractional = int(np.count_nonzero(self.gpu_fraction != self.gpus))
            if fractional:
                who = "job asks" if fractional == 1 else "jobs ask"
                said.append(f"{self.name}: {fractional:,} {who} for a fraction of a GPU: rounded up for placement")
        return said


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 row, 2 rows."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def make_trace(name: str, columns: Mapping[str, Any], **rest: Any) -> Trace:
    """Build a Trace from a reader's columns, dropping those in which nothing is known.

    Raises TraceError where no job is left, or where two rows have one job id.
    """
    if len(columns["submit"]) == 0:
        reasons = [f"{rows} {reason}" for reason, rows in rest.get("left_out", {}).items()]
        if rest.get("skipped"):
            reasons.append(f"{len(rest['skipped'])} malformed, the first: {rest['skipped'][0]}")
        shown = f" (left out: {', '.join(reasons)})" if reasons else ""
        raise TraceError(f"{name}: no jobs in it{shown}, want at least one")
    return Trace(name=name, **{key: value for key, value in columns.items() if _known(key, value)}, **rest)


def _known(key: str, values: np.ndarray | None) -> bool:
    """Tell whether an optional column says anything at all."""
    if key in NEEDED:
        return True
    if values is None:
        return False
    missing = str(MISSING) if values.dtype == object else MISSING
    return bool(np.any(values != missing))
