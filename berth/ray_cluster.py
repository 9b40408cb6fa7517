"""Ray, imported when it is asked for; what can go wrong with it is told in a sentence."""

import hashlib
import os
import platform
import socket
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from berth.errors import ConfigError

OLDEST = (2, 40)
"""The first version of Ray that has all that is used."""

HOW = "pip install -r requirements-ray.txt"
LOCAL = "auto"
"""The address that stands for a cluster of which this machine is a node."""

TOKEN_FILE = ".ray/auth_token"
"""Where, in a user's home, Ray keeps the token that members of a cluster show each other."""

TOKENS = (
    "if the cluster asks for tokens (`ray start` does since Ray 2.60): want the head's ~/.ray/auth_token, or its token "
    "as RAY_AUTH_TOKEN, on every node"
)

PATIENCE = 5.0
"""Seconds in which the head of a cluster must answer."""

_ROOT = Path(__file__).resolve().parent.parent
_FOLDERS = ("berth", "traces", "allocation", "envs", "envs/sim", "train", "eval")

_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
"""How a client begins to speak HTTP/2; whoever does too answers with a frame of the same kind, 4: its settings."""


def load_ray() -> Any:
    """Import Ray, without its statistics; raises ConfigError where it is absent, or too old."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # the way of later versions, without a warning
    try:
        import ray
    except ImportError:
        raise ConfigError(f"Ray is not installed, and workers need it; want: {HOW}") from None
    known = [int(part) if part.isdigit() else 0 for part in ray.__version__.split(".")[:2]]
    if tuple(known) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ConfigError(f"Ray {ray.__version__} is installed, want {oldest} or later: {HOW}")
    return ray


def connect(address: str, cpus: int) -> Any:
    """Join a cluster, or start one on this machine where no address is given; raises ConfigError that says why not."""
    if address:
        show_token()
    ray = load_ray()
    if address:
        check_address(address)
    if ray.is_initialized():
        ray.shutdown()
    where = {"address": address} if address else {"address": "local", "num_cpus": cpus, "include_dashboard": False}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(**where, log_to_driver=False, logging_level="ERROR")
    except (RuntimeError, ConnectionError, ValueError, OSError, ray.exceptions.RayError) as trouble:
        told = " ".join(str(trouble).split())
        if "ersion mismatch" in told:
            told = f"{told} Want the same versions of Ray and Python on every node ({HOW})"
        else:
            told = f"{told}; want a cluster of which this machine is a node (ray start --address=...); {TOKENS}"
        raise ConfigError(f"ray_address {address or 'of this machine'}: {told}") from None
    return ray


def show_token() -> None:
    """Let Ray show the token that this user has, if any, to the cluster that it joins; once imported, it does not ask.

    `ray start` asks for tokens unless RAY_AUTH_MODE says otherwise, but a program that joins shows none of its own
    accord. A cluster without tokens does not mind.
    """
    told = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    if "ray" not in sys.modules and (told or (Path.home() / TOKEN_FILE).is_file()):
        os.environ.setdefault("RAY_AUTH_MODE", "token")


def disconnect() -> None:
    """Leave the cluster; one that was started for this program ends."""
    import ray

    ray.shutdown()


def check_address(address: str) -> None:
    """Raise ConfigError for an address that cannot be one, or where no head of a cluster answers.

    Ray itself would wait for many minutes.
    """
    if address == LOCAL:
        return
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536 or "/" in host:
        raise ConfigError(f"ray_address {address}: want HOST:PORT of a head (ray start --head tells it), or {LOCAL}")
    want = "want HOST:PORT of a head that runs (ray start --head)"
    try:
        with socket.create_connection((host.strip("[]"), int(port)), PATIENCE) as line:
            line.sendall(_HELLO)
            answer = line.recv(9)
    except (OSError, UnicodeError) as trouble:
        raise ConfigError(f"ray_address {address}: nobody answers ({trouble}); {want}") from None
    if len(answer) < 4 or answer[3] != 4:
        raise ConfigError(f"ray_address {address}: who answers there is not Ray; {want}")


def enter(folder: str) -> None:
    """Go where another process is, so that its relative paths mean the same; a machine without that folder stays."""
    with suppress(OSError):
        os.chdir(folder)


def fingerprint() -> str:
    """What tells whether another machine has the same Berth, on the same Python."""
    digest = hashlib.sha256()
    for folder in _FOLDERS:
        for source in sorted((_ROOT / folder).glob("*.py")):
            digest.update(source.read_bytes())
    return f"{digest.hexdigest()[:12]} on Python {platform.python_version()}"
