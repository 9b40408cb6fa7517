"""Judge live runs by their metrics: the report of an evaluation, and how far the simulator was from what happened."""

import json
import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from berth import __version__
from berth.commandline import argument, option, parse, run, writable_folder
from berth.console import show_rows, tell
from berth.errors import ConfigError
from envs.reward import find_score
from eval.arena import Arena, Ground
from eval.contenders import Contender, Tick
from eval.foretold import Live, as_played, difference, read_live, shared_stage
from eval.judging import Judged, add_bounds, judge, to_json
from eval.played import Played
from eval.report import Painter
from eval.results import write_csv, write_jobs, write_json
from eval.screen import show
from train.export import find_exported

DESCRIPTION = """Judge live runs by their metrics, beside a simulation of the same jobs.

  python eval/live.py artifacts/metrics_RUN.jsonl
  python eval/live.py artifacts/metrics_A.jsonl artifacts/metrics_B.jsonl     # the same jobs under several policies
"""


@dataclass(frozen=True, kw_only=True)
class Config:
    """What eval/live.py takes."""

    metrics: tuple[str, ...] = argument("metrics_*.jsonl or metrics_*.csv of runs of the same jobs", "METRICS")
    score_type: str = option("wait", "by what runs are compared: bounded_slowdown, wait, turnaround, ...")
    report: bool = option(True, "draw pictures, and write report.html")
    out: str = option("new_exp_figure/live", "where results go", metavar="DIR")
    shown: int = option(12, "contenders in the table on the screen and in the pictures")


@dataclass(frozen=True)
class Recorded:
    """A contender who has played already."""

    name: str
    policy: str
    discipline: str
    played: Played
    marks: tuple[str, ...] = ()
    runtime_info: str = "oracle"
    kind: str = "heuristic"

    def play(self, grounds: Sequence[Ground], tick: Tick) -> list[Played]:
        """What it has played."""
        tick(1)
        return [self.played]


class LiveArena(Arena):
    """One window: all jobs of some live runs, on an idle host."""

    def __init__(self, runs: Sequence[Live]) -> None:
        self.stage, self.options = shared_stage(runs)
        self.count = len(self.stage.roster)
        self.notes: tuple[str, ...] = ()
        self.low, self.high = 0, self.count
        self.begins = [(self.stage, 0)]
        self.groups = np.zeros(1, int)
        self._known = lru_cache(maxsize=None)(self._knowing)


def line_up(runs: Sequence[Live]) -> list[Contender]:
    """Every run, and its simulation."""
    found: list[Contender] = []
    for name, live in zip(names_of(runs), runs, strict=True):
        first, failed = live.entries[0], int(np.count_nonzero(~live.column("success")))
        marks = (f"{failed} jobs failed or hung",) if failed else ()
        found.append(Recorded(name, first.policy, first.discipline, as_played(live), marks))
        found.append(Recorded(f"{name}, foretold", first.policy, first.discipline, live.foretold))
    return found


def names_of(runs: Sequence[Live]) -> list[str]:
    """What runs are called: by their policies, and where these are the same by their names or files, too.

    Raises ConfigError where a run is there twice.
    """
    for i, live in enumerate(runs):
        for other in runs[:i]:
            if live.entries == other.entries:
                raise ConfigError(f"{live.ledger.path}: the same run as {other.ledger.path}; want each once")
    plain = [live.name for live in runs]
    named = [f"{live.name} ({live.entries[0].run})" for live in runs]
    filed = [f"{live.name} ({live.ledger.path})" for live in runs]
    return [
        plain[i] if plain.count(plain[i]) == 1 else named[i] if named.count(named[i]) == 1 else filed[i]
        for i in range(len(runs))
    ]


def evaluate(config: Config, words: list[str]) -> dict[str, Any]:
    """Read, simulate, judge, show and write; returns every number."""
    if not config.metrics:
        raise ConfigError("want the metrics of a run: python eval/live.py artifacts/metrics_RUN.jsonl")
    if not 2 <= config.shown <= 50:
        raise ConfigError(f"--shown {config.shown}: want a number from 2 to 50")
    score = find_score(config.score_type)
    runs = [read_live(Path(path)) for path in config.metrics]
    arena = LiveArena(runs)
    folder = writable_folder("--out", config.out)
    _tell_of(runs)
    contenders = line_up(runs)
    played = [one.play([], lambda _done: None) for one in contenders]
    with ExitStack() as closing:
        told = judge(arena, contenders, 1, score, played, 0)
        add_bounds(told, arena.grounds("oracle"))
        numbers = _about(arena, runs, words) | to_json(told, arena)
        numbers["live"] = {
            one.name: difference(live)._asdict() for live, one in zip(runs, contenders[::2], strict=True)
        }
        finish = _begin_to_draw(config, closing, folder, numbers, told, arena, played)
        files = [folder / "results.json", folder / "results.csv", folder / "jobs.csv.gz"]
        write_json(numbers, files[0])
        write_csv(numbers, files[1])
        write_jobs(files[2], contenders, arena.grounds("oracle"), played, "")
        files += finish()
    show(numbers, told, arena, config.shown)
    show_difference(runs)
    tell(f"written to {folder}: {', '.join(file.name for file in files)}")
    return numbers


