# ruff: noqa: F821  (names in capitals in the kernel templates are constants filled in by ``specialise``)
"""Stable radix sort of 64-bit words on a CUDA device, and merging of what is sorted.

A pass sorts by one digit: all words, from the last digit to the first, or the words of each of many buckets
(``buckets_cuda.py``). Every block has one stretch of a bucket. It counts its digits; then, knowing how many of each are
in the stretches before, it moves its words tile by tile: warps number the equal digits of a tile in order, the tile is
put in order in shared memory, and runs of equal digits go out side by side. No atomic operation decides a place, so
equal words keep their order.

Source: A. Drozd's thesis on string sorting and BWT alignment, 4.3.2 (counting and moving in blocks); D. Merrill & A.
Grimshaw, "High performance and scalable radix sorting: a case study of implementing dynamic parallelism for GPU
computing", Parallel Processing Characters 21 (2011).
"""

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numba import cuda as _cuda
from numba import int32, int64, uint32, uint64
from seqloom.core.backends import current_device
from seqloom.core.cuda.jit import kernel
from seqloom.core.kernels.packed16 import SIMULATED, WHOLE_WARP, from_lane
from seqloom.core.kernels.unroll import specialise

cuda: Any = _cuda  # numba's types don't know what code on the device may do
# Filled in by ``specialise``; see ``pass_kernels``.
ITEMS: int
THREADS: int
WARPS: int

BITS = 8
"""Bits of a digit; a block has one thread for each of its values."""
WORDS_PER_THREAD = 16
STRETCH = 5
"""Numbers that describe a block's stretch of words: its first one and the end; the first block of its bucket and the
one behind the last; the first word of the bucket."""
_BLOCKS = 2  # for each processor, which has room for them
LEAST_PART = 1 << 22
"""Keys of a part that is sorted by itself: to queue what sorts it shall not take longer than to send it."""
_MOST_PARTS = 8  # a power of two, so that parts are merged two by two


def registers(count):  # pragma: no cover - names for the templates
    """Place holder; see ``core/kernels/unroll.py``."""


def unrolled(count):  # pragma: no cover
    """Place holder; see ``core/kernels/unroll.py``."""


if not SIMULATED:

    @cuda.jit(device=True, inline="always")
    def same_in_warp(value):
        """Bit mask of the lanes of the warp that have the same value."""
        return uint32(cuda.match_any_sync(WHOLE_WARP, value))

    @cuda.jit(device=True, inline="always")
    def warp_barrier():
        cuda.syncwarp()

else:
    _mailbox = [0] * 1024

    @cuda.jit(device=True)
    def same_in_warp(value):
        here = cuda.threadIdx.x
        _mailbox[here] = int(value)
        cuda.syncthreads()
        mask = sum(1 << lane for lane in range(32) if _mailbox[(here & ~31) | lane] == int(value))
        cuda.syncthreads()
        return np.uint32(mask)

    @cuda.jit(device=True)
    def warp_barrier():
        cuda.syncthreads()


@cuda.jit(device=True)
def shuffled_sum(value):
    """Sum of the values of all threads of the block before this one."""
    sums = cuda.shared.array(32, int32)
    lane = int32(cuda.threadIdx.x) & int32(31)
    warp = int32(cuda.threadIdx.x) >> int32(5)
    total = value
    distance = int32(1)
    while distance < int32(32):
        other = from_lane(total, max(lane - distance, int32(0)))
        if lane >= distance:
            total += other
        distance = distance << int32(1)
    if lane == int32(31):
        sums[warp] = total
    cuda.syncthreads()
    for before in range(warp):
        total += sums[before]
    cuda.syncthreads()
    return total - value


if not SIMULATED:
    sum_before = shuffled_sum
else:

    @cuda.jit(device=True)
    def sum_before(value):  # with two barriers in place of a dozen: they are most of what a simulated kernel takes
        here = cuda.threadIdx.x
        _mailbox[here] = int(value)
        cuda.syncthreads()
        total = sum(_mailbox[:here])
        cuda.syncthreads()
        return np.int32(total)


