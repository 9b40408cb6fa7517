"""One workload of the Slurm study, on a private Slurm under somebody's order, and as the simulator foresees it."""

import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.slurm_work import TRIAL
from berth.errors import SchedulerError
from envs.policies import Ask
from envs.recalling import Kin, recall
from envs.sim.seen import whole_snapshot
from envs.sim.simulator import Simulation
from envs.snapshot import Snapshot
from envs.workload import Workload, prepare
from orchestrator.orderer import Orderer, find_orderer
from orchestrator.slurm_private import PrivateSlurm
from traces.trace import Trace

ROOT = Path(__file__).resolve().parent.parent

OWN = "slurm"
"""Slurm's own order: nobody beside it."""

HEAD = 100
"""How many jobs the agent puts into order."""


class Ran(NamedTuple):
    """What became of a workload's jobs, in seconds from the first submit."""

    submit: np.ndarray  # (jobs,)
    start: np.ndarray  # (jobs,)

    @property
    def wait(self) -> float:
        """The mean wait, in seconds."""
        return float((self.start - self.submit).mean())


def run_live(trace: Trace, policy: str, log: Path, patience: float = 900.0) -> Ran:
    """Submit a trace's jobs, as sleeps, to a fresh private Slurm; raises SchedulerError where one does not run once."""
    with PrivateSlurm() as slurm:
        notes = slurm.folder / "jobs" / "started"
        notes.touch()
        notes.chmod(0o666)
        agent = None if policy == OWN else _agent(slurm, policy, log)
        try:
            numbers, submit = _submit(slurm, trace)
            end = time.monotonic() + patience
            while slurm.run("squeue", "-h", "-t", "PD,R,CG"):
                if time.monotonic() > end:
                    raise SchedulerError(f"{policy}: jobs are left after {patience:g} s")
                if agent is not None and agent.poll() is not None:
                    raise SchedulerError(f"{policy}: the agent has ended; {log} may tell why")
                time.sleep(0.5)
        finally:
            if agent is not None:
                agent.kill()
                agent.wait()
        return Ran(submit, _starts(notes.read_text(), numbers) - submit[0])._replace(submit=submit - submit[0])


def _agent(slurm: PrivateSlurm, policy: str, log: Path) -> "subprocess.Popen[bytes]":
    """The agent, as an operator runs it, after its first round."""
    words = [sys.executable, str(ROOT / "orchestrator/slurm.py"), "--policy", policy, "--partition", "gpu", "--mode",
             "apply", "--interval", "0.5", "--head", str(HEAD), "--log", str(log.with_suffix(".jsonl"))]  # fmt: skip
    surroundings = {**slurm.surroundings, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    with log.open("wb") as told:
        process = subprocess.Popen(words, env=surroundings, stdout=told, stderr=subprocess.STDOUT)
    end = time.monotonic() + 300.0  # it may compile
    while b"nothing to do" not in log.read_bytes():
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            raise SchedulerError(f"{policy}: the agent does not come up; {log} may tell why")
        time.sleep(0.1)
    return process


def _submit(slurm: PrivateSlurm, trace: Trace) -> tuple[list[int], np.ndarray]:
    """Submit the jobs at their times; returns their numbers and when each was taken, in seconds since 1970."""
    if trace.user is None or trace.request_time is None:
        raise SchedulerError(f"{trace.name}: no users or no time limits; want both")
    numbers, submit, begun = [], [], time.time()
    for i in range(len(trace)):
        time.sleep(max(0.0, begun + trace.submit[i] - time.time()))
        script = f"echo $SLURM_JOB_ID $(date +%s.%N) >> started; sleep {trace.run_time[i]:g}"
        minutes = str(int(trace.request_time[i] // 60))
        submit.append(time.time())
        numbers.append(slurm.submit(script, f"--uid={trace.user[i]}", gpus=int(trace.gpus[i]), limit=minutes))
    return numbers, np.array(submit)


def _starts(text: str, numbers: list[int]) -> np.ndarray:
    """When each job began, by its own clock; raises SchedulerError where one has not run exactly once."""
    found: dict[int, float] = {}
    for line in text.splitlines():
        number, moment = line.split()
        if int(number) in found:
            raise SchedulerError(f"job {number} has run twice")
        found[int(number)] = float(moment)
    if set(found) != set(numbers):
        raise SchedulerError(f"{len(set(numbers) - set(found))} of {len(numbers)} jobs have not run")
    return np.array([found[number] for number in numbers])


def foresee(trace: Trace, policy: str, discipline: str) -> Ran:
    """The same in the simulator, which lets the policy decide at every event and starts jobs without delay."""
    workload = prepare(trace, TRIAL, load=0)
    if not policy.endswith(".npz"):
        chosen = "fcfs" if policy == OWN else policy
        return Ran(trace.submit, Simulation(workload, chosen, discipline, runtime_info="request").run().start)
    asked = _Asked(workload, find_orderer(policy))
    simulation = Simulation(workload, asked.keys, discipline, runtime_info="request")
    asked.simulation = simulation
    return Ran(trace.submit, simulation.run().start)


class _Asked:
    """A trained policy asked by the simulator, with what ended jobs have told by then."""

    def __init__(self, workload: Workload, orderer: Orderer) -> None:
        self.orderer, trace = orderer, workload.trace
        unknown = np.full(len(trace), "-1", object)
        self.kin = Kin(trace.user if trace.user is not None else unknown, unknown, trace.gpus)
        self.run_time, self.submit = trace.run_time, trace.submit
        self.simulation: Simulation | None = None

    @property
    def keys(self) -> Ask:
        """The function that the simulator asks."""
        return self._keys

    def _keys(self, view: Snapshot) -> np.ndarray:
        if self.simulation is None:
            raise SchedulerError("asked before the simulation was there")
        world = self.simulation.world
        start = world.jobs["start"]
        ended = np.flatnonzero((start >= 0) & (start + self.run_time <= view.now))
        kin = Kin(*(column[ended] for column in self.kin))
        told = recall(kin, start[ended] + self.run_time[ended], self.run_time[ended], self.kin, self.submit)
        whole = whole_snapshot(world, told.run_time, told.history)
        order = self.orderer.plan(whole, whole.run_time, HEAD, 60.0).order
        keys = np.empty(len(order))
        keys[order] = np.arange(len(order))
        return keys
