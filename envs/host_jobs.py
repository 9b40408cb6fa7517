"""Hosts and jobs of an episode: generated as in chip design, or taken from a trace."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from berth.errors import ConfigError
from berth.streams import stream
from envs.host_options import HostOptions
from envs.sim.hosts import HOST, JOB
from envs.stage import split_borders
from traces.memory import asked_memory
from traces.read import read_trace

RATIOS = (2048, 4096, 8192)
"""MB of memory for each core that hosts are bought with, as far as the range of memory allows."""

BURST = 8.0
"""Mean size of a burst: a regression submits many jobs that ask for the same, and take about as long."""

ALIKE = 0.25
"""Deviation of the logarithms of run times within a burst."""

SHARES = (0.6, 0.2)
"""Shares of a trace's jobs to train on and to validate on; the rest is the test."""


class Episode(NamedTuple):
    """What an episode is made of."""

    hosts: np.ndarray  # (hosts,) HOST
    jobs: np.ndarray  # (jobs,) JOB, by submission
    horizon: float  # s, until when jobs arrive


def make_episode(options: HostOptions, seed: int) -> Episode:
    """The hosts and jobs of a seed: equal options and seed give equal ones, on every machine."""
    if options.workload:
        return _from_trace(options, seed)
    name = options.split
    hosts = _hosts(options, stream(seed, f"hosts {name}"))
    return _generated(options, hosts, stream(seed, f"jobs on hosts {name}"))


def room_for_jobs(options: HostOptions) -> int:
    """The most jobs that an episode can have."""
    if not options.workload:
        return options.episode_length * options.max_jobs_per_step
    return min(options.trace_jobs, len(trace_jobs(options).submit))


def largest_job(options: HostOptions) -> tuple[int, int]:
    """The most cores, and the most memory, that a job can ask for."""
    if not options.workload:
        return options.job_cores_range[1], options.job_memory_range[1]
    known = trace_jobs(options)
    kept = _holdable(known, _trace_hosts(options))
    if not kept.any():
        raise ConfigError(
            f"workload {options.workload}: no job fits a host even if it is empty; want larger hosts "
            "(--host_cores_range, --host_memory_range)"
        )
    return int(known.cores[kept].max()), max(int(known.memory[kept].max()), 1)


def notes(options: HostOptions) -> list[str]:
    """What a user should know of how the trace was read; nothing of generated jobs."""
    if not options.workload:
        return []
    known = trace_jobs(options)
    never = len(known.submit) - int(_holdable(known, _trace_hosts(options)).sum())
    told = (
        f"{options.workload}: {never:,} of {len(known.submit):,} jobs fit no host even if it is empty, and are left out"
    )
    header = f"{options.workload}: hosts have {_nodes_cores(known)} cores, as its header tells, not host_cores_range"
    return [*known.notes, *([header] if _nodes_cores(known) else []), *([told] if never else [])]


def _hosts(options: HostOptions, rng: np.random.Generator) -> np.ndarray:
    """Draw hosts: an even number of cores where the range has one, with 2, 4 or 8 GB for each as the range allows."""
    hosts = np.zeros(options.num_hosts, HOST)
    low, high = options.host_cores_range
    cores = rng.integers(low, high + 1, options.num_hosts)
    hosts["cores"] = np.where((cores % 2 == 1) & (cores < high), cores + 1, cores)
    wanted = hosts["cores"] * rng.choice(RATIOS, options.num_hosts)
    hosts["memory"] = np.clip(wanted, *options.host_memory_range)
    return hosts


def _generated(options: HostOptions, hosts: np.ndarray, rng: np.random.Generator) -> Episode:
    """Draw jobs that arrive in bursts, step by step.

    0 to max_jobs_per_step jobs arrive in a step, all numbers as likely; they come in bursts of jobs that ask for the
    same cores and memory. Run times are log-normal, then scaled until the jobs ask for `load` of the hosts.
    """
    counts = rng.integers(0, options.max_jobs_per_step + 1, options.episode_length)
    if not counts.any():
        counts[0] = 1
    total = int(counts.sum())
    step = np.repeat(np.arange(options.episode_length), counts)
    fresh = rng.random(total) < 1.0 / BURST
    fresh[np.flatnonzero(np.diff(step, prepend=-1))] = True  # a burst ends with its step
    burst = np.cumsum(fresh) - 1
    bursts = int(burst[-1]) + 1
    spread = options.run_time_spread
    jobs = np.zeros(total, JOB)
    jobs["submit"] = step * options.step_seconds
    low, high = options.job_cores_range
    jobs["cores"] = rng.integers(low, high + 1, bursts)[burst]
    memory = np.log(options.job_memory_range)
    jobs["memory"] = np.exp(rng.uniform(memory[0], memory[1], bursts)).round().astype(int)[burst]
    within = min(ALIKE, spread)
    between = (spread**2 - within**2) ** 0.5
    logs = between * rng.standard_normal(bursts)[burst] + within * rng.standard_normal(total)
    jobs["run_time"] = np.exp(logs)
    horizon = options.episode_length * options.step_seconds
    jobs["run_time"] *= (1.0 if options.load is None else options.load) / _offered(jobs, hosts, horizon)
    return Episode(hosts, jobs, horizon)


