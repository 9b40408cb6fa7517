"""Workers of Ray: what they collect is the same whoever plays, however many there are, and whoever dies."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from berth import ray_cluster
from berth.errors import ConfigError, SimulationError
from tests.conftest import ROOT
from tests.test_training import TINY, same, weights
from train import ray_rollouts
from train.config import Config, read_config
from train.host_config import HostConfig, read_host_config
from train.ray_rollouts import Crew, cut
from train.resume import resumed
from train.rollouts import Wanted

ray = pytest.importorskip("ray")

SPREAD = TINY | {"trajs": 4, "share": 1, "epochs": 2, "val_every": 2, "report_windows": 0}
HOSTS = {"num_hosts": 5, "episode_length": 10, "max_jobs_per_step": 4, "epochs": 1, "trajs": 4, "share": 2,
         "val_windows": 2, "test_every": 0}  # fmt: skip


@pytest.fixture(scope="module")
def cluster():
    """A Ray cluster of two nodes on this machine, with a core each for workers; the head has the driver alone."""
    from ray.cluster_utils import Cluster

    ray_cluster.load_ray()
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.second = made.add_node(num_cpus=1)
    made.wait_for_nodes()
    yield made
    ray.shutdown()
    made.shutdown()


def train(folder, cluster, config=Config, **settings):
    """A tiny run whose episodes workers of the cluster play."""
    from train.host_run import HostRun
    from train.run import Run

    folder.mkdir(parents=True, exist_ok=True)
    base = SPREAD if config is Config else HOSTS
    kind = Run if config is Config else HostRun
    run = kind(config(**(base | {"ray_address": cluster.address} | settings)), folder)
    run.go()
    return run


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, cluster):
    """The weights of a run that one worker has played."""
    folder = tmp_path_factory.mktemp("undisturbed")
    train(folder, cluster, workers=1)
    return weights(folder)


def test_shares_by_hand():
    wanted = Wanted(list(range(10)), 0, "actions 3", 0.0, 1.0, 1.0)
    parts = cut(wanted, 99, 4)
    assert [part.seeds for part, _ in parts] == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert [count for _, count in parts] == [4, 3, 3]
    assert [part.actions for part, _ in parts] == ["actions 3 share 0", "actions 3 share 1", "actions 3 share 2"]
    assert cut(wanted, 99, 10) == [(wanted, 10)]
    steps = cut(wanted._replace(seeds=list(range(100)), most=100), 5, 2)
    assert [count for _, count in steps] == [2, 2, 1]
    assert [part.most for part, _ in steps] == [40, 40, 20]
    assert [seed for part, _ in steps for seed in part.seeds] == list(range(100))


def test_any_number_of_workers_gives_the_same_weights(tmp_path, cluster, undisturbed, monkeypatch):
    sent, plain = [], ray_rollouts.weights_to_send
    monkeypatch.setattr(ray_rollouts, "weights_to_send", lambda *a: sent.append(1) or plain(*a))
    run = train(tmp_path / "two", cluster, workers=2)
    assert run.collector.workers == 2
    assert len(sent) == SPREAD["epochs"], "weights are sent once an epoch, whatever shares and workers there are"
    assert same(weights(tmp_path / "two"), undisturbed)
    run = train(tmp_path / "all", cluster)
    assert run.collector.workers == 2, "as many as the cluster has cores"
    assert same(weights(tmp_path / "all"), undisturbed)


def test_the_last_to_end_may_be_the_first(tmp_path, cluster, undisturbed, monkeypatch):
    """Results are taken in another order than they come in."""
    from ray.exceptions import GetTimeoutError

    plain = Crew._wait

    def _late(self, expected, since):
        with contextlib.suppress(GetTimeoutError):
            ray.get(expected, timeout=1.0)
        return plain(self, expected[::-1], since)

    monkeypatch.setattr(Crew, "_wait", _late)
    train(tmp_path, cluster, workers=2)
    assert same(weights(tmp_path), undisturbed)


def test_a_worker_that_is_killed_changes_nothing(tmp_path, cluster, undisturbed, monkeypatch, capsys):
    plain, killed = Crew._wait, []

    def _killing(self, expected, since):
        came = plain(self, expected, since)
        if self.idle and not killed:
            killed.append(ray.get(self.idle[-1].__ray_call__.remote(lambda _self: os.getpid())))
            os.kill(killed[0], signal.SIGKILL)
        return came

    monkeypatch.setattr(Crew, "_wait", _killing)
    run = train(tmp_path, cluster, workers=2)
    assert run.collector.lost >= 1
    assert "a worker died" in capsys.readouterr().out
    assert same(weights(tmp_path), undisturbed)


def test_a_node_that_is_killed_in_the_middle_of_an_epoch_changes_nothing(tmp_path, cluster, undisturbed, monkeypatch):
    plain, killed = Crew._wait, []

    def _killing(self, expected, since):
        if len(expected) - len(self.coming) == 2 and not killed:  # both nodes play a share
            killed.append(cluster.second)
            cluster.remove_node(cluster.second, allow_graceful=False)
        return plain(self, expected, since)

    monkeypatch.setattr(Crew, "_wait", _killing)
    try:
        run = train(tmp_path, cluster, workers=2)
    finally:
        cluster.second = cluster.add_node(num_cpus=1)
    assert killed
    assert run.collector.lost >= 1
    assert len(run.collector.coming) == 1, "who takes the place waits for a core, and the run does not"
    assert same(weights(tmp_path), undisturbed)


def test_a_share_that_kills_its_workers_ends_the_run(tmp_path, cluster, monkeypatch):
    plain = Crew._welcome

    def _killing(self, done):
        plain(self, done)
        ray.kill(self.idle[-1])

    monkeypatch.setattr(Crew, "_welcome", _killing)
    with pytest.raises(SimulationError, match="3 workers died over share"):
        train(tmp_path, cluster, workers=1, trajs=1)


def test_nobody_is_waited_for_without_end(tmp_path, cluster, monkeypatch):
    monkeypatch.setattr(ray_rollouts, "PATIENCE", 0.0)
    monkeypatch.setattr(Crew, "_hire", None, raising=False)
    plain = Crew._replace

    def _huge(self):
        kind = ray.remote(ray_rollouts.Player)
        self._hire = lambda: kind.options(num_cpus=1000).remote(self.recipe, self.parts, "/")
        plain(self)

    monkeypatch.setattr(Crew, "_replace", _huge)
    with pytest.raises(SimulationError, match="no worker for 0 s: the cluster has 2 cores"):
        train(tmp_path, cluster, workers=1)


def test_columns_of_the_trace_are_not_copied(tmp_path, cluster):
    from train.run import Run

    def _where(player):
        env = player.recipe.make_env(player.recipe.config, player.parts, 1)
        maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
        ranges = [[int(end, 16) for end in line[0].split("-")] for line in maps if "plasma" in line[-1] + line[-2]]
        columns = {name: getattr(env.source.stage, name) for name in ("roster", "groups", "ended", "history")}
        columns["places"] = env.source.stage.world.places
        return {
            name: (len(column), any(low <= column.ctypes.data < high for low, high in ranges))
            for name, column in columns.items()
        }

    run = Run(Config(**(SPREAD | {"ray_address": cluster.address, "workers": 2})), tmp_path)
    found = ray.get([worker.__ray_call__.remote(_where) for worker in run.collector.coming.values()])
    run.collector.close()
    assert len(found) == 2
    for columns in found:
        assert columns["roster"][0] == 20_000
        assert all(shared for _, shared in columns.values()), columns


def test_fresh_jobs_and_decisions_instead_of_episodes(tmp_path, cluster):
    fresh = {"preset": "baseline_stable", "rollout_steps": 60, "trajs": 100, "num_envs": 2, "epochs": 1}
    for workers in (1, 2):
        run = train(tmp_path / str(workers), cluster, workers=workers, **fresh)
        assert run.interacts == pytest.approx(60, abs=4)
    assert same(weights(tmp_path / "1"), weights(tmp_path / "2"))


def test_hosts_too(tmp_path, cluster):
    trace = tmp_path / "log.swf"
    rows = [f"{i} {10 * i} 0 {50 + i % 7} {1 + i % 3} -1 512 {1 + i % 3} 900 512 1 1 1 1 1 1 -1 -1" for i in range(60)]
    trace.write_text("; Version: 2\n" + "\n".join(rows) + "\n")
    told = {"workload": str(trace), "trace_jobs": 8, "memory_per_core": 512.0}
    for workers in (1, 2):
        train(tmp_path / str(workers), cluster, HostConfig, workers=workers, **told)
    assert same(weights(tmp_path / "1"), weights(tmp_path / "2"))


def test_a_run_goes_on_with_another_number_of_workers(tmp_path, cluster, undisturbed):
    from train.run import Run

    train(tmp_path, cluster, workers=1, epochs=1)
    flags = ["--resume_from", str(tmp_path), "--epochs", "2", "--workers", "2"]
    config, checkpoint = resumed(*read_config("synthetic", flags))
    Run(config, tmp_path, checkpoint).go()
    assert same(weights(tmp_path), undisturbed)
    with pytest.raises(ConfigError, match="they draw actions otherwise"):
        resumed(*read_config("synthetic", ["--resume_from", str(tmp_path), "--workers", "0", "--ray_address", ""]))


def test_workers_on_this_machine_play_a_single_share_as_this_process_does(tmp_path):
    """--workers alone starts Ray, and the program ends it."""
    for name, words in (("none", []), ("one", ["--workers", "1"])):
        command = [sys.executable, str(ROOT / "train/synthetic_train.py"), *words, "--exp_name", name]
        told = {k: v for k, v in TINY.items() if k != "cluster"} | {"epochs": 1, "report_windows": 0}
        for key, value in told.items():
            command += [f"--{key}", ",".join(value) if isinstance(value, tuple) else str(int(value))]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
    logs = tmp_path / "data/logs"
    assert same(weights(logs / "none/none_s0"), weights(logs / "one/one_s0"))


def test_nobody_is_hired_who_would_have_nothing_to_play(tmp_path, cluster, capsys):
    run = train(tmp_path, cluster, workers=7, trajs=2, epochs=1)
    assert run.collector.workers == 2
    assert "an epoch has 2 share(s), so 2 of 7 workers begin" in capsys.readouterr().out


def test_more_workers_than_this_machine_can_bear(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(ray_rollouts, "connect", lambda *_: pytest.fail("Ray was started"))
    with pytest.raises(ConfigError, match=r"workers 1,000: this machine has 2 core\(s\), want at most 8, or more"):
        Crew(Config(**(SPREAD | {"workers": 1000})), None, 4)
    ray_rollouts.check_crowd(Config(**(SPREAD | {"workers": 8})))
    ray_rollouts.check_crowd(Config(**(SPREAD | {"workers": 1000, "ray_address": "auto"})))


@pytest.mark.parametrize("where", ["file", "RAY_AUTH_TOKEN", "nowhere"])
def test_a_token_that_is_there_is_shown_to_a_cluster(where, monkeypatch, tmp_path):
    monkeypatch.setenv("RAY_AUTH_MODE", "")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "t" if where == "RAY_AUTH_TOKEN" else "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RAY_AUTH_MODE")
    monkeypatch.delitem(sys.modules, "ray")
    if where == "file":
        (tmp_path / ".ray").mkdir()
        (tmp_path / ".ray/auth_token").write_text("t")
    ray_cluster.show_token()
    assert os.environ.get("RAY_AUTH_MODE") == (None if where == "nowhere" else "token")


@pytest.mark.parametrize("kind", [ConnectionError, ray.exceptions.RayError])
def test_a_cluster_that_cannot_be_joined_may_want_a_token(kind, monkeypatch):
    def _refuse(**_):
        raise kind("Failed to connect")

    monkeypatch.setattr(ray_cluster, "check_address", lambda _: None)
    monkeypatch.setattr(ray, "init", _refuse)
    with pytest.raises(ConfigError, match=r"ray_address a:1: Failed to connect; .*RAY_AUTH_TOKEN, on every node"):
        ray_cluster.connect("a:1", 1)


def test_ray_is_imported_only_when_it_is_asked_for(tmp_path):
    code = (
        "import sys, pathlib; from tests.test_training import TINY; from train.config import Config;"
        "from train.run import Run; Run(Config(**(TINY | {'epochs': 1})), pathlib.Path(sys.argv[1])).go();"
        "import eval.sweep; assert 'ray' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"Ray is not installed.*pip install -r requirements-ray.txt"):
        ray_cluster.load_ray()


def test_versions_that_differ(cluster, monkeypatch, tmp_path):
    monkeypatch.setattr(ray, "__version__", "2.9.3")
    with pytest.raises(ConfigError, match=r"Ray 2.9.3 is installed, want 2.40"):
        ray_cluster.load_ray()
    monkeypatch.setattr(ray, "__version__", "2.99.0")
    with pytest.raises(ConfigError, match=r"(?s)ersion mismatch.*2.99.0.*want the same|Want the same"):
        ray_cluster.connect(cluster.address, 0)
    monkeypatch.undo()
    monkeypatch.setattr(ray_rollouts, "fingerprint", lambda: "another")
    with pytest.raises(ConfigError, match=r"a worker has Berth .*, this is another; want the same on every node"):
        train(tmp_path, cluster, workers=1)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("nonsense", "want HOST:PORT"),
        ("ray://127.0.0.1:10001", "want HOST:PORT"),
        ("127.0.0.1:99999", "want HOST:PORT"),
        ("127.0.0.1:1", "nobody answers"),
        ("no.such.host.invalid:6379", "nobody answers"),
    ],
)
def test_wrong_addresses(address, said):
    with pytest.raises(ConfigError, match=f"ray_address {re.escape(address)}: .*{said}"):
        ray_cluster.check_address(address)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
def test_an_address_where_somebody_else_listens(answer, monkeypatch):
    monkeypatch.setattr(ray_cluster, "PATIENCE", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def _answer():
            line, _ = server.accept()
            line.recv(100)
            line.sendall(answer)
            line.close()

        threading.Thread(target=_answer, daemon=True).start()
        with pytest.raises(ConfigError, match="is not Ray"):
            ray_cluster.check_address(f"127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--workers -1", "workers -1: want a number from 0"),
        ("--workers many", "wanted a whole number"),
        ("--share 3", "share 3 does nothing without --workers"),
        ("--workers 2 --share 0", "share 0: want a number from 1"),
    ],
)
def test_mistakes_are_told(words, said):
    for read in (lambda w: read_config("philly", w), read_host_config):
        with pytest.raises(ConfigError, match=said):
            read(words.split())
    both = read_config("philly", ["--workers", "2", "--ray-address", "10.0.0.1:6379"])[0]
    assert (both.workers, both.ray_address, both.is_spread) == (2, "10.0.0.1:6379", True)


def test_carried_columns_are_those_of_the_trace():
    from train.carrying import carried, lent, taken_up
    from train.rollouts import make_env

    source = make_env(Config(**TINY), "train", 1).source
    parts = carried(source)
    assert parts is not None
    parts = parts._replace(columns={name: column.copy() for name, column in parts.columns.items()})
    for column in parts.columns.values():
        column.flags.writeable = False
    again = taken_up(parts)
    for name, column in parts.columns.items():
        if name != "places":
            mine = getattr(again.stage, name)
            assert mine.flags.writeable
            assert mine.ctypes.data == column.ctypes.data
            assert np.array_equal(mine, getattr(source.stage, name))
    assert (again.first, again.last) == (source.first, source.last)
    kept = np.arange(3.0)
    assert lent(kept) is kept
