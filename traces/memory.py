"""The memory that jobs ask for, in MB, whatever unit their file has."""

import numpy as np

from traces.trace import MISSING, Trace

MB = {"Alibaba PAI task table": 1000.0, "Alibaba openb 2023 pods": 1.048576, "Slurm sacct": 1.048576}
"""MB in the unit of formats that have another one (docs/formats.md)."""

OF_EACH = {"SWF": 0.001}
"""The same of formats that tell the memory of each processor."""


def asked_memory(trace: Trace, processors: np.ndarray) -> np.ndarray:
    """The memory that jobs ask for (jobs,), MB; where they do not tell, what they used; -1 where neither is known."""
    asked: np.ndarray = np.full(len(trace), float(MISSING))
    for column in (trace.used_memory, trace.memory):
        if column is not None:
            asked = np.where(column >= 0, column, asked)
    unit = OF_EACH[trace.format] * processors if trace.format in OF_EACH else MB.get(trace.format, 1.0)
    return np.where(asked >= 0, asked * unit, MISSING)
