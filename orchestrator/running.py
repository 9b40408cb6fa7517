"""What the loop asks of whoever runs jobs."""

from typing import NamedTuple, Protocol


class Job(NamedTuple):
    """A job to run."""

    number: int  # in the workload
    name: str
    cores: int
    run_time: float  # s of the workload


class Ended(NamedTuple):
    """A job that has ended, and what it has used."""

    number: int
    start: float  # s of the workload from the run's beginning
    end: float
    success: bool = True
    reason: str = ""  # why it did not succeed
    exit_code: int | None = None  # of its process; below 0: the signal that ended it
    user_s: float | None = None
    system_s: float | None = None
    max_rss_kb: int | None = None
    bogo_ops: float | None = None


class Backend(Protocol):
    """Runs jobs. Times are seconds of the workload from the run's beginning, which need not pass as fast as the clock.

    tests/test_backends.py states what every backend must do.
    """

    @property
    def name(self) -> str:
        """As the registry has it."""

    def now(self) -> float:
        """The moment."""

    def start(self, job: Job) -> float:
        """Let a job begin at once; returns when it did. Raises SchedulerError where it cannot be started."""

    def ended(self) -> list[Ended]:
        """The jobs that have ended since this was asked last, each once, in the order of their ends."""

    def wait(self, until: float) -> None:
        """Return when a job may have ended, when the moment `until` has come, or earlier for no reason."""

    def stop(self) -> None:
        """End all that runs; nothing of it is left when this returns. What has not ended is not told by `ended`."""
