"""SenseTime Helios, 2020: a pool per virtual cluster; production is Venus on 10 September."""

from envs.sim.cluster import Cluster, Pool

_VENUS_GPUS = {
    "vcJsw": 256, "vcvGl": 160, "vcKeu": 96, "vcYVn": 88, "vcefl": 80, "vcEwI": 72, "vcHvQ": 64, "vcLTP": 64,
    "vc8Gr": 48, "vcWoR": 40, "vcKrE": 32, "vchbv": 32, "vchA3": 24, "vcvlY": 16, "vcgkz": 8,
}  # fmt: skip

HELIOS = Cluster(
    name="helios",
    topologies={
        "testbed": tuple(Pool(f"vc{i}", ((nodes, 8),), gpu_type="V100") for i, nodes in enumerate((6, 4, 3, 2, 2))),
        "production": tuple(Pool(vc, ((gpus // 8, 8),)) for vc, gpus in _VENUS_GPUS.items()),
    },
    pool_by="vc",
    dealt=("testbed",),
    trace="GPU_Traces/Helios_Formatted_withGPUType.csv",
)
