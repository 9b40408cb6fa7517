"""Host selection: the compiled episodes against a readable simulator, the environment, and its workloads."""

import re
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import envs  # noqa: F401 - lets Gymnasium know LSF-v0
from berth.errors import ConfigError, SimulationError, TraceError
from envs.host_courses import METRICS, Courses
from envs.host_env import HostEnv, HostVectorEnv
from envs.host_jobs import Episode, make_episode
from envs.host_options import BASELINES, HostOptions
from envs.sim.hosts import HOST, JOB
from legacy import hosts as legacy

SMALL = {"num_hosts": 6, "episode_length": 8, "max_jobs_per_step": 12, "host_cores_range": (4, 8),
         "host_memory_range": (4096, 16384)}  # fmt: skip


def episode(hosts, jobs, horizon=100.0):
    """An episode from rows (cores, memory) and (submit, run_time, cores, memory)."""
    h, j = np.zeros(len(hosts), HOST), np.zeros(len(jobs), JOB)
    h["cores"], h["memory"] = zip(*hosts, strict=True)
    j["submit"], j["run_time"], j["cores"], j["memory"] = zip(*jobs, strict=True)
    return Episode(h, j, horizon)


def courses_of(made):
    """Courses that hold one given episode."""
    most = int(max(made.jobs["cores"].max(), 1)), int(max(made.jobs["memory"].max(), 1))
    courses = Courses(HostOptions(
        num_hosts=len(made.hosts), episode_length=1, max_jobs_per_step=len(made.jobs), host_cores_range=(10**5, 10**5),
        host_memory_range=(10**6, 10**6), job_cores_range=(1, most[0]), job_memory_range=(1, most[1]),
    ), 1)  # fmt: skip
    courses.set_up(0, made)
    return courses


def test_a_few_jobs_by_hand():
    """The second job fits nowhere and waits; the third, smaller, passes it."""
    made = episode([(4, 100), (2, 100)], [(0, 10, 3, 10), (1, 10, 4, 10), (2, 5, 2, 10), (3, 1, 1, 95)], horizon=20)
    courses = courses_of(made)
    courses.play(0, "first_available", 0)
    jobs = courses.jobs[0]
    assert jobs["start"][:4].tolist() == [0, 10, 2, 7]  # the last one's memory fits when the third has ended
    assert jobs["host"][:4].tolist() == [0, 0, 1, 1]
    told = courses.metrics(0)
    assert told["queue_wait"] == pytest.approx((0 + 9 + 0 + 4) / 4)
    assert told["makespan"] == 20
    assert told["completion_rate"] == 1.0
    assert told["core_utilization"] == pytest.approx((3 * 10 + 4 * 10 + 2 * 5 + 1 * 1) / (6 * 20))


hosts_drawn = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 20)), min_size=1, max_size=5)
times = st.one_of(st.integers(0, 12).map(float), st.floats(0, 12))


@st.composite
def episodes_drawn(draw):
    hosts = draw(hosts_drawn)
    count = draw(st.integers(1, 25))
    jobs = []
    for _ in range(count):
        cores, memory = hosts[draw(st.integers(0, len(hosts) - 1))]
        jobs.append((draw(times), draw(st.one_of(st.integers(1, 9).map(float), st.floats(0.1, 30))),
                     draw(st.integers(1, cores)), draw(st.integers(1, memory))))  # fmt: skip
    return hosts, sorted(jobs, key=lambda job: job[0]), draw(st.floats(0.5, 40))


@settings(max_examples=200, deadline=None)
@given(drawn=episodes_drawn(), who=st.sampled_from(sorted(legacy.CHOICES)))
def test_episodes_go_as_the_readable_simulator_says(drawn, who):
    hosts, jobs, horizon = drawn
    courses = courses_of(episode(hosts, jobs, horizon))
    courses.play(0, who, 0)
    theirs = [legacy.Job(*job) for job in jobs]
    told = legacy.simulate([legacy.Host(*host) for host in hosts], theirs, horizon, legacy.CHOICES[who])
    assert courses.jobs[0]["host"][: len(jobs)].tolist() == [job.host for job in theirs]
    np.testing.assert_allclose(courses.jobs[0]["start"][: len(jobs)], [job.start for job in theirs], atol=1e-9)
    for name, value in courses.metrics(0).items():
        assert value == pytest.approx(told[name], abs=1e-9), name


def test_gymnasium_accepts_it():
    check_env(HostEnv(**SMALL), skip_render_check=True)
    env = gymnasium.make("LSF-v0", num_hosts=20)
    seen, _ = env.reset(seed=1)
    assert seen["state"].shape == (20 * 4 + 2,)
    assert env.action_space.n == 20
    many = gymnasium.make_vec("LSF-v0", num_envs=3, num_hosts=20)
    assert many.reset(seed=1)[0]["state"].shape == (3, 82)


