"""Right-aligned numbers as Python formats them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from seqloom.plugins.exact_match.decimals import fits, right_aligned
from seqloom.plugins.exact_match.mummer_writer import _lines_of_numbers


@given(st.integers(1, 9), st.data())
def test_as_python_formats_them(width: int, data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(0, 10**width - 1), max_size=20))
    text = right_aligned(np.array(numbers, np.int64), width)
    assert text.shape == (len(numbers), width)
    assert [row.tobytes().decode() for row in text] == [f"{number:{width}d}" for number in numbers]


def test_what_fits() -> None:
    assert fits(np.array([], np.int64), 3) and fits(np.array([0, 999]), 3)
    assert not fits(np.array([0, 1000]), 3) and not fits(np.array([-1]), 3)


@given(st.lists(st.tuples(*[st.integers(0, 99_999_999)] * 3), max_size=8))
def test_lines_of_mummer(rows: list[tuple[int, int, int]]) -> None:
    columns = list(np.array(rows, np.int64).reshape(-1, 3).T)
    assert _lines_of_numbers(columns) == "".join(f"{a:8d}  {b:8d}  {c:8d}\n" for a, b, c in rows)
