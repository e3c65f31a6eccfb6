"""Groups of equal rows, and their division among threads."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqloom.plugins.common.grouping import even_parts, group_parts, group_starts


@given(st.lists(st.integers(1, 30), max_size=200), st.integers(1, 5))
def test_parts_are_whole_groups_of_about_as_many_rows(sizes: list[int], threads: int) -> None:
    starts = group_starts(np.repeat(np.arange(len(sizes)), sizes))
    assert np.diff(starts).tolist() == sizes
    parts = group_parts(starts, threads)
    assert [group for first, last in parts for group in range(first, last)] == list(range(len(sizes)))
    assert all(first < last for first, last in parts)
    if threads == 1:
        assert len(parts) <= 1
    else:
        share = sum(sizes) / max(16, 2 * threads)
        assert all(sum(sizes[first:last]) <= share + 30 for first, last in parts)


@pytest.mark.parametrize("threads", [1, 4])
def test_nothing_to_divide(threads: int) -> None:
    assert group_parts(group_starts(np.empty(0, np.int64)), threads) == []


@given(st.integers(0, 500), st.integers(1, 5))
def test_even_parts_are_all_rows_in_order(rows: int, threads: int) -> None:
    parts = even_parts(rows, threads)
    assert [row for first, last in parts for row in range(first, last)] == list(range(rows))
    sizes = [last - first for first, last in parts]
    assert len(sizes) <= (1 if threads == 1 else max(16, 2 * threads))
    assert min(sizes, default=1) > 0 and max(sizes, default=0) - min(sizes, default=0) <= 1


@pytest.mark.parametrize(("work", "parts"), [(0.0, 1), (0.9, 1), (3.2, 3), (1e9, 16), (math.inf, 16)])
def test_no_more_parts_than_are_worth_it(work: float, parts: int) -> None:
    assert len(even_parts(1000, 2, work)) == len(group_parts(np.arange(1001), 2, work)) == parts
    assert len(even_parts(1000, 1, work)) == 1
