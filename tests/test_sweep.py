"""Sweeps: cells are played once, by whoever lives; mistakes are told before the first one."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from berth.errors import ConfigError
from eval import spec as specs
from eval import sweep
from eval.arena import Arena
from eval.cells import warm_up
from eval.commands import Command, run_commands
from eval.engines import Processes, RayTasks
from eval.journal import Journal
from eval.paired import student_change, student_mean
from eval.spec import contender, read_spec
from eval.sweep_tables import summary_of
from eval.tasks import Answer, Manner, Task, work_off
from tests.conftest import ROOT

SPEC = """
clusters = ["synthetic"]
policies = ["fcfs@easy", "sjf@fit"]
loads = [0.8]
seeds = [0, 1, 2]
score_types = ["wait", "bounded_slowdown"]
[settings]
windows = 2
seq_len = 32
"""


def spec(folder, text=SPEC, name="spec.toml"):
    (folder / name).write_text(text)
    return str(folder / name)


def program(folder, *words, **more):
    """The program itself."""
    command = [sys.executable, str(ROOT / "eval/sweep.py"), *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, **more)


class Here:
    """An engine that does tasks at once, in this process."""

    slots = 2

    def __init__(self, function):
        self.function, self.answers, self.stopped, self.closed, self.sent = function, [], [], False, []

    def prefers(self):
        return self.sent[-1].group if self.sent else ""

    def send(self, task):
        self.sent.append(task)
        self.answers.append(self.function(task))

    def receive(self, seconds):
        answers, self.answers = [one for one in self.answers if one is not None], []
        if not answers:
            time.sleep(seconds)
        return answers

    def stop(self, key):
        self.stopped.append(key)

    def close(self):
        self.closed = True


def tasks(*keys, group=""):
    return [Task(key, key, key, group) for key in keys]


def test_a_task_that_fails_is_tried_again_after_the_others():
    def _sometimes(task):
        fails = task.key == "b" and [one.key for one in engine.sent].count("b") < 3
        return Answer(task.key, trouble="no") if fails else Answer(task.key, task.key.upper())

    engine = Here(_sometimes)
    found = work_off(tasks("a", "b", "c", "d"), engine, Manner(retries=2))
    assert [one.value for one in found] == ["A", "B", "C", "D"]
    assert [one.tries for one in found] == [1, 3, 1, 1]
    assert [one.key for one in engine.sent] == ["a", "b", "c", "d", "b", "b"]
    assert engine.closed


def test_what_cannot_be_mended_is_told_and_the_others_go_on():
    def _never(task):
        return Answer(task.key, trouble="never", hopeless=task.key == "a") if task.key < "c" else Answer(task.key, 1)

    heard = []
    found = work_off(tasks("a", "b", "c"), Here(_never), Manner(retries=1), heard.append)
    assert [(one.trouble, one.tries) for one in found] == [("never", 1), ("never", 2), ("", 1)]
    assert len(heard) == 3


def test_a_task_that_hangs_is_stopped():
    engine = Here(lambda task: None if task.key == "a" else Answer(task.key, 1))
    found = work_off(tasks("a", "b"), engine, Manner(retries=1, timeout=0.05))
    assert found[0].trouble == "took longer than 0.05 s"
    assert (found[0].tries, engine.stopped) == (2, ["a", "a"])


def test_tasks_of_a_group_stay_together():
    engine = Here(lambda task: Answer(task.key, 1))
    engine.slots = 1
    given = [Task(f"{k}{g}", "", None, g) for k in range(3) for g in "xyz"]
    work_off(given, engine, Manner())
    assert [task.group for task in engine.sent] == list("xxxyyyzzz")


def test_two_tasks_of_one_key():
    with pytest.raises(ConfigError, match="two tasks have one key"):
        work_off(tasks("a", "a"), Here(lambda task: Answer(task.key)), Manner())


def behave(order):
    """What a task does in a process of its own."""
    what, _, path = order.partition(" ")
    if what == "pid":
        time.sleep(0.05)
        return os.getpid()
    if what == "raise":
        raise ZeroDivisionError("of no use")
    if what == "mistake":
        raise ConfigError("want another")
    if what == "die" and not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hang" and not Path(path).exists():
        Path(path).touch()
        time.sleep(600)
    return os.environ.get("OMP_NUM_THREADS")


@pytest.mark.parametrize("kind", ["processes", "ray"])
def test_engines_survive_what_tasks_do(kind, tmp_path):
    if kind == "ray":
        pytest.importorskip("ray")
    engine = Processes(behave, 2) if kind == "processes" else RayTasks(behave, "", 2)
    orders = [f"die {tmp_path}/d", f"hang {tmp_path}/h", "raise", "mistake", *["pid"] * 6]
    given = [Task(str(k), order, order) for k, order in enumerate(orders)]
    found = work_off(given, engine, Manner(retries=1, timeout=25.0 if kind == "ray" else 4.0))
    assert [one.tries for one in found[:4]] == [2, 2, 2, 1]
    assert [bool(one.trouble) for one in found] == [False, False, True, True, *[False] * 6]
    assert "ZeroDivisionError: of no use (test_sweep.py:" in found[2].trouble
    assert found[3].trouble == "want another"
    assert len({one.value for one in found[4:]}) <= 4, "processes are kept from task to task"
    assert os.environ.get("NUMBA_NUM_THREADS") != "1", "the environment of workers is not ours"


def test_commands_that_fail_are_run_again(tmp_path, capsys):
    once = f"import pathlib, sys; p = pathlib.Path({str(tmp_path / 'once')!r}); "
    code = once + "sys.exit(0 if p.exists() else p.touch() or 3)"
    words = {"bad": "import sys; print('so it is'); sys.exit(4)", "late": code}
    commands = [Command(name, [sys.executable, "-c", text], str(tmp_path), str(tmp_path / "logs" / name))
                for name, text in words.items()]  # fmt: skip
    bad, late = run_commands(commands, 2)
    assert "exit code 4: so it is; see" in bad.trouble
    assert (bad.tries, late.trouble, late.tries) == (2, "", 2)
    assert "bad: FAILED: " in capsys.readouterr().out


def test_a_torn_line_is_dropped(tmp_path):
    path = tmp_path / "cells.jsonl"
    journal = Journal(path)
    journal.add("a", result=1)
    journal.add("b", result=2)
    with pytest.raises(ConfigError, match="another process is at work"):
        Journal(path)
    journal.close()
    whole = path.read_bytes()
    for torn in range(1, len(whole) - whole.index(b"\n") - 1):
        path.write_bytes(whole[:-torn])
        again = Journal(path)
        assert list(again.rows) == ["a"]
        again.add("c", result=3)
        again.close()
        assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == ["a", "c"]
    path.write_bytes(b'{"key": "a"}\nnonsense\n')
    with pytest.raises(ConfigError, match="line 2 is damaged"):
        Journal(path)
    with pytest.raises(ConfigError, match="want a file that can be written to"):
        Journal(tmp_path)


def test_the_table_has_a_row_for_each_cell_and_is_what_an_evaluation_finds(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sweep.main([spec(tmp_path)])
    out = tmp_path / "data/sweeps/spec"
    table = pd.read_csv(out / "table.csv")
    assert len(table) == 2 * 3 * 2
    assert pd.read_parquet(out / "table.parquet").shape == table.shape
    assert "12 of 12 cells are done, 0 failed" in capsys.readouterr().out
    for cell, (_, row) in zip(read_spec(str(tmp_path / "spec.toml")), table.iterrows(), strict=True):
        assert (cell.policy, cell.seed, cell.score_type) == (row.policy, row.seed, row.score_type)
    one = next(cell for cell in read_spec(str(tmp_path / "spec.toml")) if cell.policy == "sjf@fit" and cell.seed == 2)
    from eval.judging import score_of

    arena = Arena(one.options(), 2, 2)
    grounds = arena.grounds("oracle")
    played = contender(one, one.options()).play(grounds, lambda _done: None)
    wait = np.mean([score_of(ground, p, "wait") for ground, p in zip(grounds, played, strict=True)])
    mine = table[(table.policy == "sjf@fit") & (table.seed == 2) & (table.score_type == "wait")]
    assert mine.score.tolist() == [wait]
    summary = pd.read_csv(out / "summary.csv")
    assert len(summary) == 4
    assert (summary.seeds == 3).all()
    assert (summary.low <= summary["mean"]).all()
    assert summary.change.isna().sum() == 2, "the first policy is what others are compared with"
    before = (out / "cells.jsonl").read_bytes()
    sweep.main([spec(tmp_path)])
    assert "12 of 12 cells are done already" in capsys.readouterr().out
    assert (out / "cells.jsonl").read_bytes() == before


def test_models_and_whole_splits_and_ray(tmp_path, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.chdir(ROOT)
    text = SPEC.replace('"sjf@fit"]', '"models/synthetic/oracle.npz"]').replace("[0, 1, 2]", "[0, 1]")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    try:
        sweep.main([spec(tmp_path, text), "--out", str(tmp_path / "ray"), "--ray_address", made.address])
    finally:
        made.shutdown()
    sweep.main([spec(tmp_path, text), "--out", str(tmp_path / "here"), "--processes", "1"])
    assert (tmp_path / "ray/table.csv").read_text() == (tmp_path / "here/table.csv").read_text()
    whole = text.replace("windows = 2", "windows = 0").replace('"fcfs@easy", ', "")
    whole = whole.replace('"models/synthetic/oracle.npz"', '"sjf@easy"')
    sweep.main([spec(tmp_path, whole), "--out", str(tmp_path / "whole")])
    assert (pd.read_csv(tmp_path / "whole/table.csv").jobs >= 4000).all()


def test_a_sweep_that_is_killed_goes_on_to_the_same_table(tmp_path):
    text = SPEC.replace("[0, 1, 2]", str(list(range(30))))
    words = [spec(tmp_path, text), "--out"]
    assert program(tmp_path, *words, str(tmp_path / "whole")).returncode == 0
    command = [sys.executable, str(ROOT / "eval/sweep.py"), *words, str(tmp_path / "killed")]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    journal = tmp_path / "killed/cells.jsonl"
    deadline = time.monotonic() + 120
    while not journal.exists() or journal.read_bytes().count(b"\n") < 20:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    done = journal.read_bytes().count(b"\n")
    assert 20 <= done < 120
    with journal.open("ab") as file:
        file.write(b'{"key": "torn')
    again = program(tmp_path, *words, str(tmp_path / "killed"))
    assert f"{done} of 120 cells are done already" in again.stdout
    for name in ("table.csv", "table.parquet", "summary.csv"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_an_interrupt_leaves_what_is_done(tmp_path):
    text = SPEC.replace("[0, 1, 2]", str(list(range(60))))
    command = [sys.executable, str(ROOT / "eval/sweep.py"), spec(tmp_path, text), "--out", str(tmp_path / "out")]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    journal = tmp_path / "out/cells.jsonl"
    deadline = time.monotonic() + 120
    while not journal.exists() or journal.read_bytes().count(b"\n") < 3:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "cells are done; the same command goes on" in said


def test_cells_that_fail_are_reported_and_the_others_are_done(tmp_path):
    (tmp_path / "rules.py").write_text("def bad(view):\n    raise ZeroDivisionError('of no use')\n")
    text = SPEC.replace('"sjf@fit"', '"rules.py:bad@fit"')
    done = program(tmp_path, spec(tmp_path, text), "--retries", "1", "--out", "out")
    assert done.returncode == 1
    assert done.stdout.count("FAILED  synthetic sample rules.py:bad@fit") == 6
    assert "ZeroDivisionError: of no use" in done.stdout
    assert "(tries: 2)" in done.stdout
    assert "6 of 12 cells are done, 6 failed" in done.stdout
    assert len(pd.read_csv(tmp_path / "out/table.csv")) == 6
    (tmp_path / "rules.py").write_text("def bad(view):\n    return view.gpus\n")
    assert program(tmp_path, spec(tmp_path, text), "--out", "out").returncode == 0
    assert len(pd.read_csv(tmp_path / "out/table.csv")) == 12


def test_one_seed_has_no_interval():
    row = {"cluster": "a", "workload": "b", "placer": "lex", "load": 1.0, "score_type": "wait", "seed": 0}
    told = summary_of([row | {"policy": "x", "score": 2.0}, row | {"policy": "y", "score": 1.0}], "x")
    assert np.isnan(told[0]["low"])
    assert told[1]["change"] == -0.5
    assert np.isnan(told[1]["change_low"])


def test_the_baseline_is_the_one_that_was_named_whoever_is_done():
    row = {"cluster": "a", "workload": "b", "placer": "lex", "load": 1.0, "score_type": "wait"}
    rows = [row | {"policy": "y", "score": 1.0, "seed": 0}, row | {"policy": "z", "score": 3.0, "seed": 0},
            row | {"policy": "x", "score": 2.0, "seed": 1, "load": 2.0},
            row | {"policy": "y", "score": 1.0, "seed": 1, "load": 2.0}]  # fmt: skip
    told = summary_of(rows, "x")
    assert [(one["policy"], one["baseline"], one["pairs"]) for one in told] == [
        ("y", "x", 0), ("z", "x", 0), ("x", "x", 0), ("y", "x", 1)]  # fmt: skip
    assert np.isnan([one["change"] for one in told[:3]]).all()
    assert told[3]["change"] == -0.5


def test_intervals_of_few_seeds_by_hand():
    assert student_mean(np.array([1.0, 3.0])) == pytest.approx((2 - 12.7062, 2 + 12.7062), rel=1e-5)
    mine, theirs = np.array([1.0, 5.0]), np.array([2.0, 4.0])  # ratio 1; parts -1/3 and 1/3, whose mean is off by 1/3
    assert student_change(mine, theirs) == pytest.approx((-12.7062 / 3, 12.7062 / 3), rel=1e-5)
    assert student_change(theirs / 2, theirs) == (-0.5, -0.5)
    assert np.isnan(student_change(mine, 0 * theirs)).all()
    row = {"cluster": "a", "workload": "b", "placer": "lex", "load": 1.0, "score_type": "wait", "policy": "x"}
    two, many = (summary_of([row | {"seed": k, "score": float(k)} for k in range(n)], "x")[0] for n in (2, 10))
    assert two["low"] < 0
    assert two["high"] > 1
    assert 0 < many["low"] < 4.5 < many["high"] < 9


RULES = """
import os, time
def raises(view):
    raise ZeroDivisionError("of no use")
