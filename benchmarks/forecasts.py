"""How often forecasts of starts hold: 80 % intervals against simulated truth, fitted on earlier moments alone."""

import dataclasses
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from berth.commandline import option, parse, run, written_whole
from berth.console import show_rows, tell
from berth.errors import ConfigError
from envs.clusters import find_cluster
from envs.workload import Workload, prepare
from orchestrator.calibrating import Told, held, in_turn, moved
from orchestrator.forecasting import HORIZON, Interval
from orchestrator.replaying import Replay
from traces.read import read_trace

ROOT = Path(__file__).resolve().parent.parent
PAGE, KEPT = ROOT / "docs/results/forecasts.md", ROOT / "data/slurm/forecasts"

HEADER = ("trace", "led by", "inside", "95 %", "later half", "before", "after", "as drawn", "open", "never",
          "of starts", "known", "moments", "jobs", "s each")  # fmt: skip

HEAD = """# Do forecasts of starts hold?

Written by `python benchmarks/forecasts.py`; [slurm.md](../slurm.md) says what is forecast. Traces (the shipped samples
of GPU_Traces/ where no file is named, testbeds, offered load 0.95) are replayed under a policy with EASY, on predicted
run times, which is the truth. At {moments} moments spread evenly over the time in which the last 60 % of the jobs come,
as far as jobs wait then, the cluster is seen as a Snapshot, and every waiting job's start is forecast from {draws}
draws.

- Nothing is fitted on what was not known at a moment: surprises of run times come from jobs that had started, arrivals
  to come are drawn from those that had come, and both ends of an interval are fitted by the function that `whatif.py`
  calls (orchestrator/calibrating.py), on the moments before. The first quarter of the moments is fitted on alone; the
  others are judged.
- What was chosen on what: how run times and arrivals are drawn, on the samples and the first 20,000 jobs of the three
  files; how ends are fitted, by comparing more than a hundred settings, many of them on earlier draws, on the samples
  of Philly, Helios and Synthetic and the first jobs of Philly and Venus. Rows whose trace is "from" a job on were
  looked at when that stood: they tell what to expect of other traces. The others do not. One thing was changed after
  that, by the others' rows: at least a third of what should come behind an interval is left out there, so that feedback
  does not make all upper ends infinite.
- Inside: the share of starts within their 80 % intervals (a second of grace), every moment counting the same; "95 %":
  Student's t over {batches} stretches of moments in a row, since neighbours are alike; "later half": of the judged
  moments alone; before, after: starts that came before the lower end, after the upper one.
- As drawn: inside if ends are the quantiles of the draws.
- Starts more than 30 days away are not foreseen. Open: the share of intervals that end there, and hold all that comes
  later; where pools are asked for more than they have, sjf lets long jobs wait for good. Never: the share of jobs that
  do not start within 30 days; an interval without an upper end holds them all. Where they are many, to hold 80 % of all
  jobs would be to miss most starts that do come. Of starts: inside, of the jobs that start within 30 days alone.
- Known: the share of the judged jobs whose starts are known at the last moment. Little feedback comes where it is low.
- A file is replayed by `--clusters philly --workload FILE`: its first 20,000 jobs on that testbed, or those behind
  `--skip`; in one pool over all nodes where it does not name pools, as Venus and PAI.
- A trace begins again when it is over, so that no start owes to arrivals that end. Where its first days are quiet, as
  those of the first jobs of Philly and Venus, the load falls there all at once.

"""

FEWEST = 1_000
"""How many jobs of a file are replayed at least."""

INSIDE = 0.8
"""What an interval should hold."""

FIRST, FITTED, BATCHES = 0.4, 0.25, 6
"""From which share of the jobs on moments lie, which share of them is fitted on alone, stretches of the others."""


