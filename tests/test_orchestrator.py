"""The orchestrator as a program: what it writes, what it survives, and what it says to wrong input."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from berth.commandline import run
from eval.foretold import difference, read_live
from eval.ledger import Entry, read_ledger
from orchestrator import learning, orchestrator
from orchestrator.metrics import Metrics
from tests.conftest import ROOT
from tests.test_backends import LATE, alive, real

SCRIPT = str(ROOT / "orchestrator" / "orchestrator.py")


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Run the program in this process: exit status, and all that it printed."""
    monkeypatch.chdir(tmp_path)

    def _call(*words):
        monkeypatch.setattr(sys, "argv", ["orchestrator.py", *map(str, words)])
        try:
            run(orchestrator.main)
            status = 0
        except SystemExit as ending:
            status = ending.code
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    return _call


def begin(folder, *words, env=None, **more):
    """The program in a process of its own, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, SCRIPT, *map(str, words)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}, **more,
    )  # fmt: skip


def entries(folder, kind="jsonl"):
    """The rows of the only run in a folder."""
    (path,) = (folder / "artifacts").glob(f"metrics_*.{kind}")
    return read_ledger(path).entries


def until(condition, what):
    """Wait for something that a busy machine takes a while for."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, f"{what} has not happened"
        time.sleep(0.02)


def children(pid):
    """Process groups that descend from a process."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def most_cores_at_once(rows):
    """How many cores jobs had at once, at most."""
    events = sorted([(row.start, 1, row.n) for row in rows] + [(row.end, 0, -row.n) for row in rows])
    return int(np.cumsum([n for _, _, n in events]).max())


# ---- what is written


def test_metrics_are_written_alike_as_json_and_csv(call, tmp_path):
    """The fields of the glossary and the seed's, the same numbers in both files."""
    status, text = call("--policy", "fifo", "--generate-jobs", 10, "--simulate", "--cores", 4)
    assert status == 0, text
    rows = entries(tmp_path)
    assert rows == entries(tmp_path, "csv")
    assert len(rows) == 10
    for row in rows:
        assert row.success
        assert row.queue_wait_s == row.start - row.submit
        assert row.duration_s == row.p == row.end - row.start
        assert row.start_time.endswith("+00:00")
    assert most_cores_at_once(rows) <= 4
    assert [row.start for row in sorted(rows, key=lambda row: int(row.job_id))] == sorted(row.start for row in rows)


def test_time_is_virtual_unless_it_is_not(call, tmp_path):
    """Ten minutes take none; with --realtime they are slept, at the speed asked for."""
    begun = time.monotonic()
    assert call("--simulate", "--p-min", 600, "--p-max", 600, "--generate-jobs", 5, "--cores", 1)[0] == 0
    assert time.monotonic() - begun < LATE
    assert max(row.end for row in entries(tmp_path)) == 3000
    shutil.rmtree(tmp_path / "artifacts")
    begun = time.monotonic()
    words = ("--simulate", "--realtime", "--speedup", 100, "--p-min", 40, "--p-max", 40, "--generate-jobs", 2)
    assert call(*words, "--cores", 1)[0] == 0
    assert time.monotonic() - begun >= 0.8
    first, second = entries(tmp_path)
    assert 0.4 <= first.duration_s <= LATE
    assert 40 <= second.start <= 100 * LATE


@real
def test_real_jobs_start_in_order_within_the_cores(call, tmp_path):
    """fifo: as submitted; never more cores at once than the host has; the same fields as when simulated."""
    status, text = call("--generate-jobs", 5, "--p-max", 1, "--seed", 4, "--backend", "stress_ng")
    assert status == 0, text
    rows = sorted(entries(tmp_path), key=lambda row: int(row.job_id))
    assert [row.start for row in rows] == sorted(row.start for row in rows)
    assert most_cores_at_once(rows) <= rows[0].cores
    assert all(row.success and row.exit_code == 0 and row.user_s >= 0 and row.bogo_ops > 0 for row in rows)
    told = json.loads((tmp_path / "artifacts").glob("metrics_*.jsonl").__next__().read_text().splitlines()[0])
    assert tuple(told) == Entry._fields
    off = difference(read_live(next((tmp_path / "artifacts").glob("*.csv"))))
    assert off.jobs == 5
    assert off.start_bias > -0.1