def count_digits(words, stretches, shift, counts):
    """Kernel template: how often each digit occurs in each block's stretch of words.

    stretches: i8[blocks * STRETCH], see ``STRETCH``. counts: i4[blocks, THREADS].
    """
    tally = cuda.shared.array(THREADS, int32)
    thread = uint32(cuda.threadIdx.x)
    tally[thread] = int32(0)
    cuda.syncthreads()
    own = int64(cuda.blockIdx.x) * int64(STRETCH)
    end = uint64(stretches[own + int64(1)])
    place = uint64(stretches[own]) + uint64(thread)
    word = registers(ITEMS)
    while place + uint64((ITEMS - 1) * THREADS) < end:
        for k in unrolled(ITEMS):  # all of them are on their way before the first is needed
            word[k] = words[place + uint64(k * THREADS)]
        for k in unrolled(ITEMS):
            cuda.atomic.add(tally, uint32(word[k] >> uint64(shift)) & uint32(THREADS - 1), int32(1))
        place += uint64(ITEMS * THREADS)
    while place < end:
        cuda.atomic.add(tally, uint32(words[place] >> uint64(shift)) & uint32(THREADS - 1), int32(1))
        place += uint64(THREADS)
    cuda.syncthreads()
    counts[cuda.blockIdx.x, thread] = tally[thread]


def move_words(words, rows, stretches, shift, counts, words_out, rows_out):
    """Kernel template: words and their rows (i4) to their places by one digit, each bucket by itself.

    counts: made by ``count_digits`` of the same stretches.
    """
    tile_words = cuda.shared.array(THREADS * ITEMS, uint64)
    tally = cuda.shared.array((WARPS, THREADS), int32)
    ahead = cuda.shared.array(THREADS, int32)
    thread = uint32(cuda.threadIdx.x)
    lane = thread & uint32(31)
    warp = thread >> uint32(5)
    lower = (uint32(1) << lane) - uint32(1)
    own = int64(cuda.blockIdx.x)
    place = own * int64(STRETCH)
    tile = uint64(stretches[place])
    end = uint64(stretches[place + int64(1)])
    before = int32(0)
    everywhere = int32(0)
    for block in range(stretches[place + int64(2)], stretches[place + int64(3)]):
        number = counts[block, thread]
        everywhere += number
        if block < own:
            before += number
    # Where this block's next word with the digit ``thread`` goes.
    base = int32(stretches[place + int64(4)]) + sum_before(everywhere) + before
    word = registers(ITEMS)
    rank = registers(ITEMS)
    while tile < end:
        for w in unrolled(WARPS):
            tally[w, thread] = int32(0)
        cuda.syncthreads()
        left = uint32(min(end - tile, uint64(THREADS * ITEMS)))
        mine = warp * uint32(32 * ITEMS) + lane
        source = tile + uint64(mine)
        for k in unrolled(ITEMS):
            # Behind the end all bits are set: such words come last in the tile and are not written.
            word[k] = words[source + uint64(32 * k)] if mine + uint32(32 * k) < left else ~uint64(0)
        for k in unrolled(ITEMS):
            digit = uint32(word[k] >> uint64(shift)) & uint32(THREADS - 1)
            same = same_in_warp(int32(digit))
            rank[k] = tally[warp, digit] + int32(cuda.popc(same & lower))
            warp_barrier()
            if same & lower == uint32(0):
                tally[warp, digit] += int32(cuda.popc(same))
            warp_barrier()
        cuda.syncthreads()
        number = int32(0)
        for w in unrolled(WARPS):
            number += tally[w, thread]
        start = sum_before(number)
        ahead[thread] = base - start
        base += number
        for w in unrolled(WARPS):
            number = tally[w, thread]
            tally[w, thread] = start
            start += number
        cuda.syncthreads()
        for k in unrolled(ITEMS):
            rank[k] += tally[warp, uint32(word[k] >> uint64(shift)) & uint32(THREADS - 1)]
            tile_words[uint32(rank[k])] = word[k]
        cuda.syncthreads()
        for k in unrolled(ITEMS):
            word[k] = tile_words[thread + uint32(k * THREADS)]
        cuda.syncthreads()
        for k in unrolled(ITEMS):
            if mine + uint32(32 * k) < left:
                tile_words[uint32(rank[k])] = uint64(rows[source + uint64(32 * k)])
        cuda.syncthreads()
        for k in unrolled(ITEMS):
            if thread + uint32(k * THREADS) < left:
                digit = uint32(word[k] >> uint64(shift)) & uint32(THREADS - 1)
                to = uint32(ahead[digit]) + thread + uint32(k * THREADS)
                words_out[to] = word[k]
                rows_out[to] = int32(tile_words[thread + uint32(k * THREADS)])
        cuda.syncthreads()
        tile += uint64(THREADS * ITEMS)


