"""What a sweep is made of: a TOML file of lists, whose product are the cells."""

import dataclasses
import hashlib
import importlib.util
import json
import sys
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from allocation.placers import PLACERS
from berth.commandline import nearest, option, plain_type
from berth.errors import BerthError, ConfigError
from envs.clusters import CLUSTERS, find_cluster
from envs.knowledge import know
from envs.options import Options
from envs.reward import SCORES, find_score
from envs.stage import ROOT
from eval.contenders import RANDOM_NAMES, Model, heuristics
from traces.parametric import PRESETS
from traces.trace import Trace
from train.checkpoint import BEST, LAST, find, load

AXES: dict[str, tuple[str, type, Any]] = {
    "clusters": ("cluster", str, None),
    "workloads": ("workload", str, "sample"),
    "policies": ("policy", str, None),
    "placers": ("placer", str, "lex"),
    "loads": ("load", float, 0.95),
    "seeds": ("seed", int, 0),
    "score_types": ("score_type", str, "bounded_slowdown"),
}
"""The lists of a SPEC: what one of them is called in the table, its type, and what stands for a list that is left out.

None: the list must be there."""

SAMPLE = "sample"
"""The workload that ships for a cluster."""

MOST_CELLS = 1_000_000

KNOWN = "oracle"
"""What is known of run times where nobody says: all, but a model gets what it was trained with."""


@dataclass(frozen=True)
class Settings:
    """The table [settings] of a SPEC: the same for all cells."""

    windows: int = option(10, "windows that a cell plays, 0 = the whole split in one go")
    seq_len: int = option(256, "jobs in a window")
    split: str = option("test", "which part of the trace: train, validation, test, all")
    topology: str = option("", "testbed or production; default: testbed")
    runtime_info: str = option(
        "", f"what is known of run times; hidden gives heuristics predictions; default: {KNOWN}, for a model as trained"
    )
    warm_start: bool = option(True, "begin with running jobs and a backlog, not an idle cluster")
    warm_rule: str = option("sjf@easy", "who has led the cluster until a window begins")
    score_backlog: bool = option(True, "score the jobs that wait when a window begins, too")
    tiers: str = option("", "1 or 1+2; default: 1+2")
    assign_pools: int | None = option(None, "draw pools for jobs whose pool is not known, with this seed")
    batch_job_slice: int = option(0, "use only the first jobs of the split, 0 = all")


class Cell(NamedTuple):
    """One combination, and what all have in common."""

    cluster: str
    workload: str
    policy: str
    placer: str
    load: float
    seed: int
    score_type: str
    settings: Settings

    def row(self) -> dict[str, Any]:
        """What the table tells of it, besides what came out."""
        own = {name: getattr(self, name) for name in self._fields if name != "settings"}
        return own | dataclasses.asdict(self.settings)

    @property
    def name(self) -> str:
        """For people."""
        where = f"{self.cluster} {self.workload} {self.policy} {self.placer}"
        return f"{where} load {self.load:g} seed {self.seed} {self.score_type}"

    @property
    def group(self) -> str:
        """What cells have in common that play the same windows."""
        return f"{self.cluster} {self.workload} {self.placer} {self.load:g} {self.seed}"

    @property
    def key(self) -> str:
        """What it is known again by: its settings, and what is in the files that it reads."""
        files = [stamp(path) for path in (*_trace_files(self), *policy_files(self.policy), *policy_files(self._warm))]
        return hashlib.sha256(json.dumps([self.row(), files], sort_keys=True).encode()).hexdigest()[:24]

    @property
    def _warm(self) -> str:
        """Who has led the cluster until a window begins."""
        return self.settings.warm_rule if self.settings.warm_start else ""

    def options(self) -> Options:
        """The options of its windows; raises ConfigError."""
        s = self.settings
        known = {name: value for name, value in dataclasses.asdict(s).items() if name != "windows"}
        known["runtime_info"] = s.runtime_info or KNOWN
        if not s.warm_start:
            known.pop("warm_rule")
        if self.workload in PRESETS:
            known |= {"preset": self.workload}
        elif self.workload != SAMPLE:
            known |= {"workload": self.workload}
        return Options(cluster=self.cluster, load=self.load, allocation=self.placer, score_type=self.score_type,
                       workload_seed=self.seed, **known)  # fmt: skip


def stamp(path: Path) -> str:
    """What is in a file, in few letters; "" for one that is not there."""
    try:
        told = path.stat()
        return _hashed(path, told.st_mtime_ns, told.st_size) if path.is_file() else ""
    except (OSError, ValueError):
        return ""