# ---- what it survives


@real
def test_kill_9_loses_nothing_and_leaves_nothing(tmp_path):
    """Killed in the middle: what had ended stays, the jobs die with it, --resume runs the rest, each once."""
    trace = write_trace(tmp_path / "t.csv", ["1,0,1,1", "2,0,600,1", "3,0,1,1"])
    path = tmp_path / "artifacts" / "metrics_a.jsonl"
    process = begin(tmp_path, "--workload", trace, "--cores", 1, "--run", "a", "--backend", "stress_ng")
    until(lambda: path.exists() and path.read_bytes().count(b"\n") >= 1 and children(process.pid), "an end")
    groups = children(process.pid)
    process.kill()
    process.wait()
    until(lambda: not any(map(alive, groups)), "the death of the jobs")
    kept, plan = path.read_bytes(), path.with_name("run_a.json")
    plan.write_text(plan.read_text().replace("600.0", "1.0"))  # nobody wants to wait so long for the rest
    done = begin(tmp_path, "--resume")
    text = done.communicate()[0]
    assert done.returncode == 0, text
    assert "going on with run a" in text
    assert path.read_bytes().startswith(kept)
    rows = read_ledger(path).entries
    assert sorted(row.job_id for row in rows) == list("123")
    assert {row.session for row in rows} == {0, 1}
    assert rows == read_ledger(path.with_suffix(".csv")).entries


@real
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_is_asked_to_stop_leaves_no_process(tmp_path, number):
    """Ctrl-C and SIGTERM: the groups are gone, the status tells, and what ran is to be run again."""
    process = begin(tmp_path, "--generate-jobs", 3, "--p-min", 60, "--p-max", 60, "--backend", "stress_ng")
    until(lambda: children(process.pid), "the start of a job")
    groups = children(process.pid)
    time.sleep(0.2)
    process.send_signal(number)
    text = process.communicate(timeout=60)[0]
    assert process.returncode == 128 + number, text
    assert f"stopped by {number.name}; --resume goes on" in text
    assert not any(map(alive, groups))
    assert entries(tmp_path) == ()


@real
def test_jobs_that_fail_or_hang_do_not_stop_the_others(tmp_path):
    """Real stress-ng, told wrongly once, and told to run for ever once."""
    program = tmp_path / "bin" / "stress-ng"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\necho x >> {tmp_path}/count\ncase $(wc -l < {tmp_path}/count) in\n"
        f'2) exec {shutil.which("stress-ng")} --cpu-method nosuch "$@";;\n'
        f"3) exec {shutil.which('stress-ng')} --cpu 1 --timeout 1000s;;\n"
        f'*) exec {shutil.which("stress-ng")} "$@";;\nesac\n'
    )
    program.chmod(0o755)
    words = ("--generate-jobs", 4, "--p-max", 1, "--n-max", 1, "--cores", 1, "--patience", 0.5)
    process = begin(tmp_path, *words, env={"PATH": f"{program.parent}:{os.environ['PATH']}"})
    text = process.communicate(timeout=120)[0]
    assert process.returncode == 1, text
    assert "4 of 4 jobs have ended, 2 failed" in text
    rows = entries(tmp_path)
    assert [row.success for row in rows] == [True, False, False, True]
    assert rows[1].reason.startswith("exit status")
    assert rows[2].reason.startswith("hung: killed 0.5 s after its time")


