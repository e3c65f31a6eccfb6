# ruff: noqa: F821  (names in capitals in the kernel templates are constants filled in by ``specialise``)
"""MSD radix sort of words on a CUDA device, in buckets: large ones by all blocks, small ones by groups of threads.

Large buckets are parted by their next digit, all of one depth in one launch, each by as many blocks as it has work for.
The counts say where the next buckets begin and end. Those that are small then are done at once: a group of threads
holds the words of one in shared memory, and every thread counts how many come before its own. So words are looked at
no deeper than tells them apart, and what few words need costs no passes of all.

Source: A. Drozd's thesis on string sorting and BWT alignment, 4.3.2: its first and second stage on a GPU.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import int32, int64, uint64
from seqloom.core.classes import NamedTuple
from seqloom.core.cuda.jit import kernel
from seqloom.core.cuda.transfer import clear, to_device, to_host
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.kernels.unroll import specialise
from seqloom.plugins.common import radix_cuda as radix
from seqloom.plugins.common.radix_cuda import STRETCH, DeviceWords, cuda, sum_before, warp_barrier

# Filled in by ``specialise``; see ``settle_kernels``.
GROUP: int
GROUPS: int
MOST: int
KEEP: int

SMALL = 4 if SIMULATED else 256
"""Words of a bucket that a group of threads sorts, at most."""
_GROUP, _GROUPS = (2, 1) if SIMULATED else (32, 4)  # threads of a group, which is a warp, and groups of a block
_LISTING = 32 if SIMULATED else 256  # threads of a block that lists buckets
_SPREAD = 8  # blocks for each processor, about, where buckets are few


@cuda.jit(device=True)
def append(wanted, before, begin, size, entries, found, which, start):
    """Put a bucket at the end of a list if it is wanted (1, else 0); all threads of the block call this.

    before: how many threads before this one want theirs. found: i4, numbers of entries; that of this list is number
    ``which``. start: i4[1], shared memory. Which of two blocks comes first is left to chance.
    """
    if cuda.threadIdx.x == cuda.blockDim.x - 1:
        start[0] = cuda.atomic.add(found, which, int32(before + wanted))
    cuda.syncthreads()
    if wanted != 0:
        at = int64(2) * int64(start[0] + before)
        entries[at], entries[at + int64(1)] = begin, size
    cuda.syncthreads()


@kernel()
def _list_buckets(starts, count, most, small, large, found):
    """List buckets: from each of ``count`` starts to the next.

    small, large: i4[…], take first word and size of those of up to ``most`` words, and of the others; found: i4[2],
    numbers of both.
    """
    start = cuda.shared.array(1, int32)
    bucket = cuda.grid(1)
    begin, size = int32(0), int32(0)
    if bucket < count:
        begin = int32(starts[bucket])
        size = int32(starts[bucket + 1]) - begin
    few = int32(1) if int32(0) < size <= most else int32(0)
    many = int32(1) if size > most else int32(0)
    append(few, sum_before(few), begin, size, small, found, 0, start)
    append(many, sum_before(many), begin, size, large, found, 1, start)


@kernel()
def _part_buckets(stretches, blocks, counts, most, small, large, found):
    """List what the digits part each bucket into; a block has a bucket, and a thread a digit.

    blocks: i8[buckets], the first block of the stretches of each. counts: of ``count_digits``. The rest is as of
    ``_list_buckets``.
    """
    start = cuda.shared.array(1, int32)
    block = int64(blocks[cuda.blockIdx.x])
    at = block * int64(STRETCH)
    size = int32(0)
    for n in range(block, stretches[at + int64(3)]):
        size += counts[n, cuda.threadIdx.x]
    begin = int32(stretches[at + int64(4)]) + sum_before(size)
    few = int32(1) if int32(0) < size <= most else int32(0)
    many = int32(1) if size > most else int32(0)
    append(few, sum_before(few), begin, size, small, found, 0, start)
    append(many, sum_before(many), begin, size, large, found, 1, start)


def settle_small(words, rows, buckets, count, end, places, order, tied, words_out):
    """Kernel template: sort each of ``count`` buckets of few words; a group of threads has one.

    buckets: i4[2 * count], first word and size of each. The rest is as of ``settle``.
    """
    kept = cuda.shared.array((GROUPS, MOST), uint64)
    lane = int32(cuda.threadIdx.x % GROUP)
    group = int32(cuda.threadIdx.x // GROUP)
    number = int64(cuda.blockIdx.x) * int64(GROUPS) + int64(group)
    if number < count:
        begin = int64(buckets[int64(2) * number])
        size = int32(buckets[int64(2) * number + int64(1)])
        for n in range(lane, size, GROUP):
            kept[group, n] = words[begin + int64(n)]
        warp_barrier()
        for n in range(lane, size, GROUP):
            word = kept[group, n]
            less, equal = int32(0), int32(0)
            for other in range(size):
                if kept[group, other] < word:
                    less += int32(1)
                elif other < n and kept[group, other] == word:
                    equal += int32(1)
            place = begin + int64(less + equal)
            order[places[place]] = rows[begin + int64(n)]
            tied[place] = 1 if equal > 0 and (end == uint64(0) or word & end != uint64(0)) else 0
            if KEEP:
                words_out[place] = word


def settle(words, rows, stretches, end, places, order, tied, words_out):
    """Kernel template: note where the rows of sorted words belong, and which words tie with the one before.

    stretches: as of ``count_digits``. The rest is as of ``Settled``; KEEP: whether words go to ``words_out``.
    """
    at = int64(cuda.blockIdx.x) * int64(STRETCH)
    first = stretches[at + int64(4)]
    for n in range(stretches[at] + int64(cuda.threadIdx.x), stretches[at + int64(1)], int64(cuda.blockDim.x)):
        word = words[n]
        order[places[n]] = rows[n]
        equal = n > first and words[n - int64(1)] == word
        tied[n] = 1 if equal and (end == uint64(0) or word & end != uint64(0)) else 0
        if KEEP:
            words_out[n] = word


class Settled(NamedTuple):
    """Where sorted words are noted.

    Attributes:
        end: the bits of a word's last code where 0 is the end of a key, else 0: words of keys that have ended tie with
        none. places: i4 device array, places in ``order`` that the words have. order: i4, takes rows. tied: u1, takes
        whether a word equals the one before it in its bucket. words: u8, takes the words themselves; None if they
        aren't wanted.
    """

    end: int
    places: Any
    order: Any
    tied: Any
    words: Any = None

    def given(self, spare: Any) -> tuple[Any, ...]:
        """What kernels are given; ``spare`` stands for words that aren't wanted."""
        return np.uint64(self.end), *self[1:4], spare if self.words is None else self.words


