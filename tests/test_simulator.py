"""Small schedules worked out by hand, and promises of the simulator."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.errors import ConfigError, SimulationError
from envs.policies import POLICIES, find_policy
from envs.sim.priorities import formula
from envs.sim.simulator import DISCIPLINES, Simulation, simulate
from envs.snapshot import Snapshot
from tests.conftest import ROOT, make_trace, make_workload

BY_NUMBER = [
    "fcfs", "lcfs", "smallest", "largest", "sjf", "lpf", "saf", "laf", "sexp", "lexp", "srf", "lrf", "multifactor",
    "f1", "wfp3", "unicep",
]  # fmt: skip


def starts(pools, submit, run_time, gpus, policy="fcfs", discipline="strict", **options):
    columns = {key: options.pop(key) for key in ("vc", "user", "request_time") if key in options}
    workload = make_workload(make_trace(submit, run_time, gpus, **columns), *pools)
    return simulate(workload, policy, discipline, **options).start.tolist()


#       job:    0   1   2   3   4       a 4-GPU node; job 1 blocks, 2 is short, 3 is long, 4 is short and small
SUBMIT = [0, 1, 2, 3, 4]
RUN = [10, 10, 8, 20, 5]
GPUS = [3, 4, 1, 1, 1]


@pytest.mark.parametrize(
    ("discipline", "expected"),
    [
        ("strict", [0, 10, 20, 20, 20]),
        ("reserve", [0, 10, 20, 20, 20]),
        ("easy", [0, 10, 2, 20, 20]),  # 2 ends at 10, by the shadow time; 4 finds no GPU until then
        ("conservative", [0, 10, 2, 20, 20]),
        ("fit", [0, 10, 2, 20, 20]),
    ],
)
def test_a_blocked_job(discipline, expected):
    assert starts([[4]], SUBMIT, RUN, GPUS, discipline=discipline) == expected


def test_fit_lets_anything_pass_and_so_delays_the_first():
    args = ([[4]], [0, 1, 2], [10, 10, 100], [3, 4, 1])
    assert starts(*args, discipline="fit") == [0, 102, 2]
    assert starts(*args, discipline="strict") == [0, 10, 20]


def test_easy_lets_a_long_job_pass_beside_the_reservation():
    """Two nodes of 4; at 10 the first job needs one node, so a 1-GPU job may run past the shadow time on the other."""
    # 0: node 0 full until 10; 1: 3 of node 1 until 50; 2 needs a whole node, at 10; 3 is long but fits beside
    args = ([[4, 4]], [0, 0, 1, 2], [10, 50, 10, 100], [4, 3, 4, 1])
    assert starts(*args, discipline="easy") == [0, 0, 10, 2]
    assert starts(*args, discipline="strict") == [0, 0, 10, 10]


def test_easy_does_not_delay_the_reservation():
    """The same, but the only free GPU is on the node that the first job will get."""
    assert starts([[4]], [0, 1, 2], [10, 10, 100], [3, 4, 1], discipline="easy") == [0, 10, 20]


@pytest.mark.parametrize("discipline", ["strict", "easy", "conservative"])
def test_a_job_that_ends_within_a_second_is_expected_then(discipline):
    assert starts([[4]], [0, 10, 10.2], [10.5, 5, 0.25], [3, 4, 1], discipline=discipline) == {
        "strict": [0, 10.5, 15.5], "easy": [0, 10.5, 10.2], "conservative": [0, 10.5, 10.2],
    }[discipline]  # fmt: skip


def test_easy_may_end_exactly_at_the_shadow_time():
    assert starts([[4]], [0, 1, 2], [10, 10, 8], [3, 4, 1], discipline="easy") == [0, 10, 2]
    assert starts([[4]], [0, 1, 2], [10, 10, 9], [3, 4, 1], discipline="easy") == [0, 10, 20]


def test_strict_asks_again_who_is_first_and_reserve_does_not():
    """Under sjf a shorter job arrives while the first one waits."""
    args = ([[2]], [0, 1, 2], [10, 9, 1], [1, 2, 2], "sjf")
    assert starts(*args, discipline="strict") == [0, 11, 10]
    assert starts(*args, discipline="reserve") == [0, 10, 19]


def test_conservative_reserves_for_everyone():
    """A long 1-GPU job fits beside the first in the queue, but not beside the second: EASY looks at the first alone."""
    args = ([[4]], [0, 1, 2, 3], [10, 10, 10, 100], [2, 3, 4, 1])
    assert starts(*args, discipline="easy") == [0, 10, 103, 3]
    assert starts(*args, discipline="conservative") == [0, 10, 20, 30]


def test_a_global_queue_blocks_other_pools_and_pool_queues_do_not():
    columns = {"vc": ["0", "0", "1"]}
    args = ([[2], [2]], [0, 1, 2], [10, 10, 10], [2, 2, 2])
    assert starts(*args, queue="pool", **columns) == [0, 10, 2]
    assert starts(*args, queue="global", **columns) == [0, 10, 10]


def test_jobs_of_one_second_are_visible_together():
    assert starts([[1]], [0, 0, 0], [5, 3, 1], [1, 1, 1], "sjf") == [4, 1, 0]


def test_a_completion_comes_before_an_arrival_of_the_same_second():
    assert starts([[1]], [0, 10], [10, 1], [1, 1]) == [0, 10]


def test_late_jobs_are_expected_to_end_in_a_second():
    """Job 0 asked for 5 s and runs 20: at 6 the shadow time is 7, so only a job of at most 1 s may slip past."""
    args = ([[4]], [0, 1, 6, 6], [20, 5, 1, 2], [3, 4, 1, 1])
    got = starts(*args, discipline="easy", runtime_info="request", request_time=[5, 5, 1, 2])
    assert got == [0, 20, 6, 25]


def test_seed_numbers_are_aliases():
    assert [find_policy(str(number)).name for number in range(16)] == BY_NUMBER
    assert find_policy("fifo").name == "fcfs"


#                     s=0,r=40,n=2; s=5,r=10,n=4; s=10,r=20,n=1; all wait at 10
ORDERS = {
    "fcfs": [0, 1, 2], "lcfs": [2, 1, 0], "smallest": [2, 0, 1], "largest": [1, 0, 2], "sjf": [1, 2, 0],
    "lpf": [0, 2, 1], "saf": [2, 1, 0], "laf": [0, 1, 2], "sexp": [1, 2, 0], "lexp": [0, 2, 1], "srf": [1, 0, 2],
    "lrf": [0, 2, 1], "multifactor": [2, 0, 1], "wfp3": [1, 0, 2],
}  # fmt: skip


@pytest.mark.parametrize("policy", ORDERS)
def test_the_order_of_each_policy_by_hand(policy):
    waiting = [(0, 40, 2), (5, 10, 4), (10, 20, 1)]
    keys = [formula(POLICIES[policy].code, float(s), float(r), float(n), 10.0 - s, 4.0) for s, r, n in waiting]
    assert sorted(range(3), key=lambda i: keys[i]) == ORDERS[policy]


def test_formulas_with_logarithms_by_hand():
    s, r, n, w, pool = 1000.0, 100.0, 4.0, 50.0, 16.0
    by_hand = {
        "f1": 2 * 4 + 870 * 3,
        "f2": 10 * 4 + 25600 * 3,
        "f3": 400 + 6860000 * 3,
        "f4": 200 + 530000 * 3,
        "unicep": -50 / (2 * 100),
        "wfp3": -(0.5**3) * 4,
        "multifactor": -(1000 * 50 / 43200 + 1000 * (1 - 4 / 16)),
    }
    for policy, expected in by_hand.items():
        assert formula(POLICIES[policy].code, s, r, n, w, pool)[0] == pytest.approx(expected, rel=1e-12)
    assert formula(POLICIES["f1"].code, 0.0, 100.0, 1.0, 0.0, 1.0)[0] == 2 - 870


ASKED = [name for name in DISCIPLINES if not name.startswith("rlscheduler")]


@pytest.mark.parametrize("discipline", ASKED)
@pytest.mark.parametrize("policy", ["fcfs", "saf", "f1", "wfp3", "unicep", "multifactor", "sexp"])
def test_a_python_function_gives_the_same_as_the_compiled_formula(policy, discipline):
    policy = POLICIES[policy]
    rng = np.random.default_rng(5)
    count = 120
    workload = make_workload(
        make_trace(np.sort(rng.integers(0, 300, count)), rng.integers(1, 60, count), rng.integers(1, 9, count)),
        [4, 4, 8],
    )

    def ask(view: Snapshot) -> np.ndarray:
        return np.array(
            [
                formula(policy.code, s, r, float(n), w, 16.0)[0]
                for s, r, n, w in zip(view.submit, view.run_time, view.gpus, view.wait, strict=True)
            ]
        )

    expected = simulate(workload, policy, discipline)
    asked = simulate(workload, ask, discipline)
    if discipline == "conservative" and not policy.changes:
        assert np.mean(asked.start) == pytest.approx(
            np.mean(expected.start), rel=0.2
        )  # plans are renewed at every event
    else:
        assert (asked.start == expected.start).all()


def test_a_function_may_come_from_a_file(tmp_path):
    (tmp_path / "rules.py").write_text("def newest(view):\n    return -view.submit\n")
    assert starts([[1]], [0, 1, 2], [5, 5, 5], [1, 1, 1], f"{tmp_path}/rules.py:newest") == [0, 10, 5]


@pytest.mark.parametrize("answer", [[1.0], [np.nan] * 2, "words"])
def test_a_wrong_answer_of_a_function_is_an_error(answer):
    with pytest.raises(SimulationError, match="at 1 s"):
        starts([[1]], [0, 1, 1], [5, 5, 5], [1, 1, 1], lambda view: answer if view.now else [0.0])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 1 / 0", r"ZeroDivisionError.*rules.py:2"),
        ("return [1 + 2j] * len(view.job)", "TypeError"),
        ("view.job[:] = view.job[::-1]", "read-only"),
        ("return view.color", "AttributeError"),
    ],
)
def test_what_a_function_does_wrong_is_told_with_its_line(tmp_path, body, message):
    (tmp_path / "rules.py").write_text(f"def rule(view):\n    {body}\n")
    with pytest.raises(SimulationError, match=message):
        starts([[1]], [0, 1], [5, 5], [1, 1], f"{tmp_path}/rules.py:rule")


@pytest.mark.parametrize("word", ["\u00b2", ":f", "nowhere.py:f", "os:nothing", "os:sep"])
def test_words_that_name_no_policy(word):
    with pytest.raises(ConfigError, match="policy"):
        find_policy(word)


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean wfp3"):
        find_policy("wpf3")
    with pytest.raises(ConfigError, match="did you mean strict"):
        starts([[1]], [0], [1], [1], discipline="strickt")
    with pytest.raises(ConfigError, match="known: pool, global"):
        starts([[1]], [0], [1], [1], queue="both")


@pytest.mark.parametrize(
    ("policy", "discipline"), [("sjf", "strict"), ("fcfs", "easy"), ("fcfs", "conservative"), ("wfp3", "fit")]
)
def test_hidden_run_times_refuse_what_needs_them(policy, discipline):
    with pytest.raises(ConfigError, match=r"hidden.*oracle, request, predicted"):
        starts([[1]], [0], [1], [1], policy, discipline, runtime_info="hidden")


@pytest.mark.parametrize("policy", [p.name for p in POLICIES.values() if not p.needs_run_time])
def test_hidden_run_times_stay_hidden(policy):
    args = ([[2]], [0, 0, 1, 1], [5, 3, 4, 2], [1, 2, 1, 1], policy)
    assert starts(*args, runtime_info="hidden") == starts(*args)
    seen = []
    starts([[1]], [0, 0], [5, 5], [1, 1], lambda v: seen.append(v.run_time) or v.submit, runtime_info="hidden")
    assert np.isnan(np.concatenate(seen)).all()


@given(st.integers(0, 2**31), st.integers(2, 60))
@settings(max_examples=30)
def test_prediction_never_sees_the_future(seed, count):
    """Changing the run times of jobs that have not ended by some moment changes no prediction made until then."""
    rng = np.random.default_rng(seed)
    submit, run_time = np.sort(rng.integers(0, 100, count)), rng.integers(1, 50, count)
    gpus, user = rng.integers(1, 3, count), rng.choice(["a", "b"], count)
    first = Simulation(
        make_workload(make_trace(submit, run_time, gpus, user=user), [4]), "sjf", runtime_info="predicted"
    )
    schedule = first.run()
    moment = float(rng.choice(schedule.end))
    later = schedule.end > moment
    changed = np.where(later, run_time + 1000, run_time)
    second = Simulation(
        make_workload(make_trace(submit, changed, gpus, user=user), [4]), "sjf", runtime_info="predicted"
    )
    second.run()
    before = submit <= moment
    assert (first.world.jobs["estimate"][before] == second.world.jobs["estimate"][before]).all()


def test_the_mean_of_the_last_ten():
    """Eleven 1-GPU jobs of ann end one after the other; the next is expected to run as long as the last ten did."""
    run_time = [*range(100, 111), 7, 7]
    workload = make_workload(make_trace([*range(11), 5000, 5000], run_time, [1] * 13, user=["ann"] * 12 + ["bob"]), [1])
    simulation = Simulation(workload, "fcfs", runtime_info="predicted")
    simulation.run()
    estimates = simulation.world.jobs["estimate"]
    assert estimates[0] == 3600
    assert estimates[11] == np.mean(range(101, 111))
    assert estimates[12] == estimates[11], "bob has no history: same GPUs"


def test_requests_need_their_column():
    with pytest.raises(ConfigError, match="no request_time column"):
        starts([[1]], [0], [1], [1], runtime_info="request")


@pytest.mark.parametrize("info", ["noisy", "noisy:x", "noisy:-1", "noisy:nan", "orakel"])
def test_unknown_knowledge(info):
    with pytest.raises(ConfigError, match=r"noisy:S"):
        starts([[1]], [0], [1], [1], runtime_info=info)


def test_noise_is_repeatable_and_grows_with_its_number():
    trace = make_trace(range(1000), [100] * 1000, [1] * 1000)
    workload = make_workload(trace, [8])
    one = Simulation(workload, "sjf", runtime_info="noisy:0.5", seed=1).world.jobs["estimate"]
    again = Simulation(workload, "sjf", runtime_info="noisy:0.5", seed=1).world.jobs["estimate"]
    other = Simulation(workload, "sjf", runtime_info="noisy:0.5", seed=2).world.jobs["estimate"]
    assert (one == again).all()
    assert (one != other).any()
    assert np.std(np.log(one)) == pytest.approx(0.5, rel=0.1)
    assert (Simulation(workload, "sjf", runtime_info="noisy:0").world.jobs["estimate"] == 100).all()


def test_pools_are_independent():
    """A pool's schedule is the same whether the others are there or not, also for priorities that change with time."""
    rng = np.random.default_rng(3)
    count = 200
    submit, run_time = np.sort(rng.integers(0, 500, count)), rng.integers(1, 60, count)
    gpus, vc = rng.integers(1, 5, count), rng.choice(["0", "1"], count)
    for policy in ("sjf", "wfp3"):
        for discipline in ("strict", "easy", "conservative", "fit"):
            both = simulate(make_workload(make_trace(submit, run_time, gpus, vc=vc), [4, 4], [8]), policy, discipline)
            alone = vc == "0"
            first = int(np.flatnonzero(alone)[0])
            trace = make_trace(submit[alone] - submit[first], run_time[alone], gpus[alone])
            single = simulate(make_workload(trace, [4, 4]), policy, discipline)
            shift = both.workload.trace.submit[first]
            assert np.allclose(both.start[alone] - shift, single.start)