@dataclass(frozen=True)
class Config:
    """What benchmarks/forecasts.py takes."""

    clusters: tuple[str, ...] = option(
        ("philly", "synthetic", "helios", "alibaba"), "clusters whose shipped samples are replayed"
    )
    policies: tuple[str, ...] = option(("fcfs", "sjf"), "who leads, with EASY, whom the forecast is told of")
    workload: str = option("", "replay this trace on the one cluster named, not its sample", metavar="FILE")
    most: int = option(20_000, "jobs of --workload that are replayed, the first ones")
    skip: int = option(0, "jobs of --workload that are passed over before")
    moments: int = option(40, "moments at which starts are forecast")
    draws: int = option(20, "simulations of a moment")
    seed: int = option(0, "seed of the draws")
    anew: bool = option(False, "also forecast what was forecast the last time, and kept")


class Row(NamedTuple):
    """What was found of a trace under a policy."""

    inside: list[float]  # the share inside, of each judged moment
    drawn: list[float]  # as drawn
    before: float
    after: float
    open: float  # the share of intervals without an upper end
    never: float  # the share of jobs that do not start within HORIZON
    started: float  # the share inside, of those that do
    known: float  # the share of jobs whose starts are known at the last moment
    starts: int
    seconds: float  # of a moment

    def cells(self) -> tuple[str, ...]:
        """As the page has them."""
        values = np.array(self.inside)
        means = np.array([part.mean() for part in np.array_split(values, BATCHES)])
        half = student.ppf(0.975, BATCHES - 1) * means.std(ddof=1) / np.sqrt(BATCHES)
        low, high = max(0.0, values.mean() - half), min(1.0, values.mean() + half)
        return (
            f"**{100 * values.mean():.1f} %**", f"{100 * low:.0f}-{100 * high:.0f} %",
            f"{100 * values[len(values) // 2 :].mean():.1f} %", f"{100 * self.before:.1f} %",
            f"{100 * self.after:.1f} %", f"{100 * np.mean(self.drawn):.1f} %", f"{100 * self.open:.0f} %",
            f"{100 * self.never:.0f} %", f"{100 * self.started:.1f} %", f"{100 * self.known:.0f} %",
            f"{len(values)}", f"{self.starts:,}", f"{self.seconds:.1f}",
        )  # fmt: skip


def again(workload: Workload) -> Workload:
    """A workload that begins again when it is over, for as long as starts are foreseen."""
    trace = workload.trace
    span = np.ceil((trace.submit[-1] - trace.submit[0]) * len(trace) / max(1, len(trace) - 1) + 1.0)
    times = 1 + int(np.ceil(HORIZON / span))
    longer = trace.select(np.repeat(np.arange(len(trace)), times))
    submit = longer.submit + np.tile(np.arange(times) * span, len(trace))
    pool = np.repeat(workload.pool, times)[np.argsort(submit, kind="stable")]
    return dataclasses.replace(workload, trace=dataclasses.replace(longer, submit=submit), pool=pool)


def foretold(workload: Workload, rule: tuple[str, str], config: Config) -> tuple[list[Told], float]:
    """What is forecast at moments one after the other, and came; and how many seconds a moment takes."""
    once = workload.trace.submit
    replay = Replay(again(workload), *rule)
    moments = replay.waits_at(np.linspace(once[int(FIRST * (len(once) - 1))], once[-1], config.moments + 2)[1:-1])
    if len(moments) < 2 * BATCHES:
        raise ConfigError(f"{workload.trace.name}: jobs wait at {len(moments)} moments; want {2 * BATCHES} or more")
    told: list[Told] = []
    begun = time.monotonic()
    for i, now in enumerate(moments):
        told.append(replay.foretold(now, replay.doubt(now), config.draws, config.seed + i, INSIDE))
    return told, (time.monotonic() - begun) / len(moments)


