"""The decision service: a real process, asked rightly, wrongly, slowly and by many."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import contextmanager

import numba
import pytest

from berth.errors import ConfigError
from orchestrator.protocol import LINGER, MOST_BODY, MOST_CONNECTIONS, MOST_DRAINED, PATIENCE
from orchestrator.server import AGAIN, Config
from tests.conftest import ROOT
from tests.test_wire import changed, small
from train.export import main as export

TOKEN = "a-token-of-thirty-two-letters-...."


class Server:
    """A server's process, and how to ask it."""

    def __init__(self, folder, *words):
        (folder / "token").write_text(TOKEN)
        (folder / "token").chmod(0o600)
        flags = ("--socket", str(folder / "socket")) if "socket" in words else ("--port", "0", "--token_file", "token")
        self.socket = str(folder / "socket") if "socket" in words else ""
        command = [sys.executable, str(ROOT / "orchestrator/server.py"), *(w for w in words if w != "socket"), *flags]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        line = self.process.stdout.readline()
        assert line.startswith("answering on"), line + self.process.stderr.read()
        self.port = 0 if self.socket else int(line.rsplit(":", 1)[1])

    def connect(self):
        """A plain connection."""
        if self.socket:
            plain = socket.socket(socket.AF_UNIX)
            plain.connect(self.socket)
        else:
            plain = socket.create_connection(("127.0.0.1", self.port))
        plain.settimeout(20)
        return plain

    def ask(self, body, method="POST", path="/decide", **headers):
        """Status and answer of one request, on a connection of its own."""
        client = http.client.HTTPConnection("127.0.0.1", self.port or 80, timeout=20)
        client.sock = self.connect()
        client.request(method, path, body, {"Authorization": f"Bearer {TOKEN}", **headers})
        answer = client.getresponse()
        told = json.loads(answer.read())
        client.close()
        return answer.status, told

    def raw(self, text):
        """All that comes back for some bytes, until the server closes the connection."""
        with self.connect() as plain:
            plain.sendall(text)
            found = b""
            while part := plain.recv(65536):
                found += part
        return found

    def head(self, length, line="POST /decide HTTP/1.1", more=""):
        """The head of a request."""
        return f"{line}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {length}\r\n{more}\r\n".encode()

    def megabytes(self):
        """What the process holds in memory."""
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(file.read().split("VmRSS:")[1].split()[0]) / 1024


@contextmanager
def served(folder, *words):
    """A server that runs while it is asked, and ends when it is told to."""
    server = Server(folder, *words)
    try:
        yield server
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(10) == 0
        assert server.process.stderr.read() == "loading; the first start on a machine compiles for minutes\n"
    finally:
        server.process.kill()
        server.process.wait()


@pytest.fixture(scope="module")
def fcfs(tmp_path_factory):
    """A server of a heuristic."""
    with served(tmp_path_factory.mktemp("fcfs"), "--policy", "fcfs") as server:
        yield server


def test_a_heuristic_decides(fcfs):
    status, told = fcfs.ask(json.dumps(small()))
    assert status == 200
    assert told.pop("microseconds") > 0
    assert told == {"version": 1, "job": "a", "nodes": [{"node": 0, "gpus": 1}], "also": [], "holds": None}
    full = small()
    full["nodes"] |= {"free": [0, 0], "name": ["x", "y"]}
    status, told = fcfs.ask(json.dumps(full))
    assert (status, told["job"], told["why"]) == (200, None, "no job that waits fits now")
    full["nodes"]["free"] = [0, 4]
    assert fcfs.ask(json.dumps(full))[1]["nodes"] == [{"node": "y", "gpus": 1}]
    full["nodes"]["state"] = ["up", "drained"]
    assert fcfs.ask(json.dumps(full))[1]["job"] is None
    full["queued"] = {"job": [], "submit": [], "gpus": [], "run_time": [], "pool": []}
    assert fcfs.ask(json.dumps(full))[1]["why"] == "no job waits"


