"""Clusters as data, and how jobs come to their pools."""

import numpy as np
import pytest

from berth.errors import ClusterError, ConfigError
from envs.clusters import CLUSTERS, find_cluster
from envs.sim.cluster import Cluster, Pool
from envs.sim.simulator import simulate
from envs.workload import offered_load, prepare
from tests.conftest import ROOT, make_trace
from traces.read import read_trace

GPUS = {
    "philly": {"testbed": 192, "production": 2490},
    "helios": {"testbed": 136, "production": 1080},
    "alibaba": {"testbed": 254, "production": 6742},
    "synthetic": {"testbed": 192, "production": 2490},
}

LAB = """
name = "lab"
pool_by = "gpu_type"
[[pools]]
name = "A100"
aliases = ["a100-80"]
nodes = [{ count = 2, gpus = 8 }, { count = 1, gpus = 4 }]
[[pools]]
name = "old"
gpu_type = "V100_16GB"
nodes = [{ count = 3, gpus = 2 }]
"""


@pytest.mark.parametrize("name", CLUSTERS)
def test_gpus_of_every_cluster(name):
    totals = {t: sum(sum(p.capacity) for p in pools) for t, pools in CLUSTERS[name].topologies.items()}
    assert totals == GPUS[name]


def test_pools_of_the_testbeds():
    sizes = {name: [sum(p.capacity) for p in c.topologies["testbed"]] for name, c in CLUSTERS.items()}
    assert sizes["helios"] == [48, 32, 24, 16, 16]
    assert sizes["alibaba"] == [16, 64, 30, 80, 64]
    assert sizes["philly"] == [192]
    assert len(CLUSTERS["helios"].topologies["production"]) == 15


def test_philly_production_is_the_published_machine_list(real):
    lines = (real / "philly/cluster_machine_list.csv").read_text().splitlines()[1:]
    counts = [int(line.split(",")[1]) for line in lines if line.strip()]
    nodes = CLUSTERS["philly"].topologies["production"][0].capacity
    assert sorted(counts) == sorted(nodes)


def test_alibaba_production_is_the_published_machine_list(real):
    rows = [line.split(",") for line in (real / "alibaba_pai2020/pai_machine_spec.csv").read_text().splitlines()]
    gpus: dict[str, list[int]] = {}
    for row in rows:
        if row[-1].replace(".", "").isdigit() and float(row[-1]) > 0:
            gpus.setdefault(row[1], []).append(int(float(row[-1])))
    for pool in CLUSTERS["alibaba"].topologies["production"]:
        name = next(n for n in (pool.name, *pool.aliases) if n in gpus)
        assert sorted(gpus[name]) == sorted(pool.capacity)


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("topology", ["testbed", "production"])
def test_every_cluster_runs_its_sample(name, topology):
    cluster = CLUSTERS[name]
    workload = prepare(read_trace(ROOT / cluster.trace), cluster, topology)
    schedule = simulate(workload, "sjf")
    assert (schedule.start >= workload.trace.submit).all()
    assert len(workload.pools) == len(cluster.topologies[topology])


def three_vcs(names=("x", "y", "z")):
    #                  x asks for 800 GPU-seconds, y for 100, z for 20
    return make_trace([0, 10, 20], [100, 50, 10], [8, 2, 2], vc=list(names))


def test_vcs_are_dealt_by_size():
    workload = prepare(three_vcs(), CLUSTERS["helios"], load=0)
    assert workload.pool[0] == 0, "the VC that asks for most goes to the largest pool"
    assert len(set(workload.pool.tolist())) == 3


def test_a_trace_without_the_column_runs_as_one_pool():
    workload = prepare(make_trace([0, 9], [5, 5], [1, 1]), CLUSTERS["helios"], load=0)
    assert len(workload.pools) == 1
    assert workload.nodes.capacity.sum() == 136
    assert sum("no vc" in note for note in workload.notes) == 1


def test_unknown_pools_are_listed_with_the_flag_that_helps():
    with pytest.raises(ClusterError, match=r"3 jobs have a vc.*x, y, z.*--assign_pools SEED"):
        prepare(three_vcs(), CLUSTERS["helios"], "production")
    known = prepare(three_vcs(("vcJsw", "x", "vcvGl")), CLUSTERS["helios"], "production", assign_pools=1)
    assert known.pools[known.pool[0]].name == "vcJsw"
    assert known.pools[known.pool[2]].name == "vcvGl"


