"""What keys are learned from is what an agent will see, job by job."""

import numpy as np
import pytest

from berth.errors import ConfigError
from envs.observation import JOB_FEATURES
from envs.options import Options
from envs.scheduling_env import SchedulingEnv
from envs.sim.nearby import NEARBY_OF, nearby_at
from envs.sim.observing import STEP
from train.config import Config
from train.lessons import NAMES, lessons

MOMENT = ("wait", "demand", "availability", "fragmentation", "ways", "fits", "slot")


@pytest.mark.parametrize("cluster", ["philly", "helios"])
@pytest.mark.parametrize("teacher", ["saf@oracle", "sjf"])
def test_lessons_are_what_is_seen_of_those_that_wait(cluster, teacher):
    options = {"cluster": cluster, "prior": teacher, "runtime_info": "predicted", "sched_algo": "sjf",
               "action_mode": "fit", "warm_rule": "sjf@easy"}  # fmt: skip
    env = SchedulingEnv(**options)
    stage = env.source.stage
    rows, keys, prior, job, moment = lessons(stage, 0, len(stage.roster), Options(**options), teacher)
    np.testing.assert_array_equal(keys, prior)
    timeless = [i for i, name in enumerate(NAMES) if name not in MOMENT]
    assert not rows[:, [i for i in range(len(JOB_FEATURES)) if i not in timeless]].any()
    assert (job[: len(stage.roster)] == np.arange(len(stage.roster))).all()
    assert (moment >= stage.roster["submit"][job]).all()
    assert (moment <= stage.roster["start"][job]).all()
    now_told = [i for i in timeless if NAMES[i].startswith(("near_", "going_"))]
    assert len(now_told) == NEARBY_OF
    timeless = [i for i in timeless if i not in now_told]
    compared = informed = 0
    for seed in range(12):
        seen, _ = env.reset(seed=seed)
        for slot, job in enumerate(env.episode.window_jobs()):
            number = env.episode._chosen[job]
            if stage.roster["submit"][number] >= stage.roster["submit"][env.episode.first]:
                continue  # what is known of those that arrive later depends on who plays
            np.testing.assert_allclose(seen["jobs"][slot][timeless], rows[number][timeless], atol=2e-6)
            now, submit = env.episode.arrays["sim"]["now"][0], stage.roster["submit"]
            lines = stage.roster, stage.groups, stage.line, stage.line_at, stage.history
            told = nearby_at(*lines, np.array([number]), np.array([now]))
            if now == submit[env.episode.first]:
                np.testing.assert_allclose(seen["jobs"][slot][now_told], told[0], atol=2e-6)
                at_first = nearby_at(*lines, np.array([number]), submit[[number]])
                informed += bool(np.abs(told - at_first).max() > 1e-3)
            if seen["mask"][slot]:
                assert env.prior[slot] == pytest.approx(keys[number], abs=STEP * (env.options.window + 1) + 1e-6)
            compared += 1
    assert compared > 50
    assert informed >= 5  # much has been told since they arrived


def test_a_teacher_without_ratios_is_refused():
    env = SchedulingEnv(cluster="synthetic")
    with pytest.raises(ConfigError, match="fcfs: its keys cannot be learned"):
        lessons(env.source.stage, 0, 10, Options(), "fcfs")
    with pytest.raises(ConfigError, match="fcfs: its keys cannot be learned"):
        lessons(env.source.stage, 0, 10, Options(prior="fcfs"), "saf")
    assert lessons(env.source.stage, 0, 10, Options(), "saf").prior.shape == (0,)


@pytest.mark.parametrize(
    ("more", "text"),
    [({"preset": "baseline_stable"}, "learns from a trace"), ({"policy_arch": "mlp"}, "learns job by job")],
)
def test_where_keys_cannot_be_learned(more, text):
    with pytest.raises(ConfigError, match=text):
        Config(cluster="synthetic", clone_loss="log_key", **({"clone": "saf"} | more))
