"""Forecast when each pending job will start, under the present policy and under another."""

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
from envs.recalling import Kin, predicted
from envs.sim.simulator import DISCIPLINES, check_options
from envs.snapshot import Snapshot
from orchestrator.doubting import Doubt, learn, unlearned
from orchestrator.forecasting import NOBODY, STRETCH, Coming, Forecast, Limits, forecast
from orchestrator.orderer import find_orderer
from orchestrator.rounds import check_least, check_seconds, compiling_told, warn
from orchestrator.slurm_reading import Commands, Reader
from orchestrator.slurm_state import RUNTIME_INFO, Job, State, check_partitions, is_ready, snapshot_of

OWN = "slurm"
"""The order that the queue has now: Slurm's priorities, or that of a saved Snapshot's submits."""

FEWEST = 200
"""How many ended jobs it takes to learn from them how far run times are from what is expected."""

RECENT = 400
"""How many of the last arrivals those to come are drawn from."""

MOST_DRAWS = 10_000
"""How many simulations may be asked for."""

EXAMPLES = """
examples:
  python orchestrator/whatif.py --partition gpu                                # the live queue, as Slurm orders it
  python orchestrator/whatif.py --partition gpu --against sjf --job 4711
  python orchestrator/whatif.py --snapshot now.json --policy fcfs --against policy.npz --csv starts.csv
docs/slurm.md says what the numbers mean, and what they leave out.
"""


@dataclass(frozen=True)
class Config:
    """What orchestrator/whatif.py takes."""

    snapshot: str = option("", "a Snapshot as JSON (docs/serving.md); default: the live queue of Slurm", metavar="FILE")
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
    stretch: float = option(STRETCH, "how far its ends are moved from the median, as fitted (docs/slurm.md)")
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
    limits: Limits | None = None


def of_file(path: str) -> Queue:
    """A saved Snapshot; raises SnapshotError where it is none. Nobody comes, and run times are anybody's guess."""
    try:
        view = wire.read(Path(path).read_bytes())
    except OSError as trouble:
        raise SnapshotError(f"--snapshot {path}: {trouble.strerror}; want a Snapshot as JSON") from None

    def _seen(info: str) -> Snapshot:
        hidden = np.full(len(view.job), np.nan)
        return view if info == "request" else view._replace(run_time=hidden)

    return Queue(view, _seen, np.argsort(np.argsort(view.submit, kind="stable")), unlearned(), NOBODY)


def of_slurm(config: Config) -> Queue:
    """The live queue; what has ended tells how sure run times are, and what will come."""
    state = Reader(Commands(config.timeout), warn).state()
    check_partitions(state, config.partition)
    wanted = set(config.partition)
    pending = [job for job in state.pending if is_ready(job, state.now) and job.gpus > 0]
    queued = [job for job in pending if not wanted or wanted & set(job.partitions)]
    info = config.runtime_info or "request"

    def _seen(info: str) -> Snapshot:
        return wire.read(wire.write(snapshot_of(state, queued, config.partition, info)))

    view = _seen(info)
    coming = coming_of(state, view, config.partition, info)
    return Queue(view, _seen, np.arange(len(queued)), doubt_of(state), coming, limits_of(state, queued, view))


def limits_of(state: State, queued: Sequence[Job], view: Snapshot) -> Limits:
    """Time limits, at which Slurm ends jobs."""
    until = {job.id: job.start + job.limit for job in state.running if job.limit == job.limit}
    left = [until.get(int(job), np.inf) - state.now for job in view.running_job]
    most = [job.limit if job.limit == job.limit else np.inf for job in queued]
    return Limits(np.maximum(1.0, np.array(most, float)), np.maximum(1.0, np.array(left, float)))


def doubt_of(state: State) -> Doubt:
    """What the cluster's own ended jobs teach, where they are enough."""
    ended = [job for job in state.ended if job.end > job.start and job.gpus > 0]
    if len(ended) < FEWEST:
        return unlearned()
    times = np.array([(job.submit, job.end, job.end - job.start) for job in ended]).T
    return learn(_kin(ended), *times)


def coming_of(state: State, view: Snapshot, partitions: Sequence[str], info: str) -> Coming:
    """The last arrivals whose run times are known; policies that go by time limits go by theirs, too."""
    jobs = [job for job in state.ended if job.end > job.start and 0 < job.gpus <= view.capacity.sum()]
    jobs = [job for job in jobs if not partitions or set(job.partitions) & set(partitions)]
    jobs = sorted(jobs, key=lambda job: job.submit)[-RECENT:]
    names = view.pool_name or ("all",)
    pool = [next((i for i, name in enumerate(names) if name in job.partitions), 0) for job in jobs]
    ran = np.array([job.end - job.start for job in jobs])
    limit = np.array([job.limit for job in jobs], float)
    known = np.where(limit > 0, limit, ran) if info == "request" else ran
    return Coming(
        np.array([job.submit for job in jobs]), np.array([job.gpus for job in jobs]), ran, known, np.array(pool)
    )


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


def main() -> None:
    """Print, and write, when each pending job should start."""
    config = parse(Config, description=f"{__doc__}\n{EXAMPLES}")
    _check(config)
    with compiling_told():
        show(config)


def show(config: Config) -> None:
    """Forecast, print and write as was asked for."""
    queue = of_file(config.snapshot) if config.snapshot else of_slurm(config)
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
        word: foretell(queue, word, config).interval(config.inside, config.stretch)
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


def _numbers(
    queue: Queue, tables: Mapping[str, tuple[np.ndarray, ...]], picked: Sequence[int]
) -> list[tuple[str, ...]]:
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


def _kin(jobs: Sequence[Job]) -> Kin:
    users = np.array([job.user or "-1" for job in jobs], object)
    accounts = np.array([job.account or "-1" for job in jobs], object)
    return Kin(users, accounts, np.array([job.gpus for job in jobs], np.int64))


def _check(config: Config) -> None:
    """Raise ConfigError for options that cannot be meant."""
    check_least(config, draws=10, seed=0)
    if config.draws > MOST_DRAWS:
        raise ConfigError(f"--draws {config.draws}: want at most {MOST_DRAWS}, which are held in memory all at once")
    check_seconds(config, "timeout")
    if not 0 < config.inside < 1:
        raise ConfigError(f"--inside {config.inside:g}: want a share between 0 and 1")
    if not 0 < config.stretch < 100:
        raise ConfigError(f"--stretch {config.stretch:g}: want a number between 0 and 100")
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
