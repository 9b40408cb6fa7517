"""Evaluations: fair, recomputable, honest about what a model has seen, and clear about mistakes."""

import gzip
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from berth.errors import BerthError, ConfigError
from envs.clusters import CLUSTERS, find_cluster
from envs.metrics import job_metrics
from envs.policies import POLICIES
from envs.sim.cluster import node_arrays
from eval import baselines, compare
from eval.ablation import main as ablation
from eval.arena import choose_windows
from eval.config import Config, read_config
from eval.paired import compare as paired
from eval.run import evaluate, main
from tests.conftest import ROOT
from tests.test_training import train
from traces.read import read_trace
from traces.sketch import shares_jobs, sketch
from train.checkpoint import load

SMALL = {"seq_len": 24, "windows": 3, "report": False, "replay": False}


def judge(tmp_path, cluster="synthetic", **settings):
    config = Config(**({"rlmodel": ("none",), "out": str(tmp_path), "sched_algo": ("fcfs", "sjf")} | SMALL | settings))
    return evaluate(cluster, config, ["--test"])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A run that has hardly learned anything."""
    folder = tmp_path_factory.mktemp("runs") / "tiny" / "tiny_s0"
    train(folder, epochs=1, seq_len=24, warm_start=True, warm_rule="sjf@easy")
    return folder


# Statistics


def test_the_baseline_against_itself(tmp_path):
    told = judge(tmp_path)
    for metric, numbers in told["paired"][told["baseline"]].items():
        assert [numbers[key] for key in ("difference", "low", "high", "change", "change_low", "change_high")] == [
            0
        ] * 6, metric
        assert (numbers["wins"], numbers["p"], numbers["p_corrected"]) == (0.5, 1, 1)


def test_a_better_one_is_found_better_and_a_permuted_one_is_not():
    rng = np.random.default_rng(3)
    base = rng.exponential(100, 60)
    better, permuted = base * rng.uniform(0.8, 0.98, 60), rng.permutation(base)
    found = paired(np.stack([better, permuted]), base, True, np.arange(60))
    assert found.high[0] < 0
    assert found.p_corrected[0] < 1e-6
    assert found.wins[0] == 1
    assert found.low[1] < 0 < found.high[1]
    assert found.p_corrected[1] > 0.05
    assert found.difference[1] == pytest.approx(0, abs=1e-9)


def test_on_synthetic_windows_sjf_is_better_than_fcfs_and_fcfs_permuted_is_not(tmp_path):
    told = judge(tmp_path, sched_algo=("fcfs", "sjf"), discipline=("strict",), windows=12, seq_len=200)
    assert told["paired"]["sjf strict"]["wait"]["high"] < 0
    assert told["paired"]["sjf strict"]["wait"]["p_corrected"] < 0.05
    base = np.array(told["by_window"]["fcfs strict"]["wait"])
    permuted = np.random.default_rng(0).permutation(base)
    found = paired(permuted[None], base, True, np.arange(len(base)))
    assert found.low[0] < 0 < found.high[0]
    assert found.p[0] > 0.05


def test_more_utilization_is_better():
    base = np.array([0.5, 0.6, 0.7])
    found = paired(np.stack([base + 0.1, base - 0.1]), base, False, np.arange(3))
    assert found.wins.tolist() == [1, 0]
    assert found.change[0] > 0 > found.change[1]


def test_overlapping_windows_widen_the_interval():
    rng = np.random.default_rng(0)
    base = np.repeat(rng.exponential(10, 8), 10)
    mine = base + np.repeat(rng.normal(size=8), 10)
    apart, together = (paired(mine[None], base, True, groups) for groups in (np.arange(80), np.arange(80) // 10))
    assert together.high - together.low > 2 * (apart.high - apart.low)


def test_few_windows_have_no_interval_and_no_warning(recwarn):
    found = paired(np.array([[1.0], [2.0]]), np.array([2.0]), True, np.arange(1))
    assert np.isnan(found.low[0])
    assert (found.low[1], found.high[1]) == (0, 0)
    assert not recwarn.list


def test_windows_share_no_jobs_where_there_is_room():
    firsts, groups = choose_windows(100, 400, 50, 6, seed=0)
    assert firsts == [100, 150, 200, 250, 300, 350]
    firsts, groups = choose_windows(100, 1000, 50, 6, seed=1)
    assert (np.diff(firsts) >= 50).all()
    assert firsts[0] >= 100
    assert firsts[-1] + 50 <= 1000
    assert len(set(groups)) == 6
    firsts, groups = choose_windows(0, 200, 100, 9, seed=0)
    assert (firsts[0], firsts[-1]) == (0, 100)
    assert len(set(groups)) == 2


# What is written


def test_every_number_recomputes_from_the_jobs(tmp_path):
    told = judge(tmp_path, cluster="helios", sched_algo=("fcfs", "saf", "random_feasible"), discipline=("easy", "fit"),
                 replay=True, seq_len=40)  # fmt: skip
    saved = json.loads((tmp_path / "results.json").read_text())
    jobs = pd.read_csv(tmp_path / "jobs.csv.gz", dtype={"job_id": str, "nodes": str})
    assert set(jobs.contender) == {one["name"] for one in saved["contenders"]}
    jobs["counted"] = jobs.start - jobs.since
    scored = jobs[jobs.scored == 1]
    assert (scored.since > scored.submit).any()  # some waited before their window
    for name, mine in scored.groupby("contender"):
        values = job_metrics(mine.counted.to_numpy(), mine.run_time.to_numpy())
        for metric, column in values.items():
            per_window = pd.Series(column).groupby(mine.window.to_numpy()).mean()
            assert saved["by_window"][name][metric] == pytest.approx(per_window.tolist(), rel=1e-12)
            statistics = [column.mean(), *np.percentile(column, [50, 90, 99])]
            told_ = [saved["summary"][name][f"{metric}_{s}"] for s in ("mean", "median", "p90", "p99")]
            assert told_ == pytest.approx(statistics, rel=1e-12)
        for pool, its in mine.groupby("pool"):
            group = saved["groups"]["pool"][str(pool)][name]
            assert group["jobs"] == len(its)
            assert group["wait_mean"] == pytest.approx(its.counted.mean(), rel=1e-12)
    base = np.array(saved["by_window"][saved["baseline"]]["wait"])
    for name, mine in saved["by_window"].items():
        difference = (np.array(mine["wait"]) - base).mean()
        assert saved["paired"][name]["wait"]["difference"] == pytest.approx(difference, rel=1e-9, abs=1e-9)
        assert saved["bounds"]["wait"] <= mine["wait"]
    whole = pd.read_csv(tmp_path / "replay_jobs.csv.gz", dtype={"job_id": str})
    whole["counted"] = whole.start - whole.since
    for name, mine in whole[whole.scored == 1].groupby("contender"):
        assert saved["replay"][name]["wait_mean"] == pytest.approx(mine.counted.mean(), rel=1e-12)
    rows = pd.read_csv(tmp_path / "results.csv", keep_default_na=False)
    waits = rows[(rows.table == "windows") & (rows.metric == "wait") & (rows.contender == "saf easy")]
    assert [float(v) for v in waits.value] == pytest.approx(told["by_window"]["saf easy"]["wait"])


def test_utilization_and_load_are_those_of_the_nodes(tmp_path):
    """GPU-seconds node by node, from the nodes that jobs.csv names."""
    told = judge(tmp_path, sched_algo=("sjf",), discipline=("fit",), windows=2)
    capacity = node_arrays(find_cluster("synthetic").topology("testbed")).capacity
    jobs = pd.read_csv(tmp_path / "jobs.csv.gz", dtype={"nodes": str})
    for window, mine in jobs.groupby("window"):
        now, until = mine[mine.scored == 1].since.min(), mine[mine.scored == 1].start.max()
        busy = np.zeros(told["data"]["nodes"])
        for row in mine[mine.start.notna()].itertuples():
            for word in row.nodes.split():
                node, gpus = map(int, word.split(":"))
                busy[node] += gpus * max(0.0, min(row.end, until) - max(row.start, now))
        imbalance = np.std(busy / (capacity * (until - now)))
        assert told["by_window"]["sjf fit"]["load_imbalance"][int(window)] == pytest.approx(imbalance, rel=1e-9)


def test_equal_seeds_give_equal_files(tmp_path):
    for name in ("a", "b"):
        judge(tmp_path / name, sched_algo=("fcfs", "random", "random_feasible"))
    one, other = ((tmp_path / name / "results.json").read_text() for name in ("a", "b"))
    assert one == other
    jobs = [gzip.decompress((tmp_path / name / "jobs.csv.gz").read_bytes()) for name in ("a", "b")]
    assert jobs[0] == jobs[1]


# Contenders


def test_every_heuristic_plays_under_every_discipline(tmp_path):
    told = judge(tmp_path, sched_algo=("all", "RAND_FEAS_NO0"), discipline=("all",), seq_len=16, windows=2)
    names = {one["name"] for one in told["contenders"]}
    assert len(names) == len(POLICIES) * 7 + 1  # all but the two that begin with an idle cluster
    assert "random_feasible fit" in names
    for name in names:
        assert told["bounds"]["wait"] <= told["by_window"][name]["wait"]


def test_hidden_run_times_become_predictions(tmp_path, capsys):
    told = judge(tmp_path, sched_algo=("fcfs", "sjf", "sjf@fit@oracle"), discipline=("fit",), runtime_info="hidden")
    known = {one["name"]: one["runtime_info"] for one in told["contenders"]}
    assert known == {"fcfs fit": "hidden", "sjf fit (predicted)": "predicted", "sjf fit (oracle)": "oracle"}


def test_a_model_plays_the_same_windows_from_the_same_beginning(tmp_path, model):
    told = judge(tmp_path, rlmodel=(str(model),), sched_algo=("fcfs", "sjf"), discipline=("reserve",), seq_len=24)
    assert told["contenders"][0]["kind"] == "model"
    assert told["contenders"][0]["discipline"] == "reserve"
    assert told["rival"] in ("fcfs reserve", "sjf reserve")
    assert told["rival_by"] == "validation windows"
    jobs = pd.read_csv(tmp_path / "jobs.csv.gz", dtype={"job_id": str, "nodes": str})
    before = {}
    for name, mine in jobs.groupby("contender"):
        first = mine[mine.scored == 1].groupby("window").submit.min()
        begun = mine[mine.start < mine.window.map(first)]
        before[name] = begun[["window", "job_id", "start", "nodes"]].to_csv(index=False)
    assert len(set(before.values())) == 1


@pytest.mark.parametrize("warm", [True, False])
def test_everybody_begins_alike(tmp_path, model, warm):
    told = judge(tmp_path, rlmodel=(str(model),), discipline=("fit", "easy"), warm_start=warm)
    assert all((window["backlog"] > 0) == warm for window in told["windows"])
    assert told["options"]["warm_rule"] == ("sjf@easy" if warm else "idle cluster")
    jobs = pd.read_csv(tmp_path / "jobs.csv.gz")
    there = {name: mine[["window", "job_id"]].to_csv(index=False) for name, mine in jobs.groupby("contender")}
    assert len(set(there.values())) == 1
    assert (jobs.scored == 0).any() == warm


def test_fractions_of_seconds_and_strange_names(tmp_path):
    """Times that are no whole numbers, and a user whose name would end a page's script."""
    rng = np.random.default_rng(0)
    rows = []
    for i, submit in enumerate(np.sort(rng.uniform(0, 20_000, 300)).round(3)):
        rows.append([f"j{i}", submit, -1, round(float(rng.uniform(1, 4000)), 3), int(rng.integers(1, 9)), *[-1] * 14])
        rows[-1][11] = "<!--<script>"
    trace = tmp_path / "frac.csv"
    trace.write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
    judge(tmp_path / "out", workload=str(trace), load=1.0, seq_len=64, windows=4, report=True, replay=True)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<!--<script>" not in page
    judge(tmp_path / "out", workload=str(trace), load=1.0, seq_len=64, windows=4)
    assert not (tmp_path / "out" / "report.html").exists()  # it was of the evaluation before


