"""Policies on fresh traces: how evaluations of several traces are put together."""

import numpy as np
import pytest

from benchmarks.fresh import FIRST, Config, judging, making, summarize, table


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
