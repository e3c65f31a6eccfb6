"""Threads of the host that copy large arrays to a CUDA device and never come back to the interpreter.

They wait for pieces in a kernel. Whoever sends leaves them all pieces of an array and goes on; each thread takes the
next one when it is done with one, since some are given a slow processor, and while pieces of one array are under way,
those of the next follow.
"""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels.jit import kernel
from .driver import (
    BUFFER,
    COPY_MEMORY,
    ENTER,
    RECORD,
    SEMAPHORE_POST,
    SEMAPHORE_WAIT,
    SEND,
    WAIT,
    PinnedPair,
    added,
    call,
    checked,
    host_functions,
    library,
    raised,
    subtracted,
)

_WORD = 8
PIECES = 4096
"""That may be under way at a time."""
MOST_PIECES = PIECES // 8
"""Of one array."""
_FROM, _TO, _BYTES, _STREAM, _SENT = range(5)
"""Words of a piece: addresses on host and device, its bytes, a stream, and the address of words of what is sent."""
LEFT, ERROR = 4, 5
"""Words of what is sent, behind a semaphore that is posted when the memory may change: pieces left, an error's code."""
_TAKEN = 4
"""Word of a line of pieces, behind a semaphore that is posted for each: how many have been taken."""


def new_words(count: int = 6) -> np.ndarray:
    """Words of what is sent, or of a line of pieces, with a semaphore of POSIX at 0 before them."""
    words = np.zeros(count, np.uint64)
    library.sem_init(ctypes.c_void_p(words.ctypes.data), 0, 0)
    return words


def post(semaphore: np.ndarray, count: int) -> None:
    """Let so many through that wait for a semaphore."""
    address = ctypes.c_void_p(semaphore.ctypes.data)
    for _ in range(count):
        library.sem_post(address)


def await_post(semaphore: np.ndarray) -> None:
    """Wait until a semaphore is posted."""
    if library.sem_trywait(ctypes.c_void_p(semaphore.ctypes.data)):
        _awaited(host_functions(), semaphore)


class UploadPool:
    """Threads of the host that copy to a device, a piece each, what stands in line.

    Args:
        functions, context: of the driver.
        size: bytes of a piece, if there aren't too many then.
    """

    def __init__(self, functions: np.ndarray, context: np.uint64, size: int = BUFFER) -> None:
        self._functions, self._context, self._size = functions, context, size
        self._pieces, self._line = np.zeros((PIECES, 5), np.uint64), new_words()
        self._lanes: list[PinnedPair] = []
        self._given = self._under_way = 0
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._lanes)

    def add(self, pair: PinnedPair) -> None:
        """One more, with a lane of its own."""
        self._lanes.append(pair)
        threading.Thread(target=_upload, name="upload", daemon=True, args=(
            self._functions, host_functions(), self._context, self._line, self._pieces, pair.buffers,
            pair.events)).start()

    def send(self, source: int, there: int, size: int, stream: np.uint64) -> Callable[[], None]:
        """Have bytes copied from an address of the host to one of the device; gives what waits until they may change.

        Who has begun much has to wait for some of it before there is room for more.
        """
        each = max(self._size, -(-size // MOST_PIECES))
        begins = each * np.arange(-(-size // each), dtype=np.uint64)
        sent = new_words()
        sent[LEFT] = len(begins)
        with self._changed:
            self._changed.wait_for(lambda: self._under_way + len(begins) <= PIECES)
            places = (self._given + np.arange(len(begins))) % PIECES
            lengths: Any = np.minimum(each, size - begins)
            for word, values in enumerate((source + begins, there + begins, lengths, stream, sent.ctypes.data)):
                self._pieces[places, word] = values
            self._given += len(begins)
            self._under_way += len(begins)
            post(self._line, len(begins))

        def finish() -> None:
            try:
                if len(begins):
                    await_post(sent)
                    checked([int(sent[ERROR])])
            finally:
                with self._changed:
                    self._under_way -= len(begins)
                    self._changed.notify_all()

        return finish


@kernel
def _upload(functions, host, context, line, pieces, buffers, events):
    """Send pieces (u8[n, 5], the first again behind the last) as they come into line, forever."""
    each, turn, home = np.uint64(buffers.shape[1]), np.uint64(0), np.uint64(line.ctypes.data)
    entered = call(functions[ENTER], (context,))
    while True:
        while call(host[SEMAPHORE_WAIT], (home,)):  # a signal may end it
            pass
        number = added(home + np.uint64(_TAKEN * _WORD), np.uint64(1)) - np.uint64(1)
        piece, error = pieces[number % np.uint64(len(pieces))], entered
        for begin in range(np.uint64(0), piece[_BYTES], each):
            error = error or call(functions[WAIT], (events[turn],))
            count, buffer = min(each, piece[_BYTES] - begin), np.uint64(buffers[turn].ctypes.data)
            call(host[COPY_MEMORY], (buffer, piece[_FROM] + begin, count))
            error = error or call(functions[SEND], (piece[_TO] + begin, buffer, count, piece[_STREAM]))
            error = error or call(functions[RECORD], (events[turn], piece[_STREAM]))
            turn ^= np.uint64(1)
        sent = piece[_SENT]
        raised(sent + np.uint64(ERROR * _WORD), np.uint64(error))
        if not subtracted(sent + np.uint64(LEFT * _WORD), np.uint64(1)):
            call(host[SEMAPHORE_POST], (sent,))


@kernel
def _awaited(host, semaphore):
    """Until a semaphore is posted."""
    while call(host[SEMAPHORE_WAIT], (np.uint64(semaphore.ctypes.data),)):
        pass
