"""The model behind docs/scale.md: that it finds what is put in, and that its points can be measured."""

import json
import subprocess
import sys

import pytest

from benchmarks import scale_page
from benchmarks.scale import HELD_OUT, REPLAYS, TRAININGS, fit, fit_memory
from benchmarks.scale_page import EPOCH, epoch_seconds, errors, measured_part, predicted, worker_rows
from tests.conftest import ROOT


def point(jobs, gpus, queue, discipline="easy"):
    cost = 0.5 * jobs**0.1 * gpus**0.2 * (1 + queue) ** 0.7
    seconds = cost * jobs / 1e6
    return {"asked": {"discipline": discipline, "jobs": jobs, "gpus": gpus, "load": 0.9}, "jobs": jobs, "queue": queue,
            "setup_s": 0.25 * seconds, "run_s": 0.75 * seconds, "peak_gb": 0.2 + 3e-7 * jobs + 1e-6 * gpus}  # fmt: skip


POINTS = [point(j, g, q) for j in (10**4, 10**6) for g in (100, 10_000) for q in (0, 50, 3000)]


def test_the_fit_finds_the_exponents():
    found = fit(POINTS)
    assert found[1:] == pytest.approx([0.1, 0.2, 0.0, 0.7], abs=1e-9)
    assert predicted({"easy": found}, "easy", 10**7, 10**5, 9) == pytest.approx(0.5 * 10**0.7 * 10 * 10**0.7)
    assert fit_memory(POINTS) == pytest.approx([0.2, 0.3, 0.001])


def test_a_model_that_is_half_of_what_was_measured_is_off_by_two():
    known = {"model": {"easy": fit(POINTS)}, "replay": POINTS}
    known["model"]["easy"][0] -= 0.6931471805599453
    assert errors(known, "replay") == pytest.approx([2.0] * len(POINTS))


def test_workers_share_playing_alone():
    row = {"play_us": 100.0, "learn_us": 50.0, "bytes": 1000.0}
    ray = {"call_s": 0.01, "bytes_per_s": 1e9, "put_s": 0.5}
    assert epoch_seconds(row, ray, 0) == pytest.approx(EPOCH * 150e-6)
    assert epoch_seconds(row, ray, 10) == pytest.approx(EPOCH * 10e-6 + 0.1 + EPOCH * 1e-6 + 0.5 + EPOCH * 50e-6)


def test_the_page(tmp_path, monkeypatch):
    asked = {"jobs": 1000, "gpus": 100, "load": 0.95}
    trained = {
        "asked": asked,
        "queue": 3.0,
        "setup_s": 1.0,
        "play_us": 80.0,
        "learn_us": 40.0,
        "bytes": 2000.0,
        "peak_gb": 1.0,
    }
    late = {"asked": {"discipline": "easy", "jobs": 7, "gpus": 8, "load": 1.2}, "late": 120}
    known = {
        "replay": [*POINTS, late], "held_out": POINTS[:2], "training": [trained, {"asked": asked, "failed": "exit 1"}],
        "workers": {"call_s": 0.01, "bytes_per_s": 1e9, "put_s": 0.1}, "model": {"easy": fit(POINTS)},
        "memory": fit_memory(POINTS),
    }  # fmt: skip
    text = measured_part(known)
    assert "| easy | 7 | 8 | 1.2 |  | more than 120 s |" in text
    assert "| easy | 0.5 | 0.10 | 0.20 |" in text
    assert len(worker_rows(known)) == 1
    page = tmp_path / "scale.md"
    page.write_text(f"before\n{scale_page.BEGIN}\nold\n{scale_page.END}\nafter\n")
    monkeypatch.setattr(scale_page, "PAGE", page)
    scale_page.write_page(known)
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("after\n")
    assert "old" not in page.read_text()


@pytest.mark.parametrize("words", ["--discipline easy --load 1.1", "--training 1 --decisions 64 --envs 2 --window 8"])
def test_a_point_can_be_measured(words):
    command = [
        sys.executable,
        str(ROOT / "benchmarks/scale_point.py"),
        "--jobs",
        "2000",
        "--gpus",
        "64",
        *words.split(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["queue"] > 0
    assert told["play_us" if "training" in words else "run_s"] > 0


def test_the_points_reach_what_is_promised():
    asked = [*REPLAYS, *HELD_OUT]
    assert {point["jobs"] for point in asked} >= {10**5, 10**6, 10**7}
    assert {point["gpus"] for point in asked} >= {10**2, 10**3, 10**4, 10**5}
    assert {point["gpus"] for point in TRAININGS} >= {10**2, 10**3, 10**4, 10**5}
    assert not [point for point in HELD_OUT if point in REPLAYS]
