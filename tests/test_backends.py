"""What every backend must do: one suite over the registry; and what only real processes can do wrong."""

import os
import signal
import time

import pytest

from berth.errors import ConfigError, SchedulerError
from orchestrator.backends import BACKENDS, Setting, find_backend
from orchestrator.bell import Bell
from orchestrator.clocks import RealClock
from orchestrator.running import Job
from orchestrator.stress_ng import StressNg, find_program

WITHOUT = "stress-ng is not installed (apt-get install stress-ng): real jobs are not tested"
real = pytest.mark.skipif(not find_program(), reason=WITHOUT)

LATE = 20.0
"""Seconds by which a busy machine may be late."""


@pytest.fixture(
    params=[*((name, False) for name in BACKENDS), ("simulated", True)], ids=lambda p: f"{p[0]}{'!' * p[1]}"
)
def backend(request):
    """Every backend, simulated in real time too."""
    name, realtime = request.param
    if name == "stress_ng" and not find_program():
        pytest.skip(WITHOUT)
    with Bell() as bell:
        made = BACKENDS[name](Setting(bell, realtime=realtime))
        yield made
        made.stop()


def wait_for(backend, count, most=LATE):
    """The next jobs that end."""
    found, until = [], time.monotonic() + most
    while len(found) < count:
        assert time.monotonic() < until, f"only {found} have ended"
        backend.wait(float("inf"))
        found += backend.ended()
    return found


def alive(group):
    """Processes of a group that are more than zombies."""
    found = []
    for word in os.listdir("/proc"):
        if word.isdecimal():
            try:
                with open(f"/proc/{word}/stat") as file:
                    state, _, pgrp = file.read().rpartition(")")[2].split()[:3]
            except OSError:
                continue
            if int(pgrp) == group and state not in "ZX":
                found.append(int(word))
    return found


def test_names_are_the_registrys():
    """A backend is called what it is found by."""
    with Bell() as bell:
        for name, make in BACKENDS.items():
            if name != "stress_ng" or find_program():
                assert make(Setting(bell)).name == name


def test_jobs_end_once_in_order_and_take_their_time(backend):
    """Two at once, the longer one first; each is told once, with when it ran and that it went well."""
    begin = backend.now()
    first = backend.start(Job(4, "four", 1, 2.0))
    second = backend.start(Job(2, "two", 1, 1.0))
    assert begin <= first <= second
    assert backend.ended() == []
    ended = wait_for(backend, 2)
    assert [one.number for one in ended] == [2, 4]
    assert [one.start for one in ended] == [second, first]
    for one, seconds in zip(ended, (1.0, 2.0), strict=True):
        assert one.success, one.reason
        assert (one.reason, one.exit_code) == ("", 0)
        assert seconds - 0.1 <= one.end - one.start <= seconds + LATE
    assert backend.ended() == []
    assert backend.now() >= ended[-1].end


def test_waiting_ends_at_the_moment_asked_for(backend):
    """With nothing to wait for, and while a job runs that takes longer."""
    for running in (False, True):
        if running:
            backend.start(Job(0, "long", 1, 30.0))
        now = backend.now()
        while backend.now() < now + 0.2:
            backend.wait(now + 0.2)
        assert now + 0.2 <= backend.now() <= now + LATE
    assert backend.ended() == []


def test_nothing_is_left_after_a_stop(backend):
    """What was stopped has not ended; the same numbers can be started again."""
    for number in (0, 1):
        backend.start(Job(number, str(number), 1, 30.0))
    backend.stop()
    assert backend.ended() == []
    backend.start(Job(0, "again", 1, 1.0))
    assert [one.number for one in wait_for(backend, 1)] == [0]


@pytest.fixture
def stress():
    """Real processes that are given up half a second after their time."""
    with Bell() as bell:
        made = StressNg(RealClock(bell), patience=0.5)
        yield made
        made.stop()


def groups(backend):
    """The process groups of what runs."""
    return [one.process.pid for one in backend._running.values()]


@real
def test_what_a_job_uses_is_recorded(stress):
    """Processor time, memory, stress-ng's own count; a stop leaves no process of any group."""
    stress.start(Job(0, "a", 2, 1.0))
    (group,) = groups(stress)
    (one,) = wait_for(stress, 1)
    assert one.user_s > 0
    assert one.max_rss_kb > 1000
    assert one.bogo_ops > 0
    assert not alive(group)
    stress.start(Job(1, "b", 2, 30.0))
    (group,) = groups(stress)
    time.sleep(0.2)
    assert alive(group)
    stress.stop()
    assert not alive(group)


