"""What a run is to do, kept beside its metrics so that it can be gone on with."""

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from berth.commandline import written_whole
from berth.console import tell
from berth.errors import ConfigError
from envs.workload import Workload, on_one_node
from traces.trace import Trace

FORMAT = "berth run 1"

COLUMNS = ("job_id", "submit", "run_time", "gpus", "user", "vc")
"""What is kept of the jobs; the last two where the trace has them."""

LAST_MOMENT = 32503680000.0
"""Seconds from 1970 to the year 3000; no run begins later."""


@dataclass(frozen=True)
class Plan:
    """A run: its name, its settings, when it began, and its jobs."""

    run: str
    settings: dict[str, Any]
    began: float  # s since 1970
    cores: int
    workload: Workload
    session: int = 0  # how often it has been gone on with
    digest: str = ""  # of the trained policy, "" where a heuristic decides

    def file(self, folder: Path) -> Path:
        """Where it is kept."""
        return plan_file(folder, self.run)

    def write(self, folder: Path) -> None:
        """Keep it, whole and on the disk; raises ConfigError where it cannot be written."""
        trace = self.workload.trace
        columns = {name: getattr(trace, name) for name in COLUMNS}
        told = {
            "format": FORMAT, "run": self.run, "began": self.began, "session": self.session, "cores": self.cores,
            "settings": self.settings, "digest": self.digest, "trace": trace.name,
            "jobs": {name: column.tolist() for name, column in columns.items() if column is not None},
        }  # fmt: skip
        with written_whole(self.file(folder)) as begun, begun.open("w") as file:
            json.dump(told, file)
            file.flush()
            os.fsync(file.fileno())

    def again(self) -> "Plan":
        """The same, gone on with once more."""
        return dataclasses.replace(self, session=self.session + 1)


def plan_file(folder: Path, run: str) -> Path:
    """Where the plan of a run is."""
    return folder / f"run_{run}.json"


def is_run_name(name: str) -> bool:
    """Whether a run may be called so: its files' names must be possible, and stay in their folder."""
    plain = not name.startswith(".") and all(c.isalnum() or c in "._-" for c in name)
    return plain and len(name.encode()) <= 100


def read_plan(path: Path) -> Plan:
    """Read what a run is to do; raises ConfigError for a file that is none."""
    try:
        told = json.loads(path.read_text())
        if told["format"] != FORMAT:
            raise ValueError(f"says it is {told['format']!r}")
        if f"run_{told['run']}.json" != path.name:
            raise ValueError(f"run = {told['run']!r:.60}, want the one that the file is named for")
        cores = int(_within("cores", told["cores"], 1, 10**4))
        workload = on_one_node(Trace(str(told["trace"]), "run", **_columns(told["jobs"])), cores)
        if workload.unfit:
            raise ValueError(f"job {workload.unfit[0]} asks for more than {cores} cores")
        return Plan(
            told["run"], dict(told["settings"]), _within("began", told["began"], 0, LAST_MOMENT), cores, workload,
            int(_within("session", told["session"], 0, 10**9)), str(told.get("digest", "")),
        )  # fmt: skip
    except (
        OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, ConfigError
    ) as trouble:  # fmt: skip
        raise ConfigError(f"{path}: not the plan of a run, or a damaged one ({trouble}); want {FORMAT!r}") from None


def _within(name: str, value: Any, low: float, high: float) -> float:
    """A number of a plan; raises ValueError for one that cannot be."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{name} = {value!r:.60}, want a number from {low:g} to {high:g}")
    return float(value)


def _columns(jobs: dict[str, list[Any]]) -> dict[str, Any]:
    """The columns of a plan's jobs; raises ValueError for what no job can be."""
    names = [str(name) for name in jobs["job_id"]]
    for column, low in (("submit", 0.0), ("run_time", 1e-12), ("gpus", 1)):
        for name, value in zip(names, jobs[column], strict=True):
            _within(f"{column} of job {name}", value, low, 1e12)
    if len(set(names)) != len(names) or not names:
        raise ValueError(f"{len(names)} jobs with {len(set(names))} names, want some, each with its own")
    if any(value != int(value) for value in jobs["gpus"]):
        raise ValueError("gpus are no whole numbers")
    kinds = {"submit": np.float64, "run_time": np.float64, "gpus": np.int32}
    columns = {name: np.array(values, kinds.get(name, object)) for name, values in jobs.items() if name in COLUMNS}
    if any(column.shape != (len(names),) for column in columns.values()):
        raise ValueError("columns of different length")
    return columns


def find_plans(folder: Path, run: str) -> list[Plan]:
    """The runs of a folder, the last begun first, or the one of a name; raises ConfigError where there is none.

    A damaged file among others is told and passed over, unless it is the one that is named.
    """
    if run:
        path = plan_file(folder, run)
        if not path.is_file():
            raise ConfigError(f"--run {run}: no {path}; want the name of a run, as in run_NAME.json")
        return [read_plan(path)]
    found, damaged = [], []
    for path in sorted(folder.glob("run_*.json")):
        try:
            found.append(read_plan(path))
        except ConfigError as trouble:
            damaged.append(trouble)
    if damaged and not found:
        raise damaged[0]
    for one in damaged:
        tell(f"note: {one}; passed over")
    if not found:
        raise ConfigError(f"--resume: no run_*.json in {folder}; want the --output-dir of a run that was stopped")
    return sorted(found, key=lambda plan: plan.began, reverse=True)
