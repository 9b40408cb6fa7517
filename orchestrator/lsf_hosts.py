"""Which host a job under LSF starts on: a rule by its name, or a trained policy."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from berth.commandline import nearest
from berth.errors import ConfigError
from orchestrator.lsf_starting import HOST_POLICIES, ChooseHost
from orchestrator.lsf_state import Host, Job


def find_host_policy(word: str) -> ChooseHost:
    """The rule of a name, or the policy of a file; raises ConfigError for others."""
    if word in HOST_POLICIES:
        return HOST_POLICIES[word]
    if not word.endswith(".npz"):
        raise ConfigError(f"host_policy {word}: {nearest(word, HOST_POLICIES)}; or FILE.npz of train/export.py")
    from orchestrator.host_deciding import HostDecider, of_hosts
    from train.forward import read_exported

    exported = read_exported(Path(word))
    if exported.told["kind"] != HostDecider.kind:
        raise ConfigError(f"host_policy {word}: chooses {exported.told['kind']}s; want one of train/lsf_train.py")
    decider = of_hosts(exported)

    def _choose(job: Job, room: Sequence[Host], hosts: Sequence[Host]) -> str:
        have = np.array([(host.slots, _known(host.memory)) for host in hosts], float)
        free = np.array([(host.free, min(_known(host.free_memory), _known(host.memory))) for host in hosts], float)
        names = {host.name for host in room}
        able = np.array([host.name in names for host in hosts])
        wanted = np.array([job.slots, 0.0 if math.isnan(job.memory) else job.memory])
        return hosts[decider.choose(have, free, wanted, able)[0]].name

    return _choose


def _known(memory: float) -> float:
    """Memory in MB; where LSF does not tell, all hosts are alike, and empty."""
    return 1.0 if math.isnan(memory) else memory
