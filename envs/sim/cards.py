"""What an episode works on beside a simulation's own arrays: rows of named fields."""

import numpy as np

EPISODE = np.dtype([
    ("first", "i8"),  # number of the first scored job; all from there on are scored
    ("waiting", "i8"),  # how many jobs stand in line
    ("arrived_at", "i8"),  # where the line by arrival begins
    ("left", "i8"),  # scored jobs that have not started
    ("steps", "i8"),  # decisions so far
    ("max_steps", "i8"),  # decisions after which it is cut short, 0 = never
    ("invalid", "i8"),  # masked actions that were replaced
    ("shown", "i8"),  # jobs in the window
    ("written", "i8"),  # rows of the window that are not zeros
    ("begin", "f8"),  # s, submit of the window's first job; nobody's waiting before it counts
    ("horizon", "f8"),  # s, when it is cut short
    ("gpus", "f8"),  # of the whole cluster
    ("work", "f8"),  # GPU-seconds of the scored jobs
    ("baseline", "f8"),  # the baseline's score
    ("baseline_last", "f8"),  # s, the baseline's last start of a scored job
    ("agent", "f8"),  # the agent's score, of the jobs started so far
    ("total", "f8"),  # sum of the started jobs' costs
    ("saved", "f8"),  # by how much the baseline's sum for these jobs is higher
    ("latest", "f8"),  # s, the latest end of a scored job that has started
    ("ended", "i8"),  # how many of the baseline's latest ends belong to jobs that have started
    ("gain", "f8"),  # F, as if the rest started as in the baseline
    ("paid", "f8"),  # how much of it has been given as reward
    ("reward", "f8"),  # of the last decision
    ("score", "i4"),  # reckoning.py
    ("window", "i4"),  # slots
    ("order", "i4"),  # observing.py: which jobs the window shows
    ("lookahead", "i4"),  # outlook.py
    ("prior", "i4"),  # priorities.py: the policy whose order is told, or -1
    ("fit", "?"),  # only jobs that fit can be chosen, or none of them
    ("backfill", "?"),  # jobs slip past one that holds its pool
    ("again", "?"),  # a job that holds its pool is let go at the pool's next event
    ("reserves", "?"),  # every waiting job behind one that holds its pool has a reservation
    ("keeps", "?"),  # reservations stay until something ahead of them changes
    ("prior_knows", "?"),  # the policy `prior` knows run times
    ("changes", "?"),  # the baseline's order changes with time
    ("tiered", "?"),  # the placer minds the tiers
    ("counts", "?"),  # the agent plays; the baseline's starts are known
    ("dense", "?"),  # rewards are given as jobs start
    ("terminated", "?"),
    ("truncated", "?"),
])  # fmt: skip
"""One episode: one row."""

CARD = np.dtype([
    ("submit", "f8"),  # s
    ("guess", "f8"),  # s, how long it should run: the estimate, or what ended jobs tell
    ("since", "f8"),  # s, its start once it runs
    ("asked", "i4"),  # GPUs
    ("in_pool", "i4"),
    ("kind", "i4"),  # its size class
    ("shown", "i4"),  # scratch: the decision at which it was last put into the window
    ("gpus", "f4"),  # features that do not change
    ("share", "f4"),
    ("run_time", "f4"),
    ("pool", "f4"),
    ("looked", "f8"),  # s, of which moment is what jobs nearby tell; -1 before
])  # fmt: skip
"""What is known of each job: as large as a line of the processor's cache, as each decision reads those of a window."""

KEY = np.dtype([("key", "f8"), ("tie", "f8")])
"""The baseline's key of each job, and the one for ties, as of the last sorting."""

KIND = np.dtype([
    ("version", "i8"),  # of the pool's idle GPUs that the features were made from
    ("tried", "i8"),  # of those that `fits` was found for
    ("pool", "i4"),
    ("gpus", "i4"),
    ("fewest", "i4"),  # fewest nodes that could hold it
    ("waiting", "i4"),  # how many stand in line
    ("demand", "f4"),  # features, see observing.py
    ("fragmentation", "f4"),
    ("ways", "f4"),
    ("fits", "?"),
    ("choosable", "?"),  # can be chosen now
])  # fmt: skip
"""The size classes: what is the same for all jobs of one pool with equal GPUs."""

LOOK = np.dtype([
    ("version", "i8"),  # grows whenever the idle GPUs have changed
    ("demand", "i8"),  # GPUs that its waiting jobs ask for
    ("line_at", "i4"),  # where its stretch of the line begins
    ("standing", "i4"),  # how many jobs stand there
    ("choosable", "i4"),  # scratch: how many of them can be chosen, and are not shown yet
    ("cursor", "i4"),  # scratch: how far along its stretch jobs are shown
    ("ahead", "i8"),  # scratch: GPUs asked for by the jobs shown so far
    ("at", "i4"),  # where the pool's lookahead begins in the cluster's features
    ("count", "i4"),  # how many values it has
    ("low", "i4"),  # its GPUs are low..low + gpus - 1 of all
    ("gpus", "i4"),
    ("free", "i4"),  # idle GPUs
    ("on_idle", "i4"),  # GPUs on wholly idle nodes
    ("partly", "i4"),  # partly used nodes
    ("largest", "i4"),  # most idle GPUs on a node
    ("widest", "i4"),  # GPUs of the largest node
    ("soon", "i4"),  # idle GPUs in an hour, as far as is known
    ("open", "?"),  # one of its jobs can be chosen
    ("stale", "?"),  # something has happened since its nodes were last looked at
])  # fmt: skip
"""The pools, as an episode sees them."""

LEVELS = 4
"""How likely two jobs run equally long, by falling likeness: same user and GPUs, same VC and GPUs, same GPUs, any."""

TOLD = 6
"""What is kept of a group's ended jobs: how many, then five features."""
