"""Generated workloads: seeded, in the shape asked for, near the trace they are fitted to."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import spearmanr

from berth.errors import BerthError, TraceError
from envs.clusters import find_cluster
from eval.waits import one_pool, waits
from tests.conftest import ROOT, make_trace
from traces.compare import compare, history
from traces.describe import lead_in
from traces.fit import fit
from traces.generate import RECIPES, SAMPLE_JOBS, SAMPLES, generate, sample
from traces.parametric import RUN_TIMES, SYNTHETIC, Shape, generate_parametric
from traces.read import read_trace
from traces.recipe import read_recipe, write_recipe
from traces.tune import distance, figures, tune, unevenness

REAL = {
    "philly": "philly/philly.csv.gz",
    "helios": "helios/venus_gpu_jobs.csv.gz",
    "alibaba": "alibaba_pai2020/pai_terminated_gpu_tasks_8pct.csv.gz",
}


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", "traces", *map(str, words)], cwd=ROOT, capture_output=True, text=True, check=False
    )


def shape(**changes):
    return dataclasses.replace(Shape({1: 0.5, 4: 0.5}, median=100, mean=300, gap=10), **changes)


def test_shapes_are_kept_and_repeat():
    asked = shape(users=5, vcs={"a": 3, "b": 1})
    one, two = generate_parametric(asked, 20_000, 1), generate_parametric(asked, 20_000, 1)
    assert (one.run_time == two.run_time).all()
    assert (generate_parametric(asked, 20_000, 2).run_time != one.run_time).any()
    assert np.median(one.run_time) == pytest.approx(100, rel=0.05)
    assert one.run_time.mean() == pytest.approx(300, rel=0.1)
    assert np.mean(one.gpus == 4) == pytest.approx(0.5, abs=0.02)
    assert np.mean(one.vc == "a") == pytest.approx(0.75, abs=0.02)
    assert one.submit[-1] / 20_000 == pytest.approx(10, rel=0.05)


@pytest.mark.parametrize("name", RUN_TIMES)
def test_every_distribution_of_run_times(name):
    made = generate_parametric(shape(run_time=name, mean=150), 50_000, 1)
    assert made.run_time.mean() == pytest.approx(150, rel=0.05)
    if name != "exponential":
        assert np.median(made.run_time) == pytest.approx(100, rel=0.03)


def test_bursts_days_correlation_and_likeness():
    plain, bursty = (generate_parametric(shape(arrival_mode=mode), 20_000, 1) for mode in ("poisson", "bursty"))
    assert bursty.submit[-1] / 20_000 == pytest.approx(10, rel=0.1)
    assert np.median(np.diff(bursty.submit)) < np.median(np.diff(plain.submit)) / 2
    swing = generate_parametric(shape(gap=60, daily_swing=1.0), 20_000, 1)
    hours = np.bincount((swing.submit // 3600 % 24).astype(int), minlength=24)
    assert hours[0] < 0.1 * hours[12]
    tied = generate_parametric(shape(correlation=0.8), 20_000, 1)
    assert spearmanr(tied.gpus, tied.run_time).statistic > 0.5
    assert abs(spearmanr(plain.gpus, plain.run_time).statistic) < 0.03
    alike = generate_parametric(shape(users=20, likeness=0.8), 20_000, 1)
    assert history(alike, ("user", "gpus")) > 0.6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mean": 5}, "want 0 < median <= mean"),
        ({"gap": 0}, "gap 0, want a number > 0"),
        ({"correlation": 2}, "from -1 to 1"),
        ({"likeness": -1}, "from 0 to 1"),
        ({"burst_size": 0, "arrival_mode": "bursty"}, "want a number from 1 to jobs"),
        ({"burst_gap": 100, "arrival_mode": "bursty", "burst_size": 2}, "from 0 to gap"),
        ({"gpus": {}}, "gpus is empty"),
        ({"mean": float("inf")}, "mean inf"),
        ({"gap": 1e300}, "gap 1e\\+300"),
        ({"longest": float("inf")}, "longest inf"),
        ({"users": 10**11}, "from 0 to 1,000,000"),
        ({"median": float("nan")}, "median nan"),
    ],
)
def test_shapes_that_cannot_be(changes, message):
    with pytest.raises(BerthError, match=message):
        generate_parametric(shape(**changes), 5, 1)


@pytest.mark.parametrize("seed", range(1, 7))
def test_no_time_is_negative(seed):
    made = generate_parametric(shape(arrival_mode="bursty", burst_gap=0, daily_swing=0.5), 500, seed)
    assert made.submit.min() >= 0


def test_flags_that_others_rule_out_do_not_count():
    assert len(generate_parametric(shape(gap=1, burst_gap=2), 100, 1)) == 100, "Poisson arrivals have no bursts"


def test_two_types_by_size():
    recipe = dataclasses.replace(read_recipe(RECIPES["alibaba"]), gpu_types={"small": 0.8, "large": 0.2})
    made = generate(recipe, 5000, 1)
    assert np.mean(made.gpu_type == "large") == pytest.approx(0.2, abs=0.001)
    assert made.gpus[made.gpu_type == "large"].mean() > 3 * made.gpus[made.gpu_type == "small"].mean()


@pytest.mark.parametrize("cluster", RECIPES)
def test_recipes_repeat_and_grow(cluster):
    recipe = read_recipe(RECIPES[cluster])
    one, two, other = (generate(recipe, 3000, seed) for seed in (1, 1, 2))
    for column in one.columns():
        assert (getattr(one, column) == getattr(two, column)).all()
    assert (one.run_time != other.run_time).any()
    assert (one.run_time >= 1).all()
    assert (one.gpus >= 1).all()
    assert (np.diff(one.submit) >= 0).all()
    assert len(generate(recipe, 2, 1)) == 2
    with pytest.raises(BerthError, match="want at least 2"):
        generate(recipe, 1, 1)


def test_samples_have_their_pools():
    philly, helios, alibaba = (sample(cluster) for cluster in RECIPES)
    assert len(philly) == len(helios) == len(alibaba) == SAMPLE_JOBS
    assert len(set(philly.vc)) > 8
    gpus = read_recipe(RECIPES["helios"]).vcs
    for vc, most in gpus.items():
        assert helios.gpus[helios.vc == vc].max() <= most
    work = {vc: float((helios.run_time * helios.gpus)[helios.vc == vc].sum()) for vc in gpus}
    for vc in gpus:
        assert work[vc] / sum(work.values()) == pytest.approx(gpus[vc] / sum(gpus.values()), abs=0.01)
    for kind, share in read_recipe(RECIPES["alibaba"]).gpu_types.items():
        assert np.mean(alibaba.gpu_type == kind) == pytest.approx(share, abs=0.001)
    for trace, column in ((philly, "vc"), (helios, "vc"), (alibaba, "gpu_type")):
        pools_of = {user: set(getattr(trace, column)[trace.user == user]) for user in set(trace.user)}
        assert all(len(pools) == 1 for pools in pools_of.values()), "a user belongs to one pool"


@pytest.mark.parametrize("cluster", RECIPES)
def test_shipped_samples_against_the_real_traces(real, cluster):
    """What docs/results/calibration.md promises."""
    shipped, trace = read_trace(ROOT / "GPU_Traces" / SAMPLES[cluster][0]), read_trace(real / REAL[cluster])
    rows = {row.what: row for row in compare(shipped, trace)}
    for what in ("KS run time", "KS GPUs", "KS inter-arrival time"):
        assert rows[what].distance <= 0.05
    assert rows["KS run time, 1 GPUs"].distance <= 0.05
    assert rows["hour of day"].distance <= 0.1
    assert rows["rank correlation GPUs, run time"].distance <= 0.05
    for what, row in rows.items():
        if "last ten" in what and row.distance is not None:
            assert row.distance <= 0.1, what
    finest = history(trace, ("vc", "gpus")) or history(trace, ("gpus",))
    assert abs(history(shipped, ("user", "gpus")) - finest) <= 0.1


@pytest.mark.parametrize("cluster", RECIPES)
def test_shipped_samples_wait_like_the_real_traces(real, cluster):
    """fcfs : sjf within 25 %, and the waits themselves; Philly's without the 71 jobs before the log proper begins."""
    shipped, trace = read_trace(ROOT / "GPU_Traces" / SAMPLES[cluster][0]), read_trace(real / REAL[cluster])
    if cluster == "philly":
        trace = trace.select(slice(lead_in(trace.submit), None))
        assert len(trace) == 65_797 - 71
    ours, theirs = (waits(one_pool(one), find_cluster(cluster)) for one in (shipped, trace))
    assert ours.ratio == pytest.approx(theirs.ratio, rel=0.25)
    assert ours.fcfs.mean() == pytest.approx(theirs.fcfs.mean(), rel=0.25)
    assert ours.sjf.mean() == pytest.approx(theirs.sjf.mean(), rel=0.25)


