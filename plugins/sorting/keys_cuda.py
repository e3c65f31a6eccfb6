"""How keys get to a CUDA device and become words there: in a few bits a character, or chopped off by the host.

Keys that fit a word come over the bus in parts. A part is sorted while the next one is on its way, and sorted parts are
merged, so that when the last one is there little is left to do. Longer ones are sorted in rounds (``rounds_cuda.py``).

Source: A. Drozd's thesis on string sorting and BWT alignment, 4.4.2 (prefixes chopped off and sent).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import int64, uint64
from seqloom.core.backends import current_device
from seqloom.core.classes import NamedTuple
from seqloom.core.cuda.driver import bytes_from
from seqloom.core.cuda.jit import kernel
from seqloom.core.cuda.transfer import staged_transfer, to_device, to_device_made, to_host
from seqloom.core.kernels.jit import kernel as host_kernel
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.kernels.simd import prefetch
from seqloom.core.records import Ragged
from seqloom.plugins.common.radix_cuda import DeviceWords, cuda, grid, numbers, part_bounds, streams
from seqloom.plugins.common.sort_words_cpu import INVALID, Coding, coding_of, dense_coding
from seqloom.plugins.sorting.buckets_cuda import BucketSort, Settled
from seqloom.plugins.sorting.character_codes import EIGHT, CharacterCodes, character_codes, fill_codes
from seqloom.plugins.sorting.ranges_cpu import KeyRange

LEAST = 1 << 16
"""Keys from which on the device is quicker than the host."""
_LARGEST = 1 << 31
_PER_KEY = 64  # bytes of the device for each key beside its characters
_LOOK = 64  # bytes of memory that the host looks at to chop a few characters off a key
_KEYS_AHEAD = 16  # keys whose characters are asked for from memory before those of the first are taken


@kernel()
def _mark_characters(values, total, seen):
    """Set seen[b] for every byte b of ``total`` characters, eight in each of ``values``."""
    step = cuda.gridsize(1)
    for place in range(cuda.grid(1), total, step):
        character = (values[place >> 3] >> uint64(8 * (place & 7))) & uint64(255)
        if seen[character] == 0:
            seen[character] = 1


@kernel()
def _pack_rows(values, sent, offsets, width, rows, total, codes, bits, per, depth, words):
    """Word of ``per`` characters from ``depth`` on of each row; a width > 0 stands for offsets.

    values: codes of ``sent`` bits each, eight in a number; ``codes`` says what they are in ``bits`` bits.
    """
    step = cuda.gridsize(1)
    single = (uint64(1) << uint64(sent)) - uint64(1)
    for n in range(cuda.grid(1), total, step):
        row = int64(rows[n])
        begin = row * width if width > 0 else offsets[row]
        end = begin + width if width > 0 else offsets[row + 1]
        begin += depth
        word = uint64(0)
        for place in range(begin, begin + per):
            word = word << uint64(bits)
            if place < end:
                word |= uint64(codes[(uint64(values[place >> 3]) >> uint64(sent * (place & 7))) & single])
        words[n] = word


@kernel()
def _pack_whole(values, sent, width, first, total, codes, bits, words, rows):
    """Words and rows of keys first, first + 1, … of ``width`` characters; codes[256] is set if a character has no
    code."""
    step = cuda.gridsize(1)
    single = (uint64(1) << uint64(sent)) - uint64(1)
    for row in range(first + cuda.grid(1), first + total, step):
        word, seen = uint64(0), uint64(0)
        for place in range(row * width, (row + 1) * width):
            code = uint64(codes[(uint64(values[place >> 3]) >> uint64(sent * (place & 7))) & single])
            word = (word << uint64(bits)) | code
            seen |= code
        words[row], rows[row] = word, row
        if seen & uint64(INVALID) != uint64(0):
            codes[256] = 1


@kernel()
def _copy(words, rows, first, total, words_out, rows_out):
    """Words and rows first … first + total − 1 to the same places of others."""
    step = cuda.gridsize(1)
    for n in range(first + cuda.grid(1), first + total, step):
        words_out[n], rows_out[n] = words[n], rows[n]


@host_kernel
def fill_words(out, first, given):
    """Words of ``per`` characters from character ``depth`` on of keys first, first + 1, …, or of those of ``rows`` if
    any.

    given: u1 characters, i8 offsets and u2 codes; bits, ``per`` and ``depth``; i4 rows; u1[1], set to 1 if a character
    has no code.
    """
    values, offsets = bytes_from(given[0], given[1]), bytes_from(given[2], np.uint64(8) * given[3]).view(np.int64)
    codes = bytes_from(given[4], np.uint64(2) * given[5]).view(np.uint16)
    rows, strange = bytes_from(given[9], np.uint64(4) * given[10]).view(np.int32), bytes_from(given[11], given[12])
    bits, per, depth = np.uint64(given[6]), np.int64(given[7]), np.int64(given[8])
    first, seen, last = np.int64(first), np.uint64(0), np.int64(len(out) - 1)
    for n in range(len(out)):
        row, ahead = first + n, first + min(n + _KEYS_AHEAD, last)
        if len(rows):
            row, ahead = np.int64(rows[row]), np.int64(rows[ahead])
        prefetch(values, offsets[ahead] + depth)
        begin = offsets[row] + depth
        end = min(begin + per, offsets[row + 1])
        word = np.uint64(0)
        for place in range(begin, end):
            code = np.uint64(codes[values[place]])
            word = (word << bits) | code
            seen |= code
        if begin < end:
            out[n] = word << (bits * np.uint64(per - (end - begin)))
        else:
            out[n] = 0
    if seen & np.uint64(INVALID):
        strange[0] = 1


class _Characters:
    """Characters of keys on the device, as the codes that they are sent as.

    Args:
        values: u1 characters.
        how: their codes.
        room: on the device, for them.
    """

    def __init__(self, values: np.ndarray, how: CharacterCodes, room: "_CharacterRoom") -> None:
        self.there, self.bits, self._room, self._strange = room.numbers, how.bits, room, np.zeros(1, np.uint8)
        self._given, self._codes = (values, how.bits, how.tables, self._strange), how.codes

    def sent(self, bounds: list[int], threads: int, stream: Any = None, back: np.ndarray | None = None) -> Any:
        """A ``staged_transfer`` of characters bounds[0] … bounds[-1] − 1, part by part; each part begins a number."""
        numbers = [-(-n // EIGHT) for n in bounds]
        return staged_transfer(fill_codes, self._given, self.there, numbers, threads, stream, back)

    def codes(self, stream: Any = None) -> Any:
        """u2[257] on the device: the coding's code of each that is sent, and 0."""
        return self._room.codes_of(self._codes, stream)

    @property
    def strange(self) -> bool:
        """Whether the host saw a character without a code."""
        return bool(self._strange[0])


