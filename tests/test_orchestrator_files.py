"""Runs of the orchestrator that meet files of other runs, damaged files, and signals at odd moments."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from berth.errors import ConfigError
from eval.foretold import read_live
from eval.ledger import read_ledger
from orchestrator import orchestrator
from orchestrator.bell import Bell
from orchestrator.clocks import RealClock
from orchestrator.metrics import Metrics, Taken
from orchestrator.plans import read_plan
from orchestrator.running import Job
from orchestrator.stress_ng import StressNg
from tests import test_orchestrator
from tests.conftest import ROOT
from tests.test_backends import wait_for

call = test_orchestrator.call
"""The fixture that runs the program in this process."""


def told_of(text):
    """What was printed, in one line."""
    return " ".join(text.split())


# ---- names


def test_a_name_is_claimed_by_one_alone(tmp_path):
    """Of many who want one name at the same moment each gets another; who insists on it is refused."""
    barrier, claimed = threading.Barrier(8), []

    def claim():
        barrier.wait()
        claimed.append(Metrics.claim(tmp_path, "a", or_next=True))

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.run for one in claimed) == ["a", *(f"a_{i}" for i in range(2, 9))]
    with pytest.raises(Taken, match="another process is at this run"):
        Metrics.claim(tmp_path, "a", or_next=False)
    for one in claimed:
        one.close()
    Metrics.claim(tmp_path, "a", or_next=False).close()  # nothing was written: nobody has run


def test_runs_that_begin_together_do_not_meet(call, tmp_path, monkeypatch):
    """One is at the name already, without a plan yet: another takes the next, or is refused where it was named."""
    monkeypatch.setattr(orchestrator, "_name", lambda *_: "same")
    folder = tmp_path / "artifacts"
    folder.mkdir()
    with Metrics.claim(folder, "same", or_next=False):
        status, text = call("--simulate", "--generate-jobs", 3, "--seed", 1)
        assert status == 0, text
        status, text = call("--simulate", "--run", "same")
        assert (status, "another process is at this run" in text) == (2, True)
    assert call("--simulate", "--generate-jobs", 3, "--seed", 2)[0] == 0
    assert call("--simulate", "--generate-jobs", 3, "--seed", 3)[0] == 0
    for run, seed in (("same_2", 1), ("same", 2), ("same_3", 3)):
        rows = read_ledger(folder / f"metrics_{run}.jsonl").entries
        assert {(row.run, row.seed) for row in rows} == {(run, seed)}
        assert read_plan(folder / f"run_{run}.json").settings["seed"] == seed


def test_a_new_run_takes_over_no_metrics(call, tmp_path):
    """Of a run whose plan is gone; nor does --resume those of other jobs."""
    assert call("--simulate", "--run", "k", "--generate-jobs", 3)[0] == 0
    plan, path = (tmp_path / "artifacts" / name for name in ("run_k.json", "metrics_k.jsonl"))
    told, rows = plan.read_text(), path.read_text()
    plan.unlink()
    status, text = call("--simulate", "--run", "k", "--seed", 3, "--policy", "sjf")
    assert status == 2
    assert "metrics_k.jsonl is there already, without run_k.json; want another name" in told_of(text)
    assert path.read_text() == rows
    (last,) = (line for line in rows.splitlines(keepends=True) if '"job_id": "3"' in line)
    path.write_text(last)
    for column, field in (("run_time", "p"), ("gpus", "n"), ("submit", "submit")):
        other = json.loads(told) | {"cores": 64}
        other["jobs"][column][-1] += 1
        plan.write_text(json.dumps(other))
        status, text = call("--resume")
        assert status == 2
        assert re.search(rf"metrics_k.jsonl:1: job 3 has {field} .* in the plan of run k", told_of(text)), text
    path.write_text(last.replace('"run": "k"', '"run": "other"'))
    plan.write_text(told)
    assert "has run other, and k in the plan" in told_of(call("--resume")[1])


# ---- damaged files

BAD_ROWS = {
    ("end", float("nan")): "end = nan, want a finite number",
    ("end", float("inf")): "end = inf, want a finite number",
    ("submit", float("inf")): "submit = inf, want a finite number",
    ("end", 1e9): "duration_s",
    ("end", -1.0): "want none before the other, nor below 0",
    ("start", -5.0): "want none before the other, nor below 0",
    ("submit", 1e9): "want none before the other, nor below 0",
    ("queue_wait_s", 77.0): "queue_wait_s 77, and 0 by",
    ("p", -1.0): "seconds above 0",
    ("n", 1.7): "n = 1.7, want a whole number",
    ("n", float("inf")): "n = inf, want a whole number",
    ("n", 1000): "1 to as many cores as the host has",
    ("speedup", 0): "a speedup and seconds above 0",
    ("session", -1): "0 or more sessions",
    ("user_s", float("nan")): "user_s = nan, want a finite number",
}


def test_rows_that_cannot_be_are_named(call, tmp_path):
    """By --resume and by the report of live runs alike, with file and line."""
    assert call("--simulate", "--run", "a", "--generate-jobs", 3, "--cores", 4)[0] == 0
    path = tmp_path / "artifacts" / "metrics_a.jsonl"
    first, second, _ = path.read_text().splitlines(keepends=True)
    for (field, value), said in BAD_ROWS.items():
        path.write_text(second + json.dumps(json.loads(first) | {field: value}) + "\n")
        status, text = call("--resume")
        assert status == 2, (field, value)
        assert "metrics_a.jsonl:2: " in told_of(text)
        assert said in told_of(text)
        with pytest.raises(ConfigError, match=r"metrics_a.jsonl:2: "):
            read_live(path)


BAD_PLANS = {
    ("began", 1e300): "began = 1e+300, want a number from 0",
    ("began", float("nan")): "began = nan",
    ("run", "../../evil"): "run = '../../evil', want the one that the file is named for",
    ("session", -5): "session = -5",
    ("cores", 0): "cores = 0",
    ("cores", float("inf")): "cores = inf",
    ("submit", float("nan")): "submit of job 1 = nan",
    ("run_time", -5): "run_time of job 1 = -5",
    ("gpus", 64): "job 1 asks for more than 4 cores",
    ("gpus", 1.5): "gpus are no whole numbers",
    ("gpus", "x"): "gpus of job 1 = 'x'",
    ("job_id", "2"): "3 jobs with 2 names",
}


def test_plans_that_cannot_be_are_told(call, tmp_path):
    """In one line, where the run is named; the run itself stays as it was."""
    assert call("--simulate", "--run", "a", "--generate-jobs", 3, "--cores", 4)[0] == 0
    plan = tmp_path / "artifacts" / "run_a.json"
    whole = json.loads(plan.read_text())
    rows = plan.with_name("metrics_a.jsonl").read_text().splitlines(keepends=True)
    plan.with_name("metrics_a.jsonl").write_text(rows[0])
    for (name, value), said in BAD_PLANS.items():
        jobs = whole["jobs"]
        other = {"jobs": jobs | {name: [value, *jobs[name][1:]]}} if name in jobs else {name: value}
        plan.write_text(json.dumps(whole | other))
        status, text = call("--resume", "--run", "a")
        assert status == 2, (name, value)
        assert "run_a.json: not the plan of a run, or a damaged one" in told_of(text)
        assert said in told_of(text)
    assert plan.with_name("metrics_a.jsonl").read_text() == rows[0]


def test_a_damaged_plan_stops_no_other_run(call, tmp_path):
    """It is told and passed over; it is an error where it is named."""
    for run in ("a", "b"):
        assert call("--simulate", "--run", run, "--generate-jobs", 3)[0] == 0
    folder = tmp_path / "artifacts"
    (folder / "metrics_a.jsonl").write_text("")
    (folder / "run_b.json").write_text("{")
    status, text = call("--resume")
    assert status == 0, text
    assert "run_b.json: not the plan of a run" in told_of(text)
    assert "going on with run a" in text
    assert len(read_ledger(folder / "metrics_a.jsonl").entries) == 3
    assert call("--resume", "--run", "b")[0] == 2


def test_no_room_for_what_is_printed_is_told(tmp_path):
    """In one line, with the status of an error, not with that of failed jobs."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, test_orchestrator.SCRIPT, "--simulate", "--generate-jobs", "2"], cwd=tmp_path, stdout=full,
            stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "error: No space left on device for what is printed; want room where the output goes\n"