def test_figures_and_their_distance():
    one = generate(read_recipe(RECIPES["philly"]), 3000, 1)
    found = figures(one)
    assert distance(found, found) == 0
    assert distance(found, figures(generate(read_recipe(RECIPES["helios"]), 3000, 1))) > 0.1
    assert found["last 10 gpus"] == pytest.approx(history(one, ("gpus",)))
    assert found["last 1 user gpus"] == pytest.approx(history(one, ("user", "gpus"), 1))
    steady = make_trace(np.arange(0, 86400 * 4, 600), np.full(576, 60.0), np.ones(576))
    assert unevenness(steady, 12) == pytest.approx(0, abs=1e-6)
    burst = make_trace([0, 1.5 * 86400, 4.2 * 86400], [5, 60, 5], [1, 1, 1])
    assert unevenness(burst, 24) == pytest.approx(np.std([60, 0, 0]) / 20), "three inner days, two of them empty"


def test_the_memory_of_arrivals_is_found():
    alone, bursty = (
        generate_parametric(shape(arrival_mode=mode, gap=60, burst_gap=5), 5000, 1) for mode in ("poisson", "bursty")
    )
    assert sum(fit(alone, "x").memory) < 0.15
    recipe = fit(bursty, "x")
    made = np.diff(generate(recipe, 5000, 1).submit)
    wanted = spearmanr(np.diff(bursty.submit)[1:], np.diff(bursty.submit)[:-1]).statistic
    assert spearmanr(made[1:], made[:-1]).statistic == pytest.approx(wanted, abs=0.1)


