"""How often forecasts of starts hold: 80 % intervals against simulated truth, on moments that nothing was fitted on."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from berth.commandline import option, parse, run, written_whole
from berth.console import show_rows, tell
from berth.errors import ConfigError
from envs.clusters import find_cluster
from envs.recalling import Kin, Recalled, recall
from envs.sim.simulator import Schedule, simulate
from envs.snapshot import Snapshot
from envs.workload import Workload, prepare
from orchestrator.doubting import Doubt, learn
from orchestrator.forecasting import Coming, forecast, stretched
from traces.read import read_trace

ROOT = Path(__file__).resolve().parent.parent
PAGE, ROWS = ROOT / "docs/results/forecasts.md", ROOT / "data/slurm/forecasts.json"

HEADER = ("sample", "led by", "stretch", "inside, validation", "inside, test", "test, fitted on", "not stretched",
          "before the median", "starts", "s each")  # fmt: skip

HEAD = """# Do forecasts of starts hold?

Written by `python benchmarks/forecasts.py`; [slurm.md](../slurm.md) says what is forecast. The shipped samples
(GPU_Traces/, testbeds, offered load 0.95) are replayed under a policy with EASY, on predicted run times, which is the
truth. At {moments} moments of the validation part (jobs from 60 to 80 % of the trace), and as many of the test part
(from 80 % on), the cluster is seen as a Snapshot, and every waiting job's start is forecast from {draws} draws;
surprises of run times are learned from jobs that ended before the part begins.

- Fitted on validation moments: how far the ends of intervals are moved from the median on a logarithmic scale
  ("stretch"). Jobs that are alike share their surprises.
- Inside: the share of starts within their 80 % intervals (a second of grace), every moment counting the same; "not
  stretched": on test moments as drawn.
- "Test, fitted on": both ends of each test moment are fitted on the {rolling} moments before it, by those of their
  jobs that have started by then, so that they follow a load that changes.
- Before the median: the share of starts on test moments that came earlier than the median; 50 % would be even.

