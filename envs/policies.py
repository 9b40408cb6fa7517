"""Policies: who goes first. The seeds' numbers 0 to 15 are taken as well as names."""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from berth.commandline import nearest
from berth.errors import ConfigError
from berth.streams import stream
from envs.sim import priorities as p
from envs.snapshot import Snapshot

Ask = Callable[[Snapshot], np.ndarray]


@dataclass(frozen=True)
class Policy:
    """One policy: its name, its formula in words, and how its keys come about.

    `code` is the compiled formula (envs/sim/priorities.py). A policy without one has either `draw`, which makes all
    keys before the start, or `ask`, a Python function that is asked at every event.
    """

    name: str
    text: str
    code: int = -1
    number: int = -1  # in seed 004's --sched_algo, -1 where it has none
    needs_run_time: bool = False
    changes: bool = False  # the order of two waiting jobs can change with time
    draw: Callable[[int, int], np.ndarray] | None = None  # (jobs, seed) -> keys
    ask: Ask | None = None  # Snapshot -> keys of the queued jobs


POLICIES: dict[str, Policy] = {}
"""Every policy by name; `register` adds one, and the command lines, the tests and the docs know it."""

ALIASES = {"fifo": "fcfs"}


def register(policy: Policy) -> Policy:
    """Add a policy to the registry."""
    POLICIES[policy.name] = policy
    return policy


def _shuffled(jobs: int, seed: int) -> np.ndarray:
    return stream(seed, "policy random").random(jobs)


for _policy in (
    Policy("fcfs", "s", p.FCFS, 0),
    Policy("lcfs", "-s", p.LCFS, 1),
    Policy("smallest", "n", p.SMALLEST, 2),
    Policy("largest", "-n", p.LARGEST, 3),
    Policy("sjf", "r, then n", p.SJF, 4, needs_run_time=True),
    Policy("lpf", "-r", p.LPF, 5, needs_run_time=True),
    Policy("saf", "r·n", p.SAF, 6, needs_run_time=True),
    Policy("laf", "-r·n", p.LAF, 7, needs_run_time=True),
    Policy("sexp", "(w + r)/n", p.SEXP, 8, needs_run_time=True, changes=True),
    Policy("lexp", "-(w + r)/n", p.LEXP, 9, needs_run_time=True, changes=True),
    Policy("srf", "r/n", p.SRF, 10, needs_run_time=True),
    Policy("lrf", "-r/n", p.LRF, 11, needs_run_time=True),
    Policy("multifactor", "-(1000·w/12 h + 1000·(1 - n/N))", p.MULTIFACTOR, 12, changes=True),
    Policy("f1", "log10(r)·n + 870·log10(s)", p.F1, 13, needs_run_time=True),
    Policy("wfp3", "-(w/r)³·n", p.WFP3, 14, needs_run_time=True, changes=True),
    Policy("unicep", "-w/(log2(n)·r)", p.UNICEP, 15, needs_run_time=True, changes=True),
    Policy("f2", "√r·n + 25,600·log10(s)", p.F2, needs_run_time=True),
    Policy("f3", "r·n + 6,860,000·log10(s)", p.F3, needs_run_time=True),
    Policy("f4", "r·√n + 530,000·log10(s)", p.F4, needs_run_time=True),
    Policy("spt", "r", p.SPT, needs_run_time=True),
    Policy("smith", "r·n·max(r, 10 s)", p.SMITH, needs_run_time=True),
    Policy("random", "a random number, drawn once a job", draw=_shuffled),
):
    register(_policy)


def find_policy(word: str | Ask | Policy) -> Policy:
    """A policy by name, alias or seed number, from `module:function` or `file.py:function`, or from a Python function.

    Raises ConfigError that names the nearest known one.
    """
    if isinstance(word, Policy):
        return word
    if callable(word):
        return Policy(getattr(word, "__name__", "callable"), "a Python function", ask=word)
    name = ALIASES.get(word, word)
    if name in POLICIES:
        return POLICIES[name]
    if word.isdecimal():
        for policy in POLICIES.values():
            if policy.number == int(word):
                return policy
    if ":" in word:
        return _load(word)
    numbers = ", ".join(f"{q.number} {q.name}" for q in POLICIES.values() if q.number >= 0)
    raise ConfigError(
        f"policy {word}: {nearest(word, [*POLICIES, *ALIASES])}; by number: {numbers}; or module:function"
    )


def _load(word: str) -> Policy:
    """Import a function that takes a Snapshot and returns keys."""
    place, _, function = word.rpartition(":")
    try:
        if place.endswith(".py"):
            spec = importlib.util.spec_from_file_location(Path(place).stem, place)
            if spec is None or spec.loader is None:
                raise ImportError(f"{place} is not a Python file")
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(place)
        ask = getattr(module, function)
    except (Exception, SystemExit) as trouble:  # noqa: BLE001 - whatever a user's file does when it is loaded
        what = f"{type(trouble).__name__}: {trouble}"
        raise ConfigError(f"policy {word}: {what}; want module:function or file.py:function") from None
    if not callable(ask):
        raise ConfigError(f"policy {word}: {function} is no function; want one that takes a Snapshot and returns keys")
    return Policy(f"{Path(place).stem}.{function}", word, ask=ask)
