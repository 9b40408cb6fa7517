"""Every cluster by name, and clusters that users describe in a TOML file."""

import sys
from pathlib import Path
from typing import Any

from berth.commandline import nearest
from berth.errors import ClusterError
from envs.alibaba import ALIBABA
from envs.helios import HELIOS
from envs.philly import PHILLY
from envs.sim.cluster import Cluster, Pool
from envs.synthetic import SYNTHETIC
from traces.alibaba import same_types
from traces.machines import read_machines
from traces.swf import read_log, require_machine

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CLUSTERS = {cluster.name: cluster for cluster in (PHILLY, HELIOS, ALIBABA, SYNTHETIC)}
"""The clusters that come with Berth; add one here and `--cluster` knows it."""

_KEYS: dict[str, type] = {"name": str, "pool_by": str, "trace": str, "pools": list}
_POOL_KEYS: dict[str, type] = {"name": str, "gpu_type": str, "aliases": list, "nodes": list}
_NODE_KEYS: dict[str, type] = {"count": int, "gpus": int}
_MOST_GPUS = 10_000_000


def find_cluster(name: str) -> Cluster:
    """A cluster by name, by its TOML file, or as an SWF log or a machine list describes it; raises ClusterError."""
    if name in CLUSTERS:
        return CLUSTERS[name]
    if name.endswith((".swf", ".swf.gz")):
        nodes, processors = require_machine(name, read_log(name))
        stem = Path(name).name.partition(".swf")[0]
        return Cluster(stem, {"file": (Pool(stem, ((nodes, processors),)),)}, trace=name)
    if name.endswith((".csv", ".csv.gz")):
        return _listed(name)
    if name.endswith(".toml") or Path(name).is_file():
        return read_cluster(Path(name))
    raise ClusterError(
        f"cluster {name}: {nearest(name, CLUSTERS)}; or a file NAME.toml, LOG.swf[.gz] or MACHINES.csv[.gz] "
        "(docs/clusters.md)"
    )


def _listed(name: str) -> Cluster:
    """A cluster as a public trace's machine list describes it."""
    machines = read_machines(name)
    stem = Path(name).name.partition(".csv")[0]
    pools = []
    for pool, nodes in machines.pools.items():
        kind = pool if machines.pool_by == "gpu_type" else ""
        others = tuple(sorted(same_types(pool) - {pool, *machines.pools})) if kind else ()
        pools.append(Pool(stem if pool == "all" and not machines.pool_by else pool, nodes, kind, others))
    return Cluster(stem, {"file": tuple(pools)}, machines.pool_by)


def read_cluster(path: Path) -> Cluster:
    """Read a cluster's TOML file; raises ClusterError that names the key and what was wanted there."""
    try:
        data = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise ClusterError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as trouble:
        raise ClusterError(f"{path}: cannot be read as text ({trouble})") from None
    except tomllib.TOMLDecodeError as mistake:
        raise ClusterError(f"{path}: not TOML ({mistake})") from None
    _check_keys(path, "", data, _KEYS, needed=("pools",))
    name = data.get("name", path.stem)
    if not name.strip():
        raise ClusterError(f"{path}: name = {name!r}, want a string that is not blank")
    pool_by = data.get("pool_by", "none")
    if pool_by not in ("none", "vc", "gpu_type"):
        raise ClusterError(f"{path}: pool_by = {pool_by!r}, want none, vc or gpu_type (the column that names the pool)")
    pools = tuple(_pool(path, f"pools[{i}].", entry) for i, entry in enumerate(data["pools"]))
    if not pools:
        raise ClusterError(f"{path}: pools = [], want at least one [[pools]]")
    _check_names(path, pools, pool_by)
    if pool_by == "none" and len(pools) > 1:
        nodes = tuple(size for pool in pools for size in pool.nodes)
        pools = (Pool(name, nodes),)
    return Cluster(
        name=name,
        topologies={"file": pools},
        pool_by="" if pool_by == "none" else pool_by,
        trace=str(path.parent / data["trace"]) if "trace" in data else "",
    )


def _pool(path: Path, where: str, entry: Any) -> Pool:
    """One [[pools]] entry."""
    _check_keys(path, where, entry, _POOL_KEYS, needed=("name", "nodes"))
    sizes = []
    for i, size in enumerate(entry["nodes"]):
        here = f"{where}nodes[{i}]."
        _check_keys(path, here, size, _NODE_KEYS, needed=("count", "gpus"))
        for key in _NODE_KEYS:
            if not 1 <= size[key] <= _MOST_GPUS:
                raise ClusterError(f"{path}: {here}{key} = {size[key]}, want a whole number from 1 to {_MOST_GPUS:,}")
        sizes.append((size["count"], size["gpus"]))
    if not sizes:
        raise ClusterError(f"{path}: {where}nodes = [], want at least one {{ count = 4, gpus = 8 }}")
    if sum(count * gpus for count, gpus in sizes) > _MOST_GPUS:
        raise ClusterError(f"{path}: {where}nodes have more than {_MOST_GPUS:,} GPUs, want fewer")
    aliases = entry.get("aliases", [])
    if not all(isinstance(alias, str) for alias in aliases):
        raise ClusterError(f"{path}: {where}aliases = {aliases}, want a list of strings")
    return Pool(entry["name"], tuple(sizes), entry.get("gpu_type", ""), tuple(aliases))


def _check_keys(path: Path, where: str, entry: Any, kinds: dict[str, type], needed: tuple[str, ...]) -> None:
    """Raise ClusterError for a key that is unknown, missing or of the wrong type."""
    if not isinstance(entry, dict):
        raise ClusterError(f"{path}: {where.rstrip('.')} = {entry!r}, want a table with {', '.join(needed)}")
    for key, value in entry.items():
        if key not in kinds:
            raise ClusterError(f"{path}: {where}{key} is not a key here; {nearest(key, kinds)}")
        if not isinstance(value, kinds[key]) or isinstance(value, bool):
            names = {str: "a string", int: "a whole number", list: "a list"}
            raise ClusterError(f"{path}: {where}{key} = {value!r}, want {names[kinds[key]]}")
    for key in needed:
        if key not in entry:
            raise ClusterError(f"{path}: {where}{key} is missing, want {', '.join(needed)}")


def _check_names(path: Path, pools: tuple[Pool, ...], pool_by: str) -> None:
    """Raise ClusterError where two pools answer to one name."""
    seen: dict[str, str] = {}
    for pool in pools:
        for name in pool_names(pool, pool_by):
            if name in seen:
                raise ClusterError(f"{path}: pools {seen[name]} and {pool.name} both answer to {name!r}, want one")
            seen[name] = pool.name


def pool_names(pool: Pool, pool_by: str) -> set[str]:
    """All the words by which a trace may mean a pool."""
    types = {pool.gpu_type} if pool_by == "gpu_type" and pool.gpu_type else set()
    return {pool.name, *pool.aliases} | types
