"""Many environments at once: the same as single ones, step by step, and what Gymnasium's own wrappers make of them."""

import copy
import os
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import FlattenObservation, RecordEpisodeStatistics, TimeLimit
from gymnasium.wrappers.vector import DictInfoToList, NormalizeReward
from gymnasium.wrappers.vector import RecordEpisodeStatistics as RecordVector

from berth.errors import ConfigError, SimulationError
from envs.registration import IDS
from envs.vector import SchedulingVectorEnv
from tests.test_environments import COMBINATIONS

SMALL = {"seq_len": 12, "window": 8, "load": 0.2}  # not so crowded that an episode has a long backlog


def choose(mask, rng):
    """An action for each environment: mostly valid, sometimes masked."""
    valid = np.array([rng.choice(np.flatnonzero(row)) for row in mask])
    anything = rng.integers(0, mask.shape[1], len(mask))
    return np.where(rng.random(len(mask)) < 0.9, valid, anything)


def assert_same(ours, theirs):
    """Two nested answers are equal, arrays and types included."""
    assert type(ours) is type(theirs) or isinstance(ours, np.ndarray), (type(ours), type(theirs))
    if isinstance(ours, dict):
        assert set(ours) == set(theirs)
        for key in ours:
            assert_same(ours[key], theirs[key])
    elif isinstance(ours, np.ndarray) and ours.dtype == object:
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
    else:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("options", COMBINATIONS, ids=str)
def test_all_at_once_is_one_by_one(options, mode):
    name = "Helios-v0" if options.get("topology") is None else "Philly-v0"
    options = SMALL | options
    ours = gymnasium.make_vec(name, num_envs=5, autoreset_mode=mode, **options)
    theirs = gymnasium.make_vec(
        name, num_envs=5, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, **options
    )
    rng = np.random.default_rng(0)
    seen, info = ours.reset(seed=11)
    same, same_info = theirs.reset(seed=11)
    assert_same((seen, info)[1], same_info)
    ends = 0
    for _ in range(250):
        assert_same(seen, same)
        actions = choose(seen["mask"], rng)
        seen, rewards, terminated, truncated, info = ours.step(actions)
        same, *rest, same_info = theirs.step(actions)
        for mine, its in zip((rewards, terminated, truncated), rest, strict=True):
            np.testing.assert_array_equal(mine, its)
        assert_same(info, same_info)
        over = terminated | truncated
        ends += over.sum()
        if mode == AutoresetMode.DISABLED and over.any():
            seen, info = ours.reset(options={"reset_mask": over.copy()})
            same, same_info = theirs.reset(options={"reset_mask": over.copy()})
            assert_same({k: info[k][over] for k in same_info}, {k: same_info[k][over] for k in same_info})
    assert ends > 2


def test_the_milp_plays_the_same_one_by_one():
    options = {"seq_len": 3, "warm_start": False, "allocation": "milp"}
    ours = gymnasium.make_vec("Synthetic-v0", num_envs=2, **options)
    theirs = gymnasium.make_vec("Synthetic-v0", num_envs=2, vectorization_mode="sync", **options)
    seen, same = ours.reset(seed=1)[0], theirs.reset(seed=1)[0]
    for _ in range(10):
        assert_same(seen, same)
        actions = seen["mask"].argmax(axis=1)
        (seen, *mine, _), (same, *its, _) = ours.step(actions), theirs.step(actions)
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize("name", IDS)
def test_make_vec_gives_the_compiled_one(name):
    many = gymnasium.make_vec(name, num_envs=3)
    assert isinstance(many.unwrapped, SchedulingVectorEnv)
    assert many.single_action_space.n == 128
    seen, _ = many.reset(seed=0)
    assert many.observation_space.contains(seen)
    assert many.action_space.contains(many.action_space.sample())
    assert "autoreset_mode" in many.metadata


