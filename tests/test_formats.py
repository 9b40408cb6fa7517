"""The original formats of public traces: hand-checked values, what is left out, and what is refused."""

import csv
import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.errors import BerthError, TraceError
from tests.conftest import ROOT
from traces.read import FORMATS, read_trace
from traces.slurm import COMMAND

DATA = ROOT / "tests" / "data"

HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1,ann,vcA,8,64,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:42:01,2020-06-09 19:42:01,3600,60
2,bob,vcB,0,16,1,COMPLETED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0
3,bob,vcB,1,1,1,CANCELLED,2020-06-10 00:00:05,,,0,
4,ann,vcA,2,1,1,FAILED,2020-06-10 00:00:06,2020-06-10 00:00:06,2020-06-10 00:00:06,0,0
5,ann,vcA,2,1,1,TIMEOUT,2020-06-10 00:00:07,2020-06-10 00:00:09,2020-06-10 00:00:39,,2
"""

PHILLY = [
    {
        "status": "Pass", "vc": "vc1", "jobid": "app_1", "submitted_time": "2017-10-07 01:11:39", "user": "ann",
        "attempts": [
            {"start_time": "2017-10-07 01:12:09", "end_time": "2017-10-07 01:13:09",
             "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0", "gpu1"]}]},
            {"start_time": "2017-10-07 02:00:00", "end_time": "2017-10-07 02:00:40",
             "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]},
        ],
    },
    {"status": "Killed", "vc": "vc1", "jobid": "app_2", "submitted_time": "2017-10-08 00:00:00", "user": "bob",
     "attempts": []},
    {
        "status": "Failed", "vc": "vc2", "jobid": "app_3", "submitted_time": "2017-10-08 00:00:00", "user": "bob",
        "attempts": [
            {"start_time": "2017-10-08 00:00:01", "end_time": None, "detail": [{"ip": "m1", "gpus": ["gpu0"]}]},
        ],
    },
    {
        "status": "Failed", "vc": "vc2", "jobid": "app_4", "submitted_time": "2017-10-08 00:00:00", "user": "bob",
        "attempts": [{"start_time": "None", "end_time": "None", "detail": []}],
    },
]  # fmt: skip

TASKS = """\
j1,worker,2.0,Terminated,1000.0,1600.0,600.0,29.3,50.0,V100
j1,ps,1.0,Terminated,1000.0,1600.0,600.0,29.3,,
j2,worker,70.0,Failed,2000.0,2100.0,100.0,1.0,10.0,MISC
j3,worker,1.0,Waiting,,,600.0,29.3,100.0,T4
j4,worker,1.0,Running,3000.0,,600.0,29.3,100.0,T4
"""
JOBS = "j1,i1,ann,Terminated,900.0,1700.0\nj2,i2,bob,Failed,2500.0,2600.0\n"

PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,12000,16384,1,460,V100M16|V100M32,LS,Running,0,100,10
p1,8000,1024,8,1000,,BE,Succeeded,50,250,50
p2,8000,1024,0,0,,LS,Running,50,250,50
p3,8000,1024,1,1000,,BE,Pending,60,90,
"""

EXAMPLES = {
    "helios": HELIOS,
    "philly_log": json.dumps(PHILLY, indent=1),
    "pai_tasks": TASKS,
    "openb": PODS,
    "philly_passed": "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-03 00:00:10,5.0,1,5.0,aa\n",
    "arrivals": "job_id,arrival_s,service_sec,gpu_count\na,0,9,1.5\n",
    "pai_plain": "job_id,num_inst,submit_time,num_cpu,num_gpu,gpu_type,duration,user\n1,12.0,3,6.0,0.25,T4,15748,ann\n",
    "sacct": (DATA / "sacct_X.txt").read_text(),
    "jobcomp": (DATA / "jobcomp.log").read_text(),
}


