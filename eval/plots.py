"""Pictures of schedules."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from envs.metrics import bounded_slowdown
from envs.sim.simulator import Schedule

DAY = 86400.0
STYLES = ("-", "--", ":", "-.", (0, (5, 1)), (0, (1, 1)))


def plot_replay(schedules: Sequence[Schedule], path: Path, title: str) -> None:
    """Draw slowdown, waiting times, GPUs in use and queue of several schedules of one workload into a PNG."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    policies = list(dict.fromkeys(s.policy for s in schedules))
    disciplines = list(dict.fromkeys(s.discipline for s in schedules))
    palette = colormaps["tab10" if len(policies) <= 10 else "tab20"]
    figure = Figure(figsize=(13, 8.5))
    (bars, waits), (used, queue) = figure.subplots(2, 2)
    figure.subplots_adjust(left=0.06, right=0.985, bottom=0.06, top=0.91, hspace=0.28, wspace=0.16)
    labels, heights, colors, hatches = [], [], [], []
    for schedule in schedules:
        color = palette(policies.index(schedule.policy) % palette.N)
        style = STYLES[disciplines.index(schedule.discipline) % len(STYLES)]
        trace = schedule.workload.trace
        wait = schedule.start - trace.submit
        labels.append(f"{schedule.policy} {schedule.discipline}")
        heights.append(float(bounded_slowdown(wait, trace.run_time).mean()))
        colors.append(color)
        hatches.append("" if schedule.discipline == disciplines[0] else "//")
        shares = np.linspace(0, 1, min(len(wait), 2000))
        waits.plot(np.maximum(np.quantile(wait, shares), 1), shares, linestyle=style, color=color, label=labels[-1])
        days, busy, length = over_time(schedule)
        used.plot(days, busy, linestyle=style, color=color, lw=1)
        queue.plot(days, length, linestyle=style, color=color, lw=1)
    drawn = bars.bar(range(len(labels)), heights, color=colors, edgecolor="white")
    for bar, hatch in zip(drawn, hatches, strict=True):
        bar.set_hatch(hatch)
    bars.bar_label(drawn, [f"{h:,.4g}" for h in heights], fontsize=8)
    bars.set_xticks(range(len(labels)), [label.replace(" ", "\n") for label in labels], fontsize=8)
    bars.set(yscale="log", ylabel="mean bounded slowdown", title="Bounded slowdown (less is better)")
    bars.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    waits.set(xscale="log", xlabel="wait (1 s stands for less, too)", ylabel="share of jobs", title="Waiting time")
    waits.set_xticks([1, 10, 60, 600, 3600, 6 * 3600, DAY, 7 * DAY, 30 * DAY, 365 * DAY])
    waits.set_xticklabels(["1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "1 d", "1 week", "30 d", "1 year"], fontsize=8)
    for axis in (bars.yaxis, waits.xaxis):
        axis.set_minor_formatter(lambda value, _: "")  # Matplotlib would set these as formulas, which takes half a second
    waits.set_xlim(1, max(60.0, *(float((s.start - s.workload.trace.submit).max()) for s in schedules)))
    waits.legend(fontsize=8, loc="lower right")
    gpus = int(schedules[0].workload.nodes.capacity.sum())
    used.set(xlabel="days", ylabel=f"GPUs in use of {gpus:,}", title="GPUs in use", ylim=(0, gpus * 1.03))
    queue.set(xlabel="days", ylabel="jobs waiting", title="Queue", ylim=(0, None))
    for axis in (bars, waits, used, queue):
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
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
