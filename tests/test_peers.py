"""Small cases that tell the rules of other simulators apart (docs/results/peers.md)."""

from envs.sim.simulator import simulate
from tests.conftest import make_trace, make_workload


def starts(submit, run_time, gpus, policy, discipline, allocation="spread", nodes=(8,), **columns):
    info = "request" if "request_time" in columns else "oracle"
    workload = make_workload(make_trace(submit, run_time, gpus, **columns), list(nodes), allocation=allocation)
    return simulate(workload, policy, discipline, "global", allocation, info).start.tolist()


def test_equal_run_times_go_in_submit_order_under_spt_and_small_first_under_sjf():
    args = ([0, 0], [5, 5], [8, 1])
    assert starts(*args, "spt", "strict") == [0, 5]
    assert starts(*args, "sjf", "strict") == [5, 0]


def test_accasim_lets_anything_pass():
    args = ([0, 0, 0], [10, 5, 20], [4, 8, 4])
    assert starts(*args, "fcfs", "accasim_easy") == [0, 20, 0]
    assert starts(*args, "fcfs", "easy") == [0, 10, 15]


def test_accasim_does_not_try_the_blocked_job_before_its_reservation():
    """A runs 10 s and asked for 20; B could start at 10, but waits for 20, and for the next event if there is one."""
    args = ([0, 0], [10, 5], [8, 8])
    assert starts(*args, "fcfs", "accasim_easy", request_time=[20, 5]) == [0, 20]
    assert starts(*args, "fcfs", "easy", request_time=[20, 5]) == [0, 10]
    later = ([0, 0, 30], [10, 5, 1], [8, 8, 8])
    assert starts(*later, "fcfs", "accasim_easy", request_time=[20, 5, 1]) == [0, 30, 35]


def test_helios_puts_small_jobs_on_the_fullest_node_and_large_ones_on_idle_nodes():
    """Two 8-GPU nodes: 3 and 5 share a node, so that 8 still finds an idle one; first fit by lex does the same here."""
    args = ([0, 0, 0], [10, 10, 10], [3, 5, 8])
    assert starts(*args, "fcfs", "strict", "consolidate", nodes=(8, 8)) == [0, 0, 0]
    wide = ([0, 0], [10, 10], [4, 16])
    assert starts(*wide, "fcfs", "strict", "consolidate", nodes=(8, 8, 8)) == [0, 0]
    assert starts(*wide, "fcfs", "strict", "consolidate", nodes=(8, 8)) == [0, 10]


def test_pai_walks_past_what_does_not_fit_and_counts_gpus_only():
    args = ([0, 0, 0], [10, 10, 10], [6, 8, 2])
    assert starts(*args, "fcfs", "fit", nodes=(4, 4)) == [0, 10, 0]
    assert starts(*args, "fcfs", "strict", nodes=(4, 4)) == [0, 10, 20]
