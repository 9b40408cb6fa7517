"""Jobs to run: drawn within ranges of cores and seconds, or taken from a trace."""

import numpy as np

from berth.streams import stream
from envs.sim.cluster import Cluster, Pool
from envs.workload import Workload, prepare
from traces.files import read_told
from traces.trace import Trace

HOST = "host"


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


def host_cluster(cores: int) -> Cluster:
    """One host as a cluster: a node whose GPUs are its cores."""
    return Cluster(HOST, {HOST: (Pool(HOST, ((1, cores),)),)})


def on_host(trace: Trace, cores: int) -> Workload:
    """A trace's jobs on one host; those that can never fit are left out and noted. Raises where none is left."""
    return prepare(trace, host_cluster(cores), load=0)


def replayed(file: str, cores: int, first_jobs: int) -> Workload:
    """The jobs of a trace file on one host, with its own arrivals; only the first ones where that is asked for."""
    trace = read_told(file, "", False)
    return on_host(trace.select(slice(0, first_jobs)) if first_jobs else trace, cores)
