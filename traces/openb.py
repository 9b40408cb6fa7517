"""Alibaba's openb 2023: pods on a cluster whose GPUs are shared."""

import numpy as np

from traces.cells import identity, name, optional_name, optional_number
from traces.source import Source, header
from traces.table import MOST_GPUS, cut, product, whole
from traces.trace import MISSING, Trace

FIELDS = {
    "name": identity, "cpu_milli": optional_number, "memory_mib": optional_number, "num_gpu": optional_number,
    "gpu_milli": optional_number, "gpu_spec": optional_name, "qos": name, "pod_phase": name,
    "creation_time": optional_number, "deletion_time": optional_number, "scheduled_time": optional_number,
}  # fmt: skip


def sniff(head: list[str]) -> bool:
    """Recognise the pod list by its header row."""
    return set(FIELDS) <= set(header(head))


def read(source: Source) -> Trace:
    """Read a pod list: a pod runs from scheduled_time to deletion_time on num_gpu × gpu_milli / 1000 GPUs.

    Pods without GPUs, and pods that never were scheduled, are out of scope.
    """
    table = cut(source, FIELDS)
    table.identify("name")
    count = table.known_or_missing("num_gpu")
    table.leave_out("CPU-only pods", count == 0)
    start, end = table.known_or_missing("scheduled_time"), table.known_or_missing("deletion_time")
    table.leave_out("never started (no scheduled time)", start == MISSING)
    table.leave_out("no end time", end == MISSING)
    submit = table.numbers("creation_time")
    table.check("deletion_time", end >= start, "a time that is not before scheduled_time")
    table.leave_out("run time 0", end == start)
    milli = table["gpu_milli"]
    table.gpus("num_gpu")
    table.check("gpu_milli", (milli > 0) & (milli <= 1000), "a number > 0 and <= 1000")
    exact = product(count, milli / 1000)
    table.check("num_gpu", exact <= MOST_GPUS, f"a number <= {MOST_GPUS:,}")
    cpu = table.known_or_missing("cpu_milli")
    columns = {
        "job_id": table["name"],
        "submit": submit,
        "run_time": end - start,
        "gpus": whole(exact),
        "gpu_fraction": exact,
        "wait": table.wait(start, submit),
        "cpus": np.where(cpu == MISSING, MISSING, cpu / 1000),
        "memory": table.known_or_missing("memory_mib"),
        "status": table["pod_phase"],
        "queue": table["qos"],
        "gpu_type": table["gpu_spec"],
    }
    return table.trace("Alibaba openb 2023 pods", columns)