def _begin_to_draw(
    config: Config,
    closing: ExitStack,
    folder: Path,
    numbers: dict[str, Any],
    told: Judged,
    arena: Arena,
    played: Sequence[Sequence[Played]],
) -> Any:
    """Begin to draw the report; returns what waits for its files."""
    if not config.report:
        return list
    painter = Painter()
    closing.callback(painter.close)
    return painter.report(folder, numbers, told, arena, played, [], config.shown)


def _tell_of(runs: Sequence[Live]) -> None:
    """What the user should know before the numbers."""
    for live in runs:
        path, sessions = live.ledger.path, max(entry.session for entry in live.entries)
        if live.ledger.cut:
            tell(f"note: {path}: its last line is not whole, and left out; does the run still go on?")
        if sessions:
            tell(f"note: {path}: the run was gone on with {sessions} times; while nobody was there, jobs waited too")
        plan = _plan_of(live)
        left = len(plan["jobs"]["job_id"]) - len(live.entries) if plan else 0
        if plan.get("digest") and plan["digest"] != find_exported(live.entries[0].model, "model").digest:
            tell(f"note: {path}: {live.entries[0].model} holds another policy now; what is foretold is by that one")
        if left:
            tell(f"note: {path}: {left:,} jobs of the run have not ended; neither they nor their room are simulated")
    tell("note: in the report jobs have the run times that were planned; the last table has what was measured")


def _plan_of(live: Live) -> dict[str, Any]:
    """The plan beside the metrics of a run; nothing where there is none."""
    try:
        told = json.loads(live.ledger.path.with_name(f"run_{live.entries[0].run}.json").read_text())
        return told if isinstance(told["jobs"]["job_id"], list) else {}
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def _about(arena: LiveArena, runs: Sequence[Live], words: list[str]) -> dict[str, Any]:
    """What was judged, and by which command."""
    workload, first = arena.stage.workload, runs[0].entries[0]
    return {
        "berth": __version__,
        "command": shlex.join(["python", "eval/live.py", *words]),
        "cluster": "host",
        "data": {
            "trace": ", ".join(live.ledger.path.name for live in runs), "shipped_sample": False, "split": "live",
            "first_job": 0, "last_job": arena.count - 1, "jobs": arena.count, "load": workload.load,
            "topology": f"of {first.cores} cores", "gpus": first.cores, "nodes": 1, "windows_overlap": False,
        },
        "options": {
            "len": arena.count, "windows": 1, "seed": first.seed, "runtime_info": "oracle", "allocation": "lex",
            "warm_rule": "idle cluster", "sample": False,
        },
    }  # fmt: skip


def show_difference(runs: Sequence[Live]) -> None:
    """Print how far simulated and real start times differ, and what that makes of the means."""
    rows = []
    for name, live in zip(names_of(runs), runs, strict=True):
        d = difference(live)
        rows.append(
            (
                name, str(d.jobs), f"{d.wait:.2f}", f"{d.wait_foretold:.2f}", f"{100 * d.wait_off:+.1f} %",
                f"{d.turnaround:.2f}", f"{d.turnaround_foretold:.2f}", f"{100 * d.turnaround_off:+.1f} %",
                f"{d.start_mean:.2f}", f"{d.start_median:.2f}", f"{d.start_most:.2f}", f"{d.start_bias:+.2f}",
            )
        )  # fmt: skip
    show_rows(
        "real and simulated, in seconds; start: by how much real and simulated start times differ",
        ("run", "jobs", "wait", "simulated", "off", "turnaround", "simulated", "off", "start: mean", "median", "most",
         "later by"), rows,
    )  # fmt: skip


def main() -> None:
    """Judge the runs that the command line names."""
    evaluate(parse(Config, description=DESCRIPTION), sys.argv[1:])


if __name__ == "__main__":
    run(main)
