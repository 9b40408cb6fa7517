"""What a training run shows on the screen."""

from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from berth.console import console
from train.config import Learning


class Screen:
    """A bar for all epochs and one for the work at hand, and a line for every epoch."""

    def __init__(self, config: Learning, done: int) -> None:
        self._epochs = config.epochs
        self._bars = Progress(
            TextColumn("{task.description}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn(),
            TimeRemainingColumn(), console=console(), transient=True,
        )  # fmt: skip
        self._all = self._bars.add_task("epochs", total=config.epochs, completed=done)
        self._now = self._bars.add_task("", total=1, visible=False)

    def __enter__(self) -> "Screen":
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def collecting(self, epoch: int, episodes: int) -> None:
        """Episodes are being played; the epoch counts from 0, -1 is before the first."""
        what = f"epoch {epoch + 1}: playing" if epoch >= 0 else "watching the policy to imitate"
        self._bars.reset(self._now, description=what, total=episodes, visible=True)

    def updating(self) -> None:
        """The policy learns."""
        self._bars.update(self._now, description="learning")

    def judging(self, windows: int, who: str = "agent") -> None:
        """Windows that are not trained on are being played."""
        self._bars.reset(self._now, description=f"judging {who}", total=windows, visible=True)

    def tick(self, done: int) -> None:
        """So many episodes have ended."""
        self._bars.update(self._now, completed=done)

    def epoch(self, row: dict[str, float]) -> None:
        """An epoch is over."""
        if row["Episodes"]:
            ended = (
                f"reward {row['AverageEpRet']:+.4f}, agent {row['AgentScore']:,.2f}, "
                f"baseline {row['BaselineScore']:,.2f}"
            )
        else:
            ended = "no episode ended"
        looked = f", validation {row['ValGain']:+.4f}" if row["ValGain"] == row["ValGain"] else ""
        self._bars.update(self._all, completed=row["Epoch"], description=f"epochs ({ended})")
        self._bars.console.print(
            f"epoch {row['Epoch']:.0f}/{self._epochs}: {ended}{looked}; {row['CollectTime']:.1f} s playing, "
            f"{row['UpdateTime']:.1f} s learning",
            highlight=False,
        )
