"""Numbers below the smallest normal one are 0 where that is asked for, in kernels and in numpy."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from seqloom.core.kernels.jit import kernel
from seqloom.core.subnormals import THERE, flushed

pytestmark = pytest.mark.skipif(not THERE, reason="other processors aren't told to do it")
LEAST = np.finfo(np.float32).tiny
HALF, TINY = np.float32(0.5), np.full(5, LEAST, np.float32)


@kernel
def halved(number, by):
    return number * by


def test_results_are_zero_within_and_what_they_are_behind():
    def found():
        return {float(halved(LEAST, HALF)), *(TINY * HALF).tolist()}

    subnormal = {float(LEAST) / 2}
    assert found() == subnormal
    with flushed():
        assert found() == {0.0}
        with flushed():
            assert found() == {0.0}
        assert found() == {0.0}  # the inner one leaves it as it was
        assert float(LEAST * np.float32(1.0)) == float(LEAST)
    assert found() == subnormal


def test_each_thread_has_its_own():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(half).result()  # a thread begins with the settings of the one that starts it
        with flushed():
            assert pool.submit(lambda: float(halved(LEAST, HALF))).result() == float(LEAST) / 2
            assert pool.submit(half).result() == float(halved(LEAST, HALF)) == 0.0
            assert pool.submit(lambda: float(halved(LEAST, HALF))).result() == float(LEAST) / 2


def test_an_error_leaves_it_as_it_was():
    with pytest.raises(ZeroDivisionError), flushed():
        _ = 1 / 0
    assert float(halved(LEAST, HALF)) == float(LEAST) / 2


@flushed()
def half():
    return float(halved(LEAST, HALF))


def test_it_can_be_a_decorator():
    assert [half(), half()] == [0.0, 0.0]
    assert float(halved(LEAST, HALF)) > 0.0
