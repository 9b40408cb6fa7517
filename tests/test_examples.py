"""The examples run."""

import importlib.util
import math
import subprocess
import sys

import pytest

from tests.conftest import ROOT


def run(*words):
    return subprocess.run(
        [sys.executable, "examples/maskable_ppo.py", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(importlib.util.find_spec("sb3_contrib") is None, reason="examples/requirements.txt not installed")
def test_a_strangers_learner_trains():
    done = run("--steps", "512", "--episodes", "2", "--seq_len", "16")
    assert done.returncode == 0, done.stderr
    assert math.isfinite(float(done.stdout.split()[-1]))


@pytest.mark.skipif(importlib.util.find_spec("sb3_contrib") is not None, reason="sb3-contrib is installed")
def test_a_learner_that_is_not_there_is_told():
    done = run("--steps", "512")
    assert done.returncode == 2
    assert "pip install -r examples/requirements.txt" in done.stderr