def test_health(fcfs):
    status, told = fcfs.ask(None, "GET", "/health")
    assert (status, told["status"], told["policy"], told["kind"]) == (200, "ok", "fcfs fit", "job")


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ("", 422, "not JSON"),
        ("{", 422, "not JSON"),
        ("[" * 200_000, 422, "columns"),
        (changed("queued", to=None), 422, "queued"),
        (json.dumps(small()).replace("100.0", "NaN"), 422, "NaN"),
        (changed("nodes", "free", to=[-1, 0]), 422, "-1"),
        (changed("version", to=7), 422, "version"),
        ("x" * (MOST_BODY - 1), 422, "not JSON"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_bad_snapshots_are_answered(fcfs, body, status, word):
    came, told = fcfs.ask(body)
    assert came == status
    assert word in told["error"]
    assert fcfs.ask(json.dumps(small()))[0] == 200


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET /health HTTP/2.0\r\n\r\n", 505),
        (b"POST /decide HTTP/1.1\r\n\r\n", 401),
        (b"POST /decide HTTP/1.1\r\nAuthorization: Bearer wrong\r\nContent-Length: 3\r\n\r\n", 401),
        (b"GET /health HTTP/1.1\r\nAuthorization: Bearer caf\xe9\r\n\r\n", 401),
        (b"GET / HTTP/1.1\r\nAuthorization: Bearer %b\r\n\r\n", 404),
        (b"GET /decide HTTP/1.1\r\nAuthorization: Bearer %b\r\n\r\n", 405),
        (b"DELETE /health HTTP/1.1\r\nAuthorization: Bearer %b\r\nContent-Length: 0\r\n\r\n", 405),
        (b"POST /decide HTTP/1.1\r\nAuthorization: Bearer %b\r\n\r\n", 411),
        (b"POST /decide HTTP/1.1\r\nAuthorization: Bearer %b\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /decide HTTP/1.1\r\nAuthorization: Bearer %b\r\nContent-Length: 10485760\r\n\r\n", 413),
        (b"POST /decide HTTP/1.1\r\nAuthorization: Bearer %b\r\nTransfer-Encoding: chunked\r\n\r\n", 501),
        (b"POST /decide HTTP/1.1\r\nAuthorization: Bearer %b\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nX: " + b"y" * 100_000, 431),
        (b"GET /health HTTP/1.1\r\n" + b"A: b\r\n" * 10_000, 431),
    ],
    ids=lambda value: value if isinstance(value, int) else value[:30],
)  # fmt: skip
def test_bad_requests_are_answered_and_closed(fcfs, text, status):
    found = fcfs.raw(text.replace(b"%b", TOKEN.encode()))
    assert found.startswith(f"HTTP/1.1 {status} ".encode().rstrip()[:12])


def test_large_bodies_are_refused_before_they_come(fcfs):
    before = fcfs.megabytes()
    for _ in range(20):
        with fcfs.connect() as plain:
            plain.sendall(fcfs.head(10 * 2**20) + b"x" * 1000)
            assert b"413" in plain.recv(100)
    assert fcfs.megabytes() < before + 5


@pytest.mark.parametrize("size", [5 * 2**20, 10 * 2**20])
def test_clients_that_send_all_before_they_read_are_told_why(fcfs, size):
    before = fcfs.megabytes()
    for _ in range(3):
        status, told = fcfs.ask("x" * size)
        assert (status, told["error"]) == (413, f"a body of {size:,} bytes; want at most {MOST_BODY:,}")
    assert fcfs.ask("x" * 3_000_000, path="/elsewhere")[0] == 404
    assert fcfs.raw(b"GET /health HTTP/1.1\r\nX: " + b"y" * 3_000_000).startswith(b"HTTP/1.1 431 ")
    with pytest.raises(OSError, match=r"Broken pipe|reset"):  # there is an end to it
        fcfs.ask("x" * (2 * MOST_DRAINED))
    assert fcfs.megabytes() < before + 5
    assert fcfs.ask(json.dumps(small()))[0] == 200


