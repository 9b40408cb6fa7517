"""The priority formulas once more, in plain Python; the job with the lowest key goes first."""

import math
from collections.abc import Callable

Key = Callable[[float, float, float, float, float], float | tuple[float, float]]


def _log(x: float) -> float:
    return math.log10(x if x > 0 else 0.1)


KEYS: dict[str, Key] = {  # s submit, r run time as far as known, n GPUs, w waiting time, N GPUs of the pool
    "fcfs": lambda s, r, n, w, N: s,
    "lcfs": lambda s, r, n, w, N: -s,
    "smallest": lambda s, r, n, w, N: n,
    "largest": lambda s, r, n, w, N: -n,
    "sjf": lambda s, r, n, w, N: (r, n),
    "lpf": lambda s, r, n, w, N: -r,
    "saf": lambda s, r, n, w, N: r * n,
    "laf": lambda s, r, n, w, N: -r * n,
    "sexp": lambda s, r, n, w, N: (w + r) / n,
    "lexp": lambda s, r, n, w, N: -(w + r) / n,
    "srf": lambda s, r, n, w, N: r / n,
    "lrf": lambda s, r, n, w, N: -r / n,
    "multifactor": lambda s, r, n, w, N: -(1000 * w / 43200 + 1000 * (1 - n / N)),
    "f1": lambda s, r, n, w, N: _log(r) * n + 870 * _log(s),
    "wfp3": lambda s, r, n, w, N: -((w / r) * (w / r) * (w / r)) * n,
    "unicep": lambda s, r, n, w, N: -(w + 1e-15) / (math.log2(n + 1e-15) * r),
    "f2": lambda s, r, n, w, N: math.sqrt(r) * n + 25600 * _log(s),
    "f3": lambda s, r, n, w, N: r * n + 6860000 * _log(s),
    "f4": lambda s, r, n, w, N: r * math.sqrt(n) + 530000 * _log(s),
    "spt": lambda s, r, n, w, N: r,
    "smith": lambda s, r, n, w, N: r * n * max(r, 10.0),
}

CHANGE_WITH_TIME = {"sexp", "lexp", "multifactor", "wfp3", "unicep"}
NEED_RUN_TIME = set(KEYS) - {"fcfs", "lcfs", "smallest", "largest", "multifactor"}
