"""How far the ends of intervals must lie from the median to hold what they should, by what came of past forecasts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import CensoredData, ecdf, norm

from orchestrator.forecasting import HORIZON, Interval

PRIOR = 5
"""How many moments at which intervals hold exactly what they should are counted besides those that are known."""

MOMENTS = 30
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
    """The ends that would have held `inside` of what is known at `now` of the forecasts made before.

    Jobs that still wait count, too: their scores are at least what they would be had they started now, which the
    product-limit estimator (Kaplan and Meier, 1958) takes into account. Without them, what is known of recent
    forecasts would be their short waits alone. Nothing comes after an interval without an upper end: the more of them
    there are, the more may come before the lower ones.
    """
    past = [one for one in told if one.when < now and len(one.start)]
    ended = [np.isfinite(one.interval.high) for one in past]
    aside = (1 - inside) / 2
    high = _quantile(past, ended, now, inside, 1 - aside)
    there = [np.isfinite(moved(one.interval, Ends(-1.0, high)).high).mean() for one in past]
    spared = aside * (1 - float(np.mean(there))) if past else 0.0
    low = _quantile(past, [np.ones(len(one.start), bool) for one in past], now, inside, aside + spared)
    return Ends(low, high, len(past))


def _quantile(past: Sequence[Told], of: Sequence[np.ndarray], now: float, inside: float, share: float) -> float:
    """A quantile of the scores of some jobs of each moment, as far as is known at `now`."""
    nominal = norm.ppf((np.arange(OF_EACH) + 0.5) / OF_EACH) / norm.ppf((1 + inside) / 2)
    outside = FAR * np.repeat((-1.0, 1.0), OF_EACH // 2)
    values, waiting = [np.tile(nominal, PRIOR), outside], [np.zeros(OF_EACH * (PRIOR + 1), bool)]
    for one, there in zip(past, of, strict=True):
        rows = np.arange(OF_EACH) * len(one.start) // OF_EACH
        rows = rows[there[rows]]
        passed = min(now - one.when, HORIZON)
        values.append(scores(one.interval, np.minimum(one.start, passed))[rows])
        waiting.append((one.start > passed)[rows] & (passed < HORIZON))
    found = ecdf(CensoredData.right_censored(np.concatenate(values), np.concatenate(waiting))).cdf
    reached = int(np.searchsorted(found.probabilities, share))
    return float(found.quantiles[min(len(found.quantiles) - 1, reached)])


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
