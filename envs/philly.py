"""Microsoft Philly, 2017: one queue over two node sizes."""

from envs.sim.cluster import Cluster, Pool

PHILLY = Cluster(
    name="philly",
    topologies={
        "testbed": (Pool("philly", ((16, 2), (20, 8)), gpu_type="P100"),),
        "production": (Pool("philly", ((321, 2), (231, 8))),),
    },
    trace="GPU_Traces/Philly_Formatted_withGPUType.csv",
)
