"""What an environment can be told: one frozen dataclass, for `gymnasium.make` as for command lines."""

import dataclasses
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from allocation.choice import ALLOCATION, TIERS_TEXT, TIME_LIMIT, USE_MILP, Allocation, chosen
from allocation.tiers import TIERS
from berth.commandline import nearest, option, plain_type
from berth.errors import ConfigError
from envs.clusters import CLUSTERS
from envs.knowledge import CHOICES
from envs.observation import LOOKAHEAD_MODES, WINDOW_ORDERS
from envs.policies import POLICIES, Policy, find_policy
from envs.reward import REWARDS, SCORES, find_score
from envs.sim.simulator import check_options
from traces.parametric import ARRIVALS, PRESETS

SPLITS = ("train", "validation", "test", "all")
ACTION_MODES = ("reserve", "fit", "easy", "conservative")
INVALID_ACTIONS = ("replace", "raise")

MOST_SLOTS, MOST_FRESH, MOST = 100_000, 100_000, 10**12


@dataclass(frozen=True)
class Options:
    """What every environment takes; the fields are keywords of `gymnasium.make` and flags of the programs."""

    cluster: str = option("philly", f"one of {', '.join(CLUSTERS)}, or a file (docs/clusters.md)")
    workload: str = option("", "trace file; default: the cluster's sample in GPU_Traces/", metavar="FILE")
    preset: str = option("", "make fresh jobs for every episode, of this shape", choices=tuple(PRESETS))
    arrival_mode: str = option("", "make fresh jobs for every episode, which arrive like this", choices=ARRIVALS)
    topology: str = option("", "testbed or production; default: testbed")
    load: float | None = option(
        None, "rescale arrivals to this offered load, 0 = leave them; default: 0.95 on a testbed, else 0"
    )
    assign_pools: int | None = option(
        None, "draw pools by capacity share, with this seed, for jobs whose pool is not known", metavar="SEED"
    )
    split: str = option("train", "which part of the trace, by time", choices=SPLITS)
    train_share: float = option(0.6, "share of the trace's jobs, the first ones, to train on")
    validation_share: float = option(0.2, "share of the jobs after them to validate on; the rest is for the test")
    batch_job_slice: int = option(0, "use only the first jobs of the split, 0 = all")
    seq_len: int = option(256, "scored jobs in an episode")
    warm_start: bool = option(True, "begin with the running jobs and the backlog of the baseline, not an idle cluster")
    warm_rule: str = option(
        "", "who has led the cluster until an episode begins; default: the baseline", metavar="POLICY@DISCIPLINE"
    )
    score_backlog: bool = option(
        False, "score the jobs that wait when an episode begins, too, by what they wait from then on"
    )
    horizon_factor: float = option(
        0.0, "cut an episode short after this many times the time that the baseline takes, 0 = never"
    )
    max_steps: int = option(0, "cut an episode short after so many decisions, 0 = never")
    window: int = option(128, "slots of the queue that are seen, and can be chosen from")
    window_order: str = option("baseline", "which jobs the window shows first", choices=tuple(WINDOW_ORDERS))
    action_mode: str = option(
        "reserve",
        "reserve: a chosen job holds its pool until it fits; fit: only jobs that fit, or wait; easy: jobs slip past a "
        "chosen one that does not fit, by the EASY rule, until the next event asks again; conservative: so, but all "
        "others have reservations behind it",
        choices=ACTION_MODES,
    )
    backfil: bool = option(False, "with reserve: jobs slip past one that holds its pool, by the EASY rule")
    invalid_action: str = option(
        "replace", "a masked action is replaced by the first valid one and counted, or raises", choices=INVALID_ACTIONS
    )
    runtime_info: str = option("oracle", f"what is known of run times: {CHOICES}")
    lookahead_mode: str = option(
        "cdf", "how the observation tells when GPUs will be free", choices=tuple(LOOKAHEAD_MODES)
    )
    score_type: str = option("bounded_slowdown", f"what is scored: {', '.join(SCORES)}, or 0 to 4")
    sched_algo: str = option(
        "fcfs", f"the baseline: {', '.join(POLICIES)}, or 0 to 15"
    )  # Python functions are too slow to be asked in every episode
    prior: str = option(
        "",
        "a policy whose order of the window is told beside the observation; POLICY@oracle knows run times",
        metavar="POLICY",
    )
    reward: str = option("dense", "as jobs start, or all at the end", choices=tuple(REWARDS))
    allocation: str = option("", ALLOCATION)
    tiers: str = option("", f"{TIERS_TEXT}; default: 1+2", choices=tuple(TIERS))
    use_milp_allocation: bool | None = option(None, USE_MILP)
    milp_time_limit: float | None = option(None, TIME_LIMIT, metavar="S")
    workload_seed: int = option(0, "seed of noise in run times, of random priorities and of random placement")

    def __post_init__(self) -> None:
        """Raise ConfigError for a value that cannot be, or options that do not go together."""
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, _read(field, getattr(self, field.name)))
        for name, low in _LEAST.items():
            value = getattr(self, name)
            most = {"window": MOST_SLOTS, "load": 1000}.get(name, MOST)
            if value is not None and not low <= value <= most:
                raise ConfigError(f"{name} {value}: want a number from {low} to {most:,}")
        if not (self.train_share > 0 and self.validation_share > 0 and self.train_share + self.validation_share < 1):
            raise ConfigError(
                f"train_share {self.train_share:g} and validation_share {self.validation_share:g}: want numbers > 0 "
                "that leave something for the test"
            )
        if self.action_mode != "reserve" and self.backfil:
            why = "where jobs slip past anyway" if self.asks_again else "where every job that fits can be chosen"
            raise ConfigError(f"backfil does nothing with action_mode {self.action_mode}, {why}")
        if self.is_fresh:
            if self.seq_len > MOST_FRESH:
                raise ConfigError(f"seq_len {self.seq_len:,}: want at most {MOST_FRESH:,} fresh jobs in an episode")
            for field in dataclasses.fields(self):
                value = getattr(self, field.name)
                if field.name in _OF_TRACES and value != field.default:
                    raise ConfigError(f"{field.name} {value} does nothing with fresh jobs (preset, arrival_mode)")
        if str(self.sched_algo).count(":"):
            raise ConfigError(f"sched_algo {self.sched_algo}: want a policy of {', '.join(POLICIES)}, not a function")
        self.placement  # noqa: B018 - raises where allocation, tiers and the like disagree
        find_score(self.score_type)
        check_options(self.policy, self.discipline, "pool", self.runtime_info)
        if self.warm_rule and not self.warm_start:
            raise ConfigError(f"warm_rule {self.warm_rule} does nothing without warm_start")
        self.warm  # noqa: B018 - raises where the rule is not known, or needs what is hidden
        if self.prior:
            if self.prior_policy.code < 0:
                raise ConfigError(f"prior {self.prior}: want a policy with a formula, which can be asked again")
            told = "oracle" if self.prior_knows else self.runtime_info
            check_options(self.prior_policy, "fit", "pool", told)

    @property
    def is_fresh(self) -> bool:
        """Whether every episode has jobs of its own, from the parametric generator."""
        return bool(self.preset or self.arrival_mode)

    @property
    def policy(self) -> Policy:
        """The baseline's policy."""
        return find_policy(str(self.sched_algo))

    @property
    def prior_policy(self) -> Policy:
        """The policy whose order is told beside the observation."""
        return find_policy(str(self.prior).removesuffix("@oracle"))

    @property
    def prior_knows(self) -> bool:
        """Whether that policy knows run times, whatever the agent does."""
        return str(self.prior).endswith("@oracle")

    @property
    def asks_again(self) -> bool:
        """Whether a job that holds its pool does so until the pool's next event, and others slip past it by a rule."""
        return self.action_mode in ("easy", "conservative")

    @property
    def discipline(self) -> str:
        """The discipline by which the baseline plays."""
        if self.action_mode != "reserve":
            return self.action_mode
        return "reserve_easy" if self.backfil else "reserve"

    @property
    def warm(self) -> tuple[Policy, str, str]:
        """Who has led the cluster until an episode begins: policy, discipline, and what they knew of run times."""
        if not self.warm_rule:
            return self.policy, self.discipline, self.runtime_info
        word, at, discipline = self.warm_rule.rpartition("@")
        if not at:
            raise ConfigError(f"warm_rule {self.warm_rule}: want POLICY@DISCIPLINE, as in sjf@easy")
        known = "predicted" if self.runtime_info == "hidden" else self.runtime_info
        policy = find_policy(word)
        check_options(policy, discipline, "pool", known)
        return policy, discipline, known

    @property
    def placement(self) -> Allocation:
        """How jobs are placed."""
        return chosen(self.allocation, self.tiers, self.use_milp_allocation, self.milp_time_limit)


