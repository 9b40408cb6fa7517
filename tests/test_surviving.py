"""The product-limit estimator: by hand, and as scipy has it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import CensoredData, ecdf

from orchestrator.surviving import quantiles

ONES = np.ones(4)


def test_quantiles_by_hand():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    nobody = np.zeros(4, bool)
    assert quantiles(values, nobody, ONES, np.array([0.25, 0.26, 0.5, 1.0])).tolist() == [1.0, 2.0, 2.0, 4.0]
    larger = np.array([False, True, False, False])  # the second's share goes to the two behind it: 1/4, 3/8, 3/8
    assert quantiles(values, larger, ONES, np.array([0.25, 0.3, 0.62, 0.63])).tolist() == [1.0, 3.0, 3.0, 4.0]
    last = np.array([False, False, False, True])
    assert quantiles(values, last, ONES, np.array([0.9])).tolist() == [4.0]  # it is at least that


def test_a_weight_of_two_is_the_value_twice():
    values, larger = np.array([1.0, 2.0, 3.0]), np.array([False, True, False])
    shares = np.linspace(0.01, 0.99, 50)
    twice = quantiles(np.array([1.0, 2.0, 2.0, 3.0]), np.array([False, True, True, False]), ONES, shares)
    assert np.array_equal(quantiles(values, larger, np.array([1.0, 2.0, 1.0]), shares), twice)


@given(st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=30), st.floats(0.01, 0.99))
def test_quantiles_are_those_of_scipy(rows, share):
    values, larger = np.array([float(value) for value, _ in rows]), np.array([more for _, more in rows])
    found = float(quantiles(values, larger, np.ones(len(rows)), np.array([share]))[0])
    truth = ecdf(CensoredData.right_censored(values, larger)).cdf
    at = int(np.searchsorted(truth.probabilities, share - 1e-9))
    wanted = truth.quantiles[at] if at < len(truth.quantiles) else values.max()
    assert found == wanted