def test_who_was_refused_and_stays_is_closed(fcfs):
    with fcfs.connect() as plain:
        plain.sendall(b"GET /health HTTP/1.1\r\n\r\n")
        begin = time.monotonic()
        assert plain.recv(1000).startswith(b"HTTP/1.1 401 ")
        assert plain.recv(1000) == b""
        with pytest.raises(OSError, match=r"Broken pipe|reset"):
            _drip(plain, begin + 4 * LINGER)


def _drip(plain, until):
    """Send on, letter by letter."""
    while time.monotonic() < until:
        plain.sendall(b"x")
        time.sleep(0.2)


def test_pipelined_requests_are_answered_in_turn(fcfs):
    body = json.dumps(small()).encode()
    one = fcfs.head(len(body)) + body
    bad = fcfs.head(2) + b"{]"
    last = fcfs.head(0, "GET /health HTTP/1.1", "Connection: close\r\n")
    found = fcfs.raw(one + bad + one * 50 + last)
    assert found.count(b"HTTP/1.1 200") == 52
    assert found.count(b"HTTP/1.1 422") == 1
    assert b'"status": "ok"' in found.rsplit(b"\r\n\r\n", 1)[1]


def test_requests_may_come_in_pieces_and_ask_for_leave(fcfs):
    body = json.dumps(small()).encode()
    with fcfs.connect() as plain:
        plain.sendall(fcfs.head(len(body), more="Expect: 100-continue\r\n"))
        assert plain.recv(100).startswith(b"HTTP/1.1 100 ")
        for at in range(0, len(body), 40):
            plain.sendall(body[at : at + 40])
        assert plain.recv(10_000).startswith(b"HTTP/1.1 200 ")


def test_a_thousand_slow_clients_do_not_shut_the_others_out(fcfs):
    body = json.dumps(small())
    fcfs.ask(body)
    before = fcfs.megabytes()
    slow = []
    begin = time.monotonic()
    for i in range(1000):
        plain = fcfs.connect()
        plain.sendall(b"POST /decide HTTP/1.1\r\nX: " if i % 2 else fcfs.head(1000) + b"{")
        slow.append(plain)
        if i % 100 == 0:
            assert fcfs.ask(body)[0] == 200
    assert fcfs.ask(body)[0] == 200
    assert len(os.listdir(f"/proc/{fcfs.process.pid}/fd")) < MOST_CONNECTIONS + 50
    assert fcfs.megabytes() < before + 20
    slow[-1].settimeout(PATIENCE + 10)
    assert slow[-1].recv(1000).startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() - begin < 4 * PATIENCE
    for plain in slow:
        plain.close()
    time.sleep(0.5)
    assert len(os.listdir(f"/proc/{fcfs.process.pid}/fd")) < 50


def test_nothing_grows(fcfs):
    body = json.dumps(small())
    for i in range(200):
        fcfs.ask(body if i % 20 else "x" * (MOST_BODY - 1))
    before = fcfs.megabytes()
    for i in range(600):
        fcfs.ask(body if i % 2 else "{" + "[" * 1000)
    for _ in range(20):
        fcfs.ask("x" * (MOST_BODY - 1))
    assert fcfs.megabytes() < before + 5
    assert fcfs.megabytes() < 200