def _offered(jobs: np.ndarray, hosts: np.ndarray, span: float) -> float:
    """The share of all cores, or of all memory if that is more, that jobs ask for over a span of time."""
    shares = [float((jobs["run_time"] * jobs[name]).sum() / hosts[name].sum()) for name in ("cores", "memory")]
    return max(shares) / max(span, 1e-9)


class TraceJobs(NamedTuple):
    """The jobs of a trace that ask for cores and memory."""

    submit: np.ndarray  # (jobs,) s
    run_time: np.ndarray  # (jobs,) s
    cores: np.ndarray  # (jobs,)
    memory: np.ndarray  # (jobs,) MB
    machine: tuple[int, int] | None  # nodes and cores of each, where the file tells
    notes: tuple[str, ...]


def trace_jobs(options: HostOptions) -> TraceJobs:
    """The jobs of the trace that options name; raises ConfigError where they have no cores or no memory."""
    key = _key(options)
    return _taken_up[key] if key in _taken_up else _known_jobs(*key)


def take_up_jobs(options: HostOptions, jobs: TraceJobs) -> None:
    """Use these as the jobs of the trace that options name, in this process, instead of reading the file."""
    _taken_up[_key(options)] = jobs


_taken_up: dict[tuple[str, float], TraceJobs] = {}
"""What another process has read, by file and `memory_per_core`."""


def _key(options: HostOptions) -> tuple[str, float]:
    return options.workload, -1.0 if options.memory_per_core is None else options.memory_per_core


@lru_cache(maxsize=4)
def _known_jobs(path: str, memory_per_core: float) -> TraceJobs:
    """Read a trace; raises ConfigError where its jobs have no cores or no memory.

    `memory_per_core` stands for the memory that is not told, MB; those jobs are left out where it is below 0.
    """
    trace = read_trace(path)
    cores = np.asarray(trace.gpus if trace.cpus is None else trace.cpus, float)
    memory = asked_memory(trace, cores)
    if memory_per_core >= 0:
        memory = np.where(memory < 0, memory_per_core * cores, memory)
    unknown = (cores <= 0) | (memory < 0)
    if unknown.all():
        raise ConfigError(
            f"workload {path}: no job tells both cores and memory ({trace.format}); want a trace that does, or "
            "--memory_per_core MB"
        )
    told = [f"{path}: {int(unknown.sum()):,} jobs without cores or memory are left out"] if unknown.any() else []
    kept = ~unknown
    return TraceJobs(
        trace.submit[kept] - trace.submit[kept][0], trace.run_time[kept], np.ceil(cores[kept]).astype(np.int64),
        np.ceil(memory[kept]).astype(np.int64), trace.machine, tuple(told),
    )  # fmt: skip


def _trace_hosts(options: HostOptions) -> np.ndarray:
    """The hosts that a trace's jobs run on, the same for every seed.

    Their cores are those of the nodes in the file's header, where these have several.
    """
    hosts = _hosts(options, stream(0, "hosts of a trace"))
    cores = _nodes_cores(trace_jobs(options))
    if cores:
        hosts["cores"] = cores
    return hosts


def _nodes_cores(known: TraceJobs) -> int:
    """The cores of a node as a file's header tells, 0 where it does not, or nodes have but one."""
    return known.machine[1] if known.machine is not None and known.machine[1] > 1 else 0


def _holdable(known: TraceJobs, hosts: np.ndarray) -> np.ndarray:
    """Which jobs some host could hold if it were empty."""
    found = np.zeros(len(known.submit), bool)
    for cores, memory in np.unique(hosts[["cores", "memory"]]):
        found |= (known.cores <= cores) & (known.memory <= memory)
    return found


def _from_trace(options: HostOptions, seed: int) -> Episode:
    """Consecutive jobs of a split; those that no host can ever hold are left out."""
    known, hosts = trace_jobs(options), _trace_hosts(options)
    low, high = split_borders(known.submit, *SHARES)[options.split]
    rows = low + np.flatnonzero(_holdable(known, hosts)[low:high])
    if not len(rows):
        raise ConfigError(
            f"workload {options.workload}: no job of its {options.split} part fits a host; want larger hosts"
        )
    count = min(options.trace_jobs, len(rows))
    first = int(stream(seed, f"jobs of a trace {options.split}").integers(len(rows) - count + 1))
    rows = rows[first : first + count]
    jobs = np.zeros(count, JOB)
    for name in ("submit", "run_time", "cores", "memory"):
        jobs[name] = getattr(known, name)[rows]
    jobs["submit"] -= jobs["submit"][0]
    horizon = float(jobs["submit"][-1])
    if options.load is not None:
        scale = _offered(jobs, hosts, horizon) / options.load
        jobs["submit"] *= scale
        horizon *= scale
    return Episode(hosts, jobs, max(horizon, 1.0))