def file(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_helios_by_hand(tmp_path):
    trace = read_trace(file(tmp_path, HELIOS))
    assert trace.format == "Helios cluster_log"
    assert trace.job_id.tolist() == ["1", "5"]
    assert trace.origin == "2020-06-09 00:00:00"
    assert trace.submit.tolist() == [18 * 3600 + 41 * 60 + 1, 86400 + 7]
    assert trace.run_time.tolist() == [3600, 30], "duration, or end - start where it is missing"
    assert trace.wait.tolist() == [60, 2]
    assert trace.gpus.tolist() == [8, 2]
    assert trace.user.tolist() == ["ann", "ann"]
    assert trace.vc.tolist() == ["vcA", "vcA"]
    assert trace.status.tolist() == ["COMPLETED", "TIMEOUT"]
    assert trace.left_out == {"CPU-only jobs": 1, "never started (no start time)": 1, "run time 0": 1}


def test_a_missing_submission_is_left_out_and_counted(tmp_path):
    trace = read_trace(
        file(tmp_path, HELIOS + "9,ann,vcA,1,1,1,FAILED,,2020-06-10 00:00:06,2020-06-10 00:00:16,10,0\n")
    )
    assert trace.left_out["no submit time"] == 1
    jobs = [PHILLY[0], json.loads(json.dumps(PHILLY[0])) | {"jobid": "x", "submitted_time": None}]
    assert read_trace(file(tmp_path, json.dumps(jobs))).left_out == {"no submission time": 1}


def test_columns_may_stand_in_another_order(tmp_path):
    rows = [line.split(",") for line in HELIOS.splitlines()]
    turned = "\n".join(",".join(["extra", *reversed(row)]) for row in rows)
    straight, reverse = read_trace(file(tmp_path, HELIOS)), read_trace(file(tmp_path, turned, "u.csv"))
    assert straight.run_time.tolist() == reverse.run_time.tolist()
    assert straight.user.tolist() == reverse.user.tolist()


def test_philly_log_by_hand(tmp_path):
    trace = read_trace(file(tmp_path, json.dumps(PHILLY), "cluster_job_log"))
    assert trace.job_id.tolist() == ["app_1"]
    assert trace.run_time.tolist() == [100], "the sum of the attempts"
    assert trace.gpus.tolist() == [4], "the largest attempt"
    assert trace.wait.tolist() == [30]
    assert trace.submit.tolist() == [3600 + 11 * 60 + 39]
    assert trace.left_out == {
        "never started (no attempts)": 1,
        "never started (an attempt has no start time)": 1,
        "no end time": 1,
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda jobs: jobs[0].pop("attempts"), "an entry without attempts, want an object with status"),
        (lambda jobs: jobs[0].update(submitted_time="soon"), 'submitted_time = "soon", want a time like'),
        (lambda jobs: jobs[0]["attempts"][0].update(end_time="late"), "want times like"),
        (
            lambda jobs: jobs[0]["attempts"][0].update(end_time="2017-10-06 00:00:00"),
            "attempts that end after they start",
        ),
        (lambda jobs: jobs[0]["attempts"][0].pop("detail"), "an attempt without a list of detail"),
        (lambda jobs: jobs[0].update(attempts=7), "attempts 7, want an object"),
        (lambda jobs: jobs.append(dict(jobs[0])), "want an id that is not on line 1 already"),
        (lambda jobs: jobs.insert(0, 5), "entry = 5, want an object"),
        (lambda jobs: jobs[0].update(jobid=None), "jobid = null, want a name"),
    ],
)
def test_malformed_entries_of_the_philly_log(tmp_path, change, message):
    jobs = json.loads(json.dumps(PHILLY))
    change(jobs)
    path = file(tmp_path, json.dumps(jobs), "log.json")
    with pytest.raises(TraceError, match=message) as raised:
        read_trace(path)
    assert f"{path}:1: " in str(raised.value)


