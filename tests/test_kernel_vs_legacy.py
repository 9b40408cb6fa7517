"""The compiled simulator and the readable one must agree on every job, start and node."""

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from allocation.choice import Allocation
from allocation.placers import PLACERS
from allocation.tiers import TIERS
from berth.errors import ConfigError
from envs.knowledge import know
from envs.policies import POLICIES
from envs.sim.simulator import DISCIPLINES, QUEUES, simulate
from legacy.simulator import Job, Simulator
from tests.conftest import make_trace, make_workload

POOLS = st.lists(st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=4), min_size=1, max_size=3)


@st.composite
def cases(draw):
    """Tiny contended clusters with coarse times, so that ties and full pools happen."""
    pools = draw(POOLS)
    count = draw(st.integers(1, 24))
    column = lambda values: draw(st.lists(values, min_size=count, max_size=count))  # noqa: E731
    submit = sorted(column(st.integers(0, 20)))
    run_time = column(st.sampled_from([1, 2, 3, 4, 5, 7, 10, 10, 20, 30]))
    pool = column(st.integers(0, len(pools) - 1))
    gpus = [
        draw(st.integers(1, max(1, sum(pools[p])))) if draw(st.booleans()) else draw(st.integers(1, 3)) for p in pool
    ]
    request = column(st.sampled_from([1, 2, 3, 5, 8, 12, 25, 40]))
    user = column(st.sampled_from(["ann", "bob", "-1"]))
    trace = make_trace(submit, run_time, gpus, vc=[str(p) for p in pool], request_time=request, user=user)
    return trace, pools


def compare(trace, pools, policy, discipline, queue="pool", allocation="lex", info="oracle", tiers="1+2"):
    """Run both on the jobs that fit and compare starts and nodes; returns the schedule."""
    try:
        workload = make_workload(trace, *pools, allocation=allocation)
    except ConfigError as nothing_left:
        assert "no job fits" in str(nothing_left)
        reject()
    schedule = simulate(workload, policy, discipline, queue, Allocation(allocation, tiers), info, seed=3)
    kept = workload.trace
    known = know(kept, info, seed=3)
    draw = POLICIES[policy].draw
    keys = draw(len(kept), 3) if draw else np.zeros(len(kept))
    jobs = [
        Job(i, s, r, g, p, e, "" if u == "-1" else u, v, k)
        for i, (s, r, g, p, e, u, v, k) in enumerate(
            zip(
                kept.submit.tolist(),
                kept.run_time.tolist(),
                kept.gpus.tolist(),
                workload.pool.tolist(),
                known.estimate.tolist(),
                kept.user if kept.user is not None else [""] * len(kept),
                kept.vc if kept.vc is not None else [""] * len(kept),
                keys.tolist(),
                strict=True,
            )
        )
    ]
    capacity = [list(pool) for pool in pools]
    Simulator(jobs, capacity, policy, discipline, queue, allocation, info == "predicted", TIERS[tiers], seed=3).run()
    assert [(job.start, job.nodes) for job in jobs] == [
        (schedule.start[i], schedule.nodes_of(i)) for i in range(len(jobs))
    ]
    return schedule


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("policy", POLICIES)
@given(cases(), st.sampled_from(QUEUES))
@settings(max_examples=25)
def test_every_policy_and_discipline(policy, discipline, case, queue):
    check_invariants(compare(*case, policy, discipline, queue), discipline)


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("allocation", [name for name in PLACERS if name != "milp"])
@given(cases(), st.sampled_from(["fcfs", "sjf", "wfp3"]), st.sampled_from(["1", "1+2"]))
@settings(max_examples=60)
def test_every_placer(allocation, discipline, case, policy, tiers):
    check_invariants(compare(*case, policy, discipline, allocation=allocation, tiers=tiers), discipline, tiers)


@pytest.mark.parametrize("discipline", [name for name in DISCIPLINES if not name.startswith("rlscheduler")])
@pytest.mark.parametrize("info", ["request", "predicted", "noisy:1"])
@given(cases(), st.sampled_from(["fcfs", "sjf", "saf", "wfp3"]), st.sampled_from(QUEUES))
@settings(max_examples=60)
def test_every_estimate(info, discipline, case, policy, queue):
    check_invariants(compare(*case, policy, discipline, queue, info=info), discipline)


def check_invariants(schedule, discipline, tiers="1+2"):
    """What must hold of every schedule."""
    workload = schedule.workload
    trace, capacity = workload.trace, workload.nodes.capacity
    assert (schedule.start >= trace.submit).all()
    changes = []
    for job in range(len(trace)):
        nodes = schedule.nodes_of(job)
        assert sum(gpus for _, gpus in nodes) == trace.gpus[job], "gang: all GPUs or none"
        assert len({node for node, _ in nodes}) == len(nodes)
        low, high = workload.nodes.first[workload.pool[job]], workload.nodes.first[workload.pool[job] + 1]
        for node, gpus in nodes:
            assert low <= node < high, "in its own pool"
            assert gpus >= 1
            changes += [(schedule.start[job], 1, node, gpus), (schedule.end[job], 0, node, -gpus)]
    used = np.zeros(len(capacity), int)
    for _, _, node, gpus in sorted(changes):
        used[node] += gpus
        assert 0 <= used[node] <= capacity[node], "no node over its capacity"
    assert (used == 0).all(), "every GPU is given back"
    assert schedule.busy.sum() == pytest.approx(float(trace.run_time @ trace.gpus)), "GPU-seconds are conserved"
    if discipline == "fit":
        check_work_conservation(schedule)


def check_work_conservation(schedule):
    """Under `fit` no job waits while it alone would fit on what is idle."""
    workload, trace = schedule.workload, schedule.workload.trace
    moments = sorted(set(trace.submit) | set(schedule.end))
    for job in range(len(trace)):
        low, high = (int(n) for n in workload.nodes.first[workload.pool[job] : workload.pool[job] + 2])
        for moment in moments:
            if not trace.submit[job] <= moment < schedule.start[job]:
                continue
            free = workload.nodes.capacity[low:high].astype(int).copy()
            for other in range(len(trace)):
                if schedule.start[other] <= moment < schedule.end[other]:
                    for node, gpus in schedule.nodes_of(other):
                        if low <= node < high:
                            free[node - low] -= gpus
            assert free.max() < trace.gpus[job] or trace.gpus[job] > workload.nodes.capacity[low:high].max()