@cuda.jit(device=True)
def first_ones(words, first, middle, total, number):
    """How many of the first ``number`` of two stretches of words, merged, are of the one before.

    words: from ``first`` on ``middle`` words in order, which come before equal others, then ``total`` − ``middle``.
    """
    low, high = max(int64(0), number - (total - middle)), min(number, middle)
    while low < high:
        half = (low + high) >> int64(1)
        if words[first + half] <= words[first + middle + number - int64(1) - half]:
            low = half + int64(1)
        else:
            high = half
    return low


def merge_words(words, rows, first, middle, total, splits, words_out, rows_out):
    """Kernel template: from ``first`` on, ``middle`` words in order and ``total`` − ``middle`` others to one order.

    Every block merges what comes to its place in the result: ``_split`` has found out which words these are, and every
    thread of the block does the same for its own.
    """
    tile_words = cuda.shared.array(THREADS * ITEMS, uint64)
    tile_rows = cuda.shared.array(THREADS * ITEMS, int32)
    thread = int64(cuda.threadIdx.x)
    begin = int64(cuda.blockIdx.x) * int64(THREADS * ITEMS)
    size = min(int64(THREADS * ITEMS), total - begin)
    taken = int64(splits[cuda.blockIdx.x])
    ones, others = first + taken, first + middle + begin - taken
    of_ones = int64(splits[cuda.blockIdx.x + 1]) - taken
    for k in unrolled(ITEMS):
        place = thread + int64(k * THREADS)
        if place < size:
            source = ones + place if place < of_ones else others + place - of_ones
            tile_words[place] = words[source]
            tile_rows[place] = rows[source]
    cuda.syncthreads()
    word = registers(ITEMS)
    row = registers(ITEMS)
    mine = min(thread * int64(ITEMS), size)
    one = first_ones(tile_words, int64(0), of_ones, size, mine)
    other = of_ones + mine - one
    for k in unrolled(ITEMS):
        word[k] = uint64(0)
        row[k] = int32(0)
        if mine + int64(k) < size:
            if other >= size or (one < of_ones and tile_words[one] <= tile_words[other]):
                word[k] = tile_words[one]
                row[k] = tile_rows[one]
                one += int64(1)
            else:
                word[k] = tile_words[other]
                row[k] = tile_rows[other]
                other += int64(1)
    cuda.syncthreads()
    for k in unrolled(ITEMS):
        if mine + int64(k) < size:
            tile_words[mine + int64(k)] = word[k]
            tile_rows[mine + int64(k)] = row[k]
    cuda.syncthreads()
    for k in unrolled(ITEMS):
        place = thread + int64(k * THREADS)
        if place < size:
            words_out[first + begin + place] = tile_words[place]
            rows_out[first + begin + place] = tile_rows[place]


