"""The whole program against a fake LSF: small executables on PATH that keep jobs in a file."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from berth.errors import BerthError, SchedulerError
from orchestrator.lsf import Config, Lsf
from orchestrator.lsf_commands import Commands
from orchestrator.lsf_starting import objection
from orchestrator.lsf_state import Host, Job
from orchestrator.lsf_text import wide_jobs
from tests.test_lsf import RECORDED, answers

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("bjobs", "bhosts", "lshosts", "lsload", "bparams", "bmod", "btop", "brun")
READS = ("bjobs", "bhosts", "lshosts", "lsload", "bparams")
LIMITS = {"1": 60, "2": 10, "3": 30, "4": 20}  # min, so that sjf wants 2, 4, 3, 1


class Fake:
    """A folder with LSF's commands, and the jobs that they play with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        source = (Path(__file__).parent / "fake_lsf.py").read_text()
        for name in NAMES:
            self.script(name, f"#!{sys.executable} -ES\n{source}")
        self.change(json=False, aps=False, max_priority=0, jobs=[], hosts={}, down="")

    def script(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)

    @property
    def state(self) -> dict:
        return json.loads((self.folder / "state.json").read_text())

    def change(self, **values) -> None:
        path = self.folder / "state.json"
        before = self.state if path.exists() else {}
        path.write_text(json.dumps({**before, **values}))

    def job(self, identity: str, **values) -> None:
        """Add a pending job, or change one that is there."""
        jobs = self.state["jobs"]
        job = next((job for job in jobs if job["id"] == identity), None)
        if job is None:
            job = {
                "id": identity, "user": "user1", "queue": "normal", "name": f"job_{identity}", "stat": "PEND",
                "slots": 1, "minutes": 10, "priority": 50, "place": len(jobs), "submit": time.time() // 1 - 600,
            }  # fmt: skip
            jobs.append(job)
        job.update(values)
        self.change(jobs=jobs)

    def order(self, queue: str = "normal") -> list[str]:
        jobs = [job for job in self.state["jobs"] if job["queue"] == queue and job["stat"] == "PEND"]
        return [job["id"] for job in sorted(jobs, key=lambda j: (-j.get("aps", 0), -j["priority"], j["place"]))]

    def calls(self) -> list[list]:
        path = self.folder / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def sent(self) -> list[str]:
        """The commands that were sent to change something."""
        return [" ".join([name, *words]) for name, words, _ in self.calls() if name not in READS]

    def entries(self) -> list[dict]:
        path = self.folder / "log.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def fake(tmp_path, monkeypatch):
    found = Fake(tmp_path)
    monkeypatch.setenv("PATH", f"{found.bin}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_LSF", str(tmp_path))
    monkeypatch.setenv("FAKE_USER", "openlava")
    found.change(hosts={"node1": {"status": "ok", "max": 4}, "node2": {"status": "ok", "max": 2}})
    for number, minutes in LIMITS.items():
        found.job(number, minutes=minutes)
    return found


def lsf(fake: Fake, choose_host=None, **options) -> Lsf:
    """The program's cluster, with its warnings in a list."""
    told: list[str] = []
    settings = {"mode": "apply", "policy": "sjf", "queue": ("normal",), "log": str(fake.folder / "log.jsonl")}
    cluster = Lsf(Config(**{**settings, **options}), choose_host=choose_host, warn=told.append)
    cluster.told = told
    return cluster


PLAYED = (
    "btop 9999", "btop 24", "btop 18", "btop 2", "bmod -sp 50 9999", "bmod -sp 500 22", "bmod -sp 50 24",
    "bmod -sp 50 18", "bmod -sp 50 2", "brun -m node1 22", "brun -m nosuchhost 22", "brun -m node1 9999",
    "brun -m node1 18", "brun -m node1 2",
)  # fmt: skip


def test_the_fake_answers_as_openlava_did(fake, monkeypatch):
    fake.change(jobs=[], max_priority=100)
    for number, user, stat in (("2", "user1", "DONE"), ("18", "user1", "RUN"), ("22", "user1", "PEND")):
        fake.job(number, user=user, stat=stat)
    fake.job("24", user="us2")
    seen = [answer for answer in answers("errors.log") if " ".join(answer.words) in PLAYED]
    assert {" ".join(answer.words) for answer in seen} == set(PLAYED)
    log = (RECORDED / "errors.log").read_text()
    for answer in seen:
        words = " ".join(answer.words)
        monkeypatch.setenv("FAKE_USER", "user1" if f" user1@node1$ {words}\n" in log else "openlava")
        played = Commands()(*answer.words)
        assert (words, played.text, played.code) == (words, answer.text, answer.code)


