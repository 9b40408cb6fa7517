"""A cell of a sweep, played: windows in, numbers out."""

import contextlib
import io
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from berth.compiled import on_compiling
from envs.options import Options
from envs.reward import find_score
from envs.synthetic import SYNTHETIC
from eval.arena import Arena, Ground
from eval.baselines import play_block
from eval.contenders import Model
from eval.judging import score_of
from eval.played import PER_JOB, PER_WINDOW, Played, scored_metrics, window_metrics
from eval.seen import marks_of
from eval.spec import SAMPLE, Cell, Settings, contender, policy_files, stamp

METRICS = (*PER_JOB, *PER_WINDOW)


def play_cell(cell: Cell) -> dict[str, Any]:
    """The score of a cell (mean over windows), all metrics, what was known, and notes; raises what goes wrong.

    A process keeps the traces, windows and models of the last cells: those of one cluster and load come one after
    another.
    """
    options = cell.options()
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")  # notes of the trace, which are kept beside the numbers
        arena = _arena(options, max(1, cell.settings.windows), cell.seed)
        who = contender(cell, options)
        known = (cell.policy, *map(stamp, policy_files(cell.policy)), cell.cluster, cell.settings.topology)
        if isinstance(who, Model) and _last_model and _last_model[0] == known:
            who.share_networks(_last_model[1])
        grounds = [arena.whole(who.runtime_info)] if cell.settings.windows == 0 else arena.grounds(who.runtime_info)
        played = who.play(grounds, lambda _done: None)
        if isinstance(who, Model):
            _last_model[:] = known, who
            who.marks = marks_of(who, cell.cluster, arena)
    name = find_score(cell.score_type)
    told = {"score": float(np.mean([score_of(g, one, name) for g, one in zip(grounds, played, strict=True)]))}
    about = {"runtime_info": who.runtime_info, "notes": "; ".join((*who.marks, *arena.notes))}
    jobs = {"jobs": float(sum(int(g.window.scored.sum()) for g in grounds))}
    return told | _metrics(grounds, played) | jobs | about


def warm_up(placers: Iterable[str], with_models: bool, compiling: Callable[[], None]) -> None:
    """Compile what cells need, if this machine has not yet: a few jobs of ours, played by FCFS with each placer.

    It spares processes that begin together the same work, and cells the time. `compiling` is told once if there is
    anything to do.
    """
    little = Settings(windows=1, seq_len=8)
    with on_compiling(compiling):
        for placer in placers:
            play_cell(Cell(SYNTHETIC.name, SAMPLE, "fcfs@easy", placer, 0.0, 0, "wait", little))
        if with_models:
            with contextlib.redirect_stderr(io.StringIO()):
                play_block({"cluster": SYNTHETIC.name, "seq_len": 8}, "fcfs", 0, 1)


_last_model: list[Any] = []
"""The model that this process has played last, and what it is known by."""


@lru_cache(maxsize=2)
def _arena(options: Options, windows: int, seed: int) -> Arena:
    return Arena(options, windows, seed)


def _metrics(grounds: list[Ground], played: list[Played]) -> dict[str, float]:
    """Means over all scored jobs, or over windows."""
    jobs: dict[str, list[np.ndarray]] = {name: [] for name in PER_JOB}
    windows: dict[str, list[float]] = {name: [] for name in PER_WINDOW}
    for ground, one in zip(grounds, played, strict=True):
        for name, values in scored_metrics(ground.window, one).items():
            jobs[name].append(values)
        for name, value in window_metrics(ground.window, one, ground.past.chosen).items():
            windows[name].append(value)
    means = {name: float(np.concatenate(parts).mean()) for name, parts in jobs.items()}
    return means | {name: float(np.mean(values)) for name, values in windows.items()}
