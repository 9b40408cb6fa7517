"""All that one simulation works on, laid out for the kernel."""

from typing import NamedTuple

import numpy as np

from allocation.orders import FGD
from allocation.outlined import placers_address
from allocation.placers import most_nodes, never_gains
from allocation.tiers import fewest_nodes
from berth.compiled import njit, records
from envs.sim.cluster import Nodes
from envs.sim.order import all_keys, rank_jobs, ranks, size_classes
from envs.sim.rankset import words_for
from envs.sim.state import CONSERVATIVE, END, JOB, LINK, MEMORY, NODE, PLACE, POOL, QUEUE, RECENT, SIM, SIZE


class World(NamedTuple):
    """The arrays of one simulation, in the order in which `kernel.replay` takes them; state.py describes the rows."""

    sim: np.ndarray  # (1,) SIM
    jobs: np.ndarray  # (jobs,) JOB
    links: np.ndarray  # (jobs or 0,) LINK
    queues: np.ndarray  # (queues,) QUEUE
    pools: np.ndarray  # (pools,) POOL
    sizes: np.ndarray  # (size classes,) SIZE
    capacity: np.ndarray  # (nodes,) int32 GPUs
    free: np.ndarray  # (nodes,) int32 idle GPUs
    nodes: np.ndarray  # (nodes,) NODE
    ends: np.ndarray  # (GPUs,) END
    places: np.ndarray  # (places,) PLACE
    bits: np.ndarray  # (words,) int64, the waiting ranks (rankset.py)
    by_rank: np.ndarray  # (jobs or 0,) int32, the job at each rank
    least: np.ndarray  # (words or 0,) float64 s, the shortest estimate below each word of bits
    lengths: np.ndarray  # (jobs or 0,) float64 s, the estimate of the job at each rank
    similar: np.ndarray  # (jobs, levels) int32, groups to predict from
    recent: np.ndarray  # (groups, MEMORY) float64, what the predictor has seen
    trial: np.ndarray  # (nodes,) int32, scratch: idle GPUs at another time
    mix: np.ndarray  # (pools, largest node + 2 + RECENT or 0) int64, sizes of the pools' last jobs (moves.notice)
    tally: np.ndarray  # (largest node + 1,) int64, scratch of the placers

    def clockwork(self) -> tuple[np.ndarray, ...]:
        """What `kernel.advance` takes."""
        without = ("pools", "sizes", "by_rank", "trial", "tally")
        return tuple(array for name, array in zip(self._fields, self, strict=True) if name not in without)

    def desk(self) -> tuple[np.ndarray, ...]:
        """What `kernel.schedule` takes."""
        without = ("similar", "recent")
        return tuple(array for name, array in zip(self._fields, self, strict=True) if name not in without)

    def single(self) -> tuple[np.ndarray, ...]:
        """What `one_by_one.replay_one_by_one` takes."""
        w = self
        return w.sim, w.jobs, w.links, w.pools, w.capacity, w.free, w.nodes, w.places, w.mix, w.tally

    def listed(self, policy: int) -> "World":
        """Keep queues as lists, and compute a policy's keys at every decision."""
        self.sim["policy"] = policy
        return self._replace(links=_links(len(self.jobs)))

    def ranked_by(self, policy: int, by_size: bool) -> "World":
        """Keep queues as ranks by a policy whose keys do not change with time."""
        jobs = self.jobs
        self.sim["policy"] = policy
        return self._ranked(*all_keys(policy, jobs["submit"], jobs["estimate"], jobs["asked"]), by_size)

    def ranked(self, keys: np.ndarray, by_size: bool) -> "World":
        """Keep queues as ranks by keys that were made beforehand."""
        return self._ranked(keys, np.zeros(0), by_size)

    def _ranked(self, keys: np.ndarray, ties: np.ndarray, by_size: bool) -> "World":
        stretches = self.sizes if by_size else self.queues
        order = rank_jobs(keys, ties, self.jobs["size_class" if by_size else "queue"], len(stretches))
        stretches["low"], stretches["high"] = order.low[:-1], order.low[1:]
        self.jobs["rank"] = ranks(order.by_rank)
        self.sim["ranked"], self.sim["by_size"] = True, by_size
        world = self._replace(bits=words_for(len(keys)), by_rank=order.by_rank)
        if not by_size:
            needs_links = self.sim["discipline"][0] == CONSERVATIVE
            return world._replace(links=_links(len(keys))) if needs_links else world
        links = _links(len(self.jobs))
        links["priority"] = ranks(rank_jobs(keys, ties, np.zeros(len(keys), np.int32), 1).by_rank)
        least, lengths = np.full(len(world.bits), np.inf), self.jobs["estimate"][order.by_rank]
        return world._replace(links=links, least=least, lengths=lengths)


