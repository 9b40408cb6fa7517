"""docs/scale.md from what benchmarks/scale.py has measured."""

import math
from pathlib import Path
from typing import Any

from berth.commandline import written_whole

PAGE = Path(__file__).resolve().parent.parent / "docs/scale.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
MEMORY = 24.0
"""GB of the machine."""

EPOCH = 100_000
"""Decisions of the epoch that workers share in the table."""


def predicted(model: dict[str, list[float]], discipline: str, jobs: float, gpus: float, queue: float) -> float:
    """Microseconds a job by the fitted model."""
    return math.exp(sum(x * y for x, y in zip(model[discipline], terms(jobs, gpus, queue), strict=True)))


def terms(jobs: float, gpus: float, queue: float) -> list[float]:
    """1, ln jobs, ln GPUs, w · ln GPUs, ln (1 + queue), where w = queue / (1 + queue) says how often somebody waits.

    Backfilling looks at the jobs that run, which grow with the GPUs, when somebody waits.
    """
    wide = math.log(gpus)
    return [1.0, math.log(jobs), wide, wide * queue / (1.0 + queue), math.log1p(queue)]


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """A table in Markdown, numbers to the right."""
    return ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1),
            *("| " + " | ".join(row) + " |" for row in rows), ""]  # fmt: skip


def replay_rows(known: dict[str, Any], which: str) -> list[list[str]]:
    """Measured points, each with what the model says."""
    rows = []
    for row in known[which]:
        a = row["asked"]
        head = [a["discipline"], f"{a['jobs']:,}", f"{a['gpus']:,}", f"{a['load']:g}"]
        if "run_s" not in row:
            rows.append([*head, "", row.get("failed", f"more than {row.get('late')} s"), "", "", ""])
            continue
        cost = 1e6 * (row["setup_s"] + row["run_s"]) / row["jobs"]
        says = predicted(known["model"], a["discipline"], row["jobs"], a["gpus"], row["queue"])
        seconds = row["setup_s"] + row["run_s"]
        numbers = (f"{row['queue']:,.1f}", f"{seconds:.2f}", f"{cost:,.2f}", f"{says:,.2f}", f"{row['peak_gb']:.2f}")
        rows.append([*head, *numbers])
    return rows


def errors(known: dict[str, Any], which: str) -> list[float]:
    """How many times too high or too low the model is at measured points, as factors >= 1."""
    found = []
    for row in known[which]:
        if "run_s" in row:
            a = row["asked"]
            cost = 1e6 * (row["setup_s"] + row["run_s"]) / row["jobs"]
            ratio = predicted(known["model"], a["discipline"], row["jobs"], a["gpus"], row["queue"]) / cost
            found.append(max(ratio, 1 / ratio))
    return found


def training_rows(known: dict[str, Any]) -> list[list[str]]:
    """What playing and learning cost."""
    rows = []
    for row in known["training"]:
        a = row["asked"]
        head = [f"{a['jobs']:,}", f"{a['gpus']:,}", f"{a['load']:g}", str(a.get("window", 128))]
        if "play_us" not in row:
            rows.append([*head, row.get("failed", f"more than {row.get('late')} s"), "", "", "", "", ""])
            continue
        rows.append([*head, f"{row['queue']:,.0f}", f"{row['setup_s']:.1f}", f"{row['play_us']:,.0f}",
                     f"{row['learn_us']:,.0f}", f"{row['bytes'] / 1e3:,.1f}", f"{row['peak_gb']:.2f}"])  # fmt: skip
    return rows


def epoch_seconds(row: dict[str, Any], ray: dict[str, Any], workers: int) -> float:
    """Seconds of an epoch of EPOCH decisions with so many workers: playing shared, the rest by one process."""
    learn = EPOCH * row["learn_us"] / 1e6
    play = EPOCH * row["play_us"] / 1e6
    if not workers:
        return play + learn
    shares = max(workers, 4)
    beside = shares * ray["call_s"] + EPOCH * row["bytes"] / ray["bytes_per_s"] + ray["put_s"]
    return play / workers + beside + learn


