"""How values are distributed of which some are only known to be larger: the product-limit estimator."""

import numpy as np


def quantiles(values: np.ndarray, larger: np.ndarray, weights: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Quantiles (shares,) of values (jobs,) that count by weights (jobs,); those of `larger` (jobs,) are at least that.

    1 - F(v) = product over known values u <= v of 1 - w(u) / sum of the weights of all values >= u
    (Kaplan and Meier, 1958). A share that is not reached gets the largest value.
    """
    order = np.lexsort((larger, values))
    values, larger, weights = values[order], larger[order], weights[order]
    still = np.cumsum(weights[::-1])[::-1]
    reached = 1.0 - np.cumprod(np.where(larger, 1.0, 1.0 - np.minimum(1.0, weights / still)))
    at = np.searchsorted(reached, np.asarray(shares) - 1e-12)
    return values[np.minimum(at, len(values) - 1)]
