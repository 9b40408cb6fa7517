"""The Gymnasium environments: what every one of them promises, on the shipped samples and on small cases."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from allocation.placers import PLACERS
from berth.errors import ConfigError, SimulationError, TraceError
from envs.observation import JOB_FEATURES, LOOKAHEAD_MODES, POOL_FEATURES
from envs.options import Options
from envs.policies import POLICIES
from envs.registration import IDS
from envs.reward import SCORES, find_score
from envs.scheduling_env import SchedulingEnv
from envs.sim.cluster import Cluster, Pool
from envs.sim.observing import GREATEST
from envs.sim.simulator import simulate
from envs.stage import split_borders
from tests.conftest import ROOT, make_trace
from tests.test_environment_vs_legacy import MODES, make_env
from tests.test_kernel_vs_legacy import cases
from traces.parametric import PRESETS
from train.packing import pack

SMALL = {"seq_len": 16, "window": 8}

COMBINATIONS = [
    {},
    {"action_mode": "fit"},
    {"backfil": True, "sched_algo": "sjf"},
    {"score_backlog": True, "sched_algo": "saf", "action_mode": "easy", "warm_rule": "fcfs@easy"},
    {"warm_start": False, "score_type": 3, "reward": "terminal"},
    {"window_order": "mix", "lookahead_mode": "per_gpu", "runtime_info": "hidden"},
    {"window_order": "arrival", "lookahead_mode": "sorted", "runtime_info": "predicted", "sched_algo": "wfp3"},
    {"preset": "baseline_stable", "lookahead_mode": "off"},
    {"arrival_mode": "poisson", "horizon_factor": 1.05, "max_steps": 30},
    {"topology": "production", "load": 0.9, "allocation": "best_fit", "tiers": "1"},
]


def valid(seen, rng):
    """Any action that can be taken."""
    return int(rng.choice(np.flatnonzero(seen["mask"])))


def play(env, seed=0, choose=None, limit=100_000):
    """One episode: rewards, and the last info."""
    rng = np.random.default_rng(seed)
    seen, _ = env.reset(seed=seed)
    rewards = []
    for _ in range(limit):
        seen, reward, terminated, truncated, info = env.step(choose(env) if choose else valid(seen, rng))
        rewards.append(reward)
        if terminated or truncated:
            return rewards, info | {"terminated": terminated, "truncated": truncated}
    raise AssertionError("the episode does not end")


@pytest.mark.parametrize("options", COMBINATIONS, ids=str)
@pytest.mark.parametrize("name", IDS)
def test_gymnasiums_checker_has_nothing_to_say(name, options):
    if options.get("topology") and name in ("Alibaba-v0",):
        options = {**options, "topology": "testbed"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(name, **SMALL, **options)
        check_env(env.unwrapped)


@pytest.mark.parametrize("name", IDS)
def test_defaults_are_what_the_manual_says(name):
    env = gymnasium.make(name).unwrapped
    o = env.options
    assert (o.seq_len, o.window, o.action_mode, o.reward, o.sched_algo, o.split) == (
        256, 128, "reserve", "dense", "fcfs", "train",
    )  # fmt: skip
    assert o.warm_start
    assert not o.backfil
    assert env.observation_space["jobs"].shape == (128, len(JOB_FEATURES))
    assert env.action_space.n == 128
    assert gymnasium.make(name, action_mode="fit").action_space.n == 129


@pytest.mark.parametrize("order", [("envs", "gymnasium"), ("gymnasium", "envs")], ids="-".join)
def test_environments_are_registered_whoever_is_imported_first(order):
    code = f"import {order[0]}, {order[1]}; print(sorted(i for i in gymnasium.registry if i in {list(IDS)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(sorted(IDS))


def test_asking_whether_gymnasium_is_there_does_not_spoil_the_registration():
    code = "import envs, importlib.util as u; u.find_spec('gymnasium'); import gymnasium; gymnasium.spec('Philly-v0')"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_cluster_of_ones_own():
    tiny = Cluster("philly", {"t": (Pool("p", ((2, 4),)),)}, trace=str(ROOT / "GPU_Traces/synthetic_trace.csv"))
    for options in ({}, {"preset": "baseline_stable"}):
        env = SchedulingEnv(cluster=tiny, seq_len=16, **options)
        assert env.source.stage.workload.nodes.capacity.tolist() == [4, 4]
        assert set(play(env, choose=first_valid)[0]) == {0.0}


def test_a_cluster_file_that_has_changed_is_read_again(tmp_path):
    file = tmp_path / "lab.toml"
    for nodes in (4, 40):
        file.write_text(f'[[pools]]\nname = "lab"\nnodes = [{{ count = {nodes}, gpus = 8 }}]\n')
        env = SchedulingEnv(cluster=str(file), workload=str(ROOT / "GPU_Traces/synthetic_trace.csv"), seq_len=16)
        assert len(env.source.stage.workload.nodes.capacity) == nodes


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [("run_time", np.nan, "want a number > 0"), ("run_time", -1, "want a number > 0"), ("gpus", 0, "want >= 1"),
     ("submit", np.inf, "want a finite number")],
)  # fmt: skip
def test_a_trace_of_ones_own_is_checked(column, value, message):
    columns = {"submit": [0, 1], "run_time": [5, 5], "gpus": [1, 1]}
    columns[column][1] = value
    with pytest.raises(TraceError, match=f"{column} of job 1 .*{message}"):
        SchedulingEnv(cluster="philly", workload=make_trace(**columns), split="all", seq_len=1)


def test_the_simulator_needs_no_gymnasium():
    code = "import sys, envs.sim.simulator; print('gymnasium' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# ------------------------------------------------------------------------------------------------ fair by construction


def first_valid(env):
    return int(np.argmax(env.action_masks()))


def begun(mode):
    """Options by which the cluster is warm soon: to replay a sample with reservations takes a minute and more."""
    return {"warm_rule": "fcfs@easy"} if mode == "conservative" else {}


@pytest.mark.parametrize(("mode", "backfil"), MODES)
@pytest.mark.parametrize("policy", POLICIES)
def test_imitating_the_baseline_earns_exactly_0_for_every_policy(policy, mode, backfil):
    env = SchedulingEnv(
        cluster="philly", seq_len=40, action_mode=mode, backfil=backfil, sched_algo=policy, batch_job_slice=3000,
        **begun(mode),
    )  # fmt: skip
    rewards, info = play(env, choose=first_valid)
    assert set(rewards) == {0.0}
    assert info["score"] == info["baseline_score"]


@pytest.mark.parametrize(("mode", "backfil"), MODES)
@pytest.mark.parametrize("allocation", PLACERS)
@pytest.mark.parametrize("cluster", ["philly", "helios"])
def test_imitating_the_baseline_earns_exactly_0_for_every_placer(cluster, allocation, mode, backfil):
    few = {"seq_len": 40} | begun(mode)
    if allocation == "milp":
        few = {"seq_len": 4, "warm_start": False} | ({"preset": "synthetic"} if mode == "conservative" else {})
    env = SchedulingEnv(cluster=cluster, action_mode=mode, backfil=backfil, allocation=allocation, **few)
    rewards, _ = play(env, choose=first_valid)
    assert set(rewards) == {0.0}


@pytest.mark.parametrize("reward", ["dense", "terminal"])
@pytest.mark.parametrize("score", SCORES)
def test_imitating_the_baseline_earns_exactly_0_for_every_score(score, reward):
    env = SchedulingEnv(cluster="alibaba", seq_len=40, score_type=score, reward=reward, window_order="arrival")
    rewards, _ = play(env, choose=lambda e: e.baseline_action(), seed=4)
    assert set(rewards) == {0.0}


@pytest.mark.parametrize(("mode", "backfil"), MODES)
@given(
    cases(),
    st.sampled_from(list(POLICIES)),
    st.sampled_from([n for n in PLACERS if n != "milp"]),
    st.sampled_from(["oracle", "request", "predicted", "noisy:1"]),
    st.sampled_from(["1", "1+2"]),
)
@settings(max_examples=150)  # fmt: skip
def test_the_baseline_is_the_simulators_discipline(mode, backfil, case, policy, allocation, info, tiers):
    env, _ = make_env(
        case, action_mode=mode, backfil=backfil, sched_algo=policy, allocation=allocation, runtime_info=info,
        tiers=tiers if PLACERS[allocation].tiered else "",
    )  # fmt: skip
    env.reset(seed=0)
    o = env.options
    schedule = simulate(env.source.stage.workload, policy, o.discipline, "pool", o.placement, info, seed=3)
    assert env.episode.arrays["base"].tolist() == schedule.start.tolist()
    assert set(play(env, choose=first_valid)[0]) == {0.0}
    assert env.episode.arrays["jobs"]["start"].tolist() == schedule.start.tolist()


@pytest.mark.parametrize(("mode", "backfil"), MODES)
@given(cases(), st.data())
@settings(max_examples=150)
def test_a_warm_start_goes_on_where_the_replay_was(mode, backfil, case, data):
    # reservations that stay are not carried over, so that ties may be placed otherwise: here, orders that change
    policies = [name for name in POLICIES if mode != "conservative" or POLICIES[name].changes]
    policy = data.draw(st.sampled_from(policies))
    allocation = data.draw(st.sampled_from([name for name in PLACERS if name != "milp"]))
    info = data.draw(st.sampled_from(["oracle", "predicted"]))
    options = {"action_mode": mode, "backfil": backfil, "sched_algo": policy, "allocation": allocation,
               "runtime_info": info, "warm_start": True}  # fmt: skip
    jobs = make_env(case, **options)[0].options.seq_len
    first = data.draw(st.integers(0, jobs - 1))
    env, _ = make_env(case, seq_len=jobs - first, **options)
    env.reset(options={"first": first})
    assert env.episode.arrays["base"].tolist() == env.source.stage.roster["start"][first:].tolist()


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize(("mode", "backfil"), [way for way in MODES if way[0] != "conservative"])
def test_a_warm_start_goes_on_where_the_replay_was_on_the_samples(name, mode, backfil):
    made = gymnasium.make(name, split="test", action_mode=mode, backfil=backfil).unwrapped
    low, jobs = made.source.first, len(made.source.stage.roster)
    env = gymnasium.make(name, split="all", seq_len=jobs - low, action_mode=mode, backfil=backfil).unwrapped
    env.reset(options={"first": low})
    assert env.episode.arrays["base"].tolist() == env.source.stage.roster["start"][low:].tolist()
    assert len(env.episode.arrays["jobs"]) > jobs - low, "somebody runs or waits when the window begins"


def test_conservative_by_hand():
    # 4 GPUs, of which job 0 has 3 until 10; fcfs: job 1 at 10, job 2 at 20 behind it, and job 3 slips past until 10.
    trace = make_trace([0, 1, 1, 1], [10, 10, 10, 9], [3, 4, 3, 1])
    env = SchedulingEnv(
        cluster=Cluster("one", {"t": (Pool("p", ((1, 4),)),)}), workload=trace, split="all", seq_len=4,
        action_mode="conservative",
    )  # fmt: skip
    env.reset()
    env.step(0)  # job 0 starts, and the clock goes on to 1
    env.step(0)  # job 1 holds the pool
    assert env.episode.arrays["jobs"]["start"].tolist() == [0, -1, -1, 1]
    assert env.snapshot().now == 10  # both ends, and the pool is open again
    assert env.action_masks()[:2].tolist() == [True, True]
    env.step(0)
    _, reward, terminated, *_ = env.step(0)
    assert reward == 0.0
    assert terminated or env.step(0)[2]
    assert env.episode.arrays["jobs"]["start"].tolist() == [0, 10, 20, 1]
    env.reset()
    env.step(0)
    env.step(1)  # job 2 first: at 10, beside it job 3 now; job 1 at 20
    env.step(1)
    while not env.step(0)[2]:
        pass
    assert env.episode.arrays["jobs"]["start"].tolist() == [0, 20, 10, 1]


def test_a_warm_start_by_hand():
    # 4 GPUs; fcfs holds the 4-GPU job 1 behind job 0, and job 2 behind it; the window is job 3.
    trace = make_trace([0, 1, 2, 5], [10, 10, 10, 1], [2, 4, 1, 1])
    env = SchedulingEnv(cluster=Cluster("one", {"t": (Pool("p", ((1, 4),)),)}), workload=trace, split="all", seq_len=1)
    _, info = env.reset(options={"first": 3})
    assert info["baseline_score"] == pytest.approx((20 - 5 + 1) / 10)  # starts at 20, beside job 2
    view = env.snapshot()
    assert view.now == 10  # job 1 has just started, and the pool is open again
    assert view.gpus.tolist() == [1, 1]
    assert view.running_gpus.tolist() == [4]
    _, reward, terminated, *_ = env.step(1)  # job 3 before job 2: both start at 20
    assert terminated
    assert reward == 0.0
    cold = SchedulingEnv(
        cluster=Cluster("one", {"t": (Pool("p", ((1, 4),)),)}), workload=trace, split="all", seq_len=1, warm_start=False
    )
    _, info = cold.reset(options={"first": 3})
    assert info["baseline_score"] == 1.0
    assert cold.snapshot().now == 5


def test_a_better_choice_earns_what_it_saves():
    # one GPU: a job of 100 s and one of 1 s arrive together; fcfs makes the short one wait 100 s.
    trace = make_trace([0, 0], [100, 1], [1, 1])
    cluster = Cluster("one", {"t": (Pool("p", ((1, 1),)),)})
    env = SchedulingEnv(cluster=cluster, workload=trace, split="all", seq_len=2, score_type="wait")
    env.reset()
    _, first, *_ = env.step(1)
    _, second, terminated, *_ = env.step(0)
    assert terminated
    assert first == pytest.approx(1.0)  # as if the long one still started at once: waits 0 against (0 + 100) / 2
    assert first + second == pytest.approx((50 - 0.5) / 50)
    one = SchedulingEnv(cluster=cluster, workload=trace, split="all", seq_len=2, score_type=1, reward="terminal")
    rewards, _ = play(one, choose=lambda e: int(np.flatnonzero(e.action_masks())[-1]))
    assert rewards == [0.0, pytest.approx((50 - 0.5) / 50)]


def test_utilization_is_the_baselines_lead_or_ours():
    # two GPUs: long and short ones; to start the long one last leaves a GPU idle at the end.
    trace = make_trace([0, 0, 0], [10, 10, 20], [1, 1, 1])
    cluster = Cluster("one", {"t": (Pool("p", ((1, 2),)),)})
    env = SchedulingEnv(cluster=cluster, workload=trace, split="all", seq_len=3, score_type="utilization")
    rewards, info = play(env, choose=lambda e: int(np.flatnonzero(e.action_masks())[-1]))
    assert info["baseline_score"] == pytest.approx(40 / (2 * 30))
    assert info["score"] == pytest.approx(40 / (2 * 20))
    assert sum(rewards) == pytest.approx(1 - 2 / 3)


# ------------------------------------------------------------------------------------------------------- observations


def roll(env, seed, steps, rng):
    """Observations of some random decisions, over several episodes."""
    seen, _ = env.reset(seed=seed)
    for _ in range(steps):
        yield seen
        seen, _, terminated, truncated, _ = env.step(valid(seen, rng))
        if terminated or truncated:
            seen, _ = env.reset()


@pytest.mark.parametrize("mode", LOOKAHEAD_MODES)
@pytest.mark.parametrize("name", IDS)
def test_features_are_in_range_and_tell_jobs_apart(name, mode):
    env = gymnasium.make(name, lookahead_mode=mode, action_mode="fit", sched_algo="sjf", seq_len=64).unwrapped
    rng = np.random.default_rng(1)
    most = np.zeros(len(JOB_FEATURES))
    for seen in roll(env, 1, 400, rng):
        assert env.observation_space.contains(seen)
        shown = seen["jobs"][seen["jobs"][:, -1] > 0]
        most = np.maximum(most, shown.max(axis=0))
    saturated = {f.name for f, value in zip(JOB_FEATURES, most, strict=True) if value >= 1.0}
    assert saturated <= {"fits", "ways", "likeness", "seen", "slot", "share", "fragmentation"}
    assert env.observation_space["cluster"].shape == gymnasium.make(name).observation_space["cluster"].shape


def column(env, seen, name):
    """One feature of the jobs that are shown."""
    return seen["jobs"][: len(env.episode.window_jobs()), [f.name for f in JOB_FEATURES].index(name)]


def pool_feature(seen, name, pool=0):
    return seen["cluster"][pool * len(POOL_FEATURES) + [f.name for f in POOL_FEATURES].index(name)]


def lookahead_case(mode, info="oracle"):
    """Two nodes of 2 GPUs; jobs of 2 GPUs for 600 s and 1 GPU for 6,000 s run, seen when a third arrives after 60 s."""
    trace = make_trace([0, 0, 60], [600, 6000, 10], [2, 1, 4])
    cluster = Cluster("two", {"t": (Pool("p", ((2, 2),)),)})
    env = SchedulingEnv(cluster=cluster, workload=trace, split="all", seq_len=1, lookahead_mode=mode, runtime_info=info)
    seen, _ = env.reset(options={"first": 2})
    return env, seen, seen["cluster"][len(POOL_FEATURES) :]


def test_lookahead_by_hand():
    scale = np.log1p(1e8)
    soon, late = np.log1p(540) / scale, np.log1p(5940) / scale
    assert lookahead_case("off")[2].tolist() == [0, 0, 0, 0]
    np.testing.assert_allclose(lookahead_case("per_gpu")[2], [soon, soon, late, 0], atol=1e-6)
    np.testing.assert_allclose(lookahead_case("sorted")[2], [0, soon, soon, late], atol=1e-6)
    # four times from 60 s to 30 days, evenly on a log scale: 60 s, 2,103 s, 73,747 s, 30 days
    np.testing.assert_allclose(lookahead_case("cdf")[2], [0.25, 0.75, 1, 1], atol=1e-6)


def test_pool_features_by_hand():
    env, seen, _ = lookahead_case("cdf")
    wanted = {"idle": 0.25, "idle_nodes": 0, "partly": 0.5, "largest": 0.5, "demand": 0.5, "held": 0, "held_gpus": 0,
              "soon": 0.75, "waiting": np.log(2) / np.log(1 + 1e6)}  # fmt: skip
    for name, value in wanted.items():
        assert pool_feature(seen, name) == pytest.approx(value, abs=1e-6), name
    job = {name: float(column(env, seen, name)[0]) for name in [f.name for f in JOB_FEATURES]}
    assert job["wait"] == 0
    assert job["share"] == 1
    assert job["demand"] == pytest.approx(4 / (4 + 1 + 1))
    assert job["availability"] == pytest.approx(3 / (3 + 4))
    assert job["fits"] == job["ways"] == 0
    assert job["fragmentation"] == 0.5


def test_a_job_that_outran_its_guess_is_expected_to_run_as_long_again():
    *_, late = lookahead_case("sorted", "noisy:0")
    *_, hidden = lookahead_case("sorted", "hidden")  # nothing has ended: both are guessed to run for an hour
    scale = np.log1p(1e8)
    np.testing.assert_allclose(hidden, [0, *[np.log1p(3540) / scale] * 3], atol=1e-6)
    assert late[-1] == pytest.approx(np.log1p(5940) / scale, abs=1e-6)


@given(st.integers(0, 2**16), st.integers(20, 60))
@settings(max_examples=25)
def test_with_hidden_run_times_nothing_of_the_future_is_seen(seed, count):
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, 200, count))
    run_time = rng.integers(1, 60, count).astype(float)
    columns = {"user": rng.choice(["a", "b"], count), "vc": ["0"] * count}
    cluster = Cluster("one", {"t": (Pool("p", ((2, 2),)),)})
    gpus = rng.integers(1, 4, count)
    worlds = []
    for changed in (run_time, np.where(np.arange(count) >= count // 2, run_time + 500, run_time)):
        trace = make_trace(submit, changed, gpus, **columns)
        env = SchedulingEnv(
            cluster=cluster, workload=trace, split="all", seq_len=count, runtime_info="hidden", load=0.0, window=16,
            warm_start=False,
        )  # fmt: skip
        worlds.append((env, env.reset(seed=0)[0]))
    for _ in range(count):
        (a, seen), (b, other) = worlds
        changed_runs = [job for job in a.snapshot().running_job if job >= count // 2]
        for name in seen:
            np.testing.assert_array_equal(seen[name], other[name])
        action = valid(seen, rng)
        if changed_runs:
            return  # from here on the changed run times are past or present, not future
        seen, _, over, *_ = a.step(action)
        other, _, over_too, *_ = b.step(action)
        worlds = [(a, seen), (b, other)]
        if over or over_too:
            return


def test_large_clusters_have_as_many_lookahead_values_as_small_ones_at_most():
    env = gymnasium.make("Philly-v0", topology="production").unwrapped
    assert env.observation_space["cluster"].shape == (len(POOL_FEATURES) + 512,)


# -------------------------------------------------------------------------------------------------- splits and windows


@given(st.lists(st.integers(0, 50), min_size=5, max_size=60), st.floats(0.1, 0.6), st.floats(0.1, 0.3))
def test_splits_follow_time_and_never_divide_a_second(times, train, validation):
    submit = np.sort(np.array(times, float))
    splits = split_borders(submit, train, validation)
    assert splits["train"][0] == 0
    assert splits["train"][1] == splits["validation"][0]
    assert splits["validation"][1] == splits["test"][0]
    assert splits["test"][1] == splits["all"][1] == len(times)
    for border in (splits["train"][1], splits["validation"][1]):
        assert border in (0, len(times)) or submit[border - 1] < submit[border]


def test_windows_stay_in_their_split():
    for split, (low, high) in {"train": (0, 12_000), "validation": (12_000, 16_000), "test": (16_000, 20_000)}.items():
        source = gymnasium.make("Philly-v0", split=split).unwrapped.source
        assert abs(source.first - low) <= 5
        assert abs(source.last + 256 - high) <= 5
    sliced = gymnasium.make("Philly-v0", batch_job_slice=1000).unwrapped.source
    assert (sliced.first, sliced.last) == (0, 1000 - 256)


def test_a_slice_larger_than_the_split_is_told():
    with pytest.warns(UserWarning, match=r"batch_job_slice 13,000: the train split has only .* jobs, and all are used"):
        gymnasium.make("Philly-v0", batch_job_slice=13_000)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seq_len": 13_000}, r"seq_len 13,000: the train split of .* has 1.,... jobs; want a shorter episode"),
        ({"seq_len": 64, "batch_job_slice": 50}, "has 50 jobs in its slice"),
        ({"seq_len": 0}, "seq_len 0: want a number from 1"),
        ({"window": 2.5}, "window 2.5: want a whole number"),
        ({"windows": 5}, "windows is not an option of an environment; did you mean window"),
        ({"sched_algo": "sjff"}, "did you mean sjf"),
        ({"score_type": 7}, "score_type 7: .*by number: 0 bounded_slowdown"),
        ({"action_mode": "fits"}, "did you mean fit"),
        ({"backfil": True, "action_mode": "fit"}, "backfil does nothing with action_mode fit"),
        ({"backfil": True, "action_mode": "conservative"}, "action_mode conservative, where jobs slip past anyway"),
        ({"runtime_info": "hidden", "action_mode": "conservative"}, "conservative"),
        ({"runtime_info": "hidden", "sched_algo": "sjf"}, "needs run times"),
        ({"runtime_info": "hidden", "backfil": True}, "needs run times"),
        ({"train_share": 0.9}, "leave something for the test"),
        ({"workload": "nothing.csv"}, "nothing.csv"),
        ({"workload": "x.csv", "preset": "synthetic"}, "workload x.csv does nothing with fresh jobs"),
        ({"allocation": "lex", "use_milp_allocation": True}, "want one of the two"),
        ({"horizon_factor": -1.0}, "horizon_factor -1.0: want a number from 0"),
        ({"render_mode": "human"}, "render_mode human: want ansi"),
        ({"warm_start": "0"}, "warm_start '0': want 0 or 1"),
        ({"use_milp_allocation": 2}, "use_milp_allocation 2: want 0 or 1"),
        ({"load": "much"}, "load 'much': want a finite number"),
        ({"load": float("nan")}, "load nan: want a finite number"),
        ({"load": -1.0, "preset": "synthetic"}, "load -1.0: want a number from 0"),
        ({"max_steps": 10**30}, "want a number from 0"),
        ({"split": ""}, "split : known: train"),
        ({"reward": ""}, "reward : known: dense"),
        ({"train_share": None}, "train_share None: want a finite number"),
        ({"runtime_info": 3}, "runtime_info 3: known: oracle"),
        ({"sched_algo": "my.py:f"}, "sched_algo my.py:f: want a policy"),
        ({"train_share": 0.5, "preset": "synthetic"}, "train_share 0.5 does nothing with fresh jobs"),
    ],
    ids=str,
)
def test_what_cannot_be_is_told(options, message):
    with pytest.raises((ConfigError, Exception), match=message) as told:
        SchedulingEnv(cluster="philly", **options)
    assert "berth" in type(told.value).__module__


def test_names_and_numbers_mean_the_same():
    assert find_score(3) == find_score("3") == find_score("utilization") == "utilization"
    assert Options(sched_algo="4").policy.name == Options(sched_algo=4).policy.name == "sjf"
    assert Options(use_milp_allocation=1).placement.name == "milp"
    assert Options(window=np.int64(5), load=np.float32(0.5), warm_start=np.bool_(False), preset=None).window == 5


def test_a_window_can_be_asked_for():
    env = gymnasium.make("Philly-v0", split="test").unwrapped
    _, info = env.reset(options={"first": 17_000})
    assert info["first"] == 17_000
    for wrong in (3, 19_999, "a"):
        with pytest.raises(ConfigError, match="where windows of the split begin"):
            env.reset(options={"first": wrong})
    with pytest.raises(ConfigError, match="no windows to choose from"):
        gymnasium.make("Synthetic-v0", preset="synthetic").unwrapped.reset(options={"first": 0})


# --------------------------------------------------------------------------------------------------- actions and ends


def test_a_masked_action_is_replaced_and_counted():
    env = gymnasium.make("Philly-v0", action_mode="fit", seq_len=32, warm_start=False).unwrapped
    for seed in range(20):
        seen, _ = env.reset(seed=seed)
        masked = np.flatnonzero(seen["mask"] == 0)
        twin = copy.deepcopy(env)
        after, *_, info = env.step(int(masked[-1]))
        wanted, *_, same = twin.step(int(np.argmax(seen["mask"])))
        assert (info["invalid_actions"], same["invalid_actions"]) == (1, 0)
        np.testing.assert_array_equal(after["jobs"], wanted["jobs"])


def test_a_masked_action_raises_if_asked_to():
    env = gymnasium.make("Philly-v0", action_mode="fit", seq_len=32, invalid_action="raise", warm_start=False).unwrapped
    seen, _ = env.reset(seed=0)
    with pytest.raises(SimulationError, match="masked; valid now"):
        env.step(int(np.flatnonzero(seen["mask"] == 0)[0]))


@pytest.mark.parametrize("action", [-1, 128, 1.5, "0", None, True, 2**70, np.array([1, 2])], ids=str)
def test_out_of_range_always_raises(action):
    env = SchedulingEnv(cluster="philly", seq_len=16)
    env.reset(seed=0)
    with pytest.raises(SimulationError, match="want a whole number from 0 to 127"):
        env.step(action)


def test_a_step_before_the_beginning_or_after_the_end_raises():
    env = SchedulingEnv(cluster="philly", seq_len=4)
    with pytest.raises(SimulationError, match="want reset"):
        env.step(0)
    play(env)
    with pytest.raises(SimulationError, match="want reset"):
        env.step(0)


def test_waiting_forever_comes_to_an_end():
    env = SchedulingEnv(cluster="philly", seq_len=8, action_mode="fit")
    _, info = play(env, choose=lambda e: int(np.flatnonzero(e.action_masks())[-1]))
    assert info["terminated"]
    assert info["score"] > info["baseline_score"]


def test_truncation_counts_what_has_not_started():
    env = SchedulingEnv(cluster="synthetic", seq_len=64, max_steps=20)
    rewards, info = play(env)
    assert info["truncated"]
    assert not info["terminated"]
    assert len(rewards) == info["decisions"] == 20
    assert sum(rewards) == pytest.approx(info["gain"], abs=1e-9)
    late = SchedulingEnv(cluster="synthetic", seq_len=64, action_mode="fit", horizon_factor=1.0)
    _, info = play(late, choose=lambda e: int(np.flatnonzero(e.action_masks())[-1]))
    assert info["truncated"]
    row = late.episode.now
    assert late.snapshot().now == row["horizon"] == row["baseline_last"]


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(
    "cut", [{"max_steps": 1}, {"max_steps": 60}, {"horizon_factor": 0.01}, {"horizon_factor": 0.5}], ids=str
)
@pytest.mark.parametrize(("mode", "backfil"), MODES)
def test_being_cut_short_pays_nothing(mode, backfil, cut, score):
    env = SchedulingEnv(
        cluster="philly", seq_len=64, action_mode=mode, backfil=backfil, score_type=score, batch_job_slice=4000, **cut,
        **begun(mode),
    )  # fmt: skip
    truncations = 0
    for seed in range(6):
        rewards, info = play(env, seed=seed, choose=first_valid)
        assert sum(rewards) == pytest.approx(0.0, abs=1e-12)
        truncations += info["truncated"]
        rewards, idle = play(env, seed=seed, choose=lambda e: int(np.flatnonzero(e.action_masks())[-1]))
        assert sum(rewards) == pytest.approx(idle["gain"], abs=1e-9)
        if mode == "fit":
            assert sum(rewards) <= 1e-12, "who only waits earns nothing"
    assert truncations


def test_an_episode_that_is_over_when_it_begins_ends_at_the_first_step():
    # one job holds the pool from before the window until long after the horizon
    trace = make_trace([0, 1, 2, 3], [1000, 1000, 5, 5], [1, 4, 1, 1])
    env = SchedulingEnv(
        cluster=Cluster("one", {"t": (Pool("p", ((1, 4),)),)}), workload=trace, split="all", seq_len=2, load=0.0,
        horizon_factor=0.1, invalid_action="raise",
    )  # fmt: skip
    seen, _ = env.reset(options={"first": 2})
    assert seen["mask"].tolist() == [1, *[0] * 127]
    _, reward, terminated, truncated, _ = env.step(0)
    assert (reward, terminated, truncated) == (0.0, False, True)


def test_an_interrupted_step_cannot_be_gone_on_with():
    env = SchedulingEnv(cluster="philly", seq_len=8, allocation="milp", warm_start=False)
    env.reset(seed=0)

    def interrupted(*_):
        raise KeyboardInterrupt

    env.episode._foresight.answer = interrupted
    with pytest.raises(KeyboardInterrupt):
        play(env, choose=first_valid)
    with pytest.raises(SimulationError, match="want reset"):
        env.step(0)
    assert set(play(env, choose=first_valid)[0]) == {0.0}


def test_an_interrupt_while_the_milp_works_comes_out():
    env = SchedulingEnv(cluster="philly", seq_len=64, allocation="milp")
    env.reset(seed=0)
    answer = env.episode._foresight.answer
    asked = []

    def slowly(job, free):
        asked.append(job)
        if len(asked) == 3:
            signal.raise_signal(signal.SIGINT)
        return answer(job, free)

    env.episode._foresight.answer = slowly
    with pytest.raises(KeyboardInterrupt):
        env.reset(seed=1)
    assert len(asked) < 6
    assert set(play(env, choose=first_valid)[0]) == {0.0}


def test_equal_seeds_give_equal_rollouts():
    a, b = (gymnasium.make("Helios-v0", **SMALL).unwrapped for _ in range(2))
    assert play(a, seed=5) == play(b, seed=5)
    assert play(a, seed=5) != play(b, seed=6)


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"]
)
@pytest.mark.parametrize("options", [{}, {"preset": "synthetic"}, {"allocation": "milp", "warm_start": False}], ids=str)
def test_a_copy_goes_on_alone(duplicate, options):
    env = gymnasium.make("Synthetic-v0", seq_len=12, **options)
    seen, _ = env.reset(seed=2)
    for _ in range(5):
        seen, *_ = env.step(int(np.argmax(seen["mask"])))
    twin = duplicate(env)
    for _ in range(40):
        action = int(np.flatnonzero(seen["mask"])[-1])
        (seen, *mine), (other, *its) = env.step(action), twin.step(action)
        assert mine == its
        np.testing.assert_equal(seen, other)
        if mine[1]:
            (seen, _), (other, _) = env.reset(), twin.reset()
            np.testing.assert_equal(seen, other)


def test_fresh_jobs_never_come_twice():
    env = gymnasium.make("Synthetic-v0", preset="baseline_stable", arrival_mode="bursty", seq_len=32).unwrapped
    env.reset(seed=1)
    first = env.episode.stage.roster["run_time"].copy()
    env.reset()
    assert not np.array_equal(first, env.episode.stage.roster["run_time"])
    env.reset(seed=1)
    np.testing.assert_array_equal(first, env.episode.stage.roster["run_time"])


@pytest.mark.parametrize("cluster", ["helios", "alibaba"])
def test_fresh_jobs_reach_every_pool_and_the_load_asked_for(cluster):
    env = SchedulingEnv(cluster=cluster, preset="synthetic", seq_len=512, load=0.8)
    rng = np.random.default_rng(0)
    stages = [env.source.draw(rng)[0] for _ in range(20)]
    loads = [stage.workload.load for stage in stages]
    assert 0.7 < np.mean(loads) < 0.95
    pools = set().union(*(stage.workload.pool.tolist() for stage in stages))
    assert pools == set(range(len(stages[0].workload.pools)))


@pytest.mark.parametrize("preset", PRESETS)
def test_short_fresh_episodes_have_the_load_asked_for_too(preset):
    env = SchedulingEnv(cluster="synthetic", preset=preset, seq_len=32)
    rng = np.random.default_rng(0)
    work = span = 0.0
    for _ in range(60):
        workload = env.source.draw(rng)[0].workload
        work += float(np.dot(workload.trace.run_time, workload.trace.gpus))
        span += float(workload.trace.submit[-1] - workload.trace.submit[0])
    assert work / (192 * span) == pytest.approx(0.95, rel=0.15)


def test_splits_of_fresh_jobs_have_jobs_of_their_own():
    made = []
    for split in ("train", "validation", "test"):
        env = SchedulingEnv(cluster="synthetic", preset="baseline_stable", split=split, seq_len=16)
        env.reset(seed=0)
        made.append(env.episode.stage.roster["run_time"].tolist())
    assert made[0] != made[1] != made[2] != made[0]


def test_render_is_text():
    env = gymnasium.make("Helios-v0", render_mode="ansi", **SMALL)
    env.reset(seed=0)
    assert "GPUs idle" in env.render()
    assert "slot 0" in env.render()


def test_plain_python_plays_the_same():
    code = (
        "import numpy as np, envs\n"
        "from envs.scheduling_env import SchedulingEnv\n"
        "fit, easy = {'action_mode': 'fit', 'lookahead_mode': 'per_gpu'}, {'backfil': True, 'sched_algo': 'wfp3'}\n"
        "for options in ({}, fit, easy):\n"
        "    env = SchedulingEnv(cluster='helios', preset='synthetic', seq_len=12, window=6, load=1.5, **options)\n"
        "    rng, total = np.random.default_rng(0), 0.0\n"
        "    seen, _ = env.reset(seed=3)\n"
        "    for _ in range(40):\n"
        "        seen, reward, over, *_ = env.step(int(rng.choice(np.flatnonzero(seen['mask']))))\n"
        "        print(repr(reward), *(seen[name].sum(dtype=float) for name in ('jobs', 'cluster')))\n"
        "        if over: break\n"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True,
            env={**os.environ, "NUMBA_DISABLE_JIT": disabled},
        ).stdout
        for disabled in ("0", "1")
    ]  # fmt: skip
    compiled, plain = (np.array([line.split() for line in one.splitlines()], float) for one in told)
    assert compiled[:, 0].tolist() == plain[:, 0].tolist()  # rewards to the last bit
    np.testing.assert_allclose(compiled, plain, rtol=0, atol=5e-5)  # single precision, summed over a window
    assert len(plain) > 30
    assert len(set(told[0].splitlines())) > 20


@pytest.mark.parametrize("name", ["philly", "helios"])
def test_real_traces(name, real):
    files = {"philly": "philly.csv.gz", "helios": "venus_gpu_jobs.csv.gz"}
    for file in [real / name / files[name]]:
        env = gymnasium.make(f"{name.capitalize()}-v0", workload=str(file), split="test", seq_len=64).unwrapped
        most = np.zeros(len(JOB_FEATURES))
        for seen in roll(env, 0, 300, np.random.default_rng(0)):
            assert env.observation_space.contains(seen)
            most = np.maximum(most, seen["jobs"].max(axis=0))
        for feature in ("wait", "gpus", "run_time", "demand", "predicted", "by_user", "by_size", "spread"):
            assert most[[f.name for f in JOB_FEATURES].index(feature)] < 1.0, feature
        assert set(play(env, choose=first_valid)[0]) == {0.0}


def test_fresh_jobs_that_hardly_ever_fit_are_made_until_enough_do(tmp_path):
    tiny = tmp_path / "tiny.toml"
    tiny.write_text('[[pools]]\nname="a"\nnodes=[{count=1,gpus=1}]\n')
    env = gymnasium.make("Philly-v0", preset="large_jobs", cluster=str(tiny), seq_len=4, warm_start=False)
    for seed in range(60):
        seen, _ = env.reset(seed=seed)
        assert seen["mask"].any()


def test_fresh_episodes_have_a_greatest_length():
    with pytest.raises(ConfigError, match=r"seq_len 1,000,000: want at most 100,000"):
        gymnasium.make("Philly-v0", preset="synthetic", seq_len=10**6)


def test_ways_under_consolidate_are_nodes_with_room():
    env = gymnasium.make("Philly-v0", allocation="consolidate", action_mode="fit", split="test", seq_len=64).unwrapped
    rng = np.random.default_rng(0)
    checked = 0
    seen, _ = env.reset(seed=0)
    for _ in range(400):
        view = env.snapshot()
        where = {int(job): i for i, job in enumerate(view.job)}
        for slot, job in enumerate(env.episode.window_jobs()):
            gpus = view.gpus[where[int(job)]]
            if gpus <= 8 and seen["jobs"][slot, 8]:
                room = int((view.free >= gpus).sum())
                assert seen["jobs"][slot, 7] == pytest.approx(np.log1p(room) / np.log1p(len(view.free)), abs=1e-4)
                checked += 1
        seen, _, terminated, _, _ = env.step(int(rng.choice(np.flatnonzero(seen["mask"]))))
        if terminated:
            seen, _ = env.reset()
    assert checked > 100


@pytest.mark.parametrize("mode", ["reserve", "fit"])
def test_the_prior_is_the_order_of_a_policy(mode):
    env = gymnasium.make("Helios-v0", prior="sjf", action_mode=mode, window=32, seq_len=40).unwrapped
    seen, _ = env.reset(seed=1)
    over = False
    while not over:
        view, slots = env.snapshot(), env.episode.window_jobs()
        where = {int(job): i for i, job in enumerate(view.job)}
        can = [slot for slot in range(len(slots)) if seen["mask"][slot]]
        key = lambda slot: (view.run_time[where[int(slots[slot])]], view.gpus[where[int(slots[slot])]], slots[slot])  # noqa: B023, E731
        line = sorted(can, key=key)
        assert sorted(can, key=lambda slot: env.prior[slot]) == line
        assert (np.diff(pack(env.prior[line]).astype(int)) > 0).all()  # and stays exact where numbers are packed
        logs = [np.log(max(key(slot)[0], 1.0)) / GREATEST for slot in line]
        np.testing.assert_allclose(env.prior[line], logs, atol=2e-3)
        assert (np.delete(env.prior, can) == 1).all()
        seen, _, over, _, _ = env.step(int(env.prior.argmin()) if can else int(seen["mask"].argmax()))


def test_following_the_prior_is_what_that_policy_does_as_the_baseline():
    """The baseline's score under sjf is what an agent earns that follows sjf against another baseline."""
    base = gymnasium.make("Philly-v0", sched_algo="sjf", warm_start=False, seq_len=64).unwrapped
    agent = gymnasium.make("Philly-v0", prior="sjf", warm_start=False, seq_len=64).unwrapped
    for first in (100, 2000, 7000):
        _, told = base.reset(options={"first": first})
        agent.reset(options={"first": first})
        over = False
        while not over:
            _, _, over, _, info = agent.step(int(agent.prior.argmin()))
        assert info["score"] == pytest.approx(told["baseline_score"], rel=1e-12)
