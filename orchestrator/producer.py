"""Jobs to run: drawn within ranges of cores and seconds, or taken from a trace."""

import numpy as np

from berth.streams import stream
from envs.workload import Workload, on_one_node
from traces.files import read_told
from traces.trace import Trace


def produce(
    jobs: int, cores: tuple[int, int], seconds: tuple[int, int], seed: int, gap: float = 0.0, name: str = "made jobs"
) -> Trace:
    """Draw jobs whose cores and seconds are whole numbers within ranges, each as likely as the others.

    All are submitted at once, or one after the other with `gap` seconds between them on average.
    """
    rng = stream(seed, "orchestrator's jobs")
    n, p = rng.integers(*cores, jobs, endpoint=True), rng.integers(*seconds, jobs, endpoint=True)
    gaps = stream(seed, "orchestrator's arrivals").exponential(gap, jobs) if gap else np.zeros(jobs)
    submit = np.cumsum(gaps) - gaps[0]
    names = np.array([str(i + 1) for i in range(jobs)], dtype=object)
    return Trace(name, name, names, submit, p.astype(np.float64), n.astype(np.int32))


def replayed(file: str, cores: int, first_jobs: int) -> Workload:
    """The jobs of a trace file on one host, with its own arrivals; only the first ones where that is asked for.

    Those that can never fit are left out and noted. Raises ConfigError where none is left.
    """
    trace = read_told(file, "", False)
    return on_one_node(trace.select(slice(0, first_jobs)) if first_jobs else trace, cores)
