"""Sorting keys of any length on a CUDA device: a word of each key, then the next one of those that still tie.

A round takes the next word of every open key, sorts the words within each segment, which is a run of keys that are
equal so far, and keeps for the next round only those that still tie. So a key is looked at no further than tells it
apart, and no word is looked at twice.

Source: A. Drozd's thesis on string sorting and BWT alignment, 4.4.2 and 4.4.3, the latter after A. Deshpande & P. J.
Narayanan, "Can GPUs sort strings efficiently?" (2013).
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numba import int32, int64, uint64
from seqloom.core.classes import NamedTuple
from seqloom.core.cuda.jit import kernel
from seqloom.core.cuda.transfer import to_host
from seqloom.core.engine.threads import run_tasks
from seqloom.core.kernels.jit import kernel as host_kernel
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.records import Ragged
from seqloom.plugins.common import radix_cuda as radix
from seqloom.plugins.common.radix_cuda import DeviceWords, cuda, grid, numbers, sum_before
from seqloom.plugins.common.sort_words_cpu import dense_coding, load_words, sort_strings
from seqloom.plugins.sorting.buckets_cuda import Settled, settle_kernels
from seqloom.plugins.sorting.keys_cuda import KeySource

_TASKS = 16  # stretches of ties for each thread of the host
_BLOCKS = 8  # for each processor, that gather open keys
_THREADS = 32 if SIMULATED else 256


@cuda.jit(device=True)
def _kind(tied, n, total):
    """Of a sorted key: 0 if its place is known; else 1, and 1 << 16 more for the first of a segment."""
    if tied[n] != 0:
        return int32(1)
    if n + int64(1) < total and tied[n + int64(1)] != 0:
        return int32(1 + (1 << 16))
    return int32(0)


@kernel()
def _count_open(tied, total, span, sums):
    """Count open keys and segments of each block's stretch. sums: i4[blocks, 2]."""
    both = cuda.shared.array(2, int32)
    if cuda.threadIdx.x < 2:
        both[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    begin = int64(cuda.blockIdx.x) * int64(span)
    end = min(begin + int64(span), int64(total))
    opened, segments = int32(0), int32(0)
    for n in range(begin + int64(cuda.threadIdx.x), end, int64(cuda.blockDim.x)):
        kind = _kind(tied, n, int64(total))
        opened += kind & int32(0xFFFF)
        segments += kind >> int32(16)
    cuda.atomic.add(both, 0, opened)
    cuda.atomic.add(both, 1, segments)
    cuda.syncthreads()
    if cuda.threadIdx.x < 2:
        sums[cuda.blockIdx.x, cuda.threadIdx.x] = both[cuda.threadIdx.x]


@kernel()
def _take_open(tied, total, span, sums, order, places, places_out, rows_out, segment, starts, found):
    """Gather open keys in order: their places, rows and numbers of segments; where segments start, and the end.

    found: i4[2], how many keys and segments there are.
    """
    before = cuda.shared.array(2, int32)
    if cuda.threadIdx.x < 2:
        before[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    for block in range(int32(cuda.threadIdx.x), int32(cuda.blockIdx.x), int32(cuda.blockDim.x)):
        cuda.atomic.add(before, 0, sums[block, 0])
        cuda.atomic.add(before, 1, sums[block, 1])
    cuda.syncthreads()
    opened, segments = int32(before[0]), int32(before[1])
    begin = int64(cuda.blockIdx.x) * int64(span)
    end = min(begin + int64(span), int64(total))
    cuda.syncthreads()
    tile = begin
    while tile < end:
        n = tile + int64(cuda.threadIdx.x)
        kind = int32(0)
        if n < end:
            kind = _kind(tied, n, int64(total))
        ahead = sum_before(kind)
        if kind != int32(0):
            at = opened + (ahead & int32(0xFFFF))
            number = segments + (ahead >> int32(16)) + (kind >> int32(16)) - int32(1)
            places_out[at] = places[n]
            rows_out[at] = order[places[n]]
            segment[at] = number
            if kind > int32(1):
                starts[number] = at
        if cuda.threadIdx.x == cuda.blockDim.x - 1:
            before[0] = (ahead + kind) & int32(0xFFFF)
            before[1] = (ahead + kind) >> int32(16)
        cuda.syncthreads()
        opened += before[0]
        segments += before[1]
        cuda.syncthreads()
        tile += int64(cuda.blockDim.x)
    if cuda.blockIdx.x == cuda.gridDim.x - 1 and cuda.threadIdx.x == 0:
        found[0], found[1], starts[segments] = opened, segments, opened


@kernel()
def join_segments(words, segment, total, shift):
    """Put the number of each word's segment in front of it, from bit ``shift`` on."""
    step = cuda.gridsize(1)
    for n in range(cuda.grid(1), total, step):
        words[n] |= uint64(segment[n]) << uint64(shift)


class OpenKeys:
    """Keys whose place isn't known yet, in segments of keys that are equal so far.

    Attributes:
        count, segments: how many there are.
        there: their rows, and room for their words.
        order: i4 device array, the order of all keys, as far as it is known.
        places: i4, places in ``order`` that open keys have among them.
        segment: i4, number of the segment of each. starts: i4, the first key of each, and the end.
        tied: u1, which tie with the one before, when words of the open keys are sorted.
    """

    def __init__(self, count: int) -> None:
        self.count, self.segments, self.there = count, 1, DeviceWords(count)
        radix.number_rows[grid(count)](0, count, 0, self.there.rows)
        self.order = cuda.device_array(max(1, count), np.int32)
        self.places, self._places_out = numbers(count), cuda.device_array(max(1, count), np.int32)
        self.segment, self.tied = cuda.device_array(max(1, count), np.int32), cuda.device_array(max(1, count), np.uint8)
        self.starts = cuda.device_array(count // 2 + 2, np.int32)
        self.starts[:2].copy_to_device(np.array([0, count], np.int32))
        self._blocks, self._found = _BLOCKS * radix.processors(), cuda.device_array(2, np.int32)
        self._sums = cuda.device_array((self._blocks, 2), np.int32)

    def keep_tied(self) -> None:
        """Have those alone that tie."""
        span = -(-self.count // (self._blocks * _THREADS)) * _THREADS
        blocks = -(-self.count // span)
        _count_open[blocks, _THREADS](self.tied, self.count, span, self._sums)
        _take_open[blocks, _THREADS](self.tied, self.count, span, self._sums, self.order, self.places,
                                     self._places_out, self.there.rows, self.segment, self.starts, self._found)
        self.places, self._places_out = self._places_out, self.places
        self.count, self.segments = to_host(self._found, 2, np.int32).tolist()


def settle_all(open_: OpenKeys, end: int) -> None:
    """Note the order of all open keys, whose words are sorted with the numbers of their segments in front."""
    cut, blocks = open_.there.cut(0, open_.count)
    out = Settled(end, open_.places, open_.order, open_.tied)
    settle_kernels(False)[1][blocks, _THREADS](open_.there.words, open_.there.rows, cut,
                                               *out.given(open_.there.words))


class Round(NamedTuple):
    """What a round is about.

    Attributes:
        open: keys with their words.
        bits: of a word.
        end: the bits of its last code where 0 is the end of a key, else 0.
    """

    open: OpenKeys
    bits: int
    end: int


def order_in_rounds(source: KeySource, longest: int, sort: Callable[[Round], None],
                    width: Callable[[OpenKeys, int], int], least: int) -> np.ndarray:
    """i4[n]: rows of keys in stable order.

    Args:
        longest: the length of the longest one.
        sort: has the rows of the open keys noted in their ``order``, and which of them tie.
        width: how many bits a round's words may have, of so many.
        least: fewer open keys are left to the host.
    """
    some, threads = source.some, source.threads
    open_, depth = OpenKeys(len(some)), 0
    while open_.count and depth < longest and (depth == 0 or open_.count >= least):
        coding = source.coding
        per = min(source.prefix or coding.per, max(1, width(open_, 64) // coding.bits), longest - depth, coding.per)
        if not source.pack(open_.there.rows, open_.count, depth, per, open_.there.words):
            continue  # with other codes now
        sort(Round(open_, per * coding.bits, (1 << coding.bits) - 1 if coding.ended else 0))
        depth += per
        open_.keep_tied()
    order = some.rows_of(to_host(open_.order, len(some), np.int32, threads), threads)
    if open_.count and depth < longest:
        places, rows = (to_host(array, open_.count, np.int32) for array in (open_.places, open_.there.rows))
        starts = to_host(open_.starts, open_.segments + 1, np.int32)
        rows = some.rows_of(rows, threads)
        order[places] = _sorted_by_host(some.keys, longest, depth, rows, starts, threads)
    return order


def _sorted_by_host(keys: Ragged, longest: int, depth: int, rows: np.ndarray, starts: np.ndarray,
                    threads: int) -> np.ndarray:
    """Rows in order of what follows character ``depth``, within each segment from one start to the next."""
    seen = np.zeros(256, np.bool_)
    _mark_tails(keys.values, keys.offsets, rows, depth, seen)
    coding = dense_coding(seen, True)
    bounds = np.searchsorted(starts, np.linspace(0, len(rows), min(len(rows) // 64 + 1, _TASKS * threads) + 1))
    tasks = [starts[first : last + 1] for first, last in pairwise(bounds) if first < last]
    run_tasks(threads, lambda task: _sort_tails(keys.values, keys.offsets, *coding, longest, depth, rows, task), tasks)
    return rows


@host_kernel
def _mark_tails(values, offsets, rows, depth, seen):
    """Set seen[b] for every character b from ``depth`` on of some rows."""
    for row in rows:
        for place in range(offsets[row] + depth, offsets[row + 1]):
            seen[values[place]] = True


@host_kernel
def _sort_tails(values, offsets, codes, bits, per, ended, longest, depth, rows, starts):
    """Sort the rows from each of ``starts`` to the next, which are equal in ``depth`` characters, by what follows."""
    most = 0
    for run in range(len(starts) - 1):
        most = max(most, starts[run + 1] - starts[run])
    words, spare_words, spare_rows = np.empty(most, np.uint64), np.empty(most, np.uint64), np.empty(most, rows.dtype)
    for run in range(len(starts) - 1):
        tied = rows[starts[run] : starts[run + 1]]
        load_words(values, offsets, codes, bits, per, tied, 0, len(tied), depth, words)
        sort_strings(values, offsets, codes, bits, per, ended, longest, words, tied, 0, len(tied), depth, spare_words,
                     spare_rows)
