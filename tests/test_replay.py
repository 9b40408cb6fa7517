"""The replay command, as a user types it."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from envs.clusters import CLUSTERS
from envs.metrics import summarize
from envs.policies import POLICIES
from envs.sim.simulator import DISCIPLINES, simulate
from envs.workload import prepare
from tests.conftest import ROOT
from traces.formatted import write
from traces.generate import SAMPLES, sample
from traces.read import read_trace


def replay(*words, cwd=ROOT):
    command = [sys.executable, str(ROOT / "eval/replay.py"), *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


def test_table_csv_and_picture(tmp_path):
    out, picture = tmp_path / "out", tmp_path / "p.png"
    words = ("--cluster", "helios", "--policies", "fcfs,4", "--discipline", "strict,easy", "--max-jobs", "800")
    done = replay(*words, "--csv", out, "--plot", picture)
    assert done.returncode == 0, done.stderr
    assert "offered load 0.95" in done.stdout
    assert "runtime_info oracle" in done.stdout
    assert str(picture) in done.stdout.replace("\n", "")
    assert picture.read_bytes()[:4] == b"\x89PNG"
    workload = prepare(read_trace(ROOT / CLUSTERS["helios"].trace).select(slice(0, 800)), CLUSTERS["helios"])
    schedule = simulate(workload, "sjf", "easy")
    rows = list(csv.DictReader((out / "jobs_sjf_easy.csv").open()))
    assert [float(row["start"]) for row in rows] == schedule.start.tolist()
    assert [float(row["end"]) for row in rows] == schedule.end.tolist()
    for row in rows:
        nodes = [tuple(map(int, word.split(":"))) for word in row["nodes"].split()]
        assert sum(gpus for _, gpus in nodes) == int(row["gpus"])
    summary = {(r["policy"], r["discipline"], r["pool"]): r for r in csv.DictReader((out / "summary.csv").open())}
    assert float(summary["sjf", "easy", "all"]["wait_mean"]) == pytest.approx(summarize(schedule)["wait_mean"])
    assert ("fcfs", "strict", "vc4") in summary
    assert len((out / "left_out.csv").read_text().split()) == 1 + len(workload.unfit)


def test_all_policies_and_disciplines(tmp_path):
    done = replay("--policies", "all", "--discipline", "all", "--max_jobs", 300, "--plot", tmp_path / "p.png")
    assert done.returncode == 0, done.stderr
    for policy in POLICIES:
        assert len(re.findall(rf"│ {policy} ", done.stdout)) == len(DISCIPLINES)


def test_ones_own_function_trace_and_cluster(tmp_path):
    (tmp_path / "rules.py").write_text("def newest(view):\n    return -view.submit\n")
    (tmp_path / "lab.toml").write_text('[[pools]]\nname = "a"\nnodes = [{ count = 2, gpus = 4 }]\n')
    rows = "".join(f"j{i},{i},-1,{10 + i},1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1,-1\n" for i in range(50))
    (tmp_path / "my.csv").write_text(rows)
    words = ("--cluster", "lab.toml", "--workload", "my.csv", "--policies", "fcfs,rules.py:newest")
    done = replay(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "rules.newest" in done.stdout
    assert (tmp_path / "data/replay/lab.png").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--cluster", "phily"), "did you mean philly"),
        (("--policies", "wpf3"), "did you mean wfp3"),
        (("--policies", ""), "want at least one"),
        (("--policies", "99"), "by number"),
        (("--policies", "nowhere:f"), "No module named"),
        (("--discipline", "eazy"), "did you mean easy"),
        (("--workload", "nowhere.csv"), "no such file"),
        (("--topology", "moon"), "testbed, production"),
        (("--runtime_info", "hidden"), "needs run times"),
        (("--runtime_info", "request"), "no request_time column"),
        (("--load", "-1"), "want a number > 0"),
        (("--max_jobs", "-1"), "want a number > 0"),
        (("--queue", "globl"), "did you mean global"),
        (("--allocation", "lx"), "did you mean lex"),
        (("--tiers", "2"), "known: 1, 1+2"),
        (("--tiers", "1", "--allocation", "spread"), "does not go by tiers"),
        (("--use_milp_allocation", "1", "--allocation", "lex"), "means --allocation milp, but --allocation is lex"),
        (("--use_milp_allocation", "0", "--allocation", "milp"), "means --allocation lex, but --allocation is milp"),
        (("--use_milp_allocation", "2"), "'2' is not a truth value; wanted 0 or 1"),
        (("--milp_time_limit", "3"), "does nothing with --allocation"),
        (("--milp_time_limit", "0", "--allocation", "milp"), "want finite seconds > 0"),
        (("--format", "swf"), "1 field, want 18"),
        (("--nonsense",), "is not a flag here"),
    ],
)
def test_mistakes_are_told_in_one_line(words, message):
    done = replay(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "told"), [(("1",), "milp, tiers 1+2, time limit 1 s"), (("0", "--tiers", "1"), "lex, tiers 1")]
)
def test_the_seeds_flag_for_the_milp(tmp_path, words, told):
    done = replay("--max_jobs", "300", "--use_milp_allocation", *words, "--csv", tmp_path, "--plot", tmp_path / "p.png")
    assert done.returncode == 0, done.stderr
    assert f"allocation {told}" in done.stdout
    row = next(csv.DictReader((tmp_path / "summary.csv").open()))
    assert f"{row['allocation']}, tiers {row['tiers']}" in told
    assert ("milp_failed" in row) == (words == ("1",))


def test_failures_of_the_milp_are_told_on_the_screen(tmp_path):
    words = ("--cluster", "synthetic", "--max_jobs", "600", "--policies", "fcfs", "--plot", tmp_path / "p.png")
    done = replay(*words, "--allocation", "milp", "--milp_time_limit", "1e-9", "--seed", str(10**30))
    assert done.returncode == 0, done.stderr
    assert " failed" in done.stdout
    assert "note: placements by the MILP under fcfs strict" in done.stdout


def test_places_that_cannot_be_written_to_are_told_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    for words in (("--csv", tmp_path / "file"), ("--plot", tmp_path / "x.xyz"), ("--plot", tmp_path / "file/x.png")):
        done = replay("--max_jobs", 50, *words)
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: {words[0]}")


def test_two_functions_of_one_name(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "r.py").write_text("def f(view):\n    return view.submit\n")
    done = replay("--policies", f"{tmp_path}/a/r.py:f,{tmp_path}/b/r.py:f", "--max_jobs", 50)
    assert done.returncode == 2
    assert "both called r.f" in done.stderr


def test_names_that_look_like_markup(tmp_path):
    rows = ["x[/bold]y,0,-1,9,999", "[red],5,-1,9,1", "c,9,-1,9,1"]
    path = tmp_path / "t[red].csv"
    path.write_text("".join(f"{row}{',-1' * 14}\n" for row in rows))
    done = replay("--workload", path, "--load", 0, "--policies", "fcfs", "--plot", tmp_path / "p.png")
    assert done.returncode == 0, done.stderr
    assert "x[/bold]y" in done.stdout
    assert "t[red].csv" in done.stdout


def test_help_teaches():
    done = replay("--help")
    assert done.returncode == 0
    for word in ("examples:", "--runtime_info", "testbed", *POLICIES, *DISCIPLINES):
        assert word in done.stdout


def test_the_readmes_commands_run(tmp_path):
    """Every `python ...` line of the README's code blocks that needs nothing but the repository."""
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```(?:bash|sh)\n(.*?)```", text, re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if line.startswith("python eval/replay.py")]
    assert len(commands) >= 3
    for command in commands:
        words = command.split()[2:]
        assert not any(word.startswith("my_") for word in words), "README shows what can be run"
        done = replay(*words, "--max_jobs", "200", "--plot", tmp_path / "p.png")
        assert done.returncode == 0, done.stderr
    makefile = (ROOT / "Makefile").read_text()
    assert "train/philly_train.py" in makefile
    assert "make demo" in text
    assert "make test" in text