def test_the_fake_orders_as_openlava_did(fake, monkeypatch):
    fake.change(jobs=[], max_priority=100)
    for number in range(34, 46):
        fake.job(str(number), user="us2" if number % 2 else "user1")
    Commands()("btop", "37")
    monkeypatch.setenv("FAKE_USER", "us2")
    Commands()("bmod", "-sp", "90", "45")
    assert fake.order()[:5] == ["45", "37", "34", "35", "36"]
    fake.change(jobs=[])
    for number in ("64", "65", "70", "69", "71", "74[1]", "68"):
        fake.job(number, user="user1" if number < "66" else "us2")
    Commands()("btop", "74[1]")
    listed = [job.id for job in wide_jobs((RECORDED / "bjobs_u_all_w_mixed.txt").read_text(), time.time(), [])]
    assert fake.order() == listed[7:]


WAYS = {
    "aps": {"json": True, "aps": True, "max_priority": 100},
    "sp": {"json": False, "aps": False, "max_priority": 100},
    "btop": {"json": False, "aps": False, "max_priority": 0},
}
"""What a cluster accepts, for each means to be the first that works."""


@pytest.mark.parametrize("means", WAYS)
def test_apply_gives_the_wanted_order_and_a_second_round_sends_nothing(fake, means):
    fake.change(**WAYS[means])
    moves, started = lsf(fake).round()
    assert fake.order() == ["2", "4", "3", "1"]
    assert ({move.means for move in moves}, started) == ({means}, [])
    before = len(fake.sent())
    assert before == len(moves)
    assert lsf(fake).round() == ([], [])
    assert len(fake.sent()) == before
    fake.job("5", minutes=15)
    again, _ = lsf(fake).round()
    assert fake.order() == ["2", "5", "4", "3", "1"]
    assert len(again) <= 2


@pytest.mark.parametrize("means", WAYS)
def test_shadow_and_advise_change_nothing(fake, means):
    fake.change(**WAYS[means])
    shadow = lsf(fake, mode="shadow", queue=())
    moves, _ = shadow.round()
    assert {move.means for move in moves} == {means}
    shadow.round()
    assert fake.sent() == []
    assert fake.order() == ["1", "2", "3", "4"]
    assert [entry["result"] for entry in fake.entries()] == ["not sent"] * len(moves)


def test_the_fewest_commands_are_sent(fake):
    fake.change(max_priority=100)
    fake.job("1", minutes=25)  # 2 4 1 3
    lsf(fake, means=("btop",)).round()
    assert fake.sent() == ["btop 4", "btop 2"]
    fake.job("3", minutes=1)
    lsf(fake, means=("sp",)).round()
    assert fake.sent()[2:] == ["bmod -sp 75 3"]


def test_undo_puts_priorities_back(fake):
    for means, way in (("aps", WAYS["aps"]), ("sp", WAYS["sp"])):
        fake.change(**way)
        lsf(fake, means=(means,)).round()
        assert fake.order() == ["2", "4", "3", "1"]
        lsf(fake, undo=True, mode="shadow", queue=()).undo()
        assert fake.order() == ["2", "4", "3", "1"]
        assert lsf(fake, undo=True, queue=()).undo() != []
        assert fake.order() == ["1", "2", "3", "4"]
        assert {job["priority"] for job in fake.state["jobs"]} == {50}
        assert lsf(fake, undo=True).undo() == []


def test_undo_goes_back_to_before_the_first_of_several_changes(fake):
    fake.change(max_priority=100)
    lsf(fake).round()
    fake.job("2", minutes=25)
    lsf(fake).round()
    assert fake.order() == ["4", "2", "3", "1"]
    changed = [entry["job"] for entry in fake.entries()]
    assert len(changed) > len(set(changed))
    lsf(fake, undo=True).undo()
    assert {job["priority"] for job in fake.state["jobs"]} == {50}


