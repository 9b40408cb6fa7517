"""Clocks that a backend goes by: virtual time, which jumps, or real time, at any speed."""

import time
from typing import Protocol

from berth.errors import SimulationError
from orchestrator.bell import Bell


class Clock(Protocol):
    """Seconds of the workload from the run's beginning."""

    def now(self) -> float:
        """The moment."""

    def wait(self, until: float) -> None:
        """Let time pass until a moment, or less of it."""


class VirtualClock:
    """Time that passes only when it is waited for, and then at once."""

    def __init__(self, begin: float = 0.0) -> None:
        self._now = begin

    def now(self) -> float:
        """The moment."""
        return self._now

    def wait(self, until: float) -> None:
        """Be there; raises SimulationError where nothing will ever happen."""
        if until == float("inf"):
            raise SimulationError("jobs wait, and nothing can happen any more: the policy starts none of them")
        self._now = max(self._now, until)


class RealClock:
    """Time as it passes, `speedup` seconds of the workload in each."""

    def __init__(self, bell: Bell, speedup: float = 1.0, begin: float = 0.0) -> None:
        self.bell, self.speedup = bell, speedup
        self._origin = time.monotonic() - begin / speedup

    def now(self) -> float:
        """The moment."""
        return (time.monotonic() - self._origin) * self.speedup

    def wait(self, until: float) -> None:
        """Sleep until then, or until a signal comes."""
        self.bell.wait((until - self.now()) / self.speedup)
