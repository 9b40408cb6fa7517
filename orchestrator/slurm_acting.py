"""Pending jobs put into a wanted order through Slurm, by its own means."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from berth.errors import SchedulerError
from orchestrator.audit import SENDING, Audit, Change
from orchestrator.commands import Answer
from orchestrator.moves import first_levels, headed
from orchestrator.rounds import NOTHING
from orchestrator.slurm_reading import Command, Reader
from orchestrator.slurm_state import Job, State

MEANS = ("site", "priority", "hold")
"""How the order is changed: a site factor in the priority, a fixed priority, held jobs let go one after the other."""

NODES = "nodes"
"""The means by which nodes are named."""

MARK = "berth"
"""The word in the comment of a held job that asks for it to be let go in its turn."""

HIGHEST = 4_000_000_000
"""The highest priority that is given; Slurm's own limit is a little above."""

OUT_OF_REACH = "nothing is done: the order is not as wanted, and cannot be had by what may be changed"
"""What is told where warnings have said why."""

_GONE = re.compile(
    r"already (finished|completing|running)|invalid job id|no longer pending|job/step already", re.IGNORECASE
)
_DENIED = re.compile(r"access/permission denied|invalid user id|operator|privilege", re.IGNORECASE)
_DOWN = re.compile(r"unable to contact slurm controller|connection refused|socket timed out|timed out", re.IGNORECASE)


class Move(NamedTuple):
    """One change of one job."""

    job: Job
    means: str
    before: Any  # site, priority: numbers; hold: 0 held, 1 let go; nodes: their names
    after: Any
    words: tuple[str, ...]
    why: str = ""


