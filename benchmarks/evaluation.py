"""How long an evaluation takes, from the command to the page, and a replay of the sample under all heuristics."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.table import Table

from berth.commandline import run
from berth.console import console

ROOT = Path(__file__).resolve().parent.parent

COMMANDS = {
    "the default evaluation, report included": (["eval/philly_eval.py"], "< 20"),
    "the same, strict and easy alone": (["eval/philly_eval.py", "--discipline", "strict,easy"], "< 20"),
    "heuristics alone": (["eval/philly_eval.py", "--rlmodel", "none"], ""),
    "whole sample, all heuristics, strict": (["eval/replay.py", "--policies", "all"], "< 10"),
    "whole sample, all heuristics, strict and easy": (
        ["eval/replay.py", "--policies", "all", "--discipline", "strict,easy"], "< 10",
    ),
}  # fmt: skip


def main() -> None:
    """Run every command twice, and tell the second time: the first may compile."""
    table = Table("Philly sample", "seconds", "wanted", title="Evaluations, from the command to the last file")
    with tempfile.TemporaryDirectory() as folder:
        for name, (words, wanted) in COMMANDS.items():
            for _ in range(2):
                begin = time.perf_counter()
                command = [sys.executable, str(ROOT / words[0]), *words[1:]]
                subprocess.run(command, cwd=folder, check=True, capture_output=True)
                seconds = time.perf_counter() - begin
            table.add_row(name, f"{seconds:.1f}", wanted)
    console().print(table)


if __name__ == "__main__":
    run(main)
