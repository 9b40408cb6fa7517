"""What can be seen of a simulation: its arrays in, a Snapshot out."""

import numpy as np

from envs.sim.world import World
from envs.snapshot import Snapshot


def snapshot_of(world: World) -> Snapshot:
    """What a policy may see now."""
    jobs, now = world.jobs, float(world.sim["now"][0])
    queued = np.flatnonzero((jobs["submit"] <= now) & (jobs["start"] < 0))
    running = np.sort(world.ends["job"][: world.sim["running"][0]])
    view = Snapshot(
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
    for column in view[1:]:
        column.flags.writeable = False
    return view
