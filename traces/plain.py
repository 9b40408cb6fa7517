"""The 4-column job list in which Helios's Venus, and Alibaba's PAI, are passed on."""

from traces.cells import identity, number
from traces.source import Source, header
from traces.table import cut, whole
from traces.trace import Trace

FIELDS = {"job_id": identity, "arrival_s": number, "service_sec": number, "gpu_count": number}


def sniff(head: list[str]) -> bool:
    """Recognise the format by its header row."""
    return header(head) == list(FIELDS)


def read(source: Source) -> Trace:
    """Read job_id, arrival_s, service_sec, gpu_count; raises TraceError for a malformed row."""
    table = cut(source, FIELDS)
    job_id, submit = table.identify("job_id"), table.numbers("arrival_s")
    run_time, exact = table.numbers("service_sec"), table.gpus("gpu_count")
    table.leave_out("run time 0", run_time == 0)
    columns = {"job_id": job_id, "submit": submit, "run_time": run_time, "gpus": whole(exact), "gpu_fraction": exact}
    return table.trace("job list (4 columns)", columns)
