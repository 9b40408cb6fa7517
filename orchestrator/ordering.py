"""The order in which a policy would take the queued jobs of a Snapshot."""

import numpy as np

from berth.errors import ConfigError
from envs.policies import POLICIES, Ask, Policy, find_policy
from envs.sim.priorities import formula
from envs.snapshot import Snapshot

DRAWS = 1 << 20
"""How many random keys are drawn for jobs' numbers; they recur after so many, so that huge numbers cost no memory."""


def order(view: Snapshot, policy: str | Ask | Policy, seed: int = 0) -> np.ndarray:
    """Positions (queued,) of the queued jobs, who goes first at the front; equal keys in order of submit, then number.

    Raises ConfigError for a policy that is not known, that needs run times which are not there, or whose function
    answers something else than one number per job.
    """
    chosen = find_policy(policy)
    if not len(view.job):
        return np.zeros(0, np.int64)
    keys, ties = _keys(view, chosen, seed)
    return np.lexsort((np.arange(len(keys)), view.job, view.submit, ties, keys))


def _keys(view: Snapshot, policy: Policy, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Keys (queued,) and keys for ties (queued,), the lowest first."""
    nothing = np.zeros(len(view.job))
    if policy.ask is not None:
        return _asked(view, policy, policy.ask), nothing
    if policy.draw is not None:
        return policy.draw(DRAWS, seed)[view.job % DRAWS], nothing
    if policy.needs_run_time:
        _refuse_unknown(view, policy)
    pools = np.bincount(view.node_pool, view.capacity, minlength=int(view.pool.max()) + 1)
    sizes = np.maximum(pools, 1.0)[view.pool]
    columns = (view.submit, view.run_time, view.gpus, view.wait, sizes)
    pairs = [formula(policy.code, *(float(value) for value in row)) for row in zip(*columns, strict=True)]
    both = np.array(pairs, np.float64)
    return both[:, 0], both[:, 1]


def _refuse_unknown(view: Snapshot, policy: Policy) -> None:
    """Raise ConfigError where a policy needs run times, and jobs have none."""
    unknown = int(np.count_nonzero(~(view.run_time > 0)))
    if unknown:
        others = ", ".join(name for name, other in POLICIES.items() if not other.needs_run_time)
        raise ConfigError(
            f"policy {policy.name} needs run times, and {unknown} of {len(view.job)} queued jobs have none; "
            f"want run limits for all, or a policy that needs none: {others}"
        )


def _asked(view: Snapshot, policy: Policy, ask: Ask) -> np.ndarray:
    """A Python function's keys, checked."""
    try:
        keys = np.asarray(ask(view), dtype=np.float64)
    except (Exception, SystemExit) as trouble:
        raise ConfigError(f"policy {policy.name}: {type(trouble).__name__}: {trouble}") from trouble
    if keys.shape != view.job.shape or np.isnan(keys).any():
        came = "NaN" if keys.shape == view.job.shape else f"shape {keys.shape}"
        raise ConfigError(f"policy {policy.name}: answered {came}, want {len(view.job)} numbers, one per queued job")
    return keys
