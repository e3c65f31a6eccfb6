"""Copies to a device and back by way of buffers, with a driver of memory moves in place of CUDA's."""

from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.errors import BackendError
from seqloom.core.kernels.jit import kernel

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from seqloom.core.cuda.driver import array_at

from tests.core.cuda_driver import CONTEXT, EVENTS, SIZE, STREAM, Driver

copies = pytest.importorskip("seqloom.core.cuda.transfer")
staged_transfers = pytest.importorskip("seqloom.core.cuda.staged_transfer")
WORK, PART, LAST = SimpleNamespace(handle=60), np.uint64(70), np.uint64(71)
"""A stream and two events."""


@kernel
def _same(out, first, given):
    for n in range(len(out)):
        out[n] = array_at(given[0], given[1], out)[first + np.uint64(n)]


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staged_transfers, "_LEAST_PIECE", SIZE)
        patch.setattr(staged_transfers, "BUFFER", SIZE)
        yield


def known(driver: Driver) -> Any:
    return staged_transfers.Driver(driver.functions, copies.host_functions(), CONTEXT)


def pairs(count: int, size: int = SIZE) -> list[Any]:
    """With buffers and events of their own."""
    return [staged_transfers.PinnedPair(np.zeros((2, size), np.uint8), EVENTS + np.uint64(10 * n), (None, None))
            for n in range(count)]


def workers(driver: Driver, fill: Any, there: np.dtype, here: Any = np.int32) -> Any:
    """That of a driver, which waits for its next transfer when one is over."""
    known_workers = vars(driver).setdefault("known_workers", {})
    if (fill, there, here) not in known_workers:
        known_workers[fill, there, here] = staged_transfers.TransferThreads(known(driver), fill, there, np.dtype(here))
    return known_workers[fill, there, here]


@cache
def one_driver() -> Driver:
    return Driver()


def on_device(array: np.ndarray) -> Any:
    return SimpleNamespace(dtype=array.dtype, device_ctypes_pointer=SimpleNamespace(value=array.ctypes.data))


def sent(driver: Driver, source: np.ndarray, there: np.ndarray, parts: int = 1, threads: int = 1, fill: Any = None,
         back: Any = None) -> Any:
    """A transfer of what is made of an array, in parts of random sizes."""
    bounds = np.random.default_rng(parts).integers(0, len(source), parts + 1, endpoint=True)
    bounds.sort()
    bounds[0], bounds[-1] = 0, len(source)
    return staged_transfers.StagedTransfer(workers(driver, fill or _same, source.dtype), (source,), on_device(there),
                                           bounds.tolist(), pairs(threads), PART, STREAM, back)


def received(driver: Driver, there: np.ndarray, here: np.ndarray, pair: Any) -> int:
    back = staged_transfers.Download(known(driver), LAST, STREAM, here, there.dtype, 1)
    back.begin(on_device(there), WORK)
    return back.receive(pair)


@kernel
def _doubled(out, first, given):
    for n in range(len(out)):
        out[n] = 2 * array_at(given[0], given[1], out)[first + np.uint64(n)]


def test_small_arrays_go_by_way_of_locked_memory_and_streams_wait_for_them() -> None:
    driver = Driver()
    array, locked, there, back = (np.arange(7) * n for n in (1, 1, 0, 0))
    addresses = [np.uint64(a.ctypes.data) for a in (array, locked, there, back)]
    driver.most, size, waiting = array.nbytes, np.uint64(array.nbytes), np.array([21, 22], np.uint64)
    assert copies._sent_through(known(driver), *addresses[1:3], size, EVENTS[0], STREAM, waiting) == 0
    assert not there.any() and driver.followed == {21: 1, 22: 1}
    driver.synchronize(21)
    assert (there == array).all()
    locked[:] = 0
    received = *known(driver), addresses[2], addresses[1], addresses[3], size, STREAM, STREAM
    assert copies._received_through(*received) == 0
    assert (back == array).all()
    there[:] = 0
    driver.failing = True
    assert copies._sent_through(known(driver), *addresses[1:3], size, EVENTS[0], STREAM, waiting) == 700
    assert not there.any() and copies._received_through(*received) == 700


def test_a_stream_is_waited_for() -> None:
    driver, source, there = Driver(), np.ones(SIZE, np.uint8), np.zeros(SIZE, np.uint8)
    driver.entered = True
    driver.copy(there.ctypes.data, source.ctypes.data, SIZE, STREAM)
    assert not there.any() and copies._synchronized(*known(driver), STREAM) == 0 and there.all()
    there[:] = 0
    driver.copy(there.ctypes.data, source.ctypes.data, SIZE, STREAM)
    driver.busy = copies._ATTENTIVE + 10
    assert copies._synchronized(*known(driver), STREAM) == 0 and there.all() and not driver.busy
    driver.busy, driver.failing = 1, True
    assert copies._synchronized(*known(driver), STREAM) == 700


