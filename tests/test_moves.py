"""The fewest changes that put jobs into order, played by the rules that OpenLava was seen to follow."""

from itertools import combinations, pairwise, permutations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.moves import headed, levels, to_top, to_top_by_priority


def topped(current, moves):
    for job in moves:
        current = [job, *(other for other in current if other != job)]
    return current


def leveled(current, level, new):
    """By level, the highest first; who has a new level that another has too could be anywhere: there must be none."""
    now = {**level, **new}
    assert all(now[a] != now[b] for a in new for b in current if a != b)
    return sorted(current, key=lambda job: -now[job])


def test_to_top_needs_as_few_moves_as_there_can_be():
    for wanted in permutations("abcd"):
        moves = to_top("abcd", wanted)
        assert topped(list("abcd"), moves) == list(wanted)
        fewest = next(
            k for k in range(5) if any(topped(list("abcd"), m) == list(wanted) for m in permutations("abcd", k))
        )
        assert len(moves) == fewest


def test_to_top_stays_within_a_priority():
    priority = {"a": 80, "b": 50, "c": 50, "d": 50}
    assert to_top_by_priority("abcd", "dcba", priority) == ["c", "d"]
    assert to_top_by_priority("adcb", "dcba", priority) == []


def test_the_head_is_put_into_order_and_the_rest_stays():
    assert headed("abcde", "edcba", 2) == list("edabc")
    assert headed("abcde", "edcba", 9) == list("edcba")


def test_levels_change_as_few_jobs_as_there_can_be():
    level = {"a": 70, "b": 50, "c": 50, "d": 50}
    for wanted in permutations("abcd"):
        new = levels("abcd", wanted, level, 100)
        assert leveled("abcd", level, new) == list(wanted)
        few = [set(jobs) for k in range(len(new)) for jobs in combinations("abcd", k)]
        assert not any(_reachable(wanted, level, jobs) for jobs in few)


def _reachable(wanted, level, changed):
    """Whether new levels for these jobs alone could do, there being room between any two different levels here."""
    kept = [job for job in wanted if job not in changed]
    if not kept:
        return True
    if kept != sorted(kept) or len(wanted) - 1 - wanted.index(kept[-1]) > level[kept[-1]] - 50:
        return False
    for left, right in pairwise(kept):
        if level[left] == level[right] and wanted.index(right) - wanted.index(left) > 1:
            return False
    return True


@given(st.permutations(range(9)), st.lists(st.integers(1, 15), min_size=9, max_size=9), st.integers(9, 15))
def test_levels_lead_to_the_wanted_order_and_a_second_time_change_nothing(wanted, given_levels, highest):
    current = [str(i) for i in range(9)]
    level = dict(zip(current, sorted(given_levels, reverse=True), strict=True))
    wanted = [str(i) for i in wanted]
    new = levels(current, wanted, level, highest)
    if new is None:
        assert highest - min(level.values()) + 1 < 9
        return
    assert all(min(level.values()) <= value <= highest for value in new.values())
    after = leveled(current, level, new)
    assert after == wanted
    assert levels(after, wanted, {**level, **new}, highest) == {}


def test_too_few_levels_are_told():
    assert levels("abc", "cba", dict.fromkeys("abc", 1), 2) is None
    assert levels("abc", "cba", dict.fromkeys("abc", 49), 50) is None


def test_values_that_nobody_has_yet_go_above_those_without():
    new = levels("abcd", "dabc", dict.fromkeys("abcd", 0), 1000)
    assert list(new) == ["d"]
    assert levels("dabc", "dcab", {"d": new["d"], "a": 0, "b": 0, "c": 0}, 1000).keys() == {"c"}
