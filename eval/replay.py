"""Replay a trace on a cluster under heuristics: a table, a picture, and every job's start, end and nodes."""

from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from allocation.choice import ALLOCATION, TIERS_TEXT, TIME_LIMIT, USE_MILP, Allocation, chosen
from allocation.tiers import TIERS
from berth.commandline import option, parse, run, writable_file, writable_folder
from berth.compiled import is_compiled
from berth.console import console, tell
from berth.errors import ConfigError
from envs.clusters import CLUSTERS, find_cluster
from envs.knowledge import CHOICES, know
from envs.policies import POLICIES, Policy, find_policy
from envs.sim.simulator import DISCIPLINES, QUEUES, Schedule, Simulation, check_options
from envs.workload import Workload, prepare
from eval.plots import Painter
from eval.tables import show, write_csv
from traces.files import SKIP, read_told
from traces.read import FORMATS

EXAMPLES = """
examples:
  python eval/replay.py --cluster philly --policies fcfs,sjf,saf --discipline strict,easy
  python eval/replay.py --cluster helios --workload my_trace.csv --policies all --csv out/
  python eval/replay.py --cluster my_lab.toml --workload log.swf.gz --runtime_info request --discipline easy
  python eval/replay.py --policies fcfs,my_rules.py:longest_wait
docs/semantics.md says exactly what each policy and discipline does.
"""


@dataclass(frozen=True)
class Config:
    """What eval/replay.py takes."""

    cluster: str = option(
        "philly", f"one of {', '.join(CLUSTERS)}, or a file NAME.toml, LOG.swf[.gz] or MACHINES.csv (docs/clusters.md)"
    )
    workload: str = option("", "trace file, plain or .gz; default: the cluster's sample in GPU_Traces/", metavar="FILE")
    format: str = option("", "format of the trace; default: recognised from its content", choices=tuple(FORMATS))
    skip_bad_rows: bool = option(False, SKIP)
    policies: tuple[str, ...] = option(
        ("fcfs", "sjf", "saf"), f"all, or a list with commas of: {', '.join(POLICIES)}; numbers 0-15; module:function"
    )
    discipline: tuple[str, ...] = option(("strict",), f"all, or a list with commas of: {', '.join(DISCIPLINES)}")
    queue: str = option("pool", "a queue for each pool, or one for all", choices=QUEUES)
    allocation: str = option("", ALLOCATION)
    tiers: str = option("", f"{TIERS_TEXT}; default: 1+2", choices=tuple(TIERS))
    use_milp_allocation: bool | None = option(None, USE_MILP)
    milp_time_limit: float | None = option(None, TIME_LIMIT, metavar="S")
    runtime_info: str = option("oracle", f"what policies and backfilling know of run times: {CHOICES}")
    topology: str = option("", "testbed or production; default: testbed")
    load: float | None = option(
        None, "rescale arrivals to this offered load, 0 = leave them; default: 0.95 on a testbed, else 0"
    )
    assign_pools: int | None = option(
        None, "draw pools by capacity share, with this seed, for jobs whose pool is not known", metavar="SEED"
    )
    max_jobs: int = option(0, "use only the first jobs of the trace, 0 = all")
    seed: int = option(0, "seed of everything random")
    csv: str = option("", "write summary.csv and a CSV of every job's start, end and nodes there", metavar="DIR")
    plot: str = option("", "where the picture goes; default: data/replay/CLUSTER.png", metavar="FILE.png")


def main() -> None:
    """Replay, print the table, and say where the files are."""
    config = parse(Config, description=f"{__doc__}\n{EXAMPLES}")
    found = [find_policy(word) for word in (POLICIES if config.policies == ("all",) else config.policies)]
    policies = list({policy.text + policy.name: policy for policy in found}.values())
    names = [policy.name for policy in policies]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"--policies: two functions are both called {name}; want files of different names")
    disciplines = list(dict.fromkeys(DISCIPLINES if config.discipline == ("all",) else config.discipline))
    if not policies or not disciplines:
        raise ConfigError("--policies and --discipline: want at least one of each")
    allocation = chosen(config.allocation, config.tiers, config.use_milp_allocation, config.milp_time_limit)
    if config.csv:
        writable_folder("--csv", config.csv)
    workload = load_workload(config, allocation)
    spelled = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in workload.cluster)
    picture = writable_file("--plot", config.plot or f"data/replay/{spelled}.png", ".png")
    if not is_compiled():
        tell("compiling the simulator for this machine, once; about a minute ...")
    gpus = int(workload.nodes.capacity.sum())
    title = (
        f"{workload.cluster} {workload.topology}: {gpus:,} GPUs on {len(workload.nodes.capacity):,} nodes, "
        f"{len(workload):,} jobs, offered load {workload.load:.3f}"
    )
    rules = f"queue {config.queue}, allocation {allocation}, runtime_info {config.runtime_info}"
    for policy, discipline in product(policies, disciplines):  # what cannot work is said before anything runs
        check_options(policy, discipline, config.queue, config.runtime_info)
    for note in know(workload.trace, config.runtime_info, config.seed).notes:
        tell(f"note: {note}")
    painter = Painter()
    schedules = run_all(config, workload, allocation, list(product(policies, disciplines)))
    show(schedules, f"{title}\n{rules}")
    for schedule in schedules:
        if schedule.placements.get("failed") or schedule.placements.get("limit"):
            told = ", ".join(f"{count:,} {how}" for how, count in schedule.placements.items())
            tell(f"note: placements by the MILP under {schedule.policy} {schedule.discipline}: {told}")
    if config.csv:
        files = write_csv(schedules, Path(config.csv))
        tell(f"CSV: {', '.join(str(file) for file in files)}")
    painter.replay(schedules, picture, f"{title}; {rules}")
    tell(f"picture: {picture}")


def load_workload(config: Config, allocation: Allocation) -> Workload:
    """Read the trace and make it ready for the cluster, telling what was left out and why."""
    cluster = find_cluster(config.cluster)
    path = config.workload or cluster.trace
    if not path:
        raise ConfigError(f"cluster {cluster.name} has no trace of its own; want --workload FILE")
    if not config.workload and config.cluster in CLUSTERS:
        path = str(Path(__file__).resolve().parent.parent / path)
        tell(f"note: {Path(path).name} is one of our calibrated samples, not a real trace; --workload FILE takes one")
    trace = read_told(path, config.format, config.skip_bad_rows)
    if config.max_jobs < 0:
        raise ConfigError(f"--max_jobs {config.max_jobs}: want a number > 0, or 0 for all")
    if config.max_jobs:
        trace = trace.select(slice(0, config.max_jobs))
    workload = prepare(trace, cluster, config.topology, config.load, config.assign_pools, allocation.name)
    for note in workload.notes:
        tell(f"note: {note}")
    return workload


def _update(bar: Progress, task: TaskID, started: int) -> None:
    bar.update(task, completed=started)


def run_all(
    config: Config, workload: Workload, allocation: Allocation, contenders: list[tuple[Policy, str]]
) -> list[Schedule]:
    """Run every policy and discipline, one simulation in memory at a time, behind a progress bar."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    schedules = []
    with Progress(*columns, console=console(), transient=True) as bar:
        for policy, discipline in contenders:
            task = bar.add_task(f"{policy.name} {discipline}", total=len(workload))
            simulation = Simulation(
                workload, policy, discipline, config.queue, allocation, config.runtime_info, config.seed
            )
            schedules.append(simulation.run(partial(_update, bar, task)))
            bar.remove_task(task)
    return schedules


if __name__ == "__main__":
    run(main)
