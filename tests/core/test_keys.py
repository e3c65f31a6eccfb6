"""Byte keys: plain byte order must be the order of the columns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from seqloom.core.keys import byte_keys, stable_order

TYPES = ["i1", "i4", "i8", "u1", "u2", "u4", "u8", "bool", "f4", "f8"]


def order_of(columns, descending=()) -> list[int]:
    keys = [k.tobytes() for k in byte_keys(columns, descending)]
    return sorted(range(len(keys)), key=lambda n: keys[n])


@st.composite
def tables(draw):
    rows = draw(st.integers(0, 12))
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    columns = [draw(hnp.arrays(np.dtype(t), rows)) for t in types]
    return columns, [draw(st.booleans()) for _ in columns]


def rank(value, down: bool):
    """Sort key of one value: NaN behind all numbers in ascending order; −0 equals 0."""
    value = value.item()
    absent = isinstance(value, float) and value != value
    key = (absent, 0 if absent else value)
    return (not absent, -key[1]) if down else key


@given(tables())
def test_byte_order_is_numeric_order(case) -> None:
    columns, descending = case
    wanted = sorted(range(len(columns[0])),
                    key=lambda n: [rank(c[n], d) for c, d in zip(columns, descending, strict=True)])
    assert order_of(columns, descending) == wanted


@given(st.data(), st.integers(0, 12))
def test_rows_are_ordered_by_columns_and_stay_where_they_are_equal(data, rows: int) -> None:
    kinds = data.draw(st.lists(st.sampled_from(["i1", "i4", "i8", "u1", "u8", "bool"]), min_size=1, max_size=4))
    values = data.draw(st.sampled_from([None, st.integers(0, 1)]))
    columns = [data.draw(hnp.arrays(np.dtype(kind), rows, elements=values)) for kind in kinds]
    wanted = sorted(range(rows), key=lambda n: [column[n].item() for column in columns])
    assert stable_order(columns).tolist() == wanted


@pytest.mark.parametrize("dtype", ["i1", "i4", "i8"])
def test_limits_of_integers(dtype: str) -> None:
    info = np.iinfo(dtype)
    values = np.array([0, info.max, -1, info.min, 1], dtype)
    assert order_of([values]) == [3, 2, 0, 4, 1]
    assert order_of([values], [True]) == [1, 4, 0, 2, 3]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_special_floats(dtype: str) -> None:
    values = np.array([np.nan, np.inf, 0.0, -np.inf, -1e-30, -0.0], dtype)
    assert order_of([values]) == [3, 4, 2, 5, 1, 0]
    negative_nan = np.array([-np.nan, 1.0], dtype)
    assert np.signbit(negative_nan[0])
    assert order_of([negative_nan]) == [1, 0], "a NaN of either sign sorts last"


def test_all_keys_are_equally_long_and_no_column_means_no_bytes() -> None:
    keys = byte_keys([np.arange(3, dtype=np.int32), np.zeros(3, bool)])
    assert np.diff(keys.offsets).tolist() == [5, 5, 5]
    assert len(byte_keys([np.empty(0, np.int64)])) == 0


def test_slices_and_columns_in_foreign_byte_order() -> None:
    values = np.array([5, 0, -3, 0, 300, 0], np.int32)[::2]
    assert order_of([values]) == [1, 0, 2]
    assert order_of([values.astype(">i4")]) == [1, 0, 2]