def test_drawn_pools_follow_capacity_and_repeat():
    trace = make_trace(range(20_000), [5] * 20_000, [1] * 20_000)
    one = prepare(trace, CLUSTERS["helios"], load=0, assign_pools=1)
    two = prepare(trace, CLUSTERS["helios"], load=0, assign_pools=1)
    assert (one.pool == two.pool).all()
    shares = np.bincount(one.pool) / 20_000
    assert shares == pytest.approx(np.array([48, 32, 24, 16, 16]) / 136, abs=0.02)
    large = prepare(make_trace([0] * 50, [5] * 50, [40] * 50), CLUSTERS["helios"], load=0, assign_pools=1)
    assert set(large.pool.tolist()) == {0}, "only the first pool can hold 40 GPUs"


def test_gpu_types_are_known_by_both_names():
    trace = make_trace([0, 1, 2], [5, 5, 5], [1, 1, 1], gpu_type=["V100M32", "V100_16GB", "T4"])
    workload = prepare(trace, CLUSTERS["alibaba"], load=0)
    assert [workload.pools[p].name for p in workload.pool] == ["V100_32GB", "V100_16GB", "T4"]
    with pytest.raises(ClusterError, match=r"gpu_type.*A100"):
        prepare(make_trace([0], [5], [1], gpu_type=["A100"]), CLUSTERS["alibaba"])


def test_a_cluster_of_one_named_pool_takes_only_its_own_jobs(tmp_path):
    path = tmp_path / "t4.toml"
    path.write_text('pool_by = "gpu_type"\n[[pools]]\nname = "T4"\nnodes = [{ count = 2, gpus = 8 }]\n')
    cluster = find_cluster(str(path))
    assert len(prepare(make_trace([0], [5], [1], gpu_type=["T4"]), cluster)) == 1
    assert len(prepare(make_trace([0], [5], [1]), cluster)) == 1
    with pytest.raises(ClusterError, match="P100"):
        prepare(make_trace([0, 1], [5, 5], [1, 1], gpu_type=["T4", "P100"]), cluster)
    assert any("nothing to do" in n for n in prepare(three_vcs(), CLUSTERS["philly"], assign_pools=1).notes)


def test_a_load_that_is_not_reached_is_said():
    few = make_trace([0, 10, 20, 30], [100, 100, 100, 100], [1, 1, 1, 1])
    assert any("was asked for" in note for note in prepare(few, CLUSTERS["philly"], load=0.7).notes)
    with pytest.raises(ConfigError, match="would arrive in one second"):
        prepare(few, CLUSTERS["philly"], load=1000)


def test_jobs_that_never_fit_are_left_out_and_named():
    trace = make_trace([0, 1, 2], [5, 5, 5], [8, 193, 1])
    workload = prepare(trace, CLUSTERS["philly"], load=0)
    assert workload.unfit == ("1",)
    assert len(workload) == 2
    assert any("1 jobs left out that can never fit their pool: 1" in note for note in workload.notes)
    with pytest.raises(ConfigError, match="no job fits"):
        prepare(make_trace([0], [5], [193]), CLUSTERS["philly"])


@pytest.mark.parametrize("load", [0.1, 0.5, 0.95, 3.0])
def test_arrivals_are_rescaled_to_the_load(load):
    rng = np.random.default_rng(1)
    trace = make_trace(np.sort(rng.integers(0, 10**6, 3000)), rng.integers(100, 9000, 3000), rng.integers(1, 9, 3000))
    workload = prepare(trace, CLUSTERS["philly"], load=load)
    by_hand = float((trace.run_time * trace.gpus).sum()) / (192 * float(workload.trace.submit[-1]))
    assert workload.load == pytest.approx(by_hand, rel=1e-12)
    assert workload.load == pytest.approx(load, rel=1e-3)
    assert (np.diff(workload.trace.submit) >= 0).all()
    assert (workload.trace.submit == np.floor(workload.trace.submit)).all()


