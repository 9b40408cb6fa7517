"""Snapshots on the wire: what goes out comes back, what is wrong is refused, and an observation needs nothing more."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.errors import ConfigError, SnapshotError
from envs.desk import Desk, arranged
from envs.options import Options
from envs.registration import IDS
from envs.scheduling_env import SchedulingEnv
from envs.sim.history import TOLD_OF
from envs.snapshot import UP, Snapshot
from envs.wire import MOST_JOBS, MOST_NODES, NODE_STATES, STATES, TOLD_NAMES, read, write

WAYS = [
    {"action_mode": "fit", "runtime_info": "hidden"},
    {"action_mode": "fit", "runtime_info": "predicted", "sched_algo": "sjf", "prior": "saf", "window": 128},
    {"action_mode": "easy", "sched_algo": "saf", "prior": "smith"},
    {"action_mode": "easy", "runtime_info": "predicted", "sched_algo": "wfp3", "window_order": "mix"},
    {"action_mode": "conservative", "sched_algo": "wfp3", "warm_rule": "fcfs@easy", "preset": "synthetic", "load": 2.0},
    {"action_mode": "reserve", "sched_algo": "unicep", "window_order": "arrival", "lookahead_mode": "per_gpu"},
    {"backfil": True, "sched_algo": "f1", "lookahead_mode": "sorted", "allocation": "best_fit"},
    {"action_mode": "fit", "runtime_info": "noisy:1", "sched_algo": "multifactor", "allocation": "consolidate"},
]


def equal(one: Snapshot, other: Snapshot) -> None:
    """Assert that two Snapshots are the same, to the last bit."""
    for name, mine, its in zip(Snapshot._fields, one, other, strict=True):
        if mine is None or its is None:
            assert mine is its, name
        elif isinstance(mine, np.ndarray):
            np.testing.assert_array_equal(mine, its, name)
        else:
            assert mine == its, name


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("name", IDS)
def test_a_snapshot_is_all_that_an_observation_needs(name, way):
    env = SchedulingEnv(cluster=name.split("-")[0].lower(), **({"window": 24, "seq_len": 48, "max_steps": 30} | way))
    desk, rng, kinds = None, np.random.default_rng(0), set()
    for seed in range(4):
        seen, _ = env.reset(seed=seed)
        over = False
        while not over:
            view = read(write(env.snapshot()))
            nodes, order = arranged(view)
            desk = desk or Desk(env.options, nodes)
            if not desk.look(view, order):
                assert env.episode.now["left"] == 0  # over when it began: all scored jobs slipped past a held one
                break
            for part, mine in desk.observation.items():
                if part == "mask" and way.get("action_mode") == "fit":
                    mine, seen[part] = mine[:-1], seen[part][:-1]  # the trace may be over, a real queue never is
                np.testing.assert_allclose(mine, seen[part], rtol=0, atol=1e-6, err_msg=part)
            np.testing.assert_allclose(desk.arrays["prior"], env.prior, rtol=0, atol=1e-6)
            np.testing.assert_array_equal(view.job[desk.window_rows()], env.episode.window_jobs())
            action = int(rng.choice(np.flatnonzero(env.action_masks())))
            slots = env.episode.window_jobs()
            outcome = desk.take(action)
            _same_starts(env, view, outcome, slots[action] if action < len(slots) else -1)
            kinds.add((len(outcome.starts) > 0, outcome.holds >= 0))
            seen, _, terminated, truncated, _ = env.step(action)
            _same_nodes(env, view, outcome)
            over = terminated or truncated
    assert any(starts for starts, _ in kinds)
    assert way.get("action_mode") not in ("easy", "conservative") or any(holds for _, holds in kinds)


def _same_starts(env, view, outcome, chosen):
    """The chosen job is the first to start, or it holds its pool."""
    if outcome.holds >= 0:
        assert view.job[outcome.holds] == chosen
    elif chosen >= 0:
        assert view.job[outcome.starts[0].row] == chosen
    else:
        assert not outcome.starts


def _same_nodes(env, view, outcome):
    """What the desk starts, the environment has started then, on the same nodes."""
    jobs, places = env.episode.arrays["jobs"], env.episode.arrays["places"]
    for start in outcome.starts:
        row = jobs[view.job[start.row]]
        mine = places[row["place_at"] : row["place_at"] + row["place_count"]]
        assert row["start"] == view.now
        assert list(start.nodes) == [(int(node), int(gpus)) for node, gpus in mine]


@st.composite
def snapshots(draw):
    """Any Snapshot that can be."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pools, more, named = draw(st.integers(1, 3)), draw(st.booleans()), draw(st.booleans())
    nodes, queued, ran = draw(st.integers(pools, 8)), draw(st.integers(0, 6)), draw(st.integers(0, 5))
    node_pool = rng.permutation(np.concatenate((np.arange(pools), rng.integers(0, pools, nodes - pools)))).astype("i4")
    capacity = rng.integers(8, 17, nodes).astype(np.int32)
    node_state = rng.integers(0, 3, nodes).astype(np.int8) if draw(st.booleans()) else None
    free = rng.integers(0, 4, nodes).astype(np.int32)
    if node_state is not None:
        free[node_state != UP] = 0
    now = float(rng.integers(0, 10**9)) + rng.random()
    submit, start = now * rng.random(queued), now * rng.random(ran)
    where = rng.integers(0, nodes, ran).astype(np.int32)
    names = [f"job é\x00 {i}" for i in range(queued)] if named else np.arange(queued).tolist()
    job = np.empty(queued, object if named else np.int64)
    job[:] = names
    run_time = np.where(rng.random(queued) < 0.3, np.nan, rng.random(queued) * 1e5)
    column = lambda count: rng.random(count) if more else None  # noqa: E731
    return Snapshot(
        now, job, submit, now - submit, rng.integers(1, 99, queued).astype(np.int32), run_time,
        rng.integers(0, pools, queued).astype(np.int32), np.arange(ran) - 3, start, np.ones(ran, np.int32),
        node_pool[where], np.where(rng.random(ran) < 0.3, np.nan, start + 7.7), free, capacity, node_pool,
        state=rng.integers(0, 4, queued).astype(np.int8) if more else None,
        history=rng.random((queued, TOLD_OF), np.float32) if more else None,
        cores=column(queued), memory=column(queued), running_guess=column(ran),
        place_at=np.arange(ran + 1) if more else None, place_node=where if more else None,
        place_gpus=np.ones(ran, np.int32) if more else None, node_state=node_state,
        node_name=np.array([f"n{i}" for i in range(nodes)], object) if named else None,
        node_cores=column(nodes), node_free_cores=column(nodes), node_memory=column(nodes),
        node_free_memory=column(nodes), pool_name=tuple("abc"[:pools]) if named else None,
    )  # fmt: skip


