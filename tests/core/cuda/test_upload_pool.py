"""Carriers bring what they are given to its place, with a driver of memory moves."""

import threading
from collections import deque

import numpy as np
import pytest
from seqloom.core.errors import BackendError

from tests.core.cuda_driver import CONTEXT, EVENTS, SIZE, STREAM, Driver, buffers

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

upload_pool = pytest.importorskip("seqloom.core.cuda.upload_pool")


class UploadPool(upload_pool.UploadPool):
    """So many, with that driver and buffers of their own."""

    def __init__(self, driver: Driver, count: int, size: int = SIZE) -> None:
        super().__init__(driver.functions, CONTEXT, size)
        self.events = [EVENTS + 2 * np.uint64(n) for n in range(count)]
        for events in self.events:
            self.add(upload_pool.PinnedPair(buffers(), events, (None, None)))

    def synchronize(self, driver: Driver) -> None:
        for event in np.concatenate(self.events).tolist():
            driver.wait(event)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("piece", [SIZE - 3, SIZE, 3 * SIZE])
def test_what_is_uploaded_arrives(threads: int, piece: int) -> None:
    driver, rng = Driver(), np.random.default_rng(1)
    uploads = UploadPool(driver, threads, piece)
    for sizes in ([0], [5], [1000], [7 * SIZE, 0, 3], [SIZE] * 100, [piece * upload_pool.MOST_PIECES + 5] * 9):
        sources = [rng.integers(0, 255, size).astype(np.uint8) for size in sizes]
        there = [np.zeros(size + 1, np.uint8) for size in sizes]
        waiting = deque()
        for source, target in zip(sources, there, strict=True):
            if len(waiting) == 7:
                waiting.popleft()()
            waiting.append(uploads.send(source.ctypes.data, target.ctypes.data, len(source), STREAM))
        while waiting:
            waiting.popleft()()
        uploads.synchronize(driver)
        for source, target in zip(sources, there, strict=True):
            assert (target[:-1] == source).all() and target[-1] == 0


def test_whoever_sends_waits_for_room_in_the_line() -> None:
    driver, there = Driver(), []
    uploads = UploadPool(driver, 2)
    source = (np.arange(SIZE * upload_pool.MOST_PIECES) % 251).astype(np.uint8)
    waiting: deque = deque()

    def send() -> None:
        there.append(np.zeros(len(source), np.uint8))
        waiting.append(uploads.send(source.ctypes.data, there[-1].ctypes.data, len(source), STREAM))

    for _ in range(upload_pool.PIECES // upload_pool.MOST_PIECES):
        send()
    late = threading.Thread(target=send)
    late.start()
    late.join(0.05)
    assert late.is_alive()
    waiting.popleft()()
    late.join()
    while waiting:
        waiting.popleft()()
    uploads.synchronize(driver)
    assert all((target == source).all() for target in there)


def test_errors_of_uploads_are_reported_and_gone_with_what_was_sent() -> None:
    driver, source, there = Driver(), np.ones(300, np.uint8), np.zeros(300, np.uint8)
    uploads = UploadPool(driver, 2)
    driver.failing = True
    with pytest.raises(BackendError, match="code 700"):
        uploads.send(source.ctypes.data, there.ctypes.data, 300, STREAM)()
    driver.failing = False
    uploads.send(source.ctypes.data, there.ctypes.data, 300, STREAM)()
    uploads.synchronize(driver)
    assert (there == source).all()
