"""What is read from LSF's output: recorded from OpenLava 2.2, or written by hand in the shape of LSF 10."""

import json
import math
import re
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.errors import SchedulerError
from orchestrator import lsf_json, lsf_text
from orchestrator.lsf_commands import LsfAnswer
from orchestrator.lsf_state import Host, Job, State, snapshot_of
from orchestrator.lsf_words import limit, memory, moment, shares, size

RECORDED = Path(__file__).parent / "recorded" / "lsf"
NOW = datetime(2026, 11, 16, 4, 50).timestamp()


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


def at(clock: str) -> float:
    return datetime.strptime(f"2026-11-16 {clock}", "%Y-%m-%d %H:%M:%S").timestamp()


def same(a, b) -> bool:
    """Equal rows, NaN being equal to NaN."""
    return repr(a) == repr(b)


def jobs_of(name: str) -> list[Job]:
    skipped: list[str] = []
    jobs = lsf_text.wide_jobs(recorded(name), NOW, skipped)
    assert skipped == []
    return jobs


def test_wide_jobs_have_their_columns_in_the_order_of_dispatch():
    jobs = jobs_of("bjobs_u_all_w.txt")
    assert [job.id for job in jobs] == [
        "19",
        "18",
        "20",
        "21",
        "23",
        "29",
        "22",
        "24",
        "25",
        "26",
        "27",
        "30",
        "28[1]",
        "28[2]",
        "28[3]",
    ]
    submit = at("04:32:00")
    assert same(jobs[1], Job("18", "user1", "normal", "train_a", "RUN", submit, 4, hosts=(("node1", 4),)))
    assert jobs[2].name == "a_rather_long_job_name_for_truncation"
    assert same(jobs[4], Job("23", "user1", "priority", "prio_1", "PEND", submit))
    assert same(jobs[10], Job("27", "user1", "normal", "held_1", "PSUSP", submit))
    assert same(jobs[13], Job("28[2]", "us2", "normal", "arr[2]", "PEND", submit))


def test_wide_jobs_of_suspended_and_unknown_hosts():
    mixed = {job.id: job for job in jobs_of("bjobs_u_all_w_mixed.txt")}
    assert (mixed["72"].state, mixed["72"].hosts, mixed["72"].slots) == ("USUSP", (("node1", 4), ("node3", 2)), 6)
    assert (mixed["61"].user, mixed["74[2]"].state, mixed["74[1]"].state) == ("openlava", "RUN", "PEND")
    down = jobs_of("bjobs_u_all_w_node_down.txt")
    assert [(job.id, job.state, job.hosts) for job in down] == [
        ("177", "UNKWN", (("node3", 2), ("node2", 2))),
        ("178", "UNKWN", (("node2", 2),)),
        ("179", "PSUSP", ()),
    ]


def test_wide_jobs_take_names_with_blanks_and_skip_what_they_cannot_read():
    header, row = recorded("bjobs_u_all_w.txt").splitlines()[:2]
    named = row.replace("prep_1", "sleep 9 ; Nov")
    text = f"batch system daemon not responding ... still trying\n{header}\n{named}\n???\n"
    skipped: list[str] = []
    jobs = lsf_text.wide_jobs(text, NOW, skipped)
    assert [job.name for job in jobs] == ["sleep 9 ; Nov"]
    assert skipped == ["???"]