def test_a_model_that_copies_the_baseline_scores_the_same(tmp_path):
    """A residual policy that has not learned is the heuristic it begins with, under every rule of the evaluation."""
    run = tmp_path / "copy_s0"
    for mode, discipline in (("fit", "fit"), ("reserve", "reserve"), ("conservative", "conservative")):
        train(run, epochs=1, lr=0.0, residual="saf", sched_algo="saf", action_mode=mode, window=64)
        told = judge(tmp_path, rlmodel=(str(run),), sched_algo=(f"saf@{discipline}",), seq_len=60)
        mine, its = (told["by_window"][name] for name in ("copy_s0", f"saf {discipline}"))
        assert all(mine[metric] == pytest.approx(its[metric], rel=1e-9) for metric in mine)
        for file in run.iterdir():
            file.unlink()


def test_marks(tmp_path, model):
    def marks(**settings):
        return judge(tmp_path, rlmodel=(str(model),), **settings)["contenders"][0]["marks"]

    assert marks() == []
    assert any("IN-SAMPLE" in mark for mark in marks(split="train"))
    assert any("IN-SAMPLE" in mark for mark in marks(split="train", batch_job_slice=100))
    assert marks(split="validation") == ["picked on jobs of this split"]
    assert len(marks(split="all")) == 2
    assert "trained for bounded_slowdown" in marks(score_type="wait")
    assert "trained in windows of 24" in marks(seq_len=20)
    assert marks(sample=True) == ["sampled"]
    assert "trained with oracle run times" in marks(runtime_info="predicted")


