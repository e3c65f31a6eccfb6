"""Carriers bring what they are given to its place, with a driver of memory moves."""

import threading
from collections import deque

import numpy as np
import pytest
from seqloom.core.errors import BackendError

from tests.core.cuda_driver import CONTEXT, EVENTS, SIZE, STREAM, Driver, buffers

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

carriers_cuda = pytest.importorskip("seqloom.core.carriers_cuda")


class Carriers(carriers_cuda.Carriers):
    """So many, with that driver and buffers of their own."""

    def __init__(self, driver: Driver, count: int, size: int = SIZE) -> None:
        super().__init__(driver.functions, CONTEXT, size)
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


def test_errors_of_carriers_are_told_and_gone_with_what_was_sent() -> None:
    driver, source, there = Driver(), np.ones(300, np.uint8), np.zeros(300, np.uint8)
    carriers = Carriers(driver, 2)
    driver.failing = True
    with pytest.raises(BackendError, match="code 700"):
        carriers.send(source.ctypes.data, there.ctypes.data, 300, STREAM)()
    driver.failing = False
    carriers.send(source.ctypes.data, there.ctypes.data, 300, STREAM)()
    carriers.settle(driver)
    assert (there == source).all()