@cache
def settle_kernels(keep: bool) -> tuple[Any, Any]:
    """Of small buckets, and of sorted words."""
    fixed: dict[str, Any] = {"KEEP": int(keep)}
    return (kernel()(specialise(settle_small, GROUP=_GROUP, GROUPS=_GROUPS, MOST=SMALL, **fixed)),
            kernel()(specialise(settle, **fixed)))


class BucketSort:
    """Sorts the words of many buckets, each by itself.

    Args:
        there: words and rows.
        stream: where all of it is queued.
    """

    def __init__(self, there: DeviceWords, stream: Any = 0) -> None:
        capacity = len(there.words)
        self._there, self._stream, self._found = there, stream, cuda.device_array(2, np.int32)
        self._small = cuda.device_array(2 * capacity, np.int32)
        self._large = cuda.device_array(2 * (capacity // (SMALL + 1) + 1), np.int32)
        self._counts = cuda.device_array((1, 1 << radix.BITS), np.int32)

    def sort(self, starts: Any, buckets: int, bits: int, out: Settled) -> None:
        """Sort the words in each of some buckets by their lowest ``bits`` bits, equal ones as they stand.

        Args:
            starts: i4 device array, the first word of each bucket, and the end.
        """
        small, whole = settle_kernels(out.words is not None)
        given = out.given(self._there.words)
        clear(self._found, 2, self._stream)
        self._start(_list_buckets, -(-buckets // _LISTING), _LISTING, starts, buckets, SMALL, self._small, self._large,
                    self._found)
        side, level, (few, large) = 0, 0, self._listed()
        while True:
            if few:
                self._start(small, -(-few // _GROUPS), _GROUP * _GROUPS, *self._there.side(side), self._small, few,
                            *given)
            if not len(large):
                return
            level += 1
            stretches, firsts = _stretches(large)
            cut, blocks = to_device(stretches.reshape(-1), stream=self._stream), len(stretches)
            shift = max(0, bits - level * radix.BITS)
            self._count(cut, blocks, side, shift)
            before = len(large)
            few, large = self._parted(cut, firsts) if shift else (0, large[:0])
            if few or len(large) != before:  # or else the digit is the same in each bucket, and nothing moves
                self._move(cut, blocks, side, shift)
                side += 1
            if not shift:
                self._start(whole, blocks, 1 << radix.BITS, *self._there.side(side), cut, *given)

    def _start(self, function: Any, blocks: int, threads: int, *given: Any) -> None:
        function[blocks, threads, self._stream](*given)

    def _listed(self) -> tuple[int, np.ndarray]:
        """The number of small buckets, and i4[n, 2] large ones."""
        few, many = to_host(self._found, 2, np.int32, stream=self._stream).tolist()
        return few, to_host(self._large, 2 * many, np.int32, stream=self._stream).reshape(-1, 2)

    def _count(self, cut: Any, blocks: int, side: int, shift: int) -> None:
        if len(self._counts) < blocks:
            self._counts = cuda.device_array((blocks, 1 << radix.BITS), np.int32)
        count, _, _ = radix.pass_kernels()
        self._start(count, blocks, 1 << radix.BITS, self._there.side(side)[0], cut, np.int32(shift), self._counts)

    def _move(self, cut: Any, blocks: int, side: int, shift: int) -> None:
        _, move, _ = radix.pass_kernels()
        self._start(move, blocks, 1 << radix.BITS, *self._there.side(side), cut, np.int32(shift), self._counts,
                    *self._there.side(side + 1))

    def _parted(self, cut: Any, firsts: np.ndarray) -> tuple[int, np.ndarray]:
        """What digits that have been counted part buckets into."""
        clear(self._found, 2, self._stream)
        there = to_device(firsts, stream=self._stream)
        self._start(_part_buckets, len(firsts), 1 << radix.BITS, cut, there, self._counts, SMALL, self._small,
                    self._large, self._found)
        return self._listed()


def _stretches(buckets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """i8[blocks, STRETCH], the stretches of buckets; i8[buckets], the first block of each.

    Args:
        buckets: i4[n, 2], first words and sizes.
    """
    begins, sizes = buckets.T.astype(np.int64)
    tile = radix.WORDS_PER_THREAD << radix.BITS
    span = -(-int(sizes.sum()) // (_SPREAD * radix.processors() * tile)) * tile
    parts = -(-sizes // span)
    first = np.cumsum(parts) - parts
    of = np.repeat(np.arange(len(buckets)), parts)
    begin = begins[of] + (np.arange(len(of)) - first[of]) * span
    end = np.minimum(begin + span, (begins + sizes)[of])
    return np.stack([begin, end, first[of], (first + parts)[of], begins[of]], axis=1), first
