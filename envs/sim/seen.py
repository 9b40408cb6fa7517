"""What can be seen of a simulation: its arrays in, a Snapshot out."""

import numpy as np

from envs.sim.world import World
from envs.snapshot import HOLDING, QUEUED, Snapshot


def snapshot_of(world: World) -> Snapshot:
    """What a policy may see now."""
    jobs, now = world.jobs, float(world.sim["now"][0])
    queued = np.flatnonzero((jobs["submit"] <= now) & (jobs["start"] < 0))
    running = np.sort(world.ends["job"][: world.sim["running"][0]])
    return _sealed(
        Snapshot(
            now=now,
            job=queued,
            submit=jobs["submit"][queued],
            wait=now - jobs["submit"][queued],
            gpus=jobs["gpus"][queued],
            run_time=jobs["estimate"][queued],
            pool=jobs["pool"][queued],
            running_job=running,
            running_start=jobs["start"][running],
            running_gpus=jobs["gpus"][running],
            running_pool=jobs["pool"][running],
            running_end=jobs["start"][running] + jobs["estimate"][running],
            free=world.free.copy(),
            capacity=world.capacity.copy(),
            node_pool=np.repeat(np.arange(len(world.pools)), world.pools["high"] - world.pools["low"]),
        )
    )


def whole_snapshot(world: World, guess: np.ndarray, history: np.ndarray) -> Snapshot:
    """The same with who holds a pool, where jobs run, and what ended jobs tell.

    guess (jobs,) s, how long each should run; history (jobs, TOLD_OF) what was told of each when it arrived.
    """
    view = snapshot_of(world)
    held = world.queues["held"]
    rows = world.jobs[view.running_job]
    place_at = np.concatenate(([0], np.cumsum(rows["place_count"], dtype=np.int64)))
    at = np.repeat(rows["place_at"] - place_at[:-1], rows["place_count"]) + np.arange(place_at[-1])
    return _sealed(
        view._replace(
            state=np.where(np.isin(view.job, held[held >= 0]), HOLDING, QUEUED).astype(np.int8),
            history=history[view.job],
            running_guess=guess[view.running_job],
            place_at=place_at,
            place_node=world.places["node"][at],
            place_gpus=world.places["gpus"][at],
        )
    )


def _sealed(view: Snapshot) -> Snapshot:
    """The same, not to be written to."""
    for column in view[1:]:
        if isinstance(column, np.ndarray):
            column.flags.writeable = False
    return view
