"""Ask where a request would go: the candidates of both tiers with their scores, and what each placer chooses.

python -m allocation --free 8,8,3,1 --gpus 10
python -m allocation --free 2x16,8x10,3,0x9 --capacity 2x16,8x20 --gpus 12 --ahead 8,4,1
"""

import sys
from dataclasses import dataclass

import numpy as np
from rich.table import Table
from rich.text import Text

from allocation.candidates import Placement, on_lowest, pattern_of, scores, tier_candidates
from allocation.choice import AHEAD, TIERS_TEXT, Allocation
from allocation.placers import PLACERS, fits, place_request
from allocation.tiers import TIERS, fewest_nodes, largest, mixed
from berth.commandline import option, parse, run
from berth.compiled import is_compiled
from berth.console import console, tell
from berth.errors import ConfigError

MOST_NODES = 100_000
MOST_GPUS = 1024
LOOKED_AT = 20_000
DRAWN = 24
WIDEST = 16
"""How many candidates are looked at, how many nodes are drawn, and up to how many GPUs on one (then numbers)."""


@dataclass(frozen=True)
class Config:
    """What `python -m allocation` takes."""

    free: tuple[str, ...] = option((), "free GPUs of each node; 8x3 stands for 8,8,8", metavar="8,8,3,1")
    gpus: int | None = option(None, "how many GPUs are asked for")
    capacity: tuple[str, ...] = option((), "GPUs of each node, or one number for all; default: the most that are free")
    tiers: str = option("1+2", TIERS_TEXT, choices=tuple(TIERS))
    ahead: tuple[str, ...] = option((), f"GPUs of the next jobs in line, for milp; the first {AHEAD} count")
    recent: tuple[str, ...] = option((), "GPUs of the pool's recent jobs, for fgd; default: the request itself")
    seed: int = option(0, "seed of random")
    milp_time_limit: float = option(1.0, "seconds that the MILP may take", metavar="S")
    show: int = option(12, "how many candidates of a tier are shown")


def numbers(flag: str, words: tuple[str, ...], least: int) -> np.ndarray:
    """Whole numbers out of a list like 8,8x3; raises ConfigError for anything else."""
    found: list[int] = []
    for word in words:
        value, _, times = word.partition("x")
        whole = value.isascii() and value.isdecimal() and len(value) < 10
        if (
            not whole
            or word.endswith("x")
            or (times and not (times.isascii() and times.isdecimal() and len(times) < 10))
        ):
            raise ConfigError(
                f"{flag} {word!r}: want whole numbers from {least} to {MOST_GPUS:,}, like 8 or 8x3 (three times 8)"
            )
        if int(value) < least:
            raise ConfigError(f"{flag} {word}: want at least {least}")
        if times and int(times) == 0:
            raise ConfigError(f"{flag} {word}: want at least one of them")
        if len(found) + int(times or 1) > MOST_NODES:
            raise ConfigError(f"{flag} {word}: want no more than {MOST_NODES:,} in all")
        found += [int(value)] * int(times or 1)
    return np.array(found, np.int32)


def nodes_asked_about(config: Config) -> tuple[np.ndarray, np.ndarray]:
    """Free GPUs and capacity (nodes,) as the flags say."""
    free = numbers("--free", config.free, 0)
    if not len(free) or config.gpus is None or config.gpus < 1:
        raise ConfigError("want --free with the free GPUs of each node, and --gpus N with N > 0; --help has examples")
    if not config.capacity and not free.any():
        raise ConfigError("no GPU is free; want --capacity with the GPUs of each node")
    if config.gpus > MOST_NODES * MOST_GPUS:
        raise ConfigError(f"--gpus {config.gpus}: want no more than {MOST_NODES * MOST_GPUS:,}")
    capacity = numbers("--capacity", config.capacity, 1) if config.capacity else np.array([free.max()], np.int32)
    if capacity.max() > MOST_GPUS:
        raise ConfigError(f"a node with {capacity.max():,} GPUs: want no more than {MOST_GPUS:,}")
    if len(capacity) == 1:
        capacity = np.repeat(capacity, len(free))
    if len(capacity) != len(free):
        raise ConfigError(f"--capacity has {len(capacity):,} nodes, --free {len(free):,}; want one number, or as many")
    if (free > capacity).any():
        node = int(np.argmax(free > capacity))
        raise ConfigError(f"node {node} has {free[node]} GPUs free of {capacity[node]}; want no more than it has")
    return free, capacity


def choices(config: Config, free: np.ndarray, capacity: np.ndarray) -> dict[str, Placement | None]:
    """What every placer chooses."""
    gpus = config.gpus or 0
    tiers, seed = TIERS[config.tiers], mixed(config.seed % 2**31, gpus)
    recent = numbers("--recent", config.recent, 1).tolist() if config.recent else [gpus]
    found: dict[str, Placement | None] = {}
    for name in PLACERS:
        if name == "milp":
            from allocation.milp import Planner  # PuLP takes a while to import

            ahead = numbers("--ahead", config.ahead, 1)[:AHEAD].tolist()
            answer = Planner(tiers, config.milp_time_limit).place(free, capacity, gpus, ahead)
            found[name] = answer.nodes if answer else None
        else:
            found[name] = place_request(name, free, capacity, gpus, tiers, recent, seed)
    return found