@pytest.mark.parametrize("gap", [30.0, 700.0])
def test_odd_traces_can_be_fitted(gap):
    """One size, constant gaps, one pool by GPU type."""
    count = max(1500, round(3 * 86400 / gap))
    trace = make_trace(np.arange(count) * gap, np.full(count, 60.0), np.ones(count), gpu_type=["T4"] * count)
    made = generate(fit(trace, "x"), 500, 1)
    assert set(made.gpu_type) == {"T4"}
    assert set(made.gpus) == {1}
    assert np.median(np.diff(made.submit)) == gap


def test_centuries_do_not_need_memory():
    assert lead_in(np.array([0.0, 9e14])) == 0
    assert unevenness(make_trace([0, 5e14, 9e14], [1, 1, 1], [1, 1, 1]), 1) > 0


def test_fit_finds_what_it_is_given():
    given = generate_parametric(dataclasses.replace(SYNTHETIC, vcs={"left": 1, "right": 3}, gap=30), 6000, 3)
    recipe = tune(fit(given, "test"), given, 2)
    made = generate(recipe, 6000, 1)
    rows = {row.what: row.distance for row in compare(made, given)}
    assert rows["KS run time"] < 0.05
    assert rows["KS GPUs"] < 0.05
    assert rows["KS inter-arrival time"] < 0.08
    assert rows["rank correlation GPUs, run time"] < 0.08
    assert set(made.vc) == {"left", "right"}


def test_a_thin_beginning_is_left_out_of_what_is_counted_over_time():
    submit = np.concatenate([[0, 86400 * 3], 86400 * 10 + np.arange(0, 86400 * 4, 60.0)])
    assert lead_in(submit) == 2


def test_recipes_come_back_and_others_are_refused(tmp_path):
    recipe = read_recipe(RECIPES["philly"])
    write_recipe(recipe, tmp_path / "r.json")
    assert read_recipe(tmp_path / "r.json") == recipe
    data = json.loads((tmp_path / "r.json").read_text())
    for text, message in (
        ("{", "no JSON"),
        ("[]", "missing or unknown: all"),
        (json.dumps({"name": "x"}), "missing or unknown: alike"),
        (json.dumps(data | {"gaps": [[1]]}), r"gaps = \[\[1\]\], want numbers as"),
        (json.dumps(data | {"hours": "x"}), 'hours = "x", want'),
        (json.dumps(data | {"hours": [float("nan")] * 24}), "hours = "),
        (json.dumps(data | {"start": -5}), "start = -5"),
        (json.dumps(data | {"start": 1.5}), "start = 1.5"),
        (json.dumps(data | {"tables": [[float("nan")] * 61] * len(data["tables"])}), "tables = "),
        (json.dumps(data | {"kinds": [[0, "a", 1.0]] * len(data["kinds"])}), "kinds = "),
        (json.dumps(data | {"table_of": [999] * len(data["kinds"])}), "table_of = "),
        (json.dumps(data | {"fresh": [[0.0] * len(data["kinds"])] * len(data["fresh"])}), "fresh = "),
        (json.dumps(data | {"arrays": {}}), "arrays = "),
        (json.dumps(data | {"users": 10**12}), "users = "),
        (json.dumps(data | {"users": "x"}), "users = "),
        (json.dumps(data | {"edges": 5}), "edges = "),
        (json.dumps(data | {"vcs": {"a": 0}}), "vcs = "),
        (json.dumps(data | {"vcs": {"a": 1}, "gpu_types": {"b": 1}}), "gpu_types = "),
        (json.dumps(data | {"drift": 2}), "drift = 2"),
    ):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(TraceError, match=message):
            read_recipe(tmp_path / "bad.json")


