"""Alibaba PAI, 2020: a pool per GPU type."""

from envs.sim.cluster import Cluster, Pool
from traces.alibaba import same_types


def _pools(**nodes: tuple[int, int]) -> tuple[Pool, ...]:
    return tuple(Pool(kind, (size,), kind, tuple(sorted(same_types(kind) - {kind}))) for kind, size in nodes.items())


ALIBABA = Cluster(
    name="alibaba",
    topologies={
        "testbed": _pools(T4=(8, 2), MISC=(8, 8), P100=(15, 2), V100_16GB=(10, 8), V100_32GB=(8, 8)),
        "production": _pools(T4=(497, 2), MISC=(280, 8), P100=(798, 2), V100_16GB=(104, 8), V100_32GB=(135, 8)),
    },
    pool_by="gpu_type",
    trace="GPU_Traces/Alibaba_Formatted_withGPUType.csv",
)
