"""What workers and processes are worth on this machine: decisions a second by workers, a sweep against its ideal.

python benchmarks/scaling_out.py                      # both
python benchmarks/scaling_out.py --part sweep
"""

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.table import Table

from berth.commandline import option, parse, run
from berth.console import console
from train.config import Config as Training
from train.quiet import load_tensorflow

ROOT = Path(__file__).resolve().parent.parent
SPEC = ROOT / "benchmarks/sweep_500.toml"
EPOCHS = 3
"""Epochs that are timed, after one in which everything is loaded."""


@dataclass(frozen=True)
class Config:
    """What benchmarks/scaling_out.py takes."""

    part: str = option("", "only this part", choices=("rollouts", "sweep"))
    trajs: int = option(100, "episodes in an epoch, of 256 jobs on the Philly testbed")


def rollouts(trajs: int) -> Table:
    """Decisions a second with 0, 1 and 2 workers, and what Ray costs: an epoch less what the busiest worker plays."""
    title = f"{trajs} episodes of 256 jobs on the Philly testbed, kernel network, best of {EPOCHS} epochs"
    table = Table("workers", "decisions/s", "times none", "an epoch, s", "of it Ray, s", "broadcast, ms", "back, MB",
                  "at first, s", title=title)  # fmt: skip
    none = 0.0
    for workers in (0, 1, 2):
        told = json.loads(_alone("--trajs", str(trajs), "--workers", str(workers)))
        none = none or told["speed"]
        table.add_row(
            str(workers), f"{told['speed']:,.0f}", f"{told['speed'] / none:.2f}", f"{told['seconds']:.2f}",
            f"{told['beside']:.2f}" if workers else "", f"{told['broadcast'] * 1e3:.1f}" if workers else "",
            f"{told['bytes'] / 1e6:.0f}" if workers else "", f"{told['start']:.1f}",
        )  # fmt: skip
    return table


def _alone(*words: str) -> str:
    """What this program prints in a process of its own, as `epochs` does."""
    command = [sys.executable, "-c", "from benchmarks.scaling_out import epochs; epochs()", *words]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()[-1]


@dataclass(frozen=True)
class Epochs:
    """What `epochs` takes."""

    trajs: int = option(100, "episodes in an epoch")
    workers: int = option(0, "workers")


def epochs() -> None:
    """Time epochs with so many workers, and print what was found as JSON."""
    config = parse(Epochs)
    begin = time.perf_counter()
    load_tensorflow(0)
    from train.rollouts import Wanted
    from train.run import Run

    settings = Training(cluster="philly", trajs=config.trajs, workers=config.workers, val_windows=1)
    with tempfile.TemporaryDirectory() as folder:
        training = Run(settings, Path(folder))
        told: dict[str, Any] = {"seconds": float("inf")}
        wanted = Wanted(list(range(config.trajs)), 0, "actions", 0.0, 1.0, 0.97)
        for epoch in range(EPOCHS + 1):
            start = time.perf_counter()
            batch, _ = training.collector.collect(training.learner, wanted, lambda _done: None)
            seconds = time.perf_counter() - start
            if epoch == 0:
                told["start"] = time.perf_counter() - begin
            elif seconds < told["seconds"]:
                size = sum(column.nbytes for column in batch)
                told |= {"seconds": seconds, "speed": len(batch.action) / seconds, "bytes": size,
                         "beside": seconds - getattr(training.collector, "busiest", seconds)}  # fmt: skip
        if config.workers:
            told["broadcast"] = _broadcast(training)
        training.collector.close()
    print(json.dumps(told))


def _broadcast(training: Any) -> float:
    """Seconds to put the weights where all workers find them."""
    from train.ray_rollouts import weights_to_send

    start = time.perf_counter()
    training.collector.ray.put(weights_to_send(training.learner, -1))
    return time.perf_counter() - start


def sweep() -> Table:
    """500 cells in two processes against half of what they take in one, and a sweep that is killed on the way."""
    table = Table(
        "500 cells", "seconds", "of the ideal", "wanted", title="A sweep on two cores (benchmarks/sweep_500.toml)"
    )
    with tempfile.TemporaryDirectory() as folder:
        one = _seconds(["--processes", "1", "--out", f"{folder}/one"])
        two = _seconds(["--processes", "2", "--out", f"{folder}/two"])
        rows = [json.loads(line) for line in Path(folder, "one/cells.jsonl").read_text().splitlines()]
        ideal = sum(row["seconds"] for row in rows) / 2
        table.add_row("one process", f"{one:.1f}", "", "")
        table.add_row("ideal: half of what its cells took alone", f"{ideal:.1f}", "", "")
        table.add_row(
            "two processes, from the command to the tables", f"{two:.1f}", f"{100 * ideal / two:.0f} %", ">= 90 %"
        )
        done = _killed(f"{folder}/killed", two / 2)
        rest = _seconds(["--processes", "2", "--out", f"{folder}/killed"])
        same = all(
            Path(f"{folder}/killed/{name}").read_bytes() == Path(f"{folder}/two/{name}").read_bytes()
            for name in ("table.csv", "table.parquet", "summary.csv")
        )
        table.add_row(f"kill -9 after {done} cells, then the rest", f"{rest:.1f}",
                      "the same tables" if same else "OTHER TABLES", "the same tables")  # fmt: skip
        assert len(pd.read_csv(f"{folder}/two/table.csv")) == 500
    return table


def _seconds(words: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "eval/sweep.py", str(SPEC), *words], cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - begin


def _killed(out: str, after: float) -> int:
    """Begin a sweep, kill it after some seconds, and tell how many cells it had done."""
    command = [sys.executable, "eval/sweep.py", str(SPEC), "--processes", "2", "--out", out]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        time.sleep(after)
        process.kill()
    return Path(out, "cells.jsonl").read_bytes().count(b"\n")


def main() -> None:
    """Print the tables."""
    config = parse(Config, description=str(__doc__))
    if config.part != "sweep":
        console().print(rollouts(config.trajs))
    if config.part != "rollouts":
        console().print(sweep())


if __name__ == "__main__":
    run(main)
