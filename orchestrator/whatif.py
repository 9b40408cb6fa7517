"""Forecast when each pending job will start, under the present policy and under another."""

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":  # this folder is first on the path then, where `import orchestrator` finds a script
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from berth.commandline import nearest, option, parse, run, writable_file, written_whole
from berth.console import show_rows, tell
from berth.errors import ConfigError, SnapshotError
from envs import wire
from envs.policies import POLICIES, find_policy
from envs.recalling import predicted
from envs.sim.simulator import DISCIPLINES, check_options
from envs.snapshot import Snapshot
from envs.workload import Workload
from orchestrator.arrivals import NOBODY, Coming
from orchestrator.calibrating import MOMENTS, Ends, moved
from orchestrator.doubting import Doubt
from orchestrator.experience import (
    coming_of,
    doubt_of,
    ended_jobs,
    limits_in,
    placed,
    running_jobs,
    running_submits,
    together,
    tried,
    unfinished,
)
from orchestrator.forecasting import Forecast, Interval, Limits, forecast
from orchestrator.orderer import find_orderer
from orchestrator.rounds import check_least, check_seconds, compiling_told, warn
from orchestrator.slurm_reading import Commands, Reader
from orchestrator.slurm_state import RUNTIME_INFO, Job, State, check_partitions, is_ready, snapshot_of
from traces.read import read_trace
from traces.trace import Trace

OWN = "slurm"
"""The order that the queue has now: Slurm's priorities, or that of a saved Snapshot's submits."""

NONE_ENDED = Trace("nobody", "", np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0))
"""The past of a cluster of which nothing is known."""

MOST_DRAWS = 10_000
"""How many simulations may be asked for."""

EXAMPLES = """
examples:
  python orchestrator/whatif.py --partition gpu                                # the live queue, as Slurm orders it
  python orchestrator/whatif.py --partition gpu --against sjf --job 4711
  python orchestrator/whatif.py --snapshot now.json --policy fcfs --against policy.npz --csv starts.csv
  python orchestrator/whatif.py --snapshot now.json --policy fcfs --trace before.csv   # what came before it teaches
docs/slurm.md says what the numbers mean, and what they leave out.
"""


@dataclass(frozen=True)
class Config:
    """What orchestrator/whatif.py takes."""

    snapshot: str = option("", "a Snapshot as JSON (docs/serving.md); default: the live queue of Slurm", metavar="FILE")
    trace: str = option("", "with --snapshot: a trace of the jobs that came before it, to learn from", metavar="FILE")
    partition: tuple[str, ...] = option((), "partitions of the live queue; default: all as one")
    policy: str = option(OWN, f"who orders: {OWN} (as it is now), {', '.join(POLICIES)}, or FILE.npz")
    against: str = option("", "another to compare with", metavar="POLICY")
    runtime_info: str = option(
        "", "what a heuristic knows of run times in the live queue, as in orchestrator/slurm.py; default: request",
        choices=RUNTIME_INFO,
    )  # fmt: skip
    discipline: str = option("easy", "how jobs start in the simulation", choices=tuple(DISCIPLINES))
    job: tuple[str, ...] = option((), "tell of these jobs only")
    draws: int = option(200, "simulations")
    inside: float = option(0.8, "what the interval should hold, as a share")
    moments: int = option(MOMENTS, "past moments that its ends are fitted on; 0: ends as drawn, which is quicker")
    seed: int = option(0, "seed of the draws")
    timeout: float = option(20.0, "seconds that a command of Slurm may take", metavar="S")
    csv: str = option("", "also write the table here", metavar="FILE.csv")


@dataclass(frozen=True)
class Queue:
    """What is forecast from."""

    view: Snapshot
    seen: Callable[[str], Snapshot]  # the same with run times as one of RUNTIME_INFO tells them, for trained policies
    rank: np.ndarray  # (queued,) the present order
    doubt: Doubt
    coming: Coming
    past: Workload | None = None  # ended jobs on the same nodes, by which the ends of intervals are fitted
    limits: Limits | None = None


