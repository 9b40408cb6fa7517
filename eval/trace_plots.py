"""Pictures of traces: one described, or two compared."""

from pathlib import Path
from typing import Any

import numpy as np

from eval.plots import DAY, WAIT_TICKS
from traces.compare import Likeness
from traces.describe import CLASSES, classes, hours_of_day
from traces.trace import Trace


def draw_trace(trace: Trace, path: Path) -> None:
    """Draw arrivals, hours of the day, run times by size and sizes into a PNG."""
    figure, (arrivals, hours, run_times, sizes) = _canvas()
    edges, jobs = per_day(trace)
    arrivals.stairs(jobs, edges, fill=True)
    arrivals.set(xlabel="day", ylabel="jobs a day", title="Arrivals")
    hours.bar(np.arange(24), 100 * hours_of_day(trace))
    hours.set(
        xlabel=f"hour of day{'' if trace.origin else ' (from second 0)'}", ylabel="% of jobs", title="Hour of day"
    )
    for name, mask in classes(trace).items():
        _cdf(run_times, trace.run_time[mask], label=f"{name} GPUs, {mask.mean():.1%} of jobs")
    _seconds(run_times, trace.run_time.max(), "Run time by GPUs")
    names = list(classes(trace))
    work = trace.run_time * trace.gpus
    for shift, (label, weight) in zip(
        (-0.2, 0.2), {"jobs": np.ones(len(trace)), "GPU time": work}.items(), strict=True
    ):
        share = [100 * weight[mask].sum() / weight.sum() for mask in classes(trace).values()]
        sizes.bar_label(sizes.bar(np.arange(len(names)) + shift, share, 0.4, label=label), fmt="%.1f", fontsize=8)
    sizes.set_xticks(range(len(names)), names)
    sizes.set(xlabel="GPUs", ylabel="%", title="Sizes")
    sizes.legend(fontsize=8)
    figure.suptitle(f"{Path(trace.name).name}: {len(trace):,} jobs")
    figure.savefig(path, dpi=100)


def draw_comparison(a: Trace, b: Trace, rows: list[Likeness], path: Path) -> None:
    """Draw run times, sizes, gaps, days, hours and what history tells, of two traces, into a PNG."""
    figure, (run_times, gaps, sizes, hours, history, days) = _canvas(columns=3)
    for label, trace, side in ((Path(a.name).name, a, -0.2), (Path(b.name).name, b, 0.2)):
        share = {name: 100 * mask.mean() for name, mask in classes(trace).items()}
        heights = [share.get(name, 0.0) for name in CLASSES]
        boxes = sizes.bar(np.arange(len(CLASSES)) + side, heights, 0.4, label=label)
        sizes.bar_label(boxes, fmt="%.1f", fontsize=8)
        edges, jobs = per_day(trace)
        days.stairs(jobs, edges, label=label)
    sizes.set_xticks(range(len(CLASSES)), list(CLASSES))
    sizes.set(xlabel="GPUs", ylabel="% of jobs", title="Sizes")
    days.set(xlabel="day", ylabel="jobs a day", title="Arrivals")
    for axis in (sizes, days):
        axis.legend(fontsize=8)
    for label, trace, style in ((Path(a.name).name, a, "-"), (Path(b.name).name, b, "--")):
        _cdf(run_times, trace.run_time, label=f"{label}, all", color="black", linestyle=style)
        for i, (name, mask) in enumerate(classes(trace).items()):
            _cdf(run_times, trace.run_time[mask], color=f"C{i}", linestyle=style, linewidth=0.9)
            if style == "-":
                run_times.plot([], [], color=f"C{i}", label=f"{name} GPUs")
        _cdf(gaps, np.diff(trace.submit), label=label, linestyle=style)
        hours.stairs(100 * hours_of_day(trace), np.arange(25), baseline=None, linestyle=style, label=label)
    _seconds(run_times, max(a.run_time.max(), b.run_time.max()), "Run time, by GPUs too")
    _seconds(gaps, max(float(np.diff(trace.submit).max(initial=0)) for trace in (a, b)), "Inter-arrival time")
    hours.set(xlabel="hour of day", ylabel="% of jobs", title="Hour of day", ylim=(0, None))
    hours.legend(fontsize=8)
    shown = [row for row in rows if row.what.startswith("rank correlation")]
    place = np.arange(len(shown))
    for shift, label, values in ((-0.2, a.name, [row.a for row in shown]), (0.2, b.name, [row.b for row in shown])):
        bars = [0.0 if value is None else value for value in values]
        boxes = history.barh(place + shift, bars, 0.4, label=Path(label).name)
        history.bar_label(boxes, ["-" if value is None else f"{value:.2f}" for value in values], fontsize=8)
    history.set_yticks(place, [row.what.removeprefix("rank correlation ") for row in shown], fontsize=8)
    history.invert_yaxis()
    history.set(title="Rank correlations", xlabel="Spearman's rank correlation")
    history.legend(fontsize=8)
    figure.suptitle(f"{Path(a.name).name} ({len(a):,} jobs) and {Path(b.name).name} ({len(b):,} jobs)")
    figure.savefig(path, dpi=100)


def per_day(trace: Trace, most: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Edges, in days, of equal periods of a day or more, and the jobs a day in each; at most so many periods."""
    days = (trace.submit - trace.submit[0]) / DAY
    periods = int(min(most, max(1, np.ceil(days[-1]))))
    jobs, edges = np.histogram(days, periods, (0, max(1.0, float(days[-1]))))
    return edges, jobs / np.diff(edges)


def _canvas(columns: int = 2) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5 * columns, 8), layout="constrained")
    axes = figure.subplots(2, columns).ravel()
    for axis in axes:
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _cdf(axis: Any, values: np.ndarray, **style: Any) -> None:
    """The share of values up to each one, drawn through a thousand quantiles."""
    if not len(values):
        return
    share = np.linspace(0, 1, 1000)
    axis.plot(np.maximum(np.quantile(values, share), 0.5), share, **style)


def _seconds(axis: Any, longest: float, title: str) -> None:
    ticks = {text: seconds for text, seconds in WAIT_TICKS.items() if seconds <= max(longest, 60)}
    axis.set(xscale="log", ylabel="share", title=title)
    axis.set_xticks(list(ticks.values()), list(ticks), fontsize=8)
    axis.minorticks_off()
    axis.legend(fontsize=8, loc="lower right")
