"""The environments by their ids, for `gymnasium.make`."""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

CLUSTERS = ("philly", "helios", "alibaba", "synthetic")

IDS = {f"{cluster.capitalize()}-v0": cluster for cluster in CLUSTERS}
"""Every id, and the cluster it stands for."""


HOSTS = "LSF-v0"
"""The id of host selection."""


def register() -> None:
    """Let Gymnasium know the environments."""
    from gymnasium.envs.registration import register as register_one
    from gymnasium.envs.registration import registry

    for name, cluster in IDS.items():
        if name not in registry:
            register_one(
                id=name,
                entry_point="envs.scheduling_env:SchedulingEnv",
                vector_entry_point="envs.vector:SchedulingVectorEnv",
                kwargs={"cluster": cluster},
            )
    if HOSTS not in registry:
        register_one(id=HOSTS, entry_point="envs.host_env:HostEnv", vector_entry_point="envs.host_env:HostVectorEnv")


def register_once_loaded() -> None:
    """Register now if Gymnasium is loaded, else as soon as somebody loads it.

    The simulator, the readers and the command lines need no Gymnasium, whose import takes longer than a replay.
    """
    if "gymnasium" in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, _Watch())


class _Watch(MetaPathFinder):
    """Sees Gymnasium being imported."""

    def __init__(self) -> None:
        self._looking = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Let others find Gymnasium, and register when it has been loaded."""
        if fullname != "gymnasium" or self._looking:
            return None
        self._looking = True
        try:
            spec = find_spec(fullname)
        finally:
            self._looking = False
        if spec is not None and spec.loader is not None:
            spec.loader = _ThenRegister(spec.loader, self)
        return spec


class _ThenRegister(Loader):
    """Loads a module as another loader does, then registers."""

    def __init__(self, loader: Loader, watch: _Watch) -> None:
        self._loader, self._watch = loader, watch

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the other loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """As the other loader does; then register."""
        self._loader.exec_module(module)
        if self._watch in sys.meta_path:
            sys.meta_path.remove(self._watch)
        register()

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._loader, name)