@kernel()
def _cut(first, total, span, blocks, stretches):
    """Stretches of ``span`` words for so many blocks, of one bucket: words first … first + total − 1."""
    step = cuda.gridsize(1)
    for block in range(cuda.grid(1), blocks, step):
        begin = int64(first) + int64(block) * int64(span)
        end = int64(first) + int64(total)
        at = block * STRETCH
        stretches[at] = min(begin, end)
        stretches[at + 1] = min(begin + int64(span), end)
        stretches[at + 2], stretches[at + 3], stretches[at + 4] = 0, blocks, first


@kernel()
def _split(words, first, middle, total, tile, count, splits):
    """How many of each of the first tiles of two stretches, merged, are of the one before: by halving, for each."""
    step = cuda.gridsize(1)
    for n in range(cuda.grid(1), count, step):
        splits[n] = first_ones(words, first, middle, total, min(n * tile, total))


@kernel()
def _gather(words, rows, total, out):
    step = cuda.gridsize(1)
    for n in range(cuda.grid(1), total, step):
        out[n] = words[rows[n]]


@kernel()
def number_rows(first, total, at, rows):
    """first, first + 1, … into ``rows`` from place ``at`` on."""
    step = cuda.gridsize(1)
    for n in range(cuda.grid(1), total, step):
        rows[at + n] = first + n


