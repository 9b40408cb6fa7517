"""Put the pending jobs of an LSF cluster into the order that a policy wants."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

if __name__ == "__main__":  # this folder is first on the path then, where `import orchestrator` finds a script
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from berth.commandline import option, parse, run, writable_file
from berth.errors import ConfigError, SchedulerError
from envs.policies import POLICIES, Policy, find_policy
from orchestrator.audit import Audit
from orchestrator.lsf_acting import MEANS, Actor, Move
from orchestrator.lsf_commands import Command, Commands
from orchestrator.lsf_hosts import find_host_policy
from orchestrator.lsf_reading import Reader
from orchestrator.lsf_starting import HOST_POLICIES, ChooseHost, Starter
from orchestrator.lsf_state import Job, State, snapshot_of
from orchestrator.ordering import order
from orchestrator.rounds import MODE_TEXT, MODES, again_and_again, check_least, check_seconds, report, warn

EXAMPLES = """
examples:
  python orchestrator/lsf.py --once --policy sjf --queue normal                  # what would be done, nothing is
  python orchestrator/lsf.py --once --policy sjf --queue normal --mode advise    # the commands, to run by hand
  python orchestrator/lsf.py --policy saf --queue normal --mode apply            # every 30 s, until stopped
  python orchestrator/lsf.py --once --undo --mode apply                          # put priorities back
