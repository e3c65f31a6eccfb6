"""A driver of memory moves in place of CUDA's, for tests of copies."""

import ctypes
import threading

import numpy as np

WORD = ctypes.c_uint64
SIZE = 64
CONTEXT, STREAM, EVENTS = np.uint64(5), np.uint64(6), np.array([7, 8], np.uint64)


class Driver:
    """Its functions: copies are done when an event that was recorded behind them, or the stream, is waited for."""

    def __init__(self) -> None:
        self.entered, self.queued, self.done, self.recorded, self.failing, self.most = False, [], 0, {}, False, SIZE
        self.followed: dict[int, int] = {}
        self.busy = 0
        """How often a stream says that it is at work before it has done all."""
        self.lock = threading.Lock()  # workers call it side by side
        shapes = ((self.enter, 1), (self.copy, 4), (self.copy, 4), (self.record, 2), (self.wait, 1),
                  (self.make_wait, 3), (self.ask, 1), (self.query, 1))
        self._kept = [ctypes.CFUNCTYPE(ctypes.c_int32, *[WORD] * words)(function) for function, words in shapes]
        self.functions = np.array([ctypes.cast(f, ctypes.c_void_p).value for f in self._kept], np.uint64)

    def enter(self, context: int) -> int:
        self.entered = context == CONTEXT
        return 0

    def copy(self, target: int, source: int, size: int, stream: int) -> int:
        assert self.entered and size <= self.most and stream == STREAM
        with self.lock:
            self.queued.append((target, source, size))
        return 700 if self.failing else 0

    def record(self, event: int, stream: int) -> int:
        with self.lock:
            self.recorded[event] = len(self.queued)
        return 0

    def wait(self, event: int) -> int:
        with self.lock:
            self._do(self.recorded.get(event, 0))
        return 0

    def ask(self, event: int) -> int:
        return 0 if self.recorded.get(event, 0) <= self.done else 600

    def make_wait(self, stream: int, event: int, flags: int) -> int:
        assert not flags
        with self.lock:
            self.followed[stream] = self.recorded[event]
        return 0

    def query(self, stream: int) -> int:
        assert self.entered
        if self.busy:
            self.busy -= 1
            return 600
        return 700 if self.failing else self.synchronize(stream)

    def synchronize(self, stream: int) -> int:
        with self.lock:
            self._do(len(self.queued) if stream == STREAM else self.followed.get(stream, 0))
        return 0

    def _do(self, count: int) -> None:
        for target, source, size in self.queued[self.done : count]:
            ctypes.memmove(target, source, size)
        self.done = max(self.done, count)


def buffers() -> np.ndarray:
    return np.zeros((2, SIZE), np.uint8)
