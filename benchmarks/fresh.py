"""Judge the headline's policies on fresh traces of the samples' kinds: a sample's test split is a few days of one draw.

    python benchmarks/fresh.py             # after benchmarks/headline.py has trained; goes on where it stopped
    python benchmarks/fresh.py --clusters synthetic --traces 8

Traces are made by `python -m traces generate` with seeds that no sample has; policies are those of data/logs, which
have learned from the shipped sample alone. The page is docs/results/fresh.md.
"""

import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.headline import SCORES, Experiment
from benchmarks.headline_page import WORDS, head, marked, number
from berth.commandline import nearest, option, parse, run, written_whole
from berth.console import tell
from berth.errors import ConfigError
from envs.clusters import CLUSTERS
from eval.commands import Command, run_commands
from eval.paired import compare

ROOT = Path(__file__).resolve().parent.parent
PAGE, KEPT = ROOT / "docs/results/fresh.md", Path("data/headline/fresh")
FIRST = 101
"""The seed of the first trace; the shipped samples have smaller ones."""

TEXT = """# Fresh traces of the samples' kinds

Written by `python benchmarks/fresh.py`. Run times unknown, as in [the headline table](README.md), with the same
policies, which have learned from the shipped samples; but judged on {traces} fresh traces of each kind (`python -m
traces generate --like CLUSTER --seed {first}` and on, 20,000 jobs each), {windows} windows of the test split of each.
Intervals draw traces: how much one draw of days differs from the next is in them, as it cannot be where there is one
test split.

- **Strongest heuristic**: for every trace the one that is best on its own validation windows.
- **Best in hindsight**: the one heuristic that is best over all these test windows together.
- **Better on**: on how many of them the mean of the seeds' policies is better than the strongest heuristic.
- Less is better; **bold**: the whole interval is below 0.
"""


@dataclass(frozen=True)
class Config:
    """What benchmarks/fresh.py takes."""

    clusters: tuple[str, ...] = option(tuple(CLUSTERS), "clusters whose kinds of traces are made")
    traces: int = option(12, "fresh traces of each kind")
    windows: int = option(20, "test windows of each trace")
    seeds: int = option(3, "runs of each kind that are judged")
    processes: int = option(2, "programs that run at the same time, on one core each")


def trace_file(cluster: str, seed: int) -> Path:
    """Where a fresh trace is kept."""
    return KEPT / f"{cluster}_{seed}.csv"


def making(cluster: str, seed: int) -> list[str]:
    """The command that makes a trace."""
    return ["-m", "traces", "generate", "--like", cluster, "--seed", str(seed), "-o", str(trace_file(cluster, seed))]


def judging(cluster: str, seed: int, config: Config) -> list[str]:
    """The command that judges the sample's policies on a trace."""
    words = Experiment("sample", cluster, "hidden").evaluation(config.seeds, config.windows)
    words[words.index("--out") + 1] = str(KEPT / f"{cluster}_{seed}")
    return [*words, "--workload", str(trace_file(cluster, seed))]


def work_off(config: Config) -> None:
    """Make and judge what is not there yet."""
    seeds = range(FIRST, FIRST + config.traces)
    for what, command in (("made", making), ("judged", lambda c, s: judging(c, s, config))):
        todo = [(c, s) for c in config.clusters for s in seeds if not (ROOT / _done(what, c, s)).is_file()]
        names = {(c, s): f"fresh {c} {s} {what}" for c, s in todo}
        run_commands(
            [Command(names[one], [sys.executable, *command(*one)], str(ROOT), str(ROOT / KEPT / f"{names[one]}.log"))
             for one in todo],
            config.processes,
        )  # fmt: skip


def _done(what: str, cluster: str, seed: int) -> Path:
    """The file that tells that something is done."""
    return trace_file(cluster, seed) if what == "made" else KEPT / f"{cluster}_{seed}" / "results.json"


