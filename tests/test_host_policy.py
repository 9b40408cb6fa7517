"""Policies that name hosts: any number of hosts, without TensorFlow, in training, in the service and under LSF."""

import json
import subprocess
import sys

import numpy as np
import pytest

from berth.compiled import compilations
from berth.errors import ConfigError, SnapshotError
from envs.host_env import HostVectorEnv
from envs.host_options import HostOptions
from envs.snapshot import DOWN, DRAINED, UP
from envs.wire import read
from eval import host_judging
from orchestrator.deciding import of_exported
from orchestrator.host_deciding import HostDecider
from orchestrator.lsf_hosts import find_host_policy
from orchestrator.lsf_state import Host, Job
from train.checkpoint import BEST, LAST, find, load
from train.config import Config, from_settings
from train.export import main as export
from train.forward import read_exported
from train.host_config import HostConfig, read_host_config
from train.host_forward import HostPolicy
from train.quiet import load_tensorflow
from train.resume import resumed

load_tensorflow(0)
from train.design import Design, Shape  # noqa: E402 - TensorFlow is loaded quietly first
from train.host_policy import VariableHostPolicy  # noqa: E402
from train.host_run import HostRun, compare, make_host_learner  # noqa: E402
from train.playing import packed  # noqa: E402
from train.training import start_from  # noqa: E402

TINY = {"num_hosts": 6, "episode_length": 6, "max_jobs_per_step": 10, "trajs": 3, "num_envs": 3, "val_windows": 2,
        "epochs": 2, "val_every": 1, "test_every": 1, "minibatch": 64, "lr": 1e-3}  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of two epochs on 50 hosts."""
    folder = tmp_path_factory.mktemp("hosts")
    HostRun(HostConfig(**(TINY | {"num_hosts": 50})), folder).go()
    return folder


def numbers(rng, hosts):
    return rng.random((2, hosts, 4), np.float32), rng.random((2, 2), np.float32), np.zeros((2, hosts), np.float32)


def test_hosts_are_judged_alike_wherever_they_stand():
    policy, value = VariableHostPolicy(Design(Shape.of_hosts(), (16, 8), False, 0)).build()
    rng = np.random.default_rng(0)
    hosts, job, prior = numbers(rng, 7)
    order = rng.permutation(7)
    logits, moved = policy((hosts, job, prior)).numpy(), policy((hosts[:, order], job, prior)).numpy()
    np.testing.assert_allclose(logits[:, order], moved, atol=1e-6)
    np.testing.assert_allclose(
        value((hosts, job, prior)).numpy(), value((hosts[:, order], job, prior)).numpy(), atol=1e-6
    )


@pytest.mark.parametrize("hosts", [20, 400])
def test_trained_on_fifty_run_on_others(trained, hosts):
    """Through evaluation: the number of hosts is another than in training."""
    checkpoint, config = host_judging._model(str(trained))
    told = host_judging.Config(**(config.environment("test") | {"num_hosts": hosts, "episodes": 1}))
    rows = host_judging.judge(told, [(checkpoint, config)])
    assert len(rows) == 5
    for its in rows.values():
        assert its[0]["makespan"] > 0
        assert its[0]["load_imbalance"] > 0


def test_a_run_is_gone_on_with_exactly(tmp_path):
    HostRun(HostConfig(**TINY), tmp_path / "whole").go()
    HostRun(HostConfig(**(TINY | {"epochs": 1})), tmp_path / "parts").go()
    config, flags = read_host_config(["--resume_from", str(tmp_path / "parts"), "--epochs", "2"])
    again, checkpoint = resumed(config, flags)
    HostRun(again, tmp_path / "parts", checkpoint).go()
    one, two = (load(tmp_path / name / LAST) for name in ("whole", "parts"))
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array, two.arrays[name], err_msg=name)
    report = json.loads((tmp_path / "whole" / "report.json").read_text())["REPORT"]
    assert set(report) == {"agent", "first_available", "least_loaded", "best_fit", "random"}


def test_flags_of_the_seed():
    """Every flag that the original's manual names."""
    words = """--log-dir x --num-hosts 100 --episode-length 300 --max-jobs-per-step 80 --host-cores-range 16 32
    --host-memory-range 65536 131072 --job-cores-range 1 4 --job-memory-range 512 4096 --total-timesteps 50000000
    --rollout-steps 12288 --lr 3e-4 --gamma 0.995 --lam 0.99 --clip-coef 0.2 --ent-coef 0.01 --vf-coef 2.0
    --lr-schedule cosine --lr-warmup-steps 100 --early-stopping-patience 200 --early-stopping-threshold 0.01
    --save-freq 250"""
    config, _ = read_host_config(words.split())
    assert (config.host_cores_range, config.job_memory_range) == ((16, 32), (512, 4096))
    assert (config.exp_name, config.clip_ratio, config.rollout_steps) == ("x", 0.2, 12288)
    with pytest.raises(ConfigError, match="wanted a whole number"):
        read_host_config(["--host-cores-range", "16", "many"])
    with pytest.raises(ConfigError, match="expected 2 arguments"):
        read_host_config(["--host-cores-range", "16"])


