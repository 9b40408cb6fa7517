"""Placement with foresight: an integer program places a job so that the pool's next jobs find room beside it.

What is maximised: for each of the next jobs that can be placed beside the chosen one, all at once, NEXT_WORTH / its
place in line; less, for the chosen job, NODE_COST for each node, LEFT_COST for each GPU that stays free on one of its
nodes, PARTLY_COST for each node that becomes partly used (gained back for each that is filled), IMBALANCE_COST for each
unit of used² / size (orders.py). The chosen job may use either tier; each of the others the tier on which it fits now,
and if it does not fit now it is left out.

Nodes of one size with as many free GPUs are of one kind, and a job that takes t GPUs of a node moves it from the kind
(size, free) to (size, free - t). The variables count such moves, job after job, so the model has as many however many
nodes there are. Only the chosen job's moves are carried out.

Nothing is solved where nothing can be gained: if the cheapest placement of the chosen job leaves room for all the
others, it is the best there is. That is most cases.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pulp

from allocation.candidates import Kind, Pattern, Placement, kinds_of, on_lowest, partly_growth
from allocation.cheapest import cheapest
from allocation.orders import BEST_FIT, FRUGAL, partly_change, share_cost
from allocation.placers import SHARE
from allocation.tiers import fewest_nodes, tier_of, walk
from berth.compiled import records

NEXT_WORTH = 1200
"""What room for the very next job is worth; the one after it half of that, then a third, ..."""

MOST_SOLVER_NODES = 2000
"""The deterministic limit: how many nodes of its search tree a solver may look at."""

MOST_VARIABLES = 2_000
"""How large a model may be: nodes with dozens of GPUs need more, and would take seconds."""

REMEMBERED = 50_000
"""How many answers are kept: the same free GPUs and the same jobs come again and again."""

_TROUBLE = (pulp.PulpError, RuntimeError, ValueError, TypeError, AttributeError, LookupError, OSError)
_NO_JOBS = np.zeros(0, np.int64)
_log = logging.getLogger(__name__)

Term = tuple[pulp.LpVariable, int]
Moves = dict[tuple[Kind, int], pulp.LpVariable]
"""How many nodes of a kind a job takes so many GPUs of."""

HOW = ("alone", "solved", "limit", "failed")
"""How a placement was found: nothing to gain, solved, the best up to a limit, or in tier order after a failure."""


class Answer(NamedTuple):
    """A placement and how it was found."""

    nodes: Placement  # (node, GPUs), by node
    how: str


class Other(NamedTuple):
    """One of the next jobs: its place in line, its GPUs, and the nodes and tier on which it fits now."""

    place: int
    gpus: int
    nodes: int
    tier: int


class Planner:
    """Places jobs one after the other, remembering answers and counting how they were found."""

    def __init__(self, tiers: int = 2, time_limit: float = 1.0, solver_nodes: int = MOST_SOLVER_NODES) -> None:
        self.tiers, self.time_limit, self.solver_nodes = tiers, time_limit, solver_nodes
        self.counts: Counter[str] = Counter()
        self._remembered: dict[tuple[object, ...], tuple[Pattern | None, str]] = {}

    def place(self, free: np.ndarray, capacity: np.ndarray, gpus: int, ahead: Sequence[int]) -> Answer | None:
        """Place a request on nodes with `free` of `capacity` GPUs (nodes,), minding the sizes of the next jobs.

        None where the request does not fit.
        """
        frugal = cheapest_of_both(free, capacity, gpus, self.tiers)
        if frugal is None:
            return None
        kinds, others = kinds_of(free, capacity), self._others(free, capacity, gpus, ahead)
        if not others or self._all_beside(free, capacity, frugal, others):
            return self._told(Answer(frugal, "alone"))
        key = (tuple(sorted(kinds.items())), gpus, tuple(others))
        if key not in self._remembered:
            if len(self._remembered) >= REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = self._solve(kinds, capacity, gpus, others)
        pattern, how = self._remembered[key]
        if pattern is None:
            return self._told(Answer(in_tier_order(free, capacity, gpus, self.tiers), how))
        return self._told(Answer(on_lowest(pattern, free, capacity), how))

    def _told(self, answer: Answer) -> Answer:
        self.counts[answer.how] += 1
        return answer

    def _others(self, free: np.ndarray, capacity: np.ndarray, gpus: int, ahead: Sequence[int]) -> list[Other]:
        """The next jobs that could be placed beside the chosen one."""
        left = int(free.sum()) - gpus
        others = []
        for place, asked in enumerate(ahead, 1):
            fewest = int(fewest_nodes(capacity, np.array([asked]))[0])
            tier = _tier(free, capacity, asked, fewest, self.tiers) if fewest and asked <= left else 0
            if tier:
                others.append(Other(place, asked, fewest + tier - 1, tier))
        return others

    def _all_beside(
        self,
        free: np.ndarray,
        capacity: np.ndarray,
        placed: Placement,
        others: list[Other],
    ) -> bool:
        """Tell whether a simple way of placing the others beside a placement works."""
        left = free.copy()
        for node, taken in placed:
            left[node] -= taken
        for other in others:
            beside = _cheapest(BEST_FIT, left, capacity, other.gpus, other.nodes, other.tier)
            if beside is None:
                return False
            for node, taken in beside:
                left[node] -= taken
        return True

    def _solve(
        self, kinds: Counter[Kind], capacity: np.ndarray, gpus: int, others: list[Other]
    ) -> tuple[Pattern | None, str]:
        fewest = int(fewest_nodes(capacity, np.array([gpus]))[0])
        try:
            model, moves = build(kinds, gpus, fewest, self.tiers, others)
            how = solve(model.problem, self.time_limit, self.solver_nodes)
            pattern = {move: round(count.value()) for move, count in moves.items() if count.value() > 0.5}
        except _TROUBLE as trouble:  # must not stop a run
            return self._failed(f"{type(trouble).__name__}: {trouble}")
        if how == "failed" or not _holds(pattern, kinds, gpus, fewest, self.tiers):
            return self._failed(pulp.LpStatus[model.problem.status])
        return pattern, how

    def _failed(self, why: str) -> tuple[None, str]:
        """Say once that the solver failed."""
        if not self.counts["failed"]:
            _log.warning(
                "the MILP of a placement failed (%s): the lowest nodes of its tier instead; said only once", why
            )
        return None, "failed"


class Model:
    """The integer program, with the nodes of each kind as they are after the jobs placed so far."""

    def __init__(self, kinds: Counter[Kind]) -> None:
        self.problem = pulp.LpProblem("placement", pulp.LpMaximize)
        self.variables = 0
        self.most = max(size for size, _ in kinds)
        self.there = {kind: count for kind, count in sorted(kinds.items()) if kind[1] > 0}
        self.changes: dict[Kind, list[Term]] = {kind: [] for kind in self.there}

    def variable(self, name: str, most: int) -> pulp.LpVariable:
        """A whole number from 0 on."""
        self.variables += 1
        if self.variables > MOST_VARIABLES:
            raise ValueError(f"it would have more than {MOST_VARIABLES:,} variables")
        return self.problem.add_variable(name, 0, most, "Integer")

    def require(self, terms: list[Term], sense: int, value: int) -> None:
        """Add a constraint."""
        self.problem.addConstraint(pulp.LpConstraint(pulp.LpAffineExpression(terms), sense, rhs=value))

    def moves(self, job: int, gpus: int, nodes: range) -> Moves:
        """A variable for each kind of node and each number of GPUs that a job on so many nodes may take from one."""
        found = {}
        for size, free in sorted(self.changes):
            for taken in range(1, min(free, gpus) + 1):
                rest = gpus - taken
                if any(n - 1 <= rest <= (n - 1) * self.most for n in nodes):
                    found[(size, free), taken] = self.variable(f"job{job}_{size}_{free}_{taken}", max(nodes))
        return found

    def carry_out(self, moves: Moves) -> None:
        """Let moves take place: no more than there are nodes, which are of another kind then."""
        away: dict[Kind, list[Term]] = {}
        for (kind, _), count in moves.items():
            away.setdefault(kind, []).append((count, 1))
        for kind, terms in away.items():
            before = [(variable, -factor) for variable, factor in self.changes[kind]]
            self.require(terms + before, pulp.LpConstraintLE, self.there.get(kind, 0))
        for ((size, free), taken), count in moves.items():
            self.changes[size, free].append((count, -1))
            if free > taken:
                self.changes.setdefault((size, free - taken), []).append((count, 1))


def build(kinds: Counter[Kind], gpus: int, fewest: int, tiers: int, others: list[Other]) -> tuple[Model, Moves]:
    """The model, and the chosen job's moves in it."""
    model = Model(kinds)
    moves = model.moves(0, gpus, range(fewest, fewest + tiers))
    second = model.variable("tier2", tiers - 1)
    model.require([(count, 1) for count in moves.values()] + [(second, -1)], pulp.LpConstraintEQ, fewest)
    model.require(_gpus(moves), pulp.LpConstraintEQ, gpus)
    if tiers == 2:
        model.require([*_partly(moves), (second, fewest + 1)], pulp.LpConstraintLE, fewest + 1)
    model.carry_out(moves)
    worth: list[tuple[pulp.LpVariable, float]] = [(count, -_own_cost(*move)) for move, count in moves.items()]
    for other in others:
        beside = model.variable(f"beside{other.place}", 1)
        its = model.moves(other.place, other.gpus, range(other.nodes, other.nodes + 1))
        model.require([(v, 1) for v in its.values()] + [(beside, -other.nodes)], pulp.LpConstraintEQ, 0)
        if other.nodes > 1:
            model.require([*_gpus(its), (beside, -other.gpus)], pulp.LpConstraintEQ, 0)
        if other.tier == 2:
            model.require(_partly(its), pulp.LpConstraintLE, 0)
        model.carry_out(its)
        worth.append((beside, NEXT_WORTH / other.place))
    model.problem += pulp.LpAffineExpression(worth)
    return model, moves


