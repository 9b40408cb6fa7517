"""Policies on fresh traces: how evaluations of several traces are put together."""

import numpy as np
import pytest

from benchmarks.fresh import FIRST, Config, check, check_asked, judging, main, making, summarize, table
from berth.errors import ConfigError


def _told(learned, sjf, lcfs, rival, knows=1.0):
    """An evaluation of one trace, of two windows by two seeds."""
    rows = {"m_s0": learned, "m_s1": learned, "sjf fit (predicted)": sjf, "lcfs fit": lcfs,
            "sjf fit (oracle)": [knows, knows]}  # fmt: skip
    kinds = {"m_s0": ("model", "predicted"), "m_s1": ("model", "predicted"), "lcfs fit": ("heuristic", "hidden")}
    kinds |= {f"sjf fit ({info})": ("heuristic", info) for info in ("predicted", "oracle")}
    return {
        "contenders": [{"name": n, "kind": k, "runtime_info": i} for n, (k, i) in kinds.items()],
        "by_window": {name: {"wait": list(values)} for name, values in rows.items()},
        "windows": [{}, {}], "rivals": {"wait": rival},
    }  # fmt: skip


def test_the_strongest_heuristic_is_each_trace_s_own_and_the_best_in_hindsight_is_one_for_all():
    one = _told([4.0, 4.0], [6.0, 6.0], [3.0, 5.0], "sjf fit (predicted)")
    two = _told([4.0, 2.0], [6.0, 4.0], [9.0, 9.0], "lcfs fit")
    found = summarize([one, two], "wait")
    assert found["mean"] == 3.5
    assert found["rival"]["mean"] == (6 + 6 + 9 + 9) / 4
    assert found["rival"]["change"] == pytest.approx(3.5 / 7.5 - 1)
    assert (found["better"], found["traces"]) == (2, 2)
    assert (found["hindsight"]["name"], found["hindsight"]["mean"]) == ("sjf fit (predicted)", 5.5)
    assert (found["predicted"], found["knows"]) == (5.5, 1.0)
    lines = table({"philly": [found]}).splitlines()
    assert "2 of 2" in lines[-1]
    assert lines[-1].endswith("| 44 % |")  # (5.5 - 3.5) / (5.5 - 1)


def test_intervals_draw_whole_traces():
    """Where every trace differs from the next, and its windows agree, no number of windows makes it certain."""
    rng = np.random.default_rng(0)
    apart = [_told([10.0 + d] * 2, [10.0, 10.0], [99.0, 99.0], "sjf fit (predicted)") for d in rng.normal(0, 3, 12)]
    found = summarize(apart, "wait")["rival"]
    assert found["low"] < found["change"] < found["high"]
    assert found["high"] - found["low"] > 0.2


def test_a_trace_is_made_and_judged_by_commands_that_name_it():
    words = judging("synthetic", FIRST, Config(traces=2, windows=7))
    assert words[words.index("--iter") + 1] == "7"
    assert words[-2:] == ["--workload", "data/headline/fresh/synthetic_101.csv"]
    assert words[words.index("--out") + 1] == "data/headline/fresh/synthetic_101"
    assert making("synthetic", FIRST)[-2:] == ["-o", "data/headline/fresh/synthetic_101.csv"]
    assert words.count("--rlmodel") == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"clusters": ("nosuch",)}, "--clusters nosuch"),
        ({"traces": 1}, "--traces 1: want at least 2"),
        ({"windows": 0}, "--windows 0: want at least 1"),
        ({"seeds": 0}, "--seeds 0: want at least 1"),
    ],
)
def test_what_cannot_be_judged_is_refused(wrong, message):
    with pytest.raises(ConfigError, match=message):
        check(Config(**wrong))


def test_an_evaluation_of_other_windows_or_seeds_is_not_taken_for_what_is_asked():
    told = _told([4.0, 4.0], [6.0, 6.0], [3.0, 5.0], "lcfs fit")
    check_asked(told, Config(windows=2, seeds=2), "there")
    for other in (Config(windows=3, seeds=2), Config(windows=2, seeds=3)):
        with pytest.raises(ConfigError, match="there: judged on 2 windows with 2 seeds"):
            check_asked(told, other, "there")


def test_where_nothing_is_judged_the_page_stays(tmp_path, monkeypatch):
    page = tmp_path / "fresh.md"
    page.write_text("as it was")
    monkeypatch.setattr("benchmarks.fresh.ROOT", tmp_path)
    monkeypatch.setattr("benchmarks.fresh.PAGE", page)
    monkeypatch.setattr("benchmarks.fresh.run_commands", lambda *_: [])
    monkeypatch.setattr("sys.argv", ["fresh.py", "--clusters", "synthetic"])
    with pytest.raises(ConfigError, match="stays as it was"):
        main()
    assert page.read_text() == "as it was"
