"""How far the ends of intervals must lie from the median to hold what they should, by what came of past forecasts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from orchestrator.forecasting import HORIZON, Interval
from orchestrator.surviving import quantiles

PRIOR = 5
"""How many moments at which intervals hold exactly what they should are counted besides those that are known."""

STEP, FORGETS = 0.2, 0.9
"""How far the share left out goes by what intervals left out too much, and what remains of that a moment later."""

MOMENTS = 40
"""On how many past moments ends are fitted, where nothing else is asked for."""

OF_EACH = 50
"""How many scores every moment has in a fit, however many jobs waited then: jobs of one moment are surprised alike."""

FAR = 1_000.0
"""The score of whatever comes outside of every interval: so do all jobs of one more moment, half of them before.

It stands for the moment that is forecast: without it ends would be fitted to the moments that are known alone, and
hold too little of others (as in conformal prediction with groups: Lee, Barber and Willett, 2023, arXiv 2306.06342).
"""

LEAST = 0.05
"""What is added to the half of an interval, on a logarithmic scale, so that it can be a unit of length."""


class Told(NamedTuple):
    """What was forecast at one moment, and what came."""

    when: float  # s
    interval: Interval  # (queued,) s from then
    start: np.ndarray  # (queued,) s from then; infinite where it is not known yet


class Ends(NamedTuple):
    """Where the ends of an interval lie, in halves of it from the median: as drawn, -1.0 and 1.0."""

    low: float = -1.0
    high: float = 1.0
    moments: int = 0  # how many past moments they were fitted on


def scores(interval: Interval, start: np.ndarray) -> np.ndarray:
    """How far starts (queued,) were from their medians: in lower halves of intervals, or upper ones, on ln(1 + s).

    Whatever lies beyond HORIZON counts as if it lay there.
    """
    low, middle, high, came = (_log(column) for column in (*interval, start))
    return np.where(came < middle, (came - middle) / (LEAST + middle - low), (came - middle) / (LEAST + high - middle))


def moved(interval: Interval, ends: Ends) -> Interval:
    """An interval with its ends where they were fitted to be; infinite where that is beyond HORIZON.

    A median that is not between them moves to the nearer one.
    """
    low, middle, high = (_log(column) for column in interval)
    endless = np.isinf(interval.high)
    first = _seconds(middle + ends.low * _half(ends.low, low, middle, high))
    last = _seconds(np.where(endless, np.inf, middle + ends.high * _half(ends.high, low, middle, high)))
    last = np.maximum(first, last)
    return Interval(first, np.clip(interval.middle, first, last), last)


def fitted(told: Sequence[Told], now: float, inside: float = 0.8) -> Ends:
    """The ends at `now` by what is known then of the forecasts made before, the earliest first."""
    return in_turn([one for one in told if one.when < now and len(one.start)], now, inside)[-1]


def in_turn(told: Sequence[Told], now: float, inside: float = 0.8) -> list[Ends]:
    """The ends at each moment by what was known then of those before it, and at last those at `now`.

    The ends would have held `inside` of the starts before. Jobs that still wait count, too: their scores are at least
    what they would be had they started now. Without them, what is known of recent forecasts would be their short waits
    alone. Nothing comes after an interval without an upper end: the more of them there are, the more may come before
    the lower ones.

    What intervals then held is fed back: where more starts than should came before them, fewer are left out there
    next, and likewise behind them (adaptive conformal inference: Gibbs and Candes, 2021, arXiv 2106.00170).
    """
    aside, few = (1 - inside) / 2, [_few(one) for one in told]
    found: list[Ends] = []
    issued: list[_Issued] = []
    for i, when in enumerate((*(one.when for one in few), now)):
        past = [one for one in few[:i] if one.when < when]
        ends, spared = _fit(past, when, inside, *_owed(few[:i], issued, when, aside))
        found.append(ends)
        if i < len(few):
            issued.append(_Issued(moved(few[i].interval, ends), aside + spared))
    return found


class _Issued(NamedTuple):
    """An interval as it was told."""

    interval: Interval
    before: float  # the share of starts that should come before it


def _few(one: Told) -> Told:
    """OF_EACH jobs of a moment, one after the other the same share of its jobs apart."""
    rows = np.arange(OF_EACH) * len(one.start) // OF_EACH
    return Told(one.when, Interval(*(column[rows] for column in one.interval)), one.start[rows])


def _owed(past: Sequence[Told], issued: Sequence[_Issued], now: float, aside: float) -> tuple[float, float]:
    """By how much the shares left out before and after should be larger, by what is known of the intervals told.

    An end counts when it has passed, not as soon as its job has started: what starts soon is seldom behind it.
    """
    before = after = 0.0
    for age, (one, told) in enumerate(zip(reversed(past), reversed(issued), strict=True)):
        passed = min(now - one.when, HORIZON)
        side, weight = held(told.interval, one.start), STEP * FORGETS**age
        before += weight * float(np.mean((told.interval.low <= passed) * (told.before - (side < 0))))
        after += weight * float(np.mean((told.interval.high <= passed) * (aside - (side > 0))))
    return before, after


def _fit(past: Sequence[Told], now: float, inside: float, before: float, after: float) -> tuple[Ends, float]:
    """The ends by what is known at `now`, and how much more may come before the lower one for want of upper ones.

    `before` and `after` are what the shares left out there have to grow by.
    """
    aside, count = (1 - inside) / 2, len(past)
    ended = [np.isfinite(one.interval.high) for one in past]
    high = _quantile(past, ended, now, inside, 1 - _share(aside + after, aside))
    there = [float(np.isfinite(moved(one.interval, Ends(-1.0, high)).high).mean()) for one in past]
    spared = aside * (1 - float(np.mean(there))) if past else 0.0
    every = [np.ones(OF_EACH, bool)] * count
    low = _quantile(past, every, now, inside, _share(aside + spared + before, aside))
    return Ends(low, high, count), spared


def _share(wanted: float, aside: float) -> float:
    """A share left out that is not more than half, nor so little that FAR's moment alone would make ends infinite."""
    return min(max(wanted, aside / 3), 0.5)


