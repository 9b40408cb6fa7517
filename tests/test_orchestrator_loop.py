"""The orchestrator's loop on the simulated backend: job by job what the simulator and the environments do."""

import numpy as np
import pytest

from berth.errors import SchedulerError
from berth.streams import stream
from envs.episode import Episode
from envs.options import Options
from envs.policies import POLICIES
from envs.sim.simulator import simulate
from envs.stage import set_stage
from envs.workload import on_one_node
from eval.played import from_episode
from orchestrator.clocks import VirtualClock
from orchestrator.disciplines import DISCIPLINES
from orchestrator.host import Host
from orchestrator.loop import run_jobs
from orchestrator.producer import produce
from orchestrator.simulated import Simulated
from orchestrator.starting import Choice, Heuristic
from tests.conftest import make_trace


def tight(seed, cores=4, jobs=25):
    """Jobs that contend for few cores, at coarse times, so that ties and a full host happen."""
    rng = stream(seed, "tests of the loop")
    submit = np.sort(rng.integers(0, 12, jobs))
    trace = make_trace(
        submit - submit[0], rng.integers(1, 6, jobs), rng.integers(1, cores + 1, jobs),
        user=[f"u{k}" for k in rng.integers(0, 3, jobs)],
    )  # fmt: skip
    return on_one_node(trace, cores)


def starts(workload, chooser):
    """When the loop starts each job."""
    host, seen = Host(workload, chooser.needs_histories), []
    assert run_jobs(host, chooser, Simulated(VirtualClock()), seen.extend)
    assert sorted(one.number for one in seen) == list(range(len(workload)))
    assert [one.end for one in seen] == sorted(one.end for one in seen)
    return host.start


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("policy", POLICIES)
def test_starts_are_the_simulators(policy, discipline):
    """Every policy of the registry, under every discipline of the orchestrator."""
    for seed in range(4):
        workload = tight(seed)
        expected = simulate(workload, policy, discipline, seed=7).start
        np.testing.assert_array_equal(starts(workload, Heuristic(policy, discipline, 7)), expected, f"seed {seed}")


def test_a_function_is_a_policy():
    """A user's function is found by its word, which the metrics keep."""
    chooser = Heuristic("tests.test_orchestrator_loop:widest", "fit", 0)
    assert chooser.name == "tests.test_orchestrator_loop:widest"
    workload = tight(2)
    np.testing.assert_array_equal(starts(workload, chooser), simulate(workload, widest, "fit").start)


def widest(view):
    """Many cores first."""
    return -view.gpus


class Peeking(Heuristic):
    """Notes what it was shown."""

    needs_histories = True

    def __init__(self):
        super().__init__("fcfs", "strict", 0)
        self.told = {}

    def choose(self, view):
        """As fcfs does."""
        for row, job in enumerate(view.job):
            self.told.setdefault(int(job), view.history[row])
        return super().choose(view)


def test_what_ended_jobs_tell_is_what_an_environment_tells():
    """The ten columns of histories, of jobs that arrive while others end."""
    workload, peeking = tight(5), Peeking()
    run_jobs(Host(workload, True), peeking, Simulated(VirtualClock()), lambda _ended: None)
    stage = set_stage(workload, Options(cluster="host", warm_rule="fcfs@strict", runtime_info="oracle"))
    assert len({row.tobytes() for row in stage.history}) > 3
    for job, row in peeking.told.items():
        np.testing.assert_array_equal(row, stage.history[job])


def test_a_wrong_decision_is_not_carried_out():
    """More cores than are free are never given away, and nothing is left running."""

    class Greedy(Heuristic):
        """Starts everything."""

        def choose(self, view):
            """All at once."""
            return Choice(tuple(int(job) for job in view.job))

    backend = Simulated(VirtualClock())
    with pytest.raises(SchedulerError, match=r"cores, and \d are free"):
        run_jobs(Host(tight(0), False), Greedy("fcfs", "fit", 0), backend, lambda _ended: None)
    assert backend.ended() == []


def test_a_policy_that_starts_nobody_is_an_error_not_a_hang():
    """Virtual time cannot wait for what never comes."""

    class Idle(Heuristic):
        """Starts nothing."""

        def choose(self, view):
            """Nobody."""
            return Choice(())

    with pytest.raises(Exception, match="nothing can happen any more"):
        run_jobs(Host(tight(0), False), Idle("fcfs", "fit", 0), Simulated(VirtualClock()), lambda _ended: None)