@lru_cache(maxsize=4096)
def _hashed(path: Path, _changed: int, _size: int) -> str:
    """The hash of a file's bytes, which are read once for all cells."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()


def _trace_files(cell: Cell) -> list[Path]:
    """The files that a cell's jobs and nodes are read from: a cluster's, and a trace."""
    files = [] if cell.cluster in CLUSTERS else [Path(cell.cluster)]
    if cell.workload in PRESETS:
        return files
    if cell.workload != SAMPLE:
        return [*files, Path(cell.workload)]
    trace = _own_trace(cell.cluster, stamp(Path(cell.cluster)))
    return [*files, Path(trace)] if trace else files


@lru_cache(maxsize=256)
def _own_trace(cluster: str, _stamp: str) -> str:
    """The trace that a cluster names as its own, "" where it names none."""
    try:
        found = find_cluster(cluster)
    except BerthError:  # what is wrong with it is told when it is played
        return ""
    return str(ROOT / found.trace) if cluster in CLUSTERS and found.trace else found.trace


def policy_files(policy: str) -> list[Path]:
    """The file that a policy is read from: a checkpoint, or what a Python function stands in; raises ConfigError."""
    if is_model(policy):
        return [find(policy, "policies", (BEST, LAST))]
    place, colon, _ = policy.partition("@")[0].rpartition(":")
    if not colon:
        return []
    if place.endswith(".py"):
        return [Path(place)]
    try:
        module = importlib.util.find_spec(place)
    except (ImportError, ValueError):
        return []
    return [Path(module.origin)] if module is not None and module.origin else []


def is_model(policy: str) -> bool:
    """Whether a policy is a run or a checkpoint, not a heuristic."""
    return policy.endswith(".npz") or (Path(policy).is_dir() and policy.partition("@")[0] not in RANDOM_NAMES)


def read_spec(path: str) -> list[Cell]:
    """The cells of a file, all of which can be played as far as names and files tell; raises ConfigError."""
    try:
        data = tomllib.loads(Path(path).read_text())
    except OSError as trouble:
        raise ConfigError(f"{path}: {trouble.strerror}, want a SPEC.toml (sweep.py --help shows one)") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as mistake:
        raise ConfigError(f"{path}: {mistake}; want TOML") from None
    known = (*AXES, "settings")
    for name in data:
        if name not in known:
            raise ConfigError(f"{path}: {name} is no list of a sweep; {nearest(name, known)}")
    axes = {name: _axis(path, name, data) for name in AXES}
    settings = _settings(path, data.get("settings", {}))
    count = 1
    for values in axes.values():
        count *= len(values)
    if count > MOST_CELLS:
        raise ConfigError(f"{path}: {count:,} cells, want at most {MOST_CELLS:,}")
    names = [axis[0] for axis in AXES.values()]
    cells = [Cell(**dict(zip(names, values, strict=True)), settings=settings) for values in product(*axes.values())]
    _check_names(path, axes)
    _check(path, cells)
    return cells


def _axis(path: str, name: str, data: dict[str, Any]) -> list[Any]:
    """The values of one list; raises ConfigError."""
    _, kind, default = AXES[name]
    if name not in data:
        if default is None:
            raise ConfigError(f"{path}: {name} is missing; want a list, as in {name} = {_EXAMPLES[name]}")
        return [default]
    values = data[name]
    if not isinstance(values, list):
        raise ConfigError(f"{path}: {name} = {values!r}, want a list, as in {name} = {_EXAMPLES[name]}")
    if not values:
        raise ConfigError(f"{path}: {name} is empty, so that there are no cells; want at least one")
    found = [_typed(path, name, value, kind) for value in values]
    if "" in found:
        raise ConfigError(f"{path}: {name} has an empty word; want names, as in {name} = {_EXAMPLES[name]}")
    for value in found:
        if found.count(value) > 1:
            raise ConfigError(f"{path}: {name} has {value} more than once; want every one once")
    return found


_EXAMPLES = {"clusters": '["philly"]', "workloads": '["sample"]', "policies": '["fcfs@easy", "sjf@fit"]',
             "placers": '["lex"]', "loads": "[0.8, 0.95]", "seeds": "[0, 1, 2]", "score_types": '["wait"]'}  # fmt: skip
_WANTED = {str: "a word in quotes", int: "a whole number", float: "a number", bool: "true or false"}


def _typed(path: str, name: str, value: Any, kind: Any) -> Any:
    """A value in the type that is wanted; raises ConfigError."""
    good = isinstance(value, kind) if kind is not float else isinstance(value, float | int)
    if not good or (isinstance(value, bool) and kind is not bool):
        raise ConfigError(f"{path}: {name}: {value!r}, want {_WANTED[kind]}")
    return kind(value)


def _settings(path: str, told: Any) -> Settings:
    """The table [settings]; raises ConfigError."""
    if not isinstance(told, dict):
        raise ConfigError(f"{path}: settings = {told!r}, want a table: [settings]")
    known = {field.name: field for field in dataclasses.fields(Settings)}
    for name in told:
        if name not in known:
            raise ConfigError(f"{path}: settings: {name} is no setting of a sweep; {nearest(name, known)}")
    values = {k: _typed(path, f"settings: {k}", v, plain_type(known[k].type)) for k, v in told.items()}
    settings = Settings(**values)
    if not 0 <= settings.windows <= 100_000:
        raise ConfigError(f"{path}: settings: windows {settings.windows}, want a number from 0 to 100,000")
    return settings


def _check_names(path: str, axes: dict[str, list[Any]]) -> None:
    """Raise ConfigError for names that are not known, each by the list it is in."""
    for cluster in axes["clusters"]:
        if cluster not in CLUSTERS and not Path(cluster).is_file():
            raise ConfigError(f"{path}: clusters: {cluster}: {nearest(cluster, CLUSTERS)}; or a file")
    for workload in axes["workloads"]:
        if workload not in (SAMPLE, *PRESETS) and not Path(workload).is_file():
            raise ConfigError(
                f"{path}: workloads: {workload}: {nearest(workload, (SAMPLE, *PRESETS))}; or a trace file"
            )
    for placer in axes["placers"]:
        if placer not in PLACERS:
            raise ConfigError(f"{path}: placers: {placer}: {nearest(placer, PLACERS)}")
    for seed in axes["seeds"]:
        if not 0 <= seed < 2**31:
            raise ConfigError(f"{path}: seeds: {seed}, want numbers from 0 to {2**31 - 1:,}")
    names: dict[str, str] = {}
    for score in axes["score_types"]:
        try:
            name = find_score(score)
        except BerthError as mistake:
            raise ConfigError(f"{path}: score_types: {mistake} ({', '.join(SCORES)})") from None
        if names.setdefault(name, score) != score:
            raise ConfigError(f"{path}: score_types: {names[name]} and {score} are one; want every one once")


_NOBODY = Trace("", "", np.array(["0"], object), np.zeros(1), np.ones(1), np.ones(1, np.int32), request_time=np.ones(1))
"""A trace of one job, to ask what can be known of run times."""


def _check(path: str, cells: list[Cell]) -> None:
    """Raise ConfigError for what cannot be played, or would be twice; every kind of cell is looked at once."""
    seen: set[Any] = set()
    words: dict[Any, str] = {}  # who a policy is -> by which word
    for cell in cells:
        kind = cell._replace(seed=0)
        if kind in seen:
            continue
        seen.add(kind)
        try:
            if cell.settings.windows == 0 and cell.workload in PRESETS:
                raise ConfigError(f"windows 0: fresh jobs ({cell.workload}) have no split to play; want windows")
            who = contender(cell, cell.options())
            for info in (cell.options().runtime_info, who.runtime_info):
                know(_NOBODY, info, 0)
            files = tuple(file.resolve() for file in policy_files(cell.policy))
            word = words.setdefault(files if is_model(cell.policy) else (who.name, files), cell.policy)
            if word != cell.policy:
                raise ConfigError(f"policies: {word} and {cell.policy} are one; want every one once")
        except BerthError as mistake:
            raise ConfigError(f"{path}: {cell.name}: {mistake}") from None


def contender(cell: Cell, options: Options) -> Any:
    """Who plays a cell; raises ConfigError."""
    if not is_model(cell.policy):
        found, left = heuristics([cell.policy], ("strict",), options.runtime_info, options.placement, cell.seed)
        if len(found) != 1:
            raise ConfigError(f"policies: {cell.policy}: {left[0] if left else 'want one policy a word'}")
        return found[0]
    checkpoint = load(find(cell.policy, "policies", (BEST, LAST)))
    names = ("cluster", "runtime_info", "score_type", "allocation", "tiers", "workload_seed", "warm_start",
             "score_backlog")  # fmt: skip
    chosen = {name: getattr(options, name) for name in names}
    if not cell.settings.runtime_info:
        chosen["runtime_info"] = checkpoint.told["settings"].get("runtime_info", KNOWN)
    return Model(cell.policy, checkpoint, chosen, None)