def test_many_are_as_single_ones():
    """Equal seeds: equal observations, rewards and outcomes, also over the ends of episodes."""
    rng = np.random.default_rng(0)
    many, single = HostVectorEnv(3, **SMALL), [HostEnv(**SMALL) for _ in range(3)]
    seen, _ = many.reset(seed=5)
    for e, env in enumerate(single):
        alone, _ = env.reset(seed=5 + e)
        np.testing.assert_array_equal(seen["state"][e], alone["state"])
    over, ends = np.zeros(3, bool), 0
    while ends < 5:
        actions = np.array([rng.choice(np.flatnonzero(row)) for row in seen["mask"]])
        seen, reward, terminated, _, info = many.step(actions)
        for e, env in enumerate(single):
            if over[e]:
                alone, _ = env.reset()
                over[e] = False
            else:
                alone, earned, over[e], _, told = env.step(actions[e])
                assert (reward[e], terminated[e]) == (earned, over[e])
                if over[e]:
                    ends += 1
                    assert {name: info[name][e] for name in METRICS} == {name: told[name] for name in METRICS}
            np.testing.assert_array_equal(seen["state"][e], alone["state"])
            np.testing.assert_array_equal(seen["mask"][e], alone["mask"])


def test_rewards_add_up_and_the_state_is_true():
    env = HostEnv(**SMALL)
    for seed in range(3):
        seen, info = env.reset(seed=seed)
        total, over, told = 0.0, False, {}
        while not over:
            hosts, course = env.courses.hosts[0], env.courses.course[0]
            job = env.courses.jobs[0][course["current"]]
            state = seen["state"][:-2].reshape(-1, 4)
            np.testing.assert_allclose(state[:, 0], 1 - hosts["free_cores"] / hosts["cores"], atol=1e-6)
            np.testing.assert_allclose(state[:, 1], 1 - hosts["free_memory"] / hosts["memory"], atol=1e-6)
            np.testing.assert_allclose(state[:, 2], hosts["cores"] / hosts["cores"].max(), atol=1e-6)
            np.testing.assert_allclose(seen["state"][-2:], [job["cores"] / 4, job["memory"] / 4096], atol=1e-6)
            room = (hosts["free_cores"] >= job["cores"]) & (hosts["free_memory"] >= job["memory"])
            np.testing.assert_array_equal(seen["mask"].astype(bool), room)
            seen, reward, over, _, told = env.step(int(np.argmax(seen["mask"])))
            total += reward
        assert told["gain"] == pytest.approx(0.0, abs=1e-9), "first_available is the baseline"
        assert told["score"] == pytest.approx(total + _first(env, seed), abs=1e-9)
        wait = np.mean(env.courses.jobs[0]["start"] - env.courses.jobs[0]["submit"])
        assert wait >= 0
        assert info["baseline_score"] == told["baseline_score"]


def _first(env, seed):
    """What has been earned before the first decision: time passes until the first job arrives."""
    again = HostEnv(**SMALL)
    again.reset(seed=seed)
    return float(again.courses.course["earned"][0])


def test_seeds_make_workloads():
    options = HostOptions(**SMALL)
    one, again, other = make_episode(options, 3), make_episode(options, 3), make_episode(options, 4)
    np.testing.assert_array_equal(one.jobs, again.jobs)
    np.testing.assert_array_equal(one.hosts, again.hosts)
    assert len(one.jobs) != len(other.jobs) or (one.jobs["run_time"] != other.jobs["run_time"]).any()
    test = make_episode(HostOptions(**(SMALL | {"split": "test"})), 3)
    assert len(one.jobs) != len(test.jobs) or (one.jobs["run_time"] != test.jobs["run_time"]).any()


@pytest.mark.parametrize("more", [{}, {"load": 0.7}, {"job_memory_range": (2048, 4096), "load": 1.2}])
def test_generated_jobs_keep_to_their_ranges_and_the_load(more):
    options = HostOptions(**({"num_hosts": 30, "episode_length": 100} | more))
    made = make_episode(options, 0)
    jobs, hosts = made.jobs, made.hosts
    assert jobs["cores"].min() >= 1
    assert jobs["cores"].max() <= 4
    assert jobs["memory"].min() >= options.job_memory_range[0]
    assert jobs["memory"].max() <= options.job_memory_range[1]
    assert (np.diff(jobs["submit"]) >= 0).all()
    assert np.bincount((jobs["submit"] / 60).astype(int)).max() <= 50
    load = max((jobs["run_time"] * jobs[n]).sum() / hosts[n].sum() / made.horizon for n in ("cores", "memory"))
    assert load == pytest.approx(more.get("load", 1.0))
    logs = np.log(jobs["run_time"])
    assert logs.std() == pytest.approx(1.5, rel=0.15)


