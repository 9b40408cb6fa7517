"""Windows in the middle of a trace: whoever plays them, the beginning is the same and the rules are the simulator's."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.errors import ConfigError
from envs.episode import Episode
from envs.options import Options
from envs.policies import POLICIES
from envs.sim.simulator import DISCIPLINES, Simulation
from envs.stage import knowing, set_stage
from envs.window import Window, past_of, simulate_window
from eval.arena import Arena, Ground
from eval.judging import score_of
from eval.played import from_episode, from_schedule
from tests.conftest import make_trace, make_workload

WARM = [name for name in DISCIPLINES if not name.startswith("rlscheduler")]
COMPILED = [name for name, policy in POLICIES.items() if policy.code >= 0]


def stage_of(workload, **options: Any):
    return set_stage(workload, Options(**({"sched_algo": "fcfs", "action_mode": "fit"} | options)))


@st.composite
def tiny_workloads(draw):
    """A contended pool or two, with coarse times, so that ties and full pools happen."""
    jobs = draw(st.integers(4, 14))
    submit = np.sort(draw(st.lists(st.integers(0, 30), min_size=jobs, max_size=jobs)))
    run_time = draw(st.lists(st.integers(1, 20), min_size=jobs, max_size=jobs))
    gpus = draw(st.lists(st.sampled_from([1, 1, 2, 3, 4]), min_size=jobs, max_size=jobs))
    users = draw(st.lists(st.sampled_from("ab"), min_size=jobs, max_size=jobs))
    two = draw(st.booleans())
    vcs = draw(st.lists(st.sampled_from("01"), min_size=jobs, max_size=jobs))
    trace = make_trace(submit, run_time, gpus, user=users, **({"vc": vcs} if two else {}))
    return make_workload(trace, *([[2, 2], [4]] if two else [[2, 4]]))


UNCHANGING = [name for name in COMPILED if not POLICIES[name].changes]


@given(
    tiny_workloads(), st.sampled_from(UNCHANGING), st.sampled_from(["strict", "fit"]),
    st.sampled_from(["oracle", "predicted"]), st.data(),
)  # fmt: skip
@settings(max_examples=150)
def test_who_goes_on_as_he_began_makes_the_schedule_of_the_whole_trace(workload, policy, discipline, info, data):
    """Begun in the middle by its own rule, a simulation ends as it would have without a break.

    Under `reserve` a job that holds its pool is let go where a window begins; and where keys or reservations change
    with time, all pools are looked at again at a moment at which nothing happened to some of them. Those may differ.
    """
    stage = stage_of(workload, warm_rule=f"{policy}@{discipline}", runtime_info=info)
    whole = Simulation(workload, policy, discipline, runtime_info=info).run()
    first = data.draw(st.integers(0, len(workload) - 1))
    window = Window(stage, first, len(workload) - first)
    part = simulate_window(window, policy, discipline, runtime_info=info)
    assert part.start.tolist() == whole.start[window.jobs].tolist()


@given(tiny_workloads(), st.sampled_from(COMPILED), st.sampled_from(WARM), st.sampled_from(COMPILED), st.data())
@settings(max_examples=150)
def test_no_gpu_is_used_twice_and_nobody_starts_early(workload, policy, discipline, other, data):
    stage = stage_of(workload, warm_rule=f"{other}@easy")
    first = data.draw(st.integers(0, len(workload) - 1))
    count = data.draw(st.integers(1, len(workload) - first))
    window = Window(stage, first, count)
    schedule = simulate_window(window, policy, discipline)
    jobs, nodes = window.jobs, workload.nodes
    assert jobs[-count:].tolist() == list(range(first, first + count))
    ran = stage.roster["start"][jobs] < window.now
    ran[-count:] = False
    assert (schedule.start[ran] == stage.roster["start"][jobs][ran]).all()  # who ran goes on where he was
    assert (schedule.start[~ran] >= np.maximum(stage.roster["submit"][jobs][~ran], window.now)).all()
    for moment in np.concatenate((schedule.start, [window.now])):
        used = np.zeros(len(nodes.capacity), int)
        for i in np.flatnonzero((schedule.start <= moment) & (schedule.end > moment)):
            for node, gpus in schedule.nodes_of(int(i)):
                used[node] += gpus
        assert (used <= nodes.capacity).all()


@given(tiny_workloads(), st.sampled_from(["fcfs", "smallest", "lcfs"]))
@settings(max_examples=60)
def test_predictions_are_those_of_the_simulator(workload, policy):
    """Made afterwards from the ends of all jobs, a prediction is the one that was made when the job arrived."""
    made = stage_of(workload, sched_algo=policy, runtime_info="predicted")
    later = knowing(stage_of(workload, sched_algo=policy, runtime_info="oracle"), "predicted", 0)
    assert later.roster["start"].tolist() == made.roster["start"].tolist()
    assert later.roster["estimate"].tolist() == made.roster["estimate"].tolist()


def test_by_hand():
    """One GPU: a job of 100 s runs since 0, two wait, one arrives at 10. Shortest first serves 3 s, 5 s, then 50 s."""
    workload = make_workload(make_trace([0, 1, 2, 10], [100, 50, 5, 3], [1, 1, 1, 1]), [1])
    window = Window(stage_of(workload, sched_algo="fcfs"), 3, 1)
    assert window.jobs.tolist() == [0, 1, 2, 3]
    assert simulate_window(window, "sjf", "strict").start.tolist() == [0, 108, 103, 100]
    assert simulate_window(window, "fcfs", "strict").start.tolist() == [0, 100, 150, 155]


def test_what_cannot_begin_in_the_middle():
    workload = make_workload(make_trace([0, 1], [5, 5], [1, 1]), [1])
    with pytest.raises(ConfigError, match="begins with an idle cluster"):
        simulate_window(Window(stage_of(workload), 1, 1), "fcfs", "rlscheduler")
    with pytest.raises(ConfigError, match="POLICY@DISCIPLINE"):
        Options(warm_rule="sjf")
    with pytest.raises(ConfigError, match="discipline eazy: did you mean easy"):
        Options(warm_rule="sjf@eazy")
    with pytest.raises(ConfigError, match="does nothing without warm_start"):
        Options(warm_rule="sjf@easy", warm_start=False)


def test_a_warm_rule_where_run_times_are_hidden_uses_predictions_and_tells_nobody():
    options = Options(cluster="philly", warm_rule="sjf@easy", runtime_info="hidden")
    assert options.warm[2] == "predicted"
    workload = make_workload(make_trace([0, 1, 2], [5, 9, 4], [1, 1, 1]), [1])
    assert np.isnan(set_stage(workload, dataclasses.replace(options, cluster="test")).roster["estimate"]).all()


def test_a_python_function_plays_windows_too():
    workload = make_workload(make_trace([0, 1, 2, 10], [100, 50, 5, 3], [1, 1, 1, 1]), [1])
    window = Window(stage_of(workload, sched_algo="fcfs"), 3, 1)
    asked = simulate_window(window, lambda view: view.run_time, "strict")
    assert asked.start.tolist() == simulate_window(window, "spt", "strict").start.tolist()


@given(
    tiny_workloads(), st.sampled_from(UNCHANGING), st.sampled_from(["fit", "easy", "conservative"]),
    st.sampled_from(["bounded_slowdown", "wait", "utilization"]), st.data(),
)  # fmt: skip
@settings(max_examples=150)
def test_a_backlog_is_scored_by_what_it_waits_in_the_window(workload, policy, mode, score, data):
    """Environment and evaluation agree with a sum by hand: who waits when the window begins counts from then on."""
    first = data.draw(st.integers(0, len(workload) - 1))
    count = data.draw(st.integers(1, len(workload) - first))
    options = Options(sched_algo=policy, action_mode=mode, warm_rule="fcfs@fit", score_backlog=True, seq_len=count,
                      score_type=score, split="all")  # fmt: skip
    stage = set_stage(workload, options)
    window = Window(stage, first, count, backlog=True)
    schedule = simulate_window(window, policy, mode)
    begun, submit, run_time = window.now, workload.trace.submit, workload.trace.run_time
    waiting = [job for job in range(first) if stage.roster["start"][job] >= begun]
    scored = [*waiting, *range(first, first + count)]
    assert window.jobs[window.scored].tolist() == scored
    start = dict(zip(window.jobs.tolist(), schedule.start.tolist(), strict=True))
    waits = [start[job] - max(submit[job], begun) for job in scored]
    by_hand = {
        "wait": np.mean(waits),
        "bounded_slowdown": np.mean(
            [max(1, (w + run_time[j]) / max(run_time[j], 10)) for w, j in zip(waits, scored, strict=True)]
        ),
        "utilization": sum(run_time[j] * workload.trace.gpus[j] for j in scored)
        / (workload.nodes.capacity.sum() * (max(start[j] + run_time[j] for j in scored) - begun)),
    }[score]
    assert score_of(Ground(window, past_of(window)), from_schedule(schedule), score) == pytest.approx(by_hand)
    episode = Episode(options, stage)
    episode.begin(stage, first)
    assert float(episode.now["baseline"]) == pytest.approx(by_hand)
    while not (episode.now["terminated"] or episode.now["left"] == 0):
        episode.step(int(np.argmax(episode.arrays["mask"])))
        assert float(episode.now["reward"]) == 0.0
    assert from_episode(episode).start[window.scored].tolist() == [start[job] for job in scored]


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_nobody_waits_since_an_earlier_split(split):
    """What a model may have learned from is not asked of it: jobs of earlier splits may run, but none waits."""
    arena = Arena(Options(cluster="alibaba", split=split, warm_rule="sjf@easy", score_backlog=True), 12, 0)
    stage, submit = arena.stage, arena.stage.roster["submit"]
    before = {"train": 0, "validation": 0.6, "test": 0.8}[split]
    assert stage.since == arena.low == pytest.approx(before * len(submit), rel=0.02)
    dropped = 0
    for window, _ in arena.grounds("oracle"):
        there = window.jobs[: -window.count]
        assert (there[window.waits] >= stage.since).all()
        assert (window.jobs[window.scored] >= stage.since).all()
        old = (submit < window.now) & (stage.roster["start"] >= window.now)
        old[stage.since :] = False
        dropped += old.sum()
        runs = (stage.roster["start"] < window.now) & (stage.roster["end"] >= window.now)
        np.testing.assert_array_equal(np.sort(there[window.runs]), np.flatnonzero(runs))
    assert (dropped > 0) == (split != "train")  # there are such jobs, so the test can fail
