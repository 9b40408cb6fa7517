"""What is scheduled: clusters, workloads, policies, metrics; and the environments to learn in.

Importing it lets `gymnasium.make` know `Philly-v0`, `Helios-v0`, `Alibaba-v0`, `Synthetic-v0` and `LSF-v0`.
"""

from envs.registration import register_once_loaded

register_once_loaded()