LONG = {
    "bjobs_l_pending.txt": ("22", "04:32:47", None, None, 3600.0, 50, "Job slot limit reached: 3 hosts;", ()),
    "bjobs_l_running.txt": ("18", "04:32:38", 4, "04:32:42", 1800.0, 50, "", ("node1",)),
    "bjobs_l_multihost.txt": ("72", "04:36:31", 6, "04:36:55", math.nan, 50, "", ("node1", "node3")),
    "bjobs_l_held.txt": ("27", "04:32:47", None, None, math.nan, 50, "Job slot limit reached: 3 hosts;", ()),
    "bjobs_l_dep.txt": (
        "26", "04:32:47", None, None, math.nan, 50, "Dependency condition invalid or never satisfied: 1 host;", (),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_long_jobs(name):
    number, submit, slots, start, run_limit, priority, reason, asked = LONG[name]
    begun = at(start) if start else math.nan
    detail = lsf_text.Detail(at(submit), slots, math.nan, begun, run_limit, priority, reason, asked)
    assert same(lsf_text.long_jobs(recorded(name), NOW, []), {number: detail})


def test_long_jobs_one_after_the_other():
    text = "------\n".join(recorded(name) for name in LONG)
    assert list(lsf_text.long_jobs(text, NOW, [])) == [row[0] for row in LONG.values()]


def test_long_jobs_of_the_transcripts_without_priority():
    log = recorded("errors.log")
    paragraph = log[log.index("\nJob <382>") :].partition("(exit 0)")[0]
    detail = lsf_text.long_jobs(paragraph, NOW, [])["382"]
    assert (detail.priority, detail.submit, detail.slots) == (0, at("04:43:45"), None)


def test_long_jobs_find_words_that_a_break_has_glued():
    text = recorded("bjobs_l_multihost.txt").replace(
        "6 Processors Requested", "6 Processors\n" + " " * 21 + "Requested"
    )
    text = text.replace("Job Priority", "Job\n" + " " * 21 + "Priority")
    detail = lsf_text.long_jobs(text, NOW, [])["72"]
    assert (detail.slots, detail.priority) == (6, 50)


def test_long_jobs_in_the_words_of_lsf_10():
    text = (
        "\nJob <28[2]>, Job Name <arr[1-3]>, User <u>, Project <p>, Status <RUN>, Queue <normal>, Job Priority <7>, "
        "Command <echo Job Priority <99>>\n"
        "Mon Nov 16 04:32:47 2026: Submitted from host <h>, CWD <$HOME>, 4 Task(s), Requested Resources "
        "<rusage[mem=4GB]>;\n"
        "Mon Nov 16 04:33:00 2026: [2] started 4 Task(s) on Host(s) <4*hostA>, Allocated 4 Slot(s) on "
        "Host(s) <4*hostA>;\n"
    )
    detail = lsf_text.long_jobs(text, NOW, [])["28[2]"]
    assert (detail.slots, detail.memory, detail.priority, detail.start) == (4, 4096.0, 7, at("04:33:00"))


def test_hosts():
    hosts = lsf_text.wide_hosts(recorded("bhosts_w_closed_adm.txt"), [])
    assert [host[:4] for host in hosts] == [
        ("node1", "ok", 4, 2), ("node2", "closed_Adm", 4, 0), ("node3", "closed_Full", 2, 4),
    ]  # fmt: skip
    assert [host.free for host in hosts] == [2, 0, 0]
    full = lsf_text.wide_hosts(recorded("bhosts_w.txt"), [])
    assert [host[:4] for host in full] == [(f"node{i}", "closed_Full", n, n) for i, n in ((1, 4), (2, 4), (3, 2))]
    down = lsf_text.wide_hosts(recorded("bhosts_w_node_down.txt"), [])
    assert [(host.status, host.used, host.free) for host in down] == [
        ("ok", 0, 4),
        ("unavail", 4, 0),
        ("unreach", 2, 0),
    ]
    assert lsf_text.wide_hosts(recorded("bhosts_w_after_brun_oversub.txt"), [])[0].used == 8


def test_loads_and_capacities():
    full = lsf_text.capacities(recorded("lshosts_w.txt"), [])
    assert full == dict.fromkeys(("node1", "node2", "node3"), lsf_text.Load(2, 24103.0))
    down = lsf_text.capacities(recorded("lshosts_node_down.txt"), [])
    assert same(down["node2"], lsf_text.Load(None, math.nan))
    skipped: list[str] = []
    assert [load.memory for load in lsf_text.loads(recorded("lsload_w.txt"), skipped).values()] == [23552.0] * 3
    free = lsf_text.loads(recorded("lsload_node_down.txt"), skipped)
    assert (free["node1"].memory, free["node3"].memory, skipped) == (23 * 1024.0, 23 * 1024.0, [])
    assert math.isnan(free["node2"].memory)


def test_the_highest_priority():
    assert lsf_text.highest_priority(recorded("bparams.txt")) == 0
    assert lsf_text.highest_priority("Maximal user priority:\n    MAX_USER_PRIORITY = 100\n") == 100


def test_times_have_the_latest_year_that_is_not_ahead():
    assert moment("Nov 16 04:32", NOW) == at("04:32:00")
    assert moment("Mon Nov 16 04:32:47", NOW) == at("04:32:47")
    assert moment("Dec 24 10:00", NOW) == datetime(2025, 12, 24, 10).timestamp()
    assert moment("Feb 29 10:00", NOW) == datetime(2024, 2, 29, 10).timestamp()
    assert moment("Nov 16 04:55", NOW) == NOW  # a clock that is ahead of ours
    new_year = datetime(2026, 1, 1, 0, 0, 5).timestamp()
    assert moment("Dec 31 23:59", new_year) == datetime(2025, 12, 31, 23, 59).timestamp()
    assert moment("Jul  4 09:00 2019", NOW) == datetime(2019, 7, 4, 9).timestamp()
    for word in ("Nov 31 04:32", "Nov 00 04:32", "Nov 16 24:00", "Feb 29 10:00 2025", "Foo 16 04:32", "-", ""):
        with pytest.raises(SchedulerError):
            moment(word, NOW)


def test_words():
    assert shares("node1:node1:node3") == (("node1", 2), ("node3", 1))
    assert shares("5*hostA:hostB") == (("hostA", 5), ("hostB", 1))
    assert shares("-") == shares("") == ()
    assert [size(word) for word in ("24103M", "23G", "1.5T", "512K", "7")] == [24103.0, 23552.0, 1572864.0, 0.5, 7.0]
    assert [limit(word) for word in ("60.0", "30.0/hostA", "00:10:00", "1440.0")] == [3600.0, 1800.0, 600.0, 86400.0]
    assert all(math.isnan(limit(word)) for word in ("", "-", "0.0", "00:00:00"))
    assert memory("select[type == any] rusage[swp=2,mem=300] span[hosts=1]") == 300.0
    assert math.isnan(memory("select[mem>300]"))


TEN = {
    "COMMAND": "bjobs",
    "JOBS": 4,
    "RECORDS": [
        {"JOBID": "806290", "JOBINDEX": "0", "STAT": "RUN", "USER": "ann", "QUEUE": "batch", "JOB_NAME": "ls -l",
         "EXEC_HOST": "5*hostA:hostB", "NREQ_SLOT": "6", "NALLOC_SLOT": "6", "SUBMIT_TIME": "Nov 16 04:32",
         "START_TIME": "Nov 16 04:40", "RUNTIMELIMIT": "1440.0", "PEND_REASON": "",
         "EFFECTIVE_RESREQ": "select[type == local] rusage[mem=2048.00] "},
        {"JOBID": "806291", "JOBINDEX": "3", "STAT": "PEND", "USER": "bob", "QUEUE": "batch", "JOB_NAME": "a[3]",
         "EXEC_HOST": "", "NREQ_SLOT": "", "NALLOC_SLOT": "", "SUBMIT_TIME": "Nov 16 04:33", "START_TIME": "",
         "RUNTIMELIMIT": "00:10:00", "PEND_REASON": " New job is waiting for scheduling;", "EFFECTIVE_RESREQ": ""},
        {"JOBID": "806292", "ERROR": "Job <806292> is not found"},
        {"JOBID": "806293", "STAT": "PEND", "USER": "bob", "QUEUE": "batch", "SUBMIT_TIME": "yesterday"},
    ],
}  # fmt: skip


def test_json_of_lsf_10():
    skipped: list[str] = []
    text = "Cannot connect to LSF. Please wait ...\n" + json.dumps(TEN, indent=2)
    jobs = lsf_json.jobs(text, NOW, skipped)
    first = Job("806290", "ann", "batch", "ls -l", "RUN", at("04:32:00"), 6, 2048.0, at("04:40:00"), 86400.0)
    assert same(jobs[0], first._replace(hosts=(("hostA", 5), ("hostB", 1))))
    second = Job("806291[3]", "bob", "batch", "a[3]", "PEND", at("04:33:00"), 1, run_limit=600.0)
    assert same(jobs[1], second._replace(reason="New job is waiting for scheduling;"))
    assert len(jobs) == 2
    assert [json.loads(line)["JOBID"] for line in skipped] == ["806292", "806293"]
    rows = [{"HOST_NAME": "a", "STATUS": "ok", "MAX": "4", "NJOBS": "1"}, {"STATUS": "ok"}]
    hosts = json.dumps({"COMMAND": "bhosts", "HOSTS": 2, "RECORDS": rows})
    assert [host[:4] for host in lsf_json.hosts(hosts, skipped)] == [("a", "ok", 4, 1)]
    assert len(skipped) == 3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (json.dumps(TEN)[:-30], "cut off"),
        (json.dumps({**TEN, "JOBS": 7}), "4 records and says 7"),
        ("Please wait ...\n", "want an object with RECORDS"),
        ('{"RECORDS": 1}', "want an object with RECORDS"),
        ("{" + "[" * 100_000, "cut off"),
    ],
)
def test_json_that_is_cut_off_or_something_else(text, says):
    with pytest.raises(SchedulerError, match=says):
        lsf_json.jobs(text, NOW, [])