def test_exported_logits_are_those_of_training(trained, tmp_path):
    export([str(trained), "-o", str(tmp_path / "hosts.npz")])
    policy = HostPolicy(read_exported(tmp_path / "hosts.npz"))
    checkpoint = load(find(str(trained), "x", (BEST,)))
    learner = make_host_learner(HostConfig(**(TINY | {"num_hosts": 50})), Shape.of_hosts())
    start_from(learner, checkpoint)
    env = HostVectorEnv(1, "Disabled", num_hosts=20, load=1.5, split="test")
    seen, _ = env.reset(seed=42)
    for _ in range(40):
        kept = packed(env, seen)
        hosts, job = env.parts(seen)
        mine = policy.logits(hosts[0], job[0])
        unpacked = [kept[name].astype(np.float32) / 65535 for name in ("choices", "around")]
        theirs = learner.policy((*unpacked, np.zeros((1, 20), np.float32))).numpy()[0]
        np.testing.assert_allclose(mine, theirs, atol=1e-5)
        free = np.stack([env.courses.hosts[0][n] for n in ("free_cores", "free_memory")], axis=1).astype(float)
        have = np.stack([env.courses.hosts[0][n] for n in ("cores", "memory")], axis=1).astype(float)
        current = env.courses.jobs[0][env.courses.course["current"][0]]
        state, asked = policy.state_of(have, free, current["cores"], current["memory"])
        np.testing.assert_allclose(state, hosts[0], atol=1e-6)
        np.testing.assert_allclose(asked, job[0], atol=1e-6)
        seen, _, over, _, _ = env.step(learner.best(kept))
        if over[0]:
            break


def snapshot(**changes):
    """Two queued jobs and three hosts, as a service gets them."""
    told = {
        "version": 1, "now": 100.0,
        "queued": {"job": ["big", "small"], "submit": [1, 2], "gpus": [1, 1], "run_time": [None, None], "pool": [0, 0],
                   "cores": [12, 2], "memory": [1000, 1000]},
        "running": {"job": [], "start": [], "gpus": [], "end": [], "pool": []},
        "nodes": {"capacity": [16, 16, 16], "free": [4, 8, 0], "pool": [0, 0, 0], "name": ["a", "b", "c"],
                  "cores": [16, 16, 16], "free_cores": [4, 8, 0], "memory": [65536] * 3, "free_memory": [4000] * 3},
    }  # fmt: skip
    for where, value in changes.items():
        section, name = where.split("__")
        if value is None:
            del told[section][name]
        else:
            told[section][name] = value
    return read(json.dumps(told))