@dataclass
class Actor:
    """Plans moves and, in the mode apply, makes them; all that it does is in the audit log, before it is done."""

    command: Command
    reader: Reader
    audit: Audit
    warn: Callable[[str], None]
    mode: str = "apply"
    means: str = "site"
    head: int = 100
    most: int = 1_000_000  # how far a site factor may be from 0, or fixed priorities from each other
    changes: int = 50  # how many jobs are changed in a round
    released: int = 8  # means hold: how many jobs that were let go may wait at once
    overtake: bool = False
    who: str = ""  # in the log: who has decided
    planned: dict[str, list[Move]] = field(default_factory=dict)  # means -> what was last logged and not sent
    nothing: str = NOTHING  # what is true of the last round if it had no moves

    def arrange(self, state: State, wanted: Sequence[Job], others: Sequence[Job] = ()) -> list[Move]:
        """Put jobs into the wanted order; returns the moves that were made, or would be, at most `changes` of them.

        `others` wait, too, and are not to be handled: unless `overtake` is on, nobody passes them who shares a
        partition with them. Raises SchedulerError where Slurm refuses, or does not answer.
        """
        moves = self._let_go(state, wanted) if self.means == "hold" else self._leveled(state, wanted, others)
        made = self.send(moves[: self.changes], self.means)
        if moves and not made:
            self.nothing = "nothing was changed: the jobs concerned are past changing"
        return made

    def name_nodes(self, wanted: Mapping[int, tuple[str, ...]], pending: Sequence[Job]) -> list[Move]:
        """Name nodes for jobs that should start now (number -> nodes), and take back names that have led to nothing.

        Only where a job asks for as many nodes as are named, and its user has named none.
        """
        named = self.audit.changes(NODES, str)
        moves = []
        for job in pending:
            change = self._change_of(job, named)
            ours = change is not None and job.asked in change.given and job.asked != ""
            nodes = ",".join(wanted.get(job.id, ()))
            if nodes and len(wanted[job.id]) == job.nodes and job.asked == "" and not job.array:
                moves.append(Move(job, NODES, "", nodes, _words(NODES, job.word, nodes), f"{self.who}: starts there"))
            elif ours and nodes != job.asked:  # it did not start there: let Slurm choose again
                moves.append(Move(job, NODES, job.asked, "", _words(NODES, job.word, ""), "has not started there"))
        return self.send(moves[: self.changes], NODES)

    def undo(self, state: State, handled: Callable[[Job], bool]) -> list[Move]:
        """Put back what the log says was changed, in jobs that have not ended; returns the moves."""
        moves: list[Move] = []
        for means in (*MEANS, NODES):
            changed = self.audit.changes(means, str if means == NODES else int)
            for job in (*state.pending, *state.running):
                change = self._change_of(job, changed)
                if change is None or not handled(job):
                    continue
                moves += self._back(job, means, change, job.state == "PENDING")
        return self.send(moves, "undo")

    def _back(self, job: Job, means: str, change: Change, waits: bool) -> list[Move]:
        """What puts a job back as it was."""
        now = {"site": job.site, "priority": job.priority, "hold": int(job.priority > 0), NODES: job.asked}[means]
        if means == "site" and (not waits or job.site is None):  # not shown of running and held jobs, but it comes back
            now = change.after
        if not waits and means != "site":
            return []
        if now == change.before:
            return []
        if now not in change.given:
            self.warn(f"job {job.word}: {means} is {now!r}, not the {change.after!r} it was given: left alone")
            return []
        if means != "priority" or not self.reader.has_factors:
            return [Move(job, means, now, change.before, _words(means, job.word, change.before), "undo")]
        release = ("scontrol", "release", job.word)  # its factors make its priority again
        moves = [Move(job, means, now, change.before, release, "undo: Slurm's own again")]
        nice = self.audit.noted(change, "nice")
        if isinstance(nice, int) and nice:  # setting a priority has cleared it
            words = ("scontrol", "update", f"JobId={job.word}", f"Nice={nice}")
            moves.append(Move(job, means, now, change.before, words, "undo: its nice value"))
        return moves

    def _change_of(self, job: Job, changed: Mapping[str, Change]) -> Change | None:
        """What the log says of a job; tasks of an array inherit what the array was given."""
        for number in (job.id, job.array):
            change = changed.get(str(number))
            if change is not None and (change.is_of(job.submit) or job.restarts or job.array):
                return change
        return None

    def _leveled(self, state: State, wanted: Sequence[Job], others: Sequence[Job]) -> list[Move]:
        """The fewest moves that lead to the wanted order, those at its front first."""
        if self.means == "site" and not self.reader.has_factors:
            raise SchedulerError(
                "site factors need PriorityType=priority/multifactor in slurm.conf, and this Slurm has "
                f"{self.reader.settings.get('PriorityType', 'another')}; want it changed, or --means priority"
            )
        jobs = {str(job.id): job for job in wanted}
        current = [str(job.id) for job in state.pending if str(job.id) in jobs]
        names = [str(job.id) for job in wanted]
        rivals = {name for job in wanted for name in job.partitions}
        others = [job for job in others if rivals & set(job.partitions)]
        level = {name: jobs[name].priority for name in names}
        target = headed(current, names, self.head)
        self.nothing = NOTHING if current == target else OUT_OF_REACH
        if others and not self.overtake:
            found = self._exchanged(jobs, current, target)
        else:
            found = self._spread(jobs, current, names, level)
        moves = []
        for place, name in enumerate(target):
            if name in found and found[name] != level[name]:
                moves.append(self._move(jobs[name], found[name], place + 1, len(names)))
        return moves if self.overtake else self._fair(moves, others)

    def _spread(
        self, jobs: Mapping[str, Job], current: Sequence[str], names: Sequence[str], level: Mapping[str, int]
    ) -> dict[str, int]:
        """New priorities within what may be given, for as many of the first jobs as there is room for."""
        base = {name: _base(job, self.means) for name, job in jobs.items()}
        found = first_levels(
            current, names, level, min(HIGHEST, min(base.values(), default=0) + self.most), self.head,
            lambda found: all(abs(value - base[name]) <= self.most for name, value in found.items()),
        )  # fmt: skip
        if found is None and names:
            self.warn(
                f"--most {self.most} is too little beside the other factors of these priorities: left as they are"
            )
        return found or {}

    def _exchanged(self, jobs: Mapping[str, Job], current: Sequence[str], target: Sequence[str]) -> dict[str, int]:
        """The priorities that the jobs have now, dealt anew: nobody else is passed."""
        found = dict(zip(target, (jobs[name].priority for name in current), strict=True))
        if any(abs(value - _base(jobs[name], self.means)) > self.most for name, value in found.items()):
            self.warn(f"--most {self.most} is too little to exchange priorities: left as they are")
            return {}
        then = sorted(target, key=lambda name: (-found[name], jobs[name].id))
        if then != list(target):
            self.warn(
                "some priorities are equal, so that their jobs stay in order of submit; --overtake 1 spreads them"
            )
        return found

    def _move(self, job: Job, priority: int, place: int, count: int) -> Move:
        why = f"{self.who}: place {place} of {count}"
        if self.means == "priority":
            return Move(job, "priority", job.priority, priority, _words("priority", job.word, priority), why)
        factor = priority - _base(job, "site")
        return Move(job, "site", job.site, factor, _words("site", job.word, factor), why)

    def _fair(self, moves: list[Move], others: Sequence[Job]) -> list[Move]:
        """The moves, or none where more handled jobs than before would go before one that is not to be handled."""
        after = {move.job.id: (-self._priority_after(move), move.job.id) for move in moves}
        before = {move.job.id: (-move.job.priority, move.job.id) for move in moves}
        passed = []
        for other in others:
            place = (-other.priority, other.id)
            if sum(one < place for one in after.values()) > sum(one < place for one in before.values()):
                passed.append(other.word)
        if not passed:
            return moves
        self.warn(
            f"left as they are, since jobs that are not to be handled would be passed ({', '.join(passed[:5])}"
            f"{' ...' if len(passed) > 5 else ''}); --overtake 1 allows it"
        )
        return []

    def _priority_after(self, move: Move) -> int:
        return int(move.after) if move.means == "priority" else _base(move.job, "site") + int(move.after)

    def _let_go(self, state: State, wanted: Sequence[Job]) -> list[Move]:
        """Let held jobs go in their order, so that at most `released` of them wait for room at once."""
        let_go = self.audit.changes("hold")
        free = [job for job in state.pending if job.priority > 0 and self._change_of(job, let_go) is not None]
        room = max(0, self.released - len(free))
        first = wanted[:room]
        self.nothing = f"nothing to do: {len(free)} jobs that were let go wait, {len(wanted)} are held for their turn"
        return [
            Move(job, "hold", 0, 1, ("scontrol", "release", job.word), f"{self.who}: place {place + 1}")
            for place, job in enumerate(first)
        ]

    def send(self, moves: Sequence[Move], what: str) -> list[Move]:
        """Make moves one after the other, or log them where nothing is to be done; returns those that were made.

        All are in the log, as `sending`, before the first is sent: whatever happens to us, undo finds them.
        """
        undo = what == "undo"
        if self.mode != "apply":
            if [move[1:] for move in moves] != [move[1:] for move in self.planned.get(what, ())]:
                self.planned[what] = list(moves)
                self.audit.add_all([self._entry(move, "not sent", "", undo) for move in moves])
            return list(moves)
        if not moves:
            return []
        self.audit.add_all([self._entry(move, SENDING, "", False) for move in moves if not undo])
        made, told = [], []
        try:
            for move in moves:
                answer = self.command(*move.words)
                result = _result(answer)
                told.append(self._entry(move, result, answer.text, undo))
                if result == "ok":
                    made.append(move)
                elif result == "gone":
                    self.warn(f"job {move.job.word} is past changing: {answer.text}")
                else:
                    raise SchedulerError(f"{' '.join(move.words)}: {answer.text}; {_rights(answer, self.means)}")
        finally:
            self.audit.add_all(told)
        return made

    def _entry(self, move: Move, result: str, text: str, undo: bool) -> dict[str, Any]:
        job = move.job
        return {
            "mode": self.mode, "job": job.id, "name": job.word, "user": job.user, "account": job.account,
            "partition": ",".join(job.partitions), "submit": job.submit, "means": move.means, "undo": undo,
            "from": move.before, "to": move.after, "why": move.why, "command": list(move.words), "result": result,
            "answer": text, **({"nice": job.nice} if move.means == "priority" else {}),
        }  # fmt: skip