def why_not(free: np.ndarray, capacity: np.ndarray, gpus: int, tiers: int) -> str:
    """Why no tier has a placement; "" where one does."""
    fewest = int(fewest_nodes(capacity, np.array([gpus]))[0])
    tally = np.bincount(free, minlength=int(capacity.max()) + 1)
    if fewest == 0:
        return f"the nodes have {int(capacity.sum()):,} GPUs in all: {gpus:,} can never fit"
    if fits(PLACERS["lex"].code, tiers, free, capacity, 0, len(free), gpus, fewest, tally.copy()):
        return ""
    if int(free.sum()) < gpus:
        return f"{int(free.sum()):,} GPUs are free in all"
    has = "freest has" if fewest == 1 else "freest have"
    told = f"tier 1 needs {_nodes(fewest)}, and the {has} {largest(tally, fewest):,} GPUs free"
    if tiers == 1:
        return f"{told}; --tiers 1+2 would allow {_nodes(fewest + 1)}"
    if fewest + 1 > len(free):
        return f"{told}; there is no node more for tier 2"
    if largest(tally, fewest + 1) < gpus:
        return f"{told}; tier 2 needs {_nodes(fewest + 1)}, and the freest have {largest(tally, fewest + 1):,}"
    return f"{told}; {_nodes(fewest + 1)} would do, but one more would be partly used than now, which tier 2 rules out"


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count:,} nodes"


def show_candidates(
    config: Config, free: np.ndarray, capacity: np.ndarray, chosen: dict[str, Placement | None]
) -> None:
    """Print the candidates of each tier with their scores, the best by `defrag` first."""
    out = console()
    who = {name: pattern_of(placed, free, capacity) for name, placed in chosen.items() if placed}
    for tier in range(1, TIERS[config.tiers] + 1):
        found, all_of_them = tier_candidates(free, capacity, config.gpus or 0, tier, LOOKED_AT)
        fewest = int(fewest_nodes(capacity, np.array([config.gpus]))[0])
        title = f"tier {tier}: {_nodes(fewest + tier - 1)}" + (", partly used nodes do not grow" if tier == 2 else "")
        if not found:
            out.print(f"{title}: " + ("no placement" if all_of_them else "too many candidates to look at"))
            continue
        ranked = sorted(((scores(free, capacity, pattern), pattern) for pattern in found), key=lambda row: row[0])
        table = Table(title=f"{title} (of equal nodes the lowest)", title_justify="left", header_style="")
        for head in ("node:GPUs", "partly used", "stranded GPUs", "variance of load", "chosen by"):
            table.add_column(head, justify="left" if head in ("node:GPUs", "chosen by") else "right")
        first = ranked[: config.show] + [row for row in ranked[config.show :] if row[1] in who.values()]
        for score, pattern in first:
            told = (f"{score.partly_used:+d}", f"{score.stranded:+d}", f"{score.variance:+.4f}")
            names = ", ".join(name for name, its in who.items() if its == pattern)
            table.add_row(_spelled(on_lowest(pattern, free, capacity)), *told, names)
        out.print(table)
        if len(first) < len(found):
            out.print(f"{len(found) - len(first):,} more; --show N shows N of them")
        if not all_of_them:
            out.print(f"only the first {LOOKED_AT:,} were looked at; what the placers choose is best among all")


def _spelled(placed: Placement) -> str:
    text = " ".join(f"{node}:{gpus}" for node, gpus in placed[:DRAWN])
    return text + (f" ... ({len(placed):,} nodes)" if len(placed) > DRAWN else "")


def show_choices(free: np.ndarray, capacity: np.ndarray, chosen: dict[str, Placement | None]) -> None:
    """Print a picture of the nodes for each placer: what was used, what it takes, what stays free."""
    taken = {node for placed in chosen.values() if placed for node, _ in placed}
    drawn = list(range(len(free))) if len(free) <= DRAWN else sorted(taken)[:DRAWN]
    table = Table(title="what each placer chooses: # used before, @ taken now, . free", title_justify="left")
    table.add_column("placer")
    table.add_column("nodes " + " ".join(str(node) for node in drawn) + (" ..." if len(drawn) < len(free) else ""))
    table.add_column("node:GPUs")
    for name, placed in chosen.items():
        here = dict(placed or [])
        bars = []
        for node in drawn:
            used, now = int(capacity[node] - free[node]), here.get(node, 0)
            bar = "#" * used + "@" * now + "." * (int(capacity[node]) - used - now)
            bars.append(bar if len(bar) <= WIDEST else f"{free[node]}" + (f"-{now}" if now else ""))
        table.add_row(name, Text(" ".join(bars)), _spelled(placed) if placed else "does not fit")
    console().print(table)


def main() -> None:
    """Answer a question about one request; exit code 1 where it fits on no tier."""
    config = parse(Config, description=__doc__ or "", program="python -m allocation")
    free, capacity = nodes_asked_about(config)
    tiers = Allocation("milp", config.tiers, config.milp_time_limit).highest_tier
    if config.show < 1:
        raise ConfigError(f"--show {config.show}: want a number > 0")
    for flag, words in (("--ahead", config.ahead), ("--recent", config.recent)):
        numbers(flag, words, 1)
    if not is_compiled():
        tell("compiling the placers for this machine, once ...")
    gpus = config.gpus or 0
    asked = f"{gpus:,} GPU{'s' if gpus > 1 else ''} asked for"
    console().print(f"{asked}, {int(free.sum()):,} of {int(capacity.sum()):,} free on {_nodes(len(free))}")
    if not config.capacity:
        console().print(f"every node is taken to have {capacity[0]} GPUs; --capacity says otherwise")
    reason = why_not(free, capacity, gpus, tiers)
    chosen = choices(config, free, capacity)
    if not reason:
        show_candidates(config, free, capacity, chosen)
    if any(chosen.values()):
        show_choices(free, capacity, chosen)
    if reason:
        console().print(f"fits on no tier: {reason}")
        sys.exit(1)


if __name__ == "__main__":
    run(main)
