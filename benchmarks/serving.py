"""How long a decision takes, in a process and through HTTP, and how much memory the service holds."""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from berth.commandline import run
from berth.console import show_rows
from envs.desk import arranged
from envs.observation import POOL_FEATURES, lookahead_layout
from envs.sim.history import TOLD_OF
from envs.snapshot import Snapshot
from envs.wire import read, write
from orchestrator.deciding import JobDecider
from orchestrator.host_deciding import HostDecider
from train.checkpoint import load
from train.export import export, write_exported
from train.forward import FORMAT, Exported, JobPolicy
from train.host_design import host_layers
from train.host_forward import HostPolicy

ROOT = Path(__file__).resolve().parent.parent
MODEL, PAGE = ROOT / "models/philly/hidden.npz", ROOT / "docs/results/serving.md"

REPEATS, WARM, ROUNDS, CLIENTS = 1_000, 100, 8, 2
"""Decisions of a round, those before it, rounds of which the fastest is told, and clients at once."""

HEAD = """# Serving

What `python benchmarks/serving.py` (one of `make bench`) wrote last, on two shared cores. The policy is
models/philly/hidden.npz (`kernel`, `fit`), its window widened to 128 slots; where a cluster is larger than the one it
was trained on, the weights for the cluster's numbers are zeros, which takes as long. "CPU" is the processor time that a
decision takes, in the mean and as p99; the rest is by the clock. Both are lengthened by other programs on the machine,
so the fastest of eight rounds of a thousand decisions is told. By the clock, p99 also counts the milliseconds for which
another program has the core, where more want one than there are.
"""


