"""How keys get to a CUDA device and become words there: whole, part by part, or chopped off by the host.

Keys come over the bus in parts. A part is sorted while the next one is on its way, and sorted parts are merged, so that
when the last one is there little is left to do.

Source: A. Drozd's thesis on string sorting and BWT alignment, 4.4.2 (prefixes chopped off and sent).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import int64, uint64
from seqloom.core.copies_cuda import to_device, to_device_made, to_host, touch
from seqloom.core.jit_cuda import kernel
from seqloom.core.packed16 import SIMULATED
from seqloom.core.records import Ragged
from seqloom.plugins.common import sort_words_cpu
from seqloom.plugins.common.sort_words_cpu import INVALID, Coding, coding_of, dense_coding, length_range, load_words
from seqloom.plugins.sorting.radix_cuda import DeviceWords, cuda, grid, number_rows, recorded, streams

LEAST = 1 << 16
"""Keys from which on the device is quicker than the host."""
_LARGEST = 1 << 31


@kernel()
def _mark_letters(values, total, seen):
    """Set seen[b] for every byte b of ``values``."""
    step = cuda.gridsize(1)
    for place in range(cuda.grid(1), total, step):
        if seen[values[place]] == 0:
            seen[values[place]] = 1


@kernel()
def _pack_rows(values, offsets, width, rows, total, codes, bits, per, depth, words):
    """Word of ``per`` letters from ``depth`` on of each row; a width > 0 stands for offsets."""
    step = cuda.gridsize(1)
    for n in range(cuda.grid(1), total, step):
        row = int64(rows[n])
        begin = row * width if width > 0 else offsets[row]
        end = begin + width if width > 0 else offsets[row + 1]
        begin += depth
        word = uint64(0)
        for place in range(begin, begin + per):
            word = word << uint64(bits)
            if place < end:
                word |= uint64(codes[values[place]])
        words[n] = word


@kernel(sort_words_cpu)
def _pack_whole(values, width, first, total, codes, bits, words, rows):
    """Words and rows of keys first, first + 1, … of ``width`` letters; codes[256] is set if a letter has no code."""
    step = cuda.gridsize(1)
    for row in range(first + cuda.grid(1), first + total, step):
        word, seen = uint64(0), uint64(0)
        for place in range(row * width, (row + 1) * width):
            code = uint64(codes[values[place]])
            word = (word << uint64(bits)) | code
            seen |= code
        words[row], rows[row] = word, row
        if seen & uint64(INVALID) != uint64(0):
            codes[256] = 1


def whole_order(keys: Ragged, threads: int) -> np.ndarray | None:
    """i8[n]: stable order of keys of one length that fit a word; None if they aren't such keys.

    The first keys say how long all are and which letters they have. Whether that is so is looked at while they are
    being sorted, so that nothing but the bus is waited for.
    """
    count, begin = len(keys), int(keys.offsets[0])
    width = int(keys.offsets[1]) - begin
    if not width or int(keys.offsets[-1]) - begin != count * width:
        return None
    coding = coding_of(keys, sample=True, lengths=(width, width))
    if coding.bits * width > 64:
        return None
    work, bus = streams()
    order, lengths = np.empty(count, np.int64), set[int]()
    with _room(count, count * width) as (there, values):
        codes = to_device(np.append(coding.codes, np.uint16(0)), stream=work)

        def send(first: int, last: int) -> Any:
            some = keys.values[begin + first * width : begin + last * width]
            to_device(some, threads, values, bus, first * width)
            return recorded(bus)

        def make(first: int, last: int) -> None:
            _pack_whole[(*grid(last - first), work)](values, width, first, last - first, codes, coding.bits,
                                                      there.words, there.rows)

        def meanwhile(first: int, last: int) -> None:
            touch(order[first:last], threads)
            lengths.update(length_range(Ragged(keys.offsets[first : last + 1], keys.values, width=keys.width), threads))

        there.sort_parts(count, coding.bits * width, send, make, work, meanwhile)
        to_host(there.rows, count, np.int64, threads, work, order)
        strange = to_host(codes, 257, np.uint16)[256]
    return order if lengths == {width} and not strange else None


@contextmanager
def _room(count: int, letters: int) -> Iterator[tuple[DeviceWords, Any]]:
    """Words and u1[letters] on the device.

    To take and to give back memory makes up a tenth of a short sort; so what takes less than a sixteenth of the memory
    of the device is kept for the next one.
    """
    device = 0 if SIMULATED else int(cuda.get_current_device().id)
    there, values = _kept.pop(device, (None, None))
    if there is None or len(there.words) < count or len(values) < letters:
        there = values = None  # given back before more is taken
        there, values = DeviceWords(count), cuda.device_array(letters, np.uint8)
    try:
        yield there, values
    finally:
        total = 1 << 40 if SIMULATED else int(cuda.current_context().get_memory_info()[1])
        if 24 * len(there.words) + len(values) < total // 16:
            _kept[device] = there, values


_kept: dict[int, tuple[Any, Any]] = {}  # by device


def chopped(keys: Ragged, coding: Coding, threads: int) -> DeviceWords:
    """The first letters of keys in order, with their rows: the host chops them off as they are sent (thesis, 4.4.2)."""
    work, bus = streams()
    count, there = len(keys), DeviceWords(len(keys))

    def chop(words: np.ndarray, first: int, last: int) -> None:
        load_words(keys.values, keys.offsets, coding.codes, coding.bits, coding.per, np.arange(first, last), 0,
                   last - first, 0, words)

    def send(first: int, last: int) -> Any:
        to_device_made(chop, there.words, first, last, threads, bus)
        return recorded(bus)

    def make(first: int, last: int) -> None:
        number_rows[(*grid(last - first), work)](first, last - first, first, there.rows)

    there.sort_parts(count, coding.bits * coding.per, send, make, work)
    if not SIMULATED:
        work.synchronize()
    return there


class DeviceKeys:
    """Short keys whole on the device, which makes words of them.

    Args:
        keys: u1 rows.
        lengths: of the shortest and of the longest of them.
        threads: of the host, that copy.

    Attributes:
        coding: codes of the letters that occur.
    """

    def __init__(self, keys: Ragged, lengths: tuple[int, int], threads: int) -> None:
        first, last = int(keys.offsets[0]), int(keys.offsets[-1])
        self._values = to_device(keys.values[first:last], threads)
        shortest, longest = lengths
        self._width = longest if shortest == longest else 0
        offsets = np.zeros(2, np.int64) if self._width else keys.offsets - first
        self._offsets = to_device(offsets, threads)
        seen = to_device(np.zeros(256, np.uint8))
        if last > first:
            _mark_letters[grid(last - first)](self._values, last - first, seen)
        self.coding = dense_coding(to_host(seen, 256, np.uint8) > 0, shortest < longest)
        self._codes = to_device(self.coding.codes)

    def pack(self, rows: Any, total: int, depth: int, letters: int, words: Any) -> None:
        """Words of ``letters`` letters from ``depth`` on of the first ``total`` of ``rows``, device arrays both."""
        if total:
            _pack_rows[grid(total)](self._values, self._offsets, self._width, rows, total, self._codes,
                                     self.coding.bits, letters, depth, words)


def fits(keys: Ragged) -> bool:
    """Whether the device can take ``keys``, and they are so many that it is worth while."""
    count = len(keys)
    if not LEAST <= count < _LARGEST or keys.offsets[0] == keys.offsets[-1]:
        return False
    needed = 40 * count + min(keys.values.nbytes, 40 * count)
    return SIMULATED or needed < 0.9 * int(cuda.current_context().get_memory_info()[0])


def short(keys: Ragged) -> bool:
    """Whether sending keys as they are moves no more bytes than a few words of each would."""
    return int(keys.offsets[-1] - keys.offsets[0]) <= 32 * len(keys)
