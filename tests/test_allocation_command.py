"""python -m allocation, as a user runs it."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings

from allocation.__main__ import main
from allocation.candidates import on_lowest, pattern_of, scores, tier_candidates
from berth.commandline import run
from legacy import placement as slow
from tests.test_placers import pools


def ask(monkeypatch, capsys, *words):
    """Exit code, output and errors of a question."""
    monkeypatch.setattr(sys, "argv", ["allocation", *words])
    code = 0
    try:
        run(main)
    except SystemExit as end:
        code = int(end.code or 0)
    told = capsys.readouterr()
    return code, told.out, told.err


def test_the_issues_example(monkeypatch, capsys):
    code, out, _ = ask(monkeypatch, capsys, "--free", "8,8,3,1", "--gpus", "10")
    assert code == 0
    assert "10 GPUs asked for, 20 of 32 free on 4 nodes" in out
    rows = [line.replace("│", "|").split("|") for line in out.splitlines() if ":" in line and "│" in line]
    cells = {row[1].strip(): [cell.strip() for cell in row[2:6]] for row in rows if len(row) == 7}
    assert cells["0:8 2:2"] == ["+0", "-2", "+0.0117", "defrag, best_fit, fgd, milp"]
    assert cells["0:5 1:5"][:3] == ["+2", "+6", "-0.1367"]
    assert cells["0:8 2:1 3:1"][:2] == ["-1", "-2"], "tier 2"
    assert "@@@@@@@@ ........ #####@@. #######." in out


def test_sizes_repetitions_and_next_jobs(monkeypatch, capsys):
    words = ("--free", "4,3", "--capacity", "8", "--gpus", "1", "--recent", "1x3,4")
    assert "milp        │ ####.... #####@.." in ask(monkeypatch, capsys, *words)[1]
    assert "milp        │ ####@... #####..." in ask(monkeypatch, capsys, *words, "--ahead", "3,3")[1]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--free", "8,8", "--gpus", "17"), "the nodes have 16 GPUs in all: 17 can never fit"),
        (("--free", "1,2", "--capacity", "8", "--gpus", "4"), "3 GPUs are free in all"),
        (("--free", "3,3,2", "--capacity", "8", "--gpus", "8"), "tier 1 needs 1 node, and the freest has 3 GPUs free"),
        (("--free", "3,3,2", "--capacity", "8", "--gpus", "8"), "tier 2 needs 2 nodes, and the freest have 6"),
        (("--free", "4,4", "--capacity", "8", "--gpus", "8", "--tiers", "1"), "--tiers 1+2 would allow 2 nodes"),
        (("--free", "2,2,0", "--capacity", "2,2,8", "--gpus", "3"), "one more would be partly used than now"),
    ],
)
def test_an_impossible_request_says_why(monkeypatch, capsys, words, reason):
    code, out, err = ask(monkeypatch, capsys, *words)
    assert code == 1
    assert "fits on no tier: " in out
    assert reason in out
    assert not err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "want --free with the free GPUs of each node"),
        (("--free", "8", "--gpus", "0"), "--gpus N with N > 0"),
        (("--free", "8x0", "--gpus", "1"), "8x0: want at least one of them"),
        (("--free", "\u0668", "--gpus", "1"), "want whole numbers"),
        (("--free", "0,0", "--gpus", "1"), "no GPU is free; want --capacity"),
        (("--free", "2000", "--gpus", "1"), "2,000 GPUs: want no more than 1,024"),
        (("--free", "8", "--gpus", str(10**30)), "want no more than"),
        (("--free", "8,x", "--gpus", "1"), "'x': want whole numbers"),
        (("--free", "-1", "--gpus", "1"), "want whole numbers"),
        (("--free", "8x", "--gpus", "1"), "'8x': want whole numbers"),
        (("--free", "1.5", "--gpus", "1"), "want whole numbers"),
        (("--free", "8x999999999", "--gpus", "1"), "no more than 100,000"),
        (("--free", "9", "--capacity", "8", "--gpus", "1"), "node 0 has 9 GPUs free of 8"),
        (("--free", "1,1,1", "--capacity", "8,8", "--gpus", "1"), "--capacity has 2 nodes, --free 3"),
        (("--free", "0", "--capacity", "0", "--gpus", "1"), "--capacity 0: want at least 1"),
        (("--free", "8", "--gpus", "1", "--ahead", "0"), "--ahead 0: want at least 1"),
        (("--free", "8", "--gpus", "1", "--tiers", "2"), "known: 1, 1+2"),
        (("--free", "8", "--gpus", "1", "--milp_time_limit", "0"), "want finite seconds > 0"),
        (("--free", "8", "--gpus", "1", "--show", "0"), "--show 0: want a number > 0"),
    ],
)
def test_mistakes_are_told_in_one_line(monkeypatch, capsys, words, message):
    code, _, err = ask(monkeypatch, capsys, *words)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_many_nodes_and_candidates_are_answered(monkeypatch, capsys):
    for free, told in ((",".join("12345678" * 40), "only the first 20,000 were looked at"), ("8x1000", "tier 2")):
        code, out, _ = ask(monkeypatch, capsys, "--free", free, "--gpus", "97", "--seed", str(10**30))
        assert code == 0
        assert told in out


@pytest.mark.parametrize(
    ("free", "gpus"), [("8x3000", "24000"), ("1000x2,999", "1500"), ("8x50000,7x25000,1x25000", "100"), ("4x4", "12")]
)
def test_large_questions_are_answered(monkeypatch, capsys, free, gpus):
    code, out, err = ask(monkeypatch, capsys, "--free", free, "--gpus", gpus, "--capacity", free.replace("4x4", "8x4"))
    assert code == 0
    assert not err
    assert "random" in out


@given(pools())
@settings(max_examples=150)
def test_candidates_are_all_there_are(case):
    """Every placement by brute force is a candidate, up to nodes that can stand for each other; so are the scores."""
    free, capacity, gpus = case
    nodes = range(len(free))
    for tier in (1, 2):
        found, all_of_them = tier_candidates(np.array(free), np.array(capacity), gpus, tier, 100_000)
        assert all_of_them
        here = np.array(free), np.array(capacity)
        placements = [on_lowest(pattern, *here) for pattern in found]
        assert [pattern_of(placed, *here) for placed in placements] == found
        kinds = [sorted((free[n], capacity[n], taken) for n, taken in placed) for placed in placements]
        expected = {
            tuple(sorted((free[n], capacity[n], taken) for n, taken in placed))
            for placed in slow.tier(tier, nodes, capacity, free, gpus)
        }
        assert sorted(map(tuple, kinds)) == sorted(expected)
        for placed, pattern in list(zip(placements, found, strict=True))[:5]:
            partly, stranded, variance = slow.scores(nodes, capacity, free, placed)
            score = scores(*here, pattern)
            assert score[:2] == (partly, stranded)
            assert score.variance == pytest.approx(float(variance), abs=1e-12)
