"""Shared by all tests: where the real traces are, and small workloads."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from envs.sim.cluster import Cluster, Pool
from envs.workload import Workload, prepare
from traces.trace import Trace

ROOT = Path(__file__).resolve().parent.parent
REAL = ROOT.parent / "shared" / "traces"

settings.register_profile("berth", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("berth")


@pytest.fixture
def real():
    """The folder of real traces; tests that need it are skipped where it is absent."""
    if not REAL.is_dir():
        pytest.skip(f"no real traces at {REAL}")
    return REAL


def make_trace(submit, run_time, gpus, **columns) -> Trace:
    """A Trace from plain lists."""
    names = {
        key: np.array(values, dtype=object) for key, values in columns.items() if key in ("user", "vc", "gpu_type")
    }
    numbers = {key: np.array(values, float) for key, values in columns.items() if key not in names}
    return Trace(
        name="test",
        format="test",
        job_id=np.array([str(i) for i in range(len(submit))], dtype=object),
        submit=np.array(submit, float),
        run_time=np.array(run_time, float),
        gpus=np.array(gpus, np.int32),
        **names,
        **numbers,
    )


def make_workload(trace: Trace, *pools, allocation: str = "lex") -> Workload:
    """A workload on pools given as lists of GPUs per node; several pools are named "0", "1", ... and chosen by vc."""
    cluster = Cluster(
        "test",
        {"test": tuple(Pool(str(i), tuple((1, gpus) for gpus in pool)) for i, pool in enumerate(pools))},
        pool_by="vc" if len(pools) > 1 else "",
    )
    return prepare(trace, cluster, load=0, allocation=allocation)