def judged(told: list[Told], seconds: float) -> Row:
    """What intervals hold whose ends are fitted on the moments before each."""
    sides: list[np.ndarray] = []
    drawn: list[float] = []
    endless: list[float] = []
    ends = in_turn(told, np.inf, INSIDE)
    for i in range(int(np.ceil(FITTED * len(told))), len(told)):
        interval = moved(told[i].interval, ends[i])
        sides.append(held(interval, told[i].start))
        drawn.append(float(np.mean(held(told[i].interval, told[i].start) == 0)))
        endless.append(float(np.mean(np.isinf(interval.high))))
    inside, before, after = ([float(np.mean(side == where)) for side in sides] for where in (0, -1, 1))
    missed = float(np.mean(before)), float(np.mean(after))
    of = told[-len(sides) :]
    soon = [one.start <= HORIZON for one in of]
    never = 1.0 - float(np.mean([here.mean() for here in soon]))
    started = float(np.mean([np.mean(side[here] == 0) for side, here in zip(sides, soon, strict=True) if here.any()]))
    known = float(np.mean([np.mean(one.start <= told[-1].when - one.when) for one in of]))
    return Row(inside, drawn, *missed, float(np.mean(endless)), never, started, known, sum(map(len, sides)), seconds)


def main() -> None:
    """Tell of every trace and policy what intervals hold; what is kept from the last time is not found anew."""
    config = parse(Config, description=__doc__ or "")
    if config.moments < 4 * BATCHES or config.draws < 10 or config.most < FEWEST:
        raise ConfigError(f"want at least {4 * BATCHES} --moments, 10 --draws and {FEWEST:,} jobs (--most)")
    if config.skip < 0 or (config.skip and not config.workload):
        raise ConfigError(f"--skip {config.skip}: want 0 or more jobs of --workload")
    if config.workload and len(config.clusters) != 1:
        raise ConfigError("--workload: want one of --clusters, whose nodes its jobs run on")
    for name in config.clusters:
        cluster = find_cluster(name)
        trace = read_trace(config.workload or cluster.trace)
        if config.workload:
            if len(trace) - config.skip < FEWEST:
                raise ConfigError(f"--skip {config.skip}: {trace.name} has {len(trace):,} jobs; want {FEWEST:,} behind")
            trace = trace.select(slice(config.skip, config.skip + config.most))
        workload = prepare(trace, cluster)
        for rule in ((policy, "easy") for policy in config.policies):
            shown = Path(config.workload).name if config.workload else name
            shown += f" from {config.skip:,}" if config.skip else ""
            file = KEPT / f"{shown.replace(' ', '_')}_{rule[0]}_{config.moments}_{config.draws}_{config.seed}.npz"
            if config.anew or not file.is_file():
                keep(file, shown, rule, *foretold(workload, rule, config))
            tell(" | ".join(kept(file)))
    rows = [kept(file) for file in sorted(KEPT.glob("*.npz"))]
    show_rows("80 % intervals of starts, run times predicted", HEADER, rows)
    lines = "\n".join(f"| {' | '.join(row)} |" for row in (HEADER, tuple("---" for _ in HEADER), *rows))
    text = HEAD.format(draws=config.draws, moments=config.moments, batches=BATCHES)
    PAGE.write_text(text + lines + "\n", "utf-8")


def keep(file: Path, shown: str, rule: tuple[str, str], told: list[Told], seconds: float) -> None:
    """Keep what was forecast, and came, for the page, and for the next time."""
    file.parent.mkdir(parents=True, exist_ok=True)
    columns = np.concatenate([np.stack((*one.interval, one.start)) for one in told], axis=1)
    counts, when = [len(one.start) for one in told], [one.when for one in told]
    names = np.array([shown, " ".join(rule)])
    with written_whole(file) as begun, begun.open("wb") as output:
        np.savez_compressed(output, names=names, seconds=seconds, counts=counts, when=when, columns=columns)


def kept(file: Path) -> tuple[str, ...]:
    """The row of what was forecast the last time."""
    with np.load(file) as found:
        names, seconds, when = found["names"].tolist(), float(found["seconds"]), found["when"].tolist()
        parts = np.split(found["columns"], np.cumsum(found["counts"])[:-1], axis=1)
    told = [Told(now, Interval(*part[:3]), part[3]) for now, part in zip(when, parts, strict=True)]
    return (*names, *judged(told, seconds).cells())


if __name__ == "__main__":
    run(main)