def of_file(path: str, trace: str = "") -> Queue:
    """A saved Snapshot; raises SnapshotError where it is none, TraceError for what is no trace.

    Where no trace tells what came before it, nobody comes, and run times are anybody's guess. The trace's last arrival
    is taken to be just before the Snapshot, and its jobs to have ended.
    """
    try:
        view = wire.read(Path(path).read_bytes())
    except OSError as trouble:
        raise SnapshotError(f"--snapshot {path}: {trouble.strerror}; want a Snapshot as JSON") from None
    except SnapshotError as trouble:
        raise SnapshotError(f"--snapshot {path}: {trouble}") from None

    def _seen(info: str) -> Snapshot:
        hidden = np.full(len(view.job), np.nan)
        return view if info == "request" else view._replace(run_time=hidden)

    came = read_trace(trace) if trace else NONE_ENDED
    came = dataclasses.replace(came, submit=came.submit - came.submit.max(initial=0.0) + view.now)
    past = placed(came, view) if trace and len(view.job) else None
    rank = np.argsort(np.argsort(view.submit, kind="stable"))
    return Queue(view, _seen, rank, doubt_of(came), coming_of(past, "predicted"), past)


def of_slurm(config: Config) -> Queue:
    """The live queue; what has ended tells how sure run times are, what will come, and how well forecasts hold."""
    state = Reader(Commands(config.timeout), warn).state()
    check_partitions(state, config.partition)
    wanted = set(config.partition)
    pending = [job for job in state.pending if is_ready(job, state.now) and job.gpus > 0]
    queued = [job for job in pending if not wanted or wanted & set(job.partitions)]
    info = config.runtime_info or "request"

    def _seen(info: str) -> Snapshot:
        return wire.read(wire.write(snapshot_of(state, queued, config.partition, info)))

    view = _seen(info)
    ended = ended_jobs(state, view.now)
    past = placed(ended, view) if len(ended) else None
    doubt, coming = doubt_of(ended, running_jobs(state, view.now)), NOBODY
    if past is not None:
        coming = together(coming_of(past, info), unfinished(view, running_submits(state, view), doubt))
    return Queue(view, _seen, np.arange(len(queued)), doubt, coming, past, limits_of(state, queued, view))


def limits_of(state: State, queued: Sequence[Job], view: Snapshot) -> Limits:
    """Time limits, at which Slurm ends jobs."""
    until = {job.id: job.start + job.limit for job in state.running if job.limit == job.limit}
    left = [until.get(int(job), np.inf) - state.now for job in view.running_job]
    return Limits(np.maximum(1.0, limits_in(queued)), np.maximum(1.0, np.array(left, float)))


def foretell(queue: Queue, word: str, config: Config) -> Forecast:
    """The forecast under a policy; a trained one keeps to the order that it wants now."""
    policy: str | np.ndarray = word
    if word == OWN:
        policy = queue.rank
    elif word.endswith(".npz"):
        orderer = find_orderer(word)
        view = queue.seen(orderer.runtime_info)
        known = np.full(len(view.job), 3600.0) if view.history is None else predicted(view.history)
        order = orderer.plan(view, np.where(np.isnan(view.run_time), known, view.run_time), len(known), 30.0).order
        policy = np.argsort(order)
    return forecast(
        queue.view,
        policy,
        config.discipline,
        queue.doubt,
        queue.coming,
        config.draws,
        config.seed,
        limits=queue.limits,
    )


