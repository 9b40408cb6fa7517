"""What jobs submitted next to a waiting one tell of it: by hand, by brute force, and never of the future."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.compiled import records
from envs.recalling import Kin, tell_nearby
from envs.scheduling_env import SchedulingEnv
from envs.sim.history import TOLD_OF
from envs.sim.members import ROSTER
from envs.sim.nearby import FORMER, NEAR_LEVELS, NEARBY_OF, REACH, line_up_groups, nearby_at, nobody_near

WHOLE = math.log1p(1e8)


def on_scale(seconds):
    """Seconds on the log scale of observations."""
    return math.log1p(seconds) / WHOLE


def told(submit, start, end, groups, asked, moment, former=0.25):
    """The features of one job; all three levels have the same groups."""
    roster = records(len(submit), ROSTER)
    roster["submit"], roster["start"], roster["end"] = submit, start, end
    over = np.isfinite(end)
    roster["run_time"][over] = (roster["end"] - np.where(over, start, 0.0))[over]
    levels = np.repeat(np.array(groups, np.int32)[:, None], NEAR_LEVELS + 1, axis=1)
    history = np.full((len(submit), TOLD_OF), former, np.float32)
    return nearby_at(
        roster, levels, *line_up_groups(levels), history, np.array([asked]), np.array([float(moment)])
    ).reshape(4, NEAR_LEVELS)  # fmt: skip


def test_by_hand():
    inf = math.inf
    # of five alike the one in the middle waits: next to it one has ended after 99 s, the other has run for 60 s
    submit, start, end = [0, 1, 2, 3, 4], [0, 1, inf, 40, inf], [500, 100, inf, inf, inf]
    near, going, seen, run = told(submit, start, end, [0] * 5, 2, 100)
    assert near == pytest.approx([(on_scale(99) + FORMER * 0.25) / (1 + FORMER)] * NEAR_LEVELS, abs=1e-6)
    assert going == pytest.approx([(on_scale(60) + 0.5 * on_scale(100)) / 1.5] * NEAR_LEVELS, abs=1e-6)
    assert seen == pytest.approx([1 / 8] * NEAR_LEVELS)
    assert run == pytest.approx([1.5 / 8] * NEAR_LEVELS)
    near, going, seen, run = told(submit, start, end, [0, 1, 0, 1, 1], 2, 100)  # only the first is of its kind
    assert near == pytest.approx([0.25] * NEAR_LEVELS)
    assert going == pytest.approx([on_scale(100)] * NEAR_LEVELS, abs=1e-6)
    assert seen.tolist() + run.tolist() == pytest.approx([0, 0, 0, 1 / 8, 1 / 8, 1 / 8])
    assert told(submit, start, end, [-1] * 5, 2, 100).tolist() == [[0.25] * 3, [0.0] * 3, [0.0] * 3, [0.0] * 3]


def brute(submit, start, end, groups, asked, moment, former):
    """The same, looked up one by one."""
    mates = [j for j in range(len(submit)) if groups[j] == groups[asked] >= 0]
    ended, runs = [(FORMER, former)], []
    for place, j in enumerate(mates):
        away = abs(place - mates.index(asked))
        if 1 <= away <= REACH and start[j] < moment:
            if end[j] <= moment:
                ended.append((1 / away, on_scale(end[j] - start[j])))
            else:
                runs.append((1 / away, on_scale(moment - start[j])))
    mean = lambda pairs: sum(w * x for w, x in pairs) / sum(w for w, _ in pairs) if pairs else 0.0  # noqa: E731
    weights = (sum(w for w, _ in ended) - FORMER) / 8, sum(w for w, _ in runs) / 8
    return [min(mean(ended), 1.0), min(mean(runs), 1.0), *weights]


@st.composite
def queues(draw):
    """Jobs in the order of submission, some ended, some running, some waiting."""
    count = draw(st.integers(1, 60))
    submit = np.cumsum(draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))).astype(float)
    wait = draw(st.lists(st.sampled_from([0, 1, 7, 50, math.inf]), min_size=count, max_size=count))
    run = draw(st.lists(st.sampled_from([1, 3, 20, 1e5]), min_size=count, max_size=count))
    groups = draw(st.lists(st.integers(-1, 2), min_size=count, max_size=count))
    start = submit + np.array(wait)
    return submit, start, start + np.array(run), groups


@given(queues(), st.data())
@settings(max_examples=150)
def test_as_looked_up_one_by_one(queue, data):
    submit, start, end, groups = queue
    asked = data.draw(st.integers(0, len(submit) - 1))
    moment = submit[asked] + data.draw(st.integers(0, 300))
    found = told(submit, start, end, groups, asked, moment, 0.5)
    for level in range(NEAR_LEVELS):
        expected = brute(submit, start, end, groups, asked, moment, 0.5)
        np.testing.assert_allclose(found[:, level], expected, atol=2e-6)


@given(queues(), st.data())
@settings(max_examples=100)
def test_the_future_is_not_told(queue, data):
    submit, start, end, groups = queue
    asked = data.draw(st.integers(0, len(submit) - 1))
    moment = submit[asked] + data.draw(st.integers(0, 100))
    later = np.where(end > moment, moment + 1e6, end)  # those that have not ended end at another time
    unstarted = np.where(start >= moment, math.inf, start)  # and those that have not started, never start
    now = told(submit, start, end, groups, asked, moment)
    np.testing.assert_array_equal(now, told(submit, unstarted, later, groups, asked, moment))


@given(queues(), st.data())
@settings(max_examples=50)
def test_a_list_of_known_jobs_tells_the_same(queue, data):
    submit, start, end, groups = queue
    moment = float(submit[-1]) + data.draw(st.integers(0, 100))
    state = np.where(end <= moment, 0, np.where(start < moment, 1, 2))
    order = np.argsort(state, kind="stable")
    waits = order[state[order] == 2]
    kin = Kin(np.full(len(order), "-1", object), np.full(len(order), "-1", object), np.array(groups)[order] + 2)
    start, end = np.where(state == 2, math.inf, start), np.where(state > 0, math.inf, end)
    history = np.full((len(waits), TOLD_OF), 0.5, np.float32)
    found = tell_nearby(kin, order, submit[order], start[order], end[order], history, moment)
    assert found.shape == (len(waits), NEARBY_OF)
    for row, job in zip(found, waits, strict=True):
        expected = brute(submit, start, end, np.array(groups) + 2, job, moment, 0.5)
        np.testing.assert_allclose(row.reshape(4, NEAR_LEVELS)[:, 2], expected, atol=2e-6)
        assert row.reshape(4, NEAR_LEVELS)[:, 0].tolist() == [0.5, 0.0, 0.0, 0.0]  # whose user is not known


def test_nobody_near():
    history = np.random.default_rng(0).random((3, TOLD_OF), np.float32)
    found = nobody_near(history)
    np.testing.assert_array_equal(found[:, :NEAR_LEVELS], history[:, :NEAR_LEVELS])
    assert not found[:, NEAR_LEVELS:].any()


def test_an_episode_tells_what_its_own_jobs_have_told():
    """A window in the middle: jobs that ended before it, and those that end in it as the agent plays, both count."""
    env = SchedulingEnv(cluster="helios", action_mode="fit", runtime_info="predicted", sched_algo="sjf",
                        warm_rule="sjf@easy", window=32)  # fmt: skip
    seen, _ = env.reset(seed=3)
    rng, stage, checked = np.random.default_rng(1), env.source.stage, 0
    first = seen["jobs"].shape[1] - 1 - NEARBY_OF
    for _ in range(150):
        episode = env.episode
        now, chosen = float(episode.arrays["sim"]["now"][0]), episode._chosen
        roster = stage.roster.copy()  # as this episode has it: who is not in it has ended, or is not there
        mine = episode.arrays["jobs"][: len(chosen)]
        gone = roster["end"] < stage.roster["submit"][episode.first]
        roster["start"][~gone] = np.inf
        roster["start"][chosen] = np.where(mine["start"] >= 0, mine["start"], np.inf)
        roster["end"] = roster["start"] + roster["run_time"]
        slots = episode.window_jobs()
        history = stage.history.copy()
        history[chosen] = episode.arrays["history"][: len(chosen)]
        expected = nearby_at(roster, stage.groups, stage.line, stage.line_at, history, chosen[slots].astype(np.int64),
                             np.full(len(slots), now))  # fmt: skip
        np.testing.assert_allclose(seen["jobs"][: len(slots), first : first + NEARBY_OF], expected, atol=2e-6)
        view = env.snapshot()
        np.testing.assert_allclose(view.nearby[np.searchsorted(view.job, slots)], expected, atol=2e-6)
        checked += len(slots)
        actions = np.flatnonzero(seen["mask"])
        seen, _, terminated, truncated, _ = env.step(int(rng.choice(actions)))
        if terminated or truncated:
            break
    assert checked > 300