def test_undo_says_what_it_cannot_put_back(fake):
    fake.change(max_priority=100)
    lsf(fake, means=("btop",)).round()
    cluster = lsf(fake, undo=True)
    assert cluster.undo() == []
    assert "btop cannot be undone exactly" in " ".join(cluster.told)


def test_undo_leaves_what_others_have_changed_since(fake):
    fake.change(max_priority=100)
    lsf(fake, means=("sp",)).round()
    changed = [entry["job"] for entry in fake.entries()]
    fake.job(changed[0], priority=3)
    fake.job(changed[1], stat="RUN", hosts=["node1"])
    cluster = lsf(fake, undo=True)
    assert {move.job.id for move in cluster.undo()} == set(changed[2:])
    assert f"job {changed[0]} has priority 3" in " ".join(cluster.told)
    assert f"job {changed[1]} waits no more" in " ".join(cluster.told)


def test_the_log_tells_every_action(fake):
    fake.change(max_priority=100)
    lsf(fake, means=("sp",)).round()
    for entry in fake.entries():
        assert set(entry) >= {"when", "mode", "job", "from", "to", "command", "result"}
        assert (entry["mode"], entry["from"], entry["result"]) == ("apply", 50, "ok")
        assert entry["command"] == ["bmod", "-sp", str(entry["to"]), entry["job"]]


def test_what_is_refused_gives_way_to_the_next_means(fake, monkeypatch):
    monkeypatch.setenv("FAKE_USER", "user1")  # owner of all jobs: no APS, but priorities
    fake.change(json=True, aps=True, max_priority=100)
    cluster = lsf(fake)
    moves, _ = cluster.round()
    assert {move.means for move in moves} == {"sp"}
    assert fake.order() == ["2", "4", "3", "1"]
    assert cluster.actor.refused.keys() == {"aps"}
    assert [entry["result"] for entry in fake.entries()].count("refused") == 1


def test_priorities_that_bparams_promised_and_lsf_refuses(fake):
    cluster = lsf(fake, max_priority=100)  # undefined in this cluster
    moves, _ = cluster.round()
    assert {move.means for move in moves} == {"btop"}
    assert fake.order() == ["2", "4", "3", "1"]


def test_means_that_are_not_usable_are_an_error_only_if_something_is_to_do(fake):
    with pytest.raises(SchedulerError, match=r"queue normal cannot be put into order by sp \(not usable here\)"):
        lsf(fake, means=("sp",)).round()
    assert lsf(fake, means=("sp",), policy="fcfs").round() == ([], [])


def test_lines_of_the_log_that_are_no_entries_are_passed_over(fake):
    (fake.folder / "log.jsonl").write_text('{"means": "aps", "result": "ok"}\n{"means": "aps", "resu\n')
    fake.change(**WAYS["aps"])
    cluster = lsf(fake)
    cluster.round()
    assert fake.order() == ["2", "4", "3", "1"]
    assert "passed over" in " ".join(cluster.told)


def test_jobs_of_others_are_refused_with_what_is_wanted(fake, monkeypatch):
    monkeypatch.setenv("FAKE_USER", "us2")
    fake.change(max_priority=100)
    with pytest.raises(SchedulerError, match=r"User permission denied.*want an administrator, or --user"):
        lsf(fake).round()
    assert fake.order() == ["1", "2", "3", "4"]


def test_a_job_that_ends_in_between_is_passed_over(fake):
    for means in ("btop", "sp"):
        fake.change(max_priority=100, ending=["4"])
        fake.job("4", stat="PEND", priority=50, minutes=20)
        cluster = lsf(fake, means=(means,))
        cluster.round()
        assert fake.order() == ["2", "3", "1"]
        assert "job 4 is past moving" in " ".join(cluster.told)
        assert "gone" in [entry["result"] for entry in fake.entries()]
        for number in LIMITS:
            fake.job(number, priority=50, place=int(number))


def test_held_jobs_and_other_queues_and_users_are_left_alone(fake):
    fake.job("5", stat="PSUSP", minutes=1)
    fake.job("6", queue="short", minutes=1)
    fake.job("7", user="us2", minutes=1)
    lsf(fake, user=("user1",)).round()
    assert {entry["job"] for entry in fake.entries()} <= set(LIMITS)
    assert fake.order() == ["2", "4", "3", "1", "7"]