def fitted_interval(queue: Queue, word: str, config: Config) -> Interval:
    """The interval under a policy, its ends where forecasts of the past wanted them; tells on what they were fitted."""
    drawn = foretell(queue, word, config).interval(config.inside)
    info = config.runtime_info or ("predicted" if config.snapshot else "request")
    leader = word if word == OWN or word.endswith(".npz") else find_policy(word).name  # it may be a number, or an alias
    ends: Ends = tried(queue.past, leader, config.discipline, info, config.moments, config.inside, config.seed)
    how = f"fitted on {ends.moments} past moments" if ends.moments else "as drawn: nothing to fit them on"
    tell(f"{word}: ends of intervals {how}")
    return moved(drawn, ends) if ends.moments else drawn


def main() -> None:
    """Print, and write, when each pending job should start."""
    config = parse(Config, description=f"{__doc__}\n{EXAMPLES}")
    _check(config)
    with compiling_told():
        show(config)


def show(config: Config) -> None:
    """Forecast, print and write as was asked for."""
    queue = of_file(config.snapshot, config.trace) if config.snapshot else of_slurm(config)
    names = [str(name) for name in queue.view.job.tolist()]
    for name in config.job:
        if name not in names:
            raise ConfigError(
                f"--job {name}: does not wait to start; {nearest(name, names[:50]) if names else 'nobody does'}"
            )
    if not names:
        tell("no job waits")
        return
    learned = f"learned from {queue.doubt.jobs:,} ended jobs" if queue.doubt.jobs else "a guess: too few ended jobs"
    tell(
        f"{len(names):,} jobs wait; {config.draws} simulations ({config.discipline}); how sure run times are: {learned}"
    )
    tables = {
        word: fitted_interval(queue, word, config)
        for word in (config.policy, *((config.against,) if config.against else ()))
    }
    header = ("job", "GPUs", *(f"{word}: {column}" for word in tables for column in ("from", "median", "to")))
    picked = [i for i, name in enumerate(names) if not config.job or name in config.job]
    rows = [
        (names[i], str(queue.view.gpus[i]), *(_seconds(ends[i]) for told in tables.values() for ends in told))
        for i in picked
    ]
    show_rows(f"starts in ...; {config.inside:.0%} of them between `from` and `to`", header, rows)
    if config.csv:
        with written_whole(Path(config.csv)) as begun:
            begun.write_text(
                "".join(",".join(row) + "\n" for row in (header, *_numbers(queue, tables, picked))), "utf-8"
            )


def _numbers(queue: Queue, tables: Mapping[str, Interval], picked: Sequence[int]) -> list[tuple[str, ...]]:
    """The rows of the file, in seconds."""
    view = queue.view
    return [
        (str(view.job[i]), str(view.gpus[i]), *(f"{ends[i]:.1f}" for told in tables.values() for ends in told))
        for i in picked
    ]


def _seconds(value: float) -> str:
    """Seconds as people say them."""
    if not np.isfinite(value):
        return "not foreseen"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.0f} s"


def _check(config: Config) -> None:
    """Raise ConfigError for options that cannot be meant."""
    check_least(config, draws=10, seed=0, moments=0)
    if config.draws > MOST_DRAWS:
        raise ConfigError(f"--draws {config.draws}: want at most {MOST_DRAWS}, which are held in memory all at once")
    check_seconds(config, "timeout")
    if not 0 < config.inside < 1:
        raise ConfigError(f"--inside {config.inside:g}: want a share between 0 and 1")
    if config.trace and not config.snapshot:
        raise ConfigError("--trace does nothing without --snapshot: the live queue has its own past; leave it out")
    if config.csv:
        writable_file("--csv", config.csv, ".csv")
    for name in ("partition", "runtime_info"):
        if config.snapshot and getattr(config, name):
            raise ConfigError(f"--{name} does nothing with --snapshot; leave one out")
    for word in (config.policy, config.against):
        if word and word != OWN and not word.endswith(".npz"):
            policy = find_policy(word)
            check_options(policy, config.discipline, "pool", "request")
            if config.runtime_info == "hidden":  # backfilling goes by what is expected, as Slurm does by limits
                check_options(policy, "strict", "pool", "hidden")


if __name__ == "__main__":
    run(main)
