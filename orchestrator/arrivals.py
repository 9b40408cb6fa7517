"""Who may come next: arrivals drawn from those that came before."""

from typing import NamedTuple

import numpy as np

DAY = 86_400.0
"""Seconds; arrivals to come are those of whole days ago, since nights are unlike days."""

FEWEST_DAYS, LASTING = 3, 7
"""From how many days on arrivals are drawn by the day, and for how many days in a row at most."""

TIMES, MOST = 100, 50_000
"""How many times as many as came are drawn at most, since an hour tells little of a month, and how many in all."""


class Coming(NamedTuple):
    """Jobs that came one after the other, of which those to come are drawn."""

    submit: np.ndarray  # (jobs,) s, rising
    gpus: np.ndarray  # (jobs,)
    run_time: np.ndarray  # (jobs,) s
    estimate: np.ndarray  # (jobs,) s, what was known of it
    pool: np.ndarray  # (jobs,)
    first: float = np.nan  # s, since when it is known who came; the first submit where that is not told

    def of(self, pool: int) -> "Coming":
        """Those that came to a pool; where it is known since when, nobody coming is known, too."""
        here = self.pool == pool
        since = self.first if self.first == self.first or not len(self.submit) else float(self.submit[0])
        return self.rows(here)._replace(first=since)

    def rows(self, rows: np.ndarray) -> "Coming":
        """Some of them, given as a mask or by their places."""
        return Coming(self.submit[rows], self.gpus[rows], self.run_time[rows], self.estimate[rows], self.pool[rows])


NOBODY = Coming(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0))
"""Nobody comes."""


def drawn(coming: Coming, rng: np.random.Generator, now: float, reach: float) -> Coming:
    """Arrivals of the next `reach` seconds: a stretch of those that came before, over and over.

    What comes in a week is as unsure as weeks have differed, so a stretch is what came from some whole number of days
    ago on, at the same hour as then; busy times last, so it is not drawn anew when it is over. Where there are too few
    days, all that came goes round from a random moment on. Nobody comes after the first `most_of` arrivals.
    """
    count = len(coming.submit)
    if count < 2:
        return NOBODY
    first, last = coming.first if coming.first == coming.first else float(coming.submit[0]), float(coming.submit[-1])
    days, turn = int((now - first) / DAY), (last - first) * count / (count - 1)
    if turn <= 0:
        return NOBODY
    back = int(rng.integers(1, max(days, 1) + 1))
    rows, submit, clock, most, drawn_so_far = [], [], 0.0, most_of(coming), 0
    while clock < reach and drawn_so_far < most:
        if days < FEWEST_DAYS:
            origin = rng.uniform(first, first + turn) if clock == 0.0 else first
            lasts = first + turn - origin
        else:
            origin, lasts = now - back * DAY, DAY * min(back, LASTING)
        low, high = np.searchsorted(coming.submit, (origin, origin + lasts))
        rows.append(np.arange(low, high))
        drawn_so_far += int(high - low)
        submit.append(clock + coming.submit[low:high] - origin)
        clock += max(lasts, 1.0)
    found = np.concatenate(submit)[:most]
    row = np.concatenate(rows)[:most][found <= reach]
    return coming.rows(row)._replace(submit=now + found[found <= reach])


def most_of(coming: Coming) -> int:
    """How many arrivals are drawn at most of those that came."""
    return min(TIMES * len(coming.submit), MOST)