@settings(deadline=None)
@given(st.lists(st.integers(0, 255), max_size=20 * SIZE), st.integers(1, 5), st.integers(1, 3))
def test_parts_arrive_one_after_the_other(residues: list[int], parts: int, threads: int) -> None:
    driver, source, there = one_driver(), np.array(residues, np.uint8), np.zeros(len(residues) + 1, np.uint8)
    bounds = np.random.default_rng(parts).integers(0, len(source), parts + 1, endpoint=True)
    bounds.sort()
    with sent(driver, source, there, parts, threads) as staged_transfer:
        for part in range(parts):
            staged_transfer.make_wait(part, WORK)
            driver.synchronize(WORK.handle)
            last = bounds[part + 1] if part < parts - 1 else len(source)
            assert (there[:last] == source[:last]).all()
    assert there[-1] == 0


def test_what_a_kernel_makes_arrives() -> None:
    driver, source, there = Driver(), np.arange(100, dtype=np.uint16), np.zeros(100, np.uint16)
    with sent(driver, source, there, fill=_doubled) as staged_transfer:
        staged_transfer.make_wait(0, WORK)
        driver.synchronize(WORK.handle)
    assert (there == 2 * source).all()


NUMBERS = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20 * SIZE)


@settings(deadline=None)
@given(NUMBERS, st.integers(1, 3), st.integers(0, 3))
def test_what_comes_back_behind_what_is_sent_is_whole(numbers: list[int], threads: int, before: int) -> None:
    driver, source, there = one_driver(), np.array(numbers, np.int32), np.zeros(len(numbers), np.int32)
    here = np.full(before + len(numbers) + 1, 7, np.int32)
    back = staged_transfers.Download(known(driver), LAST, STREAM, here[before:-1], there.dtype, threads)
    with sent(driver, source, there, 2, threads, back=back) as staged_transfer:
        for part in range(2):
            staged_transfer.make_wait(part, WORK)
        driver.synchronize(WORK.handle)
        np.negative(there, out=there)
        staged_transfer.download(on_device(there), WORK)
    assert (here[before:-1] == -source).all() and (here[:before] == 7).all() and here[-1] == 7


@settings(deadline=None)
@given(NUMBERS, st.sampled_from([np.int32, np.int64]))
def test_what_is_received_is_whole_and_of_the_type_asked_for(numbers: list[int], kind: type) -> None:
    there, here = np.array(numbers, np.int32), np.full(len(numbers) + 1, 7, kind)
    assert received(Driver(), there, here[:-1], pairs(1)[0]) == 0
    assert here[:-1].tolist() == numbers and here[-1] == 7


def test_memory_that_is_touched_keeps_what_it_holds() -> None:
    array = np.arange(100_000)
    staged_transfers.touch(np.uint64(array.ctypes.data), np.uint64(array.ctypes.data + array.nbytes))
    assert (array == np.arange(100_000)).all()


def test_nothing_comes_back_when_what_was_to_make_it_fails() -> None:
    driver, source, there, here = Driver(), np.ones(300, np.uint8), np.zeros(300, np.uint8), np.full(300, 7, np.int32)
    back = staged_transfers.Download(known(driver), LAST, STREAM, here, np.dtype(np.int32), 2)
    with pytest.raises(ZeroDivisionError), sent(driver, source, there, 1, 2, back=back):
        raise ZeroDivisionError
    assert (here == 7).all()


@pytest.mark.parametrize("kinds", [(np.int32, np.int64), (np.int32, np.int32), (np.bool_, np.bool_)])
def test_what_is_large_is_received_past_the_caches(monkeypatch, kinds: tuple[type, type]) -> None:
    numbers, here = (np.arange(1 << 23) % 1000).astype(kinds[0]), np.zeros(1 << 23, kinds[1])
    driver = Driver()
    driver.most = 1 << 16
    monkeypatch.setattr(staged_transfers, "BUFFER", driver.most)
    assert received(driver, numbers, here, pairs(1, driver.most)[0]) == 0
    assert here.nbytes > staged_transfers._LARGE and (here == numbers).all()


def test_what_is_still_on_its_way_is_not_written_over() -> None:
    driver, there, pair = Driver(), np.zeros(2 * SIZE, np.uint8), pairs(1)[0]
    source, rows, here = np.arange(2 * SIZE, dtype=np.uint8), np.arange(50, dtype=np.int32), np.empty(50, np.int64)
    staged_transfers.StagedTransfer(workers(driver, _same, source.dtype), (source,), on_device(there), [0, len(source)],
                                    [pair], PART, STREAM).__exit__(None)
    assert not there.any()
    assert received(driver, rows, here, pair) == 0
    assert (there == source).all() and (here == rows).all()


def test_errors_of_the_driver_are_told() -> None:
    driver = Driver()
    driver.failing = True
    source = np.zeros(100, np.uint8)
    with pytest.raises(BackendError, match="code 700"), sent(driver, source, source.copy()) as staged_transfer:
        staged_transfer.make_wait(0, WORK)
    assert received(driver, source, source.copy(), pairs(1)[0]) == 700
    with pytest.raises(BackendError, match="code 700"):
        copies.checked([0, 700])
