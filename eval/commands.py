"""Programs run as tasks: some at a time, each with a log."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from berth.console import tell
from eval.engines import Processes
from eval.tasks import Manner, Outcome, Task, work_off


class Command(NamedTuple):
    """A program with its words, and where what it says is kept."""

    name: str  # unique
    words: list[str]
    folder: str  # where it runs
    log: str


def run_commands(commands: Sequence[Command], processes: int, retries: int = 1) -> list[Outcome]:
    """Run programs, so many at a time on a core each; one that fails is run again, then told, and the others go on."""

    def _heard(outcome: Outcome) -> None:
        said = f"FAILED: {outcome.trouble}" if outcome.trouble else "done"
        tell(f"{outcome.task.name}: {said} in {outcome.seconds:.0f} s")

    if not commands:
        return []
    tasks = [Task(command.name, command.name, command) for command in commands]
    return work_off(tasks, Processes(run_one, min(processes, len(tasks))), Manner(retries), _heard)


def run_one(command: Command) -> None:
    """Run a program to its end; raises RuntimeError that says where its log is."""
    log = Path(command.log)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as out:
        code = subprocess.run(
            command.words, cwd=command.folder, env=dict(os.environ), stdout=out, stderr=subprocess.STDOUT
        ).returncode
    if code != 0:
        last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["nothing was said"]
        raise RuntimeError(f"exit code {code}: {last[0][:300]}; see {log}")
