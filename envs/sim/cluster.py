"""Clusters as data: pools of nodes, and which column of a trace chooses the pool."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from berth.errors import ConfigError


@dataclass(frozen=True)
class Pool:
    """Nodes that share a queue: (how many, GPUs each) in the order in which they are filled."""

    name: str
    nodes: tuple[tuple[int, int], ...]
    gpu_type: str = ""
    aliases: tuple[str, ...] = ()  # other names that traces use for this pool

    @property
    def capacity(self) -> list[int]:
        """GPUs of each node."""
        return [gpus for count, gpus in self.nodes for _ in range(count)]


@dataclass(frozen=True)
class Cluster:
    """One cluster: its topologies by name, the trace column that names a job's pool, and the trace it ships with."""

    name: str
    topologies: Mapping[str, tuple[Pool, ...]]
    pool_by: str = ""  # "vc", "gpu_type", or "" for one pool over all nodes
    dealt: tuple[str, ...] = ()  # topologies whose pools have no names of their own: a trace's are dealt to them
    trace: str = ""

    @property
    def default_topology(self) -> str:
        """The topology that is meant when none is named."""
        return next(iter(self.topologies))

    def topology(self, name: str) -> tuple[Pool, ...]:
        """The pools of a topology; raises ConfigError for one that the cluster does not have."""
        if name not in self.topologies:
            only = "; leave --topology out" if len(self.topologies) == 1 else "; want one of these"
            raise ConfigError(f"topology {name}: cluster {self.name} has {', '.join(self.topologies)}{only}")
        return self.topologies[name]


class Nodes(NamedTuple):
    """The nodes of a cluster; those of one pool stand together."""

    capacity: np.ndarray  # (nodes,) int32 GPUs
    first: np.ndarray  # (pools + 1,) int32, pool p has the nodes first[p]..first[p + 1] - 1
    pool_gpus: np.ndarray  # (pools,) int64


def node_arrays(pools: tuple[Pool, ...]) -> Nodes:
    """Lay the nodes of some pools out as arrays."""
    capacity = [gpus for pool in pools for gpus in pool.capacity]
    sizes = [len(pool.capacity) for pool in pools]
    first = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    gpus = np.array([sum(pool.capacity) for pool in pools], np.int64)
    return Nodes(np.array(capacity, np.int32), first, gpus)
