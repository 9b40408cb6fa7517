"""Where contenders meet: the same windows, from the same beginning, by the same rules."""

from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from berth.errors import ConfigError
from berth.streams import stream
from envs.options import Options
from envs.sim.warming import Past
from envs.stage import Fresh, Stage, find_source, knowing, split_borders
from envs.window import Window, past_of


class Ground(NamedTuple):
    """A window, and what came before it."""

    window: Window
    past: Past


class Arena:
    """Windows of a split, or of fresh jobs; whoever plays them finds the same jobs running and waiting."""

    def __init__(self, options: Options, windows: int, seed: int) -> None:
        self.options = options
        self.count = options.seq_len
        source = find_source(options)
        self.notes = source.notes
        self.low = self.high = 0
        if isinstance(source, Fresh):
            seeds = stream(seed, "fresh windows").integers(2**31, size=windows).tolist()
            self.begins = [source.draw(np.random.default_rng(one)) for one in seeds]
            self.groups = np.arange(windows)
        else:
            submit = source.stage.roster["submit"]
            low, high = split_borders(submit, options.train_share, options.validation_share)[options.split]
            high = min(high, low + options.batch_job_slice) if options.batch_job_slice else high
            self.low, self.high = low, high
            firsts, self.groups = choose_windows(low, high, self.count, windows, seed)
            self.begins = [(source.stage, first) for first in firsts]
        self.stage: Stage = self.begins[0][0]
        self._known = lru_cache(maxsize=None)(self._knowing)

    @property
    def overlap(self) -> bool:
        """Whether windows share jobs."""
        return len(np.unique(self.groups)) < len(self.groups)

    def grounds(self, runtime_info: str) -> list[Ground]:
        """The windows, for those who know so much of run times."""
        return [self.ground(k, runtime_info) for k in range(len(self.begins))]

    @cache  # noqa: B019 - an arena lives as long as its program
    def ground(self, number: int, runtime_info: str) -> Ground:
        """One window, for those who know so much of run times."""
        _, first = self.begins[number]
        window = Window(self._known(self._of(number), runtime_info), first, self.count, *self._kind)
        return Ground(window, past_of(window))

    @cache  # noqa: B019 - an arena lives as long as its program
    def whole(self, runtime_info: str) -> Ground:
        """The whole split as one window."""
        if self.high == self.low:
            raise ConfigError("fresh jobs have no split that could be replayed as a whole")
        window = Window(self._known(0, runtime_info), self.low, self.high - self.low, *self._kind)
        return Ground(window, past_of(window))

    @property
    def _kind(self) -> tuple[bool, bool]:
        """Whether windows begin warm, and whether their backlog is scored."""
        return self.options.warm_start, self.options.score_backlog

    def _of(self, number: int) -> int:
        """Which stage a window has: its own where jobs are made anew, else the one of all."""
        return number if self.options.is_fresh else 0

    def _knowing(self, stage: int, runtime_info: str) -> Stage:
        if runtime_info == self.options.runtime_info:
            return self.begins[stage][0]
        return knowing(self.begins[stage][0], runtime_info, self.options.workload_seed)


def choose_windows(low: int, high: int, length: int, count: int, seed: int) -> tuple[list[int], np.ndarray]:
    """First jobs of `count` windows in low..high - 1, and which of them are drawn together in a bootstrap (windows,).

    Where there is room the windows share no jobs: all arrangements are equally likely. Else they are spread evenly, and
    those that begin in one stretch of `length` jobs belong together. Raises ConfigError where not one fits.
    """
    room = high - low - length
    if room < 0:
        raise ConfigError(f"len {length:,}: the split has {high - low:,} jobs; want shorter windows, or a longer trace")
    spare = high - low - count * length
    if spare >= 0:
        gaps = np.sort(stream(seed, "evaluation windows").integers(0, spare + 1, size=count))
        return (low + gaps + length * np.arange(count)).tolist(), np.arange(count)
    firsts = np.linspace(low, low + room, count).round().astype(int)
    return firsts.tolist(), (firsts - low) // length
