"""The pages about the environments say what the code does."""

import doctest
import re

from envs.observation import JOB_FEATURES, LOOKAHEAD_TEXTS, MOST_VALUES, POOL_FEATURES
from envs.options import ACTION_MODES, Options
from envs.pages import all_pages
from envs.reward import SCORES
from envs.sim.reckoning import BOUND
from envs.sim.scale import LONGEST
from envs.stage import LEAD
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "mdp.md").read_text()


def table(head):
    """The rows of one table of the page, by the first words of its head."""
    lines = PAGE[PAGE.index(f"| {head} |") :].splitlines()[2:]
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append(tuple(cell.strip().strip("`") for cell in line.strip("|").split("|")))
    return rows


def test_the_examples_of_the_page():
    failed, tried = doctest.testfile(str(ROOT / "docs" / "mdp.md"), module_relative=False)
    assert tried > 10
    assert failed == 0


def test_the_tables_of_the_page_are_the_codes():
    assert table("`jobs`") == [(f.name, f.text) for f in JOB_FEATURES]
    assert table("`cluster`") == [(f.name, f.text) for f in POOL_FEATURES]
    assert table("`lookahead_mode`") == list(LOOKAHEAD_TEXTS.items())
    assert table("`score_type`") == [(name, str(score.code), score.text) for name, score in SCORES.items()]
    disciplines = [
        (mode, str(int(backfil)) if mode == "reserve" else "", Options(action_mode=mode, backfil=backfil).discipline)
        for mode in ACTION_MODES
        for backfil in ((False, True) if mode == "reserve" else (False,))
    ]
    assert table("`action_mode`") == disciplines


def test_the_numbers_of_the_page_are_the_codes():
    options = Options()
    assert f"first {options.train_share:.0%}".replace("%", " %") in PAGE
    assert f"next {options.validation_share:.0%}".replace("%", " %") in PAGE
    assert LONGEST == 1e8
    assert "10⁸ s" in PAGE
    assert f"more than {MOST_VALUES} GPUs" in PAGE
    assert f"at least {LEAD}" in PAGE
    assert f"max(r, {BOUND:g} s)" in PAGE
    assert re.search(rf"{len(POOL_FEATURES)} numbers for every pool", PAGE)


def test_the_pages_are_as_they_would_be_written_now():
    for name, text in all_pages().items():
        assert (ROOT / "docs" / "environments" / name).read_text() == text, "run python -m envs pages"
