"""A learned order under RLScheduler's protocol: the compiled play, the model's jobs, the search."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import gamma

from benchmarks.conformance import read_jobs
from benchmarks.evolving import Evolution
from benchmarks.lublin import (
    LENGTH,
    NUMBERS,
    ROOT,
    SJF,
    Config,
    Judge,
    check,
    cut,
    drawn,
    interval,
    made,
    main,
    search,
    unseen_by_the_test,
)
from benchmarks.lublin import PUBLISHED as THEIRS
from benchmarks.lublin_play import INPUTS, cycle_rows, job_rows, mean_slowdown, play
from berth.errors import ConfigError
from legacy.rlscheduler import Job
from legacy.rlscheduler import play as readable_play
from tests.test_conformance import PUBLISHED, STARTS
from traces.lublin import Model, daily_cycle, lublin_jobs

DAY = cycle_rows(daily_cycle(Model()))


def readable_key(weights, day=DAY):
    """The key of benchmarks/lublin_play.py, job by job, for a machine of legacy/rlscheduler.py."""

    def brought(time):
        begin = math.floor(time / 86400) * 86400
        slot = int((time - begin) / 1800)
        return begin + day[1][slot] + (time - begin - slot * 1800) * day[0][slot]

    some = lambda arrivals: np.log1p(arrivals / 100) / 3  # noqa: E731
    gains = lambda job: 1 / max(job.request, 10)  # noqa: E731

    def decide(machine):
        now, waiting = machine.now, machine.waiting
        expected = lambda job: machine.start[job.number] + job.request  # noqa: E731
        growth = sum(gains(job) for job in waiting)
        rate = day[0][int(now % 86400 / 1800)] - 1

        def key(job):
            ends = sorted(machine.running, key=expected)
            free, begins = machine.free, now
            while free < job.processors:
                other = ends.pop(0)
                free, begins = free + other.processors, max(now, expected(other))
            unfit, delay = float(machine.free < job.processors), begins - now
            past = [k for k in waiting if k.processors <= machine.free and now + k.request < begins]
            slips = sum(gains(k) for k in past) if machine.backfill and begins > now else 0.0
            over = begins + job.request
            more = min(over, max(begins, expected(ends[0]))) if ends else over
            r, n = np.log(max(job.request, 1.0)) / 5 - 1, np.log(job.processors) / 3 - 1
            room, more = np.log1p(free - job.processors) / 3 - 1, some(brought(more) - brought(begins)) - 1
            wait, later = now - job.submit, np.log1p(delay) / 5
            seen = [
                r, n, unfit, unfit * n, unfit * r, r * n, n * machine.free / machine.processors, np.log1p(wait) / 5 - 1,
                np.log1p(wait * gains(job)) / 5, later, later * r, some(brought(begins) - brought(now)),
                np.log1p((growth - slips) * delay) / 5, np.log1p(10 * slips), some(brought(over) - brought(begins)) - 1,
                n * rate, room, more, room * more,
            ]  # fmt: skip
            return sum(weight * value for weight, value in zip(weights, seen, strict=True))

        return min(waiting, key=key)  # the first of equal ones

    return decide


@st.composite
def cases(draw):
    """Tiny contended machines with coarse times, over midnight, some weights 0: ties and full machines happen."""
    count, machine = draw(st.integers(1, 24)), draw(st.integers(1, 8))
    column = lambda values: np.array(draw(st.lists(values, min_size=count, max_size=count)), float)  # noqa: E731
    unit = draw(st.sampled_from([1.0, 700.0]))
    submit = 86_000 + unit * np.sort(column(st.integers(0, 20)))
    run_time = unit * column(st.sampled_from([1, 2, 3, 5, 10, 10, 20, 30]))
    request = run_time if draw(st.booleans()) else unit * column(st.sampled_from([1, 2, 3, 5, 12, 40]))
    processors = column(st.integers(1, machine)).astype(int)
    counts = np.array(draw(st.lists(st.booleans(), min_size=len(INPUTS), max_size=len(INPUTS))))
    weights = counts * np.random.default_rng(draw(st.integers(0, 2**32 - 1))).standard_normal(len(INPUTS))
    return submit, run_time, request, processors, machine, draw(st.booleans()), weights


@given(cases())
@settings(max_examples=400)
def test_the_compiled_play_is_the_readable_one(case):
    submit, run_time, request, processors, machine, backfill, weights = case
    jobs = job_rows(submit, run_time, request, processors, machine)
    play(jobs, machine, backfill, DAY, weights)
    rows = zip(submit.tolist(), run_time.tolist(), request.tolist(), processors.tolist(), strict=True)
    readable = [Job(i, *row) for i, row in enumerate(rows)]
    started = readable_play(readable, machine, backfill, readable_key(weights))
    assert [started[i] for i in range(len(readable))] == jobs["start"].tolist()


def test_by_hand():
    """On 4 processors: the long job runs, then the short wide one has to wait, or the narrow one goes first."""
    jobs = job_rows(np.array([0.0, 1, 2, 3]), np.array([100.0, 10, 50, 20]), np.array([100.0, 10, 50, 20]),
                    np.array([3, 4, 1, 1]), 4)  # fmt: skip
    assert mean_slowdown(jobs, 4, False, DAY, SJF) == pytest.approx((1 + 109 / 10 + 158 / 50 + 127 / 20) / 4)
    assert jobs["start"].tolist() == [0, 100, 110, 110]
    play(jobs, 4, True, DAY, SJF)  # the two narrow ones end before 100, and slip past one after the other
    assert jobs["start"].tolist() == [0, 100, 2, 52]
    wide_last = np.zeros(len(INPUTS))
    wide_last[INPUTS.index("ln n")] = 1.0
    play(jobs, 4, False, DAY, wide_last)
    assert jobs["start"].tolist() == [0, 100, 110, 110]  # alone in the queue at 1 s, the wide one was chosen for good


@pytest.mark.parametrize(
    ("submit", "processors", "message"),
    [
        ([1.0, 0.0], [1, 1], "want them sorted"),
        ([0.0, 1.0], [1, 5], "want 1 to 4"),
        ([0.0, 1.0], [0, 1], "want 1 to 4"),
    ],
)
def test_what_cannot_be_played(submit, processors, message):
    with pytest.raises(ConfigError, match=message):
        job_rows(np.array(submit), np.ones(2), np.ones(2), np.array(processors), 4)


@pytest.mark.parametrize("backfill", [False, True])
def test_sjf_as_weights_is_the_published_one(real, backfill):
    log = read_jobs(real / "swf/lublin_256.swf")
    got = Judge(log.machine, backfill)([cut(log, at) for at in STARTS], SJF)
    assert got.mean() == pytest.approx(PUBLISHED["sjf"][int(backfill)], abs=0.00051)


def test_what_the_test_holds_is_not_outside_it(real):
    log = read_jobs(real / "swf/lublin_256.swf")
    stretches = unseen_by_the_test(log, STARTS)
    tested = {job for at in STARTS for job in range(at, at + LENGTH)}
    assert stretches[0] == (0, 1981)
    assert not any(job in tested for low, high in stretches for job in range(low, high))
    assert sum(high - low for low, high in stretches) + len(tested) == len(log.submit)


def test_out_of_sample_no_job_of_the_log_is_learned_from(real):
    """The same sequences, and so the same weights, whatever the log holds."""
    log = read_jobs(real / "swf/lublin_256.swf")
    other = log._replace(run_time=log.run_time[::-1], request=log.request[::-1])
    few = Config(rounds=2, candidates=4, sequences=1)
    found = [
        search(one, Judge(one.machine, True), 0, few, drawn(one, False, 2, np.random.default_rng(1)))
        for one in (log, other)
    ]
    assert found[0].tolist() == found[1].tolist()
    in_sample = [drawn(one, True, 1, np.random.default_rng(1))[0]["run_time"] for one in (log, other)]
    assert in_sample[0].tolist() != in_sample[1].tolist()


def test_made_jobs_are_as_published():
    """Lublin and Feitelson's shares and moments, as far as they follow from the parameters by hand."""
    jobs = lublin_jobs(Model(), 60_000, np.random.default_rng(2))
    sizes, run_time = jobs.processors, jobs.run_time
    assert (sizes == 1).mean() == pytest.approx(0.244, abs=0.01)
    # 8 is a rounded power from 2.5 to 3.5, a unit of the 4.7 of the first stage; and a little of the rest
    assert (sizes == 8).mean() == pytest.approx(0.576 * 0.86 / 4.7, abs=0.006)
    assert (sizes == 256).mean() == pytest.approx(0.576 * 0.14 * 0.5 / 2.5, abs=0.004)
    assert sizes.min() == 1
    assert sizes.max() == 256
    is_short = np.log(run_time) < 7
    below = gamma.cdf(7, 4.2, scale=0.94)  # of the short kind
    assert is_short[sizes == 1].mean() == pytest.approx((0.78 - 0.0054) * below, abs=0.015)
    assert not is_short[sizes > 145].any()  # 0.78 - 0.0054 n is below 0: all are of the long kind
    assert np.log(run_time[sizes > 145]).mean() == pytest.approx(312 * 0.03, abs=0.05)
    assert run_time.max() <= math.exp(12)
    assert (np.diff(jobs.submit) >= 0).all()
    hours = np.bincount((jobs.submit % 86400 // 3600).astype(int), minlength=24)
    assert 11 <= hours.argmax() <= 16
    assert hours[3:6].sum() < 0.25 * hours[12:15].sum()


def test_made_jobs_are_like_those_of_the_log_outside_the_test(real):
    """The parameters are the published ones: nothing was fitted."""
    log = read_jobs(real / "swf/lublin_256.swf")
    low, high = unseen_by_the_test(log, STARTS)[0]
    jobs = lublin_jobs(Model(), 60_000, np.random.default_rng(2))
    rows = slice(low, high)
    assert np.log(jobs.run_time).mean() == pytest.approx(np.log(log.run_time[rows]).mean(), abs=0.2)
    assert np.log(jobs.processors).mean() == pytest.approx(np.log(log.processors[rows]).mean(), abs=0.1)
    gaps = [np.log(np.maximum(np.diff(submit), 1)) for submit in (jobs.submit, log.submit[rows])]
    assert gaps[0].mean() == pytest.approx(gaps[1].mean(), abs=0.15)
    assert gaps[0].std() == pytest.approx(gaps[1].std(), abs=0.15)


def test_made_sequences_repeat():
    one, other = (made(256, np.random.default_rng(3)) for _ in range(2))
    assert len(one) == LENGTH
    assert one.tobytes() == other.tobytes()


def test_the_cycle_brings_a_day_in_a_day():
    assert DAY[0].mean() == pytest.approx(1.0)
    assert DAY[1, -1] + 1800 * DAY[0, -1] == pytest.approx(86400)


def test_evolution_finds_the_lowest_point():
    """A narrow valley that lies across the axes."""
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    goal, steep = rng.standard_normal(6), np.logspace(0, 3, 6)
    evolution = Evolution(np.zeros(6), 0.5, 12, rng)
    for _ in range(250):
        evolution.tell(np.array([(steep * (turn @ (x - goal)) ** 2).sum() for x in evolution.ask()]))
    assert evolution.mean == pytest.approx(goal, abs=1e-3)


@pytest.mark.parametrize("backfill", [False, True])
@pytest.mark.parametrize("in_sample", [False, True])
def test_the_page_tells_what_was_written(in_sample, backfill):
    rows = [
        row for row in json.loads(NUMBERS.read_text()) if (row["in_sample"], row["backfill"]) == (in_sample, backfill)
    ]
    seeds = ", ".join(f"{row['bsld']:.2f}" for row in rows)
    each = np.mean([row["each"] for row in rows], axis=0)
    told = f"{seeds}, mean {each.mean():.2f} {interval(each)}"
    assert told in (ROOT / "docs/results/README.md").read_text()
    assert max(row["bsld"] for row in rows) < THEIRS[backfill]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seeds": 0}, "--seeds 0: want at least 1"),
        ({"rounds": 0}, "--rounds 0: want at least 1"),
        ({"candidates": 1}, "--candidates 1: want at least 4"),
        ({"sequences": 0}, "--sequences 0: want at least 1"),
        ({"chosen_on": 0}, "--chosen_on 0: want at least 1"),
        ({"write": True, "judge": False}, "--write 1 --judge 0"),
    ],
)
def test_searches_that_cannot_be(wrong, message):
    with pytest.raises(ConfigError, match=message):
        check(Config(**wrong))


def test_a_log_too_short_for_the_test_is_refused(tmp_path, monkeypatch):
    rows = [f"{i} {60 * i} -1 100 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1" for i in range(1, 2 * LENGTH + 2)]
    (tmp_path / "short.swf").write_text("\n".join(("; MaxProcs: 256", *rows)) + "\n")
    monkeypatch.setattr("sys.argv", ["lublin.py", str(tmp_path / "short.swf")])
    with pytest.raises(ConfigError, match="2,049 jobs; want at least 2,050"):
        main()


def test_a_missing_file_is_asked_for_by_the_program_s_own_name(monkeypatch):
    monkeypatch.setattr("sys.argv", ["benchmarks/lublin.py"])
    with pytest.raises(ConfigError, match=r"python benchmarks/lublin\.py FILE\.swf"):
        main()
