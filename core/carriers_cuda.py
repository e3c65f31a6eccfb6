"""Threads of the host that copy large arrays to a CUDA device and never come back to the interpreter.

They wait for pieces in a kernel. Whoever sends leaves them all pieces of an array and goes on; each thread takes the
next one when it is done with one, since some are given a slow processor, and while pieces of one array are under way,
those of the next follow. Letters can go packed (``letters_cuda.py``): then what fills a buffer packs them.
"""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import carray

from . import driver_cuda, letters_cuda
from .driver_cuda import (
    BUFFER,
    COPY_MEMORY,
    ENTER,
    RECORD,
    ROWS,
    ROWS_FROM,
    ROWS_TO,
    SEMAPHORE_POST,
    SEMAPHORE_WAIT,
    SEND,
    SEND_ROWS,
    WAIT,
    Lane,
    added,
    bytes_at,
    call,
    checked,
    host_functions,
    library,
    raised,
    rows,
    subtracted,
)
from .jit import kernel
from .letters_cuda import TOGETHER, WORDS, pack

_WORD = 8
PIECES = 4096
"""That may be under way at a time."""
MOST_PIECES = PIECES // 8
"""Of one array, beside the last letters of one that is packed."""
_FROM, _TO, _BYTES, _STREAM, _SENT, _PACKED = range(6)
"""Words of a piece: addresses on host and device, its bytes there, a stream, the address of words of what is sent, and
whether it goes packed."""
LEFT, ERROR = 4, 5
"""Words of what is sent, behind a semaphore that is posted when the memory may change: pieces left, an error's code."""
_TAKEN = 4
"""Word of a line of pieces, behind a semaphore that is posted for each: how many have been taken."""


def new_words(count: int = 6) -> np.ndarray:
    """Words of what is sent, or of a line of pieces, with a semaphore of POSIX at 0 before them."""
    words = np.zeros(count, np.uint64)
    library.sem_init(ctypes.c_void_p(words.ctypes.data), 0, 0)
    return words


def _cut(first: int, last: int, size: int, unit: int = 1) -> np.ndarray:
    """Where pieces of first … last − 1 begin: of ``size``, or of as many units more as not to be too many."""
    return np.arange(first, last, max(size, -(-(last - first) // (MOST_PIECES * unit)) * unit), dtype=np.uint64)


class Carriers:
    """Threads of the host that copy to a device, a piece each, what stands in line.

    Args:
        functions, context: of the driver.
        size: bytes of a piece on the bus, if there aren't too many then.
        words: of a block of packed letters.
    """

    def __init__(self, functions: np.ndarray, context: np.uint64, size: int = BUFFER, words: int = WORDS) -> None:
        self._functions, self._context, self._size, self._words = functions, context, size, words
        self._pieces, self._line = np.zeros((PIECES, 6), np.uint64), new_words()
        self._lanes: list[Lane] = []
        self._given = self._under_way = 0
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._lanes)

    def add(self, lane: Lane) -> None:
        """One more, with a lane of its own."""
        self._lanes.append(lane)
        blocks = rows(2 * self._words, TOGETHER * self._words)
        threading.Thread(target=_carry, name="carrier", daemon=True, args=(
            self._functions, host_functions(), self._context, self._line, self._pieces, lane.buffers, lane.events,
            blocks, np.uint64(self._words))).start()

    def send(self, source: int, there: int, size: int, stream: np.uint64, packed: bool = False) -> Callable[[], None]:
        """Have bytes copied from an address of the host to one of the device; gives what waits until they may change.

        Who has begun much has to wait for some of it before there is room for more.

        Args:
            packed: they are letters, whole blocks of which arrive as ``letters_cuda.arrived`` says.
        """
        block = TOGETHER * self._words
        whole = size // block * block if packed else 0
        blocks = _cut(0, whole, max(1, self._size // (2 * self._words)) * block, block)
        begins = np.concatenate([blocks, _cut(whole, size, self._size)])
        lengths: Any = np.diff(begins, append=np.uint64(size))
        sent = new_words()
        sent[LEFT] = len(begins)
        with self._changed:
            self._changed.wait_for(lambda: self._under_way + len(begins) <= PIECES)
            places = (self._given + np.arange(len(begins))) % PIECES
            for word, values in enumerate((source + begins, there + begins, lengths, stream, sent.ctypes.data,
                                           np.arange(len(begins)) < len(blocks))):
                self._pieces[places, word] = values
            self._given += len(begins)
            self._under_way += len(begins)
            post(host_functions(), self._line, len(begins))

        def finish() -> None:
            try:
                if len(begins):
                    await_post(host_functions(), sent)
                    checked([int(sent[ERROR])])
            finally:
                with self._changed:
                    self._under_way -= len(begins)
                    self._changed.notify_all()

        return finish


@kernel(helpers=(driver_cuda, letters_cuda))
def _carry(functions, host, context, line, pieces, buffers, events, blocks, words):
    """Send pieces (u8[n, 6], the first again behind the last) as they come into line, forever.

    blocks: the form for rows that are ``words`` words each.
    """
    size, turn, home = np.uint64(buffers.shape[1]), np.uint64(0), np.uint64(line.ctypes.data)
    row, block = np.uint64(2) * words, np.uint64(TOGETHER) * words
    entered = call(functions[ENTER], (context,))
    while True:
        while call(host[SEMAPHORE_WAIT], (home,)):  # a signal may end it
            pass
        number = added(home + np.uint64(_TAKEN * _WORD), np.uint64(1)) - np.uint64(1)
        piece, error = pieces[number % np.uint64(len(pieces))], entered
        packed = piece[_PACKED] != np.uint64(0)
        each = size // row * block if packed else size
        for begin in range(np.uint64(0), piece[_BYTES], each):
            error = error or call(functions[WAIT], (events[turn],))
            count, buffer = min(each, piece[_BYTES] - begin), np.uint64(buffers[turn].ctypes.data)
            here, there = piece[_FROM] + begin, piece[_TO] + begin
            if packed:
                many = count // block
                pack(carray(bytes_at(here), (count,)), buffers[turn][: many * row].view(np.uint16), np.int64(words))
                blocks[ROWS_FROM], blocks[ROWS_TO], blocks[ROWS] = buffer, there, many
                error = error or call(functions[SEND_ROWS], (np.uint64(blocks.ctypes.data), piece[_STREAM]))
            else:
                call(host[COPY_MEMORY], (buffer, here, count))
                error = error or call(functions[SEND], (there, buffer, count, piece[_STREAM]))
            error = error or call(functions[RECORD], (events[turn], piece[_STREAM]))
            turn ^= np.uint64(1)
        sent = piece[_SENT]
        raised(sent + np.uint64(ERROR * _WORD), np.uint64(error))
        if not subtracted(sent + np.uint64(LEFT * _WORD), np.uint64(1)):
            call(host[SEMAPHORE_POST], (sent,))


@kernel(helpers=(driver_cuda,))
def post(host, semaphore, count):
    """Let so many through that wait for a semaphore."""
    for _ in range(count):
        call(host[SEMAPHORE_POST], (np.uint64(semaphore.ctypes.data),))


@kernel(helpers=(driver_cuda,))
def await_post(host, semaphore):
    """Until a semaphore is posted."""
    while call(host[SEMAPHORE_WAIT], (np.uint64(semaphore.ctypes.data),)):
        pass
