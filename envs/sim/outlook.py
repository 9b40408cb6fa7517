"""What an observation says of the cluster, compiled: the pools, and when GPUs will be free."""

import numpy as np

from allocation.orders import DEFRAG, partly_change
from allocation.outlined import placing
from allocation.partly import MOST_SPARE, least_change
from allocation.placers import CONSOLIDATE
from allocation.tiers import largest
from berth.compiled import inlined, njit
from envs.sim.room import fits_now, look_at_nodes
from envs.sim.scale import MANY_JOBS, ln, scaled

OFF, PER_GPU, SORTED, CDF = range(4)
"""The lookahead modes; envs/observation.py gives them names."""

POOL_FEATURES = 9
"""How many numbers the observation has for each pool, before the lookahead."""

SOON = 3600.0
"""Seconds of the near future."""

NEAREST, FARTHEST = 60.0, 30 * 86400.0
"""Seconds from now: the first and the last of the fixed times of `cdf`."""

_PER_JOBS = np.float32(1.0 / np.log1p(MANY_JOBS))
_LN_NEAREST, _PER_LN = np.float32(np.log(NEAREST)), np.float32(1.0 / np.log(FARTHEST / NEAREST))


@njit
def remaining(now: float, start: float, guess: float) -> float:
    """How long a running job should still run; one that has outrun its guess, as long again as it has run."""
    passed = now - start
    return guess - passed if guess > passed else max(passed, 1.0)


@inlined
def look_at_pools(
    sim: np.ndarray,
    jobs: np.ndarray,
    queues: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    ends: np.ndarray,
    places: np.ndarray,
    mix: np.ndarray,
    tally: np.ndarray,
    episode: np.ndarray,
    cards: np.ndarray,
    kinds: np.ndarray,
    looks: np.ndarray,
    spare: np.ndarray,
    seen: np.ndarray,
    counts: np.ndarray,
    later: np.ndarray,
    values: np.ndarray,
    cluster: np.ndarray,
) -> None:
    """Write the cluster's features, and what is the same for all jobs of a size.

    Of a pool where no GPU was taken or given back since the last look, only what waits there is looked at again.
    """
    for p in range(len(looks)):
        looks[p].soon = 0
    if episode[0].lookahead == CDF:
        for p in range(len(looks)):
            values[looks[p].low : looks[p].low + looks[p].count] = 0.0
    now = sim[0].now
    shares = np.empty(sim[0].running, np.float32)
    for i in range(len(shares)):
        card = cards[ends[i].job]
        later[i] = remaining(now, card.since, card.guess)
        if later[i] <= SOON:
            looks[card.in_pool].soon += card.asked
    if episode[0].lookahead == CDF:
        for i in range(len(shares)):  # a loop of its own, which the compiler turns into vectors
            shares[i] = (ln(max(later[i], NEAREST)) - _LN_NEAREST) * _PER_LN
        for i in range(len(shares)):
            card = cards[ends[i].job]
            look = looks[card.in_pool]
            at = _when(later[i], shares[i], look.count)
            if at < look.count:
                values[look.low + at] += np.float32(card.asked)
    for p in range(len(pools)):
        if looks[p].stale:
            look_at_nodes(pools, capacity, free, looks, seen, counts, p)
        _write_pool(jobs, queues, pools, looks, cluster, p)
        for k in range(queues[p].size_low, queues[p].size_high):
            if kinds[k].waiting > 0 and kinds[k].version != looks[p].version:
                kinds[k].version = looks[p].version
                if not episode[0].fit:
                    kinds[k].fits = fits_now(sim, pools, capacity, free, tally, episode, kinds, looks, counts, k)
                _look_at_size(sim, pools, capacity, free, mix, tally, episode, kinds, looks, spare, counts[p], k)
    if episode[0].lookahead == CDF:
        _fractions(looks, values, cluster)
    elif episode[0].lookahead != OFF:
        _single_gpus(sim, jobs, pools, capacity, ends, places, episode, looks, later, values, cluster)


@inlined
def _write_pool(
    jobs: np.ndarray, queues: np.ndarray, pools: np.ndarray, looks: np.ndarray, cluster: np.ndarray, p: int
) -> None:
    """Write the features of one pool."""
    look, held = looks[p], queues[p].held
    share, at = 1.0 / look.gpus, p * POOL_FEATURES
    look.soon += look.free
    look.ahead = 0
    cluster[at] = look.free * share
    cluster[at + 1] = look.on_idle * share
    cluster[at + 2] = look.partly / (pools[p].high - pools[p].low)
    cluster[at + 3] = look.largest / look.widest
    cluster[at + 4] = min(ln(1.0 + queues[p].waiting) * _PER_JOBS, 1.0)
    cluster[at + 5] = look.demand / (look.demand + look.gpus)
    cluster[at + 6] = 1.0 if held >= 0 else 0.0
    cluster[at + 7] = jobs[held].gpus * share if held >= 0 else 0.0
    cluster[at + 8] = min(look.soon * share, 1.0)