@given(snapshots())
@settings(max_examples=200)
def test_what_is_written_is_read(view):
    text = write(view)
    equal(read(text), view)
    equal(read(text.encode()), view)
    assert write(read(text)) == text


def small() -> dict:
    """A Snapshot as JSON has it: two nodes, two jobs that wait, one that runs."""
    return {
        "version": 1, "now": 100.0,
        "queued": {"job": ["a", "b"], "submit": [1, 2], "gpus": [1, 4], "run_time": [10, None], "pool": [0, 0]},
        "running": {"job": ["r"], "start": [5], "gpus": [2], "end": [50], "pool": [0]},
        "nodes": {"capacity": [4, 4], "free": [2, 4], "pool": [0, 0]},
    }  # fmt: skip


def changed(*path, to) -> str:
    """The small Snapshot with one thing changed."""
    told = small()
    part = told
    for key in path[:-1]:
        part = part[key]
    if to is None and path[-1] in part:
        del part[path[-1]]
    else:
        part[path[-1]] = to
    return json.dumps(told)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        ("[" * 100_000, "want columns"),
        ("[1, 2]", "a list; want an object"),
        (json.dumps(small()).replace("100.0", "NaN"), "NaN; want finite"),
        (json.dumps(small()).replace("100.0", "1e999"), "now: inf"),
        (json.dumps(small()).replace("100.0", "9" * 5000), "not JSON"),
        (json.dumps(small()).replace("100.0", "9" * 500), "now: 999"),
        (json.dumps(small()).replace("[1, 2]", f"[1, {'9' * 500}]"), "without end"),
        (changed("version", to=2), "version: 2; want 1"),
        (changed("version", to=None), "version: None; want 1"),
        (changed("now", to=None), "now: None"),
        (changed("now", to=True), "now: True"),
        (changed("now", to=-1), "now: -1"),
        (changed("colour", to=1), "colour: a field that is not known"),
        (changed("queued", to=None), "queued: nothing; want an object"),
        (changed("queued", "colour", to=[1, 2]), "queued.colour: a column that is not known"),
        (changed("queued", "gpus", to=None), "queued.gpus: nothing; want a list"),
        (changed("queued", "gpus", to=[1]), "queued.gpus: 1 values; want 2"),
        (changed("queued", "gpus", to=[1, -4]), r"queued.gpus\[1\]: -4; want a whole number"),
        (changed("queued", "gpus", to=[1, 0.5]), r"queued.gpus\[1\]: 0.5; want a whole number"),
        (changed("queued", "gpus", to=[1, "4"]), r"queued.gpus\[1\]: '4'; want a whole number"),
        (changed("queued", "gpus", to=[1, None]), r"queued.gpus\[1\]: None; want a whole number"),
        (changed("queued", "gpus", to=[1, [4]]), r"queued.gpus\[1\]: a list; want a whole number"),
        (changed("queued", "run_time", to=[-1, 2]), r"queued.run_time\[0\]: -1; want a number .* or null"),
        (changed("queued", "submit", to=[1, 101]), r"queued.submit\[1\]: 101; want at most now"),
        (changed("queued", "pool", to=[0, 1]), r"queued.pool\[1\]: 1, an unknown pool"),
        (changed("queued", "job", to=["a", "a"]), "one twice"),
        (changed("queued", "job", to=["a", 1]), "mixed kinds"),
        (changed("queued", "job", to=[1, 2**64]), "more than 64 bits"),
        (changed("queued", "job", to=["a", "b" * 300]), "a longer name"),
        (changed("queued", "state", to=["queued", "lost"]), r"queued.state\[1\]: 'lost'; want queued"),
        (changed("queued", "by_user", to=[0.1, 0.2]), "queued.by_vc: nothing"),
        (changed("running", "start", to=[101]), r"running.start\[0\]: 101"),
        (changed("running", "nodes", to=[[[0, 1]]]), "GPUs that are not the job's"),
        (changed("running", "nodes", to=[[]]), "GPUs that are not the job's"),
        (changed("running", "nodes", to=[[[9, 2]]]), "out of range"),
        (changed("running", "nodes", to=[[[0, -2]]]), "out of range"),
        (changed("running", "nodes", to=[[[1, 2]]]), r"nodes\[1\]: 6 GPUs used and free; want at most its 4"),
        (changed("running", "nodes", to=[[[0, 2, 3]]]), "pairs"),
        (changed("running", "nodes", to=[[0, 2]]), "pairs"),
        (changed("running", "nodes", to=7), "a number; want a list"),
        (changed("nodes", "free", to=[2, 5]), r"nodes.free\[1\]: 5; want at most its capacity, 4"),
        (changed("nodes", "free", to=[2, -1]), r"nodes.free\[1\]: -1"),
        (changed("nodes", "pool", to=[0, 2]), "no node of pool 1"),
        (changed("nodes", "state", to=["up", "gone"]), r"nodes.state\[1\]: 'gone'; want up"),
        (changed("nodes", "name", to=["x", 7]), "mixed kinds"),
        (changed("pools", to=["a", "b"]), "pools: 2 names; want 1"),
        (changed("nodes", "capacity", to=[1] * (MOST_NODES + 1)), "at most 20,000"),
        (changed("queued", "job", to=list(range(MOST_JOBS + 1))), "at most 50,000"),
        (changed("nodes", to={"capacity": [1024] * 200, "free": [0] * 200, "pool": [0] * 200}), "GPUs in all"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(text, word):
    with pytest.raises(SnapshotError, match=word):
        read(text)


def test_nodes_that_are_not_up_have_nothing_free():
    view = read(changed("nodes", "state", to=["drained", "up"]))
    assert view.free.tolist() == [0, 4]
    assert len(STATES) == 4
    assert len(NODE_STATES) == 3
    assert len(TOLD_NAMES) == TOLD_OF


def test_jobs_that_will_never_start_are_not_shown():
    told = small()
    told["queued"]["state"] = ["cancelled", "queued"]
    view = read(json.dumps(told))
    nodes, order = arranged(view)
    desk = Desk(Options(action_mode="fit", runtime_info="hidden"), nodes)
    assert desk.look(view, order)
    assert view.job[desk.window_rows()].tolist() == ["b"]
    told["queued"]["gpus"] = [1, 9]  # more than there are
    assert not desk.look(read(json.dumps(told)), order)


def test_jobs_and_nodes_may_stand_in_any_order():
    told = small()
    told["nodes"] = {"capacity": [4, 2, 4], "free": [0, 2, 4], "pool": [1, 0, 1]}
    told["queued"] |= {"submit": [9, 2], "pool": [1, 1], "gpus": [2, 2]}
    told["running"]["pool"] = [1]
    view = read(json.dumps(told))
    nodes, order = arranged(view)
    assert nodes.capacity.tolist() == [2, 4, 4]
    desk = Desk(Options(action_mode="fit", runtime_info="hidden"), nodes)
    assert desk.look(view, order)
    start = desk.take(0).starts[0]
    assert view.job[start.row] == "b"  # the first to come
    assert start.nodes == ((2, 2),)  # the node that is free, where it stands in the Snapshot


def test_a_held_job_starts_when_it_fits():
    told = small()
    told["queued"]["state"] = ["queued", "holding"]
    told["nodes"]["free"] = [1, 2]
    desk = Desk(Options(action_mode="reserve", runtime_info="hidden"), arranged(read(json.dumps(told)))[0])
    assert not desk.look(read(json.dumps(told)), np.arange(2), anew=True)
    assert desk.started() == ()
    told["nodes"]["free"] = [2, 4]
    desk.look(read(json.dumps(told)), np.arange(2), anew=True)
    assert [start.nodes for start in desk.started()] == [((1, 4),)]


def test_what_a_policy_needs_must_be_told():
    view = read(json.dumps(small()))
    nodes, order = arranged(view)
    with pytest.raises(SnapshotError, match=r"queued.run_time: null"):
        Desk(Options(action_mode="fit", sched_algo="sjf"), nodes).look(view, order)
    with pytest.raises(SnapshotError, match=r"running.nodes: nothing"):
        Desk(Options(action_mode="easy"), nodes).look(view, order)
    for options, word in (({"allocation": "fgd"}, "fgd"), ({"sched_algo": "random"}, "random"),
                          ({"prior": "sjf@oracle"}, "sjf@oracle")):  # fmt: skip
        with pytest.raises(ConfigError, match=word):
            Desk(Options(**options), nodes)