def summarize(evaluations: list[dict[str, Any]], score: str) -> dict[str, Any]:
    """What the policies are worth over all traces, by a score; each evaluation is that of one trace."""
    names = [c["name"] for c in evaluations[0]["contenders"]]
    kinds = {c["name"]: (c["kind"], c["runtime_info"]) for c in evaluations[0]["contenders"]}
    rows = {name: np.concatenate([told["by_window"][name][score] for told in evaluations]) for name in names}
    groups = np.repeat(np.arange(len(evaluations)), [len(told["windows"]) for told in evaluations])
    mine = np.mean([rows[name] for name in names if kinds[name][0] == "model"], axis=0)
    fair = [name for name in names if kinds[name][0] == "heuristic" and kinds[name][1] in ("hidden", "predicted")]
    chosen = np.concatenate([told["by_window"][told["rivals"][score]][score] for told in evaluations])
    best = min(fair, key=lambda name: float(rows[name].mean()))

    def _against(theirs: np.ndarray) -> dict[str, float]:
        paired = compare(mine[None], theirs, True, groups)
        found = (paired.change[0], paired.change_low[0], paired.change_high[0])
        return {"mean": float(theirs.mean())} | dict(zip(("change", "low", "high"), map(float, found), strict=True))

    apart = np.bincount(groups, mine) < np.bincount(groups, chosen)
    return {
        "score": score, "mean": float(mine.mean()), "rival": _against(chosen), "better": int(apart.sum()),
        "traces": len(evaluations), "hindsight": {"name": best} | _against(rows[best]),
        "predicted": float(rows["sjf fit (predicted)"].mean()), "knows": float(rows["sjf fit (oracle)"].mean()),
    }  # fmt: skip


def table(found: dict[str, list[dict[str, Any]]]) -> str:
    """All rows, by cluster."""
    lines = head("kind", "score", "learned", "strongest heuristic", "change [95 %]", "better on", "best in hindsight",
                 "change [95 %]", "gap closed")  # fmt: skip
    for cluster, rows in found.items():
        for row in rows:
            rival, later = row["rival"], row["hindsight"]
            gap = row["predicted"] - row["knows"]
            closed = f"{100 * (row['predicted'] - row['mean']) / gap:.0f} %" if gap > 0 else "no gap"
            cells = [cluster, WORDS[row["score"]], number(row["mean"]), number(rival["mean"]), marked(rival)]
            cells += [f"{row['better']} of {row['traces']}", later["name"], marked(later), closed]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def check(config: Config) -> None:
    """Raise ConfigError for what cannot be judged."""
    for cluster in config.clusters:
        if cluster not in CLUSTERS:
            raise ConfigError(f"--clusters {cluster}: {nearest(cluster, CLUSTERS)}")
    for name, least in (("traces", 2), ("windows", 1), ("seeds", 1)):
        if getattr(config, name) < least:
            raise ConfigError(f"--{name} {getattr(config, name)}: want at least {least}")


def check_asked(told: dict[str, Any], config: Config, where: str) -> None:
    """Raise ConfigError for an evaluation, kept from an earlier time, of other windows or seeds than are asked for."""
    models = sum(contender["kind"] == "model" for contender in told["contenders"])
    if (len(told["windows"]), models) != (config.windows, config.seeds):
        raise ConfigError(
            f"{where}: judged on {len(told['windows'])} windows with {models} seeds; want {config.windows} and "
            f"{config.seeds}: ask for as many, or put it aside"
        )


def main() -> None:
    """Make, judge, and write the page, of the clusters all of whose traces are judged."""
    config = parse(Config, None, str(__doc__))
    check(config)
    work_off(config)
    found, commands = {}, []
    for cluster in CLUSTERS:  # those of earlier calls as well
        files = [ROOT / _done("judged", cluster, FIRST + i) for i in range(config.traces)]
        if all(file.is_file() for file in files):
            told = [json.loads(file.read_text()) for file in files]
            for file, one in zip(files, told, strict=True):
                check_asked(one, config, str(file.parent.relative_to(ROOT)))
            found[cluster] = [summarize(told, score) for score in SCORES]
            commands.append(f"    {shlex.join(['python', *judging(cluster, FIRST, config)])}")
        elif cluster in config.clusters:
            tell(f"{cluster}: not all traces are judged, left out; see data/headline/fresh/*.log")
    if not found:
        raise ConfigError(f"{', '.join(config.clusters)}: nothing is judged, {PAGE.relative_to(ROOT)} stays as it was")
    text = TEXT.format(traces=config.traces, windows=config.windows, first=FIRST)
    with written_whole(PAGE) as begun:
        begun.write_text(
            "\n".join([text, table(found), "", "The first trace of each is judged by:", "", *commands, ""])
        )
    tell(f"{len(found)} kinds: {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    run(main)