def limited_files():
    """Let no file grow beyond 2,000 bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))


@real
def test_a_disk_that_is_full_is_told_and_leaves_whole_files(tmp_path):
    """What cannot be written stops the run; the files hold whole lines, nothing runs any more, --resume goes on."""
    words = ("--generate-jobs", 4, "--p-max", 1, "--n-max", 1, "--cores", 1, "--backend", "stress_ng")
    process = begin(tmp_path, *words, preexec_fn=limited_files)
    groups = set()
    while process.poll() is None:
        groups |= set(children(process.pid))
        time.sleep(0.05)
    text = process.stdout.read()
    assert process.returncode == 2, text
    assert "File too large; the metrics of" in text
    assert "Traceback" not in text
    assert groups
    assert not any(map(alive, groups))
    before = entries(tmp_path)
    assert all(read_ledger(path).cut == 0 for path in (tmp_path / "artifacts").glob("metrics_*"))
    assert 1 <= len(before) < 4
    done = begin(tmp_path, "--resume")
    assert done.communicate()[1] is None
    assert done.returncode == 0
    assert entries(tmp_path)[: len(before)] == before
    assert len(entries(tmp_path)) == 4


def test_a_tiny_file_system_that_is_full(call, tmp_path):
    """The same with a disk that really is."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        shutil.which("mount") is None
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", str(disk)], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("no right to mount a file system here")
    try:
        status, text = call("--simulate", "--generate-jobs", 60, "--output-dir", disk, "--run", "a")
        assert status == 2
        assert "No space left on device; the metrics of" in text
        kept = read_ledger(disk / "metrics_a.jsonl")
        assert 0 < len(kept.entries) < 60
        assert kept.cut == 0
        shutil.copytree(disk, tmp_path / "roomy")
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    assert call("--resume", "--output-dir", tmp_path / "roomy")[0] == 0
    assert len(read_ledger(tmp_path / "roomy" / "metrics_a.jsonl").entries) == 60


def test_a_line_that_was_cut_is_mended(call, tmp_path):
    """In the middle of the last line, or before its end; the job runs again, and both files agree."""
    assert call("--simulate", "--run", "a", "--policy", "sjf")[0] == 0
    path = tmp_path / "artifacts" / "metrics_a.jsonl"
    whole = path.read_bytes()
    for cut in (len(whole) - 1, len(whole) - 200, whole.index(b"\n") + 30):
        path.write_bytes(whole[:cut])
        path.with_suffix(".csv").write_text("rubbish")
        status, text = call("--resume", "--policy", "sjf")
        assert status == 0, text
        assert "its last line was cut" in text or "going on" in text
        rows = read_ledger(path).entries
        assert sorted(row.job_id for row in rows) == sorted(str(i + 1) for i in range(10))
        assert rows == read_ledger(path.with_suffix(".csv")).entries
    status, text = call("--resume")
    assert (status, "nothing to go on with" in text) == (0, True)
    lines = whole.splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:100] + b"\n" + b"".join(lines[2:]))
    status, text = call("--resume")
    assert status == 2
    assert "metrics_a.jsonl:2: " in text.replace("\n", "")


def test_a_run_keeps_its_own_settings(call, tmp_path):
    """Another policy on --resume is an error; so is a folder without runs, and somebody else at the run."""
    assert call("--simulate", "--run", "a")[0] == 0
    path = tmp_path / "artifacts" / "metrics_a.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    assert "run a has fifo; with --resume it keeps its own" in call("--resume", "--policy", "sjf")[1]
    assert "run a has" not in call("--resume", "--policy", "fcfs")[1]
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    assert "is there already; want --resume" in call("--simulate", "--run", "a")[1]
    assert "no run_*.json in" in call("--resume", "--output-dir", tmp_path / "other")[1]
    assert not (tmp_path / "other").exists()
    assert "--run b: no" in call("--resume", "--run", "b")[1]
    with Metrics(tmp_path / "artifacts", "a"):
        status, text = call("--resume")
        assert (status, "another process is at this run" in text) == (2, True)
    assert call("--simulate", "--run", "later", "--policy", "sjf")[0] == 0
    assert "going on with run a" in call("--resume", "--policy", "fifo")[1]
    for later in (tmp_path / "artifacts").glob("*_later.*"):
        later.unlink()
    assert len(entries(tmp_path)) == 10
    plan = tmp_path / "artifacts" / "run_a.json"
    told = json.loads(plan.read_text())
    path.write_text("")
    for name, value in (("nonsense", 1), ("speedup", "x")):
        plan.write_text(json.dumps(told | {"settings": told["settings"] | {name: value}}))
        assert "run_a.json: settings of another version, or damaged" in call("--resume")[1].replace("\n", "")
    plan.write_text("{")
    assert "not the plan of a run, or a damaged one" in call("--resume")[1]


