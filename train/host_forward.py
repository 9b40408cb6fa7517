"""Exported policies that name hosts, computed with NumPy alone."""

import numpy as np

from berth.errors import ConfigError
from envs.sim.hosts import FEATURES
from train.forward import Exported, leaky
from train.host_design import STRETCH, host_layers
from train.packing import pack, unpack


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
        self.weights = {name: np.ascontiguousarray(exported.weights[name]) for name in host_layers(self.hidden)}

    def state_of(
        self, hosts: np.ndarray, free: np.ndarray, cores: float, memory: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """What is seen: hosts (hosts, 4) and job (2,), from what hosts (hosts, 2) have and have free, cores and memory.

        A job that asks for more than any it was trained on looks like the largest of those.
        """
        seen = np.empty((len(hosts), FEATURES), np.float32)
        seen[:, :2] = 1.0 - free / np.maximum(hosts, 1e-9)
        seen[:, 2:] = hosts / np.maximum(hosts.max(axis=0), 1e-9)
        job = np.array([cores / self.most_cores, memory / self.most_memory], np.float32)
        return np.clip(seen, 0.0, 1.0), np.clip(job, 0.0, 1.0)

    def logits(self, hosts: np.ndarray, job: np.ndarray) -> np.ndarray:
        """Logits (hosts,) of hosts (hosts, 4) and a job (2,), all in [0, 1], packed and unpacked as in training."""
        seen, wanted = ((unpack(pack(part)) - np.float32(0.5)) * np.float32(STRETCH) for part in (hosts, job))
        codes = self._dense("host", seen)
        around = self._dense("job", wanted) + self._dense("mean", leaky(codes).mean(axis=0))
        tokens = leaky(codes + around)
        for i in range(1, len(self.hidden)):
            tokens = leaky(self._dense(f"judge_{i}", tokens))
        return self._dense("logit", tokens)[:, 0]

    def _dense(self, name: str, x: np.ndarray) -> np.ndarray:
        found: np.ndarray = x @ self.weights[f"{name}/kernel"] + self.weights[f"{name}/bias"]
        return found
