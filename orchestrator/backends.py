"""Every backend by name, and which of them is meant."""

import os
import time
from collections.abc import Callable
from typing import NamedTuple

from berth.commandline import nearest
from berth.errors import ConfigError
from orchestrator.bell import Bell
from orchestrator.clocks import RealClock, VirtualClock
from orchestrator.running import Backend
from orchestrator.simulated import Simulated
from orchestrator.stress_ng import PROGRAM, StressNg, find_program


class Setting(NamedTuple):
    """What a backend needs to begin."""

    bell: Bell
    speedup: float = 1.0
    realtime: bool = False
    patience: float = 10.0  # s after its time from which on a job counts as hung
    began: float | None = None  # s since 1970, of a run that is gone on with
    last: float = 0.0  # s of the workload, the last moment that such a run tells of

    def real_clock(self) -> RealClock:
        """A clock on which the time counts in which nobody was at the run."""
        passed = 0.0 if self.began is None else max(self.last, (time.time() - self.began) * self.speedup)
        return RealClock(self.bell, self.speedup, passed)


def _simulated(setting: Setting) -> Backend:
    return Simulated(setting.real_clock() if setting.realtime else VirtualClock(setting.last))


def _stress_ng(setting: Setting) -> Backend:
    return StressNg(setting.real_clock(), setting.patience)


BACKENDS: dict[str, Callable[[Setting], Backend]] = {"simulated": _simulated, "stress_ng": _stress_ng}
"""Add one here, and `--backend` and the contract suite know it."""


def find_backend(word: str, simulate: bool) -> tuple[str, str]:
    """The backend that is meant, and what the user should be told of the choice; raises ConfigError."""
    if word and word not in BACKENDS:
        raise ConfigError(f"--backend {word}: {nearest(word, BACKENDS)}")
    if simulate:
        if word not in ("", "simulated"):
            raise ConfigError(f"--simulate and --backend {word} disagree; give one of them")
        return "simulated", ""
    if word:
        return word, ""
    if find_program():
        return "stress_ng", ""
    return "simulated", f"{PROGRAM} is not installed: jobs are simulated, as with --simulate"


def host_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
