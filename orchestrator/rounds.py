"""Rounds of an agent beside a cluster's own scheduler: modes, what is told of them, one after the other."""

import shlex
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from berth.commandline import printable
from berth.compiled import on_compiling
from berth.console import tell
from berth.errors import BerthError, ConfigError

MODES = ("shadow", "advise", "apply")
"""Decide and log; print the commands; run them."""

MODE_TEXT = "shadow: log what would be done; advise: print the commands; apply: run them"

NOTHING = "nothing to do: the order is as wanted"

LONGEST = 1_000_000
"""How many seconds anything may be told to take; the system counts milliseconds in 31 bits."""


def warn(text: str) -> None:
    """Tell on stderr what the user should know of."""
    print(f"warning: {printable(text)}", file=sys.stderr, flush=True)


def compiling_told() -> AbstractContextManager[None]:
    """Say on stderr that something is compiled, if that is so meanwhile."""
    text = "compiling; the first call on a machine takes a minute or more"
    return on_compiling(lambda: print(text, file=sys.stderr, flush=True))


def report(mode: str, commands: Sequence[Sequence[str]], nothing: str = NOTHING) -> None:
    """Print commands alone in the mode advise, else a line for each."""
    if mode == "advise":
        for words in commands:
            print(printable(shlex.join(words)), flush=True)
        return
    verb = "sent" if mode == "apply" else "would send"
    for words in commands:
        tell(f"{verb}: {shlex.join(words)}")
    if not commands:
        tell(nothing)


def again_and_again(
    act: Callable[[], None], interval: float, mends: type[BerthError], trouble: Callable[[str], None]
) -> None:
    """Act every `interval` seconds, for good; an error that the next round may mend is told, and passed over."""
    while True:
        begun = time.monotonic()
        try:
            act()
        except mends as mistake:
            trouble(str(mistake))
        time.sleep(max(0.0, interval - (time.monotonic() - begun)))


def check_seconds(config: object, *names: str) -> None:
    """Raise ConfigError for options that are no seconds, more than 0 and not above LONGEST."""
    for name in names:
        if not 0 < getattr(config, name) <= LONGEST:
            raise ConfigError(f"--{name} {getattr(config, name)}: want seconds, more than 0, at most {LONGEST:,}")


def check_least(config: object, **least: float) -> None:
    """Raise ConfigError for options that are less than they may be."""
    for name, value in least.items():
        if not getattr(config, name) >= value:
            raise ConfigError(f"--{name} {getattr(config, name)}: want at least {value}")