def test_clocks_that_go_back_are_left_out_and_said(tmp_path):
    jobs = json.loads(json.dumps(PHILLY))
    jobs[0]["attempts"][0] |= {"start_time": "2017-11-05 01:50:00", "end_time": "2017-11-05 01:10:00"}
    jobs.append(json.loads(json.dumps(PHILLY[0])) | {"jobid": "other"})
    trace = read_trace(file(tmp_path, json.dumps(jobs), "log.json"))
    assert trace.job_id.tolist() == ["other"]
    assert trace.left_out["an attempt ends before it starts (clocks went back)"] == 1


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9, 0.999])
def test_json_that_is_cut_off(tmp_path, keep):
    text = json.dumps(PHILLY, indent=1)
    with pytest.raises(TraceError, match="cut off"):
        read_trace(file(tmp_path, text[: int(len(text) * keep)], "log.json"))


def test_pai_tasks_by_hand(tmp_path):
    trace = read_trace(file(tmp_path, TASKS, "pai_task_table.csv"))
    assert trace.job_id.tolist() == ["j1/worker", "j2/worker"]
    assert trace.gpu_fraction.tolist() == [1, 7], "inst_num × plan_gpu / 100, and 70 × 0.1 is 7"
    assert trace.gpus.tolist() == [1, 7]
    assert trace.cpus.tolist() == [12, 70]
    assert trace.run_time.tolist() == [600, 100]
    assert trace.submit.tolist() == [1000, 2000]
    assert trace.gpu_type.tolist() == ["V100_16GB", "MISC"]
    assert trace.user is None
    assert trace.left_out == {"CPU-only tasks": 1, "never started (no start time)": 1, "no end time": 1}
    assert any("no pai_job_table beside it" in sentence for sentence in trace.sentences())


@pytest.mark.parametrize("packed", [False, True])
def test_pai_job_table_gives_users_and_submission(tmp_path, packed):
    tasks = file(tmp_path, TASKS, "pai_task_table.csv")
    jobs = file(tmp_path, gzip.compress(JOBS.encode()) if packed else JOBS, "pai_job_table.csv" + packed * ".gz")
    for path in (tasks, jobs):
        trace = read_trace(path)
        assert trace.user.tolist() == ["ann", "bob"]
        assert trace.submit.tolist() == [900, 2000], "bob's submission is after the start: the start counts"
        assert trace.wait.tolist() == [100, -1]
    tasks.unlink()
    with pytest.raises(TraceError, match=r"no GPU counts; want pai_task_table.csv"):
        read_trace(jobs)


def test_malformed_rows_of_the_job_table_are_told_too(tmp_path):
    tasks = file(tmp_path, TASKS, "pai_task_table.csv")
    jobs = file(tmp_path, "j1,i1,ann,Terminated,abc,1700.0\nj2,i2,bob,Failed,0.0,2600.0\n", "pai_job_table.csv")
    with pytest.raises(TraceError, match=r"pai_job_table.csv:1: start_time = abc"):
        read_trace(tasks)
    trace = read_trace(tasks, skip_bad_rows=True)
    assert trace.skipped == (f"{jobs}:1: start_time = abc, want a number >= 0, or -1 where it is not known",)
    assert trace.submit.tolist() == [0, 1000], "a submission at second 0 is one"
    assert trace.user.tolist() == ["bob", "-1"]


def test_a_start_before_the_submission_is_counted(tmp_path):
    trace = read_trace(file(tmp_path, PODS.replace("0,100,10", "20,100,10")))
    assert trace.wait.tolist() == [-1, 0]
    assert any("1 job with a start before the submission" in sentence for sentence in trace.sentences())


def test_tiny_fractions_are_a_gpu(tmp_path):
    trace = read_trace(file(tmp_path, EXAMPLES["pai_plain"].replace("0.25", "1e-12")))
    assert trace.gpus.tolist() == [1]


def test_json_on_one_line_is_not_taken_for_columns(tmp_path):
    jobs = [PHILLY[1] | {"jobid": f"a{i}"} for i in range(10)]
    for count in range(1, 10):
        text = json.dumps([*jobs[:count], PHILLY[0]])
        assert read_trace(file(tmp_path, text)).format == "Philly cluster_job_log (JSON)"