# ---- signals


def program(folder, text):
    """A program instead of stress-ng."""
    path = folder / "program"
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


ENDINGS = {
    "#!/bin/sh\nexec sleep 60\n": (0.2, True, ""),  # dies of the SIGINT that it is sent, as who is not ready yet does
    "#!/bin/sh\ntrap 'exit 3' INT\nsleep 60\n": (0.2, True, ""),
    "#!/bin/sh\nexit 3\n": (20.5, False, "exit status 3: it printed nothing"),
    f"#!{sys.executable} -S\nimport os\nos.kill(os.getpid(), 40)\n": (20.5, False, "killed by signal 40"),
    f"#!{sys.executable} -S\nimport os\nos.kill(os.getpid(), 2)\n": (20.5, False, "killed by signal 2 (SIGINT)"),
}


@pytest.mark.parametrize("text", ENDINGS, ids=range(len(ENDINGS)))
def test_who_ends_as_it_was_asked_to_has_not_failed(tmp_path, text):
    """Only who ends before it was asked; signals without a name are told by their number."""
    seconds, success, reason = ENDINGS[text]
    with Bell() as bell:
        backend = StressNg(RealClock(bell), program=program(tmp_path, text))
        backend.start(Job(0, "a", 1, seconds))
        (one,) = wait_for(backend, 1)
        assert (one.success, one.reason) == (success, reason)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_training_that_is_stopped_says_so(call, monkeypatch, number):
    """SIGTERM as Ctrl-C: training ends its own way, each with its own status; SIGTERM is what it was afterwards."""
    from orchestrator.learning import QueueRun

    def struck(_run):
        os.kill(os.getpid(), number)
        time.sleep(5)
        pytest.fail("nobody was interrupted")

    monkeypatch.setattr(QueueRun, "_begin", struck)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # so that it ends no test where nobody minds it
    try:
        status, text = call("--policy", "rl", "--rl-train", "--simulate", "--generate-jobs", 5)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
    assert status == 128 + number
    assert "No policy was written; --rl-train begins anew" in told_of(text)
