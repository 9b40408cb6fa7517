"""Sessions of calibrated workloads: runs of jobs of one kind whose run times resemble each other."""

from collections import deque
from typing import NamedTuple

import numpy as np

from traces.recipe import CLASSES, GAP_EDGES, NEAR, Recipe, intensity, size_class

WARM = 2000
"""Jobs after which a kind's share of the jobs is minded in full."""


class Sessions(NamedTuple):
    """What each job has from its session."""

    session: np.ndarray  # (jobs,) number
    kind: np.ndarray  # (jobs,)
    usual: np.ndarray  # (jobs, 2) usual run-time score at the job's intensity, of 1 GPU and of more
    level: np.ndarray  # (jobs,) the session's own run-time score by then


def sessions(recipe: Recipe, gap: np.ndarray, rng: np.random.Generator) -> Sessions:
    """Give every job its session.

    A job continues the one before it (likelier after a short gap), or takes up one of the last jobs again (larger jobs
    come back as larger jobs do), or opens a session, of a kind that is usual where jobs come as thinly as there.
    """
    jobs = len(gap)
    bins = np.searchsorted(recipe.edges, intensity(gap))
    kind = _new_kinds(recipe, bins, rng)
    level = rng.standard_normal(jobs).tolist()
    holds = np.array(recipe.holds)[:, np.searchsorted(GAP_EDGES, gap, side="right")]
    stays = (rng.random(jobs) < holds).tolist()
    up, which, toss = rng.random((3, jobs)).tolist()
    rejoin, returns = (rng.random((2, jobs)) < [[recipe.rejoin], [recipe.returns]]).tolist()
    step = (np.sqrt(1 - recipe.drift**2) * rng.standard_normal(jobs)).tolist()
    usual, within = recipe.fresh, bins.tolist()
    classes = size_class(np.array([one[0] for one in recipe.kinds])).tolist()
    share = [one[2] for one in recipe.kinds]
    session, latest, count = list(range(jobs)), [-1] * len(share), [0] * len(share)
    recent: list[deque[int]] = [deque() for _ in range(CLASSES)]
    for i in range(jobs):
        source, joins = i - 1, True
        if i and not stays[classes[kind[source]]][i]:
            source = _taken_up(recipe, recent, i, up[i], which[i])
        seen = kind[source]
        # copied the more seldom where the kind is rarer at this intensity, or has had more than its share
        room = min(1.0, (share[seen] * (i + WARM) + 1) / (count[seen] + share[seen] * WARM + 1)) ** 4
        if source < 0 or toss[i] * usual[within[source]][seen] > usual[within[i]][seen] * room:
            source, joins = (latest[kind[i]] if rejoin[i] else -1), returns[i]
        if source >= 0:
            kind[i], level[i] = kind[source], recipe.drift * level[source] + step[i]
            session[i] = session[source] if joins else i
        latest[kind[i]] = i
        count[kind[i]] += 1
        recent[classes[kind[i]]].append(i)
    return Sessions(np.array(session), np.array(kind), np.array(recipe.level)[bins], np.array(level))


def _taken_up(recipe: Recipe, recent: list[deque[int]], i: int, chance: float, which: float) -> int:
    """One of the last NEAR jobs, each likelier by its class, or -1 for none; large classes are rare and asked first."""
    for size, line in reversed(list(enumerate(recent))):
        while line and line[0] < i - NEAR:
            line.popleft()
        chance -= recipe.takes_up[size] * len(line)
        if chance < 0:
            return line[int(which * len(line))]
    return -1


def _new_kinds(recipe: Recipe, bins: np.ndarray, rng: np.random.Generator) -> list[int]:
    """The kind that each job would have if it opened a session, by intensity."""
    lift = np.array(recipe.lift)[size_class(np.array([one[0] for one in recipe.kinds]))]
    chance, kind = rng.random(len(bins)), np.zeros(len(bins), np.int64)
    for b, shares in enumerate(recipe.fresh):
        here = bins == b
        total = np.cumsum(np.array(shares) * lift)
        kind[here] = np.minimum(np.searchsorted(total, chance[here] * total[-1], side="right"), len(total) - 1)
    return kind.tolist()