READERS = {
    "bjobs_u_all_w.txt": lambda text: lsf_text.wide_jobs(text, NOW, []),
    "bjobs_l_multihost.txt": lambda text: lsf_text.long_jobs(text, NOW, []),
    "bhosts_w_node_down.txt": lambda text: lsf_text.wide_hosts(text, []),
    "lshosts_w.txt": lambda text: lsf_text.capacities(text, []),
    "lsload_node_down.txt": lambda text: lsf_text.loads(text, []),
}


@pytest.mark.parametrize("name", READERS)
def test_output_that_is_cut_in_a_line_is_an_error(name):
    text = recorded(name)
    for end in (len(text) - 1, len(text) // 2, 5, 0):
        if not text[:end].endswith("\n"):
            with pytest.raises(SchedulerError, match="middle of a line"):
                READERS[name](text[:end])


def rows_or_error(read, text):
    """What a reader makes of a text; any other exception than its own error is raised."""
    try:
        return read(text)
    except SchedulerError as error:
        return str(error) or None


@given(st.sampled_from([*READERS, "json"]), st.text(max_size=300), st.integers(0, 2000), st.integers(0, 2000))
def test_no_text_gives_anything_but_rows_or_our_error(name, noise, begin, end):
    whole = json.dumps(TEN, indent=1) if name == "json" else recorded(name)
    read = READERS.get(name, lambda text: (lsf_json.jobs(text, NOW, []), lsf_json.hosts(text, [])))
    begin, end = sorted((begin % len(whole), end % len(whole)))
    for text in (noise, noise + "\n", whole[:begin] + noise + whole[end:], whole[:begin], whole[begin:]):
        assert rows_or_error(read, text) is not None


@given(st.text(alphabet="JobName <>[]0123456789:,MonNv\n ", max_size=400))
def test_noise_of_lsfs_own_letters_is_no_trouble_either(noise):
    for read in READERS.values():
        assert rows_or_error(read, f"Job <1>, {noise}\nJOBID {noise}\nHOST_NAME {noise}\n") is not None


def answers(log: str) -> list[LsfAnswer]:
    """The commands of a transcript, with what they printed."""
    found = []
    for part in re.split(r"^\[[\d:]+\] \w+@node1\$ ", recorded(log), flags=re.MULTILINE)[1:]:
        body, _, rest = part.partition("(exit ")
        command, *lines = body.splitlines()
        err = [line.removeprefix("(stderr) ") for line in lines if line.startswith("(stderr) ")]
        out = [line for line in lines if not line.startswith("(stderr) ")]
        code = int(rest.partition(")")[0])
        found.append(LsfAnswer(tuple(command.split()), code, "\n".join(out), "\n".join(err)))
    return found


def test_answers_of_the_transcripts_mean_what_they_say():
    seen = {" ".join(answer.words): answer for answer in answers("errors.log")}
    for words in ("btop 9999", "btop 18", "btop 2", "bmod -sp 50 2", "bmod -sp 50 18", "bmod -sp 50 9999"):
        assert seen[words].is_gone, words
    for words in ("btop 24", "bmod -sp 500 22", "bmod -sp 50 24", "bmod -sp 50 382", "brun -m node1 22"):
        answer = seen[words]
        assert answer.code == 255
        assert not any((answer.is_gone, answer.is_down, answer.is_empty)), words
    assert seen["btop 382"].code == 0
    assert seen["btop 382"].text == "Job <382> has been moved to position 1 from top."
    assert seen["brun 22"].is_unsupported
    refused = LsfAnswer(("bjobs",), 255, "", recorded("bjobs_json_unsupported.stderr"))
    assert refused.is_unsupported
    assert not refused.is_empty
    assert LsfAnswer(("bjobs",), 254, "", recorded("bjobs_none_unfinished.stderr")).is_empty
    assert LsfAnswer(("bjobs",), 255, "", recorded("bjobs_unknown_id.stderr")).is_gone
    down = LsfAnswer(("bjobs",), 254, "", "batch system daemon not responding ... still trying\n")
    assert down.is_down
    assert not down.is_empty


def test_the_listings_of_the_transcript_are_read_whole():
    for answer in answers("order.log"):
        if answer.words == ("bjobs", "-u", "all", "-w"):
            skipped: list[str] = []
            jobs = lsf_text.wide_jobs(answer.out + "\n", NOW, skipped)
            assert (len(jobs), skipped) == (len(answer.out.splitlines()) - 1, [])


def test_a_snapshot_counts_seconds_from_the_earliest_submit():
    waits = (Job("7", "u", "q", "a", "PEND", 1000.0, 2, run_limit=60.0), Job("8[2]", "u", "q", "b", "PEND", 1040.0))
    runs = (Job("5", "u", "q", "c", "RUN", 900.0, 3, start=950.0, run_limit=600.0),)
    hosts = (Host("h", "ok", 4, 3), Host("i", "closed_Adm", 4, 0))
    view = snapshot_of(State(1100.0, waits, runs, hosts), waits)
    assert (view.now, view.job.tolist(), view.submit.tolist()) == (200.0, [7, 8], [100.0, 140.0])
    assert (view.wait.tolist(), view.gpus.tolist()) == ([100.0, 60.0], [2, 1])
    assert view.run_time[0] == 60.0
    assert np.isnan(view.run_time[1])
    assert (view.running_start.tolist(), view.running_end.tolist()) == ([50.0], [650.0])
    assert (view.free.tolist(), view.capacity.tolist()) == ([1, 0], [4, 4])
    assert snapshot_of(State(1100.0, waits, runs, hosts), waits, 90.0).run_time.tolist() == [60.0, 90.0]
