"""Exported policies that name hosts, computed without TensorFlow."""

import numpy as np

from berth.errors import ConfigError
from train.forward import Exported
from train.host_design import host_layers
from train.perceptron import judge_hosts, see_hosts


class HostPolicy:
    """A policy that names a host for a job, of any number of hosts."""

    def __init__(self, exported: Exported) -> None:
        told, where = exported.told, exported.path
        try:
            self.hidden = tuple(int(width) for width in told["hidden"])
            self.name = str(told["name"])
            self.most_cores, self.most_memory = float(told["most_cores"]), float(told["most_memory"])
            sound = self.hidden and self.most_cores > 0 and self.most_memory > 0
        except (LookupError, TypeError, ValueError) as trouble:
            raise ConfigError(f"{where}: not an exported policy, or a damaged one ({trouble!r})") from None
        if not sound:
            raise ConfigError(f"{where}: not an exported policy, or a damaged one (sizes that cannot be)")
        for name, wanted in host_layers(self.hidden).items():
            came = exported.weights.get(name)
            if came is None or came.shape != wanted:
                what = "nothing" if came is None else f"shape {came.shape}"
                raise ConfigError(f"{where}: {name} has {what}, want {wanted}")
        self._weights = np.concatenate([exported.weights[name].ravel() for name in host_layers(self.hidden)])
        self._widths = np.array(self.hidden)

    def state_of(
        self, hosts: np.ndarray, free: np.ndarray, cores: float, memory: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """What is seen: hosts (hosts, 4) and job (2,), from what hosts (hosts, 2) have and have free, cores and memory.

        A job that asks for more than any it was trained on looks like the largest of those.
        """
        job = np.array([min(max(cores / self.most_cores, 0.0), 1.0), min(max(memory / self.most_memory, 0.0), 1.0)])
        return see_hosts(hosts, free), job.astype(np.float32)

    def logits(self, hosts: np.ndarray, job: np.ndarray) -> np.ndarray:
        """Logits (hosts,) of hosts (hosts, 4) and a job (2,), all in [0, 1]."""
        found: np.ndarray = judge_hosts(hosts, job, self._weights, self._widths)
        return found
