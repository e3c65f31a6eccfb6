"""Arrays that working space on devices keeps, with memory of the host in their place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

workspace_cuda = pytest.importorskip("seqloom.plugins.common.workspace_cuda", reason="numba-cuda is not installed",
                                     exc_type=ImportError)
ASKED = st.tuples(st.sampled_from("abc"), st.integers(0, 20_000),
                  st.sampled_from([np.uint8, np.int32, np.float32, "i8"]))


@given(st.lists(ASKED, max_size=30), st.integers(0, 1 << 19))
def test_arrays_are_as_long_as_asked_for_and_made_only_where_they_must_be(asked: list, most: int) -> None:
    made: list[int] = []
    pool = workspace_cuda.BufferPool(lambda size: made.append(size) or np.zeros(size, np.uint8))
    pool.most, largest, live = most, dict[str, int](), 0
    for name, size, dtype in asked:
        before, need = len(made), size * np.dtype(dtype).itemsize
        array = pool.array(name, size, dtype)
        assert len(array) >= size and array.dtype == dtype
        assert pool.array(name, size, dtype) is array and len(made) - before == (largest.get(name, 0) < max(1, need))
        largest[name] = max(array.nbytes, largest.get(name, 0))
        live = sum(largest.values())
        assert pool._bytes <= max(most, live) and pool._bytes >= live


def test_what_a_longer_array_has_replaced_stays_as_long_as_there_is_room() -> None:
    pool = workspace_cuda.BufferPool(lambda size: np.zeros(size, np.uint8))
    pool.most = 3 << 14
    first = pool.array("a", 1 << 14, np.uint8)
    pool.array("a", 2 << 14, np.uint8)
    assert pool._replaced[0] is first
    pool.array("b", 1, np.uint8)
    assert not pool._replaced
    numbers = pool.array("b", 1, np.int32)
    numbers[0] = 0x01020304
    assert pool.array("b", 4, np.uint8)[:4].tolist() == [4, 3, 2, 1]


def test_work_sizes_are_joined() -> None:
    small, other = workspace_cuda.WorkSize(1, 2, 9, 1, 5), workspace_cuda.WorkSize(3, 1, 1, 2, 5)
    both = small.joined(other)
    assert small.within(both) and other.within(both) and both == (3, 2, 9, 2, 5, 0) and not both.within(small)
    assert (small.groups, both.groups) == (1, 2)