@inlined
def _look_at_size(
    sim: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    free: np.ndarray,
    mix: np.ndarray,
    tally: np.ndarray,
    episode: np.ndarray,
    kinds: np.ndarray,
    looks: np.ndarray,
    spare: np.ndarray,
    counts: np.ndarray,
    k: int,
) -> None:
    """Write what is the same for all jobs of one size: whether, how and in how many ways one would fit now."""
    p, gpus, fewest = kinds[k].pool, kinds[k].gpus, kinds[k].fewest
    low, high, partly = pools[p].low, pools[p].high, looks[p].partly
    kinds[k].demand = gpus / (gpus + looks[p].free + 1.0)
    kinds[k].fragmentation = partly / (high - low)
    kinds[k].ways = 0.0
    if not kinds[k].fits:
        return
    first_tier = episode[0].tiered and largest(counts, fewest) >= gpus
    least = 1
    if episode[0].tiered:
        least = max(1, gpus - largest(counts, fewest - 1 if first_tier else fewest))
    elif sim[0].placer == CONSOLIDATE:  # whole nodes, and one with room for the rest
        least = gpus if gpus <= looks[p].widest else gpus % looks[p].widest
        least = least if least > 0 else looks[p].widest
    ways = 0
    for f in range(least, len(counts)):
        ways += counts[f]
    kinds[k].ways = ln(1.0 + ways) / ln(1.0 + high - low)
    nodes = fewest if first_tier else fewest + 1
    change = 0
    if episode[0].tiered and nodes * looks[p].widest - gpus <= MOST_SPARE:
        change = least_change(capacity, free, low, high, looks[p].widest, nodes, gpus)
    else:
        code = DEFRAG if episode[0].tiered else sim[0].placer
        found = placing(
            sim[0].placers, False, code, sim[0].tiers, free, capacity, low, high, gpus, fewest, mix[p], 0,
            spare, 0, tally,
        )  # fmt: skip
        for i in range(found):
            change += partly_change(capacity[spare[i].node], free[spare[i].node], spare[i].gpus)
    kinds[k].fragmentation = max(0, partly + change) / (high - low)


@inlined
def _when(later: float, share: float, count: int) -> int:
    """The first of so many fixed times, evenly on a log scale, that is not before a time from now; or `count`.

    `share` is how far the time lies between the first and the last of them, on that scale.
    """
    if later <= NEAREST:
        return 0
    return int(np.ceil(share * (count - 1))) if count > 1 else 1


@inlined
def _fractions(looks: np.ndarray, values: np.ndarray, cluster: np.ndarray) -> None:
    """`cdf`: the fraction of each pool's GPUs that should be free at the fixed times, from those freed between them."""
    for p in range(len(looks)):
        low, at = looks[p].low, looks[p].at
        total, share = np.float32(looks[p].free), np.float32(1.0 / looks[p].gpus)
        for i in range(looks[p].count):
            total += values[low + i]
            cluster[at + i] = min(total * share, np.float32(1.0))


@njit
def _single_gpus(
    sim: np.ndarray,
    jobs: np.ndarray,
    pools: np.ndarray,
    capacity: np.ndarray,
    ends: np.ndarray,
    places: np.ndarray,
    episode: np.ndarray,
    looks: np.ndarray,
    later: np.ndarray,
    values: np.ndarray,
    cluster: np.ndarray,
) -> None:
    """`per_gpu` and `sorted`: in how long each GPU should be free, node by node or over the whole pool.

    The GPUs of a node are told apart by nothing else, so they stand by falling time. Where the features have fewer
    values than a pool has GPUs, each is the mean of neighbours.
    """
    begin = np.zeros(len(capacity) + 1, np.int64)
    for n in range(len(capacity)):
        begin[n + 1] = begin[n] + capacity[n]
    values[:] = 0.0
    used = np.zeros(len(capacity), np.int64)
    for i in np.argsort(-later[: sim[0].running], kind="mergesort"):
        job = ends[i].job
        value = scaled(later[i])
        for at in range(jobs[job].place_at, jobs[job].place_at + jobs[job].place_count):
            n = places[at].node
            for _ in range(places[at].gpus):
                values[begin[n] + used[n]] = value
                used[n] += 1
    for p in range(len(looks)):
        low, gpus, count = looks[p].low, looks[p].gpus, looks[p].count
        if episode[0].lookahead == SORTED:
            values[low : low + gpus].sort()
        for i in range(count):
            start, stop = low + i * gpus // count, low + (i + 1) * gpus // count
            total = 0.0
            for j in range(start, stop):
                total += values[j]
            cluster[looks[p].at + i] = total / (stop - start)
