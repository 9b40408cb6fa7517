"""The files of an evaluation: every number as JSON and CSV, and every job."""

import csv
import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from berth.commandline import written_whole
from eval.arena import Ground
from eval.contenders import Contender
from eval.played import Played

HEADER = ("table", "contender", "window", "group_by", "group", "metric", "statistic", "value")

JOB_COLUMNS = ("contender", "window", "job_id", "scored", "submit", "since", "start", "end", "wait", "run_time", "gpus",
               "pool", "user", "nodes")  # fmt: skip


def write_json(numbers: dict[str, Any], path: Path) -> None:
    """Write all numbers; what is no number is null."""
    with written_whole(path) as begun:
        begun.write_text(json.dumps(finite(numbers), indent=1, ensure_ascii=False) + "\n")


def finite(value: Any) -> Any:
    """The same with None for what JSON has no number for."""
    if isinstance(value, dict):
        return {str(key): finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def write_csv(numbers: dict[str, Any], path: Path) -> None:
    """Write the same numbers as a table, a row for each."""
    with written_whole(path) as begun, begun.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows(_rows(numbers))


def _rows(numbers: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    for who, metrics in numbers["by_window"].items():
        for metric, values in metrics.items():
            for window, value in enumerate(values):
                yield "windows", who, window, "", "", metric, "mean", value
    for table in ("summary", "replay"):
        for who, told in numbers[table].items():
            for name, value in told.items():
                yield table, who, "", "", "", *_split(name), value
    for table in ("paired", "against_rival"):
        for who, metrics in numbers[table].items():
            for metric, told in metrics.items():
                for statistic, value in told.items():
                    yield table, who, "", "", "", metric, statistic, value
    for by, of in numbers["groups"].items():
        for group, everyone in of.items():
            for who, told in everyone.items():
                for name, value in told.items():
                    yield "groups", who, "", by, group, *_split(name), value
    for score, values in numbers["bounds"].items():
        for window, value in enumerate(values):
            yield "bounds", "any schedule", window, "", "", score, "bound", value
    for score, value in numbers["replay_bounds"].items():
        yield "replay", "any schedule", "", "", "", score, "bound", value
    for who, value in numbers["left"].items():
        yield "bounds", who, "", "", "", numbers["score"], "left", value
    for who, (low, high) in numbers["mean_interval"].items():
        yield "summary", who, "", "", "", numbers["score"], "mean_low", low
        yield "summary", who, "", "", "", numbers["score"], "mean_high", high
    for who, told in numbers["fairness"].items():
        for name, value in told.items():
            yield "fairness", who, "", "", "", "bounded_slowdown", name, value


def _split(name: str) -> tuple[str, str]:
    """A metric and its statistic, from a name like wait_p99."""
    metric, _, statistic = name.rpartition("_")
    return (metric, statistic) if statistic in ("mean", "median", "p90", "p99") else (name, "value")


def write_jobs(
    path: Path,
    contenders: Sequence[Contender],
    grounds: Sequence[Ground],
    played: Sequence[Sequence[Played]],
    window: str,
) -> None:
    """Write every job of every window and contender; `window` names the windows where they are no numbers.

    Jobs of the backlog that had not started when the last scored job had have no start. Nodes are `node:gpus` with
    blanks between, numbered over all pools.
    """
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    with written_whole(path) as begun, gzip.open(begun, "wb", compresslevel=1) as out:
        writer: Any = None
        for contender, windows in zip(contenders, played, strict=True):
            for k, (ground, one) in enumerate(zip(grounds, windows, strict=True)):
                columns = job_columns(ground, one)
                count = len(columns["job_id"])
                named = {"contender": [contender.name] * count, "window": [window or str(k)] * count} | columns
                table = pa.table({name: named[name] for name in JOB_COLUMNS})
                writer = writer or pa_csv.CSVWriter(out, table.schema)
                writer.write_table(table)
        writer.close()


def job_columns(ground: Ground, one: Played) -> dict[str, Any]:
    """The jobs of a window as columns, those that ran or waited at its beginning included."""
    window, chosen = ground.window, ground.past.chosen
    trace, workload = window.stage.workload.trace, window.stage.workload
    submit, run_time = trace.submit[chosen], trace.run_time[chosen]
    began = one.start >= 0
    start = np.where(began, one.start, np.nan)
    names = np.array([pool.name for pool in workload.pools], dtype=object)
    shares = [f"{n}:{g}" for n, g in zip(one.place_node.tolist(), one.place_gpus.tolist(), strict=True)]
    nodes = [
        " ".join(shares[at : at + count]) if there else ""
        for at, count, there in zip(one.place_at.tolist(), one.place_count.tolist(), began.tolist(), strict=True)
    ]
    return {
        "job_id": trace.job_id[chosen].astype(str),
        "scored": window.scored.astype(np.int8),
        "submit": submit,
        "since": np.maximum(submit, window.now),
        "start": _or_none(start),
        "end": _or_none(start + run_time),
        "wait": _or_none(start - submit),
        "run_time": run_time,
        "gpus": trace.gpus[chosen],
        "pool": names[workload.pool[chosen]].astype(str),
        "user": trace.user[chosen].astype(str) if trace.user is not None else [""] * len(chosen),
        "nodes": nodes,
    }


def _or_none(values: np.ndarray) -> Any:
    """Numbers with nothing in the place of NaN."""
    import pyarrow as pa

    return pa.array(values, from_pandas=True)