def _gpus(moves: Moves) -> list[Term]:
    return [(count, taken) for (_, taken), count in moves.items()]


def _partly(moves: Moves) -> list[Term]:
    """By how much moves change the number of partly used nodes."""
    return [(count, partly_change(*kind, taken)) for (kind, taken), count in moves.items()]


def _own_cost(kind: Kind, taken: int) -> float:
    """What a node's share of the chosen job costs."""
    size, free = kind
    return share_cost(FRUGAL, 0, size, free, taken, size, _NO_JOBS) / size


def solve(model: pulp.LpProblem, time_limit: float, solver_nodes: int) -> str:
    """Solve in place with HiGHS, or CBC where that is absent; returns solved, limit or failed."""
    limits = {"mip_max_nodes": solver_nodes, "random_seed": 0, "mip_heuristic_run_feasibility_jump": False}
    highs = pulp.HiGHS(msg=False, threads=1, timeLimit=time_limit, gapRel=0.0, gapAbs=1e-6, **limits)
    if not highs.available():
        model.solve(pulp.PULP_CBC_CMD(msg=False, threads=1, timeLimit=time_limit, gapRel=0.0, maxNodes=solver_nodes))
        if model.status != pulp.LpStatusOptimal:
            return "failed"
        return "solved" if model.sol_status == pulp.LpSolutionOptimal else "limit"
    try:
        model.solve(highs)
    except KeyError:  # PuLP does not know HiGHS's status for the limit on nodes; the incumbent is there
        values = model.solverModel.getSolution().col_value
        for variable in model.variables():
            variable.varValue = values[variable.index]
        return "limit" if len(values) else "failed"
    if model.status != pulp.LpStatusOptimal:
        return "failed"
    return "solved" if model.sol_status == pulp.LpSolutionOptimal else "limit"