def test_the_commands(tmp_path):
    made = tmp_path / "made.csv"
    words = ("--jobs", 3000, "--gpus", "1:0.5,8:0.5", "--run_time", "pareto", "--vcs", "a:1,b:1", "--gap", 120)
    done = run("generate", "-o", made, *words)
    assert done.returncode == 0, done.stderr
    trace = read_trace(made)
    assert (len(trace), set(trace.gpus), set(trace.vc)) == (3000, {1, 8}, {"a", "b"})
    done = run("fit", made, "-o", tmp_path / "recipe.json", "--tries", 1)
    assert done.returncode == 0, done.stderr
    assert "KS run time" in done.stdout, "how near a sample of it is"
    before = (tmp_path / "recipe.json").read_bytes()
    limited = f"ulimit -f 1; {sys.executable} -m traces fit {made} -o {tmp_path}/recipe.json --tries 0"
    full = subprocess.run(["bash", "-c", limited], cwd=ROOT, capture_output=True, text=True, check=False)
    assert full.returncode == 2
    assert "Traceback" not in full.stderr
    assert (tmp_path / "recipe.json").read_bytes() == before, "nothing is lost"
    done = run("generate", "--like", tmp_path / "recipe.json", "-o", tmp_path / "again.parquet", "--jobs", 500)
    assert done.returncode == 0, done.stderr
    assert len(read_trace(tmp_path / "again.parquet")) == 500
    done = run("generate", "--like", "helios", "-o", tmp_path / "h.csv", "--jobs", 700, "--seed", 3)
    assert done.returncode == 0, done.stderr
    assert len(read_trace(tmp_path / "h.csv")) == 700
    assert "a calibrated sample, made from a recipe of 100,242 jobs" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("generate",), "want -o OUT.csv"),
        (("generate", "-o", "{tmp}/x.csv", "--like", "phily"), "did you mean philly"),
        (("generate", "-o", "{tmp}/x.csv", "--like", "philly", "--gap", "5"), "--gap does nothing with --like philly"),
        (("generate", "-o", "{tmp}/x.csv", "--gpus", "one:1"), "one is no number of GPUs"),
        (("generate", "-o", "{tmp}/x.csv", "--vcs", "a"), "'a', want names with numbers"),
        (("generate", "-o", "{tmp}/x.csv", "--vcs", "a:1,a:2"), "a stands there twice"),
        (("generate", "-o", "{tmp}/x.csv", "--arrival_mode", "poisson", "--burst_size", "3"), "does nothing with"),
        (("generate", "-o", "{tmp}/x.csv", "--users", "0", "--likeness", "0.9"), "does nothing with --users 0"),
        (("samples", "--out", ""), "want --out DIR"),
        (("generate", "-o", "{tmp}/x.csv", "--vcs", "a:-1"), "'a:-1', want names with numbers"),
        (("generate", "-o", "{tmp}/x.csv", "--jobs", "0"), "want a number from 2"),
        (("generate", "-o", "{tmp}/x.csv", "--mean", "1"), "want 0 < median <= mean"),
        (("generate", "-o", "{tmp}/x.csv", "--like", "{tmp}/no.json"), "no such file"),
        (("fit", "tests/data/sacct_X.txt", "-o", "{tmp}/r.json"), "51 jobs over 0.0 days, want 1,000"),
        (("fit", "tests/data/sacct_X.txt"), "want -o RECIPE.json"),
        (("fit", "tests/data/sacct_X.txt", "-o", "{tmp}/r.json", "--vcs", "a:1", "--gpu_types", "b:1"), "want one of"),
    ],
)  # fmt: skip
def test_mistakes_are_answered_in_one_line(tmp_path, words, message):
    done = run(*(word.replace("{tmp}", str(tmp_path)) for word in words))
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir()), "nothing is left behind"