@pytest.mark.parametrize("name", ["arrivals", "philly_passed", "helios", "pai_tasks", "pai_plain", "openb"])
def test_quoted_fields_are_recognised(tmp_path, name):
    rows = [line.split(",") for line in EXAMPLES[name].splitlines()]
    quoted = "\n".join(",".join(f'"{word}"' for word in row) for row in rows)
    assert (
        read_trace(file(tmp_path, quoted)).run_time.tolist()
        == read_trace(file(tmp_path, EXAMPLES[name])).run_time.tolist()
    )


def test_openb_by_hand(tmp_path):
    trace = read_trace(file(tmp_path, PODS))
    assert trace.job_id.tolist() == ["p0", "p1"]
    assert trace.gpu_fraction.tolist() == [0.46, 8]
    assert trace.gpus.tolist() == [1, 8]
    assert trace.run_time.tolist() == [90, 200]
    assert trace.wait.tolist() == [10, 0]
    assert trace.gpu_type.tolist() == ["V100M16|V100M32", "-1"]
    assert trace.left_out == {"CPU-only pods": 1, "never started (no scheduled time)": 1}
    assert any("1 job asks for a fraction" in sentence for sentence in trace.sentences())


def test_sacct_of_a_real_slurm():
    """Output of Slurm 22.05; what each job asked for and did is known, because we submitted it."""
    trace = read_trace(DATA / "sacct_X.txt")
    row = {job: i for i, job in enumerate(trace.job_id.tolist())}
    assert len(trace) == 51
    assert trace.left_out == {
        "CPU-only jobs": 6,
        "earlier runs of jobs that were requeued": 1,
        "never started (no start time)": 5,
        "no end time (still running)": 4,
    }
    expected = {  # job -> GPUs, run time, requested time, state, user
        "1": (1, 70, 60, "TIMEOUT", "alice"),
        "6": (1, 8, 86400, "COMPLETED", "alice"),
        "8": (2, 6, 660, "COMPLETED", "bob"),
        "13": (8, 6, 900, "COMPLETED", "bob"),
        "14": (8, 5, -1, "COMPLETED", "alice"),
        "15": (16, 4, 1800, "COMPLETED", "bob"),
        "22": (4, 3, 300, "COMPLETED", "bob"),
        "27_3": (1, 4, 300, "COMPLETED", "alice"),
        "29+1": (2, 8, 300, "COMPLETED", "carol"),
        "53": (1, 15, 300, "COMPLETED", "carol"),
        "67": (1, 8, -1, "CANCELLED", "alice"),
    }
    for job, (gpus, run_time, limit, state, user) in expected.items():
        i = row[job]
        found = (trace.gpus[i], trace.run_time[i], trace.request_time[i], trace.status[i], trace.user[i])
        assert found == (gpus, run_time, limit, state, user), job
    assert trace.executable[row["25"]] == "my job, a|b v1", "sacct does not escape its separator"
    assert set(trace.gpu_type) == {"v100"}
    assert trace.memory[row["46"]] == 1500


def test_sacct_with_duplicates_and_jobcomp_tell_the_same():
    plain, duplicates, jobcomp = (read_trace(DATA / name) for name in ("sacct_X.txt", "sacct_dup.txt", "jobcomp.log"))
    assert duplicates.left_out["earlier runs of jobs that were requeued"] == 3
    assert duplicates.left_out["job steps"] == 71
    assert sorted(plain.job_id) == sorted(duplicates.job_id)
    assert jobcomp.left_out["earlier runs of jobs that were requeued"] == 3
    assert len(jobcomp) == len(plain) == 51
    simple = {job: i for i, job in enumerate(plain.job_id.tolist()) if job.isdecimal() and job not in ("22", "53")}
    row = {job: i for i, job in enumerate(jobcomp.job_id.tolist())}
    assert len(simple) == 40
    for job, i in simple.items():
        for column in ("submit", "run_time", "gpus", "wait", "user"):
            assert getattr(plain, column)[i] == getattr(jobcomp, column)[row[job]], (job, column)


def test_the_command_for_sacct_is_in_the_documents():
    assert COMMAND in (ROOT / "docs/formats.md").read_text()


