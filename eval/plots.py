"""Pictures of schedules."""

import signal
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from envs.metrics import bounded_slowdown
from envs.sim.simulator import Schedule

DAY = 86400.0
WAIT_TICKS = {
    "1 s": 1, "10 s": 10, "1 min": 60, "10 min": 600, "1 h": 3600, "6 h": 21600, "1 d": DAY, "1 week": 7 * DAY,
    "30 d": 30 * DAY, "1 year": 365 * DAY,
}  # fmt: skip
STYLES = ("-", "--", ":", "-.", (0, (5, 1)), (0, (1, 1)))


class Curves(NamedTuple):
    """What is drawn of one schedule."""

    policy: str
    discipline: str
    slowdown: float  # mean bounded slowdown
    wait: np.ndarray  # (points,) s, quantiles
    days: np.ndarray  # (intervals,)
    busy: np.ndarray  # (intervals,) GPUs in use
    waiting: np.ndarray  # (intervals,) jobs


def curves(schedule: Schedule, points: int = 1000) -> Curves:
    """Reduce a schedule to what is drawn of it."""
    trace = schedule.workload.trace
    wait = schedule.start - trace.submit
    slowdown = float(bounded_slowdown(wait, trace.run_time).mean())
    return Curves(
        schedule.policy,
        schedule.discipline,
        slowdown,
        np.quantile(wait, np.linspace(0, 1, points)),
        *over_time(schedule),
    )


class Painter:
    """Draws in a process of its own, which loads Matplotlib while the simulations still run."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(1, initializer=leave_interrupts_to_the_parent)
        self._pool.submit(load_matplotlib)

    def replay(self, schedules: Sequence[Schedule], path: Path, title: str) -> None:
        """Draw several schedules of one workload into a PNG; returns when it is written."""
        gpus = int(schedules[0].workload.nodes.capacity.sum())
        path.parent.mkdir(parents=True, exist_ok=True)
        self._pool.submit(draw_replay, [curves(schedule) for schedule in schedules], gpus, path, title).result()
        self._pool.shutdown()


def leave_interrupts_to_the_parent() -> None:
    """Ignore Ctrl-C in a process that only draws."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def load_matplotlib() -> None:
    """Import what drawing needs."""
    import matplotlib.backends.backend_agg
    import matplotlib.figure  # noqa: F401


def draw_replay(drawn: Sequence[Curves], gpus: int, path: Path, title: str) -> None:
    """Draw slowdown, waiting times, GPUs in use and queue into a PNG."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator

    policies = list(dict.fromkeys(one.policy for one in drawn))
    disciplines = list(dict.fromkeys(one.discipline for one in drawn))
    palette = colormaps["tab10" if len(policies) <= 10 else "tab20"]
    colors = [palette(policies.index(one.policy) % palette.N) for one in drawn]
    styles = [STYLES[disciplines.index(one.discipline) % len(STYLES)] for one in drawn]
    figure = Figure(figsize=(13, 8.5))
    (bars, waits), (used, queue) = figure.subplots(2, 2)
    figure.subplots_adjust(left=0.06, right=0.985, bottom=0.06, top=0.91, hspace=0.28, wspace=0.16)
    for one, color, style in zip(drawn, colors, styles, strict=True):
        shares = np.linspace(0, 1, len(one.wait))
        label = f"{one.policy} {one.discipline}"
        waits.plot(np.maximum(one.wait, 1), shares, linestyle=style, color=color, label=label)
        used.plot(one.days, one.busy, linestyle=style, color=color, lw=1)
        queue.plot(one.days, one.waiting, linestyle=style, color=color, lw=1)
    boxes = bars.bar(range(len(drawn)), [one.slowdown for one in drawn], color=colors, edgecolor="white")
    for box, one in zip(boxes, drawn, strict=True):
        box.set_hatch("" if one.discipline == disciplines[0] else "//")
    few = len(drawn) <= 12
    if few:
        bars.bar_label(boxes, [f"{one.slowdown:,.4g}" for one in drawn], fontsize=8)
        waits.legend(fontsize=8, loc="lower right")
    names = [f"{one.policy}\n{one.discipline}" if few else f"{one.policy} {one.discipline}" for one in drawn]
    bars.set_xticks(range(len(drawn)), names, fontsize=8 if few else 5, rotation=0 if few else 90)
    bars.set(yscale="log", ylabel="mean bounded slowdown", title="Bounded slowdown (less is better)")
    bars.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    waits.set(xscale="log", xlabel="wait (1 s stands for less, too)", ylabel="share of jobs", title="Waiting time")
    longest = max(60.0, *(float(one.wait[-1]) for one in drawn))
    ticks = {text: seconds for text, seconds in WAIT_TICKS.items() if seconds <= longest}
    waits.set_xticks(list(ticks.values()), list(ticks), fontsize=8)
    waits.set_xlim(1, longest)
    for axis in (bars.yaxis, waits.xaxis):
        axis.set_minor_locator(NullLocator())  # half a second of drawing otherwise
    used.set(xlabel="days", ylabel=f"GPUs in use of {gpus:,}", title="GPUs in use", ylim=(0, gpus * 1.03))
    queue.set(xlabel="days", ylabel="jobs waiting", title="Queue", ylim=(0, None))
    for axis in (bars, waits, used, queue):
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title)
    figure.savefig(path, dpi=100)


def over_time(schedule: Schedule, points: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """GPUs in use (mean of each interval) and jobs waiting (at its end), over the days of a schedule."""
    trace = schedule.workload.trace
    edges = np.linspace(0, float(schedule.end.max()), points + 1)
    work = _integral(edges, schedule.start, trace.gpus) - _integral(edges, schedule.end, trace.gpus)
    arrived = np.searchsorted(trace.submit, edges, side="right")
    started = np.searchsorted(np.sort(schedule.start), edges, side="right")
    return edges[1:] / DAY, np.diff(work) / np.diff(edges), (arrived - started)[1:]


def _integral(edges: np.ndarray, since: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The integral up to each edge of the sum of weights that have begun by then."""
    order = np.argsort(since)
    count = np.searchsorted(since[order], edges, side="right")
    total = np.concatenate(([0.0], np.cumsum(weight[order])))[count]
    moment = np.concatenate(([0.0], np.cumsum(weight[order] * since[order])))[count]
    return edges * total - moment