def test_a_foreign_trace_is_test_as_a_whole_and_one_that_was_trained_on_is_not(tmp_path, model, capsys):
    own = ROOT / "GPU_Traces" / "synthetic_trace.csv"
    lines = own.read_text().splitlines()
    renamed, foreign = tmp_path / "renamed.csv", tmp_path / "foreign.csv"
    renamed.write_text("\n".join(lines) + "\n")
    rows = [line.split(",") for line in lines if not line.startswith(";")]
    foreign.write_text("\n".join(",".join(["x" + row[0], *row[1:]]) for row in rows[:900]) + "\n")
    assert judge(tmp_path, rlmodel=(str(model),), workload=str(renamed))["data"]["split"] == "test"
    shortened = tmp_path / "short.csv"
    shortened.write_text("\n".join(lines[:300]) + "\n")
    told = judge(tmp_path, rlmodel=(str(model),), workload=str(shortened), split="all")
    assert any("IN-SAMPLE" in mark for mark in told["contenders"][0]["marks"])
    told = judge(tmp_path, rlmodel=(str(model),), workload=str(foreign))
    assert told["data"]["split"] == "all"
    assert told["contenders"][0]["marks"] == ["trained with jobs of synthetic_trace.csv"]
    assert "no model has seen it" in capsys.readouterr().out