@pytest.mark.parametrize("means", ["sp", "btop"])
def test_others_are_passed_only_if_that_is_allowed(fake, means):
    fake.change(max_priority=100)
    fake.job("0", user="us2", place=-1)
    cluster = lsf(fake, user=("user1",), means=(means,))
    assert cluster.round() == ([], [])
    assert "jobs that are not to be handled would be passed or let by (0)" in " ".join(cluster.told)
    assert fake.sent() == []
    lsf(fake, user=("user1",), means=(means,), overtake=True).round()
    assert [job for job in fake.order() if job != "0"] == ["2", "4", "3", "1"]


def test_an_owners_btop_keeps_to_the_owners_places(fake, monkeypatch):
    monkeypatch.setenv("FAKE_USER", "user1")
    fake.job("0", user="us2", place=1.5)
    lsf(fake, user=("user1",), means=("btop",), overtake=True).round()
    assert fake.order() == ["2", "4", "0", "3", "1"]


def test_only_the_head_is_put_into_order(fake):
    lsf(fake, head=1).round()
    assert fake.sent() == ["btop 2"]
    fake.change(max_priority=2)
    for number in LIMITS:
        fake.job(number, priority=1, place=int(number))
    cluster = lsf(fake, means=("sp",))
    cluster.round()
    assert fake.order()[0] == "2"
    assert "too few" in " ".join(cluster.told)


def test_elements_of_arrays_are_moved_one_by_one(fake):
    for index in (1, 2):
        fake.job(f"28[{index}]", name=f"arr[{index}]", minutes=3 - index)
    lsf(fake).round()
    assert fake.order()[:2] == ["28[2]", "28[1]"]
    assert "btop 28[2]" in fake.sent()


def test_an_empty_queue_is_no_error(fake):
    fake.change(jobs=[])
    for way in WAYS.values():
        fake.change(**way)
        assert lsf(fake).round() == ([], [])


@pytest.mark.parametrize("text", ["batch system daemon not responding ... still trying", "ls_initrex: whatever", ""])
@pytest.mark.parametrize("json_first", [True, False])
def test_a_master_that_is_down_is_never_an_empty_queue(fake, text, json_first):
    fake.change(json=json_first, down=text or " ")
    with pytest.raises(SchedulerError, match="exit 254"):
        lsf(fake).round()
    assert fake.sent() == []


def test_a_master_that_goes_down_while_acting_stops_the_round(fake):
    fake.script("btop", "#!/bin/sh\necho 'batch system daemon not responding ... still trying' >&2\nexit 255\n")
    with pytest.raises(SchedulerError, match="not responding"):
        lsf(fake).round()
    assert [entry["result"] for entry in fake.entries()] == ["refused"]


@pytest.mark.parametrize("goes_on", ["sleep 1000", "exit 0"])
def test_commands_that_hang_are_ended_with_all_they_started(fake, goes_on):
    marker = fake.folder / "still_there"
    fake.script("bjobs", f"#!/bin/sh\n(sleep 2; touch {marker}) &\n{goes_on}\n")
    begin = time.monotonic()
    with pytest.raises(SchedulerError, match=r"bjobs .*no answer within 0.5 s"):
        lsf(fake, timeout=0.5).round()
    assert time.monotonic() - begin < 2
    time.sleep(2)
    assert not marker.exists()


def test_a_command_that_hangs_while_acting_counts_as_perhaps_done(fake):
    fake.change(max_priority=100)
    fake.script("bmod", "#!/bin/sh\nsleep 1000\n")
    with pytest.raises(SchedulerError, match="no answer"):
        lsf(fake, means=("sp",), timeout=0.7).round()
    assert [entry["result"] for entry in fake.entries()] == ["unknown"]
    assert list(lsf(fake).actor.audit.changes("sp")) == [fake.entries()[0]["job"]]


