"""How a simulation begins in the middle of a trace, compiled: jobs that run, jobs that wait, what is remembered."""

from typing import NamedTuple

import numpy as np

from berth.compiled import njit
from envs.sim.moves import enqueue
from envs.sim.setting import remember_sizes
from envs.sim.state import push_end


class Past(NamedTuple):
    """What came before the first event of a simulation; the simulated jobs are rows `chosen` of a roster."""

    roster: np.ndarray  # (jobs of the trace,) members.ROSTER
    places: np.ndarray  # PLACE, where the roster's jobs ran
    chosen: np.ndarray  # (jobs,) int32, those that ran or waited at the beginning, then the window's
    scored: int  # how many of them are the window's
    similar: np.ndarray  # (jobs, levels) int32, groups to predict from
    recent: np.ndarray  # (groups, MEMORY), what the predictor had seen
    warm: bool = True  # False: nothing came before; the cluster is idle

    @property
    def now(self) -> float:
        """When the simulation begins: the submit time of the window's first job."""
        return float(self.roster["submit"][self.chosen[-self.scored]])


@njit
def warm_up(
    roster: np.ndarray,
    past_places: np.ndarray,
    chosen: np.ndarray,
    first: int,
    now: float,
    sim: np.ndarray,
    jobs: np.ndarray,
    links: np.ndarray,
    queues: np.ndarray,
    free: np.ndarray,
    nodes: np.ndarray,
    ends: np.ndarray,
    places: np.ndarray,
    bits: np.ndarray,
    least: np.ndarray,
    lengths: np.ndarray,
    mix: np.ndarray,
) -> None:
    """Let the jobs before the window's first run or wait as they did; the clock stands just before its arrival."""
    sim[0].now = now
    for node in range(len(nodes)):
        nodes[node].since = now
    for i in range(first):
        old = roster[chosen[i]]
        if old.submit >= now:
            continue
        sim[0].next = i + 1
        if old.start >= now:
            enqueue(sim, jobs, links, queues, bits, least, lengths, mix, i)
            continue
        jobs[i].start = old.start
        jobs[i].place_count = old.place_count
        for k in range(old.place_count):
            share = past_places[old.place_at + k]
            places[jobs[i].place_at + k].node = share.node
            places[jobs[i].place_at + k].gpus = share.gpus
            free[share.node] -= share.gpus
        sim[0].started += 1
        push_end(sim, ends, old.end, i)
    if mix.shape[1] > 0:
        remember_sizes(roster, mix, chosen[first], now)
