"""A backend on which jobs only take their time."""

from orchestrator.clocks import Clock
from orchestrator.running import Ended, Job


class Simulated:
    """Jobs that end when their run time is over, by a clock that is virtual or real."""

    name = "simulated"

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._running: dict[int, tuple[float, float]] = {}  # number -> start, end

    def now(self) -> float:
        """The moment."""
        return self.clock.now()

    def start(self, job: Job) -> float:
        """Let a job begin."""
        now = self.clock.now()
        self._running[job.number] = (now, now + job.run_time)
        return now

    def ended(self) -> list[Ended]:
        """The jobs whose time is over; they end now, as far as anybody has seen."""
        now = self.clock.now()
        over = sorted((end, number) for number, (_, end) in self._running.items() if end <= now)
        return [Ended(number, self._running.pop(number)[0], now, exit_code=0) for _, number in over]

    def wait(self, until: float) -> None:
        """Let time pass until the next job ends, or until then."""
        self.clock.wait(min([until, *(end for _, end in self._running.values())]))

    def stop(self) -> None:
        """Forget what runs."""
        self._running.clear()