def word_coding(keys: Ragged, lengths: tuple[int, int]) -> Coding | None:
    """The coding of the first of some keys, if they have one length and fit a word so; else None.

    Args:
        lengths: of the shortest and of the longest of them.
    """
    if not lengths[0] or lengths[0] != lengths[1]:
        return None
    coding = coding_of(keys, sample=True, lengths=lengths)
    return coding if coding.bits * lengths[0] <= 64 else None


def whole_order(some: KeyRange, threads: int, buckets: bool = False) -> np.ndarray | None:
    """i4[n]: rows of keys of one length that fit a word, in stable order; None if they aren't such keys.

    The first keys say which characters they have. Whether that is so is looked at while they are sent and sorted, so
    that nothing but the bus is waited for.

    Args:
        buckets: sort by the first digit first, in buckets; else by the last one first.
    """
    coding = word_coding(some.keys, some.lengths)
    if coding is None:
        return None
    keys = some.copied(threads)
    count, begin, width = len(keys), int(keys.offsets[0]), some.lengths[0]
    work, bus = streams()
    order, how, bounds = np.empty(count, np.int32), character_codes(coding), part_bounds(count)
    with _room(count, count * width, how.dtype, buckets) as room:
        characters = _Characters(keys.values[begin : begin + count * width], how, room.characters)
        with characters.sent([n * width for n in bounds], threads, bus, order) as parts:
            codes = characters.codes(work)

            def make(first: int, last: int) -> None:
                _pack_whole[(*grid(last - first), work)](characters.there, how.bits, width, first, last - first,
                                                         codes, coding.bits, room.words.words, room.words.rows)

            def sort(first: int, last: int) -> int:
                if room.buckets is None:
                    return room.words.passes(first, last - first, coding.bits * width, work)
                room.buckets.sort(first, last, coding.bits * width)
                return 0

            room.words.sort_parts(bounds, parts.make_wait, make, sort, work)
            parts.download(room.words.rows, work)
        strange = characters.strange or (how.bits == 8 and to_host(codes, 257, np.uint16)[256])
    return None if strange else some.rows_of(order, threads)


