"""Forecasts of starts: what is certain is told exactly, what is not is covered, bad input is refused."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from berth.errors import ConfigError, SnapshotError
from envs import wire
from envs.recalling import Kin
from envs.snapshot import DOWN, UP, Snapshot
from orchestrator import whatif
from orchestrator.arrivals import Coming
from orchestrator.calibrating import Ends, moved
from orchestrator.doubting import Temper, draw_queued, draw_running, learn, unlearned
from orchestrator.forecasting import Forecast, Interval, Limits, forecast
from orchestrator.replaying import Replay
from tests.conftest import make_trace, make_workload

ROOT = Path(__file__).resolve().parent.parent
SURE = unlearned(0.0)
"""Nobody surprises."""


def waiting(gpus=(4, 4, 2), run_time=(100.0, 50.0, 30.0), running=((0, 4, 60.0),), nodes=1) -> Snapshot:
    """Nodes of 4 GPUs; running jobs are (node, GPUs, s left)."""
    count, whole = len(gpus), np.int32
    used = np.zeros(nodes, whole)
    for node, share, _ in running:
        used[node] += share
    return Snapshot(
        1000.0, np.arange(count), np.arange(count) + 900.0, 100.0 - np.arange(count), np.array(gpus, whole),
        np.array(run_time), np.zeros(count, whole), np.arange(len(running)) + 100, np.full(len(running), 990.0),
        np.array([share for _, share, _ in running], whole), np.zeros(len(running), whole),
        np.array([1000.0 + left for *_, left in running]), 4 - used, np.full(nodes, 4, whole), np.zeros(nodes, whole),
        place_at=np.arange(len(running) + 1), place_node=np.array([node for node, *_ in running], whole),
        place_gpus=np.array([share for _, share, _ in running], whole),
    )  # fmt: skip


def starts(view: Snapshot, policy, discipline: str = "strict", **more) -> list[float]:
    told = forecast(view, policy, discipline, SURE, draws=10, **more)
    assert (told.start == told.start[0]).all()
    return np.round(told.start[0], 2).tolist()


def test_what_is_certain_is_told_exactly():
    assert starts(waiting(), "fcfs") == [60.0, 160.0, 210.0]
    assert starts(waiting(), "sjf") == [140.0, 90.0, 60.0]
    assert starts(waiting(), np.array([2, 0, 1])) == [140.0, 60.0, 110.0]  # a given order


def test_nodes_that_are_down_and_gpus_that_somebody_unknown_holds_are_not_had():
    view = waiting(nodes=2)
    assert starts(view, "fcfs") == [0.0, 60.0, 100.0]
    down = view._replace(node_state=np.array([UP, DOWN], np.int8), free=np.array([0, 0], np.int32))
    assert starts(down, "fcfs") == [60.0, 160.0, 210.0]
    lost = view._replace(free=np.array([0, 0], np.int32))
    assert starts(lost, "fcfs") == [60.0, 160.0, 210.0]
    alone = waiting(running=())._replace(node_state=np.array([DOWN], np.int8), free=np.array([0], np.int32))
    assert starts(alone, "fcfs") == [np.inf] * 3


def test_jobs_that_come_later_pass_where_the_policy_says_so():
    later = Coming(*(np.array(column) for column in ([0.0, 10.0], [4, 4], [5.0, 5.0], [5.0, 5.0], [0, 0])))
    told = forecast(waiting(), "sjf", "strict", SURE, later, draws=10)
    assert (told.start[:, 0] > 140.0).all()
    assert np.allclose(
        forecast(waiting(), "fcfs", "strict", SURE, later, draws=10).start, [60.0, 160.0, 210.0], atol=0.1
    )


def test_a_queue_that_those_to_come_would_jam_for_good_is_told_of_soon():
    often = Coming(np.arange(8.0) + 992.0, np.full(8, 4), np.full(8, 5.0), np.full(8, 5.0), np.zeros(8, int))
    begun = time.monotonic()
    told = forecast(waiting(), "sjf", "easy", SURE, often, draws=20)
    assert time.monotonic() - begun < 60.0
    assert np.isfinite(told.start).all()  # 800 of them, and then nobody


def test_no_run_time_is_drawn_above_its_limit():
    limits = Limits(np.array([10.0, 20.0, 30.0]), np.array([7.0]))
    told = forecast(waiting(), "fcfs", "strict", unlearned(3.0), draws=50, limits=limits)
    assert told.start[:, 0].max() <= 7.01
    assert told.start[:, 1].max() <= 17.01


def test_running_jobs_have_not_ended_yet():
    view = waiting(running=((0, 4, -980.0),))._replace(running_start=np.array([0.0]))
    left = draw_running(view, unlearned(0.3), np.random.default_rng(0), 100, Temper())
    assert left.min() >= 1.0


def test_doubt_is_learned_from_how_far_run_times_were_from_those_expected():
    rng = np.random.default_rng(0)
    count = 2000
    kin = Kin(rng.integers(5, size=count).astype(str).astype(object), np.full(count, "-1", object), np.ones(count, int))
    submit = np.sort(rng.uniform(0, 1e6, count))
    run_time = np.exp(kin.user.astype(float) + 0.5 * rng.standard_normal(count)) * 50
    doubt = learn(kin, submit, submit + run_time, run_time)
    middle = doubt.queued[-4:].mean(axis=0)
    assert np.quantile(middle, 0.84) - np.quantile(middle, 0.16) == pytest.approx(1.0, abs=0.3)


def test_jobs_that_are_alike_share_surprises():
    view = waiting(gpus=(4,) * 50, run_time=(100.0,) * 50)
    one = draw_queued(view, unlearned(1.0), np.random.default_rng(0), 20, Temper(1.0, 1.0))
    own = draw_queued(view, unlearned(1.0), np.random.default_rng(0), 20, Temper(1.0, 0.0))
    assert np.ptp(one, axis=1).max() == 0.0
    assert np.ptp(own, axis=1).min() > 0.0


def test_intervals_are_stretched_about_the_median():
    told = Forecast(np.linspace(10, 1000, 101)[:, None])
    low, middle, high = told.interval(0.8)
    wide = moved(told.interval(0.8), Ends(-1.5, 1.5))
    assert wide.low[0] < low[0] < middle[0] == wide.middle[0] < high[0] < wide.high[0]
    open_ended = moved(Interval(*np.array([[5.0], [np.inf], [np.inf]])), Ends())
    assert (open_ended.low[0] < 5.5, open_ended.high[0]) == (True, np.inf)


def test_eighty_percent_hold_about_eighty_percent_where_the_model_is_true():
    rng = np.random.default_rng(3)
    count = 900
    users = [str(name) for name in rng.integers(3, size=count)]
    typical = np.array([20.0, 60.0, 200.0])
    run_time = np.maximum(1.0, np.round(typical[np.array(users, int)] * np.exp(0.6 * rng.standard_normal(count))))
    trace = make_trace(np.sort(rng.integers(0, 22_000, count)), run_time, rng.choice([1, 2, 4], count), user=users)
    truth = Replay(make_workload(trace, [4, 4]), "fcfs", "easy")
    doubt, inside = truth.doubt(trace.submit[count // 2]), []
    for i, now in enumerate(truth.waits_at(rng.uniform(trace.submit[count // 2], trace.submit[-count // 20], 40))):
        view = truth.at(now)
        low, _, high = forecast(view, "fcfs", "easy", doubt, truth.coming(now), 60, i, Temper(1.0, 0.0)).interval(0.8)
        start = truth.schedule.start[view.job] - now
        inside.append(np.mean((start >= low - 1.0) & (start <= high + 1.0)))
    assert 0.65 < np.mean(inside) < 0.92


def run_whatif(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, str(ROOT / "orchestrator/whatif.py"), *words], capture_output=True, text=True, check=False
    )


def test_the_program_tells_of_a_saved_snapshot(tmp_path):
    file = tmp_path / "now.json"
    file.write_text(wire.write(waiting()))
    done = run_whatif("--snapshot", str(file), "--policy", "fcfs", "--against", "sjf", "--csv", str(tmp_path / "s.csv"))
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "s.csv").read_text().splitlines()
    assert rows[0] == "job,GPUs,fcfs: from,fcfs: median,fcfs: to,sjf: from,sjf: median,sjf: to"
    assert len(rows) == 4
    bad = run_whatif("--snapshot", str(tmp_path / "none.json"))
    assert (bad.returncode, "No such file" in bad.stderr) == (2, True)
    file.write_text("{}")
    assert "version" in run_whatif("--snapshot", str(file)).stderr


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("", "not JSON"), ("[1]", "a list; want an object"), ('{"version": 1, "now": "soon"}', "want a number from 0")],
)
def test_a_snapshot_that_is_none_is_named(text, wanted, tmp_path):
    file = tmp_path / "now.json"
    file.write_text(text)
    with pytest.raises(SnapshotError, match=wanted) as raised:
        whatif.of_file(str(file))
    assert str(raised.value).startswith(f"--snapshot {file}: ")


@pytest.mark.parametrize(
    "words",
    [
        ("--seed", "-1"),
        ("--draws", "100000000"),
        ("--timeout", "1e300"),
        ("--snapshot", "now.json", "--runtime_info", "request"),
        ("--against", "sjf", "--runtime_info", "hidden"),
    ],
)
def test_options_that_cannot_be_meant(words, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["whatif.py", *words])
    with pytest.raises(ConfigError, match=r"want at (least|most)|want seconds|leave one out|needs run times"):
        whatif.main()
