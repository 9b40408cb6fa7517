"""The pictures of an evaluation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eval.plots import DAY, WAIT_TICKS
from eval.timeline import Bars

PALETTE = ("#0b6e4f", "#c8553d", "#2b59c3", "#8f5ea2", "#d99a00", "#3aa5a0", "#7a7a7a", "#b0413e", "#4f772d", "#5c677d",
           "#e07a5f", "#1b4965")  # fmt: skip
STYLES = ("-", "--", ":", "-.")


class Drawn(NamedTuple):
    """What is drawn of one contender."""

    name: str
    scores: np.ndarray  # (windows,)
    wait: np.ndarray  # (scored jobs,)
    slowdown: np.ndarray  # (scored jobs,) bounded
    hours: np.ndarray  # (points,)
    used: np.ndarray  # (points,) GPUs
    waiting: np.ndarray  # (points,) jobs
    bars: Bars


class Context(NamedTuple):
    """What the pictures say about themselves."""

    score: str
    unit: str
    less_is_better: bool
    bound: np.ndarray | None  # (windows,)
    title: str
    over: str  # what the curves over time are of
    window: int  # which window the Gantt chart is of
    gpus: np.ndarray  # (jobs of that window,)
    scored: np.ndarray  # (jobs of that window,) which are scored
    nodes: np.ndarray  # (nodes,) GPUs of each


def draw_all(drawn: Sequence[Drawn], context: Context, folder: Path) -> list[Path]:
    """Draw test.png, cdf.png, over_time.png and gantt.png."""
    from matplotlib import rcParams

    rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "font.size": 9, "axes.grid": True,
                     "grid.alpha": 0.25, "figure.dpi": 100})  # fmt: skip
    files = []
    for name, draw in (("test", _boxes), ("cdf", _cdfs), ("over_time", _over_time), ("gantt", _gantt)):
        figure = draw(drawn, context)
        files.append(folder / f"{name}.png")
        figure.savefig(files[-1])
    return files


def _figure(width: float, height: float, rows: int = 1, columns: int = 1, **more: Any) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **more)


def _color(i: int) -> str:
    return PALETTE[i % len(PALETTE)]


def _boxes(drawn: Sequence[Drawn], context: Context) -> Any:
    """RL against baselines: a box for every contender, a point for every window."""
    figure, axis = _figure(10, 1.6 + 0.42 * len(drawn))
    names = [one.name for one in drawn]
    values = [one.scores for one in drawn]
    boxes = axis.boxplot(
        values, orientation="horizontal", tick_labels=names, widths=0.55, patch_artist=True, showfliers=False,
        medianprops={"color": "black"},
    )  # fmt: skip
    rng = np.random.default_rng(0)
    for i, (box, scores) in enumerate(zip(boxes["boxes"], values, strict=True)):
        box.set(facecolor=_color(i), alpha=0.35, edgecolor=_color(i))
        axis.plot(scores, i + 1 + rng.uniform(-0.16, 0.16, len(scores)), "o", ms=3.5, alpha=0.7, color=_color(i))
        axis.plot(scores.mean(), i + 1, "D", ms=5, color="black", mfc="white")
    if context.bound is not None:
        axis.axvline(context.bound.mean(), color="black", ls="--", lw=1)
        place = {"transform": axis.get_xaxis_transform(), "fontsize": 8, "rotation": 90, "ha": "right", "va": "bottom"}
        axis.text(context.bound.mean(), 0.02, "bound of the mean ", **place)
    lowest, highest = min(v.min() for v in values), max(v.max() for v in values)
    if lowest > 0 and highest / lowest > 20:
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    unit = f", {context.unit}" if context.unit else ""
    better = "less" if context.less_is_better else "more"
    score = context.score.replace("_", " ")
    axis.set(xlabel=f"mean {score} of a window{unit} ({better} is better)", title=context.title)
    axis.invert_yaxis()
    return figure


def _cdfs(drawn: Sequence[Drawn], context: Context) -> Any:
    """Shares of jobs by wait and by bounded slowdown."""
    figure, (waits, slow) = _figure(12, 5, 1, 2)
    for i, one in enumerate(drawn):
        style = {"color": _color(i), "ls": STYLES[i // 4 % len(STYLES)], "label": one.name, "lw": 1.5}
        for axis, values, least in ((waits, one.wait, 1.0), (slow, one.slowdown, 1.0)):
            ordered = np.sort(np.maximum(values, least))
            axis.plot(ordered, np.arange(1, len(ordered) + 1) / len(ordered), **style)
    longest = max(60.0, *(float(one.wait.max()) for one in drawn))
    ticks = {text: seconds for text, seconds in WAIT_TICKS.items() if seconds <= longest}
    waits.set(xscale="log", xlim=(1, longest), xlabel="wait (1 s stands for less, too)", ylabel="share of scored jobs",
              title="Waiting time")  # fmt: skip
    waits.set_xticks(list(ticks.values()), list(ticks), fontsize=8)
    slow.set(xscale="log", xlabel="bounded slowdown", title="Bounded slowdown")
    slow.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    slow.legend(fontsize=8, loc="lower right")
    figure.suptitle(context.title)
    return figure


def _over_time(drawn: Sequence[Drawn], context: Context) -> Any:
    """GPUs in use and the queue."""
    figure, (used, queue) = _figure(12, 6.5, 2, 1, sharex=True)
    days = max(float(one.hours[-1]) for one in drawn) * 3600 > 4 * DAY
    for i, one in enumerate(drawn):
        style = {"color": _color(i), "ls": STYLES[i // 4 % len(STYLES)], "lw": 1.2, "label": one.name}
        when = one.hours / 24 if days else one.hours
        used.plot(when, one.used, **style)
        queue.plot(when, one.waiting, **style)
    total = int(context.nodes.sum())
    used.set(ylabel=f"GPUs in use of {total:,}", ylim=(0, total * 1.03), title=context.over)
    queue.set(ylabel="jobs waiting", xlabel="days" if days else "hours", yscale="symlog", ylim=(0, None))
    queue.legend(fontsize=8, ncols=4, loc="upper right")
    return figure


def _gantt(drawn: Sequence[Drawn], context: Context) -> Any:
    """A window on its GPUs, contender above contender."""
    from matplotlib.collections import PolyCollection

    some = list(drawn)[:6]
    figure, axes = _figure(13, 0.8 + 2.1 * len(some), len(some), 1, sharex=True, squeeze=False)
    until = max(one.bars.until for one in some) * 1.02 + 1
    gpus = context.gpus
    for axis, one in zip(axes[:, 0], some, strict=True):
        b = one.bars
        left, right = np.clip(b.start[b.job], 0, until) / 3600, np.clip(b.end[b.job], 0, until) / 3600
        low, high = b.lane, b.lane + b.lanes
        corners = ((left, low), (right, low), (right, high), (left, high))
        boxes = np.stack([np.stack(corner, -1) for corner in corners], 1)
        shade = np.log2(gpus[b.job]) / max(1.0, float(np.log2(gpus.max())))
        colors = _shades(shade)
        colors[~context.scored[b.job]] = (0.82, 0.82, 0.82, 1.0)
        axis.add_collection(PolyCollection(list(boxes), facecolors=colors, edgecolors="white", linewidths=0.2))
        axis.axvline(b.until / 3600, color="black", lw=0.8, ls=":")
        axis.set(xlim=(0, until / 3600), ylim=(0, int(context.nodes.sum())), ylabel="GPU", title=one.name)
        axis.grid(False)
    axes[-1, 0].set_xlabel(
        f"hours since the beginning of window {context.window + 1}; grey: jobs from before it; darker: more GPUs; "
        "dotted: the last start"
    )
    return figure


def _shades(share: np.ndarray) -> np.ndarray:
    """Colours from light to dark (bars, 4)."""
    from matplotlib import colormaps

    colors: np.ndarray = colormaps["viridis_r"](0.1 + 0.85 * share)
    return colors
