"""Everybody plays everything: models here, heuristics in another process meanwhile."""

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from berth.console import console
from eval.arena import Arena, Ground
from eval.contenders import Contender
from eval.played import Played
from eval.plots import leave_interrupts_to_the_parent

Seasons = dict[str, Callable[[str], list[Ground]]]
"""What is played, by name: windows by what is known of run times."""


PRACTICE = "validation windows"
"""Where the strongest heuristic is chosen: windows that only heuristics play."""


def play_seasons(
    contenders: Sequence[Contender], seasons: Seasons, practice: Arena | None, meanwhile: Callable[[], None]
) -> dict[str, list[list[Played]]]:
    """Let every contender play everything, and heuristics the practice windows too, in another process.

    `meanwhile` is called once that process is there: one that has threads had better not be forked.
    """
    others = [i for i, one in enumerate(contenders) if one.kind == "heuristic"]
    trained: Seasons = {PRACTICE: practice.grounds} if practice is not None else {}
    if len(others) == len(contenders) or "fork" not in multiprocessing.get_all_start_methods():
        meanwhile()
        games = {what: play_all(contenders, grounds, what) for what, grounds in seasons.items()}
        return games | {w: play_all([contenders[i] for i in others], g, w) for w, g in trained.items()}
    _forked.update(contenders=[contenders[i] for i in others], seasons=seasons | trained)
    mine = [one for one in contenders if one.kind != "heuristic"]
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork"), leave_interrupts_to_the_parent) as pool:
        theirs = pool.submit(_play_forked)
        meanwhile()
        own = {what: play_all(mine, grounds, what) for what, grounds in seasons.items()}
        with console().status("heuristics play"):
            games = theirs.result()
    _forked.clear()
    for what, played in games.items():
        if what not in seasons:
            continue
        every: list[list[Played]] = [[]] * len(contenders)
        rest = [i for i in range(len(contenders)) if i not in others]
        for at, one in [*zip(others, played, strict=True), *zip(rest, own[what], strict=True)]:
            every[at] = one
        games[what] = every
    return games


_forked: dict[str, Any] = {}
"""What a forked process plays; traces and windows are not sent to it, it has them."""


def _play_forked() -> dict[str, list[list[Played]]]:
    """Play in a forked process, without a word."""
    silent: Any = lambda _done: None  # noqa: E731
    return {
        what: [one.play(grounds(one.runtime_info), silent) for one in _forked["contenders"]]
        for what, grounds in _forked["seasons"].items()
    }


def play_all(contenders: Sequence[Contender], grounds: Callable[[str], list[Ground]], what: str) -> list[list[Played]]:
    """Let contenders play behind a progress bar; `grounds` gives windows by what is known of run times."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    played = []
    with Progress(*columns, console=console(), transient=True) as bar:
        everyone = bar.add_task(f"contenders, {what}", total=len(contenders))
        for contender in contenders:
            windows = grounds(contender.runtime_info)
            one = bar.add_task(contender.name, total=len(windows))
            played.append(contender.play(windows, partial(_update, bar, one)))
            bar.remove_task(one)
            bar.advance(everyone)
    return played


def _update(bar: Progress, task: TaskID, done: int) -> None:
    bar.update(task, completed=done)
