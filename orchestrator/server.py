"""Serve decisions: a policy, or a heuristic, that answers Snapshots over a Unix socket or HTTP."""

import asyncio
import os
import secrets
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)  # not orchestrator/, whose modules have other names

from berth.commandline import option, parse, run
from berth.errors import ConfigError, SnapshotError

if TYPE_CHECKING:
    from orchestrator.deciding import Decider
    from orchestrator.protocol import Counter, Request

DESCRIPTION = """Answer snapshots of a cluster with decisions (docs/serving.md).

  python orchestrator/server.py --model policy.npz --socket /run/berth.sock
  python orchestrator/server.py --model policy.npz --port 8421 --token_file berth.token
  python orchestrator/server.py --policy sjf --port 8421
"""

ROUTES = {"/decide": "POST", "/health": "GET"}

LOOPBACK = "127.0.0.1"

AGAIN = "BERTH_STARTED_AGAIN"
"""The variable that tells a process that it was started again, once all is compiled."""

FEWEST_LETTERS = 16
"""Of a token."""


@dataclass(frozen=True)
class Config:
    """What orchestrator/server.py takes."""

    model: str = option("", "an exported policy (train/export.py)", metavar="FILE")
    policy: str = option("", "a heuristic instead of a model, as in sjf")
    action_mode: str = option(
        "fit", "of a heuristic: fit, easy, conservative or reserve", choices=("reserve", "fit", "easy", "conservative")
    )
    allocation: str = option("", "how a heuristic's jobs are placed; default: lex")
    socket: str = option("", "answer on a Unix socket, which only this user may open", metavar="PATH")
    port: int | None = option(None, "answer HTTP on this port of the loopback interface; 0: any that is free")
    token_file: str = option("", "the token that HTTP asks for; it is made where there is none", metavar="FILE")
    host: str = option(LOOPBACK, "another address to answer HTTP on; needs --open_to_network")
    open_to_network: bool = option(False, "yes, others than this machine may ask; nothing is encrypted")

    def __post_init__(self) -> None:
        """Raise ConfigError for what does not go together."""
        if bool(self.model) == bool(self.policy):
            raise ConfigError("want --model FILE or --policy NAME, one of the two (server.py --help tells more)")
        if bool(self.socket) == (self.port is not None):
            raise ConfigError("want --socket PATH or --port N, one of the two (server.py --help tells more)")
        if self.port is not None and not 0 <= self.port <= 65535:
            raise ConfigError(f"port {self.port}: want a number from 0 to 65535")
        if self.socket and (self.token_file or self.host != LOOPBACK):
            raise ConfigError("a socket has no token and no host: its file's permissions tell who may ask")
        if self.host != LOOPBACK and not self.open_to_network:
            raise ConfigError(f"host {self.host}: others could ask, and nothing is encrypted; --open_to_network if so")
        if self.model and (self.action_mode != "fit" or self.allocation):
            raise ConfigError("action_mode and allocation belong to --policy; a model has its own")


class Service:
    """Answers requests with decisions."""

    def __init__(self, decider: "Decider") -> None:
        self.decider = decider
        self.begun, self.decisions, self.errors = time.time(), 0, 0

    def handle(self, request: "Request", body: bytearray) -> dict[str, Any]:
        """Answer one request; raises Refusal."""
        if request.path == "/health":
            return {
                "version": 1, "status": "ok", "policy": self.decider.name, "kind": self.decider.kind,
                "wants": self.decider.wants, "decisions": self.decisions, "errors": self.errors,
                "seconds": round(time.time() - self.begun, 3),
            }  # fmt: skip
        return self._decide(request.query, body)

    def _decide(self, query: str, body: bytearray) -> dict[str, Any]:
        from envs.wire import read
        from orchestrator.protocol import Refusal

        begin = time.perf_counter()
        try:
            answer = self.decider.decide(read(body), query == "scores=1")
        except SnapshotError as mistake:
            self.errors += 1
            raise Refusal(422, str(mistake)) from None
        except Exception as trouble:  # noqa: BLE001 - one question that goes wrong must not end the service
            self.errors += 1
            print(f"a decision failed: {type(trouble).__name__}: {trouble}", file=sys.stderr, flush=True)
            raise Refusal(500, "the decision failed; the service goes on") from None
        self.decisions += 1
        answer["microseconds"] = round((time.perf_counter() - begin) * 1e6)
        return answer


def token_of(config: Config) -> str:
    """The token that clients must have; made and told where there is none, kept in a file that only we may read."""
    if not config.token_file:
        token = secrets.token_urlsafe(32)
        print(f"token: {token}", flush=True)
        return token
    path = Path(config.token_file)
    try:
        if not path.exists():
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
            print(f"token written to {path}", flush=True)
        elif path.stat().st_mode & 0o077:
            raise ConfigError(f"token_file {path}: others may read it; want mode 600")
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as trouble:
        why = trouble.strerror if isinstance(trouble, OSError) else "not text"
        raise ConfigError(f"token_file {path}: {why}; want a file that can be read, or made") from None
    if len(token) < FEWEST_LETTERS or not (token.isascii() and token.isprintable()) or " " in token:
        raise ConfigError(f"token_file {path}: want one word of at least {FEWEST_LETTERS} plain letters")
    return token


async def serve(config: Config, counter: "Counter") -> None:
    """Answer until the process is told to end."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    try:
        if config.socket:
            old = os.umask(0o177)
            try:
                server: asyncio.Server = await loop.create_unix_server(counter.connection, config.socket, backlog=1024)
            finally:
                os.umask(old)
            where = config.socket
        else:
            server = await loop.create_server(counter.connection, config.host, config.port, backlog=1024)
            where = "http://{}:{}".format(*server.sockets[0].getsockname()[:2])
    except OSError as trouble:
        raise ConfigError(f"cannot answer there: {trouble.strerror or trouble}; want another port or socket") from None
    print(f"answering on {where}", flush=True)
    sweeping = loop.create_task(counter.sweep())
    await over.wait()
    sweeping.cancel()
    server.close()
    counter.close()
    if config.socket:
        Path(config.socket).unlink(missing_ok=True)
    print("stopped", flush=True)


def make_decider(config: Config) -> "Decider":
    """Who decides, by a model or by a heuristic."""
    from orchestrator import deciding
    from train.forward import read_exported

    if config.model:
        return deciding.of_exported(read_exported(Path(config.model)))
    return deciding.heuristic(config.policy, config.action_mode, config.allocation)


def main(words: Sequence[str] | None = None) -> None:
    """Serve as the command line says."""
    config = parse(Config, words, DESCRIPTION)
    sys.modules.setdefault("scipy", None)  # type: ignore[arg-type] # Numba looks for its BLAS, 20 MB that nothing uses
    from berth.compiled import compilations
    from orchestrator.memory import keep_small, settle_down
    from orchestrator.protocol import Counter

    keep_small()
    if AGAIN not in os.environ:
        print("loading; the first start on a machine compiles for minutes", file=sys.stderr, flush=True)
    with compilations() as compiled:
        service = Service(make_decider(config))
    if (
        compiled and words is None and AGAIN not in os.environ
    ):  # the compiler holds several times what the service needs
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | {AGAIN: "1"})
    settle_down()
    asyncio.run(serve(config, Counter(service.handle, ROUTES, "" if config.socket else token_of(config))))


if __name__ == "__main__":
    run(main)