def test_sketches_know_jobs_again():
    trace = read_trace(str(ROOT / "GPU_Traces" / "synthetic_trace.csv"))
    kept = sketch(trace.select(slice(0, 3000)))
    assert shares_jobs(trace, kept)
    assert shares_jobs(trace.select(slice(0, 3000)), kept)
    assert not shares_jobs(trace.select(slice(3000, None)), kept)
    assert shares_jobs(trace.select(slice(500, 530)), kept)
    assert not shares_jobs(read_trace(str(ROOT / "GPU_Traces" / "Philly_Formatted_withGPUType.csv")), kept)


SHIPPED = sorted((ROOT / "models").glob("*/*.npz"))


def test_every_cluster_has_its_models():
    assert {(path.parent.name, path.stem) for path in SHIPPED} == {
        *((cluster, regime) for cluster in CLUSTERS for regime in ("oracle", "hidden")),
        *((cluster, "real_hidden") for cluster in CLUSTERS if cluster != "synthetic"),
    }


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_shipped_models_play_at_once(path, tmp_path):
    """Found without --rlmodel but for those of real traces, and judged on jobs that they have not seen."""
    info = "hidden" if path.stem.endswith("hidden") else ""
    named = (str(path),) if path.stem.startswith("real_") else ()
    told = judge(tmp_path, path.parent.name, rlmodel=named, runtime_info=info, windows=2, discipline=("easy",))
    assert told["contenders"][0]["name"] == (path.stem if named else f"{path.parent.name} {path.stem}")
    assert told["data"]["split"] == "test"
    assert not any("IN-SAMPLE" in mark or "picked" in mark for mark in told["contenders"][0]["marks"])
    assert path.stat().st_size < 200_000


