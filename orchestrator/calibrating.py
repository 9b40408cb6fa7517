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
    """An interval with its ends where they were fitted to be; infinite where that is beyond HORIZON."""
    low, middle, high = (_log(column) for column in interval)
    below, above = LEAST + middle - low, LEAST + high - middle
    found = [np.expm1(np.maximum(middle + end * np.where(end < 0, below, above), 0.0)) for end in (ends.low, ends.high)]
    first, last = (np.where(end >= HORIZON - 1.0, np.inf, end) for end in found)
    return Interval(first, interval.middle, last)


def fitted(told: Sequence[Told], now: float, inside: float = 0.8) -> Ends:
    """The ends that would have held `inside` of what is known at `now` of the forecasts made before.

    Jobs that still wait count, too: their scores are at least what they would be had they started now, which the
    product-limit estimator (Kaplan and Meier, 1958) takes into account. Without them, what is known of recent
    forecasts would be their short waits alone.
    """
    values, open_ended = [], []
    past = [one for one in told if one.when < now and len(one.start)]
    for one in past:
        rows = np.arange(OF_EACH) * len(one.start) // OF_EACH
        passed = min(now - one.when, HORIZON)
        values.append(scores(one.interval, np.minimum(one.start, passed))[rows])
        open_ended.append((one.start > passed)[rows] & (passed < HORIZON))
    nominal = norm.ppf((np.arange(OF_EACH) + 0.5) / OF_EACH) / norm.ppf((1 + inside) / 2)
    values.append(np.tile(nominal, PRIOR))
    open_ended.append(np.zeros(OF_EACH * PRIOR, bool))
    found = ecdf(CensoredData.right_censored(np.concatenate(values), np.concatenate(open_ended))).cdf
    low, high = (
        _reached(found.quantiles, found.probabilities, share) for share in ((1 - inside) / 2, (1 + inside) / 2)
    )
    return Ends(low, high, len(past))


def held(interval: Interval, start: np.ndarray, grace: float = 1.0) -> np.ndarray:
    """Which starts (queued,) are inside their intervals, with some seconds of grace; -1 before, 1 after, 0 inside."""
    came = np.where(start > HORIZON, np.inf, start)
    return np.where(came < interval.low - grace, -1, np.where(came > interval.high + grace, 1, 0))


def _log(seconds: np.ndarray) -> np.ndarray:
    return np.log1p(np.clip(seconds, 0.0, HORIZON))


def _reached(quantiles: np.ndarray, probabilities: np.ndarray, share: float) -> float:
    """The first quantile at which a share is reached, or the last one."""
    return float(quantiles[min(len(quantiles) - 1, int(np.searchsorted(probabilities, share)))])
