"""Who may come next: arrivals drawn from those that came before."""

from typing import NamedTuple

import numpy as np

DAY = 86_400.0
"""Seconds; arrivals to come are those of whole days ago, since nights are unlike days."""

FEWEST_DAYS, LASTING = 3, 7
"""From how many days on arrivals are drawn by the day, and for how many days in a row at most."""


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
    """Arrivals of the next `reach` seconds: stretches of those that came before, one after the other, begun at random.

    What comes in a week is as unsure as weeks have differed, so a stretch is what came from some whole number of days
    ago on, at the same hour as then. Where there are too few days, all that came goes round from a random moment on.
    """
    count = len(coming.submit)
    if count < 2:
        return NOBODY
    first, last = coming.first if coming.first == coming.first else float(coming.submit[0]), float(coming.submit[-1])
    days, turn = int((now - first) / DAY), (last - first) * count / (count - 1)
    if turn <= 0:
        return NOBODY
    rows, submit, clock = [], [], 0.0
    while clock < reach:
        if days < FEWEST_DAYS:
            origin = rng.uniform(first, first + turn) if clock == 0.0 else first
            lasts = first + turn - origin
        else:
            back = int(rng.integers(1, days + 1))
            origin, lasts = now - back * DAY, DAY * min(back, LASTING)
        low, high = np.searchsorted(coming.submit, (origin, origin + lasts))
        rows.append(np.arange(low, high))
        submit.append(clock + coming.submit[low:high] - origin)
        clock += max(lasts, 1.0)
    found = np.concatenate(submit)
    row = np.concatenate(rows)[found <= reach]
    return coming.rows(row)._replace(submit=now + found[found <= reach])
