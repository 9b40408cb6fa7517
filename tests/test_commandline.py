"""Command lines made from dataclasses."""

import subprocess
import sys
from dataclasses import dataclass

import pytest

from berth.commandline import argument, nearest, option, parse
from berth.errors import ConfigError


@dataclass(frozen=True)
class Example:
    """A program's options."""

    seq_len: int = option(256, "jobs per window")
    load: float | None = option(None, "offered load")
    score: str = option("wait", "what counts", choices=("wait", "slowdown"))
    policies: tuple[str, ...] = option(("fcfs",), "who competes")
    warm_start: bool = option(True, "begin with what runs")


@dataclass(frozen=True)
class Placed:
    """A program with a file."""

    file: str = argument("what to read", "FILE")
    deep: bool = option(False, "look closer")
    out: str = option("", "where to", short="-o")


def test_words_by_their_place():
    assert parse(Placed, ["a"]) == Placed("a")
    assert parse(Placed, ["--deep", "a", "-o", "b"]) == Placed("a", True, "b"), "a switch does not swallow the file"
    assert parse(Placed, ["--deep", "0", "a"]) == Placed("a", False)
    with pytest.raises(ConfigError, match="FILE"):
        parse(Placed, [])


def test_defaults():
    assert parse(Example, []) == Example()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--seq_len", "5"], Example(seq_len=5)),
        (["--seq-len=5"], Example(seq_len=5)),
        (["--load", "0.5"], Example(load=0.5)),
        (["--policies", "a,b"], Example(policies=("a", "b"))),
        (["--no-warm_start"], Example(warm_start=False)),
        (["--no_warm_start"], Example(warm_start=False)),
        (["--warm-start", "0"], Example(warm_start=False)),
        (["--warm_start", "1"], Example(warm_start=True)),
        (["--warm_start"], Example(warm_start=True)),
    ],
)
def test_words(words, expected):
    assert parse(Example, words) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--seq_len", "five"], "--seq_len five: wanted a whole number"),
        (["--load", "much"], "--load much: wanted a number"),
        (["--score", "wiat"], "did you mean wait"),
        (["--warm_start=maybe"], "wanted 0 or 1"),
        (["--warm_start", "maybe"], "maybe is one word too many"),
        (["--sqe_len", "5"], "did you mean --seq_len"),
        (["--seq_len"], "expected one argument"),
        (["stray"], "stray is one word too many"),
    ],
)
def test_mistakes(words, message):
    with pytest.raises(ConfigError, match=message):
        parse(Example, words)


def test_help_shows_every_flag(capsys):
    with pytest.raises(SystemExit) as end:
        parse(Example, ["--help"], description="what it does")
    assert end.value.code == 0
    text = capsys.readouterr().out
    for flag in ("--seq_len", "--load", "--score", "--policies", "--warm_start", "(default: 256)", "wait, slowdown"):
        assert flag in text


def test_nearest_without_a_near_one():
    assert nearest("zzz", ["a", "b"]) == "known: a, b"


def test_a_users_mistake_is_one_line_and_exit_code_2():
    code = "from berth.commandline import run\nfrom berth.errors import TraceError\n"
    code += "def main():\n    raise TraceError('x.csv:3: gpus = 0')\nrun(main)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "error: x.csv:3: gpus = 0\n")
