"""Workloads: the jobs of a trace made ready for one cluster."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from allocation.placers import ever_fits, placer
from berth.commandline import nearest
from berth.errors import ClusterError, ConfigError, NothingFits
from berth.streams import stream
from envs.clusters import pool_names
from envs.sim.cluster import Cluster, Nodes, Pool, node_arrays
from traces.trace import Trace

HOST = "host"
"""What a cluster of a single node is called, its topology and its pool."""


@dataclass(frozen=True)
class Workload:
    """Jobs that all fit their pools, with times from the first one's submit."""

    cluster: str
    topology: str
    trace: Trace  # the jobs that are simulated; submit counts from the start and is rescaled
    pools: tuple[Pool, ...]
    pool: np.ndarray  # (jobs,) int32
    nodes: Nodes
    load: float  # GPU-seconds asked over GPU-seconds there are while jobs arrive
    unfit: tuple[str, ...] = ()  # ids of jobs that can never fit their pool, left out
    notes: tuple[str, ...] = ()  # what the user should be told

    def __len__(self) -> int:
        return len(self.trace)


def prepare(
    trace: Trace,
    cluster: Cluster,
    topology: str = "",
    load: float | None = None,
    assign_pools: int | None = None,
    allocation: str = "lex",
) -> Workload:
    """Give every job its pool, leave out what can never fit, and rescale arrivals to the load asked for.

    `load` None means 0.95 on a testbed and unscaled elsewhere; 0 means unscaled. Raises ClusterError for a pool that
    the cluster does not have, ConfigError where nothing is left or a load cannot be reached.
    """
    topology = topology or cluster.default_topology
    pools = cluster.topology(topology)
    pool, pools, notes = assign(trace, cluster, topology, pools, assign_pools)
    nodes = node_arrays(pools)
    can = can_fit(nodes, pool, trace.gpus, placer(allocation).code)
    unfit = tuple(str(job) for job in trace.job_id[~can])
    if not can.any():
        least, most = int(trace.gpus.min()), int(nodes.pool_gpus.max())
        raise NothingFits(
            f"{trace.name}: no job fits its pool of {cluster.name} {topology}: the smallest asks for {least:,} GPUs, "
            f"the largest pool has {most:,}; want smaller jobs or larger pools"
        )
    if unfit:
        shown = ", ".join(unfit[:5]) + (", ..." if len(unfit) > 5 else "")
        notes.append(f"{len(unfit):,} jobs left out that can never fit their pool: {shown}")
    trace, pool = trace.select(can), pool[can]
    trace = dataclasses.replace(trace, submit=trace.submit - trace.submit[0])
    wanted = load if load is not None else (0.95 if topology == "testbed" else 0.0)
    trace = _rescale(trace, int(nodes.capacity.sum()), wanted, forced=load is not None)
    reached = offered_load(trace, int(nodes.capacity.sum()))
    if wanted and abs(reached / wanted - 1) > 0.01:
        notes.append(f"offered load {wanted:g} was asked for and {reached:.3f} reached: arrivals are whole seconds")
    return Workload(cluster.name, topology, trace, pools, pool, nodes, reached, unfit, tuple(notes))


def on_one_node(trace: Trace, gpus: int) -> Workload:
    """A trace's jobs on a single node, with their own arrivals; a host's cores count as its GPUs."""
    return prepare(trace, Cluster(HOST, {HOST: (Pool(HOST, ((1, gpus),)),)}), load=0)


def offered_load(trace: Trace, gpus: int) -> float:
    """GPU-seconds asked for, over the GPU-seconds that there are between the first arrival and the last."""
    span = float(trace.submit[-1] - trace.submit[0])
    return float(np.dot(trace.run_time, trace.gpus)) / (gpus * span) if span > 0 else float("inf")


def _rescale(trace: Trace, gpus: int, load: float, forced: bool) -> Trace:
    """Stretch or squeeze arrivals, in whole seconds, so that the offered load is as asked; 0 leaves them."""
    if load < 0 or not np.isfinite(load):
        raise ConfigError(f"load {load}: want a number > 0, or 0 for the trace's own arrivals")
    now = offered_load(trace, gpus)
    if load == 0 or (not np.isfinite(now) and not forced):
        return trace
    if not np.isfinite(now):
        raise ConfigError(f"{trace.name}: all jobs arrive in one second, so that no load can be reached; want --load 0")
    rescaled = dataclasses.replace(trace, submit=np.floor(trace.submit * (now / load)))
    if forced and not np.isfinite(offered_load(rescaled, gpus)):
        raise ConfigError(f"load {load:g}: all {len(trace):,} jobs would arrive in one second; want less, or more jobs")
    return rescaled


