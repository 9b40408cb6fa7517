"""The best schedule of a handful of jobs, by an integer program.

GPUs flow from job to job: what one gives back when it ends, others take (Artigues, Michelon and Reusser 2003). They are
interchangeable here, so that the optimum is a bound for schedules that must also find nodes.
"""

import numpy as np
import pulp

from eval.bounds import Demand, cost, weights

FEW = 7
"""Up to so many jobs of a pool the optimum is looked for."""

SECONDS = 5.0
"""For how long; a search that is cut short leaves a bound all the same."""

SAFE = 1e-5
"""By what share a bound is lowered: solvers keep to their constraints to about a millionth."""


def least_cost(pool: Demand, score: str) -> float:
    """A bound, the optimum but for rounding, of the sum of a score over the jobs of a pool."""
    alone = float(cost(pool, score, pool.release).sum())
    model, seconds = _model(pool, score)
    solver = pulp.HiGHS(msg=False, timeLimit=SECONDS, threads=1)
    try:
        model.solve(solver)
        found = float(model.solverModel.getInfo().mip_dual_bound) * seconds
    except (pulp.PulpError, AttributeError, RuntimeError):
        return alone
    if not np.isfinite(found):
        return alone
    return max(alone, found - SAFE * abs(found))


def _model(pool: Demand, score: str) -> tuple[pulp.LpProblem, float]:
    """The program, and by what its objective is multiplied: times are counted in the longest there can be."""
    jobs, weight = range(len(pool.submit)), weights(score, pool.run_time)
    longest = float(pool.release.max() + pool.run_time.sum() + pool.times[-1]) or 1.0
    run, release, submit = pool.run_time / longest, pool.release / longest, pool.submit / longest
    model = pulp.LpProblem("window", pulp.LpMinimize)
    start = [pulp.LpVariable(f"start_{j}", float(release[j]), 2.0) for j in jobs]
    worth = [pulp.LpVariable(f"cost_{j}", 0) for j in jobs]
    model += pulp.lpSum(worth)
    for j in jobs:
        ran = 0.0 if score == "wait" else float(run[j])
        model += worth[j] >= float(weight[j]) * (start[j] - float(submit[j]) + ran)
        if score == "bounded_slowdown":
            model += worth[j] >= 1.0 / longest
    takes: dict[int, list[pulp.LpVariable]] = {j: [] for j in jobs}
    gives: dict[int, list[pulp.LpVariable]] = {j: [] for j in jobs}
    for i in jobs:
        for j in jobs:
            if i == j:
                continue
            after = pulp.LpVariable(f"after_{i}_{j}", cat="Binary")
            flow = pulp.LpVariable(f"flow_{i}_{j}", 0)
            model += flow <= float(min(pool.gpus[i], pool.gpus[j])) * after
            model += start[j] >= start[i] + float(run[i]) - 3.0 * (1 - after)
            takes[j].append(flow)
            gives[i].append(flow)
    back = np.diff(pool.idle, prepend=0.0)
    for k, (when, gpus) in enumerate(zip(pool.times / longest, back, strict=True)):
        out = []
        for j in jobs:
            flow = pulp.LpVariable(f"idle_{k}_{j}", 0)
            if when > release[j]:
                after = pulp.LpVariable(f"since_{k}_{j}", cat="Binary")
                model += flow <= float(pool.gpus[j]) * after
                model += start[j] >= float(when) * after
            takes[j].append(flow)
            out.append(flow)
        model += pulp.lpSum(out) <= float(gpus)
    for j in jobs:
        model += pulp.lpSum(takes[j]) == float(pool.gpus[j])
        model += pulp.lpSum(gives[j]) <= float(pool.gpus[j])
    return model, longest
