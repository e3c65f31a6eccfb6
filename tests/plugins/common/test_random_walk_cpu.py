"""The series over random walks against plain convolutions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqloom.plugins.common.random_walk_cpu import walk_series

TERMS = 12


def plain_series(probabilities: np.ndarray, decay: float, low: int, smallest: float) -> float:
    """The series, convolution by convolution."""
    total, walk = 0.0, np.ones(1)
    for taken in range(1, TERMS + 1):
        walk = np.convolve(walk, probabilities)
        sums = np.arange(taken * low, taken * low + len(walk))
        term = float((walk * decay ** np.maximum(-sums, 0)).sum()) / taken
        total += term
        if term <= smallest:
            break
    return total


@given(
    low=st.integers(-9, -1), high=st.integers(0, 9), seed=st.integers(0, 1 << 16), smallest=st.floats(0, 0.3),
    decay=st.floats(0.1, 1.0),
)  # fmt: skip
def test_series_is_that_of_convolutions(low, high, seed, smallest, decay):
    numbers = np.random.default_rng(seed)
    probabilities = numbers.random(high - low + 1)
    probabilities /= probabilities.sum()
    expected = plain_series(probabilities, decay, low, smallest)
    assert walk_series(probabilities, decay, low, TERMS, smallest) == pytest.approx(expected, rel=1e-12)