@pytest.mark.parametrize("name", ["hidden", "oracle"])
def test_a_model_decides_over_a_socket(tmp_path, name):
    export([str(ROOT / f"models/philly/{name}.npz"), "-o", str(tmp_path / "policy.npz")])
    from envs.scheduling_env import SchedulingEnv
    from envs.wire import write
    from train.forward import JobPolicy, read_exported

    policy = JobPolicy(read_exported(tmp_path / "policy.npz"))
    chosen = {
        key: getattr(policy.options, key) for key in ("window", "action_mode", "sched_algo", "runtime_info", "prior")
    }
    env = SchedulingEnv(cluster="philly", seq_len=24, **chosen)
    seen, _ = env.reset(seed=1)
    with served(tmp_path, "--model", "policy.npz", "socket") as server:
        assert stat.S_IMODE(os.stat(server.socket).st_mode) == 0o600
        for _ in range(30):
            action = policy.best(seen, env.prior)[0]
            slots = env.episode.window_jobs()
            wanted = int(slots[action]) if action < len(slots) else None
            status, told = server.ask(write(env.snapshot()), path="/decide?scores=1")
            assert status == 200
            assert wanted in (told["job"], told["holds"])
            assert len(told["scores"]) == seen["mask"][: policy.options.window].sum()
            seen, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                break
        assert server.ask(json.dumps(small()))[0] == 422  # two nodes, and no histories
        with open(f"/proc/{server.process.pid}/maps") as maps:
            assert "tensorflow" not in maps.read()
        assert server.megabytes() < 200
    assert not os.path.exists(server.socket)


def test_the_example_for_a_model_is_answered_as_the_docs_say(tmp_path):
    export([str(ROOT / "models/philly/hidden.npz"), "-o", str(tmp_path / "policy.npz")])
    page = (ROOT / "docs/serving.md").read_text().split("### A snapshot for a model")[1]
    snapshot, answer = re.findall(r"```json\n(.*?)```", page, re.DOTALL)[:2]
    with served(tmp_path, "--model", "policy.npz", "socket") as server:
        status, told = server.ask(snapshot)
        assert status == 200
        assert told | {"microseconds": 410} == json.loads(answer)
        without = json.loads(snapshot)
        del without["queued"]["spread"]
        status, told = server.ask(json.dumps(without))
        assert (status, told["error"]) == (422, "queued.spread: nothing; want a list")


def test_a_process_that_has_compiled_starts_again(fcfs, tmp_path, monkeypatch):  # fcfs has all that is needed compiled
    shutil.copytree(numba.config.CACHE_DIR, tmp_path / "cache")
    missing = list((tmp_path / "cache").rglob("laying.find_rows*"))
    assert missing
    for path in missing:
        path.unlink()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    with served(tmp_path, "--policy", "fcfs", "socket") as server:
        assert server.ask(json.dumps(small()))[0] == 200
        with open(f"/proc/{server.process.pid}/environ") as file:
            assert AGAIN in file.read()
        assert server.megabytes() < 200


def test_a_token_is_made_where_there_is_none(tmp_path):
    command = [
        sys.executable,
        str(ROOT / "orchestrator/server.py"),
        "--policy",
        "fcfs",
        "--port",
        "0",
        "--token-file",
        "new",
    ]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert "token written to new" in process.stdout.readline()
        assert process.stdout.readline().startswith("answering on http://127.0.0.1:")
        process.terminate()
        assert process.wait(10) == 0
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600
    assert len((tmp_path / "new").read_text().strip()) > 30
    (tmp_path / "new").chmod(0o644)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "want mode 600" in done.stderr


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({}, "--model FILE or --policy"),
        ({"policy": "sjf"}, "--socket PATH or --port"),
        ({"policy": "sjf", "model": "x", "port": 1}, "one of the two"),
        ({"policy": "sjf", "port": 70000}, "65535"),
        ({"policy": "sjf", "port": 1, "host": "0.0.0.0"}, "open_to_network"),
        ({"policy": "sjf", "socket": "x", "token_file": "y"}, "no token"),
        ({"model": "x", "port": 1, "action_mode": "easy"}, "belong to --policy"),
    ],
    ids=str,
)
def test_flags_that_do_not_go_together(given, word):
    with pytest.raises(ConfigError, match=word):
        Config(**given)
