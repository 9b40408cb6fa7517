"""What past jobs teach: pools, arrivals, ends of intervals; whatif.py uses it for the Snapshot of a file."""

import dataclasses

import numpy as np
import pytest

from berth.errors import SnapshotError
from envs import wire
from orchestrator import experience
from orchestrator.calibrating import Ends
from tests.conftest import make_trace
from tests.test_whatif import run_whatif, waiting
from traces.formatted import write


def busy_past(count: int = 600) -> "experience.Trace":
    """Jobs of three users on a node of 4 GPUs that is nearly always full."""
    rng = np.random.default_rng(5)
    users = rng.integers(3, size=count)
    run_time = np.maximum(
        1.0, np.round(np.array([20.0, 60.0, 200.0])[users] * np.exp(0.6 * rng.standard_normal(count)))
    )
    gpus = rng.choice([1, 2, 4], count)
    submit = np.sort(rng.integers(0, int((run_time * gpus).sum() / 4), count))
    return make_trace(submit, run_time, gpus, user=[str(user) for user in users])


def test_past_jobs_are_placed_in_the_pool_that_is_named():
    past = busy_past()
    view = waiting(nodes=2)
    assert len(experience.placed(past, view)) == len(past)
    two = view._replace(node_pool=np.array([0, 1]), pool_name=("red", "blue"))
    with pytest.raises(SnapshotError, match="no column has names of the pools red, blue"):
        experience.placed(past, two)
    names = np.array(["blue", "red", "grey"] * (len(past) // 3), object)
    told = experience.placed(dataclasses.replace(past, partition=names), two)
    assert len(told) == 2 * len(past) // 3
    assert told.pool[:2].tolist() == [1, 0]
    with pytest.raises(SnapshotError, match="several without names"):
        experience.placed(past, two._replace(pool_name=None))


def test_jobs_that_could_never_run_there_are_left_out():
    assert experience.placed(make_trace([0, 1], [5.0, 5.0], [64, 64]), waiting()) is None
    assert experience.coming_of(None, "request").submit.tolist() == []


def test_ends_are_fitted_on_the_past_where_there_is_enough_of_it():
    past = experience.placed(busy_past(), waiting())
    ends = experience.tried(past, "fcfs", "easy", "predicted", 12, 0.8, 0)
    assert 6 < ends.moments <= 12
    assert -10 < ends.low < 0 < ends.high < 10
    assert experience.tried(past, "fcfs", "easy", "predicted", 0, 0.8, 0) == Ends()
    assert experience.tried(experience.placed(busy_past(60), waiting()), "fcfs", "easy", "", 12, 0.8, 0) == Ends()
    assert experience.tried(past, "slurm", "easy", "predicted", 12, 0.8, 0) == ends  # fcfs stands in for it


def test_who_runs_and_who_waits_has_come_lately():
    view = waiting()
    found = experience.together(experience.NOBODY, experience.unfinished(view, np.array([985.0])))
    assert found.submit.tolist() == [900.0, 901.0, 902.0, 985.0]
    assert found.gpus.tolist() == [4, 4, 2, 4]
    assert found.run_time.tolist() == [100.0, 50.0, 30.0, 70.0]


def test_the_program_learns_from_a_trace_of_what_came_before(tmp_path):
    (tmp_path / "now.json").write_text(wire.write(waiting()))
    write(busy_past(), tmp_path / "before.csv")
    words = ("--snapshot", str(tmp_path / "now.json"), "--policy", "sjf", "--trace", str(tmp_path / "before.csv"))
    done = run_whatif(*words, "--moments", "8", "--draws", "30")
    assert done.returncode == 0, done.stderr
    assert "learned from 600 ended jobs" in done.stdout
    assert "fitted on" in done.stdout
    assert "as drawn" in run_whatif(*words, "--moments", "0", "--draws", "30").stdout
    bad = run_whatif("--snapshot", str(tmp_path / "now.json"), "--trace", str(tmp_path / "none.csv"))
    assert (bad.returncode, "none.csv" in bad.stderr) == (2, True)
    lost = run_whatif("--trace", str(tmp_path / "before.csv"))
    assert (lost.returncode, "leave it out" in lost.stderr) == (2, True)