def test_what_cannot_be_is_told():
    many = gymnasium.make_vec("Synthetic-v0", num_envs=3, **SMALL)
    for _ in range(2):
        with pytest.raises(SimulationError, match="want reset"):
            many.step(np.zeros(3, int))
    many.reset(seed=0, options={"reset_mask": np.array([True, False, False])})
    with pytest.raises(SimulationError, match="want reset"):
        many.step(np.zeros(3, int))
    many.reset(seed=0)
    for actions, message in (
        (np.array([0, 0, 8]), "action 8 of environment 2: want a whole number from 0 to 7"),
        (np.array([0, -1, 0]), "action -1 of environment 1"),
        (np.zeros(2, int), "want 3 whole numbers"),
        (np.zeros(3), "want 3 whole numbers"),
    ):
        before = copy.deepcopy(many.unwrapped.rows)
        with pytest.raises(SimulationError, match=message):
            many.step(actions)
        np.testing.assert_array_equal(before, many.unwrapped.rows)
    with pytest.raises(ConfigError, match="num_envs 0"):
        SchedulingVectorEnv(0)
    with pytest.raises(ConfigError, match="autoreset_mode sometimes: known: NextStep"):
        SchedulingVectorEnv(2, autoreset_mode="sometimes")
    for wrong in ([1, 2], 1.5, {1, 2, 3}):
        with pytest.raises(ConfigError, match="want one, or a list of 3"):
            many.reset(seed=wrong)
    for wrong in ([0, 2], True, np.zeros(3, bool), np.ones(2, bool), np.ones(3)):
        with pytest.raises(ConfigError, match="want an array of 3 truth values"):
            many.reset(options={"reset_mask": wrong})
    with pytest.raises(ConfigError, match="did you mean first"):
        many.reset(options={"frist": 3})
    with pytest.raises(ConfigError, match="want one, or 3"):
        many.reset(options={"first": [1, 2]})


def test_a_masked_action_raises_if_asked_to():
    many = gymnasium.make_vec(
        "Synthetic-v0", num_envs=2, action_mode="fit", invalid_action="raise", warm_start=False, **SMALL
    )
    seen, _ = many.reset(seed=0)
    actions = seen["mask"].argmax(axis=1)
    actions[1] = np.flatnonzero(seen["mask"][1] == 0)[0]
    with pytest.raises(SimulationError, match="of environment 1: masked; valid now"):
        many.step(actions)


def test_observations_are_copies_unless_asked_otherwise():
    safe, fast = (gymnasium.make_vec("Synthetic-v0", num_envs=2, copy=copy, **SMALL) for copy in (True, False))
    kept, _ = safe.reset(seed=0)
    was = copy.deepcopy(kept)
    shared, _ = fast.reset(seed=0)
    for _ in range(5):
        assert_same(*(env.step(env.unwrapped.baseline_actions())[0] for env in (safe, fast)))
    assert_same(kept, was)
    assert not np.array_equal(shared["jobs"], was["jobs"])


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"]
)
def test_a_copy_goes_on_alone(duplicate):
    many = gymnasium.make_vec("Synthetic-v0", num_envs=3, **SMALL)
    seen, _ = many.reset(seed=4)
    rng = np.random.default_rng(0)
    for _ in range(10):
        seen, *_ = many.step(choose(seen["mask"], rng))
    twin = duplicate(many)
    for _ in range(60):
        actions = choose(seen["mask"], rng)
        seen, *mine = many.step(actions)
        other, *its = twin.step(actions)
        assert_same(seen, other)
        for one, same in zip(mine, its, strict=True):
            assert_same(one, same)


def test_a_fork_goes_on_alone():
    many = gymnasium.make_vec("Synthetic-v0", num_envs=3, **SMALL)
    seen, _ = many.reset(seed=4)
    seen, *_ = many.step(seen["mask"].argmax(axis=1))
    actions = seen["mask"].argmax(axis=1)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            after, *_ = many.step(actions)
            os.write(writing, repr(float(after["jobs"].sum())).encode())
        finally:
            os._exit(0)
    os.close(writing)
    told = os.read(reading, 100).decode()
    os.waitpid(child, 0)
    after, *_ = many.step(actions)
    assert told == repr(float(after["jobs"].sum()))


