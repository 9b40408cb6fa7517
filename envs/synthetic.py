"""The synthetic cluster: Philly's testbed, for workloads that a generator makes."""

from envs.philly import PHILLY
from envs.sim.cluster import Cluster

SYNTHETIC = Cluster(name="synthetic", topologies=PHILLY.topologies, trace="GPU_Traces/synthetic_trace.csv")
