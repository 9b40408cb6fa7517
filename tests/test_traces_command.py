"""python -m traces, as a user runs it."""

import dataclasses
import gzip
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp, spearmanr

from berth.errors import TraceError
from envs.clusters import find_cluster
from envs.validate import validate
from tests.conftest import ROOT, make_trace
from traces.compare import compare, history, ks, last_mean
from traces.describe import describe
from traces.formatted import write
from traces.parquet import write_parquet
from traces.read import read_trace

SAMPLE = ROOT / "GPU_Traces" / "Philly_Formatted_withGPUType.csv"


def run(*words, cwd=ROOT):
    return subprocess.run(
        [sys.executable, "-m", "traces", *map(str, words)], cwd=cwd, capture_output=True, text=True, check=False
    )


def same(one, other):
    assert one.columns() == other.columns()
    for column in one.columns():
        a, b = getattr(one, column), getattr(other, column)
        assert a.dtype == b.dtype, column
        assert a.tolist() == b.tolist(), column


@pytest.mark.parametrize("name", ["Philly", "Helios", "Alibaba"])
def test_formatted_files_come_back_byte_for_byte(tmp_path, name):
    path = ROOT / "GPU_Traces" / f"{name}_Formatted_withGPUType.csv"
    done = run("convert", path, "-o", tmp_path / "out.csv")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.csv").read_bytes() == path.read_bytes()


def test_parquet_keeps_all(tmp_path):
    for source in ("tests/data/sacct_X.txt", "tests/data/jobcomp.log", SAMPLE):
        trace = read_trace(ROOT / source)
        trace = dataclasses.replace(
            trace, notes=("a note",), skipped=("x:1: bad",), machine=(3, 4), submit=trace.submit + 0.1
        )
        write_parquet(trace, tmp_path / "t.parquet")
        again = read_trace(tmp_path / "t.parquet")
        same(trace, again)
        for told in ("format", "left_out", "origin", "notes", "skipped", "machine"):
            assert getattr(trace, told) == getattr(again, told)


