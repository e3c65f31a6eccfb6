"""Sorting within groups against numpy's sort by columns."""

from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from seqloom.plugins.common import order_cpu
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.common.order_cpu import FALLING, RISING, RUN, order_in_groups


@given(st.lists(st.integers(1, 5 * RUN), max_size=20), st.integers(0, 2**32 - 1),
       st.integers(1, 40) | st.integers(1, 2**62), st.sampled_from([3, 30, order_cpu.LARGE]),
       st.sampled_from([6, 12, 62]))
def test_rows_are_in_order_within_their_groups_and_equal_ones_stay(sizes: list[int], seed: int, values: int,
                                                                   large: int, bits: int) -> None:
    """Groups are large from a few rows on; columns fit one number, or some of them, or none."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    rows = np.random.default_rng(seed).integers(-values, values, (len(group), 3))
    rows[:, 1] %= 3
    with mock.patch.multiple(order_cpu, LARGE=large, _KEY_BITS=bits):
        order = order_in_groups(rows, group_starts(group), [(1, RISING), (2, FALLING), (0, RISING)])
    assert order.tolist() == np.lexsort([rows[:, 0], -rows[:, 2], rows[:, 1], group]).tolist()


def test_the_largest_numbers() -> None:
    most = np.iinfo(np.int64).max
    rows = np.array([[0, most], [1, -most], [0, 0], [1, most]])
    assert order_in_groups(rows, np.array([0, 4]), [(1, FALLING)]).tolist() == [0, 3, 2, 1]
    assert order_in_groups(rows, np.array([0, 4]), [(0, RISING), (1, RISING)]).tolist() == [2, 0, 1, 3]
    assert order_in_groups(rows[:0], np.array([0]), [(0, RISING)]).tolist() == []