def _base(job: Job, means: str) -> int:
    """A job's priority without what was given to it."""
    return job.priority - (job.site or 0) if means == "site" else job.priority


def _words(means: str, job: str, value: Any) -> tuple[str, ...]:
    """The command that gives a job a value."""
    if means == "hold":
        return "scontrol", "release" if value else "uhold", job  # as its user has held it, who may let it go
    name = {"site": "SiteFactor", "priority": "Priority", NODES: "ReqNodeList"}[means]
    return "scontrol", "update", f"JobId={job}", f"{name}={value}"


def _result(answer: Answer) -> str:
    if answer.code == 0:
        return "ok"
    return "gone" if _GONE.search(answer.text) else "refused"


def _rights(answer: Answer, means: str) -> str:
    """What is wanted for a command that Slurm has refused."""
    if _DOWN.search(answer.text):
        return "the next round tries again"
    if _DENIED.search(answer.text):
        return (
            "want to be SlurmUser, root, or an operator of Slurm's (sacctmgr modify user NAME set adminlevel=Operator)"
            + ("" if means == "hold" else "; or --means hold, which the owner of a job may use, or --mode advise")
        )
    return "want another Slurm, or other --means"


def held_for_us(job: Job) -> bool:
    """Whether a job was submitted held, by its user, for an agent to let go."""
    return job.priority == 0 and job.reason == "JobHeldUser" and MARK in job.comment.split()