def test_equal_seeds_give_equal_schedules():
    workload = make_workload(make_trace([0] * 50, range(1, 51), [1] * 50), [4])
    one, two, other = (simulate(workload, "random", seed=s).start.tolist() for s in (1, 1, 2))
    assert one == two != other


def test_one_server_queue_has_the_wait_that_theory_says():
    """M/M/1 at load 0.7: mean wait = 0.7 / 0.3 service times (Pollaczek and Khinchine)."""
    rng = np.random.default_rng(11)
    count = 400_000
    submit = np.cumsum(rng.exponential(1000 / 0.7, count))
    trace = make_trace(submit, rng.exponential(1000, count), [1] * count)
    schedule = simulate(make_workload(trace, [1]))
    wait = schedule.start - schedule.workload.trace.submit
    assert wait.mean() / 1000 == pytest.approx(0.7 / 0.3, rel=0.05)


def test_plain_python_gives_the_same(tmp_path):
    """NUMBA_DISABLE_JIT=1 runs the kernel's own code as plain Python."""
    code = (
        "import numpy as np\n"
        "from tests.conftest import make_trace, make_workload\n"
        "from envs.sim.simulator import DISCIPLINES, simulate\n"
        "rng = np.random.default_rng(2)\n"
        "trace = make_trace(np.sort(rng.integers(0, 90, 60)), rng.integers(1, 30, 60), rng.integers(1, 9, 60))\n"
        "for policy in ('sjf', 'wfp3', 'random'):\n"
        "    for discipline in DISCIPLINES:\n"
        "        print(simulate(make_workload(trace, [4, 4, 8]), policy, discipline).start.tolist())\n"
    )
    outputs = []
    for flag in ("0", "1"):
        env = os.environ | {"NUMBA_DISABLE_JIT": flag}
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True
        )
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert outputs[0].count("\n") == 3 * len(DISCIPLINES)


def test_a_schedule_that_lacks_a_start_is_an_error():
    """What is printed and swallowed in a compiled callback must not pass for a result."""
    simulation = Simulation(make_workload(make_trace([0, 1], [5, 5], [1, 1]), [2]))
    with pytest.raises(SimulationError, match="job 0 has not started"):
        simulation._complete()