def worker_rows(known: dict[str, Any]) -> list[list[str]]:
    """An epoch by workers, at the sizes that were measured."""
    ray = known["workers"]
    rows: list[list[str]] = []
    done: list[str] = []
    if "call_s" not in ray:
        return rows
    for row in known["training"]:
        a = row["asked"]
        if "play_us" in row and a.get("window", 128) == 128 and a["load"] == 0.95 and f"{a['gpus']:,}" not in done:
            done.append(f"{a['gpus']:,}")
            times = [epoch_seconds(row, ray, n) for n in (0, 1, 2, 4, 8, 16, 64)]
            rows.append([f"{a['gpus']:,}", *(f"{t:.1f}" for t in times)])
    return rows


def measured_part(known: dict[str, Any]) -> str:
    """The part of the page that is measured."""
    head = ["discipline", "jobs", "GPUs", "load", "queue", "seconds", "µs a job", "model", "peak GB"]
    base, per_jobs, per_gpus = known["memory"]
    lines = ["## Replay", "", "Queue: jobs that wait, averaged over time. Seconds: setting up, then running.", ""]
    lines += table(head, replay_rows(known, "replay"))
    formula = "µs a job = A · jobs^b · GPUs^(c + e·w) · (1 + queue)^d, where w = queue / (1 + queue) is how often "
    lines += ["### The model", "", f"{formula}somebody waits; least squares of logarithms:", ""]
    lines += table(["discipline", "A", "b (jobs)", "c (GPUs)", "e (GPUs, while jobs wait)", "d (queue)"],
                   [[name, f"{math.exp(m[0]):.3g}", *(f"{x:.2f}" for x in m[1:])]
                    for name, m in known["model"].items()])  # fmt: skip
    seen, unseen = errors(known, "replay"), errors(known, "held_out")
    fitted = f"by a factor of {_mean(seen):.2f} on average, {max(seen):.2f} at most"
    tested = f"by {_mean(unseen):.2f} and {max(unseen):.2f}"
    lines += [
        f"At the points above the model is off {fitted}; at those below, which it was not fitted on, {tested}.",
        "",
    ]
    lines += table(head, replay_rows(known, "held_out"))
    lines += [f"Peak memory, GB = {base:.2f} + {per_jobs:.2f} · million jobs + {per_gpus:.3f} · thousand GPUs.", ""]
    lines += ["### At 100,000 GPUs", "", "By the model, a replay of 10,000,000 jobs:", ""]
    far = [[name, *(f"{10 * predicted(known['model'], name, 1e7, 1e5, q):,.0f} s" for q in (0, 100, 10_000))]
           for name in known["model"]]  # fmt: skip
    lines += table(["discipline", "nobody waits", "100 wait", "10,000 wait"], far)
    lines += ["## Training", "", "One core; 16 environments at once; kernel network; learning: three passes.", ""]
    numbers = ["waiting", "set up, s", "play, µs", "learn, µs", "kept, KB", "peak GB"]
    lines += table(["jobs", "GPUs", "load", "slots", *numbers], training_rows(known))
    ray = known["workers"]
    if "call_s" in ray:
        lines += [
            "### N workers", "",
            f"Seconds of an epoch of D decisions = D · play / N + S · {1e3 * ray['call_s']:.1f} ms + D · kept / "
            f"{ray['bytes_per_s'] / 1e9:.1f} GB/s + {1e3 * ray['put_s']:.1f} ms + D · learn, with S shares (at least "
            f"N, at least 4); for D = {EPOCH:,}:", "",
        ]  # fmt: skip
        lines += table(["GPUs", "no workers", "1", "2", "4", "8", "16", "64"], worker_rows(known))
    return "\n".join(lines)


def _mean(factors: list[float]) -> float:
    return math.exp(sum(map(math.log, factors)) / len(factors))


def write_page(known: dict[str, Any]) -> None:
    """Put what was measured between the page's marks."""
    page = PAGE.read_text()
    head, _, rest = page.partition(BEGIN)
    tail = rest.partition(END)[2]
    with written_whole(PAGE) as begun:
        begun.write_text(f"{head}{BEGIN}\n{measured_part(known)}\n{END}{tail}")