class _CharacterRoom:
    """Room on the device for so many characters.

    Attributes:
        numbers: of eight codes.
    """

    def __init__(self, characters: int, dtype: np.dtype) -> None:
        self.numbers = cuda.device_array(max(1, -(-characters // EIGHT)), dtype)
        self._codes, self._sent = cuda.device_array(257, np.uint16), np.empty(0, np.uint16)

    def codes_of(self, codes: np.ndarray, stream: Any) -> Any:
        """u2[257] on the device: up to 256 codes, and 0; those of the last characters are there already."""
        if len(codes) == 256 or not np.array_equal(codes, self._sent):  # of bytes, 256 tells what was found
            sent = np.zeros(257, np.uint16)
            sent[: len(codes)] = codes
            to_device(sent, 1, self._codes, stream)
            self._sent = codes
        return self._codes


class _PartSort:
    """Sorts stretches of words in buckets.

    Args:
        there: the words.
        stream: where all of it is queued.
    """

    def __init__(self, there: DeviceWords, stream: Any) -> None:
        count = len(there.words)
        self._there, self._stream, self._buckets = there, stream, BucketSort(there, stream)
        self._out = Settled(0, numbers(count), cuda.device_array(count, np.int32), cuda.device_array(count, np.uint8),
                            cuda.device_array(count, np.uint64))

    def sort(self, first: int, last: int, bits: int) -> None:
        """Put words first … last − 1 in order of their lowest bits, where they stand."""
        if first == last:
            return
        starts = to_device(np.array([first, last], np.int32), stream=self._stream)
        self._buckets.sort(starts, 1, bits, self._out)
        _copy[(*grid(last - first), self._stream)](self._out.words, self._out.order, first, last - first,
                                                   *self._there.side(0))


class _Room(NamedTuple):
    """On the device."""

    words: DeviceWords
    characters: _CharacterRoom
    buckets: _PartSort | None


@contextmanager
def _room(count: int, characters: int, dtype: np.dtype, buckets: bool) -> Iterator[_Room]:
    """For so many words and characters, and to sort words in buckets if these are wanted.

    To take and to give back memory makes up a tenth of a short sort; so what takes less than a sixteenth of the memory
    of the device is kept for the next one.
    """
    kind = current_device(), buckets
    room = _kept.pop(kind, None)
    if room is None or len(room.words.words) < count or len(room.characters.numbers) < -(-characters // EIGHT) or (
            room.characters.numbers.dtype != dtype):
        room = None  # given back before more is taken
        words = DeviceWords(count)
        room = _Room(words, _CharacterRoom(characters, dtype), _PartSort(words, streams()[0]) if buckets else None)
    try:
        yield room
    finally:
        total = 1 << 40 if SIMULATED else int(cuda.current_context().get_memory_info()[1])
        if (_PER_KEY if buckets else 24) * len(room.words.words) + room.characters.numbers.nbytes < total // 16:
            _kept[kind] = room


_kept: dict[tuple[int, bool], _Room] = {}  # by device, and whether there are buckets


class DeviceKeys:
    """Keys whole on the device, which makes words of them.

    Args:
        keys: u1 rows.
        lengths: of the shortest and of the longest of them.
        threads: of the host, that copy.

    Attributes:
        coding: codes of the characters that occur.
    """

    def __init__(self, keys: Ragged, lengths: tuple[int, int], threads: int) -> None:
        first, last = int(keys.offsets[0]), int(keys.offsets[-1])
        values, (shortest, longest) = keys.values[first:last], lengths
        self._width = longest if shortest == longest else 0
        self._offsets = to_device(np.zeros(2, np.int64) if self._width else keys.offsets - first, threads)
        self.coding = coding_of(keys, sample=True, lengths=lengths)
        self._characters = self._sent(values, threads)
        if self._characters.strange:  # as they are, and the device looks which there are
            self.coding = dense_coding(np.ones(256, np.bool_), shortest < longest)
            self._characters = self._sent(values, threads)
        self._codes = self._characters.codes()
        if self._characters.bits == 8:
            seen = to_device(np.zeros(256, np.uint8))
            _mark_characters[grid(len(values))](self._characters.there, len(values), seen)
            self.coding = dense_coding(to_host(seen, 256, np.uint8) > 0, shortest < longest)
            to_device(self.coding.codes, 1, self._codes)

    def _sent(self, values: np.ndarray, threads: int) -> _Characters:
        how = character_codes(self.coding)
        characters = _Characters(values, how, _CharacterRoom(len(values), how.dtype))
        with characters.sent([0, len(values)], threads):
            return characters

    def pack(self, rows: Any, total: int, depth: int, characters: int, words: Any) -> None:
        """Words of ``characters`` characters from ``depth`` on of the first ``total`` of ``rows``, device arrays
        both."""
        if total:
            _pack_rows[grid(total)](self._characters.there, self._characters.bits, self._offsets, self._width, rows,
                                    total, self._codes, self.coding.bits, characters, depth, words)


class KeySource:
    """Words of keys for the device, from whichever side they cost less.

    The host chops off what a round asks for and sends that alone (thesis, 4.4.2). As soon as it would have looked at as
    much memory so as all characters take, these are sent: short keys at once, long ones that are alike for long later.
    That is at most twice what the better way would have taken.

    Args:
        some: the keys.
        threads: of the host.
        prefix: characters of a word, at most; 0 for as many as it holds.
        room: bytes of the device for characters.

    Attributes:
        coding: codes of the characters that were seen so far.
    """

    def __init__(self, some: KeyRange, threads: int, prefix: int, room: int) -> None:
        self.some, self.threads, self.prefix = some, threads, prefix
        self.coding = coding_of(some.keys, sample=True, lengths=some.lengths)
        self._size, self._room, self._looked_at = some.characters(threads), room, 0
        self._whole: DeviceKeys | None = None

    def pack(self, rows: Any, total: int, depth: int, characters: int, words: Any) -> bool:
        """Words of ``characters`` characters from ``depth`` on of the first ``total`` of ``rows``, device arrays both.

        Args:
            rows: 0, 1, … if ``depth`` is 0.

        Returns:
            Whether there are any: False if there are other codes now, so that the words may have another width.
        """
        if self._whole is None and not self._send_whole(total):
            return self._chop(self._rows(rows, total, depth), total, depth, characters, words)
        assert self._whole is not None
        if self.coding is not self._whole.coding:
            self.coding = self._whole.coding
            return False
        self._whole.pack(rows, total, depth, characters, words)
        return True

    def _send_whole(self, total: int) -> bool:
        self._looked_at += _LOOK * total
        if self._looked_at < self._size or self._size > self._room:
            return False
        self._whole = DeviceKeys(self.some.copied(self.threads), self.some.lengths, self.threads)
        return True

    def _rows(self, rows: Any, total: int, depth: int) -> np.ndarray:
        """i4: rows of all keys of those that ``pack`` is asked for; none if these are all."""
        if depth:
            return self.some.rows_of(to_host(rows, total, np.int32, self.threads), self.threads)
        return np.empty(0, np.int32) if self.some.rows is None else self.some.rows

    def _chop(self, rows: np.ndarray, total: int, depth: int, characters: int, words: Any) -> bool:
        keys, strange = self.some.keys, np.zeros(1, np.uint8)
        given = (keys.values, keys.offsets, self.coding.codes, self.coding.bits, characters, depth, rows, strange)
        to_device_made(fill_words, given, words, 0, total, self.threads)
        if strange[0]:
            self.coding = coding_of(keys, self.threads, lengths=self.some.lengths)
        return not strange[0]


def many(keys: Ragged) -> bool:
    """Whether it is worth while to send ``keys`` to the device."""
    return LEAST <= len(keys) < _LARGEST and keys.offsets[0] < keys.offsets[-1]


def room_for(some: KeyRange, device_memory: int | None) -> int:
    """Bytes of the device for characters, beside what it takes to sort keys; less than 0 if that doesn't fit."""
    return _memory(device_memory) - _PER_KEY * len(some)


def most_keys(device_memory: int | None) -> int:
    """How many keys the device has room to sort, beside characters."""
    return _memory(device_memory) // _PER_KEY


def _memory(device_memory: int | None) -> int:
    """Bytes of the device that are free, or that may be taken."""
    free = 1 << 40 if SIMULATED else int(cuda.current_context().get_memory_info()[0]) * 9 // 10
    return free if device_memory is None else min(free, device_memory)
