"""Pending jobs put into a wanted order through LSF, by the gentlest means that it accepts."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from berth.errors import SchedulerError
from orchestrator.audit import Audit
from orchestrator.lsf_commands import Command, LsfAnswer
from orchestrator.lsf_reading import Reader
from orchestrator.lsf_state import Job, State, logged
from orchestrator.moves import first_levels, headed, to_top_by_priority

MEANS = ("aps", "sp", "btop")
"""How the order can be changed, the gentlest first: system APS values, users' priorities, positions."""

HIGHEST_APS = 1_000_000
"""The highest system APS value that is given."""


class Move(NamedTuple):
    """One command that changes a job's place."""

    job: Job
    means: str
    before: (
        int  # aps: the value given before, 0 for none; sp: the priority; btop: the place among the jobs handled, from 1
    )
    after: int
    words: tuple[str, ...]


@dataclass
class Actor:
    """Plans moves and, in the mode apply, makes them; all that it does is in the audit log."""

    command: Command
    reader: Reader
    audit: Audit
    warn: Callable[[str], None]
    mode: str = "apply"
    means: tuple[str, ...] = MEANS
    head: int = 50
    highest: int = 0  # priority that a user may give; 0: what bparams tells
    overtake: bool = False
    refused: dict[str, str] = field(default_factory=dict)  # means -> what LSF said
    planned: dict[str, list[Move]] = field(default_factory=dict)  # queue -> what was last logged and not sent

    def arrange(self, state: State, wanted: Sequence[Job]) -> list[Move]:
        """Put jobs of one queue, all in PEND, into the wanted order; returns the moves that were made, or would be.

        A means that LSF refuses is not tried again, and the next one takes its turn. Raises SchedulerError where LSF
        refuses all, or does not answer.
        """
        for means in self.means:
            if not self._usable(means):
                continue
            moves = self.plan(state, wanted, means)
            if moves is None:
                continue
            if self.mode != "apply":
                self._log_plan(moves)
                return moves
            refusal = self._send(moves)
            if not refusal:
                return moves
            self.warn(f"{means} is refused: {refusal}")
            self.refused[means] = refusal
            state = self.reader.state()
            there = {job.id: job for job in state.pending if job.state == "PEND"}
            wanted = [there[job.id] for job in wanted if job.id in there]
        names = [job.id for job in wanted]
        listed = [job.id for job in state.pending if job.id in names]
        if listed == headed(listed, names, self.head):
            return []
        told = "; ".join(f"{means}: {text}" for means, text in self.refused.items())
        raise SchedulerError(
            f"queue {wanted[0].queue} cannot be put into order by {', '.join(self.means)} "
            f"({told or 'not usable here'}); want an administrator, or --user with your own jobs, or other --means"
        )

    def plan(self, state: State, wanted: Sequence[Job], means: str) -> list[Move] | None:
        """The fewest moves of one means that lead to the wanted order; None where it cannot be reached by it."""
        jobs = {job.id: job for job in wanted}
        queue = [job for job in state.pending if wanted and job.queue == wanted[0].queue]
        level = self._levels(queue, means)
        listed = [job.id for job in queue if job.id in jobs]
        current = sorted(listed, key=lambda job: -level[job]) if means == "aps" else listed
        names = [job.id for job in wanted]
        target = headed(current, names, self.head)
        if means == "btop":
            moved = to_top_by_priority(current, target, level)
            moves = [
                Move(jobs[job], means, current.index(job) + 1, target.index(job) + 1, _words(means, job, 0))
                for job in moved
            ]
        elif means == "sp" and any(level[job] == 0 for job in current):
            self.warn("sp: bjobs -l tells no priorities, so that the former ones could not be put back")
            return None
        else:
            found = self._leveled(current, names, level, means)
            if found is None:
                return None
            moves = [Move(jobs[job], means, level[job], new, _words(means, job, new)) for job, new in found.items()]
        return moves if self.overtake else self._fair(moves, queue, jobs, level)

    def undo(self, state: State) -> list[Move]:
        """Put back what the log says was changed, in jobs that still wait; returns the moves."""
        moves, waiting = [], {job.id: job for job in state.pending}
        for means in ("aps", "sp"):
            for change in self.audit.changes(means).values():
                job = waiting.get(change.job)
                if job is None or not change.is_of(job.submit):
                    self.warn(f"job {change.job} waits no more: nothing to put back")
                elif means == "sp" and job.priority != change.after:
                    self.warn(
                        f"job {job.id} has priority {job.priority}, not the {change.after} it was given: left alone"
                    )
                else:
                    words = _words(means, job.id, change.before)
                    moves.append(Move(job, means, change.after, change.before, words))
        left = [job for job in self.audit.changes("btop") if job in waiting]
        if left:
            self.warn(
                f"btop cannot be undone exactly, LSF keeps no former positions: left as they are: {', '.join(left)}"
            )
        for move in moves:
            if self.mode != "apply":
                self._log(move, "not sent", "", undo=True)
                continue
            answer, result = self._made(move, undo=True)
            if result == "refused":
                self.warn(f"job {move.job.id} could not be put back: {answer.text}")
        return moves

    def _usable(self, means: str) -> bool:
        """Whether a means may work here, as far as is known before it is tried."""
        if means in self.refused:
            return False
        if means == "aps":  # LSF without JSON has none, or is OpenLava
            return self.reader.form == "json" or self.means == ("aps",)
        if means == "sp":
            self.highest = self.highest or self.reader.highest_priority()
            return self.highest > 0
        return True

    def _levels(self, queue: Sequence[Job], means: str) -> dict[str, int]:
        """What decides between jobs before their places do; the system APS values are those in the log."""
        if means != "aps":
            return {job.id: job.priority for job in queue}
        given = self.audit.changes("aps")
        return {
            job.id: given[job.id].after if job.id in given and given[job.id].is_of(job.submit) else 0 for job in queue
        }

    def _leveled(
        self, current: Sequence[str], wanted: Sequence[str], level: Mapping[str, int], means: str
    ) -> dict[str, int] | None:
        """New levels for as many of the first jobs as there are levels for."""
        highest = HIGHEST_APS if means == "aps" else self.highest
        text = f"{means}: {highest} priorities are too few; ordering the first {{}} jobs only"
        return first_levels(current, wanted, level, highest, self.head, fewer=lambda head: self.warn(text.format(head)))

    def _fair(
        self, moves: list[Move], queue: Sequence[Job], handled: Collection[str], level: Mapping[str, int]
    ) -> list[Move]:
        """The moves, or none where a job would change places with others in its queue that are not to be handled."""
        places = {job.id: i for i, job in enumerate(queue)}
        others = [job.id for job in queue if job.state == "PEND" and job.id not in handled]
        passed = {
            other
            for move in moves
            for other in others
            if _swaps(move, places[other] < places[move.job.id], level[other])
        }
        if not passed:
            return moves
        names = [job.id for job in queue if job.id in passed]
        self.warn(
            f"queue {queue[0].queue}: left as it is, since jobs that are not to be handled would be passed or let by "
            f"({', '.join(names[:5])}{' ...' if len(names) > 5 else ''}); --overtake 1 allows it"
        )
        return []

    def _send(self, moves: Sequence[Move]) -> str:
        """Make moves one after the other; returns what LSF said where it refused one, and stops there."""
        for move in moves:
            answer, result = self._made(move)
            if result == "refused":
                return answer.text
        return ""

    def _made(self, move: Move, undo: bool = False) -> tuple[LsfAnswer, str]:
        """Run a move's command and log it, whatever happens; raises SchedulerError where LSF does not answer."""
        result, text = "unknown", "cut short"
        try:
            answer = self.command(*move.words)
            result, text = _result(answer), answer.text
        finally:
            self._log(move, result, text, undo)
        if answer.is_down:
            raise SchedulerError(f"{' '.join(move.words)}: {answer.text}")
        if result == "gone":
            self.warn(f"job {move.job.id} is past moving: {answer.text}")
        return answer, result

    def _log_plan(self, moves: list[Move]) -> None:
        """Log moves that are not made, once for as long as they stay the same."""
        if moves and self.planned.get(moves[0].job.queue) != moves:
            self.planned[moves[0].job.queue] = moves
            for move in moves:
                self._log(move, "not sent", "")

    def _log(self, move: Move, result: str, text: str, undo: bool = False) -> None:
        self.audit.add(
            **logged(move.job, self.mode, move.means, move.before, move.after, move.words, result, text, undo)
        )


def _result(answer: LsfAnswer) -> str:
    if answer.code == 0:
        return "ok"
    return "gone" if answer.is_gone else "refused"


def _words(means: str, job: str, value: int) -> tuple[str, ...]:
    """The command that gives a job a level, or moves it to the top; an APS value of 0 takes it away."""
    if means == "btop":
        return "btop", job
    if means == "sp":
        return "bmod", "-sp", str(value), job
    return ("bmod", "-aps", f"system={value}", job) if value else ("bmod", "-apsn", job)


def _swaps(move: Move, was_behind: bool, other: int) -> bool:
    """Whether a move may bring a job to the other side of one that has this level."""
    if move.means == "btop":
        return was_behind and move.job.priority == other
    return move.after >= other if was_behind else move.after <= other
