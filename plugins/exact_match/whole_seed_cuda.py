"""``whole-queries`` on a CUDA device: a thread looks up a query by backward search, another one a place of a row.

Source: A. Drozd's thesis on string sorting and BWT alignment, 3.5: the index lies on the device, queries go there,
ranges of rows come back. The sampled suffixes are there as well, so that places are looked up there too. A table of the
rows of words, as the host has one, would take longer to make than all look-ups.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import int64, uint64
from seqloom.core.context import Context
from seqloom.core.copies_cuda import to_device, to_host
from seqloom.core.packed16 import SIMULATED
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.exact_match.fm_index import CODE, KIND
from seqloom.plugins.exact_match.fm_search_cuda import (
    DeviceTables,
    cuda,
    device_tables,
    extended,
    is_plain,
    locate,
    mapped_base,
)
from seqloom.plugins.exact_match.seed_reference import Strand
from seqloom.plugins.exact_match.symbols import NEVER
from seqloom.plugins.exact_match.whole_seed_cpu import WholeQueriesCpu

_THREADS = 128
_ROWS = 1 << 24  # rows whose places are looked up at a time
_NEVER = int(NEVER)


# The kernels aren't kept on disk: that would overlook changes of the functions that they call.
@cuda.jit
def _search(symbols, blocks, odd_rows, shift, packed, codes, query, starts, lengths, lows, sizes):
    """Fill the first row of each query, and in how many rows it occurs. codes: u8[256], two-bit codes by symbol."""
    number = cuda.grid(1)
    if number >= len(starts):
        return
    first = uint64(starts[number])
    place = first + uint64(lengths[number])
    low, high = uint64(0), uint64(symbols[len(symbols) - 1, 0])
    if place == first:
        high = uint64(0)
    while low < high and place > first:
        place -= uint64(1)
        symbol = query[place]
        code = codes[symbol]
        if symbol == _NEVER:
            high = low
        elif is_plain(blocks, shift, code, low, high):
            low = mapped_base(blocks, shift, code, low)
            high = mapped_base(blocks, shift, code, high)
        else:
            low, high = extended(symbols, blocks, odd_rows, shift, packed, uint64(symbol), low, high)
    lows[number] = low
    sizes[number] = int64(high - low) if low < high else int64(0)


@cuda.jit
def _place(symbols, blocks, odd_rows, shift, packed, samples, marks, lows, bounds, begin, numbers, places):
    """Fill the query of every row and its place in the text.

    bounds: i8[queries + 1], rows of the queries before each. The first of the rows filled is number ``begin``.
    """
    n = cuda.grid(1)
    if n >= len(numbers):
        return
    row = begin + n
    low, high = int64(0), int64(len(bounds) - 1)
    while high - low > 1:
        middle = (low + high) // 2
        if bounds[middle] <= row:
            low = middle
        else:
            high = middle
    fm = (symbols, blocks, odd_rows, shift, packed, samples, marks)
    numbers[n] = low
    places[n] = int64(locate(fm, uint64(lows[low]) + uint64(row - bounds[low])))


class WholeQueriesCuda(WholeQueriesCpu):
    __doc__ = WholeQueriesCpu.__doc__
    backend = "cuda"

    def footprint(self, shape: Shape) -> Footprint:
        text = shape.target_letters + shape.targets
        return Footprint(host=16 * shape.query_letters + 64 * shape.queries,
                         device=3 * text + 2 * shape.query_letters + 64 * shape.queries + 16 * _ROWS)

    def places(self, context: Context, strands: Sequence[Strand]) -> list[tuple[np.ndarray, np.ndarray]]:
        fm, there = device_tables(context.index(KIND))
        codes = np.full(256, NEVER, np.uint64)
        codes[: len(fm.symbols)] = fm.symbols[:, CODE].astype(np.uint64)
        if not len(context.queries):
            return [(np.empty(0, np.int64), np.empty(0, np.int64)) for _ in strands]
        lengths = to_device(context.queries.lengths, context.threads)
        found = []
        for strand in strands:
            context.cancellation.check()
            lows, sizes = (cuda.device_array(len(strand.starts), np.int64) for _ in range(2))
            _search[_grid(len(lows))](*there[:5], to_device(codes), to_device(strand.symbols, context.threads),
                                      to_device(strand.starts, context.threads), lengths, lows, sizes)
            found.append(_placed(there, lows, to_host(sizes, len(lows), np.int64, context.threads), context.threads))
        return found


def _grid(count: int) -> tuple[int, int]:
    threads = 4 if SIMULATED else _THREADS
    return -(-count // threads), threads


def _placed(there: DeviceTables, lows: Any, sizes: np.ndarray, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of queries and places in the text of all their rows."""
    bounds = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    total, bounds_there = int(bounds[-1]), to_device(bounds, threads)
    found = np.empty(total, np.int64), np.empty(total, np.int64)
    for begin in range(0, total, _ROWS):
        count = min(_ROWS, total - begin)
        filled = [cuda.device_array(count, np.int64) for _ in range(2)]
        _place[_grid(count)](*there, lows, bounds_there, begin, *filled)
        for here, array in zip(found, filled, strict=True):
            here[begin : begin + count] = to_host(array, count, np.int64, threads)
    return found