@pytest.mark.parametrize("field", ["AllocTRES", "ReqTRES"])
def test_sacct_with_a_gpu_count_that_is_none(tmp_path, field):
    row = "1|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T00:01:00|cpu=1,gres/gpu={}"
    head = f"JobID|Submit|Start|End|{field}\n"
    assert read_trace(file(tmp_path, head + row.format(2))).gpus.tolist() == [2]
    with pytest.raises(TraceError, match=rf":2: {field} = cpu=1,gres/gpu=x, want gres/gpu=N"):
        read_trace(file(tmp_path, head + row.format("x")))


def test_sacct_that_was_asked_for_too_little(tmp_path):
    with pytest.raises(TraceError, match=r"without Submit, Start, End, AllocTRES; want that of: sacct --allusers"):
        read_trace(file(tmp_path, "JobID|JobName|State\n1|a|COMPLETED\n"))
    with pytest.raises(TraceError, match="is of no known format"):
        read_trace(file(tmp_path, "1|alice|2026-11-16T11:54:50\n"))


ROWS = {
    "helios": (
        HELIOS,
        "6,ann,vcA,{},1,1,COMPLETED,{},2020-06-09 18:41:01,2020-06-09 18:42:01,{},0",
        ("1", "2020-06-09 18:41:01", "60"),
    ),
    "pai_tasks": (TASKS, "j9,worker,{},Terminated,{},1600.0,600.0,29.3,50.0,V100{}", ("1.0", "1000.0", "")),
    "openb": (PODS, "p9,12000,16384,{},460,,LS,Running,{},100,{}", ("1", "0", "10")),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("junk", ["x", "-5", "inf", "1e400", "1_000"])
def test_malformed_rows_are_named_or_skipped(tmp_path, name, at, junk):
    text, row, good = ROWS[name]
    values = [junk if i == at else word for i, word in enumerate(good)]
    path = file(tmp_path, text + row.format(*values) + "\n")
    line = text.count("\n") + 1
    with pytest.raises(TraceError, match=rf":{line}: .* = {junk}, want "):
        read_trace(path)
    skipping = read_trace(path, skip_bad_rows=True)
    assert len(skipping) == 2
    assert len(skipping.skipped) == 1
    assert skipping.skipped[0].startswith(f"{path}:{line}: ")
    sentences = skipping.sentences()
    assert any("1 malformed row skipped" in sentence for sentence in sentences)
    assert any(junk in sentence for sentence in sentences)


def test_all_bad_rows_are_counted_and_the_first_is_named(tmp_path):
    text = HELIOS + "7,a,b,c\n" + "8,ann,vcA,x,1,1,COMPLETED,y,z,2020-06-09 18:42:01,1,0\n"
    with pytest.raises(TraceError, match=r":7: 4 fields, want 12 .* \(1 more malformed row; --skip_bad_rows"):
        read_trace(file(tmp_path, text))
    assert len(read_trace(file(tmp_path, text), skip_bad_rows=True).skipped) == 2


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_format_is_recognised_and_takes_what_editors_do(tmp_path, name):
    text = EXAMPLES[name]
    plain = read_trace(file(tmp_path, text))
    assert read_trace(file(tmp_path, text), name).format == plain.format
    variants = [text.replace("\n", "\r\n"), "\ufeff" + text, gzip.compress(text.encode())]
    if name != "philly_log":
        variants.append(text.replace("\n", "\n\n   \n"))
    for variant in variants:
        other = read_trace(file(tmp_path, variant, "other"))
        assert other.job_id.tolist()[0] == plain.job_id.tolist()[0] or name == "philly_passed"
        assert other.run_time.tolist() == plain.run_time.tolist()
        assert other.submit.tolist() == plain.submit.tolist()


@pytest.mark.parametrize("name", EXAMPLES)
def test_nothing_in_it(tmp_path, name):
    for text in ("", "\n \n", EXAMPLES[name].split("\n", 1)[0] if "header" in name else ""):
        with pytest.raises(TraceError, match="no jobs in it"):
            read_trace(file(tmp_path, text), name)


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_of_another_format_is_refused_in_one_line(tmp_path, name):
    for text in ("a,b\n1,2\n", "hello\n", "[]", "{}", "1|2|3\n", "=\n", '"\n'):
        with pytest.raises(TraceError) as raised:
            read_trace(file(tmp_path, text), name)
        assert str(tmp_path) in str(raised.value)


def test_archives_are_named(tmp_path):
    with pytest.raises(TraceError, match="a zip archive"):
        read_trace(file(tmp_path, b"PK\x03\x04 and so on", "a.zip"))
    tar = b"x" * 257 + b"ustar" + b"\x00" * 250
    with pytest.raises(TraceError, match="a tar archive, want one of the files in it"):
        read_trace(file(tmp_path, gzip.compress(tar), "a.tar.gz"))


@pytest.mark.parametrize("name", EXAMPLES)
@given(data=st.data())
def test_mutated_files_get_an_answer_or_a_clear_error(tmp_path_factory, name, data):
    text = EXAMPLES[name][:3000]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        junk = data.draw(
            st.text(max_size=4) | st.sampled_from([",", "\n", "\x00", "1e400", "-", "|", '"', "None", "nan", "[", "="])
        )
        text = text[:at] + junk + text[at + data.draw(st.integers(0, 40)) :]
    path = file(tmp_path_factory.mktemp("m"), text.encode("utf-8", "surrogatepass"))
    skip = data.draw(st.booleans())
    for form in ("", name):
        try:
            trace = read_trace(path, form, skip)
        except BerthError as mistake:
            assert str(path) in str(mistake)
            assert "\n" not in str(mistake)
        else:
            assert (trace.run_time > 0).all()
            assert (trace.gpus >= 1).all()
            assert (trace.submit >= 0).all()
            assert (np.diff(trace.submit) >= 0).all()
            assert len(set(trace.job_id.tolist())) == len(trace)


def test_fixtures_by_hand(real, tmp_path):
    helios = read_trace(real / "fixtures/helios_cluster_log_example.csv")
    assert helios.run_time.tolist() == [36848, 249, 675233]
    assert helios.gpus.tolist() == [1, 4, 1]
    assert (helios.submit - helios.submit[0]).tolist() == [0, 26, 27]
    philly = read_trace(real / "fixtures/philly_cluster_job_log_example.json")
    assert philly.run_time.tolist() == [74 + (2 * 86400 + 5 * 3600 + 39 * 60 + 42)]
    assert (philly.gpus.tolist(), philly.wait.tolist(), philly.vc.tolist()) == ([8], [30], ["ee9e8c"])
    plain = read_trace(real / "fixtures/pai_job_no_estimate_100K_head5.csv")
    assert plain.gpu_fraction.tolist() == [3, 1, 1, 1], "12 instances of a quarter"
    assert plain.left_out == {"CPU-only jobs": 1}
    told = read_trace(real / "fixtures/pai_job_duration_estimate_100K_head30.csv")
    assert len(told) == 27
    row = told.job_id.tolist().index("131")
    assert (told.gpu_fraction[row], told.gpus[row], told.run_time[row], told.wait[row]) == (12.5, 13, 39813, 3)
    assert told.request_time[row] == 7149
    spot = read_trace(real / "fixtures/spot2026_job_info_df_example.csv")
    assert spot.gpus.tolist() == [1, 1, 16, 94]
    assert spot.cpus.tolist() == [20, 8, 240, 1410]
    with (real / "fixtures/pai_tables_example_rows.csv").open() as rows:
        for table, _, row in list(csv.reader(rows))[1:3]:
            file(tmp_path, row + "\n", f"{table}.csv")
    task = read_trace(tmp_path / "pai_task_table.csv")
    assert (task.gpu_fraction.tolist(), task.gpus.tolist(), task.run_time.tolist()) == ([0.5], [1], [38])
    assert (task.cpus.tolist(), task.memory.tolist(), task.gpu_type.tolist()) == ([6], [29.296875], ["MISC"])


def test_real_openb(real):
    pods = read_trace(real / "alibaba_openb2023/openb_pod_list_default.csv")
    assert len(pods) == 8152 - 1088 - 861
    assert pods.left_out == {"CPU-only pods": 1088, "never started (no scheduled time)": 861}