@real
def test_times_that_are_no_whole_seconds_are_kept():
    """stress-ng would take 0.4 s for 0, and never end."""
    with Bell() as bell:
        stress = StressNg(RealClock(bell, speedup=10.0))
        stress.start(Job(0, "a", 1, 4.0))
        (one,) = wait_for(stress, 1)
        assert one.success
        assert 4.0 <= one.end - one.start < 4.0 + 10 * LATE


@real
def test_a_job_that_hangs_is_killed(stress):
    """A process that is stopped in its tracks never ends by itself."""
    stress.start(Job(0, "a", 1, 1.0))
    (group,) = groups(stress)
    time.sleep(0.2)
    os.killpg(group, signal.SIGSTOP)
    (one,) = wait_for(stress, 1)
    assert not one.success
    assert one.reason.startswith("hung: killed 0.5 s after its time")
    assert one.exit_code == -signal.SIGKILL
    assert one.end - one.start >= 1.5
    assert not alive(group)


@real
def test_a_stop_ends_what_hangs(stress):
    """Who does not mind SIGTERM is killed."""
    stress.start(Job(0, "a", 1, 30.0))
    (group,) = groups(stress)
    time.sleep(0.2)
    os.killpg(group, signal.SIGSTOP)
    stress.stop()
    assert not alive(group)


@real
def test_a_job_that_fails_says_why(tmp_path):
    """By its exit status and its last words, or by the signal that ended it."""
    failing = tmp_path / "failing"
    failing.write_text(f'#!/bin/sh\nexec {find_program()} --cpu-method nosuch "$@"\n')
    failing.chmod(0o755)
    with Bell() as bell:
        stress = StressNg(RealClock(bell), program=str(failing))
        stress.start(Job(0, "a", 1, 1.0))
        (one,) = wait_for(stress, 1)
        assert not one.success
        assert one.exit_code > 0
        assert one.reason.startswith(f"exit status {one.exit_code}: ")
        stress = StressNg(RealClock(bell))
        stress.start(Job(0, "a", 1, 30.0))
        (group,) = groups(stress)
        until = time.monotonic() + LATE
        while len(alive(group)) < 2:  # the process, and the one that it keeps a core busy with
            assert time.monotonic() < until
            time.sleep(0.01)
        os.kill(group, signal.SIGKILL)  # the first of the group alone
        (one,) = wait_for(stress, 1)
        assert (one.success, one.exit_code) == (False, -9)
        assert "SIGKILL" in one.reason
        assert not alive(group)


@real
def test_a_program_that_cannot_be_started_is_told(tmp_path):
    """Not a traceback, and nothing is left running."""
    broken = tmp_path / "broken"
    broken.write_text("#!/nosuch\n")
    broken.chmod(0o755)
    with Bell() as bell:
        stress = StressNg(RealClock(bell), program=str(broken))
        with pytest.raises(SchedulerError, match=r"job a: .*broken could not be started: No such file"):
            stress.start(Job(0, "a", 1, 1.0))
        assert stress.ended() == []


def test_without_stress_ng_jobs_are_simulated(monkeypatch):
    """Unless the backend is asked for by name; names that are not known are answered with the nearest."""
    monkeypatch.setenv("PATH", "/nosuch")
    assert find_backend("", False) == (
        "simulated",
        "stress-ng is not installed: jobs are simulated, as with --simulate",
    )
    assert find_backend("", True) == ("simulated", "")
    with Bell() as bell, pytest.raises(ConfigError, match=r"stress-ng is not installed, .* WSL"):
        BACKENDS["stress_ng"](Setting(bell))
    with pytest.raises(ConfigError, match="did you mean stress_ng"):
        find_backend("stressng", False)
    with pytest.raises(ConfigError, match="disagree"):
        find_backend("stress_ng", True)


def test_a_bell_gives_signals_back():
    """Ctrl-C is noted, wakes who waits, and is Python's own again afterwards."""
    before = signal.getsignal(signal.SIGINT)
    with Bell() as bell:
        os.kill(os.getpid(), signal.SIGINT)
        begin = time.monotonic()
        bell.wait(30.0)
        assert time.monotonic() - begin < 25.0
        assert bell.stopped == signal.SIGINT
    assert signal.getsignal(signal.SIGINT) is before