def busy_cluster(nodes: int, queued: int, seed: int = 0) -> Snapshot:
    """A crowded cluster of 8-GPU nodes, with places of all jobs and histories."""
    rng = np.random.default_rng(seed)
    free = rng.integers(0, 3, nodes).astype(np.int32)
    places = [(node, 2) for node in range(nodes) for _ in range((8 - int(free[node])) // 2)]
    ran, now = len(places), 1e6
    submit = np.sort(np.round(now - rng.exponential(5000, queued)))
    return Snapshot(
        now, np.arange(queued), submit, now - submit, rng.choice([1, 1, 2, 4, 8], queued).astype(np.int32),
        np.round(rng.lognormal(8, 1, queued)), np.zeros(queued, np.int32), np.arange(ran) + queued,
        np.round(now - rng.exponential(5000, ran)), np.full(ran, 2, np.int32), np.zeros(ran, np.int32),
        np.round(now + rng.exponential(5000, ran)), free, np.full(nodes, 8, np.int32), np.zeros(nodes, np.int32),
        history=rng.random((queued, TOLD_OF), np.float32), running_guess=np.full(ran, 9000.0),
        place_at=np.arange(ran + 1), place_node=np.array(places, np.int32)[:, 0], place_gpus=np.full(ran, 2, np.int32),
    )  # fmt: skip


def widened(view: Snapshot, window: int = 128) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The model that ships, with a larger window, for the nodes of a Snapshot."""
    told, weights = export(load(MODEL))
    looks = lookahead_layout(arranged(view)[0])
    cluster = len(looks) * len(POOL_FEATURES) + int(looks["count"].sum())
    if cluster != told["cluster"]:
        weights["context/kernel"] = np.zeros((cluster, weights["context/bias"].size), np.float32)
    told |= {
        "window": window, "actions": window + 1, "cluster": cluster, "pool_gpus": looks["gpus"].tolist(),
        "pools": [[int(at), int(count)] for at, count in zip(looks["at"], looks["count"], strict=True)],
        "options": told["options"] | {"window": window},
    }  # fmt: skip
    return told, weights


def timed(action: Any) -> tuple[float, float, float, float]:
    """Microseconds that something takes: median and p99 by the clock, mean and p99 of processor time."""
    for _ in range(WARM):
        action()
    found, used = np.empty(REPEATS), np.empty(REPEATS)
    for i in range(REPEATS):
        begin, before = time.perf_counter(), time.thread_time()
        action()
        found[i], used[i] = time.perf_counter() - begin, time.thread_time() - before
    numbers = (np.median(found), np.percentile(found, 99), used.mean(), np.percentile(used, 99))
    return tuple(float(number) * 1e6 for number in numbers)  # type: ignore[return-value]


def in_process() -> list[tuple[str, ...]]:
    """A host out of 100, and a job out of 128 queued ones with its nodes: from the Snapshot, and from the JSON text."""
    view = busy_cluster(24, 128)
    told, weights = widened(view)
    policy = JobPolicy(Exported(told, weights, MODEL))
    decider, text = JobDecider("bench", policy.options, policy), write(view).encode()
    hosts = HostDecider(HostPolicy(Exported(*host_model(), MODEL)))
    crowded = busy_hosts(100)
    cases = {
        "a host of 100: features, network": (lambda: hosts.decide(crowded), "p99 < 1,000"),
        "a job of 128: features, network, placement": (lambda: decider.decide(view), "p99 < 1,000"),
        "the same, JSON read first": (lambda: decider.decide(read(text)), ""),
    }
    return [
        (name, *(f"{number:,.0f}" for number in min(timed(action) for _ in range(ROUNDS))), wanted)
        for name, (action, wanted) in cases.items()
    ]


def busy_hosts(hosts: int, seed: int = 0) -> Snapshot:
    """Crowded hosts with cores and memory, and some jobs that ask for them."""
    rng, view = np.random.default_rng(seed), busy_cluster(hosts, 30, seed)
    cores, memory = rng.integers(16, 33, hosts).astype(float), rng.choice([65536.0, 131072.0], hosts)
    return view._replace(
        cores=rng.integers(1, 5, 30).astype(float), memory=rng.integers(512, 4096, 30).astype(float),
        node_cores=cores, node_free_cores=rng.integers(0, 9, hosts).astype(float), node_memory=memory,
        node_free_memory=np.round(memory * rng.random(hosts)), history=None,
    )  # fmt: skip


def host_model() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A policy that names hosts, with weights that are drawn: they take as long as learned ones."""
    rng, hidden = np.random.default_rng(0), (32, 16)
    told = {
        "format": FORMAT,
        "kind": "host",
        "name": "bench",
        "hidden": list(hidden),
        "most_cores": 4,
        "most_memory": 4096,
    }
    return told, {name: rng.standard_normal(shape).astype(np.float32) for name, shape in host_layers(hidden).items()}


class Served:
    """The service as a process."""

    def __init__(self, folder: str, model: tuple[dict[str, Any], dict[str, np.ndarray]]) -> None:
        write_exported(Path(folder) / "policy.npz", *model)
        command = [sys.executable, str(ROOT / "orchestrator/server.py"), "--model", "policy.npz", "--port", "0"]
        self.process = subprocess.Popen(
            [*command, "--token_file", "token"], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        lines = [self.process.stdout.readline() for _ in range(1 if Path(folder, "token").exists() else 2)]
        self.port = int(lines[-1].rsplit(":", 1)[1])
        self.token = Path(folder, "token").read_text().strip()

    def cpu(self) -> float:
        """Seconds of processor time that the process has taken."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / float(os.sysconf("SC_CLK_TCK"))

    def megabytes(self) -> float:
        """What it holds in memory."""
        return int(Path(f"/proc/{self.process.pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024

    def rate(self, body: bytes) -> tuple[float, float, float, float]:
        """Decisions a second of CLIENTS that keep their connections; median, p99 and processor time in µs."""
        before, begin = self.cpu(), time.perf_counter()
        with ThreadPoolExecutor(CLIENTS) as clients:
            found = list(clients.map(lambda _: self._asked(body), range(CLIENTS)))
        count = CLIENTS * (WARM + REPEATS)
        seconds, used = time.perf_counter() - begin, self.cpu() - before
        return count / seconds, max(one[0] for one in found), max(one[1] for one in found), used / count * 1e6

    def _asked(self, body: bytes) -> tuple[float, ...]:
        """What one client measures."""
        client = http.client.HTTPConnection("127.0.0.1", self.port)
        head = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}

        def _ask() -> None:
            client.request("POST", "/decide", body, head)
            answer = client.getresponse()
            told = json.loads(answer.read())
            assert answer.status == 200, told

        return timed(_ask)


def through_http() -> list[tuple[str, ...]]:
    """Decisions a second, on two sizes of cluster."""
    rows = []
    cases = [("", busy_cluster(36, 30), ">= 1,000"), ("", busy_cluster(100, 128), ""), ("hosts: ", busy_hosts(100), "")]
    for what, view, wanted in cases:
        body = write(view).encode()
        with tempfile.TemporaryDirectory() as folder:
            served = Served(folder, host_model() if what else widened(view))
            try:
                numbers = max(served.rate(body) for _ in range(ROUNDS))
                memory = served.megabytes()
            finally:
                served.process.terminate()
                served.process.wait()
        sizes = f"{len(view.free)} nodes, {len(view.job)} queued, {len(view.running_job)} running"
        name = f"{what}{sizes} ({len(body):,} bytes)"
        rows.append((name, *(f"{number:,.0f}" for number in numbers), wanted, f"{memory:.0f}", "< 200"))
    return rows


def main() -> None:
    """Print the tables, and write the page."""
    tables = {
        "A decision, in a process (microseconds)": (
            ("what", "median", "p99", "CPU", "CPU, p99", "wanted"), in_process(),
        ),
        f"Through HTTP, {CLIENTS} clients (microseconds; MB of the service)": (
            ("snapshot", "decisions/s", "median", "p99", "CPU", "wanted", "MB", "wanted "), through_http(),
        ),
    }  # fmt: skip
    load = os.getloadavg()[0]
    cores, own = os.cpu_count(), os.nice(0)
    busy = (
        f"While this was measured, {load:.1f} processes wanted the {cores} cores (load average; own niceness {own}).\n"
    )
    page = [HEAD, busy]
    for title, (header, rows) in tables.items():
        show_rows(title, header, rows)
        lines = [f"| {' | '.join(row)} |" for row in (header, ("---",) * len(header), *rows)]
        page.append("\n".join([f"## {title}", "", *lines, ""]))
    PAGE.write_text("\n".join(page))


if __name__ == "__main__":
    run(main)
