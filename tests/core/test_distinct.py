"""Different values as numpy's ``unique`` finds them."""

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from seqloom.core.distinct import distinct, ranked, ranked_rows

ARRAYS = hnp.arrays(st.sampled_from([np.int64, np.int32, np.uint8, np.float64]), st.integers(0, 30),
                    elements=st.integers(0, 9))


@given(ARRAYS)
def test_as_numpy_finds_them(values: np.ndarray) -> None:
    expected, places = np.unique(values, return_inverse=True)
    assert distinct(values).tolist() == expected.tolist() and distinct(values).dtype == values.dtype
    found, where = ranked(values)
    assert found.tolist() == expected.tolist() and where.tolist() == places.tolist() and where.dtype == np.int64


@given(hnp.arrays(st.sampled_from([np.int64, np.float64]), st.tuples(st.integers(0, 20), st.integers(1, 4)),
                  elements=st.sampled_from([0, 1, 2, 7, -(2**40), 2**62])))
def test_rows(table: np.ndarray) -> None:
    different, places = ranked_rows(table)
    assert np.array_equal(different[places], table) and len(different) == len(np.unique(table, axis=0))


def test_of_any_shape() -> None:
    assert distinct(np.array([[3, 1], [1, 2]])).tolist() == [1, 2, 3]


def test_masked_arrays_are_not_imported() -> None:
    code = ("import sys, numpy as np; from seqloom.core.distinct import ranked; ranked(np.arange(3)); "
            "assert 'numpy.ma' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)
