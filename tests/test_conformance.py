"""A published table, to every digit: RLScheduler (SC'20), tables V and VI, Lublin-1."""

import csv
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.conformance import POLICIES, Config, Result, read_jobs, run_sequence, start_indices, table_of
from benchmarks.conformance import known_keys as keys_of
from envs.metrics import bounded_slowdown
from legacy.rlscheduler import Job, play
from tests.conftest import ROOT

PUBLISHED = {  # (bounded slowdown, with backfilling, utilization, with backfilling)
    "fcfs": (7273.771, 235.817, 0.657, 0.868),
    "wfp3_published": (19753.528, 133.874, 0.747, 0.864),
    "unicep_published": (22274.745, 307.233, 0.691, 0.883),
    "sjf": (277.348, 73.306, 0.762, 0.778),
    "f1": (258.366, 75.068, 0.816, 0.840),
}
PER_SEQUENCE = [6862.26, 7034.45, 9090.84, 5405.50, 7847.37, 6366.98, 7655.81, 7535.14, 10071.42, 4867.95]
STARTS = [1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085]


def test_start_indices():
    assert list(start_indices(1, 1024, 10_000, 10)) == STARTS


def test_all_twenty_cells(real, tmp_path):
    out = tmp_path / "out.csv"
    command = [
        sys.executable,
        "benchmarks/conformance.py",
        str(real / "swf/lublin_256.swf"),
        "--len",
        "1024",
        "--iter",
        "10",
    ]
    done = subprocess.run(
        [*command, "--seed", "1", "--csv", str(out)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "7273.771" in done.stdout
    rows = list(csv.DictReader(out.open()))
    assert list(rows[0]) == ["policy", "backfill", "metric", "value"]
    assert {row["policy"] for row in rows} == set(POLICIES)
    scores = {(row["policy"], row["backfill"], row["metric"]): row["value"] for row in rows}
    assert len(scores) == 4 * len(POLICIES)
    for policy, (bsld, bsld_bf, util, util_bf) in PUBLISHED.items():
        assert float(scores[policy, "0", "bsld"]) == pytest.approx(bsld, abs=0.00051)
        assert float(scores[policy, "1", "bsld"]) == pytest.approx(bsld_bf, abs=0.00051)
        assert float(scores[policy, "0", "utilization"]) == pytest.approx(util, abs=0.00051)
        assert float(scores[policy, "1", "utilization"]) == pytest.approx(util_bf, abs=0.00051)
    assert float(scores["wfp3", "0", "bsld"]) == pytest.approx(337.3, abs=0.051)
    assert float(scores["unicep", "0", "bsld"]) == pytest.approx(381.7, abs=0.051)


def test_every_sequence(real):
    log = read_jobs(real / "swf/lublin_256.swf")
    keys = keys_of("fcfs", log)
    got = [run_sequence(log, slice(at, at + 1024), "fcfs", keys, False).bsld for at in STARTS]
    assert [round(value, 2) for value in got] == PER_SEQUENCE


def test_other_logs_run(real):
    """The first 10,000 jobs of KTH, whose users' estimates are not the run times."""
    scores = table_of(read_jobs(real / "swf/KTH-SP2-1996-2.1-cln.swf.gz"), Config(len=256, iter=3, max_jobs=10_000))
    assert scores["fcfs", 1].bsld < scores["fcfs", 0].bsld
    assert all(isinstance(score, Result) and 0 < score.utilization <= 1 for score in scores.values())


def test_whole_nodes_are_taken(tmp_path):
    """3 processors on nodes of 2 take 2 nodes; the second such job has to wait for a 3-node machine."""
    rows = "".join(f"{i} {i} -1 100 3 -1 -1 3 -1 -1 1 1 1 -1 -1 -1 -1 -1\n" for i in range(1, 3))
    path = tmp_path / "t.swf"
    path.write_text(f"; MaxProcs: 6\n; MaxNodes: 3\n{rows}")
    log = read_jobs(path)
    assert log.taken.tolist() == [2, 2]
    assert run_sequence(log, slice(0, 2), "fcfs", keys_of("fcfs", log), False).bsld == pytest.approx(
        (1 + 199 / 100) / 2
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.swf"], "no such file"),
        ([], "want an SWF file first"),
        (["{log}", "--len", "5000"], "too few for sequences"),
        (["{log}", "--max-jobs", "2000"], "too few for sequences"),
        (["{log}", "--lenght", "5"], "did you mean --len"),
        (["{log}", "--len", "x"], "wanted a whole number"),
    ],
)
def test_mistakes(real, words, message):
    words = [word.format(log=real / "swf/lublin_256.swf") for word in words]
    done = subprocess.run(
        [sys.executable, "benchmarks/conformance.py", *words], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("backfill", [False, True])
@pytest.mark.parametrize(("policy", "key"), [("fcfs", lambda j: j.submit), ("sjf", lambda j: (j.request, j.submit))])
def test_the_readable_protocol_is_the_published_one_too(real, policy, key, backfill):
    log = read_jobs(real / "swf/lublin_256.swf")

    def decide(machine):
        machine.waiting.sort(key=key)  # in place: earlier order breaks ties
        return machine.waiting[0]

    columns = [column.tolist() for column in (log.submit, log.run_time, log.request, log.processors)]
    jobs = [Job(i, *row) for i, row in enumerate(zip(*columns, strict=True))]
    got = []
    for at in STARTS:
        start = play(jobs[at : at + 1024], log.machine, backfill, decide)
        wait = np.array(list(start.values())) - log.submit[list(start)]
        got.append(bounded_slowdown(wait, log.run_time[list(start)]).mean())
    assert sum(got) / len(got) == pytest.approx(PUBLISHED[policy][int(backfill)], abs=0.00051)
