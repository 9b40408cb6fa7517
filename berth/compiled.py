"""How the hot path is compiled: Numba, cached on disk."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numba
import numpy as np
from numba.core import event

_ROOT = Path(__file__).resolve().parent.parent
_COMPILED_FOLDERS = ("allocation", "envs/sim")

F = TypeVar("F", bound=Callable[..., object])


def _cache_folder() -> str:
    """Name a cache folder that changes whenever any compiled source does.

    Numba's own cache looks only at the file of the function it loads: a caller compiled against an older callee in
    another file would be taken as fresh. A folder named by the fingerprint of all of them cannot be stale.
    """
    digest = hashlib.sha256(numba.__version__.encode())
    for folder in _COMPILED_FOLDERS:
        for source in sorted((_ROOT / folder).glob("*.py")):
            digest.update(source.read_bytes())
    name = f"{digest.hexdigest()[:16]}"
    if os.access(_ROOT, os.W_OK):
        return str(_ROOT / ".numba_cache" / name)
    return str(Path(tempfile.gettempdir()) / f"berth-numba-{os.getuid()}" / name)


if "NUMBA_CACHE_DIR" not in os.environ:
    numba.config.CACHE_DIR = _cache_folder()


def njit(function: F) -> F:
    """Compile a module-level function over plain arrays; NUMBA_DISABLE_JIT=1 leaves it plain Python."""
    compiled: F = numba.njit(cache=True, error_model="numpy")(function)
    return compiled


def inlined(function: F) -> F:
    """The same for a function that is called at one or two places only: it becomes a part of its caller.

    Every array is passed as seven numbers, so that calling a function of thirty arrays takes longer than much of what
    such functions do.
    """
    compiled: F = numba.njit(cache=True, error_model="numpy", forceinline=True)(function)
    return compiled


def records(count: int, fields: np.dtype) -> np.ndarray:
    """Make `count` zeroed rows of named fields, which compiled code reads as `rows[i].field`.

    One array of rows is passed to a compiled function at the cost of one array. A tuple of columns is not: Numba counts
    references to each of its arrays at every call (docs/design.md). Plain Python reads the same attribute
    from a recarray.
    """
    rows = np.zeros(count, fields)
    return rows.view(np.recarray) if numba.config.DISABLE_JIT else rows


@contextmanager
def compilations() -> Iterator[list[object]]:
    """A list that grows with whatever is compiled meanwhile; what is found on disk is not."""
    with event.install_recorder("numba:run_pass") as recorder:
        yield recorder.buffer


class _First(event.Listener):
    """Calls a function at the first event that it hears of."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self.tell, self.heard = tell, False

    def on_start(self, event: object) -> None:
        """Something begins."""
        if not self.heard:
            self.heard = True
            self.tell()

    def on_end(self, event: object) -> None:
        """Something ends, which is of no interest."""


@contextmanager
def on_compiling(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` once if something has to be compiled meanwhile; what is found on disk has not."""
    with event.install_listener("numba:run_pass", _First(tell)):
        yield


def is_compiled(function: str = "") -> bool:
    """Tell whether the hot path, or one function of it, has been compiled here before (or need not be)."""
    pattern = f"*{function}*.nbi" if function else "*.nbi"
    return bool(numba.config.DISABLE_JIT) or any(Path(numba.config.CACHE_DIR).rglob(pattern))
