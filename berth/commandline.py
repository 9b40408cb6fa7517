"""Command lines generated from frozen dataclasses, one line per field."""

import argparse
import dataclasses
import difflib
import errno
import io
import os
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import UnionType
from typing import Any, NoReturn, TypeVar

from berth.aliases import ALIASES
from berth.errors import BerthError, ConfigError

C = TypeVar("C")

_TRUTH = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_METAVARS = {str: "NAME", int: "N", float: "X", tuple: "A,B,..."}


def option(default: Any, text: str, choices: Sequence[str] = (), metavar: str = "", short: str = "") -> Any:
    """Declare one field of a program's dataclass: default, sentence for --help, what it may be, a short flag."""
    told = {"help": text, "choices": tuple(choices), "metavar": metavar, "short": short}
    return dataclasses.field(default=default, metadata=told)


def argument(text: str, metavar: str) -> Any:
    """Declare a field that is given by its place on the command line, not by a flag; a tuple takes any number."""
    return dataclasses.field(metadata={"help": text, "choices": (), "metavar": metavar, "place": True})


def same(config: type[Any], name: str, **other: Any) -> Any:
    """Declare a field as another program has it, but for what is named: default, text, choices, metavar."""
    field = next(field for field in dataclasses.fields(config) if field.name == name)
    told = {**field.metadata, **{("help" if key == "text" else key): value for key, value in other.items()}}
    default = told.pop("default", field.default)
    return dataclasses.field(default=default, metadata=told)