def _holds(pattern: Pattern, kinds: Counter[Kind], gpus: int, fewest: int, tiers: int) -> bool:
    """Tell whether what a solver found is a placement of a tier."""
    nodes = sum(pattern.values())
    used: Counter[Kind] = Counter()
    for (kind, _), count in pattern.items():
        used[kind] += count
    return (
        sum(count * taken for (_, taken), count in pattern.items()) == gpus
        and all(count <= kinds[kind] for kind, count in used.items())
        and (nodes == fewest or (tiers == 2 and nodes == fewest + 1 and partly_growth(pattern) <= 0))
    )


def in_tier_order(free: np.ndarray, capacity: np.ndarray, gpus: int, tiers: int) -> Placement:
    """The lowest nodes of the lowest tier that has a placement; there must be one."""
    fewest = int(fewest_nodes(capacity, np.array([gpus]))[0])
    tier = _tier(free, capacity, gpus, fewest, tiers)
    out, tally = records(len(free), SHARE), np.zeros(int(capacity.max()) + 1, np.int64)
    nodes = walk(free, capacity, 0, len(free), gpus, fewest + tier - 1, tier, out, 0, tally)
    return [(int(node), int(taken)) for node, taken in out[:nodes]]


def cheapest_of_both(free: np.ndarray, capacity: np.ndarray, gpus: int, tiers: int) -> Placement | None:
    """The placement of either tier that costs the chosen job least, whatever comes after it."""
    fewest = int(fewest_nodes(capacity, np.array([gpus]))[0])
    if fewest == 0:
        return None
    found = []
    for tier in range(1, tiers + 1):
        if fewest + tier - 1 <= len(free):
            placed = _cheapest(FRUGAL, free, capacity, gpus, fewest + tier - 1, tier)
            if placed is not None:
                cost = sum(_own_cost((int(capacity[n]), int(free[n])), taken) for n, taken in placed)
                found.append((cost, tier, placed))
    return min(found)[2] if found else None


def _cheapest(order: int, free: np.ndarray, capacity: np.ndarray, gpus: int, nodes: int, tier: int) -> Placement | None:
    out = records(min(nodes, len(free)) or 1, SHARE)
    written = cheapest(order, free, capacity, 0, len(free), gpus, nodes, tier, _NO_JOBS, out, 0)
    return [(int(node), int(taken)) for node, taken in out[:written]] or None


def _tier(free: np.ndarray, capacity: np.ndarray, gpus: int, fewest: int, tiers: int) -> int:
    tally = np.zeros(int(capacity.max()) + 1, np.int64)
    return int(tier_of(free, capacity, 0, len(free), gpus, fewest, tiers, tally))