def test_default_loads():
    trace = make_trace(range(0, 100_000, 10), [500] * 10_000, [1] * 10_000)
    assert prepare(trace, CLUSTERS["philly"]).load == pytest.approx(0.95, rel=1e-3)
    production = prepare(trace, CLUSTERS["philly"], "production")
    assert production.load == pytest.approx(offered_load(trace, 2490))
    assert (production.trace.submit == trace.submit).all()


def test_loads_that_cannot_be():
    same_second = make_trace([5, 5], [1, 1], [1, 1])
    assert len(prepare(same_second, CLUSTERS["philly"])) == 2
    with pytest.raises(ConfigError, match="all jobs arrive in one second"):
        prepare(same_second, CLUSTERS["philly"], load=0.5)
    for load in (-1, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="want a number > 0"):
            prepare(make_trace([0, 9], [1, 1], [1, 1]), CLUSTERS["philly"], load=load)


def test_a_cluster_of_ones_own(tmp_path):
    path = tmp_path / "lab.toml"
    path.write_text(LAB)
    cluster = find_cluster(str(path))
    assert isinstance(cluster, Cluster)
    trace = make_trace([0, 1, 2], [5, 5, 5], [12, 2, 1], gpu_type=["a100-80", "V100_16GB", "A100"])
    workload = prepare(trace, cluster)
    assert [workload.pools[p].name for p in workload.pool] == ["A100", "old", "A100"]
    assert workload.nodes.capacity.tolist() == [8, 8, 4, 2, 2, 2]
    assert (workload.trace.submit == trace.submit).all(), "not rescaled"


def test_the_example_in_docs_works():
    cluster = find_cluster(str(ROOT / "docs/example_cluster.toml"))
    assert cluster.topologies["file"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("count = 2", 'count = "2"', r"pools\[0\]\.nodes\[0\]\.count = '2', want a whole number"),
        ("count = 2", "count = 0", r"nodes\[0\]\.count = 0, want a whole number from 1"),
        ("count = 2", "count = true", r"count = True, want a whole number"),
        ("gpus = 4", "gpu = 4", r"nodes\[1\]\.gpu is not a key here; did you mean gpus"),
        ('name = "old"', "", r"pools\[1\]\.name is missing"),
        ('name = "old"', 'name = "A100"', r"both answer to 'A100'"),
        ('"gpu_type"', '"color"', r"pool_by = 'color', want none, vc or gpu_type"),
        ("[[pools]]", "[[pool]]", r"pool is not a key here; did you mean pools"),
        ('name = "lab"', 'name = "lab', r"not TOML"),
        ("[{ count = 3, gpus = 2 }]", "[]", r"pools\[1\]\.nodes = \[\], want at least one"),
        ("[{ count = 3, gpus = 2 }]", "[3]", r"pools\[1\]\.nodes\[0\] = 3, want a table"),
        ('["a100-80"]', "[1]", r"aliases = \[1\], want a list of strings"),
    ],
)
def test_mistakes_in_a_cluster_file_name_the_key(tmp_path, old, new, message):
    path = tmp_path / "lab.toml"
    path.write_text(LAB.replace(old, new, 1))
    with pytest.raises(ClusterError, match=message):
        find_cluster(str(path))


def test_a_log_is_a_cluster_too(real):
    cluster = find_cluster(str(real / "swf/CTC-SP2-1996-3.1-cln.swf.gz"))
    assert cluster.topologies["file"][0].capacity == [1] * 338
    assert cluster.name == "CTC-SP2-1996-3.1-cln"
    assert cluster.trace.endswith("CTC-SP2-1996-3.1-cln.swf.gz")


def test_unknown_clusters():
    with pytest.raises(ClusterError, match="did you mean philly"):
        find_cluster("phily")
    with pytest.raises(ClusterError, match="no such file"):
        find_cluster("nowhere.toml")
    with pytest.raises(ConfigError, match="philly has testbed, production; want one"):
        prepare(three_vcs(), CLUSTERS["philly"], "lab")


def test_pools_without_a_column_are_one(tmp_path):
    path = tmp_path / "lab.toml"
    path.write_text(LAB.replace('"gpu_type"', '"none"', 1))
    assert [pool.capacity for pool in find_cluster(str(path)).topologies["file"]] == [[8, 8, 4, 2, 2, 2]]
    assert isinstance(find_cluster(str(path)).topologies["file"][0], Pool)
