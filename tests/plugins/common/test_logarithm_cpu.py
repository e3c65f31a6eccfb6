"""Logarithms of many numbers against those of the C library."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from seqloom.plugins.common.logarithm_cpu import LANES, logarithms


@given(st.lists(st.floats(0, allow_infinity=False, allow_nan=False) | st.floats(0.9, 1.1), min_size=1, max_size=40))
def test_logarithms(numbers):
    given = np.ones(-(-len(numbers) // LANES) * LANES)
    given[: len(numbers)] = numbers
    found = np.empty(len(given))
    logarithms(given, found)
    with np.errstate(divide="ignore"):
        wanted = np.log(given)
    there = given > 0
    assert np.all(np.abs(found[there] - wanted[there]) <= 2 * np.spacing(np.abs(wanted[there])))
    assert np.all(found[~there] == -np.inf)
