"""What replay and training cost against jobs, GPUs and queue length: measures, fits a model, writes docs/scale.md.

python benchmarks/scale.py                     # measures all (ten minutes on a quiet machine), writes the page
python benchmarks/scale.py --again 1           # the page anew, from docs/results/scale.json
"""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale_page import terms, write_page
from berth.commandline import option, parse, run, written_whole
from berth.console import tell
from berth.errors import BerthError, ConfigError

ROOT = Path(__file__).resolve().parent.parent
NUMBERS = ROOT / "docs/results/scale.json"

LIMIT = 240
"""Seconds after which a point is given up; that it was is told."""

EASY_LOADS = (0.8, 0.9, 0.95, 1.0, 1.05, 1.2)

REPLAYS: list[dict[str, Any]] = [
    *({"discipline": d, "jobs": j, "gpus": 1000, "load": 0.9} for d in ("strict", "easy", "fit")
      for j in (100_000, 1_000_000)),
    {"discipline": "strict", "jobs": 10_000_000, "gpus": 1000, "load": 0.9},
    {"discipline": "easy", "jobs": 10_000_000, "gpus": 1000, "load": 0.9},
    *({"discipline": d, "jobs": 1_000_000, "gpus": g, "load": 0.9} for d in ("strict", "easy", "fit")
      for g in (100, 10_000, 100_000)),
    *({"discipline": d, "jobs": 200_000, "gpus": 1000, "load": w} for d in ("strict", "easy", "fit")
      for w in EASY_LOADS[1:]),
    *({"discipline": "conservative", "jobs": 20_000, "gpus": g, "load": w} for g, w in
      ((1000, 0.9), (1000, 0.95), (1000, 1.0), (1000, 1.05), (100, 0.9), (100, 1.0), (10_000, 1.05))),
]  # fmt: skip
"""The points that the model is fitted to."""

HELD_OUT: list[dict[str, Any]] = [
    {"discipline": "strict", "jobs": 3_000_000, "gpus": 3000, "load": 0.95},
    {"discipline": "strict", "jobs": 10_000_000, "gpus": 100_000, "load": 0.95},
    {"discipline": "easy", "jobs": 3_000_000, "gpus": 3000, "load": 0.95},
    {"discipline": "easy", "jobs": 10_000_000, "gpus": 100_000, "load": 0.95},
    {"discipline": "fit", "jobs": 500_000, "gpus": 30_000, "load": 1.1},
    {"discipline": "conservative", "jobs": 30_000, "gpus": 300, "load": 0.95},
]
"""Points that the model is tested on, and never sees."""

TRAININGS: list[dict[str, Any]] = [
    *({"jobs": 100_000, "gpus": g, "load": 0.95} for g in (100, 1000, 10_000)),
    {"jobs": 1_000_000, "gpus": 100_000, "load": 0.95},
    *({"jobs": 100_000, "gpus": 1000, "load": w} for w in (1.05, 1.2)),
    *({"jobs": 100_000, "gpus": 1000, "load": 0.95, "window": w} for w in (32, 512)),
    *({"jobs": j, "gpus": 1000, "load": 0.95} for j in (1_000_000, 10_000_000)),
]


@dataclass(frozen=True)
class Config:
    """What benchmarks/scale.py takes."""

    again: bool = option(False, "write the page from the numbers that were measured last")
    part: str = option("", "measure only this, and keep the rest", choices=("replay", "training", "workers"))


def measure(point: dict[str, Any]) -> dict[str, Any]:
    """A point in a process of its own: what it printed, or that it took too long."""
    words = [word for name, value in point.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, str(ROOT / "benchmarks/scale_point.py"), *words]
    begin = time.perf_counter()
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        tell(f"{point}: more than {LIMIT} s")
        return {"asked": point, "late": LIMIT}
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
        tell(f"{point}: exit code {done.returncode}: {said}")
        return {"asked": point, "failed": f"exit code {done.returncode}: {said}"}
    tell(f"{point}: {time.perf_counter() - begin:.1f} s in all")
    return {"asked": point, **json.loads(done.stdout.splitlines()[-1])}


def sizes(row: dict[str, Any]) -> list[float]:
    """What the logarithm of a replayed job's cost is a sum of: scale_page.terms at a measured point."""
    return terms(row["jobs"], row["asked"]["gpus"], row["queue"])


def cost(row: dict[str, Any]) -> float:
    """Microseconds a job."""
    return 1e6 * (row["setup_s"] + row["run_s"]) / float(row["jobs"])


def fit(rows: list[dict[str, Any]]) -> list[float]:
    """The exponents of a discipline by least squares of logarithms; of what was not varied, 0 comes out."""
    x, y = np.array([sizes(row) for row in rows]), np.log([cost(row) for row in rows])
    return [float(value) for value in np.linalg.lstsq(x, y, rcond=None)[0]]


def fit_memory(rows: list[dict[str, Any]]) -> list[float]:
    """Peak memory in GB: at rest, for a million jobs, for a thousand GPUs; by least squares."""
    x = np.array([[1.0, row["jobs"] / 1e6, row["asked"]["gpus"] / 1e3] for row in rows])
    return [float(value) for value in np.linalg.lstsq(x, np.array([row["peak_gb"] for row in rows]), rcond=None)[0]]


def measured(rows: list[dict[str, Any]], discipline: str) -> list[dict[str, Any]]:
    """The points of a discipline that came to an end."""
    return [row for row in rows if row["asked"].get("discipline") == discipline and "run_s" in row]


def workers() -> dict[str, Any]:
    """What Ray costs: putting weights, getting what was collected, a call."""
    try:
        from berth.ray_cluster import connect, disconnect

        ray = connect("", 1)
    except BerthError as absent:
        return {"absent": str(absent)}
    echo = ray.remote(_made).options(num_cpus=1)
    ray.get(echo.remote(1))
    calls = _best(lambda: ray.get(echo.remote(1)))
    many = 100_000_000
    bulk = _best(lambda: ray.get(echo.remote(many)).sum())
    put = _best(lambda: ray.put(np.zeros(50_000, np.float32)))
    disconnect()
    return {"call_s": calls, "bytes_per_s": many / max(bulk - calls, 1e-9), "put_s": put}


def _made(count: int) -> np.ndarray:
    return np.ones(count, np.uint8)


def _best(action: Any, tries: int = 5) -> float:
    times = []
    for _ in range(tries):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    """Measure, fit, write."""
    config = parse(Config, description=str(__doc__))
    known: dict[str, Any] = json.loads(NUMBERS.read_text()) if NUMBERS.is_file() else {}
    if config.again and not known:
        raise ConfigError(f"again: there is no {NUMBERS.name} yet; want a measurement first")
    if not config.again:
        if config.part in ("", "replay"):
            known["replay"], known["held_out"] = ([measure(point) for point in some] for some in (REPLAYS, HELD_OUT))
        if config.part in ("", "training"):
            known["training"] = [measure(point | {"training": 1}) for point in TRAININGS]
        if config.part in ("", "workers"):
            known["workers"] = workers()
    names = list(dict.fromkeys(row["asked"]["discipline"] for row in known["replay"]))
    known["model"] = {name: fit(measured(known["replay"], name)) for name in names}
    known["memory"] = fit_memory([row for row in known["replay"] if "run_s" in row])
    with written_whole(NUMBERS) as begun:
        begun.write_text(json.dumps(known, indent=1) + "\n")
    write_page(known)
    tell("docs/scale.md, docs/results/scale.json")


if __name__ == "__main__":
    run(main)
