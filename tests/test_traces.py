"""Readers: what they take, what they leave out, and how they complain."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.errors import BerthError, TraceError
from traces.formatted import FIELDS, write
from traces.parametric import SYNTHETIC, generate_parametric
from traces.read import read_trace

ROW = "j1,100,5,60,2,-1,-1,8,120,-1,1,ann,g,exe,q,p,-1,vcA,3"
OTHER = "j2,50,-1,30,0.5,-1,-1,-1,-1,-1,1,bob,-1,-1,-1,-1,-1,vcB,0"
SWF = "; MaxNodes: 64 (of 128)\n; MaxProcs: 128\n1 10 -1 100 4 -1 -1 8 200 -1 1 3 -1 -1 -1 -1 -1 -1\n"


def file(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_formatted_by_hand(tmp_path):
    trace = read_trace(file(tmp_path, f"{ROW}\n{OTHER}\n"))
    assert trace.job_id.tolist() == ["j2", "j1"], "sorted by submit time"
    assert trace.submit.tolist() == [50, 100]
    assert trace.run_time.tolist() == [30, 60]
    assert trace.gpus.tolist() == [1, 2]
    assert trace.gpu_fraction.tolist() == [0.5, 2]
    assert trace.request_time.tolist() == [-1, 120]
    assert trace.wait.tolist() == [-1, 5]
    assert trace.cpus.tolist() == [-1, 8]
    assert trace.user.tolist() == ["bob", "ann"]
    assert trace.vc.tolist() == ["vcB", "vcA"]
    assert trace.gpu_type.tolist() == ["T4", "V100_16GB"]
    assert trace.memory is None, "a column in which nothing is known"
    assert any("fraction" in sentence for sentence in trace.sentences())


def test_equal_submit_times_keep_the_order_of_the_file(tmp_path):
    rows = "\n".join(ROW.replace("j1", f"j{i}") for i in range(20))
    assert read_trace(file(tmp_path, rows)).job_id.tolist() == [f"j{i}" for i in range(20)]


@pytest.mark.parametrize(
    "text",
    [
        f"{ROW}\r\n{OTHER}\r\n",
        f"\ufeff{ROW}\n{OTHER}\n",
        f"; a comment\n\n{ROW}\n\n   \n; another\n{OTHER}",
        f"{','.join(FIELDS)}\n{ROW}\n{OTHER}\n",
        ROW.replace(",", " , ") + f"\n{OTHER}\n",
    ],
)
def test_what_editors_do_to_a_file_is_taken(tmp_path, text):
    trace = read_trace(file(tmp_path, text))
    assert trace.job_id.tolist() == ["j2", "j1"]
    assert trace.gpus.tolist() == [1, 2]


def test_gzip(tmp_path):
    assert len(read_trace(file(tmp_path, gzip.compress(ROW.encode()), "t.csv.gz"))) == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (ROW.replace("100", "x", 1), r"t.csv:2: submit_time = x, want a number >= 0"),
        (ROW.replace("100", "-5", 1), r"t.csv:2: submit_time = -5, want a number >= 0"),
        (ROW.replace("100", "nan", 1), r"t.csv:2: submit_time = nan"),
        (ROW.replace(",60,", ",inf,"), r"t.csv:2: run_time = inf, want a number <= 1e\+15"),
        (ROW.replace(",60,", ",-3,"), r"t.csv:2: run_time = -3"),
        (ROW.replace(",60,", ",-0.5,"), r"t.csv:2: run_time = -0.5"),
        (ROW.replace(",60,2,", ",60,0,"), r"t.csv:2: num_gpus = 0, want a number > 0"),
        (ROW.replace(",60,2,", ",60,,"), r"t.csv:2: num_gpus = , want"),
        (ROW.replace(",120,", ",soon,"), r"t.csv:2: request_time = soon"),
        (ROW + ",9", r"t.csv:2: 20 fields, want 19"),
        ("j1,5", r"t.csv:2: 2 fields, want 19"),
        (ROW.replace("j1", "j2"), r"t.csv:2: job_id = j2, want an id that is not on line 1 already"),
        (ROW.replace("j1", ""), r"t.csv:2: job_id = , want a name"),
    ],
)
def test_a_malformed_row_names_file_line_field_and_want(tmp_path, row, message):
    with pytest.raises(TraceError, match=message):
        read_trace(file(tmp_path, f"{OTHER}\n{row}\n"))


@pytest.mark.parametrize("count", ["10000000000", "2147483647.5", "1e12"])
def test_too_many_gpus_are_an_error_in_every_format(tmp_path, count):
    with pytest.raises(TraceError, match=r"num_gpus = .*, want a number > 0 and <= 10,000,000"):
        read_trace(file(tmp_path, ROW.replace(",60,2,", f",60,{count},")))
    with pytest.raises(TraceError, match=r"allocated_processors = .*, want a number <= 10,000,000"):
        read_trace(file(tmp_path, SWF.replace("100 4 -1", f"100 {count} -1"), "t.swf"))


def test_fractions_are_rounded_up_in_every_format(tmp_path):
    assert read_trace(file(tmp_path, SWF.replace("100 4 -1 -1 8", "100 0.5 -1 -1 -1"), "t.swf")).gpus.tolist() == [1]
    listed = read_trace(file(tmp_path, "job_id,arrival_s,service_sec,gpu_count\na,0,9,1.5\n"))
    assert (listed.gpus.tolist(), listed.gpu_fraction.tolist()) == ([2], [1.5])


def test_rows_out_of_scope_are_counted_and_said(tmp_path):
    rows = [ROW, ROW.replace("j1", "j3").replace(",60,", ",0,"), ROW.replace("j1", "j4").replace(",60,", ",-1,")]
    trace = read_trace(file(tmp_path, "\n".join(rows)))
    assert len(trace) == 1
    assert trace.left_out == {"run time 0": 1, "run time not known (-1)": 1}
    assert sum("left out" in sentence for sentence in trace.sentences()) == 2


@pytest.mark.parametrize("text", ["", "\n\n", "; only a comment\n", ROW.replace(",60,", ",0,")])
def test_nothing_in_it(tmp_path, text):
    with pytest.raises(TraceError, match="no jobs in it"):
        read_trace(file(tmp_path, text))


def test_files_that_are_none(tmp_path):
    with pytest.raises(TraceError, match="no such file"):
        read_trace(tmp_path / "missing.csv")
    with pytest.raises(TraceError, match="a folder"):
        read_trace(tmp_path)
    with pytest.raises(TraceError, match="cut off"):
        read_trace(file(tmp_path, gzip.compress((ROW + "\n").encode() * 100)[:-20], "t.gz"))
    with pytest.raises(TraceError, match="not a text file"):
        read_trace(file(tmp_path, b"\xff\xfe\x00abc"))
    with pytest.raises(TraceError, match="no known format; known: philly_log, formatted, swf"):
        read_trace(file(tmp_path, "what,is,this\n1,2,3\n"))
    with pytest.raises(TraceError, match="did you mean swf"):
        read_trace(file(tmp_path, ROW), "swff")


def test_swf_by_hand(tmp_path):
    rows = [
        SWF,
        "2 11 -1 0 4 -1 -1 8 200 -1 1 3 -1 -1 -1 -1 -1 -1\n",
        "3 12 -1 -1 -1 -1 -1 8 200 -1 5 3 -1 -1 -1 -1 -1 -1\n",
        "4 13 -1 -1 4 -1 -1 8 200 -1 0 3 -1 -1 -1 -1 -1 -1\n",
    ]
    trace = read_trace(file(tmp_path, "".join(rows), "t.swf"))
    assert trace.format == "SWF"
    assert trace.gpus.tolist() == [8], "max(allocated, requested)"
    assert trace.request_time.tolist() == [200]
    assert trace.machine == (64, 2)
    assert trace.left_out == {"cancelled before start": 1, "run time 0": 1, "run time not known (-1)": 1}
    with pytest.raises(TraceError, match=r"requested_processors = -1, want a number > 0"):
        read_trace(file(tmp_path, SWF.replace(" 4 -1 -1 8", " -1 -1 -1 -1"), "u.swf"))


def test_short_lists(tmp_path):
    venus = read_trace(file(tmp_path, "job_id,arrival_s,service_sec,gpu_count\na#1,0.0,9.0,2\nb,5.0,0.0,1\n"))
    assert venus.run_time.tolist() == [9]
    assert venus.left_out == {"run time 0": 1}
    head = "timestamp,duration,num_gpus,gpu_time,cluster\n"
    text = f"{head}2017-10-03 00:00:10,5.0,1,5.0,aa\n2017-10-03 00:00:00,7.0,8,56,bb\n"
    philly = read_trace(file(tmp_path, text))
    assert philly.submit.tolist() == [0, 10]
    assert philly.vc.tolist() == ["bb", "aa"]
    with pytest.raises(TraceError, match=r":2: timestamp = yesterday, want a time like"):
        read_trace(file(tmp_path, text.replace("2017-10-03 00:00:10", "yesterday")))


def test_written_files_read_back_the_same(tmp_path):
    trace = generate_parametric(SYNTHETIC, 500, seed=7)
    write(trace, tmp_path / "a.csv")
    again = read_trace(tmp_path / "a.csv")
    for column in ("submit", "run_time", "gpus", "user"):
        assert (getattr(trace, column) == getattr(again, column)).all()
    write(again, tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@given(st.data())
def test_mutated_files_get_an_answer_or_a_clear_error(tmp_path_factory, data):
    text = f"{ROW}\n{OTHER}\n{ROW.replace('j1', 'j3')}\n"
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        junk = data.draw(st.text(max_size=4) | st.sampled_from([",", "\n", "\x00", "1e400", "-", ";", '"']))
        text = text[:at] + junk + text[at + data.draw(st.integers(0, 3)) :]
    path = file(tmp_path_factory.mktemp("m"), text.encode("utf-8", "surrogatepass"))
    try:
        trace = read_trace(path)
    except BerthError as mistake:
        assert str(path) in str(mistake)
    else:
        assert (trace.run_time > 0).all()
        assert (trace.gpus >= 1).all()
        assert (np.diff(trace.submit) >= 0).all()


def test_real_files_are_read(real):
    assert len(read_trace(real / "helios/venus_gpu_jobs.csv.gz")) == 100_242
    assert len(read_trace(real / "philly/philly.csv.gz")) == 65_797
    kth = read_trace(real / "swf/KTH-SP2-1996-2.1-cln.swf.gz")
    assert len(kth) == 27_992
    assert kth.machine == (100, 1)
    ctc = read_trace(real / "swf/CTC-SP2-1996-3.1-cln.swf.gz")
    assert len(ctc) == 77_205
    assert sum(ctc.left_out.values()) == 17
    assert ctc.machine == (338, 1)
