"""What a run is to do, kept beside its metrics so that it can be gone on with."""

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from berth.commandline import written_whole
from berth.errors import ConfigError
from envs.workload import Workload, on_one_node
from traces.trace import Trace

FORMAT = "berth run 1"

COLUMNS = ("job_id", "submit", "run_time", "gpus", "user", "vc")
"""What is kept of the jobs; the last two where the trace has them."""


@dataclass(frozen=True)
class Plan:
    """A run: its name, its settings, when it began, and its jobs."""

    run: str
    settings: dict[str, Any]
    began: float  # s since 1970
    cores: int
    workload: Workload
    session: int = 0  # how often it has been gone on with

    def file(self, folder: Path) -> Path:
        """Where it is kept."""
        return folder / f"run_{self.run}.json"

    def write(self, folder: Path) -> None:
        """Keep it, whole and on the disk; raises ConfigError where it cannot be written."""
        trace = self.workload.trace
        columns = {name: getattr(trace, name) for name in COLUMNS}
        told = {
            "format": FORMAT, "run": self.run, "began": self.began, "session": self.session, "cores": self.cores,
            "settings": self.settings, "trace": trace.name,
            "jobs": {name: column.tolist() for name, column in columns.items() if column is not None},
        }  # fmt: skip
        with written_whole(self.file(folder)) as begun, begun.open("w") as file:
            json.dump(told, file)
            file.flush()
            os.fsync(file.fileno())

    def again(self) -> "Plan":
        """The same, gone on with once more."""
        return dataclasses.replace(self, session=self.session + 1)


def read_plan(path: Path) -> Plan:
    """Read what a run is to do; raises ConfigError for a file that is none."""
    try:
        told = json.loads(path.read_text())
        if told["format"] != FORMAT:
            raise ValueError(f"says it is {told['format']!r}")
        jobs = told["jobs"]
        kinds = {"submit": np.float64, "run_time": np.float64, "gpus": np.int32}
        columns: dict[str, Any] = {
            name: np.array(values, kinds.get(name, object)) for name, values in jobs.items() if name in COLUMNS
        }
        workload = on_one_node(Trace(str(told["trace"]), "run", **columns), int(told["cores"]))
        return Plan(
            str(told["run"]), dict(told["settings"]), float(told["began"]), int(told["cores"]), workload,
            int(told["session"]),
        )  # fmt: skip
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as trouble:
        raise ConfigError(f"{path}: not the plan of a run, or a damaged one ({trouble}); want {FORMAT!r}") from None


def find_plans(folder: Path, run: str) -> list[Plan]:
    """The runs of a folder, the last begun first, or the one of a name; raises ConfigError where there is none."""
    if run:
        path = folder / f"run_{run}.json"
        if not path.is_file():
            raise ConfigError(f"--run {run}: no {path}; want the name of a run, as in run_NAME.json")
        return [read_plan(path)]
    found = [read_plan(path) for path in sorted(folder.glob("run_*.json"))]
    if not found:
        raise ConfigError(f"--resume: no run_*.json in {folder}; want the --output-dir of a run that was stopped")
    return sorted(found, key=lambda plan: plan.began, reverse=True)