def swf(path, rows):
    """Write a log of (submit, run_time, processors, KB of memory for each)."""
    lines = ["; MaxNodes: 4", "; MaxProcs: 32"]
    lines += [f"{i + 1} {s} 0 {r} {n} -1 -1 {n} -1 {m} 1 1 1 -1 1 1 -1 -1" for i, (s, r, n, m) in enumerate(rows)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_a_trace_with_memory(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(10 * i, int(rng.integers(5, 60)), int(rng.integers(1, 10)), 1000) for i in range(200)]
    file = swf(tmp_path / "log.swf", rows)
    options = HostOptions(workload=file, num_hosts=4, trace_jobs=20, split="test")
    made = make_episode(options, 0)
    assert (made.hosts["cores"] == 8).all(), "as the file's header tells"
    assert len(made.jobs) == 20
    assert made.jobs["cores"].max() <= 8, "a job of nine processors fits no host"
    np.testing.assert_array_equal(made.jobs["memory"], made.jobs["cores"])  # 1,000 KB of each is 1 MB
    env = HostEnv(workload=file, num_hosts=4, trace_jobs=20)
    assert any("fit no host" in note for note in env.notes)
    seen, _ = env.reset(seed=0)
    over = False
    while not over:
        seen, _, over, _, told = env.step(int(np.argmax(seen["mask"])))
    assert told["decisions"] == 20
    text = (tmp_path / "log.swf").read_text()
    odd = tmp_path / "odd.swf"  # text where nothing is reckoned from, as some logs have it
    odd.write_text(re.sub(r" 0 (\d+ \d+) -1 (.*) -1 -1\n", r" soon \1 n/a \2 job#1 idle\n", text))
    assert odd.read_text().count("soon") == 200
    np.testing.assert_array_equal(make_episode(replace(options, workload=str(odd)), 0).jobs, made.jobs)
    wrong = tmp_path / "wrong.swf"
    wrong.write_text(text.replace(" 1000 1 ", " much 1 ", 1))
    with pytest.raises(TraceError, match=r"wrong.swf:3: requested_memory = much"):
        HostEnv(workload=str(wrong), num_hosts=4)
    without = swf(tmp_path / "bare.swf", [(s, r, n, -1) for s, r, n, _ in rows])
    with pytest.raises(ConfigError, match="no job tells both cores and memory"):
        HostEnv(workload=without, num_hosts=4)
    made = make_episode(HostOptions(workload=without, num_hosts=4, memory_per_core=10.0), 0)
    np.testing.assert_array_equal(made.jobs["memory"], 10 * made.jobs["cores"])
    with pytest.raises(ConfigError, match="for the jobs of a trace"):
        HostOptions(memory_per_core=10.0)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_hosts": 0}, "num_hosts 0"), ({"load": 0.0}, "load 0"), ({"host_cores_range": (8, 4)}, "8 4: want two"),
        ({"job_cores_range": (1, 99)}, "every host can hold"), ({"baseline": "first"}, "known: first_available"),
        ({"hosts": 5}, "did you mean num_hosts"), ({"episode_length": 10**6, "max_jobs_per_step": 10**6}, "at most"),
    ],
)  # fmt: skip
def test_options_that_cannot_be(options, text):
    with pytest.raises(ConfigError, match=text):
        HostEnv(**options)


def test_actions_that_cannot_be():
    env = HostEnv(**SMALL)
    with pytest.raises(SimulationError, match="reset"):
        env.step(0)
    seen, _ = env.reset(seed=0)
    with pytest.raises(SimulationError, match="whole number from 0 to 5"):
        env.step(6)
    while seen["mask"].all():
        seen = env.step(0 if seen["mask"][0] else int(np.argmax(seen["mask"])))[0]
    with pytest.raises(SimulationError, match="no room"):
        env.step(int(np.argmin(seen["mask"])))


def test_baselines_differ_as_they_should():
    courses = Courses(HostOptions(load=1.0), 1)
    rows = {who: courses.judge(0, who, 42) for who in BASELINES}
    assert rows["least_loaded"]["load_imbalance"] < 0.2 * rows["first_available"]["load_imbalance"]
    assert rows["random"]["load_imbalance"] < rows["first_available"]["load_imbalance"]
    assert courses.judge(0, "random", 42) == rows["random"], "lots are drawn by the seed"