def test_the_baseline_against_itself_earns_nothing():
    many = gymnasium.make_vec("Alibaba-v0", num_envs=8, autoreset_mode=AutoresetMode.SAME_STEP, seq_len=24)
    many.reset(seed=0)
    for _ in range(300):
        _, rewards, *_ = many.step(many.unwrapped.baseline_actions())
        assert not rewards.any()


def test_gymnasiums_wrappers_run():
    one = RecordEpisodeStatistics(FlattenObservation(TimeLimit(gymnasium.make("Philly-v0", **SMALL), 50)))
    seen, _ = one.reset(seed=0)
    assert one.observation_space.contains(seen)
    total = 0.0
    while True:
        _, reward, terminated, truncated, info = one.step(one.unwrapped.baseline_action())
        total += reward
        if terminated or truncated:
            break
    assert info["episode"]["r"] == total == 0.0
    many = DictInfoToList(RecordVector(NormalizeReward(gymnasium.make_vec("Synthetic-v0", num_envs=4, **SMALL))))
    seen, _ = many.reset(seed=0)
    rng, told = np.random.default_rng(0), []
    for _ in range(400):
        seen, *_, infos = many.step(choose(seen["mask"], rng))
        told += [info["episode"] for info in infos if "episode" in info]
    assert len(told) > 4
    assert all(entry["l"] > 0 for entry in told)


@pytest.mark.parametrize(
    "wrong",
    [{"options": {"first": [1, [2, 3], 4]}}, {"seed": [1, "x", 2]}, {"seed": [1, 1.9, 2]}, {"seed": [1, True, 2]}],
)
def test_seeds_and_windows_that_are_none_are_told(wrong):
    many = gymnasium.make_vec("Philly-v0", num_envs=3, seq_len=30)
    with pytest.raises(ConfigError, match="want"):
        many.reset(**wrong)


@pytest.mark.parametrize("wrong", [{"copy": "no"}, {"copy": None}, {"render_mode": "human"}])
def test_what_many_environments_cannot_do_is_told(wrong):
    with pytest.raises(ConfigError, match="want"):
        gymnasium.make_vec("Philly-v0", num_envs=2, seq_len=30, **wrong)


def test_environments_that_rest_are_left_alone():
    """Three episodes of eight decisions are over while one, begun again after three, plays on; then one is reset."""
    many = SchedulingVectorEnv(4, AutoresetMode.DISABLED, cluster="philly", seq_len=8, warm_start=False)
    seen, _ = many.reset(seed=5, options={"first": [10, 20, 30, 40]})
    first = np.array([True, False, False, False])
    rested = 0
    for step in range(11):
        if step == 3:
            seen, _ = many.reset(options={"first": 10, "reset_mask": first})
        resting = many.rows["left"] == 0
        before = {name: array.copy() for name, array in seen.items()}
        seen, rewards, terminated, _, info = many.step(seen["mask"].argmax(axis=1))
        for name, array in seen.items():
            assert (array[resting] == before[name][resting]).all()
        assert not rewards[resting].any()
        assert not terminated[resting].any()
        assert not info.get("_gain", resting & False)[resting].any()
        rested += int(resting.sum())
        many.rest(np.flatnonzero(terminated))
    assert rested == 9
    assert not many.rows["left"].any()
    many.reset(options={"first": 50, "reset_mask": first})
    many.step(np.zeros(4, int))
    assert many.rows["left"].tolist() == [7, 0, 0, 0]
    many.reset(seed=0)
    for _ in range(8):
        many.step(np.zeros(4, int))
    with pytest.raises(SimulationError):  # nobody rests who was not told to
        many.step(np.zeros(4, int))
