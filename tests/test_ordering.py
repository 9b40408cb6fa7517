"""The order in which policies take the jobs of a Snapshot."""

import numpy as np
import pytest

from berth.errors import ConfigError
from envs.policies import POLICIES
from envs.snapshot import Snapshot
from legacy.policies import KEYS
from orchestrator.ordering import order


def view_of(submit, gpus, run_time, now=1000.0, job=None) -> Snapshot:
    count, nothing = len(submit), np.zeros(0)
    return Snapshot(
        now=now,
        job=np.arange(count) if job is None else np.array(job),
        submit=np.array(submit, float),
        wait=now - np.array(submit, float),
        gpus=np.array(gpus),
        run_time=np.array(run_time, float),
        pool=np.zeros(count, int),
        running_job=nothing,
        running_start=nothing,
        running_gpus=nothing,
        running_pool=nothing,
        running_end=nothing,
        free=np.array([4]),
        capacity=np.array([8]),
        node_pool=np.array([0]),
    )


VIEW = view_of([0, 10, 10, 500, 700], [2, 1, 4, 8, 1], [100, 3600, 100, 20, 60])


@pytest.mark.parametrize("name", KEYS)
def test_formulas_order_as_the_reference_does(name):
    columns = zip(VIEW.submit, VIEW.run_time, VIEW.gpus, VIEW.wait, strict=True)
    keys = [KEYS[name](s, r, n, w, 8.0) for s, r, n, w in columns]
    assert order(VIEW, name).tolist() == sorted(range(5), key=lambda i: (keys[i], i))


def test_equal_keys_go_by_submit_then_by_number():
    view = view_of([5, 5, 0], [1, 1, 1], [9, 9, 9], job=[31, 30, 40])
    assert order(view, "sjf").tolist() == [2, 1, 0]


def test_a_function_decides():
    assert order(VIEW, lambda view: -view.gpus).tolist() == [3, 2, 0, 1, 4]


def test_a_random_key_stays_with_its_job():
    view = view_of([0] * 6, [1] * 6, [1] * 6, job=[3, 7, 11, 2**31, 5, 1])
    wanted = [view.job[i] for i in order(view, "random", 4)]
    less = view_of([0] * 5, [1] * 5, [1] * 5, job=[11, 7, 2**31, 5, 1])
    assert [less.job[i] for i in order(less, "random", 4)] == [job for job in wanted if job != 3]


def test_nobody_waits():
    assert order(view_of([], [], []), "sjf").tolist() == []


@pytest.mark.parametrize("name", [name for name, policy in POLICIES.items() if policy.needs_run_time])
def test_run_times_that_are_not_there_are_an_error_that_names_other_policies(name):
    view = view_of([0, 1], [1, 1], [60, np.nan])
    with pytest.raises(ConfigError, match=r"1 of 2 queued jobs have none.*fcfs, lcfs, smallest, largest, multifactor"):
        order(view, name)
    assert len(order(view, "multifactor")) == 2


@pytest.mark.parametrize("answer", [lambda view: [1.0], lambda view: view.wait * np.nan, lambda view: 1 / 0])
def test_functions_that_answer_something_else_are_an_error(answer):
    with pytest.raises(ConfigError):
        order(VIEW, answer)
