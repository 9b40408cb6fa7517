"""What the user chose: a placer, the tiers, and how the MILP is limited."""

from dataclasses import dataclass

from allocation.placers import PLACERS, Placer, placer
from allocation.tiers import TIERS
from berth.commandline import nearest
from berth.errors import ConfigError

DEFAULT = "lex"
AHEAD = 5
"""How many of a pool's next jobs the MILP minds."""

ALLOCATION = f"which nodes a job gets, one of: {', '.join(PLACERS)}; default: {DEFAULT}"
TIERS_TEXT = "1: the fewest nodes that the pool's capacity allows; 1+2: or one node more, where that fragments nothing"
USE_MILP = "1 is --allocation milp, 0 is --allocation lex"
TIME_LIMIT = "seconds that a MILP may take, the safety net behind its limit on search nodes; default: 1"
"""What --help says of the flags that `chosen` takes."""


@dataclass(frozen=True)
class Allocation:
    """How jobs are placed in a run."""

    name: str = DEFAULT
    tiers: str = "1+2"
    milp_time_limit: float = 1.0  # s, the safety net; milp.py has a deterministic limit before it

    def __post_init__(self) -> None:
        """Raise ConfigError for what is not known."""
        placer(self.name)
        if self.tiers not in TIERS:
            raise ConfigError(f"tiers {self.tiers}: {nearest(self.tiers, TIERS)}")
        if not 0 < self.milp_time_limit < float("inf"):
            raise ConfigError(f"milp_time_limit {self.milp_time_limit:g}: want finite seconds > 0")

    @property
    def placer(self) -> Placer:
        """The placer that the name stands for."""
        return PLACERS[self.name]

    @property
    def highest_tier(self) -> int:
        """1 or 2."""
        return TIERS[self.tiers]

    def __str__(self) -> str:
        limit = f", time limit {self.milp_time_limit:g} s" if self.name == "milp" else ""
        return f"{self.name}, tiers {self.tiers}{limit}" if self.placer.tiered else self.name


def chosen(
    allocation: str = "", tiers: str = "", use_milp_allocation: bool | None = None, milp_time_limit: float | None = None
) -> Allocation:
    """What flags say together; those not given are "" or None. Raises ConfigError where they disagree or do nothing."""
    if use_milp_allocation is not None:
        meant = "milp" if use_milp_allocation else "lex"
        if allocation and allocation != meant:
            raise ConfigError(
                f"--use_milp_allocation {int(use_milp_allocation)} means --allocation {meant}, but --allocation is "
                f"{allocation}; want one of the two"
            )
        allocation = meant
    choice = Allocation(allocation or DEFAULT, tiers or "1+2")
    if tiers and not choice.placer.tiered:
        raise ConfigError(f"--tiers {tiers}: allocation {choice.name} does not go by tiers; leave --tiers out")
    if milp_time_limit is None:
        return choice
    if choice.name != "milp":
        raise ConfigError(f"--milp_time_limit does nothing with --allocation {choice.name}; want --allocation milp")
    return Allocation(choice.name, choice.tiers, milp_time_limit)