@pytest.mark.parametrize(("backfil", "discipline"), [(True, "easy"), (False, "strict")])
def test_backfil_is_for_models_that_reserve_and_for_heuristics(tmp_path, model, backfil, discipline):
    own = load(SHIPPED[-1]).told["settings"]["action_mode"]
    assert own != "reserve"
    told = judge(tmp_path, rlmodel=(str(model), str(SHIPPED[-1])), windows=2, backfil=backfil)
    assert [one["discipline"] for one in told["contenders"]] == [
        "reserve_easy" if backfil else "reserve", own, discipline, discipline,
    ]  # fmt: skip


# Mistakes


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rlmodel", "nowhere"], "no such file or folder"),
        (["--rlmodel", "."], "neither best.npz nor last.npz"),
        (["--job_score_type", "speed"], "score_type speed"),
        (["--rlmodel", "none", "--len", "100000"], "the test split of"),
        (["--rlmodel", "none", "--batch_job_slice", "10", "--len", "11"], "want a shorter episode"),
        (["--rlmodel", "none", "--sched_algo", "sjff"], "did you mean sjf"),
        (["--rlmodel", "none", "--sched_algo", "sjf@quick"], "discipline quick"),
        (["--rlmodel", "none", "--sched_algo", "sjf@@"], "POLICY@DISCIPLINE"),
        (["--rlmodel", "none", "--iter", "0"], "want a number from 1"),
        (["--rlmodel", "none", "--workload", "nothing.csv"], "nothing.csv"),
        (["--rlmodel", "none", "--train_share", "0.9", "--validation_share", "0.2"], "leave something for the test"),
        (["--rlmodel", "none", "--discipline", "rlscheduler"], "begins with an idle cluster"),
        (["--rlmodel", "none", "--len", "256", "--jobs_per_episode", "9"], "two names of one setting"),
        (["--rlmodel", "none", "--warm_rule", "sjf"], "POLICY@DISCIPLINE"),
        (["--rlmodel", "none", "--sched_algo", "RAND_FEAS_NO0@easy"], "always takes jobs that fit"),
        (["--rlmodel", "none,a"], "want one or the other"),
    ],
)
def test_mistakes_are_told(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BerthError) as told:
        main("synthetic", ["--no_report", *words])
    assert said in str(told.value) + capsys.readouterr().out


def test_a_model_that_does_not_fit_says_so(tmp_path, model):
    with pytest.raises(ConfigError, match="the networks differ"):
        judge(tmp_path, cluster="helios", rlmodel=(str(model),))


def test_the_seeds_flags():
    words = ["--rlmodel", "a", "--workload", "w.csv", "--len", "64", "--iter", "5", "--seed", "3", "--sched_algo",
             "4", "--job_score_type", "1", "--use_milp_allocation", "0", "--backfil", "1",
             "--batch_job_slice", "0"]  # fmt: skip
    config = read_config("philly", words)
    assert (config.seq_len, config.windows, config.seed, config.score_type) == (64, 5, 3, "1")
    assert config.disciplines == ("easy",)
    assert (config.rlmodel, config.workload, config.sched_algo) == (("a",), "w.csv", ("4",))
    assert (config.use_milp_allocation, config.batch_job_slice) == (False, 0)
    assert read_config("philly", ["--score_type", "2"]).score_type == "2"