# ---- traces


def write_trace(path, rows):
    """A job list of four columns."""
    path.write_text("job_id,arrival_s,service_sec,gpu_count\n" + "".join(f"{row}\n" for row in rows))
    return path


def test_a_trace_is_replayed_as_it_arrives(call, tmp_path):
    """With its own arrivals; what can never fit is left out and named; nothing that fits is an error."""
    trace = write_trace(tmp_path / "t.csv", ["a,100,60,1", "b,110,30,2", "huge,115,5,64", "c,120,30.5,1"])
    status, text = call("--workload", trace, "--simulate", "--cores", 2, "--policy", "sjf", "--discipline", "fit")
    assert status == 0, text
    assert "1 jobs left out that can never fit their pool: huge" in text
    assert {row.job_id: (row.submit, row.start) for row in entries(tmp_path)} == {
        "a": (0, 0), "b": (10, 60), "c": (20, 20),
    }  # fmt: skip
    trace = write_trace(tmp_path / "u.csv", ["huge,0,5,64"])
    status, text = call("--workload", trace, "--simulate", "--cores", 2)
    assert status == 2
    assert "no job fits its pool" in text
    assert "no such file" in call("--workload", tmp_path / "nosuch.csv", "--simulate")[1].lower()


@real
def test_a_trace_is_replayed_faster_than_it_was(call, tmp_path):
    """An hour's jobs in seconds, on real processes; metrics tell both times."""
    trace = write_trace(tmp_path / "t.csv", ["a,0,60,1", "b,30,36,1", "c,60,60,1"])
    status, text = call("--workload", trace, "--speedup", 60, "--cores", 1, "--backend", "stress_ng")
    assert status == 0, text
    a, b, c = entries(tmp_path)
    assert (a.submit, b.submit, c.submit) == (0, 30, 60)
    assert 0.9 <= a.duration_s <= LATE
    assert 0.6 <= b.duration_s <= LATE
    assert a.end <= b.start
    assert b.queue_wait_s == pytest.approx((b.start - 30) / 60)


# ---- wrong input


def confused(view):
    """No policy at all."""
    raise RuntimeError("what now?")