def nearest(name: str, known: Iterable[str]) -> str:
    """Phrase a suggestion for a name that is not known: the nearest one, then all."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"{hint}known: {', '.join(known)}"


def parse(config: type[C], argv: Sequence[str] | None = None, description: str = "", program: str = "") -> C:
    """Read a command line into the frozen dataclass `config`; dashes and underscores are both taken in names."""
    return config(**given(config, argv, description, program))


def given(
    config: type[Any], argv: Sequence[str] | None = None, description: str = "", program: str = ""
) -> dict[str, Any]:
    """The fields of `config` that a command line names, under any of their names (berth/aliases.py)."""
    parser = _Parser(
        prog=program or os.path.basename(sys.argv[0]),
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    fields = dataclasses.fields(config)
    for field in fields:
        _add(parser, field)
    arguments = [_underscored(word) for word in (sys.argv[1:] if argv is None else argv)]
    switches = {flag for field in fields if plain_type(field.type) is bool for flag in _flags(field)}
    return vars(parser.parse_args(_joined(arguments, switches)))


def run(main: Callable[[], None]) -> None:
    """Run a program's main; a user's mistake becomes one line on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 gets question marks
    try:
        main()
        sys.stdout.flush()  # here, where it can be told that there is no room for it
    except BerthError as mistake:
        print(f"error: {printable(str(mistake))}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        _silence()
        sys.exit(141)
    except OSError as trouble:
        if trouble.errno not in _NO_ROOM or trouble.filename is not None:
            raise
        print(f"error: {trouble.strerror} for what is printed; want room where the output goes", file=sys.stderr)
        _silence()
        sys.exit(2)


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _silence() -> None:
    """Let what has not been printed yet go nowhere: Python would try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def printable(text: str) -> str:
    """Text with its control characters spelled out: names in a file may hold what would move a terminal's cursor."""
    return "".join(letter if letter.isprintable() or letter in "\n " else repr(letter)[1:-1] for letter in text)


def writable_folder(flag: str, path: str) -> Path:
    """Make a folder for results before the work begins; raises ConfigError where that is impossible."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as trouble:
        raise ConfigError(f"{flag} {path}: {trouble.strerror}, want a folder that can be written to") from None
    if not os.access(path, os.W_OK):
        raise ConfigError(f"{flag} {path}: may not be written to, want a folder that can be")
    return Path(path)


def writable_file(flag: str, path: str, *endings: str) -> Path:
    """Make sure that a file can be written before the work begins; raises ConfigError where it cannot."""
    file = Path(path)
    if file.suffix not in endings:
        raise ConfigError(f"{flag} {path}: want a name that ends in {' or '.join(endings)}")
    writable_folder(flag, str(file.parent))
    try:
        there = file.exists()
        with file.open("ab"):
            pass
        if not there:
            file.unlink()
    except OSError as trouble:
        raise ConfigError(f"{flag} {path}: {trouble.strerror}, want a file that can be written to") from None
    return file


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a place to write to, which becomes `path` when all is written; raises ConfigError where it cannot be.

    Whatever goes wrong, a file that was there stays as it was.
    """
    begun = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield begun
        begun.replace(path)
    except OSError as trouble:
        raise ConfigError(f"{path}: {trouble.strerror}, want a place that can be written to") from None
    finally:
        begun.unlink(missing_ok=True)


class _Parser(argparse.ArgumentParser):
    """An argument parser whose unknown flags are answered with the nearest known one."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and answer an unknown flag with the nearest one."""
        known, extra = self.parse_known_args(args, namespace)
        for word in extra:
            if not word.startswith("-"):
                self.error(f"{word} is one word too many here")
            flags = [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]
            name = word.split("=")[0]
            self.error(f"{name} is not a flag here; {nearest(name, flags)}")
        return known

    def error(self, message: str) -> NoReturn:
        """End with the message and where to read on."""
        raise ConfigError(f"{message} ({self.prog} --help tells more)")


class _Store(argparse.Action):
    """Stores a value, False for a flag that takes none; a setting under two names with two values is an error."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Keep the value, and under which name it came."""
        names: dict[str, str] = parser.__dict__.setdefault("names_given", {})
        flag = str(option_string)
        if isinstance(values, list):  # of a flag that takes several, or none
            values = tuple(values) if values else False
        before = names.setdefault(self.dest, flag)
        if before != flag and getattr(namespace, self.dest) != values:
            raise ConfigError(
                f"{before} {getattr(namespace, self.dest)} and {flag} {values}: two names of one setting; give one"
            )
        names[self.dest] = flag
        setattr(namespace, self.dest, values)


def _flags(field: "dataclasses.Field[Any]") -> list[str]:
    """The long names of a field's flag."""
    return [f"--{name}" for name in (field.name, *ALIASES.get(field.name, ()))]


def _underscored(word: str) -> str:
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    return "--" + name[2:].replace("-", "_") + equals + value


def _joined(words: list[str], switches: set[str]) -> list[str]:
    """Join a switch with the truth value or number after it, so that it does not swallow a file's name."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] in switches and (word.lower() in _TRUTH or word.isdecimal()):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return [f"{word}=1" if word in switches else word for word in joined]


def _add(parser: argparse.ArgumentParser, field: "dataclasses.Field[Any]") -> None:
    """Add the flag of one dataclass field."""
    kind = plain_type(field.type)
    text = str(field.metadata["help"]).replace("%", "%%")
    choices: tuple[str, ...] = field.metadata["choices"]
    if field.metadata.get("place"):
        many: dict[str, Any] = {"nargs": "*"} if kind is tuple else {}
        parser.add_argument(field.name, metavar=field.metadata["metavar"], help=text, **many)
        return
    numbers = holds_numbers(field.type)
    if field.default not in (None, "", ()):
        shown = field.default
        if isinstance(shown, tuple):
            shown = " ".join(map(str, shown)) if numbers else ",".join(shown)
        text += f" (default: {shown})"
    if choices and len(choices) <= 8:
        text += f" [{', '.join(choices)}]"
    common: dict[str, Any] = {"dest": field.name, "default": argparse.SUPPRESS, "help": text, "action": _Store}
    if kind is bool:
        parser.add_argument(*_flags(field), nargs="?", const=True, type=_truth, metavar="0|1", **common)
        parser.add_argument(
            f"--no_{field.name}",
            dest=field.name,
            action=_Store,
            nargs=0,
            default=argparse.SUPPRESS,
            help=argparse.SUPPRESS,
        )
        return
    flags = [flag for flag in (field.metadata["short"], *_flags(field)) if flag]
    if numbers:
        count = len(typing.get_args(field.type))
        parser.add_argument(
            *flags, nargs=count, type=_reader(field.name, int, ()), metavar=("LOW", "HIGH")[:count],
            **common,
        )  # fmt: skip
        return
    metavar = field.metadata["metavar"] or _METAVARS[kind]
    parser.add_argument(*flags, type=_reader(field.name, kind, choices), metavar=metavar, **common)


def plain_type(annotation: Any) -> Any:
    """Strip `| None` from an annotation; a tuple of strings stays a tuple."""
    if typing.get_origin(annotation) in (typing.Union, UnionType):
        return next(part for part in typing.get_args(annotation) if part is not type(None))
    return typing.get_origin(annotation) or annotation


def holds_numbers(annotation: Any) -> bool:
    """Whether a tuple's field holds whole numbers, a fixed count of them, not words."""
    parts = typing.get_args(annotation)
    return typing.get_origin(annotation) is tuple and all(part is int for part in parts)


def _truth(word: str) -> bool:
    if word.lower() not in _TRUTH:
        raise ConfigError(f"{word!r} is not a truth value; wanted 0 or 1")
    return _TRUTH[word.lower()]


def _reader(name: str, kind: Any, choices: tuple[str, ...]) -> Callable[[str], Any]:
    """Make the function that turns one word of the command line into the field's value."""

    def _one(word: str) -> str:
        if choices and word not in choices:
            raise ConfigError(f"--{name} {word}: {nearest(word, choices)}")
        return word

    def _read(word: str) -> Any:
        if kind is tuple:
            return tuple(_one(part) for part in word.split(",") if part)
        if kind is str:
            return _one(word)
        try:
            return kind(word)
        except ValueError:
            article = "a whole number" if kind is int else "a number"
            raise ConfigError(f"--{name} {word}: wanted {article}") from None

    return _read