def hangs(view):
    time.sleep(600)
def dies(view):
    os._exit(3)
"""


def test_the_first_cells_are_guarded_as_all_are(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sweep, "is_compiled", lambda _name: False, raising=False)
    (tmp_path / "rules.py").write_text(RULES)
    bad = [f"rules.py:{name}@fit" for name in ("raises", "hangs", "dies")]
    text = SPEC.replace('"fcfs@easy", "sjf@fit"', ", ".join(f'"{word}"' for word in (*bad, "fcfs@easy")))
    text = text.replace("[0, 1, 2]", "[0]").replace('"wait", ', "")
    with pytest.raises(SystemExit) as ended:
        sweep.main([spec(tmp_path, text), "--out", "out", "--timeout", "10", "--retries", "0"])
    assert ended.value.code == 1
    said = capsys.readouterr().out
    assert "ZeroDivisionError: of no use" in said
    assert "rules.py:hangs@fit lex load 0.8 seed 0 bounded_slowdown: took longer than 10 s" in said
    assert "rules.py:dies@fit lex load 0.8 seed 0 bounded_slowdown: its process ended" in said
    assert "1 of 4 cells are done, 3 failed" in said
    assert pd.read_csv(tmp_path / "out/summary.csv").baseline.tolist() == [bad[0]]


def test_compiling_is_told_only_if_something_is_compiled():
    warm_up(["lex"], True, lambda: None)
    told = []
    warm_up(specs.PLACERS, True, lambda: told.append(1))
    warm_up(specs.PLACERS, True, lambda: told.append(2))
    assert 2 not in told


def test_a_cell_is_known_by_what_is_in_its_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    pools = '[[pools]]\nname = "p"\nnodes = [{count = 2, gpus = 4}]\n'
    (tmp_path / "mine.toml").write_text('name = "mine"\ntrace = "jobs.csv"\n' + pools)
    (tmp_path / "jobs.csv").write_text("submit,run_time,gpus\n0,5,1\n")
    (tmp_path / "my_rule_module.py").write_text("def rank(view):\n    return view.gpus\n")
    (tmp_path / "rules.py").write_text("def rank(view):\n    return view.gpus\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/best.npz").write_bytes((ROOT / "models/synthetic/oracle.npz").read_bytes())
    policies = ["fcfs@easy", "my_rule_module:rank@fit", "rules.py:rank@fit", "run"]

    def _keys():
        words = ", ".join(f'"{word}"' for word in policies)
        text = f'clusters = ["mine.toml"]\npolicies = [{words}]\n[settings]\nwarm_rule = "sjf@easy"'
        return np.array([cell.key for cell in read_spec(spec(tmp_path, text))])

    before = _keys()
    for name in ("jobs.csv", "mine.toml", "my_rule_module.py", "rules.py", "run/best.npz"):
        os.utime(tmp_path / name, (1, 1))
    assert (_keys() == before).all(), "a file that was touched is the same"
    for name, whose in (("my_rule_module.py", [1]), ("rules.py", [2]), ("jobs.csv", [0, 1, 2, 3]),
                        ("mine.toml", [0, 1, 2, 3])):  # fmt: skip
        with (tmp_path / name).open("a") as file:
            file.write("# more\n")
        after = _keys()
        assert np.flatnonzero(after != before).tolist() == whose, name
        before = after
    cell = read_spec(spec(tmp_path))[0]
    before = cell.key
    trace = tmp_path / specs.CLUSTERS["synthetic"].trace
    trace.parent.mkdir(parents=True)
    trace.write_text("another sample")
    monkeypatch.setattr(specs, "ROOT", tmp_path)
    specs._own_trace.cache_clear()
    assert cell.key != before
    specs._own_trace.cache_clear()


def test_a_model_knows_what_it_was_trained_with_or_it_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    text = SPEC.replace('"fcfs@easy", "sjf@fit"', '"sjf@fit", "models/synthetic/hidden.npz"')
    text = text.replace("[0, 1, 2]", "[0]").replace('"wait", ', "")
    cells = read_spec(spec(tmp_path, text))
    assert [contender(cell, cell.options()).runtime_info for cell in cells] == ["oracle", "predicted"]
    text += 'runtime_info = "oracle"\n'
    sweep.main([spec(tmp_path, text), "--out", str(tmp_path / "out"), "--processes", "1"])
    assert "trained with predicted run times" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "out/table.csv")
    assert table.runtime_info.tolist() == ["oracle", "oracle"]
    assert "trained with predicted run times" in table.notes[1]


def test_a_line_without_its_fields_is_not_done(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = SPEC.replace("[0, 1, 2]", "[0]").replace('"wait", ', "")
    first = read_spec(spec(tmp_path, text))[0]
    (tmp_path / "out").mkdir()
    (tmp_path / "out/cells.jsonl").write_text(json.dumps({"key": first.key}) + "\n")
    sweep.main([spec(tmp_path, text), "--out", "out"])
    assert "2 of 2 cells are done, 0 failed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('clusters = ["synthetic"]', 'clusters = ["phily"]', "clusters: phily: did you mean philly"),
        ('clusters = ["synthetic"]', "", "clusters is missing; want a list"),
        ('clusters = ["synthetic"]', 'clusters = "synthetic"', "clusters = 'synthetic', want a list"),
        ('clusters = ["synthetic"]', "clusters = []", "clusters is empty, so that there are no cells"),
        ('"sjf@fit"', '"sjff@fit"', "did you mean sjf"),
        ('"sjf@fit"', '"sjf@fitt"', "did you mean fit"),
        ('"sjf@fit"', '"fcfs@easy"', "policies has fcfs@easy more than once"),
        ('"sjf@fit"', '"fcfs@easy@oracle"', "policies: fcfs@easy and fcfs@easy@oracle are one"),
        ('"fcfs@easy", "sjf@fit"', '"fcfs", "0"', "policies: fcfs and 0 are one"),
        ('"fcfs@easy", "sjf@fit"', '"fcfs", "fcfs@strict"', "policies: fcfs and fcfs@strict are one"),
        ('"sjf@fit"', '""', "policies has an empty word; want names, as in policies ="),
        ('"sjf@fit"', '"nowhere.npz"', "no such file"),
        ('"sjf@fit"', '"all"', "want one policy a word"),
        ("loads = [0.8]", 'loads = ["much"]', "loads: 'much', want a number"),
        ("loads = [0.8]", "loads = [-1.0]", "load -1.0: want a number from 0"),
        ("loads = [0.8]", 'placers = ["lexx"]', "placers: lexx: did you mean lex"),
        ("loads = [0.8]", 'workloads = ["nowhere.csv"]', "workloads: nowhere.csv: known: sample"),
        ("[0, 1, 2]", "[0, 0]", "seeds has 0 more than once"),
        ("[0, 1, 2]", "[true]", "seeds: True, want a whole number"),
        ("[0, 1, 2]", "[-1]", "seeds: -1, want numbers from 0"),
        ('["wait", "bounded_slowdown"]', '["wat"]', "score_types: .*did you mean wait"),
        ("windows = 2", "window = 2", "settings: window is no setting of a sweep; did you mean windows"),
        ("windows = 2", "windows = -2", "windows -2, want a number from 0"),
        ("windows = 2", 'windows = "x"', "settings: windows: 'x', want a whole number"),
        ("windows = 2", 'runtime_info = "hiden"', "runtime_info hiden: known: oracle"),
        ('"sjf@fit"', '"sjf@fit@orcle"', "runtime_info orcle: known: oracle"),
        ("loads", "lods", "lods is no list of a sweep; did you mean loads"),
        ("loads = [0.8]", "loads = [0.8", "want TOML"),
    ],
)
def test_mistakes_in_a_spec_are_told_before_anything_is_played(old, new, said, tmp_path):
    path = spec(tmp_path, SPEC.replace(old, new))
    with pytest.raises(ConfigError, match=rf"(?s){path}: .*{said}"):
        sweep.main([path, "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nowhere.toml", "nowhere.toml: No such file"),
        ("", "SPEC.toml"),
        ("x.toml --processes -1", "processes -1: want a number from 0"),
        ("x.toml --retries -1", "retries -1: want a number from 0"),
        ("x.toml --timeout soon", "wanted a number"),
    ],
)
def test_mistakes_on_the_command_line(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=said):
        sweep.main(words.split())


def test_an_address_that_is_wrong_and_a_folder_that_cannot_be(tmp_path):
    path = spec(tmp_path)
    with pytest.raises(ConfigError, match=r"ray_address 127.0.0.1:1: nobody answers"):
        sweep.main([path, "--out", str(tmp_path / "out"), "--ray_address", "127.0.0.1:1"])
    with pytest.raises(ConfigError, match="want a folder that can be written to"):
        sweep.main([path, "--out", path])


def test_the_examples_can_be_read():
    assert len(read_spec(str(ROOT / "examples/sweep.toml"))) == 144
    assert len(read_spec(str(ROOT / "benchmarks/sweep_500.toml"))) == 500
