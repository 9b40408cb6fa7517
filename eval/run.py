"""An evaluation, from a command line to a table, files and a report."""

import dataclasses
import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from berth import __version__
from berth.commandline import writable_folder
from berth.console import tell
from berth.errors import ConfigError
from envs.options import Options
from envs.reward import SCORES, find_score
from eval.arena import Arena
from eval.config import Config, find_models, read_config
from eval.contenders import Contender, Model, heuristics
from eval.judging import Judged, add_bounds, add_replay, add_rival, judge, score_of, to_json
from eval.played import LESS_IS_BETTER, Played
from eval.results import write_csv, write_jobs, write_json
from eval.screen import show
from eval.seasons import PRACTICE, Seasons, play_seasons
from eval.seen import has_seen, marks_of
from train.checkpoint import Checkpoint

FILES = ("results.json", "results.csv", "jobs.csv.gz", "replay_jobs.csv.gz", "test.png", "cdf.png", "over_time.png",
         "gantt.png", "report.html")  # fmt: skip
"""What an evaluation may write."""


def main(cluster: str, argv: Sequence[str] | None = None) -> None:
    """Evaluate on a cluster as the command line says."""
    evaluate(cluster, read_config(cluster, argv), sys.argv[1:] if argv is None else list(argv))


def evaluate(cluster: str, config: Config, words: list[str]) -> dict[str, Any]:
    """Play, judge, show and write; returns every number."""
    models = find_models(config, cluster)
    folder = writable_folder("--out", config.out or f"new_exp_figure/{cluster}")
    options = arena_options(config, cluster, models)
    arena = Arena(options, config.windows, config.seed)
    contenders, baseline = line_up(config, cluster, arena, models)
    for note in _notes(config, arena):
        tell(f"note: {note}")
    seasons: Seasons = {"windows": arena.grounds}
    if config.replay and not options.is_fresh:
        seasons["the whole split"] = lambda info: [arena.whole(info)]
    practice = practice_arena(config, arena) if models else None
    with ExitStack() as closing:
        painters: list[Any] = []
        games = play_seasons(contenders, seasons, practice, partial(_hire, config, painters, closing))
        played, replayed = games["windows"], games.get("the whole split", [])
        told = judge(arena, contenders, baseline, find_score(options.score_type), played, config.seed)
        if models:
            rivals = {s: strongest(arena, practice, told, games.get(PRACTICE, []), s) for s in SCORES}
            told.rivals = {score: contenders[i].name for score, (i, _) in rivals.items()}
            add_rival(told, arena, *rivals[told.score], config.seed)
        if replayed:
            add_replay(told, arena.whole(options.runtime_info), replayed, config.bound)
        if config.bound:
            add_bounds(told, arena.grounds(options.runtime_info))
        numbers = about(config, cluster, arena, words) | to_json(told, arena)
        drawing = [p.report(folder, numbers, told, arena, played, replayed, config.shown) for p in painters]
        files = _write(folder, numbers, contenders, arena, played if config.job_files else [], replayed)
        for finish in drawing:
            files += finish()
    for name in FILES:  # of an earlier evaluation, which would look like parts of this one
        if folder / name not in files:
            (folder / name).unlink(missing_ok=True)
    show(numbers, told, arena, config.shown)
    tell(f"written to {folder}: {', '.join(str(file.name) for file in files)}")
    return numbers


def _hire(config: Config, painters: list[Any], closing: ExitStack) -> None:
    """Have somebody who draws, in a process that loads Matplotlib while contenders still play."""
    if config.report:
        from eval.report import Painter

        painters.append(Painter())
        closing.callback(painters[-1].close)


def arena_options(config: Config, cluster: str, models: Sequence[tuple[str, Checkpoint]]) -> Options:
    """The options of the windows: what is asked for, then the first model's, then defaults."""
    settings = models[0][1].told["settings"] if models else {}
    known = config.environment(cluster, settings)
    known.setdefault("split", "test")
    options = Options(**known)
    if options.is_fresh or config.split or not config.workload:
        return options
    return Options(**(known | {"split": "test" if has_seen(options, models) else "all"}))


def line_up(
    config: Config, cluster: str, arena: Arena, models: Sequence[tuple[str, Checkpoint]]
) -> tuple[list[Contender], int]:
    """All contenders, and which of them is the baseline; tells who is left out."""
    options = arena.options
    shared = {
        name: getattr(options, name)
        for name in ("cluster", "runtime_info", "score_type", "allocation", "tiers", "use_milp_allocation",
                     "milp_time_limit", "workload_seed", "warm_start",
                     "score_backlog")
    }  # fmt: skip
    found, left = heuristics(
        config.sched_algo, config.disciplines, options.runtime_info, options.placement, config.seed
    )
    for sentence in left:
        tell(f"note: {sentence}")
    if not found:
        raise ConfigError("sched_algo: no heuristic is left to compare with; want others, or another runtime_info")
    contenders: list[Contender] = []
    for name, checkpoint in models:
        changed = shared | ({} if config.backfil is None else {"backfil": config.backfil})
        try:
            model = Model(name, checkpoint, changed, config.seed if config.sample else None)
        except ConfigError as cannot:
            raise ConfigError(f"rlmodel {checkpoint.path}: cannot play here: {cannot}") from None
        model.marks = marks_of(model, cluster, arena, config.sample)
        contenders.append(model)
    return [*contenders, *found], len(contenders)