docs/lsf.md says what is read, what is changed, and which rights that needs.
"""


@dataclass(frozen=True)
class Config:
    """What orchestrator/lsf.py takes."""

    mode: str = option("shadow", MODE_TEXT, choices=MODES)
    policy: str = option("fcfs", f"who goes first: {', '.join(POLICIES)}; numbers 0-15; module:function")
    queue: tuple[str, ...] = option((), "queues whose jobs are put into order; default: all, but apply wants names")
    user: tuple[str, ...] = option((), "users whose jobs are; default: all")
    means: tuple[str, ...] = option(MEANS, "how the order may be changed, tried in this order", choices=MEANS)
    head: int = option(50, "how many jobs at the head of a queue are put into order; the others stay behind them")
    overtake: bool = option(False, "let jobs change places with others in their queue that are not to be handled")
    max_priority: int = option(0, "the highest priority that bmod -sp may give; 0: what bparams tells")
    assume_limit: float = option(0.0, "run limit of jobs that have none, in minutes; 0: not known", metavar="MIN")
    start: str = option("lsf", "who starts jobs: lsf, or brun: here, on hosts with room", choices=("lsf", "brun"))
    host_policy: str = option(
        "first_available", f"which host brun takes: {', '.join(HOST_POLICIES)}, or an exported policy (FILE.npz)"
    )
    once: bool = option(False, "one round, not one after the other")
    interval: float = option(30.0, "seconds between rounds", metavar="S")
    timeout: float = option(20.0, "seconds that a command of LSF may take", metavar="S")
    seed: int = option(0, "seed of the policy random")
    log: str = option(
        "data/orchestrator/lsf.jsonl", "log of every action, one JSON object a line", metavar="FILE.jsonl"
    )
    undo: bool = option(False, "put back what the log says was changed; then end")


class Lsf:
    """A cluster under LSF, read and acted on in rounds."""

    def __init__(
        self,
        config: Config,
        command: Command | None = None,
        choose_host: ChooseHost | None = None,
        warn: Callable[[str], None] = warn,
    ) -> None:
        _check(config)
        self.config = config
        self.policy: Policy = find_policy(config.policy)
        command = command or Commands(config.timeout)
        audit = Audit(writable_file("--log", config.log, ".jsonl"), warn)
        self.reader = Reader(command, warn)
        self.actor = Actor(
            command,
            self.reader,
            audit,
            warn,
            config.mode,
            config.means,
            config.head,
            config.max_priority,
            config.overtake,
        )
        chooser = choose_host or find_host_policy(config.host_policy)
        self.starter = Starter(command, self.reader, audit, warn, chooser, config.mode)
        self.warn = warn

    def round(self) -> tuple[list[Move], list[tuple[str, str]]]:
        """Read, order, act; returns the moves and the starts (job, host), made or only planned."""
        state = self.reader.state()
        wanted = self.wanted(state)
        moves: list[Move] = []
        by_queue = sorted(wanted, key=lambda job: job.queue)
        for _, jobs in groupby(by_queue, key=lambda job: job.queue):
            moves += self.actor.arrange(state, list(jobs))
        if moves and self.config.mode == "apply":
            self._verify(state.now, wanted)
        started: list[tuple[str, str]] = []
        if self.config.start == "brun":
            started = self.starter.start(wanted, state.hosts)
        return moves, started

    def wanted(self, state: State) -> list[Job]:
        """The pending jobs that are to be handled, in the order that the policy wants; jobs on hold are left alone."""
        config = self.config
        queued = [job for job in state.pending if job.state == "PEND" and self._handles(job)]
        there = {job.queue for job in state.pending}
        for queue in config.queue if state.pending else ():
            if queue not in there:
                self.warn(f"queue {queue}: no job waits there; jobs wait in {', '.join(sorted(there))}")
        assumed = config.assume_limit * 60 if config.assume_limit else float("nan")
        return [queued[i] for i in order(snapshot_of(state, queued, assumed), self.policy, config.seed)]

    def undo(self) -> list[Move]:
        """Put back what the log says was changed."""
        if not any("means" in entry for entry in self.actor.audit.entries()):
            raise ConfigError(f"--log {self.config.log}: tells of nothing that was done; want the log of what to undo")
        state = self.reader.state()
        return self.actor.undo(state._replace(pending=tuple(job for job in state.pending if self._handles(job))))

    def _handles(self, job: Job) -> bool:
        """Whether a job is one of those that the program was told to handle."""
        queues, users = self.config.queue, self.config.user
        return (not queues or job.queue in queues) and (not users or job.user in users)

    def _verify(self, now: float, wanted: Sequence[Job]) -> None:
        """Warn of queues whose head LSF still lists in another order; it may need a moment, or know better."""
        listed = [job for job in self.reader.jobs(now) if job.state == "PEND"]
        for queue in dict.fromkeys(job.queue for job in wanted):
            there = [job.id for job in listed if job.queue == queue]
            head = [job.id for job in wanted if job.queue == queue][: self.config.head]
            if [job for job in there if job in head] != [job for job in head if job in there]:
                self.warn(f"queue {queue}: sent, but LSF does not list its jobs in the wanted order yet")


def main() -> None:
    """Do one round, or one after the other, and tell what each has done."""
    config = parse(Config, description=f"{__doc__}\n{EXAMPLES}")
    cluster = Lsf(config)
    if config.undo:
        moves = [move.words for move in cluster.undo()]
        report(config.mode, moves, "nothing to undo: the log tells of no change that still stands")
    elif config.once:
        _act(cluster)
    else:  # the master may be back in the next round
        again_and_again(lambda: _act(cluster), config.interval, SchedulerError, warn)


def _act(cluster: Lsf) -> None:
    """One round, told."""
    moves, started = cluster.round()
    starts = [("brun", "-m", host, job) for job, host in started]
    report(cluster.config.mode, [*(move.words for move in moves), *starts])


def _check(config: Config) -> None:
    """Raise ConfigError for options that cannot be meant."""
    if config.mode == "apply" and not config.queue and not config.undo:
        raise ConfigError("--mode apply: want --queue with the queues whose jobs may be moved")
    if not config.means:
        raise ConfigError(f"--means: want at least one of {', '.join(MEANS)}")
    check_least(config, head=1, max_priority=0, assume_limit=0)
    check_seconds(config, "interval", "timeout")


if __name__ == "__main__":
    run(main)