def test_the_service_names_hosts(trained, tmp_path):
    export([str(trained), "-o", str(tmp_path / "hosts.npz")])
    decider = HostDecider(HostPolicy(read_exported(tmp_path / "hosts.npz")))
    answer = decider.decide(snapshot(), scores=True)
    assert answer["job"] == "small", "twelve cores are free nowhere"
    assert answer["host"] in ("a", "b")
    assert [name for name, _ in answer["scores"]] == ["a", "b"]
    assert decider.decide(snapshot(nodes__free_cores=[4, 12, 0]))["job"] == "big"
    assert decider.decide(snapshot(nodes__state=["up", "drained", "down"]))["host"] == "a"
    assert decider.decide(snapshot(nodes__state=["down", "drained", "down"]))["why"] == "no job that waits fits now"
    assert decider.decide(snapshot(queued__state=["cancelled", "failed"]))["why"] == "no job waits"
    for change, text in (
        ({"queued__cores": None}, "queued.cores: nothing"),
        ({"nodes__free_memory": None}, "nodes.free_memory: nothing"),
        ({"nodes__free_cores": [4, 99, 0]}, r"nodes\[1\]: 99 of 16 cores"),
        ({"nodes__cores": [0, 16, 16]}, r"nodes\[0\]"),
    ):
        with pytest.raises(SnapshotError, match=text):
            decider.decide(snapshot(**change))
    assert (UP, DRAINED, DOWN) == (0, 1, 2)
    assert decider.decide(snapshot(queued__state=["cancelled", "holding"]))["job"] == "small"
    with pytest.raises(ConfigError, match="would take the place of a checkpoint"):
        export([str(trained), "-o", str(trained / BEST)])
    with pytest.raises(ConfigError, match="an exported policy, to be served"):
        load(tmp_path / "hosts.npz")
    with pytest.raises(ConfigError, match="names hosts"):
        from_settings(Config, load(trained / BEST).told["settings"], "x")


def test_nothing_is_compiled_once_hosts_are_named(trained, tmp_path):
    export([str(trained), "-o", str(tmp_path / "hosts.npz")])
    decider = of_exported(read_exported(tmp_path / "hosts.npz"))
    with compilations() as compiled:
        for view in (snapshot(), snapshot(nodes__state=["up"] * 3), snapshot(queued__state=["cancelled", "queued"])):
            assert decider.decide(view, scores=True)["job"] == "small"
    assert not compiled


def test_lsf_takes_an_exported_policy(trained, tmp_path):
    export([str(trained), "-o", str(tmp_path / "hosts.npz")])
    choose = find_host_policy(str(tmp_path / "hosts.npz"))
    hosts = [Host("a", "ok", 16, 12, 65536, 4000), Host("b", "ok", 16, 8, 65536, 4000), Host("c", "closed_Adm", 16, 0)]
    assert choose(Job("1", "u", "q", "n", "PEND", 0.0, slots=2), hosts[:2], hosts) in ("a", "b")
    assert choose(Job("1", "u", "q", "n", "PEND", 0.0, slots=6), hosts[1:2], hosts) == "b"
    with pytest.raises(ConfigError, match="did you mean best_fit"):
        find_host_policy("best_fat")
    export(["models/philly/hidden.npz", "-o", str(tmp_path / "jobs.npz")])
    with pytest.raises(ConfigError, match="chooses jobs"):
        find_host_policy(str(tmp_path / "jobs.npz"))


def test_the_programs(trained, tmp_path, monkeypatch):
    host_judging.main(["--rlmodel", str(trained), "--num-hosts", "8", "--out", str(tmp_path / "out")])
    table = (tmp_path / "out" / "results.csv").read_text().splitlines()
    assert len(table) == 1 + 5 * 3
    assert (tmp_path / "out" / "results.png").stat().st_size > 10_000
    host_judging.main(["--extract", str(tmp_path / "test"), "--episode-length", "3"])
    again = tmp_path / "again"
    host_judging.main(["--extract", str(again), "--episode-length", "3"])
    for file in ("hosts_42.csv", "jobs_43.csv", "jobs_44.csv"):
        assert (again / file).read_text() == (tmp_path / "test" / file).read_text()
    with pytest.raises(ConfigError, match="chooses jobs from the queue of philly"):
        host_judging.main(["--rlmodel", "models/philly/hidden.npz"])
    for words in (["episode", "--decisions", "3"], ["sizes", "--sizes", "8", "--num-hosts", "5"], ["ppo"]):
        run = subprocess.run([sys.executable, "train/debug.py", *words], capture_output=True, text=True, timeout=200)
        assert run.returncode == 0, run.stderr
    assert "PPO learns what it should" in run.stdout


def test_no_tensorflow_where_policies_are_served():
    code = "import sys, orchestrator.host_deciding, orchestrator.lsf_hosts\nassert 'tensorflow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_baselines_in_compare_are_those_of_the_environment():
    config = HostConfig(**TINY)
    rows = compare(config, lambda seen: seen["mask"].argmax(axis=1))
    assert rows["agent"] == rows["first_available"]
    assert HostOptions(**TINY_OPTIONS).baseline == "first_available"


TINY_OPTIONS = {name: TINY[name] for name in ("num_hosts", "episode_length", "max_jobs_per_step")}