WRONG = {
    ("--policy", "fifoo"): "did you mean fifo?",
    ("--policy", "rl"): "want --rl-model-path FILE (as models/job_policy.pth), or --rl-train",
    ("--policy", "rl", "--rl-model-path", "nosuch.pth"): "--rl-model-path nosuch.pth: no such file or folder",
    ("--policy", "rl", "--rl-model-path", "."): "the folder has neither best.npz nor last.npz",
    ("--policy", "fifo", "--rl-train"): "want --policy rl",
    ("--policy", "nosuch.py:f"): "policy nosuch.py:f: ",
    ("--policy", "tests.test_orchestrator:confused"): "confused: RuntimeError: what now?",
    ("--policy", "rl", "--rl-train", "--rl-residual", "random"): "want a policy with a formula",
    ("--policy", "rl", "--rl-train", "--rl-model-path", "."): "a folder, want the name of a file",
    ("--policy", "rl", "--rl-train", "--rl-model-path", SCRIPT): "a file that is no policy",
    ("--policy", "sjf", "--rl-model-path", "x"): "--rl_model_path does nothing with --policy sjf",
    ("--p-min", 5, "--p-max", 2): "--p_min 5 and --p_max 2: want the first to be no more",
    ("--n-min", 3, "--n-max", 2): "--n_min 3 and --n_max 2: want the first to be no more",
    ("--n-max", 3, "--cores", 2): "the host has 2 cores, on which such jobs can never run",
    ("--n-min", 3, "--cores", 2): "the host has 2 cores, on which such jobs can never run",
    ("--p-min", 0): "--p_min 0: want a number from 1",
    ("--p-max", -1): "--p_max -1: want a number from 1",
    ("--p-max", "1.5"): "wanted a whole number",
    ("--generate-jobs", 0): "--generate_jobs 0: want a number from 1",
    ("--speedup", 0): "--speedup 0: want a number",
    ("--speedup", -3): "--speedup -3: want a number",
    ("--speedup", "nan"): "--speedup nan: want a number",
    ("--patience", 0): "--patience 0: want a number",
    ("--run", "../x"): "--run '../x': want letters",
    ("--run", "漢" * 100): "at most 100 bytes",
    ("--window", 0): "--rl_window_size 0: want a number from 1",
    ("--policy", "rl", "--rl-model-path", "/dev/null"): "/dev/null: neither a file nor a folder",
    ("--output-dir", "/proc/nosuch"): "--output-dir /proc/nosuch: No such file or directory, want a folder",
    ("--output-dir", "file"): "--output-dir file: File exists, want a folder",
    ("--rl-simulate", 0): "training needs thousands of jobs",
    ("--batch-job-slice", 3): "does nothing without --workload",
    ("--policy", "rl", "--rl-model-path", "x", "--discipline", "fit"): "a trained policy has its own",
    ("--rl-gamma", 2): "--rl_gamma 2: want a number from 0 to 1",
    ("--backend", "slurmm"): "known: simulated, stress_ng",
    ("--rl-window-size", 7, "--max-queue-size", 8): "two names of one setting",
    ("--polcy", "fifo"): "did you mean --policy?",
}


@pytest.mark.parametrize("words", WRONG, ids=lambda words: " ".join(map(str, words)))
def test_wrong_input_is_answered(call, tmp_path, words):
    """In one message, with status 2, and without a file left behind."""
    (tmp_path / "file").write_text("")
    status, text = call(*words, "--simulate")
    assert status == 2
    assert WRONG[words] in " ".join(text.split())
    assert not [*tmp_path.glob("artifacts/*"), *tmp_path.glob("runs/*")]


def test_flags_that_disagree_with_the_backend(call, monkeypatch):
    """Simulated sleep and real processes; more cores than there are."""
    assert "disagree" in call("--simulate", "--backend", "stress_ng")[1]
    monkeypatch.setattr(orchestrator, "find_backend", lambda *_: ("stress_ng", ""))
    assert "--realtime does nothing with backend stress_ng" in call("--realtime")[1]
    assert "--cores 4096: the host has" in call("--cores", 4096)[1]


def test_metrics_of_others_are_refused(call, tmp_path):
    """A file that is no run's, fields of the wrong kind, a job twice."""
    assert call("--simulate", "--run", "a", "--generate-jobs", 2)[0] == 0
    path = tmp_path / "artifacts" / "metrics_a.jsonl"
    first, second = path.read_text().splitlines()
    for text, said in (
        ("[1]\n", ":1: '[1]', want a JSON object"),
        ('{"job_id": "1"}\n', ":1: no run, session"),
        (f"{first}\n{first}\n", ":2: job 1 has ended in line 1 already"),
        (first.replace('"n": ', '"n": "x", "m": ') + "\n", ":1: n = 'x', want a whole number"),
        (first.replace('"job_id": "1"', '"job_id": "77"') + "\n", "job 77 is none of run a"),
    ):
        path.write_text(text)
        status, told = call("--resume")
        assert status == 2
        assert said in " ".join(told.split()), told
    path.write_text(f"{first}\n{second}\n")
    assert call("--resume")[0] == 0


def test_trainings_that_begin_together_have_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / learning.RUNS).mkdir()
    monkeypatch.setattr(learning.time, "time", lambda: 1e9)
    folders = [learning._fresh_folder() for _ in range(3)]
    assert len(set(folders)) == 3
    assert all(folder.is_dir() for folder in folders)
