"""The agent beside a real Slurm on loopback: `make slurm-test`; not a part of `make test`."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from berth.errors import SchedulerError
from envs.observation import POOL_FEATURES, lookahead_layout
from envs.snapshot import DRAINED
from orchestrator.commands import run_words
from orchestrator.orderer import find_orderer
from orchestrator.slurm import Config, Slurm
from orchestrator.slurm_private import PrivateSlurm, missing
from train.checkpoint import load
from train.export import export, write_exported
from train.forward import JobPolicy, read_exported

pytestmark = [pytest.mark.slurm, pytest.mark.skipif(bool(missing()), reason=f"no private Slurm: {missing()}")]

ROOT = Path(__file__).resolve().parent.parent
WHOLE = 16
"""The GPUs of the cluster: of jobs that ask for all, one runs at a time."""

NO_AGE = {"PriorityWeightAge": "0"}
"""Priorities that stay, so that all of a job can be compared."""


@pytest.fixture
def slurm(monkeypatch, request):
    settings = getattr(request, "param", NO_AGE)
    with PrivateSlurm(settings=settings) as cluster:
        monkeypatch.setenv("SLURM_CONF", str(cluster.conf))
        yield cluster


def until(condition, seconds: float = 90.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def blocked(slurm: PrivateSlurm) -> None:
    """Keep the whole cluster busy until `go` is there."""
    slurm.submit("while [ ! -e go ]; do sleep 0.1; done", gpus=WHOLE, limit="60")
    until(lambda: "R" in slurm.run("squeue", "-h", "-o", "%t"))


def noted(slurm: PrivateSlurm, **asked) -> int:
    """Submit a job that notes its number when it runs."""
    return slurm.submit("echo $SLURM_JOB_ID >> started; sleep 0.2", *asked.pop("flags", ()), **asked)


def started(slurm: PrivateSlurm) -> list[int]:
    file = slurm.folder / "jobs" / "started"
    return [int(word) for word in file.read_text().split()] if file.exists() else []


def go(slurm: PrivateSlurm, count: int) -> list[int]:
    """Let the cluster go, and wait until so many jobs have run; returns who has, in order."""
    (slurm.folder / "jobs" / "go").touch()
    until(lambda: len(started(slurm)) >= count and not slurm.run("squeue", "-h", "-t", "PD,R,CG"))
    return started(slurm)


def agent(tmp_path: Path, **config) -> Slurm:
    told = {"mode": "apply", "policy": "sjf", "partition": ("gpu",), "log": str(tmp_path / "log.jsonl"), **config}
    return Slurm(Config(**told), warn=lambda text: None)


def pending(slurm: PrivateSlurm) -> dict[int, dict]:
    """All that Slurm tells of pending jobs but when it has looked at them, and their site factors."""
    rows = json.loads(slurm.run("squeue", "--json"))["jobs"]
    moving = ("last_sched_evaluation", "state_reason", "start_time", "end_time", "state_description", "accrue_time")
    found = {
        row["job_id"]: {key: value for key, value in row.items() if key not in moving}
        for row in rows
        if row["job_state"] == "PENDING"
    }
    for line in slurm.run("sprio", "-h", "-o", "%i|%S").split():
        number, _, site = line.partition("|")
        if int(number) in found:
            found[int(number)]["site"] = int(site)
    return found


def loop(tmp_path: Path, *flags: str, path: str = "") -> subprocess.Popen:
    """The program itself, round after round."""
    words = [sys.executable, str(ROOT / "orchestrator/slurm.py"), "--mode", "apply", "--policy", "sjf", "--partition",
             "gpu", "--interval", "0.3", "--log", str(tmp_path / "log.jsonl"), *flags]  # fmt: skip
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PATH": f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"],
    }
    return subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def small_policy(tmp_path: Path) -> Path:
    """A trained policy, made to see four nodes of four GPUs."""
    from envs.sim.cluster import Pool, node_arrays

    told, weights = export(load(ROOT / "models/philly/hidden.npz"))
    looks = lookahead_layout(node_arrays((Pool("gpu", ((4, 4),)),)))
    cluster = len(looks) * len(POOL_FEATURES) + int(looks["count"].sum())
    weights["context/kernel"] = np.zeros((cluster, weights["context/bias"].size), np.float32)
    pools = [[int(at), int(count)] for at, count in zip(looks["at"], looks["count"], strict=True)]
    told |= {"cluster": cluster, "pool_gpus": looks["gpus"].tolist(), "pools": pools}
    write_exported(tmp_path / "policy.npz", told, weights)
    return tmp_path / "policy.npz"


@pytest.mark.parametrize("means", ["site", "priority"])
def test_what_the_policy_wants_is_what_slurm_executes(slurm, tmp_path, means):
    blocked(slurm)
    jobs = {noted(slurm, gpus=WHOLE, limit=str(minutes)): minutes for minutes in (7, 3, 9, 1, 5, 2, 8)}
    acting = agent(tmp_path, means=means)
    assert len(acting.round()) > 0
    assert acting.round() == []  # the same again changes nothing
    assert go(slurm, len(jobs)) == sorted(jobs, key=jobs.get)


def test_a_trained_policy_orders_what_slurm_executes(slurm, tmp_path):
    users = ("games", "man", "mail")
    for i in range(6):
        slurm.submit(f"sleep {1 + 2 * (i % 2)}", f"--uid={users[i % 2]}", gpus=4)
    until(lambda: not slurm.run("squeue", "-h", "-t", "PD,R,CG"))
    (slurm.folder / "jobs" / "started").touch()
    (slurm.folder / "jobs" / "started").chmod(0o666)
    blocked(slurm)
    jobs = [noted(slurm, gpus=WHOLE, flags=(f"--uid={users[i % 3]}",)) for i in range(6)]
    acting = agent(tmp_path, policy=str(small_policy(tmp_path)))
    state = acting.reader.state()
    queued = acting.queued(state)
    view = acting.view(state, queued)
    wanted = [queued[i].id for i in acting.orderer.plan(view, acting.expected(view), 100, 60.0).order]
    assert len(state.ended) >= 6
    assert sorted(wanted) == jobs
    acting.round()
    assert go(slurm, 6) == wanted


def test_held_jobs_are_let_go_in_order_and_others_stay_held(slurm, tmp_path):
    mine = {noted(slurm, gpus=WHOLE, limit=str(m), flags=("-H", "--comment=berth")): m for m in (5, 2, 9, 1)}
    kept = noted(slurm, gpus=1, flags=("-H",))
    acting = agent(tmp_path, means="hold", released=1)
    end = time.monotonic() + 60
    while len(started(slurm)) < 4 and time.monotonic() < end:
        acting.round()
        time.sleep(0.2)
    assert started(slurm) == sorted(mine, key=mine.get)
    assert pending(slurm)[kept]["priority"] == 0


@pytest.mark.parametrize("means", ["site", "priority", "hold"])
def test_undo_leaves_no_trace(slurm, tmp_path, means):
    blocked(slurm)
    held = ("-H", "--comment=berth") if means == "hold" else ()
    for minutes in (5, 2, 9, 1):
        noted(slurm, gpus=4, limit=str(minutes), flags=("--nice=3", *held) if minutes == 9 else held)
    noted(slurm, gpus=4, limit="4", flags=("--array=1-3", *held))
    time.sleep(1.5)
    before = pending(slurm)
    acting = agent(tmp_path, means=means)
    acting.round()
    assert pending(slurm) != before
    assert len(agent(tmp_path, undo=True).undo()) > 0
    after = pending(slurm)
    different = {(job, key): (before[job][key], after[job].get(key)) for job in before for key in before[job]
                 if before[job][key] != after[job].get(key)}  # fmt: skip
    if means == "hold":  # Slurm notes when a job has first been eligible, and keeps the note
        different = {key: values for key, values in different.items() if key[1] != "eligible_time"}
    assert different == {}
    assert set(after) == set(before)
    assert agent(tmp_path, undo=True).undo() == []
    if means == "hold":
        told = slurm.run("squeue", "-h", "-t", "PD", "-o", "%r").split()
        assert set(told) == {"JobHeldUser"}  # their users may let them go
        slurm.run("scontrol", "release", *(str(job) for job in before))
    assert sorted(set(go(slurm, 7))) == sorted(started(slurm))  # nobody twice
    assert len(started(slurm)) == 7


def test_shadow_and_advise_change_nothing_and_need_no_rights(slurm, tmp_path, capsys):
    blocked(slurm)
    for minutes in (5, 2, 9):
        noted(slurm, gpus=WHOLE, limit=str(minutes))
    before = pending(slurm)
    calls = []

    def as_nobody(*words):
        calls.append(words)
        return run_words(("setpriv", "--reuid=nobody", "--clear-groups", "--", *words), 20.0, {}, "it", "?")

    for mode in ("shadow", "advise"):
        told = Config(mode=mode, policy="sjf", partition=("gpu",), log=str(tmp_path / f"{mode}.jsonl"))
        moves = Slurm(told, command=as_nobody, warn=lambda text: None).round()
        assert [move.words[:2] for move in moves] == [("scontrol", "update")] * len(moves)
        assert moves
    assert pending(slurm) == before
    assert not any(words[:2] == ("scontrol", "update") for words in calls)
    apply = Config(mode="apply", policy="sjf", partition=("gpu",), log=str(tmp_path / "apply.jsonl"))
    with pytest.raises(SchedulerError, match=r"(permission denied|Invalid user id).*adminlevel=Operator"):
        Slurm(apply, command=as_nobody, warn=lambda text: None).round()
    assert pending(slurm) == before


def test_an_owner_needs_no_rights_to_have_held_jobs_let_go(slurm, tmp_path):
    (slurm.folder / "jobs" / "started").touch()
    (slurm.folder / "jobs" / "started").chmod(0o666)
    job = noted(slurm, gpus=1, flags=("-H", "--comment=berth"), user="nobody")
    other = noted(slurm, gpus=1, flags=("-H", "--comment=berth"))

    def as_nobody(*words):
        return run_words(("setpriv", "--reuid=nobody", "--clear-groups", "--", *words), 20.0, {}, "it", "?")

    told = Config(mode="apply", means="hold", partition=("gpu",), user=("nobody",), log=str(tmp_path / "log.jsonl"))
    Slurm(told, command=as_nobody, warn=lambda text: None).round()
    until(lambda: started(slurm) == [job])
    assert pending(slurm)[other]["priority"] == 0


def test_only_jobs_of_the_partition_and_the_account_are_touched(slurm, tmp_path):
    blocked(slurm)
    ours = [noted(slurm, gpus=4, limit=str(m), flags=("-A", "red")) for m in (9, 3, 1)]
    others = [
        noted(slurm, gpus=4, flags=("-A", "blue")), noted(slurm, gpus=4, flags=("-p", "other", "-A", "red")),
        noted(slurm, gpus=4, flags=("-p", "gpu,other", "-A", "red")), noted(slurm, gpus=4, flags=("-H", "-A", "red")),
    ]  # fmt: skip
    before = pending(slurm)
    agent(tmp_path, account=("red",)).round()
    assert pending(slurm) == before  # equal priorities: nobody can be put first without passing blue
    agent(tmp_path, account=("red",), overtake=True).round()
    after = pending(slurm)
    assert {job for job in after if after[job] != before[job]} <= set(ours)
    assert after[ours[2]]["priority"] > after[ours[1]]["priority"] > after[ours[0]]["priority"]
    assert all(after[job] == before[job] for job in others)


def test_the_controller_is_restarted_in_the_middle(slurm, tmp_path):
    blocked(slurm)
    first = {noted(slurm, gpus=WHOLE, limit=str(m)): m for m in (8, 2, 6)}
    process = loop(tmp_path, "--timeout", "2")
    try:
        until(lambda: any(job.get("site") for job in pending(slurm).values()))
        slurm.stop_controller()
        time.sleep(4.0)
        slurm.start_controller()
        second = {noted(slurm, gpus=WHOLE, limit=str(m)): m for m in (7, 1)}
        jobs = first | second

        def ordered():
            told = pending(slurm)
            return sorted(told, key=lambda job: (-told[job]["priority"], job)) == sorted(jobs, key=jobs.get)

        until(ordered)
        assert go(slurm, 5) == sorted(jobs, key=jobs.get)
    finally:
        process.kill()
        told = process.communicate()[0]
    assert "Slurm goes on by itself" in told


def test_the_agent_is_killed_in_the_middle(slurm, tmp_path):
    slow = tmp_path / "bin"
    slow.mkdir()
    real = subprocess.run(["which", "scontrol"], capture_output=True, text=True, check=True).stdout.strip()
    (slow / "scontrol").write_text(f'#!/bin/sh\n[ "$1" = update ] && sleep 0.3\nexec {real} "$@"\n')
    (slow / "scontrol").chmod((slow / "scontrol").stat().st_mode | stat.S_IEXEC)
    blocked(slurm)
    jobs = {noted(slurm, gpus=WHOLE, limit=str(m)): m for m in (9, 8, 7, 6, 5, 4, 3, 2, 1)}
    before = pending(slurm)
    process = loop(tmp_path, path=str(slow))
    until(lambda: sum(bool(job.get("site")) for job in pending(slurm).values()) >= 2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    time.sleep(0.6)  # a command of it may still be under way
    half = [job for job in pending(slurm).values() if job.get("site")]
    assert 2 <= len(half) < 8
    agent(tmp_path, undo=True).undo()
    assert pending(slurm) == before  # the log knew of all that was sent
    process = loop(tmp_path)
    try:
        until(lambda: sum(bool(job.get("site")) for job in pending(slurm).values()) == 8)
        assert go(slurm, 9) == sorted(jobs, key=jobs.get)
    finally:
        process.kill()
        process.communicate()


def test_a_node_is_drained(slurm, tmp_path):
    slurm.run("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=test")
    jobs = [noted(slurm, gpus=4, limit=str(1 + i % 3)) for i in range(9)]
    acting = agent(tmp_path, nodes=True)
    state = acting.reader.state()
    view = acting.view(state, acting.queued(state))
    assert [name for name, told in zip(view.node_name, view.node_state, strict=True) if told == DRAINED] == ["n2"]
    assert view.free[1] == 0
    end = time.monotonic() + 60
    while len(started(slurm)) < 9 and time.monotonic() < end:
        acting.round()
        time.sleep(0.2)
    assert sorted(started(slurm)) == jobs
    rows = json.loads(slurm.run("squeue", "--json", "-t", "all"))["jobs"]
    assert "n2" not in {row["nodes"] for row in rows}


def test_jobs_are_cancelled_by_their_user_while_the_agent_decides(slurm, tmp_path):
    blocked(slurm)
    (slurm.folder / "jobs" / "started").touch()
    (slurm.folder / "jobs" / "started").chmod(0o666)
    jobs = [noted(slurm, gpus=WHOLE, limit=str(9 - i), user="nobody") for i in range(6)]
    (tmp_path / "rule.py").write_text(
        "import subprocess\n"
        "def hesitant(view):\n"
        f"    subprocess.run(['scancel', '{jobs[5]}', '{jobs[2]}'], user='nobody', check=True)\n"
        "    return view.run_time\n"
    )
    warned = []
    acting = agent(tmp_path, policy=f"{tmp_path}/rule.py:hesitant")
    acting.warn = acting.actor.warn = warned.append
    acting.round()
    left = [job for i, job in enumerate(jobs) if i not in (2, 5)]
    assert go(slurm, 4) == left[::-1]
    results = {entry["job"]: entry["result"] for entry in acting.audit.entries()}
    assert {results[jobs[2]], results[jobs[5]]} <= {"gone", "ok"}  # Slurm lets one change a job that has just ended


def test_an_array_a_dependency_and_jobs_of_several_nodes(slurm, tmp_path):
    blocked(slurm)
    wide = noted(slurm, gpus=8, limit="4")
    array = noted(slurm, gpus=4, limit="2", flags=("--array=1-4",))
    short = noted(slurm, gpus=WHOLE, limit="1")
    after = noted(slurm, gpus=1, limit="1", flags=(f"--dependency=afterok:{wide}",))
    acting = agent(tmp_path)
    assert after not in {move.job.id for move in acting.round()}
    told = pending(slurm)
    assert told[short]["priority"] > told[array]["priority"] > told[wide]["priority"] >= told[after]["priority"]
    (slurm.folder / "jobs" / "go").touch()
    end = time.monotonic() + 60
    while len(started(slurm)) < 7 and time.monotonic() < end:
        acting.round()
        time.sleep(0.3)
    ran = go(slurm, 7)
    assert len(ran) == len(set(ran)) == 7
    assert ran[0] == short
    assert ran.index(wide) < ran.index(after)
    undone = agent(tmp_path, undo=True).undo()
    assert undone == []


def test_a_policy_that_fails_leaves_the_queue_to_slurm(slurm, tmp_path):
    blocked(slurm)
    jobs = [noted(slurm, gpus=WHOLE, limit=str(m)) for m in (3, 1, 2)]
    before = pending(slurm)
    (tmp_path / "rule.py").write_text(
        "import numpy as np\n"
        "def raises(view):\n    raise RuntimeError('no idea')\n"
        "def nan(view):\n    return np.full(len(view.job), np.nan)\n"
        "def shapeless(view):\n    return [[]]\n"
        "def exits(view):\n    raise SystemExit(0)\n"
    )
    for name, said in (
        ("raises", "no idea"),
        ("nan", "NaN"),
        ("shapeless", "decides nothing"),
        ("exits", "SystemExit"),
    ):
        with pytest.raises(SchedulerError, match=said):
            agent(tmp_path, policy=f"{tmp_path}/rule.py:{name}").round()
    file = small_policy(tmp_path)
    useless = read_exported(file)
    for array in useless.weights.values():
        array[:] = np.nan
    orderer = find_orderer(str(file))
    orderer.decider.policy = JobPolicy(useless)
    broken = Slurm(Config(mode="apply", partition=("gpu",), log=str(tmp_path / "l.jsonl")), orderer=orderer, warn=print)
    with pytest.raises(SchedulerError, match="NaN"):
        broken.round()
    process = loop(tmp_path, "--policy", f"{tmp_path}/rule.py:raises")
    log = tmp_path / "log.jsonl"
    until(lambda: log.exists() and "no idea" in log.read_text())
    assert process.poll() is None  # it goes on, and tries again
    assert pending(slurm) == before
    assert go(slurm, 3) == jobs
    process.kill()
    process.communicate()


def test_a_thousand_pending_jobs_are_handled_quickly(slurm, tmp_path):
    blocked(slurm)
    rng = np.random.default_rng(0)
    limits = rng.integers(1, 60, 1000)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda limit: slurm.submit("true", gpus=4, limit=str(limit)), limits))
    acting = agent(tmp_path)
    acting.round()
    took = []
    for _ in range(3):
        begun = time.monotonic()
        acting.round()
        took.append(time.monotonic() - begun)
    print(f"\n1,000 pending jobs, up to 50 changes: a round takes {min(took):.2f} s")
    assert min(took) < 5.0  # on a busy machine; benchmarks/slurm_study.py tells the figure
    assert acting.round() == []
    told = [job for job in pending(slurm).values() if job["priority"] > 1]
    assert len(told) >= 99
    slurm.run("scancel", "--state=PENDING", "-u", "root")


def program(name: str, *words: str) -> subprocess.CompletedProcess:
    """One of the programs, run to its end."""
    done = [sys.executable, str(ROOT / "orchestrator" / name), *words]
    return subprocess.run(done, capture_output=True, text=True, check=False, timeout=300)


def test_undo_by_the_command_that_is_told_of_puts_back_twice_and_after_jobs_have_ended(slurm, tmp_path):
    blocked(slurm)
    jobs = [noted(slurm, gpus=WHOLE, limit=str(m)) for m in (9, 5, 2)]
    before, log = pending(slurm), str(tmp_path / "log.jsonl")
    words = ("--policy", "sjf", "--partition", "gpu", "--log", log)
    assert program("slurm.py", *words, "--mode", "apply", "--once").returncode == 0
    assert pending(slurm) != before
    shown = program("slurm.py", "--undo", "--log", log, "--mode", "shadow")
    assert "would send" in shown.stdout
    assert pending(slurm) != before
    for said in ("sent: scontrol update", "nothing to undo"):  # twice does no harm
        done = program("slurm.py", "--undo", "--log", log)
        assert (done.returncode, said in done.stdout) == (0, True), done.stderr
        assert pending(slurm) == before
    assert program("slurm.py", *words, "--mode", "apply", "--once").returncode == 0
    assert go(slurm, 3) == jobs[::-1]
    until(lambda: not slurm.run("squeue", "-h", "-t", "PD,R,CG"))
    done = program("slurm.py", "--undo", "--log", log)
    assert (done.returncode, "nothing to undo" in done.stdout) == (0, True), done.stderr


def test_a_second_agent_on_the_same_log_is_turned_away(slurm, tmp_path):
    blocked(slurm)
    noted(slurm, gpus=WHOLE, limit="5")
    process = loop(tmp_path)
    try:
        log = tmp_path / "log.jsonl"
        until(log.exists)
        until(lambda: "another agent" in program("slurm.py", "--undo", "--log", str(log)).stderr)
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


def test_slurm_does_not_wait_for_a_policy_that_takes_long(slurm, tmp_path):
    blocked(slurm)
    jobs = [noted(slurm, gpus=WHOLE, limit=str(m)) for m in (3, 1, 2)]
    (tmp_path / "rule.py").write_text(
        "import pathlib, time\n"
        "def slow(view):\n"
        f"    pathlib.Path('{tmp_path}/asked').touch()\n    time.sleep(600)\n    return view.run_time\n"
    )
    process = loop(tmp_path, "--policy", f"{tmp_path}/rule.py:slow")
    try:
        until((tmp_path / "asked").exists)
        assert go(slurm, 3) == jobs
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


def test_how_long_jobs_of_the_live_queue_will_wait(slurm, tmp_path):
    for _ in range(4):
        slurm.submit("sleep 1", gpus=4, limit="1")
    until(lambda: not slurm.run("squeue", "-h", "-t", "PD,R,CG"))
    blocked(slurm)
    jobs = [noted(slurm, gpus=WHOLE, limit=str(m)) for m in (9, 5, 2)]
    before = pending(slurm)
    words = ("--partition", "gpu", "--against", "sjf", "--draws", "40", "--csv", str(tmp_path / "starts.csv"))
    done = program("whatif.py", *words)
    assert done.returncode == 0, done.stderr
    rows = [line.split(",") for line in (tmp_path / "starts.csv").read_text().splitlines()]
    assert rows[0][2:] == [f"{word}: {column}" for word in ("slurm", "sjf") for column in ("from", "median", "to")]
    told = {int(row[0]): [float(value) for value in row[2:]] for row in rows[1:]}
    assert sorted(told) == sorted(jobs)
    assert sorted(jobs, key=lambda job: told[job][1]) == jobs  # as Slurm would
    assert sorted(jobs, key=lambda job: told[job][4]) == jobs[::-1]
    assert all(low <= middle <= high for row in told.values() for low, middle, high in (row[:3], row[3:]))
    assert pending(slurm) == before
