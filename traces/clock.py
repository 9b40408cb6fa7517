"""Calendar times as seconds from a trace's start."""

from datetime import datetime, timezone

import numpy as np


def from_midnight(stamps: np.ndarray, scope: np.ndarray) -> tuple[np.ndarray, str]:
    """Seconds from the midnight before the first stamp in scope, and that midnight as text.

    So a converted trace keeps the hour of the day: submit / 3600 modulo 24.
    """
    if not scope.any():
        return np.zeros(len(stamps)), ""
    zero = float(stamps[scope].min() // 86400 * 86400)
    return stamps - zero, datetime.fromtimestamp(zero, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