"""

INSIDE = 0.8
"""What an interval should hold."""

STRETCHES = np.round(np.arange(0.5, 3.01, 0.05), 2)
"""How far the ends of intervals are moved away from the median: tried on the validation part."""

RULES = (("fcfs", "easy"), ("sjf", "easy"))
"""Who led the cluster, whom the forecast is told of."""

FITTED_ON = 30
"""On how many moments before it the stretch of a moment is fitted, where it is fitted as time goes on."""

COMING = 400
"""How many of the last arrivals those to come are drawn from."""


@dataclass(frozen=True)
class Config:
    """What benchmarks/forecasts.py takes."""

    clusters: tuple[str, ...] = option(
        ("philly", "synthetic", "helios", "alibaba"), "clusters whose shipped samples are replayed"
    )
    moments: int = option(60, "moments of each part: validation, test")
    draws: int = option(30, "simulations of a moment")
    seed: int = option(0, "seed of moments and draws")


class Truth:
    """A replayed trace, seen at any moment as a Snapshot, and what came of it."""

    def __init__(self, workload: Workload, policy: str, discipline: str) -> None:
        self.workload, trace = workload, workload.trace
        self.schedule: Schedule = simulate(workload, policy, discipline, runtime_info="predicted")
        unknown = np.full(len(trace), "-1", object)
        self.kin = Kin(
            unknown if trace.user is None else trace.user, unknown if trace.vc is None else trace.vc, trace.gpus
        )
        self.told: Recalled = recall(self.kin, self.schedule.end, trace.run_time, self.kin, trace.submit)

    def doubt(self, share: float) -> Doubt:
        """What the jobs that ended in the first part of the trace teach."""
        trace, end = self.workload.trace, self.schedule.end
        known = end <= trace.submit[int(share * (len(trace) - 1))]
        kin = Kin(*(column[known] for column in self.kin))
        return learn(kin, trace.submit[known], end[known], trace.run_time[known])

    def at(self, now: float) -> Snapshot:
        """The cluster at a moment."""
        trace, start, end, nodes = self.workload.trace, self.schedule.start, self.schedule.end, self.workload.nodes
        queued = np.flatnonzero((trace.submit <= now) & (start > now))
        running = np.flatnonzero((start <= now) & (end > now))
        counts = self.schedule.place_count[running].astype(np.int64)
        place_at = np.concatenate(([0], np.cumsum(counts)))
        at = np.repeat(self.schedule.place_at[running] - place_at[:-1], counts) + np.arange(place_at[-1])
        node, gpus = self.schedule.place_node[at], self.schedule.place_gpus[at]
        used = np.bincount(node, gpus, minlength=len(nodes.capacity)).astype(np.int64)
        pools = np.repeat(np.arange(len(nodes.pool_gpus)), np.diff(nodes.first))
        guess = self.told.run_time[running]
        return Snapshot(
            now, queued, trace.submit[queued], now - trace.submit[queued], trace.gpus[queued],
            self.told.run_time[queued], self.workload.pool[queued], running, start[running], trace.gpus[running],
            self.workload.pool[running], start[running] + guess, nodes.capacity - used, nodes.capacity, pools,
            history=self.told.history[queued], running_guess=guess, place_at=place_at, place_node=node, place_gpus=gpus,
        )  # fmt: skip

    def coming(self, now: float) -> Coming:
        """The last arrivals, with what their run times were, or are expected to be."""
        trace = self.workload.trace
        last = np.flatnonzero(trace.submit <= now)[-COMING:]
        ended = self.schedule.end[last] <= now
        ran = np.where(ended, trace.run_time[last], self.told.run_time[last])
        return Coming(trace.submit[last], trace.gpus[last], ran, self.told.run_time[last], self.workload.pool[last])

    def moments(self, low: float, high: float, count: int, rng: np.random.Generator) -> np.ndarray:
        """Moments of a part of the trace at which jobs wait."""
        trace = self.workload.trace
        first, last = trace.submit[int(low * (len(trace) - 1))], trace.submit[int(high * (len(trace) - 1))]
        found: list[float] = []
        for _ in range(50 * count):
            now = float(rng.uniform(first, last))
            if np.count_nonzero((trace.submit <= now) & (self.schedule.start > now)) and len(found) < count:
                found.append(now)
        return np.array(found)


class Told(NamedTuple):
    """What was forecast at some moments, and what came."""

    ends: list[tuple[np.ndarray, np.ndarray, np.ndarray]]  # of each moment: low, median, high (queued,)
    start: list[np.ndarray]  # of each moment: when jobs started (queued,)

    def inside(self, stretch: float) -> float:
        """The share of starts within their intervals; every moment counts the same, however many jobs wait then."""
        held = []
        for (low, middle, high), start in zip(self.ends, self.start, strict=True):
            least, most = stretched(middle, low, stretch) - 1.0, stretched(middle, high, stretch) + 1.0
            held.append(np.mean((start >= least) & (start <= most)))
        return float(np.mean(held))

    def rolling(self, earlier: "Told", moments: np.ndarray, before: np.ndarray) -> float:
        """The share inside where the ends of each moment are fitted on the moments before it, which `earlier` has told.

        Of the last FITTED_ON moments, the jobs that have started by then tell how far starts were from medians, in
        units of their intervals on a logarithmic scale; so much is added to the median here.
        """
        when = np.concatenate((before, moments))
        ends, starts = [*earlier.ends, *self.ends], [*earlier.start, *self.start]
        order, held = np.argsort(when, kind="stable"), []
        for i, now in enumerate(moments):
            past = [j for j in order if when[j] < now][-FITTED_ON:]
            away = [_away(ends[j], starts[j])[starts[j] <= now - when[j]] for j in past]
            weights = np.concatenate([np.full(len(one), 1.0 / max(1, len(one))) for one in away])
            low, high = _weighted(np.concatenate(away), weights, (1 - INSIDE) / 2, (1 + INSIDE) / 2)
            mine = _away(self.ends[i], self.start[i])
            held.append(np.mean((mine >= low) & (mine <= high)))
        return float(np.mean(held))

    def best_stretch(self) -> float:
        """The stretch that makes intervals hold what they should."""
        away = [abs(self.inside(stretch) - INSIDE) for stretch in STRETCHES]
        return float(STRETCHES[int(np.argmin(away))])

    @property
    def before(self) -> float:
        """The share of starts before the median."""
        pairs = zip(self.ends, self.start, strict=True)
        return float(np.mean([np.mean(start <= middle) for (_, middle, _), start in pairs]))

    @property
    def starts(self) -> int:
        """How many starts there are."""
        return sum(map(len, self.start))


def _away(ends: tuple[np.ndarray, np.ndarray, np.ndarray], start: np.ndarray) -> np.ndarray:
    """How far starts are from medians, in units of half their intervals, on the scale ln(1 + s)."""
    low, middle, high = (np.log1p(end) for end in ends)
    return (np.log1p(np.maximum(start, 0.0)) - middle) / (0.05 + (high - low) / 2)


def _weighted(values: np.ndarray, weights: np.ndarray, *shares: float) -> list[float]:
    """Weighted quantiles; those of an interval as it was drawn where there are no values."""
    if not len(values):
        return [-1.0, 1.0]
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order]) / weights.sum()
    return [float(values[order][min(len(order) - 1, int(np.searchsorted(reached, share)))]) for share in shares]


def told_at(truth: Truth, moments: np.ndarray, rule: tuple[str, str], doubt: Doubt, config: Config) -> Told:
    """Forecast at some moments."""
    found = Told([], [])
    for i, now in enumerate(moments):
        view = truth.at(now)
        made = forecast(view, rule[0], rule[1], doubt, truth.coming(now), config.draws, config.seed + i)
        found.ends.append(made.interval(INSIDE))
        found.start.append(truth.schedule.start[view.job] - now)
    return found


def main() -> None:
    """Fit on validation moments how surprises are shared and intervals stretched; tell what holds on test moments."""
    config = parse(Config, description=__doc__ or "")
    if config.moments < 2 or config.draws < 10:
        raise ConfigError("want at least 2 --moments and 10 --draws")
    rows = []
    for name in config.clusters:
        cluster = find_cluster(name)
        workload = prepare(read_trace(cluster.trace), cluster)
        for rule in RULES:
            truth, rng = Truth(workload, *rule), np.random.default_rng(config.seed)
            fitted, tested = (truth.moments(*part, config.moments, rng) for part in ((0.6, 0.8), (0.8, 1.0)))
            first = told_at(truth, fitted, rule, truth.doubt(0.6), config)
            stretch = first.best_stretch()
            begun = time.monotonic()
            told = told_at(truth, tested, rule, truth.doubt(0.8), config)
            took = (time.monotonic() - begun) / max(1, len(tested))
            rows.append((
                name, " ".join(rule), f"{stretch:g}", f"{100 * first.inside(stretch):.1f} %",
                f"{100 * told.inside(stretch):.1f} %", f"{100 * told.rolling(first, tested, fitted):.1f} %",
                f"{100 * told.inside(1.0):.1f} %", f"{100 * told.before:.1f} %",
                f"{told.starts:,}", f"{took:.2f}",
            ))  # fmt: skip
            keep(rows[-1])
    show_rows("80 % intervals of starts, run times predicted", HEADER, rows)
    lines = "\n".join(f"| {' | '.join(row)} |" for row in (HEADER, tuple("---" for _ in HEADER), *kept().values()))
    PAGE.write_text(HEAD.format(moments=config.moments, draws=config.draws, rolling=FITTED_ON) + lines + "\n", "utf-8")


def kept() -> dict[str, tuple[str, ...]]:
    """The rows that were found so far, by sample and policy; the page has them all."""
    if not ROWS.is_file():
        return {}
    found = json.loads(ROWS.read_text(encoding="utf-8"))
    return {name: tuple(found[name]) for name in sorted(found)}


def keep(row: tuple[str, ...]) -> None:
    """Tell a row, and keep it for the page."""
    tell(" ".join(row))
    ROWS.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(ROWS) as begun:
        begun.write_text(json.dumps({**kept(), " ".join(row[:2]): row}), encoding="utf-8")


if __name__ == "__main__":
    run(main)