@cache
def pass_kernels() -> tuple[Any, Any, Any]:
    """The kernels that count, that move and that merge."""
    fixed: dict[str, Any] = {"THREADS": 1 << BITS, "ITEMS": WORDS_PER_THREAD, "WARPS": (1 << BITS) // 32}
    # Two blocks shall find room on a processor, or memory is waited for.
    made = kernel(max_registers=128)
    count, move = (made(specialise(template, **fixed)) for template in (count_digits, move_words))
    return count, move, made(specialise(merge_words, **{**fixed, "ITEMS": WORDS_PER_THREAD // 2}))


@cache
def processors() -> int:
    return 1 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def grid(total: int) -> tuple[int, int]:
    """Blocks and threads for kernels that stride over ``total`` things."""
    return (1, 2) if SIMULATED else (max(1, min(-(-total // 256), 16 * processors())), 256)


def numbers(count: int) -> Any:
    """0, 1, … as an i4 device array."""
    there = cuda.device_array(max(1, count), np.int32)
    number_rows[grid(count)](0, count, 0, there)
    return there


def part_bounds(total: int) -> list[int]:
    """The first of each part of some keys, a multiple of eight, and the end."""
    parts = min(_MOST_PARTS, 1 << max(0, (total // LEAST_PART).bit_length() - 1))
    return [*(total * n // parts & ~7 for n in range(parts)), total]


class DeviceWords:
    """Words on the device, each with the row that it is of, and room to sort them.

    Args:
        capacity: most words.

    Attributes:
        words, rows: u8 and i4 device arrays of the ``capacity``; the last sort's result in their first places.
    """

    def __init__(self, capacity: int) -> None:
        self.words, self._spare_words = (cuda.device_array(max(1, capacity), np.uint64) for _ in range(2))
        self.rows, self._spare_rows = (cuda.device_array(max(1, capacity), np.int32) for _ in range(2))
        self._counts = cuda.device_array((_BLOCKS * processors(), 1 << BITS), np.int32)
        self._stretches = cuda.device_array(_BLOCKS * processors() * STRETCH, np.int64)
        self._splits = cuda.device_array(capacity // (WORDS_PER_THREAD // 2 << BITS) + 2, np.int32)

    def sort(self, total: int, bits: int) -> None:
        """Put the first ``total`` words in ascending order of their lowest ``bits`` bits, equal ones as they stand."""
        if self.passes(0, total, bits) % 2:
            self._swap()

    def sort_parts(self, bounds: list[int], make_wait: Callable[[int, Any], object],
                   make: Callable[[int, int], object], sort: Callable[[int, int], int], stream: Any) -> None:
        """Put words in ascending order, equal ones by their rows, as they come.

        Args:
            bounds: of ``part_bounds``.
            make_wait: has a stream wait until what words and rows of a part are made of is there.
            make: queues on the stream what makes words and rows first … last − 1, in their places.
            sort: queues what sorts these; returns the side that they are on then.
            stream: where all work on the device is queued.
        """
        side = 0
        for n, (first, last) in enumerate(pairwise(bounds)):
            make_wait(n, stream)
            make(first, last)
            side = sort(first, last)
            for level in range((len(bounds) - 1).bit_length()):
                if (n + 1) % (2 << level):
                    break
                self._merge(bounds[n + 1 - (2 << level)], bounds[n + 1 - (1 << level)], last, side, stream)
                side += 1
        if side % 2:
            self._swap()

    def _merge(self, begin: int, middle: int, end: int, side: int, stream: Any) -> None:
        """Queue the merging of two stretches of one side into the other."""
        tile = WORDS_PER_THREAD // 2 << BITS
        blocks = -(-(end - begin) // tile)
        split = (*self.side(side)[:1], begin, middle - begin, end - begin, tile, blocks + 1, self._splits)
        _split[(*grid(blocks + 1), stream)](*split)
        pass_kernels()[2][blocks, 1 << BITS, stream](*self.side(side), begin, middle - begin, end - begin,
                                                     self._splits, *self.side(side + 1))

    def passes(self, first: int, total: int, bits: int, stream: Any = 0) -> int:
        """Queue the passes over all digits; their number, which tells the side that the words are on then."""
        count, move, _ = pass_kernels()
        shifts = range(0, bits if total else 0, BITS)
        if not shifts:
            return 0
        cut, blocks = self.cut(first, total, stream)
        for side, shift in enumerate(map(np.int32, shifts)):
            count[blocks, 1 << BITS, stream](self.side(side)[0], cut, shift, self._counts)
            move[blocks, 1 << BITS, stream](*self.side(side), cut, shift, self._counts,
                                            *self.side(side + 1))
        return len(shifts)

    def cut(self, first: int, total: int, stream: Any = 0) -> tuple[Any, int]:
        """Words first … first + total − 1 as one bucket: stretches for blocks, and how many."""
        tile = WORDS_PER_THREAD << BITS
        blocks = max(1, min(_BLOCKS * processors(), -(-total // tile)))
        _cut[(*grid(blocks), stream)](first, total, -(-total // (blocks * tile)) * tile, blocks, self._stretches)
        return self._stretches, blocks

    def side(self, number: int) -> tuple[Any, Any]:
        """Words and rows, or the spare ones, in turns."""
        return (self._spare_words, self._spare_rows) if number % 2 else (self.words, self.rows)

    def _swap(self) -> None:
        self.words, self._spare_words = self._spare_words, self.words
        self.rows, self._spare_rows = self._spare_rows, self.rows

    def put(self, rows: np.ndarray) -> int:
        """Make the first rows these; gives their number."""
        if len(rows):
            self.rows[: len(rows)].copy_to_device(rows)
        return len(rows)

    def put_before(self, first: int, size: int) -> None:
        """Put rows ``first`` … first + size − 1 before the ``first`` rows that are there."""
        self._spare_rows, self.rows = self.rows, self._spare_rows
        if size:
            number_rows[grid(size)](first, size, 0, self.rows)
        if first:
            self.rows[size : first + size].copy_to_device(self._spare_rows[:first])

    def load(self, total: int, fill: Callable[[Any], object], numbered: bool = False) -> None:
        """Make the first ``total`` words those of their rows.

        Args:
            fill: puts words into the first places of a device array, by row.
            numbered: the rows are 0, 1, ….
        """
        fill(self._spare_words)
        if numbered:
            self.words, self._spare_words = self._spare_words, self.words
        elif total:
            _gather[grid(total)](self._spare_words, self.rows, total, self.words)


def streams() -> tuple[Any, Any]:
    """One for kernels and one for copies, of the current device."""
    return (0, 0) if SIMULATED else _streams(current_device())


@cache
def _streams(device: int) -> tuple[Any, Any]:
    return cuda.stream(), cuda.stream()