def test_commands_run_in_plain_english_with_one_attempt_and_no_shell(fake):
    lsf(fake).round()
    assert {tuple(told.values()) for _, _, told in fake.calls()} == {("1", "C")}
    fake.script("echo_words", '#!/bin/sh\nfor word in "$@"; do echo "<$word>"; done\n')
    assert Commands()("echo_words", "28[2]; rm -r $HOME", "`id`").out == "<28[2]; rm -r $HOME>\n<`id`>\n"
    with pytest.raises(SchedulerError, match="want LSF's commands on PATH"):
        Commands()("no_such_command_of_lsf")


def test_which_form_works_is_remembered(fake):
    cluster = lsf(fake, mode="shadow")
    cluster.round()
    cluster.round()
    asked = [words for name, words, _ in fake.calls() if name in ("bjobs", "bhosts")]
    assert sum("-json" in words for words in asked) == 1
    assert cluster.reader.form == "text"


def test_lines_that_cannot_be_read_are_named(fake):
    fake.script("lsload", "#!/bin/sh\necho 'HOST_NAME status r15s r1m mem'\necho 'node1 ok ?'\n")
    fake.script("lshosts", "#!/bin/sh\nexit 1\n")
    cluster = lsf(fake, mode="shadow")
    state = cluster.reader.state()
    assert "skipped a line that could not be read: 'node1 ok ?'" in " ".join(cluster.told)
    assert "memory is not known" in " ".join(cluster.told)
    assert [host.slots for host in state.hosts] == [4, 2]


def test_states_are_the_same_as_json_and_as_tables(fake):
    fake.job("1", stat="UNKWN", hosts=["node1", "node1", "node2"], slots=3)
    fake.job("28[2]", name="arr[2]", slots=2, minutes=0)
    seen = []
    for way in ("aps", "sp"):
        fake.change(**WAYS[way])
        seen.append(lsf(fake).reader.state(now=1e9 + time.time() // 1e6 * 1e6))
    assert repr(seen[0]) == repr(seen[1])
    assert seen[0].running[0].hosts == (("node1", 2), ("node2", 1))
    assert [job.id for job in seen[0].pending] == ["2", "3", "4", "28[2]"]
    assert [(host.used, host.memory, host.free_memory) for host in seen[0].hosts] == [
        (2, 24103.0, 23552.0), (1, 24103.0, 23552.0),
    ]  # fmt: skip


def test_brun_starts_jobs_in_order_only_by_choice(fake):
    fake.job("1", slots=4)
    lsf(fake).round()
    assert not any(call.startswith("brun") for call in fake.sent())
    _, started = lsf(fake, start="brun").round()
    assert started == [("2", "node1"), ("4", "node1"), ("3", "node1")]
    running = {job["id"]: job.get("hosts") for job in fake.state["jobs"]}
    assert running == {"1": None, "2": ["node1"], "4": ["node1"], "3": ["node1"]}
    assert [entry["answer"] for entry in fake.entries()][-1] == "RUN on node1"


def test_host_policies(fake):
    fake.job("9", stat="RUN", hosts=["node1"])
    for name, host in (("first_available", "node1"), ("least_loaded", "node2"), ("best_fit", "node2")):
        _, started = lsf(fake, start="brun", mode="shadow", host_policy=name).round()
        assert started[0] == ("2", host)


def test_a_host_that_is_chosen_from_outside_is_checked(fake):
    fake.change(hosts={"node1": {"status": "ok", "max": 4}, "node2": {"status": "closed_Adm", "max": 2}})
    with pytest.raises(SchedulerError, match="host node2 is closed_Adm, want ok"):
        lsf(fake, lambda job, room, hosts: "node2", start="brun").round()
    with pytest.raises(SchedulerError, match="host nowhere was chosen"):
        lsf(fake, lambda job, room, hosts: "nowhere", start="brun").round()
    assert lsf(fake, lambda job, room, hosts: "", start="brun").round()[1] == []
    assert not any(call.startswith("brun") for call in fake.sent())


def test_brun_that_has_no_effect_is_not_taken_for_one(fake, monkeypatch):
    monkeypatch.setattr("orchestrator.lsf_starting.POLL", 0.01)
    fake.change(brun_sleeps=True)
    cluster = lsf(fake, start="brun")
    cluster.starter.patience = 0.1
    assert cluster.round()[1] == []
    assert {entry["result"] for entry in fake.entries() if entry["means"] == "brun"} == {"unconfirmed"}


def test_brun_needs_an_administrator(fake, monkeypatch):
    monkeypatch.setenv("FAKE_USER", "user1")
    with pytest.raises(SchedulerError, match=r"User permission denied; want an administrator for --start brun"):
        lsf(fake, start="brun").round()


def test_a_job_that_is_no_more_pending_is_not_started(fake):
    cluster = lsf(fake, start="brun")
    state = cluster.reader.state()
    fake.job("2", stat="DONE")
    assert ("2", "node1") not in cluster.starter.start(cluster.wanted(state), state.hosts)
    assert "job 2 is DONE: not started" in cluster.told


WAITS = Job("7", "u", "q", "n", "PEND", 0.0, 2, memory=100.0)
ROOMY = Host("h", "ok", 4, 1, 1000.0, 500.0)


@pytest.mark.parametrize(
    ("job", "host", "says"),
    [
        (WAITS, ROOMY, ""),
        (WAITS._replace(state="PSUSP"), ROOMY, "is PSUSP, want PEND"),
        (WAITS._replace(reason="Dependency condition invalid or never satisfied: 1 host;"), ROOMY, "Dependency"),
        (WAITS, ROOMY._replace(status="closed_Full"), "is closed_Full"),
        (WAITS, ROOMY._replace(used=3), "has 1 free slots, want 2"),
        (WAITS._replace(memory=600.0), ROOMY, "has 500 MB of free memory, want 600"),
        (WAITS._replace(asked=("other",)), ROOMY, "must run on other"),
    ],
)
def test_what_speaks_against_a_start(job, host, says):
    assert says in objection(job, host)
    assert bool(says) == bool(objection(job, host))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"queue": ()}, "want --queue"),
        ({"means": ()}, "want at least one of aps, sp, btop"),
        ({"head": 0}, "--head 0: want at least 1"),
        ({"timeout": 0.0}, "--timeout 0.0: want seconds"),
        ({"policy": "fcsf"}, "did you mean fcfs"),
        ({"log": "x.txt"}, "want a name that ends in .jsonl"),
    ],
)
def test_options_that_cannot_be_meant(fake, options, says):
    with pytest.raises(BerthError, match=says):
        lsf(fake, **options)