@pytest.mark.parametrize("cluster", SAMPLES)
def test_the_shipped_samples_are_what_the_generator_writes(cluster, tmp_path):
    write(sample(cluster), tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (ROOT / "GPU_Traces" / SAMPLES[cluster][0]).read_bytes()


def test_a_users_estimates_on_a_real_log(real, tmp_path):
    """KTH with the users' own estimates: EASY waits less than strict, and utilization is not above one."""
    lab = tmp_path / "kth.toml"
    lab.write_text('[[pools]]\nname = "sp2"\nnodes = [{ count = 100, gpus = 1 }]\n')
    words = ("--cluster", lab, "--workload", real / "swf/KTH-SP2-1996-2.1-cln.swf.gz", "--runtime_info", "request")
    done = replay(
        *words, "--discipline", "strict,easy", "--policies", "fcfs", "--csv", tmp_path, "--plot", tmp_path / "p.png"
    )
    assert done.returncode == 0, done.stderr
    strict, easy = (r for r in csv.DictReader((tmp_path / "summary.csv").open()) if r["pool"] == "all")
    assert float(easy["wait_mean"]) < float(strict["wait_mean"])
    assert 0 < float(strict["utilization"]) <= 1


def test_every_job_of_a_real_trace_runs(real):
    """Philly's 65,797 real jobs on its production topology: nobody starts early, no node is over its capacity."""
    workload = prepare(read_trace(real / "philly/philly.csv.gz"), CLUSTERS["philly"], "production")
    schedule = simulate(workload, "fcfs", "easy")
    trace = workload.trace
    assert (schedule.start >= trace.submit).all()
    node = np.concatenate([schedule.place_node, schedule.place_node])
    jobs = np.repeat(np.arange(len(trace)), schedule.place_count)
    time = np.concatenate([schedule.start[jobs], schedule.end[jobs]])
    change = np.concatenate([schedule.place_gpus, -schedule.place_gpus])
    order = np.lexsort((change, time, node))
    used = np.cumsum(change[order])  # every node's changes add up to 0, so the sum starts anew at each node
    assert used.min() >= 0
    assert (used <= workload.nodes.capacity[node[order]]).all()


def test_where_things_are():
    for folder in ("envs", "train", "eval", "allocation", "GPU_Traces", "data/logs", "legacy", "docs"):
        assert Path(ROOT / folder).is_dir()
    requirements = (ROOT / "requirements.txt").read_text()
    assert requirements.rstrip().endswith("-e .")
    assert not re.search(r"^spinup", requirements, re.MULTILINE)
    assert "http" not in requirements


def test_samples_are_called_calibrated_once(tmp_path):
    assert "calibrated samples" in (ROOT / "GPU_Traces/README.md").read_text().splitlines()[0]
    plot = ("--policies", "fcfs", "--plot", tmp_path / "p.png")
    assert replay(*plot).stdout.count("calibrated") == 1
    other = ("--workload", ROOT / "GPU_Traces/Philly_Formatted_withGPUType.csv")
    assert "calibrated" not in replay(*plot, *other).stdout, "whoever names a file knows what it is"


def test_malformed_rows_can_be_skipped(tmp_path):
    rows = (ROOT / "GPU_Traces/Philly_Formatted_withGPUType.csv").read_text().splitlines()[:500]
    rows[3] = rows[3].replace(",", ",x", 1)
    path = tmp_path / "bad.csv"
    path.write_text("\n".join(rows))
    words = ("--policies", "fcfs", "--plot", tmp_path / "p.png", "--workload", path)
    assert "bad.csv:4: submit_time = x" in replay(*words).stderr
    done = replay(*words, "--skip-bad-rows")
    assert done.returncode == 0, done.stderr
    assert "1 malformed row skipped" in done.stdout
    assert "499 jobs" in done.stdout