# Other programs


def test_seed_004s_names_run(tmp_path):
    """python legacy/..._train_v2.py and ..._eval_v2.py, small."""

    def program(name, *words):
        done = subprocess.run(
            [sys.executable, str(ROOT / "legacy" / name), *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    small = ["--seq_len", "16", "--num_envs", "3", "--val_windows", "2", "--report_windows", "0", "--window", "8",
             "--no_warm_start"]  # fmt: skip
    program("synthetic_train_v2.py", "--epochs", "1", "--trajs", "3", "--sched_algo", "0", *small)
    assert (tmp_path / "data/logs/synthetic_v2/synthetic_v2_s0/best.npz").is_file()
    out = program("synthetic_eval_v2.py", "--len", "16", "--iter", "2", "--sched_algo", "0", "--no_replay")
    assert "synthetic_v2_s0" in out
    assert (tmp_path / "new_exp_figure/synthetic/test.png").stat().st_size > 10_000
    assert (tmp_path / "new_exp_figure/synthetic/report.html").is_file()
    for cluster in ("philly", "helios", "alibaba"):
        for what in ("train", "eval"):
            assert "usage" in program(f"{cluster}_{what}_v2.py", "--help")


def test_baselines_in_blocks(tmp_path, capsys):
    words = ["--seed", "1", "--jobs-per-episode", "30", "--max-queue-size", "10", "--eval-num-blocks", "3",
             "--eval-episodes", "4", "--lookahead-mode", "off", "--arrival-mode", "bursty",
             "--horizon-factor", "1.25"]  # fmt: skip
    baselines.main([*words, "--out", str(tmp_path / "b.json")])
    shown = capsys.readouterr().out
    for who in ("fifo", "sjf", "RAND_FEAS_NO0"):
        assert who in shown
    told = json.loads((tmp_path / "b.json").read_text())["blocks"]
    assert all(len(blocks) == 3 and all(len(block["gain"]) == 4 for block in blocks) for blocks in told.values())
    assert all(gain == 0 for block in told["fifo"] for gain in block["gain"])  # the baseline itself
    blocks = [tuple(block["baseline"]) for block in told["sjf"]]
    assert len(set(blocks)) == 3  # each has episodes of its own
    assert [tuple(block["baseline"]) for block in told["fifo"]] == blocks  # the same for every policy


def test_runs_are_compared(tmp_path, model, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    compare.main([str(model), "--len", "16", "--iter", "2", "--sched_algo", "fcfs", "--no_report", "--no_replay"])
    shown = capsys.readouterr().out
    assert "experiments" in shown
    assert "learning curves" in shown
    with pytest.raises(ConfigError, match="nothing to compare"):
        compare.main([])


def test_the_ablation_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["--budget", "200", "--jobs_per_episode", "12", "--max_queue_size", "8", "--windows", "3",
             "--lookaheads", "off,cdf", "--out", str(tmp_path)]  # fmt: skip
    ablation([*words, "--architectures", "kernel"])
    runs = sorted((tmp_path / "data/logs").glob("ablation_*/ablation_*_s0/best.npz"))
    assert len(runs) == 2
    stamps = [run.stat().st_mtime_ns for run in runs]
    ablation([*words, "--architectures", "kernel,mlp"])
    assert [run.stat().st_mtime_ns for run in runs] == stamps
    page = (tmp_path / "ablation.md").read_text()
    assert "python eval/ablation.py --budget 200 --lookaheads off,cdf --architectures kernel,mlp" in page
    assert "| lookahead | kernel | mlp |" in page
    assert page.count("\n| off |") == 2
