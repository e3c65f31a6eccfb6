"""Carriers bring what they are given to its place, as it is or packed, with a driver of memory moves."""

import threading
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.errors import BackendError

from tests.core.cuda_driver import CONTEXT, EVENTS, SIZE, STREAM, Driver, Rows, buffers

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

carriers_cuda = pytest.importorskip("seqloom.core.carriers_cuda")
driver_cuda = pytest.importorskip("seqloom.core.driver_cuda")
letters_cuda = pytest.importorskip("seqloom.core.letters_cuda")
WORDS = 8
BLOCK = 3 * WORDS


class Carriers(carriers_cuda.Carriers):
    """So many, with that driver and buffers of their own."""

    def __init__(self, driver: Driver, count: int, size: int = SIZE) -> None:
        super().__init__(driver.functions, CONTEXT, size, WORDS)
        self.events = [EVENTS + 2 * np.uint64(n) for n in range(count)]
        for events in self.events:
            self.add(carriers_cuda.Lane(buffers(), events, (None, None)))

    def settle(self, driver: Driver) -> None:
        for event in np.concatenate(self.events).tolist():
            driver.wait(event)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("piece", [SIZE - 3, SIZE, 3 * SIZE])
def test_what_carriers_are_given_arrives(threads: int, piece: int) -> None:
    driver, rng = Driver(), np.random.default_rng(1)
    carriers = Carriers(driver, threads, piece)
    for sizes in ([0], [5], [1000], [7 * SIZE, 0, 3], [SIZE] * 100, [piece * carriers_cuda.MOST_PIECES + 5] * 9):
        sources = [rng.integers(0, 255, size).astype(np.uint8) for size in sizes]
        there = [np.zeros(size + 1, np.uint8) for size in sizes]
        waiting = deque()
        for source, target in zip(sources, there, strict=True):
            if len(waiting) == 7:
                waiting.popleft()()
            waiting.append(carriers.send(source.ctypes.data, target.ctypes.data, len(source), STREAM))
        while waiting:
            waiting.popleft()()
        carriers.settle(driver)
        for source, target in zip(sources, there, strict=True):
            assert (target[:-1] == source).all() and target[-1] == 0


def sent_packed(carriers: Carriers, driver: Driver, letters: np.ndarray) -> np.ndarray:
    """What stands at the place of letters, and behind it, when they have been sent packed."""
    there = np.full(len(letters) + 1, 77, np.uint8)
    carriers.send(letters.ctypes.data, there.ctypes.data, len(letters), STREAM, packed=True)()
    carriers.settle(driver)
    return there


def as_arrived(letters: np.ndarray) -> np.ndarray:
    """The same of those that stay as they were behind the words of each block, which aren't written to."""
    there = np.append(letters_cuda.arrived(letters, WORDS), np.uint8(77))
    whole = len(letters) // BLOCK * BLOCK
    there[:whole].reshape(-1, BLOCK)[:, 2 * WORDS :] = 77
    return there


_packing = Driver(), []


@settings(deadline=None)
@given(st.integers(0, 12 * BLOCK), st.integers(0, 7), st.integers(0, 2**32 - 1))
def test_letters_arrive_packed(size: int, before: int, seed: int) -> None:
    driver, started = _packing
    if not started:
        started.append(Carriers(driver, 2))
    letters = np.random.default_rng(seed).integers(0, 32, before + size).astype(np.uint8)[before:]
    assert (sent_packed(started[0], driver, letters) == as_arrived(letters)).all()


@pytest.mark.parametrize("piece", [1, SIZE - 3, SIZE, 3 * SIZE])
@pytest.mark.parametrize("size", [BLOCK - 1, BLOCK, BLOCK + 1, 1000 * BLOCK, SIZE * carriers_cuda.MOST_PIECES * 3 + 7])
def test_packed_letters_go_in_pieces_of_any_size(piece: int, size: int) -> None:
    driver = Driver()
    letters = np.random.default_rng(piece).integers(0, 32, size).astype(np.uint8)
    assert (sent_packed(Carriers(driver, 3, piece), driver, letters) == as_arrived(letters)).all()


def test_packed_letters_and_others_go_side_by_side() -> None:
    driver, rng = Driver(), np.random.default_rng(2)
    carriers = Carriers(driver, 3)
    sources = [rng.integers(0, 32, 100 * BLOCK + n).astype(np.uint8) for n in range(40)]
    there = [np.full(len(source) + 1, 77, np.uint8) for source in sources]
    finish = [carriers.send(source.ctypes.data, target.ctypes.data, len(source), STREAM, packed=n % 2 == 0)
              for n, (source, target) in enumerate(zip(sources, there, strict=True))]
    for done in finish:
        done()
    carriers.settle(driver)
    for n, (source, target) in enumerate(zip(sources, there, strict=True)):
        assert (target == (np.append(source, np.uint8(77)) if n % 2 else as_arrived(source))).all()


def test_rows_are_told_of_as_the_driver_declares_them() -> None:
    driver = pytest.importorskip("cuda.bindings.driver")
    form = driver_cuda.rows(16, 24)
    form[[driver_cuda.ROWS_FROM, driver_cuda.ROWS_TO, driver_cuda.ROWS]] = 1000, 2000, 3
    wanted = driver.CUDA_MEMCPY2D()
    wanted.srcMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_HOST
    wanted.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    wanted.srcHost, wanted.srcPitch, wanted.dstDevice, wanted.dstPitch = 1000, 16, driver.CUdeviceptr(2000), 24
    wanted.WidthInBytes, wanted.Height = 16, 3
    assert bytes(form) == bytes(Rows.from_address(wanted.getPtr()))


def test_whoever_sends_waits_for_room_in_the_line() -> None:
    driver, there = Driver(), []
    carriers = Carriers(driver, 2)
    source = (np.arange(SIZE * carriers_cuda.MOST_PIECES) % 251).astype(np.uint8)
    waiting: deque = deque()

    def send() -> None:
        there.append(np.zeros(len(source), np.uint8))
        waiting.append(carriers.send(source.ctypes.data, there[-1].ctypes.data, len(source), STREAM))

    for _ in range(carriers_cuda.PIECES // carriers_cuda.MOST_PIECES):
        send()
    late = threading.Thread(target=send)
    late.start()
    late.join(0.05)
    assert late.is_alive()
    waiting.popleft()()
    late.join()
    while waiting:
        waiting.popleft()()
    carriers.settle(driver)
    assert all((target == source).all() for target in there)


@pytest.mark.parametrize("packed", [False, True])
def test_errors_of_carriers_are_told_and_gone_with_what_was_sent(packed: bool) -> None:
    driver, source, there = Driver(), np.ones(300, np.uint8), np.zeros(300, np.uint8)
    carriers = Carriers(driver, 2)
    driver.failing = True
    with pytest.raises(BackendError, match="code 700"):
        carriers.send(source.ctypes.data, there.ctypes.data, 300, STREAM, packed)()
    carriers.settle(driver)
    driver.failing = False
    carriers.send(source.ctypes.data, there.ctypes.data, 300, STREAM)()
    carriers.settle(driver)
    assert (there == source).all()