def test_parquet_that_is_none(tmp_path):
    trace = read_trace(SAMPLE)
    write_parquet(trace, tmp_path / "t.parquet")
    raw = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(raw[: len(raw) // 2])
    with pytest.raises(TraceError, match="cut off Parquet"):
        read_trace(tmp_path / "cut.parquet")
    import pandas

    pandas.DataFrame({"a": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(TraceError, match="Parquet file of others"):
        read_trace(tmp_path / "other.parquet")


names = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Z")), min_size=1, max_size=6).filter(
    lambda word: word == word.strip() and word not in ("0", "1", "2", "3", "4")
)
seconds = st.floats(0, 1e6) | st.integers(0, 10**6).map(float)


@given(
    jobs=st.lists(
        st.tuples(seconds, st.floats(0.001, 1e6), st.floats(0.01, 64), names, names, st.floats(0, 1e5)),
        min_size=1,
        max_size=6,
    )
)
def test_written_traces_read_back_exactly_and_byte_for_byte(tmp_path_factory, jobs):
    folder = tmp_path_factory.mktemp("w")
    submit, run_time, gpus, user, kind, request = zip(*jobs, strict=True)
    trace = make_trace(
        submit, run_time, np.ceil(gpus), user=user, gpu_type=kind, gpu_fraction=gpus, request_time=request
    )
    write(trace, folder / "a.csv")
    again = read_trace(folder / "a.csv", "formatted")
    same(trace, again)
    write(again, folder / "b.csv")
    assert (folder / "a.csv").read_bytes() == (folder / "b.csv").read_bytes()


def test_parquet_that_others_edited(tmp_path):
    trace = make_trace([0, 1], [5, 6], [1, 2])
    for changes, message in (
        ({"run_time": np.array([5.0, np.nan])}, "run_time, want numbers > 0"),
        ({"run_time": np.array(["a", "b"], object)}, "run_time is a column of object"),
        ({"submit": np.array([0.0, np.inf])}, "submit, want numbers from 0"),
        ({"gpus": np.array([0, 1])}, "gpus, want whole numbers from 1"),
        ({"job_id": np.array(["a", "a"], object)}, "job_id, want every one once"),
    ):
        broken = dataclasses.replace(trace)
        for column, values in changes.items():
            object.__setattr__(broken, column, values)
        write_parquet(broken, tmp_path / "t.parquet")
        with pytest.raises(TraceError, match=message):
            read_trace(tmp_path / "t.parquet")
    write_parquet(trace.select(slice(0, 0)), tmp_path / "t.parquet")
    with pytest.raises(TraceError, match="no jobs in it"):
        read_trace(tmp_path / "t.parquet")
    write_parquet(trace, tmp_path / "t.parquet")
    with pytest.raises(TraceError, match="a Parquet file, want it without --format helios"):
        read_trace(tmp_path / "t.parquet", "helios")


def test_names_with_commas_quotes_and_escapes(tmp_path):
    trace = make_trace([0, 1], [5, 6], [1, 2], user=["a,b", 'say "x"'])
    trace = dataclasses.replace(trace, executable=np.array(["\x1b[31mred", "two\r\nlines"], object))
    write(trace, tmp_path / "t.csv")
    again = read_trace(tmp_path / "t.csv")
    assert again.user.tolist() == ["a,b", 'say "x"']
    assert again.executable.tolist() == ["\x1b[31mred", "two lines"]
    write(dataclasses.replace(again, user=np.array(["\x1b[31mred", "b"], object)), tmp_path / "u.csv")
    done = run("describe", tmp_path / "u.csv")
    assert "\x1b" not in done.stdout
    assert "\\x1b[31mred" in done.stdout


def test_centuries_are_drawn_in_a_moment(tmp_path):
    write(make_trace([0, 1e15], [5, 6], [1, 2]), tmp_path / "t.csv")
    for words in (("describe", tmp_path / "t.csv"), ("compare", tmp_path / "t.csv", tmp_path / "t.csv")):
        done = run(*words, "--plot", tmp_path / "p.png")
        assert done.returncode == 0, done.stderr


def test_one_job_is_drawn(tmp_path):
    write(make_trace([0], [5], [1]), tmp_path / "one.csv")
    done = run("compare", tmp_path / "one.csv", SAMPLE, "--plot", tmp_path / "p.png")
    assert done.returncode == 0, done.stderr


def test_thin_first_days_can_be_left_out(tmp_path):
    days = [0, 86400.0] + [86400 * 5 + 600.0 * i for i in range(500)]
    write(make_trace(days, [60] * 502, [1] * 502), tmp_path / "t.csv")
    done = run("compare", "--trim", tmp_path / "t.csv", tmp_path / "t.csv")
    assert done.returncode == 0, done.stderr
    assert "2 jobs of thin first days left out" in done.stdout


def test_waits_of_nothing(tmp_path):
    words = ("--cluster", "philly", "--load", 0.01, "--windows", 2, "--window", 100)
    done = run("compare", SAMPLE, SAMPLE, *words)
    assert done.returncode == 0, done.stderr
    assert "fcfs : sjf" in done.stdout


def test_a_full_disk_and_a_poor_terminal(tmp_path):
    limited = f"ulimit -f 1; {sys.executable} -m traces convert {SAMPLE} -o {tmp_path}/o.csv"
    done = subprocess.run(["bash", "-c", limited], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
    done = subprocess.run(
        [sys.executable, "-m", "traces", "describe", str(SAMPLE)], cwd=ROOT, capture_output=True, check=False,
        env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_describe(tmp_path):
    done = run("describe", SAMPLE, "--plot", tmp_path / "d.png")
    assert done.returncode == 0, done.stderr
    for word in ("jobs/h", "Run times", "Hour of day", "users", "What is missing", "request_time"):
        assert word in done.stdout
    assert (tmp_path / "d.png").stat().st_size > 20_000


def test_describe_by_hand():
    trace = make_trace([0, 0, 3600, 90_000], [10, 20, 30, 40], [1, 1, 2, 8], user=["a", "a", "-1", "b"])
    tables = {section.title: dict((row[0], row[1:]) for row in section.rows) for section in describe(trace)}
    assert tables["The trace"]["arrivals"] == ("0.16 jobs/h",)
    assert tables["The trace"]["jobs in the second of the one before"] == ("33.3%",)
    assert tables["GPUs"]["8"] == ("25.00%", "78.05%"), "320 of 410 GPU-seconds"
    assert tables["Hour of day"]["01"][0] == "50.00%"
    assert tables["Names"]["users"] == ("2", "a 50.0%, b 25.0%")
    assert tables["What is missing"]["user"] == ("1 of 4 jobs",)


def test_one_job_is_described_and_compared():
    one = make_trace([5], [10], [1])
    assert describe(one)
    assert compare(one, one)


def test_compare_against_an_obvious_reference():
    rng = np.random.default_rng(1)
    group = rng.integers(0, 4, 300)
    values = rng.exponential(10, 300)
    obvious = []
    for i in range(300):
        before = [values[j] for j in range(i) if group[j] == group[i]][-10:]
        obvious.append(np.mean(before) if before else np.nan)
    assert np.allclose(last_mean(group, values, 10), obvious, equal_nan=True)
    trace = make_trace(np.arange(300), values, group + 1, user=[f"u{g}" for g in group])
    told = ~np.isnan(obvious)
    assert history(trace, ("gpus",)) == pytest.approx(spearmanr(np.array(obvious)[told], values[told]).statistic)
    assert history(trace, ("user", "gpus")) == pytest.approx(history(trace, ("gpus",)))
    assert history(trace, ("vc", "gpus")) is None
    assert ks(values, values[:100]) == pytest.approx(ks_2samp(values, values[:100]).statistic)
    assert all(row.distance in (0, None) for row in compare(trace, trace))


def test_compare(tmp_path):
    other = ROOT / "GPU_Traces" / "synthetic_trace.csv"
    done = run(
        "compare", SAMPLE, other, "--plot", tmp_path / "c.png", "--cluster", "philly", "--windows", 2, "--window", 500
    )
    assert done.returncode == 0, done.stderr
    for word in ("KS run time", "KS inter-arrival time", "last ten jobs", "fcfs : sjf"):
        assert word in done.stdout
    assert (tmp_path / "c.png").stat().st_size > 20_000


def test_validate_by_hand():
    trace = make_trace(
        [0, 0, 10, 200_000], [100, 100, 100, 1], [8, 8, 500, 1], wait=[0, 50, -1, 0], request_time=[50, 200, 200, 200]
    )
    found = {one.what: (one.level, one.text) for one in validate(trace, find_cluster("philly"))}
    assert found["oversize jobs"] == ("contradiction", "1 job can never fit, up to 500 GPUs: 2")
    assert found["GPUs in use"][1].startswith("at most 16 at once")
    assert found["time gaps"] == ("note", "1 gap of over a day; the longest, 2.3 days, before 3")
    assert found["ties"][1].startswith("2 jobs (50.0%) share their second, up to 2")
    assert found["requested times"] == ("note", "1 job ran longer than requested")
    assert found["demand"][0] == "ok"


def test_validate_names_and_over_capacity():
    trace = make_trace([0, 1], [1e6, 1e6], [100, 100], vc=["vcJsw", "nowhere"], wait=[0, 0])
    found = {one.what: one for one in validate(trace, find_cluster("helios"), "production")}
    assert found["names of pools"].level == "contradiction"
    assert "nowhere" in found["names of pools"].text
    many = make_trace([0] * 200, [10] * 200, [8] * 200, wait=[0] * 200)
    found = {one.what: one for one in validate(many, find_cluster("philly"))}
    assert found["GPUs in use"] == ("contradiction", "GPUs in use", found["GPUs in use"].text)
    assert "at most 1,600 at once" in found["GPUs in use"].text


def test_exit_code_of_validate(tmp_path):
    assert run("validate", SAMPLE, "--cluster", "philly").returncode == 0
    write(make_trace([0, 1], [5, 5], [1, 5000]), tmp_path / "t.csv")
    done = run("validate", tmp_path / "t.csv", "--cluster", "philly")
    assert done.returncode == 1
    assert "contradiction" in done.stdout


def test_bad_rows_are_listed_or_stop_the_work(tmp_path):
    text = SAMPLE.read_text().split("\n")[:20]
    text[7] = text[7].replace(",", ",x", 1)
    path = tmp_path / "bad.csv"
    path.write_text("\n".join(text))
    out = tmp_path / "out.csv"
    out.write_text("precious")
    done = run("convert", path, "-o", out)
    assert done.returncode == 2
    assert f"error: {path}:8: submit_time = x" in done.stderr
    assert out.read_text() == "precious", "nothing is lost when nothing can be written"
    done = run("convert", "--skip-bad-rows", path, "-o", out)
    assert done.returncode == 0, done.stderr
    assert "1 malformed row skipped" in done.stdout
    assert f"{path}:8: submit_time = x" in done.stdout
    assert len(out.read_text().splitlines()) == 19


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("descirbe",), "did you mean describe"),
        (("describe",), "FILE"),
        (("describe", "nowhere.csv"), "nowhere.csv: no such file"),
        (("describe", SAMPLE, "extra"), "one word too many"),
        (("describe", SAMPLE, "--plot", "x.pdf"), "ends in .png"),
        (("describe", SAMPLE, "--format", "helois"), "did you mean helios"),
        (("convert", SAMPLE), "want -o OUT.csv"),
        (("convert", SAMPLE, "-o", "x.txt"), "ends in .csv or .parquet"),
        (("convert", SAMPLE, "-o", SAMPLE), "that is the file to be read"),
        (("compare", SAMPLE), "B"),
        (("compare", SAMPLE, SAMPLE, "--cluster", "philly", "--window", "50000"), "want at least 50,000 for a window"),
        (("compare", SAMPLE, SAMPLE, "--cluster", "nope"), "cluster nope"),
        (("compare", SAMPLE, SAMPLE, "--cluster", "philly", "--load", "nan"), "--load nan: want a number"),
        (("convert", SAMPLE, "-o", f"{'x' * 300}.csv"), "File name too long"),
        (("validate", SAMPLE), "want --cluster"),
        (("validate", SAMPLE, "--cluster", "phily"), "did you mean philly"),
        (("validate", SAMPLE, "--cluster", "philly", "--topology", "x"), "has testbed, production"),
        (("validate", SAMPLE, "--cluster", SAMPLE), "want a machine list of"),
    ],
)
def test_mistakes_are_answered_in_one_line(words, message):
    done = run(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_help():
    done = run("--help")
    assert done.returncode == 0
    for command in ("describe", "convert", "compare", "validate", "fit", "generate", "samples"):
        assert f"python -m traces {command}" in done.stdout
        assert "--" in run(command, "--help").stdout


@pytest.mark.parametrize(
    ("path", "gpus", "pools"),
    [
        ("philly/cluster_machine_list.csv", 2490, 1),
        ("alibaba_pai2020/pai_machine_spec.csv", 6742, 5),
        ("alibaba_openb2023/openb_node_list_gpu_node.csv", 6212, 1),
        ("helios/Venus_cluster_gpu_number.csv", 1080, 16),
    ],
)
def test_machine_lists_are_clusters(real, tmp_path, path, gpus, pools):
    packed = tmp_path / "machines.csv.gz"
    packed.write_bytes(gzip.compress((real / path).read_bytes()))
    for file in (real / path, packed):
        found = find_cluster(str(file)).topology("file")
        assert sum(sum(pool.capacity) for pool in found) == gpus
        assert len(found) == pools


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "begins with nothing, want a machine list"),
        ("a,b\n1,2\n", "want a machine list of philly, openb"),
        ("sn,cpu_milli,memory_mib,gpu,model\nn1,1,1,x,T4\n", ":2: gpu = x, want a number >= 0"),
        ("sn,cpu_milli,memory_mib,gpu,model\nn1,1,1,2.5,T4\n", ":2: gpu = 2.5, want a whole number"),
        ("sn,cpu_milli,memory_mib,gpu,model\nn1,1,1,2,T4\nn1,1,1,2,T4\n", "not on line 2 already"),
        ("sn,cpu_milli,memory_mib,gpu,model\nn1,1,1,0,\n", "no machine with a GPU"),
        ("date,vcA,total\n", "no day in it"),
        ("date,vcA,total\n2020-04-01,12,12\n", "vcA = 12, want a multiple of 8"),
        ("date,vcA,total\nxx,16,16\n", "date = xx, want a time"),
    ],
)
def test_malformed_machine_lists(tmp_path, text, message):
    path = tmp_path / "machines.csv"
    path.write_text(text)
    with pytest.raises(TraceError, match=message):
        find_cluster(str(path))


def test_the_latest_day_of_helios_counts(tmp_path):
    path = tmp_path / "gpus.csv"
    path.write_text("date,vcA,vcB,total\n2020-04-02,16,0,16\n2020-04-01,8,8,16\n")
    assert [(pool.name, pool.nodes) for pool in find_cluster(str(path)).topology("file")] == [("vcA", ((2, 8),))]
