"""The agent for Slurm without a Slurm: what recorded output says, who is ordered how, what is sent."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from numba.core import event

from berth.errors import ConfigError, SchedulerError
from envs import wire
from envs.options import Options
from envs.recalling import Kin, predicted, recall
from envs.snapshot import DRAINED, UP
from envs.stage import set_stage
from orchestrator import experience, slurm, slurm_json, whatif
from orchestrator.audit import Audit
from orchestrator.commands import Answer
from orchestrator.orderer import find_orderer
from orchestrator.rounds import compiling_told
from orchestrator.slurm import Config, Slurm
from orchestrator.slurm_reading import Reader
from orchestrator.slurm_state import Job, Node, State, is_ready, snapshot_of
from tests.conftest import make_trace, make_workload

RECORDED = Path(__file__).parent / "recorded" / "slurm"
NOW = 1794986166.0


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


def read(counted: str = "gpus") -> dict[int, Job]:
    skipped: list[str] = []
    jobs = slurm_json.jobs(recorded("squeue.json"), counted, skipped)
    assert skipped == []
    return {job.id: job for job in jobs}


class Recorded:
    """Answers as Slurm did, and remembers what was asked of it; `changed` jobs get other values."""

    def __init__(self, squeue: str = "", refuse: str = "", sprio: str | None = None) -> None:
        self.squeue, self.refuse = squeue or recorded("squeue.json"), refuse
        self.sprio = recorded("sprio.txt") if sprio is None else sprio
        self.sent: list[tuple[str, ...]] = []

    def __call__(self, *words: str) -> Answer:
        out = {
            ("squeue", "--json"): self.squeue, ("sinfo", "--json"): recorded("sinfo.json"),
            ("scontrol", "show", "config"): recorded("config.txt"),
            ("sprio", "-h", "-o", "%i|%S"): self.sprio,
        }.get(words)  # fmt: skip
        if out is not None:
            return Answer(words, 0, out, "")
        self.sent.append(words)
        return Answer(words, 1 if self.refuse else 0, "", self.refuse)


def agent(tmp_path, command, **config) -> Slurm:
    told = {"mode": "apply", "policy": "sjf", "partition": ("gpu",), "log": str(tmp_path / "log.jsonl"), **config}
    told.setdefault("accounting", "squeue")
    return Slurm(Config(**told), command=command, warn=lambda text: None)


def test_jobs_are_read_as_slurm_told_them():
    jobs = read()
    assert {job.id: job.gpus for job in jobs.values()} == {
        2: 16, 5: 4, 28: 12, 29: 1, 30: 8, 31: 4, 32: 1, 33: 2, 34: 4, 35: 0, 36: 4,
    }  # fmt: skip
    assert jobs[28].places == (("n1", 3), ("n2", 3), ("n3", 3), ("n4", 3))
    assert (jobs[31].word, jobs[31].array, jobs[5].word) == ("31_[1-4]", 31, "4_1")
    assert (jobs[34].partitions, jobs[34].nice, jobs[34].limit) == (("gpu", "other"), 7, 1800.0)
    assert (jobs[2].state, jobs[2].end - jobs[2].start) == ("TIMEOUT", 83.0)
    ready = [job.id for job in jobs.values() if job.state == "PENDING" and is_ready(job, NOW)]
    assert ready == [30, 31, 34]  # not: a dependency, held, later


def test_nodes_are_read_as_slurm_told_them():
    nodes = slurm_json.nodes(recorded("sinfo.json"), "gpus", [])
    assert [(node.name, node.state, node.gpus, node.used) for node in nodes] == [
        ("n1", UP, 4, 4), ("n2", UP, 4, 3), ("n3", UP, 4, 3), ("n4", DRAINED, 4, 3),
    ]  # fmt: skip


def test_newer_slurms_tell_numbers_and_states_in_another_way():
    told = json.loads(recorded("squeue.json"))
    for row in told["jobs"]:
        row["job_state"] = [row["job_state"]]
        for name in ("priority", "time_limit", "array_job_id", "array_task_id", "start_time", "node_count"):
            known = row[name] is not None
            row[name] = {"set": known, "infinite": False, "number": row[name] or 0}
    skipped: list[str] = []
    newer = {job.id: job for job in slurm_json.jobs(json.dumps(told), "gpus", skipped)}
    assert skipped == []
    assert repr(newer) == repr(read())


GPUS = {
    "gpu:v100:4(IDX:0-3)": 4, "gres:gpu:2": 2, "gpu:v100:4,gpu:a100:2(S:0-1)": 6, "gpu": 1, "gpu:v100": 1,
    "gres/gpu:2": 2, "": 0, "gpu:(null):4(IDX:0,2-3)": 4, "gpu:2,shard:5": 2, "gpu:v100:0(IDX:N/A)": 0, "mps:3": 0,
}  # fmt: skip


@pytest.mark.parametrize("words", GPUS)
def test_gpus_of_a_list(words):
    assert slurm_json.gpus_of(words) == GPUS[words]


def test_nodes_of_a_short_list():
    assert slurm_json.expanded("n[1-3,07],m2") == ["n1", "n2", "n3", "n07", "m2"]
    assert slurm_json.expanded("") == []
    with pytest.raises(ValueError, match="no list of nodes"):
        slurm_json.expanded("n[1-x]")


@pytest.mark.parametrize("text", ["", "squeue: error: x", "[]", '{"jobs": 5}', '{"nodes": []}', "[" * 100_000])
def test_what_is_no_answer_is_an_error(text):
    with pytest.raises(SchedulerError, match=r"Slurm.s JSON"):
        slurm_json.jobs(text, "gpus", [])


def test_a_row_that_cannot_be_read_is_named_and_passed_over():
    told = json.loads(recorded("squeue.json"))
    told["jobs"][0]["job_state"], told["jobs"][1] = None, "x"
    told["jobs"][2]["nodes"] = "n[1-"
    del told["jobs"][3]["submit_time"]
    skipped: list[str] = []
    jobs = slurm_json.jobs(json.dumps(told), "gpus", skipped)
    assert len(jobs) + len(skipped) == len(told["jobs"])
    assert len(skipped) >= 2


def test_the_snapshot_is_one_that_the_wire_takes():
    state = Reader(Recorded(), lambda text: None, accounting="squeue").state()
    queued = [job for job in state.pending if is_ready(job, state.now)]
    view = snapshot_of(state, queued, ["gpu"])
    again = wire.read(wire.write(view))
    assert again.job.tolist() == [30, 31, 34]
    assert again.gpus.tolist() == [8, 4, 4]
    assert again.run_time.tolist() == [600.0, 120.0, 1800.0]
    assert again.free.tolist() == [0, 1, 1, 0]  # n4 is drained
    assert again.running_gpus.tolist() == [12, 1]  # who runs without a GPU is left out
    assert again.place_gpus.tolist() == [3, 3, 3, 3, 1]


def test_what_ended_jobs_tell_is_what_the_simulator_tells():
    rng = np.random.default_rng(1)
    count = 120
    users, vcs = ([str(rng.integers(4)) for _ in range(count)] for _ in range(2))
    trace = make_trace(
        np.sort(rng.integers(0, 400, count)),
        rng.integers(1, 60, count),
        rng.choice([1, 2, 4], count),
        user=users,
        vc=vcs,
    )
    stage = set_stage(make_workload(trace, [4, 4]), Options(runtime_info="predicted"))
    trace = stage.workload.trace
    kin = Kin(trace.user, trace.vc, trace.gpus)
    ended, late = np.arange(0, count), np.arange(0, count)[::-1]  # in any order
    told = recall(
        Kin(*(column[ended] for column in kin)), stage.roster["end"], trace.run_time,
        Kin(*(column[late] for column in kin)), trace.submit[late],
    )  # fmt: skip
    assert np.array_equal(told.history[::-1], stage.history)
    assert np.array_equal(told.run_time[::-1], stage.roster["estimate"])
    assert np.allclose(predicted(told.history), told.run_time, rtol=1e-3)


def busy(count: int = 6) -> State:
    jobs = [
        Job(i + 1, str(i + 1), "u", "", ("gpu",), "PENDING", 100.0 + i, 1 + i % 3, eligible=100.0,
            limit=60.0 * (count - i), priority=10)
        for i in range(count)
    ]  # fmt: skip
    nodes = (Node("n1", ("gpu",), UP, 4, 4), Node("n2", ("gpu",), UP, 4, 0))
    runs = Job(99, "99", "v", "", ("gpu",), "RUNNING", 50.0, 4, start=60.0, limit=100.0, places=(("n1", 4),))
    old = Job(98, "98", "u", "", ("gpu",), "COMPLETED", 1.0, 1, start=2.0, end=32.0)
    return State(200.0, tuple(jobs), (runs,), (old,), nodes)


def test_run_times_are_limits_or_what_ended_jobs_tell():
    state = busy(3)
    assert snapshot_of(state, state.pending).run_time.tolist() == [180.0, 120.0, 60.0]
    assert snapshot_of(state, state.pending, info="predicted").run_time.tolist() == [30.0, 30.0, 30.0]
    assert np.isnan(snapshot_of(state, state.pending, info="hidden").run_time).all()
    free = [job._replace(limit=math.nan) for job in state.pending]
    assert snapshot_of(state, free, assumed=7.0).run_time.tolist() == [7.0, 7.0, 7.0]
    assert snapshot_of(state, free).run_time.tolist() == [30.0, 30.0, 30.0]


def test_who_decides_job_by_job_is_asked_until_the_order_is_known():
    state = busy()
    view = snapshot_of(state, state.pending, ["gpu"])
    orderer = find_orderer("sjf", nodes=True)
    plan = orderer.plan(view, view.run_time, 100, 60.0)
    assert plan.order.tolist() == [5, 4, 3, 2, 1, 0]
    assert plan.starts == {5: ("n2",), 3: ("n2",)}  # 3 + 1 GPUs; 2 more do not fit
    decided = orderer._replace(word="").plan(view, view.run_time, 100, 60.0)
    assert sorted(decided.order.tolist()) == list(range(6))
    assert decided.order[:2].tolist() == [5, 3]  # in the order in which they could start
    short = orderer._replace(word="").plan(view, view.run_time, 1, 60.0)
    assert short.order.tolist() == [5, 0, 1, 2, 3, 4]


def test_the_order_is_sent_and_logged_before(tmp_path):
    command = Recorded()
    acting = agent(tmp_path, command, overtake=True)
    moves = acting.round()
    assert [move.job.id for move in moves] == [31]
    assert [words[:3] for words in command.sent] == [("scontrol", "update", "JobId=31_[1-4]")]
    entries = acting.audit.entries()
    assert [entry["result"] for entry in entries] == ["sending", "ok"]
    for name in ("when", "job", "from", "to", "why"):
        assert name in entries[0]


@pytest.mark.parametrize("mode", ["shadow", "advise"])
def test_nothing_is_sent_in_shadow_and_the_same_plan_is_logged_once(tmp_path, mode):
    command = Recorded()
    acting = agent(tmp_path, command, mode=mode, overtake=True)
    assert acting.round()
    assert acting.round()
    assert command.sent == []
    assert [entry["result"] for entry in acting.audit.entries()] == ["not sent"]


def test_changes_are_bounded_and_few_in_a_round(tmp_path):
    told = json.loads(recorded("squeue.json"))
    row = next(row for row in told["jobs"] if row["job_id"] == 30)
    told["jobs"] = [{**row, "job_id": 100 + i, "time_limit": 50 - i} for i in range(40)]
    command = Recorded(json.dumps(told), sprio="".join(f"{100 + i}|0\n" for i in range(40)))
    moves = agent(tmp_path, command, changes=7, most=500).round()
    assert len(moves) == len(command.sent) == 7
    assert all(abs(move.after) <= 500 for move in moves)
    assert [move.job.id for move in moves] == [139 - i for i in range(7)]  # the front of the order first


def test_a_refusal_says_which_rights_are_wanted(tmp_path):
    acting = agent(tmp_path, Recorded(refuse="Access/permission denied for job 31"), overtake=True)
    with pytest.raises(SchedulerError, match="adminlevel=Operator"):
        acting.round()
    assert [entry["result"] for entry in acting.audit.entries()] == ["sending", "refused"]


def test_jobs_that_end_in_between_are_passed_over(tmp_path):
    acting = agent(tmp_path, Recorded(refuse="Invalid job id specified for job 31"), overtake=True)
    assert acting.round() == []
    assert acting.audit.entries()[-1]["result"] == "gone"


def test_others_are_not_passed_unless_that_is_allowed(tmp_path):
    command = Recorded()
    agent(tmp_path, command, account=("red",)).round()  # 34 is in another partition as well, and waits behind
    assert command.sent == []


BAD = {
    "apply without a partition": {"mode": "apply", "partition": ()},
    "a policy that is not known": {"policy": "sjff"},
    "a file that is no policy": {"policy": "README.npz"},
    "no head": {"head": 0},
    "too far": {"most": 3_000_000_000},
    "no time": {"interval": 0.0},
    "longer than can be waited": {"interval": 1e300},
    "a command without an end": {"timeout": 1e300},
    "a seed below 0": {"seed": -1},
    "nodes and hold": {"nodes": True, "means": "hold"},
    "a log of another kind": {"log": "log.txt"},
    "no file": {"completed": "/nowhere"},
    "a snapshot of another kind": {"snapshot": "x.txt"},
}


@pytest.mark.parametrize("name", BAD)
def test_options_that_cannot_be_meant(tmp_path, name):
    with pytest.raises(ConfigError, match=r"want|known|leave|writes them"):
        agent(tmp_path, Recorded(), **BAD[name])


def test_a_partition_that_is_not_there(tmp_path):
    with pytest.raises(SchedulerError, match="want one of gpu, other"):
        agent(tmp_path, Recorded(), partition=("gpus",)).round()


def test_undo_wants_a_log(tmp_path):
    with pytest.raises(ConfigError, match="tells of nothing"):
        agent(tmp_path, Recorded(), undo=True).undo()


def test_ended_jobs_are_read_from_the_file_of_completed_ones(tmp_path):
    line = (
        "JobId={} UserId=games(5) GroupId=games(60) Name=a b=c JobState=COMPLETED Partition=gpu TimeLimit=1 "
        "StartTime=2026-11-18T07:02:29 EndTime=2026-11-18T07:02:34 NodeList=n1 NodeCnt=1 ProcCnt=3 WorkDir=/tmp "
        "ReservationName= Tres=cpu=3,mem=10M,node=1,billing=1,gres/gpu=2 Account=red QOS= WcKey= Cluster=unknown "
        "SubmitTime=2026-11-18T07:02:20 EligibleTime=2026-11-18T07:02:29 DerivedExitCode=0:0 ExitCode=0:0 \n"
    )
    file = tmp_path / "jobcomp.txt"
    file.write_text(line.format(701) + "nonsense\n" + line.format(702)[:40])
    reader = Reader(Recorded(), lambda text: None, accounting="jobcomp", completed=str(file))
    ended = {job.id: job for job in reader.state().ended}
    assert (ended[701].user, ended[701].account, ended[701].gpus) == ("games", "red", 2)
    assert ended[701].end - ended[701].start == 5.0
    assert 702 not in ended  # it is still being written
    with file.open("a") as more:
        more.write(line.format(702)[40:])
    assert 702 in {job.id for job in reader.state().ended}


def test_nodes_and_jobs_that_were_read_a_moment_apart_make_a_sound_snapshot():
    state = busy(3)
    nodes = (state.nodes[0]._replace(used=0), state.nodes[1])  # read before 99 has started on n1
    view = snapshot_of(state._replace(nodes=nodes), state.pending)
    assert view.free.tolist() == [0, 4]
    again = wire.read(wire.write(view))
    decided = find_orderer("sjf", nodes=True)._replace(word="").plan(again, again.run_time, 100, 60.0)
    assert sorted(decided.order.tolist()) == [0, 1, 2]


def test_two_agents_do_not_act_by_one_log(tmp_path):
    first, second = (agent(tmp_path, Recorded()).audit for _ in range(2))
    with first.alone(), pytest.raises(ConfigError, match="another agent"), second.alone():
        pass
    with second.alone():
        pass


def test_ended_jobs_are_read_as_the_accounting_told_them():
    skipped: list[str] = []
    ended = slurm_json.ended(recorded("sacct.json"), "gpus", skipped)
    assert skipped == []
    assert {job.limit for job in ended} == {60.0}
    assert [(job.id, job.user, job.account, job.gpus, job.end - job.start) for job in ended] == [
        (1, "games", "red", 2, 1.0), (2, "games", "red", 4, 2.0), (3, "games", "red", 8, 3.0),
        (4, "games", "red", 1, 1.0), (5, "games", "red", 1, 1.0),
    ]  # fmt: skip


def test_a_forecast_goes_by_the_run_times_that_the_agent_goes_by(tmp_path, monkeypatch):
    monkeypatch.setattr(whatif, "Commands", lambda timeout: Recorded())
    for info in ("", "predicted"):
        acting = agent(tmp_path, Recorded(), runtime_info=info)
        state = acting.reader.state()
        queue = whatif.of_slurm(whatif.Config(partition=("gpu",), runtime_info=info))
        shown = dict(zip(queue.view.job.tolist(), queue.view.run_time.tolist(), strict=True))
        seen = acting.view(state, acting.queued(state))
        for job, run_time in zip(seen.job.tolist(), seen.run_time.tolist(), strict=True):
            assert shown[job] == pytest.approx(run_time), info
        assert queue.seen("request").run_time.tolist() == [600.0, 120.0, 1800.0]
    came = state._replace(ended=(busy().ended[0]._replace(limit=90.0, gpus=1),))
    past = experience.placed(experience.ended_jobs(came, queue.view.now), queue.view)
    assert experience.coming_of(past, "request").estimate.tolist() == [90.0]
    assert experience.coming_of(past, "predicted").estimate.tolist() == [30.0]


def test_a_forecast_names_the_partitions_that_are_there(monkeypatch):
    monkeypatch.setattr(whatif, "Commands", lambda timeout: Recorded())
    with pytest.raises(SchedulerError, match=r"--partition nope: .* want one of gpu, other"):
        whatif.of_slurm(whatif.Config(partition=("nope",)))


def entry(result: str, **told) -> dict:
    """A line of the log: job 30, whose submit is that of the recorded one."""
    before = {"job": 30, "submit": NOW - 2.0, "means": "priority", "undo": False, "from": 1, "to": 9}
    return {**before, "result": result, **told}


def test_a_line_that_was_torn_swallows_nothing_and_is_told_of_once(tmp_path):
    warned: list[str] = []
    log = Audit(tmp_path / "log.jsonl", warned.append)
    log.path.write_text('{"job": 30, "means": "pri')
    log.add(**entry("ok", user="a\u2028b"))
    log.add(**entry("ok"))
    assert [told["job"] for told in log.entries()] == [30, 30]
    assert log.changes("priority")["30"].after == 9
    assert len(warned) == 1
    assert log.path.read_text().count("\n") == 3


@pytest.mark.parametrize("value", ["1e400", "-Infinity", "NaN", "[]"])
def test_a_damaged_entry_is_passed_over(tmp_path, value):
    warned: list[str] = []
    log = Audit(tmp_path / "log.jsonl", warned.append)
    log.add(**entry("ok", **{"from": "HERE"}))
    log.path.write_text(log.path.read_text().replace('"HERE"', value))
    log.add(**entry("ok", job=31))
    assert list(log.changes("priority")) == list(log.changes("priority")) == ["31"]
    assert len(warned) == 1


NICE = {
    "what was not sent": ([entry("not sent", nice=5), entry("sending", nice=7), entry("ok", nice=7)], 7),
    "another job of that number": ([entry("ok", nice=5, submit=NOW - 9e6), entry("ok", nice=7)], 7),
    "what was put back": ([entry("ok", nice=5), entry("ok", nice=0, undo=True), entry("ok", nice=7)], 7),
    "what was refused": ([entry("sending", nice=5), entry("refused", nice=5), entry("ok", nice=7)], 7),
    "what Slurm has cleared": ([entry("sending", nice=7), entry("sending", nice=0), entry("ok", nice=0)], 7),
}


@pytest.mark.parametrize("name", NICE)
def test_undo_puts_back_the_nice_value_from_before_and_not(tmp_path, name):
    entries, nice = NICE[name]
    told = json.loads(recorded("squeue.json"))
    next(row for row in told["jobs"] if row["job_id"] == 30)["priority"] = 9
    command = Recorded(json.dumps(told))
    acting = agent(tmp_path, command, means="priority")
    acting.audit.add_all(entries)
    acting.undo()
    assert command.sent == [("scontrol", "release", "30"), ("scontrol", "update", "JobId=30", f"Nice={nice}")]


@pytest.mark.parametrize("sprio", ["sprio: error: slurm_load\n", "30|0\n31|x\n34|0\n", "", "30 0\n31 0\n"])
def test_site_factors_that_are_not_told_are_an_error(tmp_path, sprio):
    command = Recorded(sprio=sprio)
    with pytest.raises(SchedulerError, match=r"sprio.*: came .*want"):
        agent(tmp_path, command, overtake=True).round()
    assert command.sent == []


def test_a_job_whose_site_factor_is_not_told_is_left_alone(tmp_path):
    command = Recorded(sprio="30|0\n34|0\n")
    acting = agent(tmp_path, command, overtake=True, policy="lpf", partition=("gpu", "other"))
    assert [job.id for job in acting.queued(acting.reader.state())] == [30, 34]
    assert 31 not in [move.job.id for move in acting.round()]
    by_priority = agent(tmp_path, command, means="priority", partition=("gpu", "other"))
    assert [job.id for job in by_priority.queued(by_priority.reader.state())] == [30, 31, 34]


def test_undo_reaches_a_job_whose_site_factor_slurm_does_not_show(tmp_path):
    command = Recorded()  # 33 was held since
    acting = agent(tmp_path, command)
    acting.audit.add(**entry("ok", job=33, means="site", **{"from": 0, "to": 9}))
    acting.undo()
    assert command.sent == [("scontrol", "update", "JobId=33", "SiteFactor=0")]


def program(monkeypatch, command, *words: str) -> None:
    """Run the program with a recorded Slurm."""
    monkeypatch.setattr(slurm, "Commands", lambda timeout: command)
    monkeypatch.setattr("sys.argv", ["slurm.py", "--once", "--partition", "gpu", "--accounting", "squeue", *words])
    slurm.main()


def test_what_goes_wrong_in_a_single_round_is_logged(tmp_path, monkeypatch):
    log = tmp_path / "log.jsonl"
    with pytest.raises(SchedulerError):
        program(monkeypatch, Recorded(sprio="?"), "--log", str(log))
    (told,) = (json.loads(line) for line in log.read_text().splitlines())
    assert "sprio" in told["error"]


@pytest.mark.parametrize(("words", "said"), [("sjf", "the order is not as wanted"), ("fcfs", "the order is as wanted")])
def test_it_says_whether_the_order_is_as_wanted(tmp_path, monkeypatch, capsys, words, said):
    program(monkeypatch, Recorded(), "--log", str(tmp_path / "log.jsonl"), "--policy", words, "--account", "red")
    assert said in capsys.readouterr().out


def leaves(view):
    """A policy that would end the program."""
    raise SystemExit(0)


def test_a_policy_does_not_end_the_agent(tmp_path):
    acting = agent(tmp_path, Recorded(), policy="tests.test_slurm:leaves")
    with pytest.raises(SchedulerError, match="leaves: SystemExit"):
        acting.round()
    leaving = tmp_path / "leaving.py"
    leaving.write_text("raise SystemExit(0)")
    with pytest.raises(ConfigError, match="SystemExit"):
        agent(tmp_path, Recorded(), policy=f"{leaving}:order")


def test_compiling_is_told_once_and_only_where_something_is_compiled(capsys):
    with compiling_told():
        assert capsys.readouterr().err == ""
        for _ in range(2):
            event.start_event("numba:run_pass")
    assert capsys.readouterr().err.count("the first call on a machine") == 1


def test_undo_puts_back_and_everything_else_is_shadow_where_no_mode_is_named(tmp_path):
    assert [Config(undo=undo).manner for undo in (False, True)] == ["shadow", "apply"]
    assert Config(undo=True, mode="shadow").manner == "shadow"
    command = Recorded()
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({**entry("ok"), "means": "site", "from": 0, "to": 7}) + "\n")
    told = Slurm(Config(undo=True, log=str(log)), command=command, warn=print)
    told.reader.state = lambda: busy()._replace(pending=(busy().pending[0]._replace(id=30, submit=NOW - 2.0, site=7),))
    assert [move.words[-1] for move in told.undo()] == ["SiteFactor=0"]
    assert any("SiteFactor=0" in words for words in command.sent)


def test_a_full_disk_ends_no_agent_and_lets_nothing_be_sent(tmp_path):
    command, warned = Recorded(), []
    acting = Slurm(
        Config(mode="apply", policy="sjf", partition=("gpu",), overtake=True, log=str(tmp_path / "log.jsonl")),
        command=command,
        warn=warned.append,
    )
    (tmp_path / "log.jsonl").symlink_to("/dev/full")
    with pytest.raises(ConfigError, match="No space left"):
        acting.round()
    assert command.sent == []
    acting.tell_trouble("the round came to nothing")  # as between rounds: it must not raise
    assert "No space left" in warned[-1]


def test_a_round_without_the_accounting_goes_by_what_squeue_tells(tmp_path):
    class Without(Recorded):
        def __call__(self, *words):
            if words[0] == "sacct":
                raise SchedulerError("sacct: No such file or directory")
            return super().__call__(*words)

    warned: list[str] = []
    told = Config(policy="sjf", partition=("gpu",), overtake=True, accounting="sacct", log=str(tmp_path / "log.jsonl"))
    acting = Slurm(told, command=Without(), warn=warned.append)
    assert acting.round()
    acting.round()
    assert sum("taken from squeue alone" in line for line in warned) == 1