def assign(
    trace: Trace, cluster: Cluster, topology: str, pools: tuple[Pool, ...], seed: int | None
) -> tuple[np.ndarray, tuple[Pool, ...], list[str]]:
    """The pool of every job (jobs,), the pools there are, and what to tell about it."""
    names = getattr(trace, cluster.pool_by) if cluster.pool_by else None
    if not cluster.pool_by or (names is None and len(pools) == 1):
        idle_flag = ["--assign_pools has nothing to do: there is one pool"] if seed is not None else []
        return np.zeros(len(trace), np.int32), pools, idle_flag
    if names is None and seed is None:
        merged = Pool("all", tuple(size for pool in pools for size in pool.nodes))
        where = Path(trace.name).name
        return np.zeros(len(trace), np.int32), (merged,), [f"{where} has no {cluster.pool_by}: one pool over all nodes"]
    if names is None:
        return _drawn(trace, pools, seed or 0), pools, ["pools drawn by capacity share"]
    if topology in cluster.dealt:
        number = _deal(trace, names, pools)
    else:
        known = {name: i for i, pool in enumerate(pools) for name in pool_names(pool, cluster.pool_by)}
        number = np.array([known.get(name, -1) for name in names], np.int32)
    missing = number < 0
    if not missing.any():
        return number, pools, []
    if seed is None:
        unknown = sorted({str(name) for name in names[missing]})
        listed = ", ".join(unknown[:20]) + (", ..." if len(unknown) > 20 else "")
        hint = nearest(unknown[0], [pool.name for pool in pools])
        raise ClusterError(
            f"{trace.name}: {int(missing.sum()):,} jobs have a {cluster.pool_by} that "
            f"{cluster.name} {topology} does not have: "
            f"{listed} ({hint}); --assign_pools SEED draws pools for them"
        )
    drawn = np.where(missing, _drawn(trace, pools, seed), number).astype(np.int32)
    return drawn, pools, [f"pools of {int(missing.sum()):,} jobs drawn by capacity share"]


def _deal(trace: Trace, names: np.ndarray, pools: tuple[Pool, ...]) -> np.ndarray:
    """Deal a trace's virtual clusters to the pools by size; jobs without one get -1.

    The VC that asks for most GPU-seconds first, each to the pool with the least GPU-seconds per GPU so far.
    """
    work = trace.run_time * trace.gpus
    asked = {name: float(work[names == name].sum()) for name in sorted(set(names)) if name != "-1"}
    gpus = np.array([sum(pool.capacity) for pool in pools], np.float64)
    dealt = np.zeros(len(pools))
    place = {}
    for name in sorted(asked, key=lambda vc: (-asked[vc], vc)):
        place[name] = int(np.argmin((dealt + asked[name]) / gpus))
        dealt[place[name]] += asked[name]
    return np.array([place.get(name, -1) for name in names], np.int32)


def _drawn(trace: Trace, pools: tuple[Pool, ...], seed: int) -> np.ndarray:
    """Draw a pool for every job with probability by its GPUs, among the pools large enough for the job."""
    gpus = np.array([sum(pool.capacity) for pool in pools], np.float64)
    chance = stream(seed, "assign pools").random(len(trace))
    number = np.zeros(len(trace), np.int32)
    for size in np.unique(trace.gpus):
        share = np.where(gpus >= size, gpus, 0.0)
        if share.sum() == 0:
            share = gpus
        jobs = trace.gpus == size
        number[jobs] = np.searchsorted(np.cumsum(share) / share.sum(), chance[jobs], side="right")
    return np.minimum(number, len(pools) - 1)


def can_fit(nodes: Nodes, pool: np.ndarray, gpus: np.ndarray, code: int) -> np.ndarray:
    """Which jobs would fit their pool if it were idle."""
    can = np.zeros(len(gpus), bool)
    for p in range(len(nodes.pool_gpus)):
        capacity = nodes.capacity[nodes.first[p] : nodes.first[p + 1]]
        here = pool == p
        sizes = np.unique(gpus[here])
        good = [size for size in sizes.tolist() if ever_fits(code, capacity, size)]
        can |= here & np.isin(gpus, good)
    return can