_LEAST = {
    "batch_job_slice": 0, "seq_len": 1, "horizon_factor": 0, "max_steps": 0, "window": 1, "load": 0, "workload_seed": 0,
    "assign_pools": 0,
}  # fmt: skip
_OF_TRACES = ("workload", "batch_job_slice", "train_share", "validation_share", "assign_pools")
_WANTED = {bool: "0 or 1", int: "a whole number", float: "a finite number", str: "a word", tuple: "a list of words"}


def _read(field: "dataclasses.Field[Any]", value: Any) -> Any:
    """A field's value in the field's own type; raises ConfigError for what does not go into it."""
    kind = plain_type(field.type)
    if value is None and field.default in (None, ""):
        return field.default
    if kind is str and isinstance(value, int | np.integer | PurePath) and not isinstance(value, bool):
        value = str(value)
    fits = {
        bool: lambda: isinstance(value, bool | np.bool_) or (is_whole(value) and value in (0, 1)),
        int: lambda: is_whole(value),
        float: lambda: is_whole(value) or (isinstance(value, float | np.floating) and bool(np.isfinite(value))),
        str: lambda: isinstance(value, str),
        tuple: lambda: isinstance(value, tuple) and all(isinstance(word, str) for word in value),
    }
    if not fits[kind]():
        raise ConfigError(f"{field.name} {value!r}: want {_WANTED[kind]}")
    choices = field.metadata["choices"]
    if choices and value not in choices and not (value == "" == field.default):
        raise ConfigError(f"{field.name} {value}: {nearest(str(value), choices)}")
    return kind(value)


def is_whole(value: Any) -> bool:
    """Whether something is a whole number."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def make_options(**given: Any) -> Options:
    """Options from keywords; raises ConfigError that names the nearest one where a keyword is not known."""
    known = [field.name for field in dataclasses.fields(Options)]
    for name in given:
        if name not in known:
            raise ConfigError(f"{name} is not an option of an environment; {nearest(name, known)}")
    return Options(**given)