def test_limits_that_are_missing_are_told_or_assumed(fake):
    fake.job("1", minutes=0)
    with pytest.raises(BerthError, match=r"sjf needs run times, and 1 of 4 queued jobs have none"):
        lsf(fake).round()
    lsf(fake, assume_limit=15.0).round()
    assert fake.order() == ["2", "1", "4", "3"]


def run(fake: Fake, *words: str) -> subprocess.CompletedProcess:
    script = ROOT / "orchestrator" / "lsf.py"
    settings = ("--log", str(fake.folder / "log.jsonl"), "--policy", "sjf")
    return subprocess.run(
        [sys.executable, str(script), *settings, *words], capture_output=True, text=True, cwd=fake.folder, timeout=120
    )


def test_the_program_from_anywhere(fake):
    advised = run(fake, "--mode", "advise", "--once")
    assert (advised.stdout, advised.returncode) == ("btop 3\nbtop 4\nbtop 2\n", 0)
    shadow = run(fake, "--once")
    assert "would send: btop 2" in shadow.stdout
    assert fake.sent() == []
    applied = run(fake, "--once", "--mode", "apply", "--queue", "normal")
    assert "sent: btop 2" in applied.stdout
    assert fake.order() == ["2", "4", "3", "1"]
    assert "nothing to do" in run(fake, "--once", "--mode", "apply", "--queue", "normal").stdout
    fake.change(down="batch system daemon not responding ... still trying")
    failed = run(fake, "--once")
    assert failed.returncode == 2
    assert failed.stderr.startswith("error: bjobs")


def test_the_program_goes_on_when_the_master_is_back(fake):
    fake.change(down="batch system daemon not responding ... still trying")
    words = [sys.executable, str(ROOT / "orchestrator" / "lsf.py"), "--policy", "fcfs", "--interval", "0.2"]
    log = ("--log", str(fake.folder / "log.jsonl"))
    with subprocess.Popen([*words, *log], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        try:
            assert "not responding" in program.stderr.readline()
            fake.change(down="")
            assert "nothing to do" in program.stdout.readline()
        finally:
            program.terminate()
