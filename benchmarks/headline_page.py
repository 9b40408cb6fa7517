"""The headline table as a page, docs/results/README.md, with its picture."""

import re
from pathlib import Path
from typing import Any

from berth.commandline import written_whole

ROOT = Path(__file__).resolve().parent.parent
PAGE, PICTURE = ROOT / "docs/results/README.md", ROOT / "docs/images/headline.png"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
WORDS = {"bounded_slowdown": "bounded slowdown", "wait": "wait, s"}
DATA = {"sample": "shipped sample", "real": "real trace"}


def write_page(rows: list[dict[str, Any]]) -> None:
    """Put tables and picture of all rows where they belong; what stands around the tables stays."""
    ordered = sorted(rows, key=lambda row: (row["info"] != "hidden", row["data"] != "sample"))
    hidden = [row for row in ordered if row["info"] == "hidden"]
    oracle = [row for row in ordered if row["info"] == "oracle"]
    parts = [
        "## Run times unknown",
        _table(hidden),
        "",
        "How much of what is not known was learned:",
        "",
        _gaps(hidden),
    ]
    parts += ["", "## Run times known", _table(oracle), "", "## Against the seeds' baselines", _baselines(ordered)]
    parts += ["", "## Commands", _commands(ordered)]
    page = PAGE.read_text() if PAGE.is_file() else f"# Results\n\n{BEGIN}\n{END}\n"
    inside = "\n".join(parts)
    page = re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{inside}\n{END}", page, flags=re.DOTALL)
    with written_whole(PAGE) as begun:
        begun.write_text(page)
    if rows:
        _draw(ordered)


def number(value: float) -> str:
    """A score, with as many digits as it deserves."""
    return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def percent(told: dict[str, Any]) -> str:
    """A change with its interval."""
    return f"{100 * told['change']:+.1f} % [{100 * told['low']:+.1f}, {100 * told['high']:+.1f}]"


def _where(row: dict[str, Any]) -> str:
    """The first two cells of a row: data and score."""
    return f"{row['cluster']}, {DATA[row['data']]} | {WORDS[row['score']]}"


def head(*columns: str) -> list[str]:
    """The first two lines of a table."""
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]


def _table(rows: list[dict[str, Any]]) -> str:
    """The policies against the strongest heuristic."""
    lines = head(
        "data",
        "score",
        "learned",
        "strongest heuristic",
        "its score",
        "change [95 %]",
        "each seed",
        "best heuristic in hindsight",
        "change [95 %]",
        "windows (apart)",
    )
    for row in rows:
        rival = row["rival"]
        seeds = ", ".join(f"{100 * x:+.1f}" for x in rival["seeds"])
        later = row["hindsight"]
        cells = [number(row["mean"]), rival["name"], number(rival["mean"]), marked(rival), seeds]
        cells += [later["name"], marked(later)]
        lines.append(f"| {_where(row)} | {' | '.join(cells)} | {row['windows']} ({row['groups']}) |")
    return "\n".join(lines)


def marked(told: dict[str, Any]) -> str:
    """A change with its interval, bold where that lies below 0."""
    return f"**{percent(told)}**" if told["high"] < 0 else percent(told)


def _gaps(rows: list[dict[str, Any]]) -> str:
    """Which share of the gap between predictions and knowledge is closed."""
    lines = head("data", "score", "sjf on predictions, fit", "learned", "sjf that knows, fit", "gap closed",
                  "saf that knows, easy")  # fmt: skip
    for row in rows:
        predicted, knows = row["predicted_sjf"]["mean"], row["clairvoyant"]["mean"]
        closed = f"{100 * (predicted - row['mean']) / (predicted - knows):.0f} %" if predicted > knows else "no gap"
        cells = (number(predicted), number(row["mean"]), number(knows), closed)
        lines.append(f"| {_where(row)} | {' | '.join(cells)} | {number(row['clairvoyant_easy']['mean'])} |")
    return "\n".join(lines)


def _baselines(rows: list[dict[str, Any]]) -> str:
    """The policies against what the seeds compare with."""
    names = ("fcfs strict", "fcfs reserve", "sjf strict", "sjf reserve")
    lines = head("data", "run times", "score", *names)
    for row in rows:
        cells = " | ".join(marked(told) for told in row["seeds_baselines"])
        lines.append(f"| {row['cluster']}, {DATA[row['data']]} | {row['info']} | {WORDS[row['score']]} | {cells} |")
    return "\n".join(lines)


def _commands(rows: list[dict[str, Any]]) -> str:
    """How each row came about."""
    lines: list[str] = []
    for row in rows:
        lines += [f"- {row['name']}", "", f"      {row['training']}", f"      {row['command']}", ""]
    return "\n".join(lines)


def _draw(rows: list[dict[str, Any]]) -> None:
    """Changes against the strongest heuristic, with intervals."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    height = 1.2 + 0.3 * len(rows)
    figure, axis = pyplot.subplots(figsize=(9, height), layout="constrained")
    for y, row in enumerate(rows):
        rival = row["rival"]
        low, middle, high = (100 * rival[key] for key in ("low", "change", "high"))
        color = "#2a7f62" if high < 0 else "#c8553d" if low > 0 else "#7d8790"
        axis.plot([low, high], [y, y], color=color, lw=3, solid_capstyle="round")
        axis.plot(middle, y, "o", color=color)
        axis.plot(100 * row["hindsight"]["change"], y, "D", color=color, mfc="none", ms=6)
        axis.plot([100 * x for x in rival["seeds"]], [y] * len(rival["seeds"]), "|", color="#1d2a33", ms=6)
    axis.axvline(0, color="#1d2a33", lw=1)
    names = [
        f"{r['cluster']} {'(real)' if r['data'] == 'real' else ''} {WORDS[r['score']].split(',')[0]}, {r['info']}"
        for r in rows
    ]
    axis.set_yticks(range(len(rows)), names)
    axis.invert_yaxis()
    axis.set(xlabel="change against the strongest heuristic, % (left: learned is better)")
    title = "Learned policies on test windows\nmarks: single seeds; diamonds: against the best in hindsight"
    axis.set_title(title, loc="left", fontsize=10)
    axis.grid(axis="x", alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=110)
    pyplot.close(figure)
