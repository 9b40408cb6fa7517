"""What an agent sees: the features by name, and the spaces they live in."""

from typing import NamedTuple

import numpy as np

from berth.compiled import records
from envs.sim import observing, outlook
from envs.sim.cards import LOOK
from envs.sim.cluster import Nodes

LOOKAHEAD_MODES = {"off": outlook.OFF, "per_gpu": outlook.PER_GPU, "sorted": outlook.SORTED, "cdf": outlook.CDF}
"""How the observation tells when GPUs will be free, by name."""

WINDOW_ORDERS = {"baseline": observing.BASELINE_ORDER, "arrival": observing.ARRIVAL_ORDER, "mix": observing.MIX}
"""Which jobs the window shows, by name."""

MOST_VALUES = 512
"""How many lookahead values there are at most; where a cluster has more GPUs, each stands for several."""


class Feature(NamedTuple):
    """One number of the observation, in [0, 1]."""

    name: str
    text: str


_SCALE = "ln(1 + {}) / ln(1 + 10⁸ s)"

JOB_FEATURES = (
    Feature("wait", f"time since submit: {_SCALE.format('w')}"),
    Feature("gpus", "GPUs asked for: ln(1 + n) / ln(1 + 10⁴)"),
    Feature("share", "GPUs asked for / GPUs of its pool"),
    Feature("run_time", f"run time as far as runtime_info tells: {_SCALE.format('r')}; 0 where it is hidden"),
    Feature("demand", "demand over supply: n / (n + idle GPUs of its pool + 1)"),
    Feature("availability", "near future: s / (s + d), s the GPUs of its pool that should be idle within an hour, d "
                            "what the jobs of its pool up to its slot ask for"),
    Feature("fragmentation", "partly used nodes / nodes of its pool, after the placement that leaves fewest; as they "
                             "are now where it does not fit"),
    Feature("ways", "ln(1 + k) / ln(1 + nodes of its pool), k the nodes that a placement could use, by their idle "
                    "GPUs; 0: none"),
    Feature("fits", "1 if it would start at once"),
    Feature("pool", "(number of its pool + 0.5) / pools"),
    Feature("by_user", "typical run time (geometric mean, log scale) of the last ten ended jobs of its user and size"),
    Feature("by_vc", "the same of its virtual cluster and size"),
    Feature("by_size", "the same of its size; where a group has no ended job, the next wider one stands for it"),
    Feature("last_by_user", "run time, log scale, of the last ended job of its user and size"),
    Feature("last_by_vc", "the same of its virtual cluster and size"),
    Feature("last_by_size", "the same of its size; wider groups stand for empty ones"),
    Feature("predicted", "mean run time, log scale, of the last ten ended jobs most like it"),
    Feature("spread", "standard deviation of the logarithms of these run times / 8"),
    Feature("seen", "how many these are / 10"),
    Feature("likeness", "who these are: 1 its user's, 2/3 its VC's, 1/3 of its size, 0 any"),
    Feature("all_by_user", "typical run time (geometric mean, log scale) of all ended jobs of its user and size"),
    Feature("all_by_vc", "the same of its virtual cluster and size"),
    Feature("all_by_size", "the same of its size; wider groups stand for empty ones"),
    Feature("near_by_user", "typical run time, log scale, of those that have ended by now of the 16 jobs of its user "
                            "and size before it and the 16 after it, the d-th with the weight 1/d; by_user with 1/2"),
    Feature("near_by_vc", "the same of its virtual cluster and size"),
    Feature("near_by_size", "the same of its size"),
    Feature("going_by_user", "how long those of them run that run now: mean of ln(1 + t) / ln(1 + 10⁸ s) with the same "
                             "weights; 0: none runs"),
    Feature("going_by_vc", "the same of its virtual cluster and size"),
    Feature("going_by_size", "the same of its size"),
    Feature("near_seen_user", "sum of the weights of those that have ended / 8"),
    Feature("near_seen_vc", "the same of its virtual cluster and size"),
    Feature("near_seen_size", "the same of its size"),
    Feature("going_seen_user", "sum of the weights of those that run / 8"),
    Feature("going_seen_vc", "the same of its virtual cluster and size"),
    Feature("going_seen_size", "the same of its size"),
    Feature("slot", "(number of its slot + 1) / window"),
)  # fmt: skip
"""The columns of `jobs`."""

JOB_NAMES = [feature.name for feature in JOB_FEATURES]

POOL_FEATURES = (
    Feature("idle", "idle GPUs / GPUs"),
    Feature("idle_nodes", "GPUs on wholly idle nodes / GPUs"),
    Feature("partly", "partly used nodes / nodes"),
    Feature("largest", "most idle GPUs on a node / GPUs of the largest node"),
    Feature("waiting", "ln(1 + waiting jobs) / ln(1 + 10⁶)"),
    Feature("demand", "d / (d + GPUs), d what the waiting jobs ask for"),
    Feature("held", "1 if a chosen job holds the pool"),
    Feature("held_gpus", "GPUs that it asks for / GPUs"),
    Feature("soon", "GPUs that should be idle within an hour / GPUs"),
)
"""What `cluster` has for each pool, one pool after the other, before the lookahead."""

LOOKAHEAD_TEXTS = {
    "off": "zeros",
    "per_gpu": "in how long each GPU should be free, ln(1 + t) / ln(1 + 10⁸ s), node by node, by falling time in each",
    "sorted": "the same values of a pool, sorted",
    "cdf": "the fraction of a pool's GPUs that should be free at fixed times, from a minute to 30 days on a log scale",
}
"""What the lookahead values are, by mode."""

assert len(JOB_FEATURES) == observing.JOB_FEATURES
assert len(POOL_FEATURES) == outlook.POOL_FEATURES


def lookahead_layout(nodes: Nodes) -> np.ndarray:
    """Where each pool's lookahead stands in `cluster` (pools,) LOOK: a value for each GPU, or for several."""
    gpus = nodes.pool_gpus
    total = int(gpus.sum())
    counts = gpus if total <= MOST_VALUES else np.maximum(gpus * MOST_VALUES // total, 1)
    looks = records(len(gpus), LOOK)
    looks["count"], looks["gpus"] = counts, gpus
    looks["at"] = len(gpus) * len(POOL_FEATURES) + np.cumsum(counts) - counts
    looks["low"] = np.cumsum(gpus) - gpus
    looks["widest"] = np.maximum.reduceat(nodes.capacity, nodes.first[:-1])
    return looks
