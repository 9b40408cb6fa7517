"""A replayed trace: what was seen at a moment, what was known then, what came."""

import numpy as np

from orchestrator.doubting import unlearned
from orchestrator.replaying import Replay
from tests.conftest import make_trace, make_workload


def three() -> Replay:
    """Three jobs of the whole node one after the other: 0-100, 100-150, 150-180; the last comes at 120."""
    trace = make_trace([0, 10, 120], [100.0, 50.0, 30.0], [4, 4, 4])
    return Replay(make_workload(trace, [4]), "fcfs", "easy")


def test_a_moment_is_seen_as_it_was():
    view = three().at(50.0)
    assert (view.job.tolist(), view.running_job.tolist(), view.free.tolist()) == ([1], [0], [0])
    assert (view.wait.tolist(), view.place_node.tolist(), view.place_gpus.tolist()) == ([40.0], [0], [4])


def test_what_is_to_come_is_not_known():
    replay = three()
    assert replay.coming(50.0).submit.tolist() == [0.0, 10.0]
    assert replay.coming(130.0).run_time[0] == 100.0  # it has ended
    assert replay.coming(130.0).run_time[1] != 50.0  # it runs
    assert replay.doubt(99.0).jobs == 0


def test_moments_are_those_at_which_somebody_waits():
    assert three().waits_at(np.array([5.0, 50.0, 110.0, 130.0, 160.0])).tolist() == [50.0, 130.0]


def test_what_came_is_told_until_the_trace_is_over():
    replay = three()
    assert replay.foretold(50.0, unlearned(0.0), 10, 0).start.tolist() == [50.0]
    assert replay.foretold(130.0, unlearned(0.0), 10, 0).start.tolist() == [np.inf]  # it starts after the last arrival