def make_world(
    nodes: Nodes,
    pool: np.ndarray,
    submit: np.ndarray,
    run_time: np.ndarray,
    gpus: np.ndarray,
    estimate: np.ndarray,
    similar: np.ndarray,
    one_queue: bool,
    placer: int,
    tiers: int = 1,
    seed: int = 0,
) -> World:
    """Lay out an idle cluster before the first event, and jobs (jobs,) in the order of their arrival.

    The discipline and the priorities are set afterwards.
    """
    size_class, size_low = size_classes(pool, gpus, len(nodes.pool_gpus))
    fewest, most = _node_counts(nodes, pool, gpus, placer, tiers)
    jobs = records(len(submit), JOB)
    _fill(jobs, submit, run_time, estimate, gpus, fewest, most, pool, size_class, one_queue)
    sim = records(1, SIM)
    sim["placer"], sim["tiers"], sim["seed"] = placer, tiers, seed % 2**31
    sim["placers"] = placers_address()
    sim["predict"] = similar.shape[1] > 0
    queues = records(1 if one_queue else len(nodes.pool_gpus), QUEUE)
    queues["head"] = queues["tail"] = queues["held"] = queues["shadow_of"] = -1
    pools = records(len(nodes.pool_gpus), POOL)
    pools["gpus"], pools["low"], pools["high"] = nodes.pool_gpus, nodes.first[:-1], nodes.first[1:]
    for p in range(len(pools)):
        pools["never_gains"][p] = never_gains(placer, tiers, nodes.capacity[nodes.first[p] : nodes.first[p + 1]])
    queues["size_low"] = 0 if one_queue else size_low[:-1]
    queues["size_high"] = size_low[-1] if one_queue else size_low[1:]
    return World(
        sim=sim,
        jobs=jobs,
        links=records(0, LINK),
        queues=queues,
        pools=pools,
        sizes=records(int(size_low[-1]), SIZE),
        capacity=nodes.capacity,
        free=nodes.capacity.copy(),
        nodes=records(len(nodes.capacity), NODE),
        ends=records(int(nodes.capacity.sum()), END),
        places=records(int(most.sum()), PLACE),
        bits=words_for(0),
        by_rank=np.zeros(0, np.int32),
        least=np.zeros(0),
        lengths=np.zeros(0),
        similar=similar,
        recent=np.zeros((int(similar.max()) + 1 if similar.size else 0, MEMORY)),
        mix=np.zeros((len(pools), int(nodes.capacity.max()) + 2 + RECENT if placer == FGD else 0), np.int64),
        trial=np.zeros(len(nodes.capacity), np.int32),
        tally=np.zeros(int(nodes.capacity.max()) + 1, np.int64),
    )


@njit
def _fill(
    jobs: np.ndarray,
    submit: np.ndarray,
    run_time: np.ndarray,
    estimate: np.ndarray,
    gpus: np.ndarray,
    fewest: np.ndarray,
    most: np.ndarray,
    pool: np.ndarray,
    size_class: np.ndarray,
    one_queue: bool,
) -> None:
    """Write the jobs' rows, one row at a time: column by column, ten million jobs go through memory ten times."""
    place_at = 0
    for job in range(len(jobs)):
        jobs[job].submit = submit[job]
        jobs[job].run_time = run_time[job]
        jobs[job].estimate = estimate[job]
        jobs[job].start = -1.0
        jobs[job].held = -1.0
        jobs[job].place_at = place_at
        jobs[job].asked = gpus[job]
        jobs[job].gpus = gpus[job]
        jobs[job].fewest = fewest[job]
        jobs[job].pool = pool[job]
        jobs[job].queue = 0 if one_queue else pool[job]
        jobs[job].size_class = size_class[job]
        place_at += most[job]


@njit
def used_places(jobs: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each job's places begin (jobs,), and nodes and GPUs of the places that are used, one after the other."""
    used = 0
    for job in range(len(jobs)):
        used += jobs[job].place_count
    at, node, gpus = np.empty(len(jobs), np.int64), np.empty(used, np.int32), np.empty(used, np.int32)
    used = 0
    for job in range(len(jobs)):
        at[job] = used
        for i in range(jobs[job].place_at, jobs[job].place_at + jobs[job].place_count):
            node[used] = places[i].node
            gpus[used] = places[i].gpus
            used += 1
    return at, node, gpus


def _links(count: int) -> np.ndarray:
    links = records(count, LINK)
    links["planned"] = links["after"] = links["before"] = -1
    return links


def _node_counts(
    nodes: Nodes, pool: np.ndarray, gpus: np.ndarray, placer: int, tiers: int
) -> tuple[np.ndarray, np.ndarray]:
    """The fewest nodes that could hold each job, and the most that the placer may use for it."""
    fewest, most = np.zeros(len(gpus), np.int32), np.zeros(len(gpus), np.int64)
    for p in range(len(nodes.pool_gpus)):
        here = pool == p
        capacity = nodes.capacity[nodes.first[p] : nodes.first[p + 1]]
        fewest[here] = fewest_nodes(capacity, gpus[here])
        most[here] = most_nodes(placer, tiers, capacity, gpus[here], fewest[here])
    return fewest, most
