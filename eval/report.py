"""The pictures and the page of an evaluation, made in a process of their own."""

import base64
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from berth.commandline import written_whole
from eval.arena import Arena
from eval.figures import Context, Drawn, draw_all
from eval.judging import Judged
from eval.played import LESS_IS_BETTER, PER_JOB, UNITS, Played
from eval.plots import leave_interrupts_to_the_parent, load_matplotlib
from eval.results import finite
from eval.tables import many
from eval.timeline import bars, over_time, shared_columns, to_json

TEMPLATE = Path(__file__).with_name("report.html")

MOST_WINDOWS, MOST_JOBS = 10, 3000
"""Windows on the page's timeline, and the jobs that one may have."""


class Painter:
    """Draws in another process, which loads Matplotlib while contenders still play."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(1, initializer=leave_interrupts_to_the_parent)
        self._pool.submit(load_matplotlib)

    def close(self) -> None:
        """Let the process end."""
        self._pool.shutdown(cancel_futures=True)

    def report(
        self,
        folder: Path,
        numbers: dict[str, Any],
        told: Judged,
        arena: Arena,
        played: Sequence[Sequence[Played]],
        replayed: Sequence[Sequence[Played]],
        shown: int,
    ) -> Callable[[], list[Path]]:
        """Begin to draw; returns what writes report.html, once the pictures are there, and tells the files."""
        chosen = told.chosen(shown)
        figures = self._pool.submit(draw_all, *_for_figures(numbers, told, arena, played, replayed, chosen), folder)

        def _finish() -> list[Path]:
            page = _for_page(numbers, told, arena, played, chosen)
            files = figures.result()
            write_page(folder / "report.html", page, files)
            return [*files, folder / "report.html"]

        return _finish


def _for_figures(
    numbers: dict[str, Any],
    told: Judged,
    arena: Arena,
    played: Sequence[Sequence[Played]],
    replayed: Sequence[Sequence[Played]],
    chosen: Sequence[int],
) -> tuple[list[Drawn], Context]:
    """What is drawn of the contenders, as plain arrays."""
    info = arena.options.runtime_info
    telling = told.telling(chosen)
    first = arena.ground(telling, info)
    drawn = []
    for i in chosen:
        ground, one = (arena.whole(info), replayed[i][0]) if replayed else (first, played[i][telling])
        drawn.append(
            Drawn(
                told.contenders[i].name, told.values[told.score][i], told.per_job[i]["wait"],
                told.per_job[i]["bounded_slowdown"], *over_time(ground, one), bars(first, played[i][telling]),
            )
        )  # fmt: skip
    data = numbers["data"]
    windows = many(len(arena.begins), "window")
    title = (
        f"{numbers['cluster']} {data['topology']}, {data['gpus']:,} GPUs: {windows} of {arena.count} "
        f"jobs ({data['split']}), run times {info}"
    )
    over = f"the whole split: {data['jobs']:,} jobs" if replayed else f"window {telling + 1}"
    gpus = first.window.stage.workload.trace.gpus[first.past.chosen]
    context = Context(
        told.score, UNITS[told.score], LESS_IS_BETTER[told.score], told.bounds.get(told.score), title, over,
        telling, gpus, first.window.scored, first.window.stage.workload.nodes.capacity,
    )  # fmt: skip
    return drawn, context


def _for_page(
    numbers: dict[str, Any], told: Judged, arena: Arena, played: Sequence[Sequence[Played]], chosen: Sequence[int]
) -> dict[str, Any]:
    """What the page knows: numbers of the contenders shown, and their timelines."""
    names = [told.contenders[i].name for i in chosen]
    few = {
        key: {name: numbers[key][name] for name in names if name in numbers[key]}
        for key in ("summary", "paired", "left", "fairness", "replay", "mean_interval", "against_rival")
    }
    groups = {
        by: {group: {name: everyone[name] for name in names} for group, everyone in of.items()}
        for by, of in numbers["groups"].items()
    }
    kept = ("berth", "command", "cluster", "data", "options", "score", "baseline", "rival", "rival_by")
    return {
        **{key: numbers[key] for key in kept}, **few, "groups": groups,
        "contenders": [one for one in numbers["contenders"] if one["name"] in names],
        "order": names, "everyone": len(told.contenders), "units": UNITS, "less": LESS_IS_BETTER,
        "per_job": list(PER_JOB),
        "bound": {score: float(np.mean(values)) for score, values in numbers["bounds"].items()},
        "telling": told.telling(chosen), "timeline": _timelines(arena, played, chosen, names),
    }  # fmt: skip


def _timelines(
    arena: Arena, played: Sequence[Sequence[Played]], chosen: Sequence[int], names: Sequence[str]
) -> dict[str, Any]:
    """The first windows of the contenders shown, job by job."""
    info = arena.options.runtime_info
    grounds = [arena.ground(k, info) for k in range(min(MOST_WINDOWS, len(arena.begins)))]
    kept = [k for k, ground in enumerate(grounds) if len(ground.past.chosen) <= MOST_JOBS]
    nodes = arena.stage.workload.nodes
    return {
        "nodes": nodes.capacity.tolist(),
        "pools": [
            {"name": pool.name, "first": int(nodes.first[p])} for p, pool in enumerate(arena.stage.workload.pools)
        ],
        "windows": [
            {
                "number": k,
                "jobs": shared_columns(grounds[k]),
                "plays": {name: to_json(bars(grounds[k], played[i][k])) for name, i in zip(names, chosen, strict=True)},
            }
            for k in kept
        ],
    }


def write_page(path: Path, page: dict[str, Any], figures: Sequence[Path]) -> None:
    """Write one page that needs nothing else: numbers, pictures and program in it."""
    images = {file.stem: base64.b64encode(file.read_bytes()).decode() for file in figures}
    data = json.dumps(finite(page | {"images": images}), separators=(",", ":")).replace("<", "\\u003c")
    text = TEMPLATE.read_text().replace("/*DATA*/", data)
    with written_whole(path) as begun:
        begun.write_text(text)