def _quantile(past: Sequence[Told], of: Sequence[np.ndarray], now: float, inside: float, share: float) -> float:
    """A quantile of the scores of some jobs of each moment, as far as is known at `now`."""
    nominal = norm.ppf((np.arange(OF_EACH) + 0.5) / OF_EACH) / norm.ppf((1 + inside) / 2)
    outside = FAR * np.repeat((-1.0, 1.0), OF_EACH // 2)
    values, waiting = [nominal, outside], [np.zeros(2 * OF_EACH, bool)]
    counts = [np.full(OF_EACH, float(PRIOR)), np.ones(OF_EACH)]
    for one, there in zip(past, of, strict=True):
        passed = min(now - one.when, HORIZON)
        values.append(scores(one.interval, np.minimum(one.start, passed))[there])
        waiting.append((one.start > passed)[there] & (passed < HORIZON))
        counts.append(np.ones(np.count_nonzero(there)))
    columns = (np.concatenate(values), np.concatenate(waiting), np.concatenate(counts))
    return float(quantiles(*columns, np.array([share]))[0])


def held(interval: Interval, start: np.ndarray, grace: float = 1.0) -> np.ndarray:
    """Which starts (queued,) are inside their intervals, with some seconds of grace; -1 before, 1 after, 0 inside."""
    came = np.where(start > HORIZON, np.inf, start)
    return np.where(came < interval.low - grace, -1, np.where(came > interval.high + grace, 1, 0))


def _half(end: float, low: np.ndarray, middle: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The half of intervals on whose side an end lies."""
    return LEAST + (middle - low if end < 0 else high - middle)


def _log(seconds: np.ndarray) -> np.ndarray:
    return np.log1p(np.clip(seconds, 0.0, HORIZON))


def _seconds(logs: np.ndarray) -> np.ndarray:
    """Back from logarithms; infinite from HORIZON on."""
    return np.where(logs >= np.log1p(HORIZON - 1.0), np.inf, np.expm1(np.clip(logs, 0.0, np.log1p(HORIZON))))
