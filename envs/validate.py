"""Does a trace fit a cluster: demand, sizes, names, gaps in time, ties."""

from typing import NamedTuple

import numpy as np

from allocation.placers import placer
from berth.errors import ClusterError
from envs.clusters import pool_names
from envs.sim.cluster import Cluster, Pool, node_arrays
from envs.workload import assign, can_fit, offered_load
from traces.describe import duration
from traces.trace import MISSING, Trace, counted

DAY = 86400.0


class Finding(NamedTuple):
    """One thing that was looked at."""

    level: str  # ok, note, or contradiction
    what: str
    text: str


def validate(trace: Trace, cluster: Cluster, topology: str = "") -> list[Finding]:
    """Look for contradictions between a trace and a cluster; raises ConfigError for an unknown topology."""
    topology = topology or cluster.default_topology
    pools = cluster.topology(topology)
    findings = [_names(trace, cluster, topology, pools)]
    try:
        pool, pools, _ = assign(trace, cluster, topology, pools, None)
    except ClusterError:
        pool, pools = np.zeros(len(trace), np.int32), (Pool("all", tuple(size for p in pools for size in p.nodes)),)
    nodes = node_arrays(pools)
    fits = can_fit(nodes, pool, trace.gpus, placer("lex").code)
    findings.append(_oversize(trace, fits))
    findings += _demand(trace, pools, pool, nodes.pool_gpus, int(nodes.capacity.sum()))
    findings += [_peak(trace, int(nodes.capacity.sum())), _gaps(trace), _ties(trace), _limits(trace), _clamped(trace)]
    return findings


def _names(trace: Trace, cluster: Cluster, topology: str, pools: tuple[Pool, ...]) -> Finding:
    what = "names of pools"
    column = cluster.pool_by
    names = getattr(trace, column) if column else None
    if not column and trace.gpu_type is not None:
        asked = counted(int(np.count_nonzero(trace.gpu_type != str(MISSING))), "job")
        return Finding("note", what, f"{asked} with a GPU type: one pool, which does not tell types apart")
    if not column or topology in cluster.dealt:
        return Finding("ok", what, "the cluster's pools have no names that a job could miss")
    if names is None:
        return Finding("note", what, f"the trace has no {column}: one pool over all nodes")
    known = {name for pool in pools for name in pool_names(pool, column)}
    unknown = {str(name) for name in names} - known
    idle = [pool.name for pool in pools if not pool_names(pool, column) & {str(name) for name in names}]
    if unknown:
        count = int(np.count_nonzero(np.isin(names, list(unknown))))
        listed = ", ".join(sorted(unknown)[:10]) + (", ..." if len(unknown) > 10 else "")
        return Finding("contradiction", what, f"{counted(count, 'job')} of a {column} that the cluster lacks: {listed}")
    if idle:
        return Finding("note", what, f"no job for: {', '.join(idle)}")
    return Finding("ok", what, f"every job's {column} is a pool, and every pool has jobs")


def _oversize(trace: Trace, fits: np.ndarray) -> Finding:
    what = "oversize jobs"
    if fits.all():
        return Finding("ok", what, f"every job fits its pool; the largest has {counted(int(trace.gpus.max()), 'GPU')}")
    jobs = ", ".join(str(job) for job in trace.job_id[~fits][:5]) + (", ..." if (~fits).sum() > 5 else "")
    count = counted(int((~fits).sum()), "job")
    return Finding("contradiction", what, f"{count} can never fit, up to {int(trace.gpus[~fits].max()):,} GPUs: {jobs}")


def _demand(trace: Trace, pools: tuple[Pool, ...], pool: np.ndarray, gpus: np.ndarray, total: int) -> list[Finding]:
    load = offered_load(trace, total)
    if not np.isfinite(load):
        return [Finding("note", "demand", "all jobs arrive in one second: no load can be told")]
    level = "note" if load > 1 else "ok"
    found = [
        Finding(
            level, "demand", f"offered load {load:.3f} of {total:,} GPUs" + (" (over capacity)" if load > 1 else "")
        )
    ]
    span = float(trace.submit[-1] - trace.submit[0])
    over = []
    for p, one in enumerate(pools):
        jobs = pool == p
        share = float(np.dot(trace.run_time[jobs], trace.gpus[jobs])) / (int(gpus[p]) * span)
        if share > 1:
            over.append(f"{one.name} {share:.2f}")
    if len(pools) > 1 and over:
        found.append(Finding("note", "demand by pool", f"over capacity: {', '.join(over)}"))
    return found


def _peak(trace: Trace, total: int) -> Finding:
    """GPUs that were in use at once, by the trace's own waits, against those that there are."""
    if trace.wait is None:
        return Finding("note", "GPUs in use", "the trace has no waits, so that nobody knows when its jobs ran")
    known = trace.wait != MISSING
    start = (trace.submit + trace.wait)[known]
    times = np.concatenate((start, start + trace.run_time[known]))
    change = np.concatenate((trace.gpus[known], -trace.gpus[known]))
    order = np.lexsort((change, times))  # at equal times jobs end before others start
    peak = int(np.cumsum(change[order]).max(initial=0))
    level = "contradiction" if peak > total else "ok"
    return Finding(
        level, "GPUs in use", f"at most {peak:,} at once by the trace's own waits; the cluster has {total:,}"
    )


def _gaps(trace: Trace) -> Finding:
    gaps = np.diff(trace.submit)
    long = np.flatnonzero(gaps > DAY)
    if not len(long):
        return Finding("ok", "time gaps", f"no day without a job; longest gap {duration(gaps.max(initial=0.0))}")
    worst = int(np.argmax(gaps))
    longest = f"the longest, {duration(gaps[worst])}, before {trace.job_id[worst + 1]}"
    text = f"{counted(len(long), 'gap')} of over a day; {longest}"
    return Finding("note", "time gaps", text)


def _ties(trace: Trace) -> Finding:
    counts = np.unique(trace.submit, return_counts=True)[1]
    tied = int(counts[counts > 1].sum())
    if not tied:
        return Finding("ok", "ties", "no two jobs in one second")
    share = f"{counted(tied, 'job')} ({tied / len(trace):.1%})"
    text = f"{share} share their second, up to {int(counts.max()):,}; they keep the file's order"
    return Finding("note", "ties", text)


def _limits(trace: Trace) -> Finding:
    if trace.request_time is None:
        return Finding("note", "requested times", "not in the trace")
    over = int(np.count_nonzero((trace.request_time > 0) & (trace.run_time > trace.request_time)))
    text = f"{counted(over, 'job')} ran longer than requested" if over else "no job ran longer than requested"
    return Finding("note" if over else "ok", "requested times", text)


def _clamped(trace: Trace) -> Finding:
    longest = trace.run_time.max()
    count = int(np.count_nonzero(trace.run_time == longest))
    if count < max(10, 0.001 * len(trace)):
        return Finding("ok", "run times", "not cut off at the top")
    text = f"{counted(count, 'job')} ({count / len(trace):.1%}) ran exactly {longest:,.0f} s: cut off there, it seems"
    return Finding("note", "run times", text)
