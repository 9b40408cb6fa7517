"""Read a generated file in Helios's own format, and print seconds, rows and peak memory as JSON."""

import json
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from berth.commandline import option, parse, run
from berth.streams import stream
from traces.read import read_trace

CHUNK = 200_000


@dataclass(frozen=True)
class Config:
    """What benchmarks/reading.py takes."""

    rows: int = option(3_362_981, "how many rows to generate: the whole Helios log has so many")
    keep: str = option("", "write the file here, and keep it", metavar="FILE.csv")
    only_write: bool = option(False, "write the file, and do not read it")


def write_log(path: Path, rows: int) -> None:
    """Write a cluster_log.csv: CPU jobs, GPU jobs, all states, some times missing."""
    rng = stream(1, "reading benchmark")
    submit = np.datetime64("2020-04-01T00:00:00") + np.cumsum(rng.exponential(4.7, rows)).astype("timedelta64[s]")
    queue = rng.exponential(600, rows).astype(np.int64)
    length = np.exp(rng.normal(5.3, 2.4, rows)).astype(np.int64)
    users, vcs = rng.integers(0, 400, rows), rng.integers(0, 60, rows)
    gpus = rng.choice([0, 1, 2, 4, 8, 16, 32], rows, p=[0.53, 0.3, 0.03, 0.04, 0.08, 0.01, 0.01])
    state = rng.choice(
        ["COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL"], rows, p=[0.7, 0.15, 0.13, 0.01, 0.01]
    )
    missing = rng.random(rows) < 0.01
    with path.open("w") as file:
        file.write("job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n")
        for first in range(0, rows, CHUNK):
            here = slice(first, first + CHUNK)
            start = submit[here] + queue[here].astype("timedelta64[s]")
            end = start + length[here].astype("timedelta64[s]")
            times = [
                [word.replace("T", " ") for word in column.astype(str).tolist()]
                for column in (submit[here], start, end)
            ]
            columns = zip(range(first, first + CHUNK), users[here].tolist(), vcs[here].tolist(), gpus[here].tolist(),
                          state[here].tolist(), *times, length[here].tolist(), queue[here].tolist(),
                          missing[here].tolist(), strict=False)  # fmt: skip
            file.writelines(
                f"{i},u{user:04},vc{vc:03},{gpu},{8 * gpu + 1},{gpu // 8 + 1},{how},{asked},"
                + (f",,0,{wait}\n" if gone else f"{began},{ended},{took},{wait}\n")
                for i, user, vc, gpu, how, asked, began, ended, took, wait, gone in columns
            )


def main() -> None:
    """Write the file, read it, print one line."""
    config = parse(Config, description=__doc__ or "")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(config.keep or f"{folder}/cluster_log.csv")
        if not path.exists():
            write_log(path, config.rows)
        if config.only_write:
            return
        begin = time.perf_counter()
        trace = read_trace(path)
        seconds = time.perf_counter() - begin
        size = path.stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"rows": config.rows, "jobs": len(trace), "bytes": size, "seconds": seconds, "peak_bytes": peak}))


if __name__ == "__main__":
    run(main)
