"""``whole-queries`` on a CUDA device: a thread looks up a query by backward search, another one a place of a row.

Source: A. Drozd's thesis on string sorting and BWT alignment, 3.5: the index lies on the device, queries go there,
ranges of rows come back. The sampled suffixes are there as well, so that places are looked up there too. A table of the
rows of words, as the host has one, would take longer to make than all look-ups.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numba import int64, uint64
from seqloom.core.context import Context
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
    to_device,
)
from seqloom.plugins.exact_match.seed_reference import Strand
from seqloom.plugins.exact_match.symbols import NEVER
from seqloom.plugins.exact_match.whole_seed_cpu import WholeQueriesCpu

_THREADS = 128
_ROWS = 1 << 24  # rows whose places are looked up at a time
_NEVER = int(NEVER)


# The kernels aren't kept on disk: that would overlook changes of the functions that they call.
@cuda.jit
def _search(symbols, blocks, odd_rows, shift, packed, codes, query, starts, lengths, lows, highs):
    """Fill the rows of each query; equal where it doesn't occur. codes: u8[256], two-bit codes by symbol."""
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
    highs[number] = max(low, high)


@cuda.jit
def _locate(symbols, blocks, odd_rows, shift, packed, samples, marks, rows, places):
    """Fill the place in the text of every row."""
    n = cuda.grid(1)
    if n < len(rows):
        fm = (symbols, blocks, odd_rows, shift, packed, samples, marks)
        places[n] = int64(locate(fm, uint64(rows[n])))


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
        lengths = to_device(context.queries.lengths.astype(np.uint64))
        found = []
        for strand in strands:
            context.cancellation.check()
            lows, highs = _rows(there, to_device(codes), strand, lengths)
            parts = list(_placed(there, lows, highs))
            found.append((np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])))
        return found


def _grid(count: int) -> tuple[int, int]:
    threads = 4 if SIMULATED else _THREADS
    return -(-count // threads), threads


def _rows(there: DeviceTables, codes: Any, strand: Strand, lengths: Any) -> tuple[np.ndarray, np.ndarray]:
    """u8[n] first row of each query and the one behind its last."""
    count = len(lengths)
    lows, highs = (cuda.device_array(max(1, count), np.uint64) for _ in range(2))
    if count:
        _search[_grid(count)](*there[:5], codes, to_device(strand.symbols), to_device(strand.starts.astype(np.uint64)),
                              lengths, lows, highs)
    return lows.copy_to_host()[:count], highs.copy_to_host()[:count]


def _placed(there: DeviceTables, lows: np.ndarray, highs: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Numbers of queries and places in the text of all their rows, some queries at a time."""
    sizes = (highs - lows).astype(np.int64)
    before = np.cumsum(sizes) - sizes
    cuts = np.flatnonzero(np.diff(before // _ROWS)) + 1
    yield np.empty(0, np.int64), np.empty(0, np.int64)
    for part in np.split(np.arange(len(sizes)), cuts):
        numbers = np.repeat(part, sizes[part])
        if not len(numbers):
            continue
        rows = lows[numbers] + (np.arange(len(numbers)) - (before[numbers] - before[part[0]])).astype(np.uint64)
        places = cuda.device_array(len(rows), np.int64)
        _locate[_grid(len(rows))](*there, to_device(rows), places)
        yield numbers, places.copy_to_host()
