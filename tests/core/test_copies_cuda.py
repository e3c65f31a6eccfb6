"""Copies to a device and back by way of buffers, with a driver of memory moves in place of CUDA's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.errors import BackendError
from seqloom.core.jit import kernel

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from tests.core.cuda_driver import CONTEXT, EVENTS, SIZE, STREAM, Driver, buffers

copies = pytest.importorskip("seqloom.core.copies_cuda")


@kernel
def _same(out, first, given):
    for n in range(len(out)):
        out[n] = given[0][np.int64(first) + n]


def send(driver: Driver, source: np.ndarray, there: int, between: np.ndarray, fill=_same) -> int:
    return copies._sender(fill)(driver.functions, CONTEXT, np.zeros(1, np.uint64), len(source), np.uint64(there),
                                tuple(part.view(source.dtype) for part in between), EVENTS, STREAM, (source,))


@kernel
def _doubled(out, first, given):
    for n in range(len(out)):
        out[n] = 2 * given[0][np.int64(first) + n]


def test_small_arrays_go_by_way_of_locked_memory_and_streams_wait_for_them() -> None:
    driver, host = Driver(), copies.host_functions()
    array, locked, there, back = (np.arange(7) * n for n in (1, 1, 0, 0))
    addresses = [np.uint64(a.ctypes.data) for a in (array, locked, there, back)]
    known = driver.functions, CONTEXT
    driver.most, size, followers = array.nbytes, np.uint64(array.nbytes), np.array([21, 22], np.uint64)
    assert copies._sent_through(*known, *addresses[1:3], size, EVENTS[0], STREAM, followers) == 0
    assert not there.any() and driver.followed == {21: 1, 22: 1}
    driver.settle(21)
    assert (there == array).all()
    locked[:] = 0
    received = driver.functions, host, CONTEXT, addresses[2], addresses[1], addresses[3], size, STREAM, STREAM
    assert copies._received_through(*received) == 0
    assert (back == array).all()
    there[:] = 0
    driver.failing = True
    assert copies._sent_through(*known, *addresses[1:3], size, EVENTS[0], STREAM, followers) == 700 and not there.any()
    assert copies._received_through(*received) == 700


def test_a_stream_is_waited_for() -> None:
    driver, source, there = Driver(), np.ones(SIZE, np.uint8), np.zeros(SIZE, np.uint8)
    driver.entered = True
    driver.copy(there.ctypes.data, source.ctypes.data, SIZE, STREAM)
    assert not there.any() and copies._settled(driver.functions, CONTEXT, STREAM) == 0 and there.all()


@settings(deadline=None)
@given(st.lists(st.integers(0, 255), max_size=5 * SIZE))
def test_what_is_sent_arrives(letters: list[int]) -> None:
    driver, source, there = Driver(), np.array(letters, np.uint8), np.zeros(len(letters) + 1, np.uint8)
    assert send(driver, source, there.ctypes.data, buffers()) == 0
    for event in EVENTS:
        driver.wait(int(event))
    assert there[:-1].tolist() == letters and there[-1] == 0


def test_what_a_kernel_makes_arrives() -> None:
    driver, source, there = Driver(), np.arange(100, dtype=np.uint16), np.zeros(100, np.uint16)
    assert send(driver, source, there.ctypes.data, buffers(), _doubled) == 0
    for event in EVENTS:
        driver.wait(int(event))
    assert (there == 2 * source).all()


@settings(deadline=None)
@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5 * SIZE // 4), st.sampled_from([np.int32, np.int64]))
def test_what_is_received_is_whole_and_of_the_type_asked_for(numbers: list[int], kind: type) -> None:
    driver, there, between = Driver(), np.array(numbers, np.int32), buffers()
    here = np.full(len(numbers) + 1, 7, kind)
    address = np.uint64(there.ctypes.data)
    assert copies._receive(driver.functions, CONTEXT, address, between.view(np.int32), between, EVENTS, STREAM,
                           here[:-1]) == 0
    assert here[:-1].tolist() == numbers and here[-1] == 7


@pytest.mark.parametrize("kinds", [(np.int32, np.int64), (np.bool_, np.bool_)])
def test_what_is_large_is_received_past_the_caches(kinds: tuple[type, type]) -> None:
    numbers, here = (np.arange(1 << 21) % 1000).astype(kinds[0]), np.zeros(1 << 21, kinds[1])
    driver, between = Driver(), np.zeros((2, 1 << 16), np.uint8)
    driver.most = 1 << 16
    assert copies._receive(driver.functions, CONTEXT, np.uint64(numbers.ctypes.data), between.view(kinds[0]), between,
                           EVENTS, STREAM, here) == 0
    assert here.nbytes > copies._LARGE and (here == numbers).all()


def test_what_is_still_on_its_way_is_not_written_over() -> None:
    driver, between, there = Driver(), buffers(), np.zeros(2 * SIZE, np.uint8)
    sent, rows, here = np.arange(2 * SIZE, dtype=np.uint8), np.arange(50, dtype=np.int32), np.empty(50, np.int64)
    send(driver, sent, there.ctypes.data, between)
    assert not there.any()
    copies._receive(driver.functions, CONTEXT, np.uint64(rows.ctypes.data), between.view(np.int32), between, EVENTS,
                    STREAM, here)
    assert (there == sent).all() and (here == rows).all()


def test_errors_of_the_driver_are_told() -> None:
    driver = Driver()
    driver.failing = True
    source = np.zeros(100, np.uint8)
    error = send(driver, source, 0, buffers())
    assert error == 700
    with pytest.raises(BackendError, match="code 700"):
        copies.checked([0, error])
