"""Put the pending jobs of a Slurm cluster into the order that a policy wants."""

import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":  # this folder is first on the path then, where `import orchestrator` finds a script
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from berth.commandline import option, parse, run, writable_file, written_whole
from berth.errors import BerthError, ConfigError, SchedulerError
from envs import wire
from envs.desk import HOUR
from envs.policies import POLICIES
from envs.recalling import predicted
from envs.snapshot import Snapshot
from orchestrator.audit import Audit
from orchestrator.orderer import Orderer, find_orderer
from orchestrator.rounds import (
    MODE_TEXT,
    MODES,
    again_and_again,
    check_least,
    check_seconds,
    compiling_told,
    report,
    warn,
)
from orchestrator.slurm_acting import MARK, MEANS, Actor, Move, held_for_us
from orchestrator.slurm_json import COUNTED
from orchestrator.slurm_reading import ACCOUNTING, Command, Commands, Reader, check_accounting
from orchestrator.slurm_state import RUNTIME_INFO, Job, State, check_partitions, is_ready, snapshot_of

EXAMPLES = """
examples:
  python orchestrator/slurm.py --once --policy sjf --partition gpu                    # what would be done, nothing is
  python orchestrator/slurm.py --once --policy policy.npz --partition gpu --mode advise
  python orchestrator/slurm.py --policy policy.npz --partition gpu --mode apply       # every 30 s, until stopped
  python orchestrator/slurm.py --undo                                                 # put everything back
docs/slurm.md says what is read, what is changed, and which rights that needs.
"""


@dataclass(frozen=True)
class Config:
    """What orchestrator/slurm.py takes."""

    mode: str = option("", f"{MODE_TEXT}; default: shadow, but apply with --undo", choices=MODES)
    policy: str = option("fcfs", f"who goes first: {', '.join(POLICIES)}; module:function; FILE.npz of train/export.py")
    partition: tuple[str, ...] = option((), "partitions whose jobs are put into order; apply wants names")
    account: tuple[str, ...] = option((), "accounts whose jobs are; default: all")
    user: tuple[str, ...] = option((), "users whose jobs are; default: all")
    means: str = option("site", "a site factor, a fixed priority, or held jobs let go in order", choices=MEANS)
    nodes: bool = option(False, "also name the nodes (ReqNodeList) of jobs that should start at once")
    head: int = option(100, "how many jobs at the head of the queue are put into order; the others stay behind them")
    most: int = option(1_000_000, "how far from 0 a site factor may be, or fixed priorities from each other")
    changes: int = option(50, "how many jobs are changed in a round, at most")
    released: int = option(8, "with --means hold: how many jobs that were let go may wait at once")
    overtake: bool = option(False, "let jobs pass others of their partition that are not to be handled")
    runtime_info: str = option(
        "", "what a heuristic knows of run times: time limits, or what ended jobs tell; default: request; "
        "a trained policy knows what it was trained to know", choices=RUNTIME_INFO,
    )  # fmt: skip
    assume_limit: float = option(0.0, "time limit of jobs that have none, in minutes; 0: not known", metavar="MIN")
    count: str = option("", "what stands for GPUs; default: gpus, or cpus where no node has a GPU", choices=COUNTED)
    accounting: str = option("auto", "where ended jobs are read from; auto: as Slurm is set up", choices=ACCOUNTING)
    completed: str = option("", "the file that jobcomp/filetxt writes; default: as Slurm is set up", metavar="FILE")
    once: bool = option(False, "one round, not one after the other")
    interval: float = option(30.0, "seconds between rounds", metavar="S")
    timeout: float = option(20.0, "seconds that a command of Slurm may take", metavar="S")
    patience: float = option(0.5, "seconds that a trained policy may take for a round", metavar="S")
    seed: int = option(0, "seed of the policy random")
    snapshot: str = option("", "write what the policy sees, for orchestrator/whatif.py", metavar="FILE.json")
    log: str = option(
        "data/orchestrator/slurm.jsonl", "log of every change, a JSON object a line", metavar="FILE.jsonl"
    )
    undo: bool = option(False, "put back what the log says was changed; then end (--mode shadow: show it alone)")

    @property
    def manner(self) -> str:
        """The mode: as asked for, else shadow, which changes nothing, but for putting back what was changed."""
        return self.mode or ("apply" if self.undo else "shadow")


