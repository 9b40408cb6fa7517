"""The compiled episodes and the readable ones must agree on every decision: who can be chosen, what is seen, earned."""

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from allocation.placers import PLACERS
from allocation.tiers import TIERS
from berth.errors import ConfigError
from envs.knowledge import know
from envs.policies import POLICIES
from envs.reward import SCORES, gain, window_score
from envs.scheduling_env import SchedulingEnv
from envs.sim.cluster import Cluster, Pool
from legacy.environment import Episode
from legacy.simulator import Job, Simulator
from tests.test_kernel_vs_legacy import cases

MODES = [("reserve", False), ("reserve", True), ("fit", False), ("easy", False), ("conservative", False)]


def make_env(case, **options):
    """A cold environment whose one window is the whole case."""
    trace, pools = case
    cluster = Cluster(
        "test",
        {"test": tuple(Pool(str(i), tuple((1, gpus) for gpus in pool)) for i, pool in enumerate(pools))},
        pool_by="vc" if len(pools) > 1 else "",
    )
    common = {"split": "all", "warm_start": False, "load": 0.0, "workload_seed": 3}
    given = common | options
    try:
        env = SchedulingEnv(cluster=cluster, workload=trace, **(given | {"seq_len": 1}))
        jobs = len(env.source.stage.roster)
        return SchedulingEnv(cluster=cluster, workload=trace, **({"seq_len": jobs} | given)), [list(p) for p in pools]
    except ConfigError as nothing_left:
        assert "no job fits" in str(nothing_left), nothing_left
        reject()


def make_reference(env, pools):
    """The readable episode of the same jobs."""
    o, workload = env.options, env.source.stage.workload
    kept = workload.trace
    draw = POLICIES[o.policy.name].draw
    keys = draw(len(kept), 3) if draw else np.zeros(len(kept))
    estimate = know(kept, o.runtime_info, 3).estimate
    jobs = [
        Job(
            i, float(kept.submit[i]), float(kept.run_time[i]), int(kept.gpus[i]), int(workload.pool[i]),
            float(estimate[i]), "" if kept.user[i] == "-1" else kept.user[i], kept.vc[i], float(keys[i]),
        )
        for i in range(len(kept))
    ]  # fmt: skip
    sim = Simulator(
        jobs, pools, o.policy.name, o.discipline, "pool", o.placement.name, o.runtime_info == "predicted",
        TIERS[o.placement.tiers], seed=3,
    )  # fmt: skip
    return Episode(sim, o.action_mode, o.backfil, o.window, o.window_order)


def play_both(env, pools, choices, features=True):
    """Play an episode in both, choosing the same; compare all on the way."""
    reference = make_reference(env, pools)
    seen, _ = env.reset(seed=0)
    earned, over = 0.0, reference.over
    assert not over
    for choice in choices:
        jobs = reference.shown()
        slots = env.episode.window_jobs()
        assert slots.tolist() == [job.number for job in jobs]
        valid = [reference.can(job) for job in jobs]
        assert seen["mask"][: len(jobs)].astype(bool).tolist() == valid
        assert seen["mask"][len(jobs) : env.options.window].sum() == 0
        if env.options.action_mode == "fit":
            assert bool(seen["mask"][-1]) == reference.can_wait()
        assert env.snapshot().now == reference.sim.now
        if features:
            np.testing.assert_allclose(seen["jobs"][: len(jobs)], reference.features(), atol=2e-5)
        actions = np.flatnonzero(seen["mask"])
        action = int(actions[choice % len(actions)])
        reference.choose(None if action == env.options.window else jobs[action])
        seen, reward, terminated, truncated, info = env.step(action)
        earned += reward
        assert terminated == reference.over
        assert not truncated
        if terminated:
            break
    assert terminated
    start = env.episode.arrays["jobs"]["start"]
    assert start.tolist() == [job.start for job in reference.sim.jobs]
    check_reward(env, info, earned, start)


def check_reward(env, info, earned, start):
    """What was earned is F, recomputed from the starts."""
    kept = env.source.stage.workload.trace
    gpus = int(env.source.stage.workload.nodes.capacity.sum())
    score = lambda starts: window_score(env.score_name, kept.submit, starts, kept.run_time, kept.gpus, gpus)  # noqa: E731
    assert info["score"] == pytest.approx(score(start), rel=1e-12)
    assert info["baseline_score"] == pytest.approx(score(env.episode.arrays["base"]), rel=1e-12)
    assert earned == pytest.approx(gain(env.score_name, info["baseline_score"], info["score"]), abs=1e-9)
    assert info["gain"] == pytest.approx(earned, abs=1e-9)


CHOICES = st.lists(st.integers(0, 1000), min_size=200, max_size=200)


@pytest.mark.parametrize(("mode", "backfil"), MODES)
@given(
    cases(),
    CHOICES,
    st.sampled_from(list(POLICIES)),
    st.sampled_from(["baseline", "arrival", "mix"]),
    st.sampled_from([1, 2, 3, 5, 128]),
    st.sampled_from(list(SCORES)),
    st.sampled_from(["dense", "terminal"]),
)
@settings(max_examples=150)  # fmt: skip
def test_every_decision(mode, backfil, case, choices, policy, order, window, score, reward):
    env, pools = make_env(
        case, action_mode=mode, backfil=backfil, sched_algo=policy, window_order=order, window=window,
        score_type=score, reward=reward,
    )  # fmt: skip
    play_both(env, pools, choices)


@pytest.mark.parametrize(("mode", "backfil"), MODES)
@pytest.mark.parametrize("allocation", [name for name in PLACERS if name != "milp"])
@given(cases(), CHOICES, st.sampled_from(["1", "1+2"]))
@settings(max_examples=20)
def test_every_placer(mode, backfil, allocation, case, choices, tiers):
    env, pools = make_env(
        case,
        action_mode=mode,
        backfil=backfil,
        allocation=allocation,
        tiers=tiers if PLACERS[allocation].tiered else "",
    )
    play_both(env, pools, choices, features=PLACERS[allocation].tiered)


@pytest.mark.parametrize("info", ["request", "predicted", "noisy:1"])
@given(cases(), CHOICES, st.sampled_from(MODES), st.sampled_from(["fcfs", "sjf", "wfp3"]))
@settings(max_examples=40)
def test_every_estimate(info, case, choices, mode, policy):
    env, pools = make_env(case, action_mode=mode[0], backfil=mode[1], sched_algo=policy, runtime_info=info)
    play_both(env, pools, choices)