def test_what_cannot_be_written_down_stops_everything():
    """An error while metrics are written leaves nothing running."""
    backend = Simulated(VirtualClock())

    def full(_ended):
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        run_jobs(Host(tight(0), False), Heuristic("fcfs", "strict", 0), backend, full)
    backend.wait(1e9)
    assert backend.ended() == []


def test_produced_jobs_are_within_their_ranges():
    """All values of both ranges come up, seeds repeat, and other seeds give other jobs."""
    made = produce(500, (2, 4), (3, 5), seed=1)
    assert set(made.gpus) == {2, 3, 4}
    assert set(made.run_time) == {3.0, 4.0, 5.0}
    assert not made.submit.any()
    np.testing.assert_array_equal(made.gpus, produce(500, (2, 4), (3, 5), seed=1).gpus)
    assert (made.run_time != produce(500, (2, 4), (3, 5), seed=2).run_time).any()
    later = produce(500, (2, 4), (3, 5), seed=1, gap=2.0)
    assert later.submit[0] == 0
    assert 1.5 < np.diff(later.submit).mean() < 2.5


def test_the_reward_is_throughput_and_waiting_time():
    """To choose as the baseline does earns 0; what is earned is half the gain in wait, half that in throughput."""
    from orchestrator.queue_env import DrawnJobs, QueueEnv

    told = {
        "cluster": "host", "window": 5, "seq_len": 12, "warm_start": False, "score_type": "wait",
        "action_mode": "reserve",
    }  # fmt: skip
    source = DrawnJobs(Options(**told), "train", 3, 12, (1, 3), (1, 5))
    env = QueueEnv(4, source, told)
    for imitates in (True, False):
        seen, _ = env.reset(seed=[3, 4, 5, 6])
        rng, earned, gain = stream(0, "tests of the reward"), np.zeros(4), np.full(4, np.nan)
        while np.isnan(gain).any():
            random = np.array([rng.choice(np.flatnonzero(mask)) for mask in seen["mask"]])
            seen, rewards, over, _, info = env.step(env.baseline_actions() if imitates else random)
            earned += rewards
            for e in np.flatnonzero(over & np.isnan(gain)):
                gain[e] = info["gain"][e]
                wait, makespan = scores(env.episodes[e])
                expected = 0.5 * (wait[1] - wait[0]) / max(*wait, 1.0) + 0.5 * (makespan[1] - makespan[0]) / max(
                    makespan
                )
                assert gain[e] == pytest.approx(expected, abs=1e-12)
            env.rest(np.flatnonzero(over))
        np.testing.assert_allclose(earned, gain, atol=1e-12)
        assert (gain == 0).all() if imitates else (gain != 0).any()


def scores(episode):
    """Mean wait and makespan, of the agent and of the baseline, by definition."""
    played, base = from_episode(episode), episode.arrays["base"]
    assert isinstance(episode, Episode)
    trace = episode.stage.workload.trace
    waits = [float((start - trace.submit).mean()) for start in (played.start, base)]
    spans = [float((start + trace.run_time).max()) for start in (played.start, base)]
    return waits, spans


def test_nothing_is_decided_where_nothing_has_happened():
    """A backend may wake the loop for no reason; orders that change with time are asked at events only."""

    class Restless(Simulated):
        """Wakes up halfway, each time."""

        def wait(self, until):
            """Half of the time there is, or all of it where that is short."""
            ends = [end for _, end in self._running.values()]
            left = min([until, *ends]) - self.now()
            self.clock.wait(self.now() + (left / 2 if left > 0.1 else left))

    for policy in ("wfp3", "sexp"):
        workload = tight(3)
        asked = []

        class Counting(Heuristic):
            """Notes when it was asked."""

            def choose(self, view):
                """As the policy does."""
                asked.append(view.now)  # noqa: B023 - used up within the round of the loop
                return super().choose(view)

        host = Host(workload, False)
        run_jobs(host, Counting(policy, "strict", 0), Restless(VirtualClock()), lambda _ended: None)
        expected = simulate(workload, policy, "strict").start
        np.testing.assert_allclose(host.start, expected, atol=1e-9)
        moments = {*workload.trace.submit, *(expected + workload.trace.run_time)}
        assert len(asked) <= len(moments)