class Slurm:
    """A cluster under Slurm, read and acted on in rounds."""

    def __init__(
        self,
        config: Config,
        command: Command | None = None,
        orderer: Orderer | None = None,
        warn: Callable[[str], None] = warn,
    ) -> None:
        _check(config)
        self.config, self.warn = config, warn
        self.orderer = orderer or find_orderer(config.policy, config.seed, config.nodes)
        command = command or Commands(config.timeout)
        self.audit = Audit(writable_file("--log", config.log, ".jsonl"), warn)
        self.reader = Reader(command, warn, config.count, config.accounting, config.completed)
        self.actor = Actor(
            command, self.reader, self.audit, warn, config.manner, config.means, config.head, config.most,
            config.changes, config.released, config.overtake, self.orderer.name,
        )  # fmt: skip
        self._trouble = ""

    def round(self) -> list[Move]:
        """Read, order, act; returns the moves that were made, or would be."""
        state = self.reader.state()
        queued = self.queued(state)
        view = self.view(state, queued)
        if self.config.snapshot:
            with written_whole(Path(self.config.snapshot)) as begun:
                begun.write_text(wire.write(view), encoding="utf-8")
        plan = self.orderer.plan(view, self.expected(view), self.config.head, self.config.patience)
        others = [job for job in state.pending if is_ready(job, state.now) and not self.handles(job)]
        moves = self.actor.arrange(state, [queued[i] for i in plan.order], others)
        if self.config.nodes:
            named = {queued[row].id: nodes for row, nodes in plan.starts.items()}
            moves += self.actor.name_nodes(named, queued)
        return moves

    def queued(self, state: State) -> list[Job]:
        """The pending jobs that are to be put into order: ours, and ready; with --means hold, those held for us."""
        if self.config.means == "hold":
            ready = [job for job in state.pending if held_for_us(job)]
        else:
            ready = [job for job in state.pending if is_ready(job, state.now)]
        ours = [job for job in ready if self.handles(job) and job.gpus > 0]
        return self._told(ours) if self.config.means == "site" else ours

    def _told(self, jobs: list[Job]) -> list[Job]:
        """The jobs whose site factors are known; one may have started since, but raises SchedulerError if none is."""
        untold = [job.word for job in jobs if job.site is None]
        if len(untold) == len(jobs) > 1:
            raise SchedulerError(f"sprio: came no site factor of {len(jobs)} pending jobs, want one of each")
        if untold:
            self.warn(f"sprio tells no site factor of {', '.join(untold[:5])}: left alone in this round")
        return [job for job in jobs if job.site is not None]

    def view(self, state: State, queued: list[Job]) -> Snapshot:
        """What the policy sees, checked as if it came from outside: compiled code trusts it."""
        config = self.config
        check_partitions(state, config.partition)
        info = self.orderer.runtime_info or config.runtime_info or "request"
        assumed = config.assume_limit * 60 if config.assume_limit else float("nan")
        return wire.read(wire.write(snapshot_of(state, queued, config.partition, info, assumed)))

    def expected(self, view: Snapshot) -> np.ndarray:
        """How long queued jobs should run, whatever the policy may know."""
        told = np.full(len(view.job), HOUR) if view.history is None else predicted(view.history)
        return np.where(np.isnan(view.run_time), told, view.run_time)

    def undo(self) -> list[Move]:
        """Put back what the log says was changed, whoever has decided it."""
        if not any("means" in entry for entry in self.audit.entries()):
            raise ConfigError(f"--log {self.config.log}: tells of nothing that was done; want the log of what to undo")
        return self.actor.undo(self.reader.state(), self.handles)

    def handles(self, job: Job) -> bool:
        """Whether a job is one of those that the program was told to handle: all its partitions, its account, user."""
        config = self.config
        return (
            (not config.partition or set(job.partitions) <= set(config.partition))
            and (not config.account or job.account in config.account)
            and (not config.user or job.user in config.user)
        )

    def tell_trouble(self, text: str) -> None:
        """Warn of a round that came to nothing, and log it."""
        self.warn(f"{text} (Slurm goes on by itself)")
        self.log_trouble(text)

    def log_trouble(self, text: str) -> None:
        """Log why a round came to nothing, once for as long as it stays the same."""
        if text != self._trouble:
            self._trouble = text
            try:
                self.audit.add(mode=self.config.manner, error=text)
            except ConfigError as trouble:  # a full disk ends no agent: without its log it changes nothing
                self.warn(str(trouble))


def main() -> None:
    """Do one round, or one after the other, and tell what each has done."""
    config = parse(Config, description=f"{__doc__}\n{EXAMPLES}")
    cluster = Slurm(config)
    with cluster.audit.alone() if config.manner == "apply" else nullcontext(), compiling_told():
        if config.undo:
            moves = cluster.undo()
            report(config.manner, [move.words for move in moves], "nothing to undo: no change of the log still stands")
        elif config.once:
            _act_once(cluster)
        else:
            again_and_again(lambda: _act(cluster), config.interval, BerthError, cluster.tell_trouble)


def _act_once(cluster: Slurm) -> None:
    """One round, told; what goes wrong is in the log, too."""
    try:
        _act(cluster)
    except BerthError as mistake:
        cluster.log_trouble(str(mistake))
        raise


def _act(cluster: Slurm) -> None:
    """One round, told."""
    begun = time.monotonic()
    moves = cluster.round()
    report(cluster.config.manner, [move.words for move in moves], cluster.actor.nothing)
    took = time.monotonic() - begun
    if took > cluster.config.interval:
        cluster.warn(f"this round took {took:.1f} s, longer than --interval {cluster.config.interval:g}")


def _check(config: Config) -> None:
    """Raise ConfigError for options that cannot be meant."""
    if config.mode == "apply" and not config.partition and not config.undo:
        raise ConfigError("--mode apply: want --partition with the partitions whose jobs may be changed")
    if config.means == "hold" and config.nodes:
        raise ConfigError(f"--nodes does nothing with --means hold, which lets jobs go that say {MARK}; leave one out")
    if config.snapshot and not config.snapshot.endswith(".json"):
        raise ConfigError(f"--snapshot {config.snapshot}: want a name that ends in .json")
    check_accounting(config.accounting, config.completed)
    check_least(config, head=1, most=1, changes=1, released=1, assume_limit=0, seed=0)
    check_seconds(config, "interval", "timeout", "patience")
    if config.most > 2_000_000_000:
        raise ConfigError(f"--most {config.most}: want at most 2000000000, about as far as Slurm's site factors go")


if __name__ == "__main__":
    run(main)