def practice_arena(config: Config, arena: Arena) -> Arena | None:
    """Windows of the validation split; None where there is no such split, or it is too short."""
    if arena.options.is_fresh or arena.options.split != "test":
        return None
    try:
        return Arena(dataclasses.replace(arena.options, split="validation"), config.windows, config.seed)
    except ConfigError:
        return None


def strongest(
    arena: Arena, practice: Arena | None, told: Judged, played: Sequence[Sequence[Played]], score: str
) -> tuple[int, str]:
    """The strongest heuristic by a score that knows no more than the models, and on which windows that was found."""
    values, where = told.values[score].mean(axis=1), "these windows"
    others = [i for i, one in enumerate(told.contenders) if one.kind == "heuristic"]
    if practice is not None:
        where, grounds = PRACTICE, practice.grounds(arena.options.runtime_info)
        for i, windows in zip(others, played, strict=True):
            scores = [score_of(g, one, score) for g, one in zip(grounds, windows, strict=True)]
            values[i] = float(np.mean(scores))
    fair = [i for i in others if told.contenders[i].runtime_info in _fair(arena)] or [told.baseline]
    sign = 1.0 if LESS_IS_BETTER[score] else -1.0
    return min(fair, key=lambda i: sign * float(values[i])), where


def _fair(arena: Arena) -> tuple[str, ...]:
    """What a rival may know of run times: no more than the models."""
    info = arena.options.runtime_info
    return (info, "predicted") if info == "hidden" else (info,)


def about(config: Config, cluster: str, arena: Arena, words: list[str]) -> dict[str, Any]:
    """What was evaluated, and by which command."""
    o, stage = arena.options, arena.stage
    program = Path(sys.argv[0]).name if sys.argv[0] else f"{cluster}_eval.py"
    return {
        "berth": __version__,
        "command": shlex.join(["python", f"eval/{program}", *words]),
        "cluster": cluster,
        "data": {
            "trace": Path(stage.workload.trace.name).name if not o.is_fresh else "fresh jobs",
            "shipped_sample": not o.workload and not o.is_fresh,
            "split": "fresh" if o.is_fresh else o.split,
            "first_job": arena.low,
            "last_job": arena.high - 1,
            "jobs": arena.high - arena.low,
            "load": stage.workload.load,
            "topology": stage.workload.topology,
            "gpus": int(stage.workload.nodes.capacity.sum()),
            "nodes": len(stage.workload.nodes.capacity),
            "windows_overlap": arena.overlap,
        },
        "options": {
            "len": o.seq_len, "windows": config.windows, "seed": config.seed, "runtime_info": o.runtime_info,
            "allocation": str(o.placement), "warm_rule": o.warm_rule if o.warm_start else "idle cluster",
            "sample": config.sample,
        },
    }  # fmt: skip


def _notes(config: Config, arena: Arena) -> list[str]:
    """What the user should know before the numbers."""
    o = arena.options
    notes = list(arena.notes)
    if not o.workload and not o.is_fresh:
        notes.append(
            f"{Path(arena.stage.workload.trace.name).name} is one of our calibrated samples, not a real trace; "
            "--workload FILE takes one"
        )
    if config.workload and not config.split:
        why = "no model has seen it: all of it is test" if o.split == "all" else "a model has seen it: its test split"
        notes.append(f"{Path(config.workload).name}: {why}")
    if not o.is_fresh and o.split != "test" and config.split:
        notes.append(f"split {o.split}: not the test split; what is trained or picked on it is marked")
    if arena.overlap:
        notes.append(
            f"{config.windows} windows of {o.seq_len} do not fit into {arena.high - arena.low:,} jobs side by side: "
            "they overlap, and the bootstrap draws groups of them"
        )
    return notes


def _write(
    folder: Path,
    numbers: dict[str, Any],
    contenders: Sequence[Contender],
    arena: Arena,
    played: Sequence[Sequence[Played]],
    replayed: Sequence[Sequence[Played]],
) -> list[Path]:
    """Write the files of numbers; those of single jobs where windows are given."""
    files = [folder / "results.json", folder / "results.csv"]
    write_json(numbers, files[0])
    write_csv(numbers, files[1])
    info = arena.options.runtime_info
    if played:
        files.append(folder / "jobs.csv.gz")
        write_jobs(files[-1], contenders, arena.grounds(info), played, "")
    if played and replayed:
        files.append(folder / "replay_jobs.csv.gz")
        write_jobs(files[-1], contenders, [arena.whole(info)], replayed, "all")
    return files
