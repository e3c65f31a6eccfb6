"""``near-queries`` on CUDA devices: a thread looks up a part of a query, another one compares a query at one place.

As on the CPU, one of k + 1 parts of a query that differs in k residues at most differs in none. Parts are looked up by
backward search; each of their rows, however many a part has, is a thread's, which finds its place and compares the
whole query there. What is kept is counted stretch by stretch, and then written, so that no more than that comes back.
No thread needs room of its own. Index and queries that exceed the devices' memory are cut (``partition_cuda.py``).

Source: on pieces that must match, S. Wu & U. Manber, "Fast text searching allowing errors", CACM 1992.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import int64, uint64
from seqloom.core.context import Context
from seqloom.core.cuda.jit import kernel
from seqloom.core.cuda.transfer import to_host
from seqloom.plugins.exact_match import near_seed_cpu as host

from .fm_index import IndexPart
from .fm_search_cuda import FUNCTIONS, DeviceTables, Layout, backward, cuda, device_functions, grid, range_of
from .near_seed_cpu import NearQueriesCpu
from .partition_cuda import Lane, PartSearch, QueryPart
from .symbols import rejected
from .whole_seed_cuda import QueriesOnDevices, joined

_THREADS = 128
_STRETCH = 32  # rows that a thread counts
_locate, _differ = FUNCTIONS["locate"], device_functions(host._differ)["_differ"]


@kernel()
def _search(symbols, blocks, odd_rows, shift, packed, samples, marks, codes, text, query, begin, starts, lengths, parts,
            count, lows, sizes):
    """Fill the first row of each of ``count`` parts of queries, and in how many rows it occurs.

    A query that is too short for parts has all places of the text for rows of its first part.
    starts: where queries begin in a text whose place ``begin`` is the first of ``query``.
    """
    n = cuda.grid(1)
    if n >= count:
        return
    number, part = n // parts, n % parts
    first, length = starts[number] - begin, lengths[number]
    if length < parts:
        lows[n] = 0
        sizes[n] = len(text) if part == 0 and length > 0 else 0
        return
    low, high, _ = backward(symbols, blocks, odd_rows, shift, packed, codes, query,
                            uint64(first + length * part // parts), uint64(first + length * (part + 1) // parts))
    lows[n] = low
    sizes[n] = int64(high - low) if low < high else int64(0)


@kernel()
def _compare(symbols, blocks, odd_rows, shift, packed, samples, marks, codes, text, query, begin, starts, lengths,
             parts, last, lows, bounds, ranges, own, first_row, count, numbers, places):
    """Fill the query of every row, and its place in the text; −1 where it differs too much or is another row's.

    bounds: i8[ranges + 1], rows of the parts of queries before each. last: the greatest symbol of a residue. own: the
    places of the text that count. ``count`` rows are filled, the first is number ``first_row``.
    """
    n = cuda.grid(1)
    if n >= count:
        return
    row = first_row + n
    at = range_of(bounds, ranges, row)
    number, part = at // parts, at % parts
    length, inside = lengths[number], row - bounds[at]
    if length < parts:
        place, compared, part = inside, int64(1), int64(-1)
    else:
        fm = (symbols, blocks, odd_rows, shift, packed, samples, marks)
        place = int64(_locate(fm, uint64(lows[at]) + uint64(inside))) - length * part // parts
        compared = int64(parts)
    kept = place >= 0 and place < own and place + length <= len(text)
    if kept:
        kept = _differ(text, place, query, starts[number] - begin, length, compared, part, int64(parts - 1), last) >= 0
    numbers[n] = number
    places[n] = place if kept else int64(-1)


@kernel()
def _count_kept(places, count, counts):
    """Count the places that are none of −1 in each stretch of ``_STRETCH`` rows."""
    n = cuda.grid(1)
    if n >= len(counts):
        return
    found = 0
    for row in range(n * _STRETCH, min((n + 1) * _STRETCH, count)):
        if places[row] >= 0:
            found += 1
    counts[n] = found


@kernel()
def _write_kept(numbers, places, count, ends, numbers_out, places_out):
    """Write what is kept of each stretch; ends: i8, how much is kept up to the end of each."""
    n = cuda.grid(1)
    if n >= len(ends):
        return
    at = ends[n - 1] if n > 0 else int64(0)
    for row in range(n * _STRETCH, min((n + 1) * _STRETCH, count)):
        if places[row] >= 0:
            numbers_out[at], places_out[at] = numbers[row], places[row]
            at += 1


class _Search(PartSearch):
    """Gives numbers of queries in the batch and places in the text, i8 both.

    Attributes:
        parts: of a query: one more than residues that may differ.
    """

    layout = Layout(places=True, text=True)
    row_bytes = 40  # query and place, twice; counts of stretches
    parts: int

    def __init__(self, context: Context, *given: Any) -> None:
        super().__init__(context, *given)
        self._last = rejected(context.targets.alphabet)

    def arrays(self, queries: QueryPart) -> dict[str, np.ndarray]:
        strand, (first, last) = self.strands[queries.strand], self.span(queries)
        return {"query": strand.symbols[first:last],
                "starts": strand.starts[queries.first : queries.last].astype(np.int64, copy=False),
                "lengths": self.lengths[queries.first : queries.last].astype(np.int64, copy=False)}

    def look_up(self, lane: Lane, there: DeviceTables, sent: dict[str, Any], part: IndexPart,
                queries: QueryPart) -> tuple[np.ndarray, np.ndarray]:
        count = (queries.last - queries.first) * self.parts
        given = (*there, sent["query"], self.span(queries)[0], sent["starts"], sent["lengths"], self.parts)
        lows, sizes = (lane.array(name, count, np.int64) for name in ("lows", "sizes"))
        _search[(*grid(count, _THREADS), lane.work)](*given, count, lows, sizes)
        bounds = np.zeros(count + 1, np.int64)
        np.cumsum(to_host(sizes, count, np.int64, self.threads, lane.work), out=bounds[1:])
        bounds_there, own, found = lane.send("bounds", bounds), len(part.text) if part.whole else part.places, []
        for first in range(0, int(bounds[-1]), self.room.rows):
            self.check()
            rows = min(self.room.rows, int(bounds[-1]) - first)
            numbers, places = (lane.array(name, rows, np.int64) for name in ("numbers", "places"))
            _compare[(*grid(rows, _THREADS), lane.work)](*given, self._last, lows, bounds_there, count, own, first,
                                                         rows, numbers, places)
            found.append(self._kept(lane, numbers, places, rows))
        return (joined([numbers for numbers, _ in found]) + queries.first,
                joined([places for _, places in found]) + part.begin)

    def _kept(self, lane: Lane, numbers: Any, places: Any, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and places of the rows that are kept."""
        stretches = -(-rows // _STRETCH)
        counts, where = lane.array("counts", stretches, np.int64)[:stretches], (*grid(stretches, _THREADS), lane.work)
        _count_kept[where](places, rows, counts)
        ends = np.cumsum(to_host(counts, stretches, np.int64, self.threads, lane.work))
        total = int(ends[-1])
        if not total:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        out = [lane.array(name, total, np.int64) for name in ("kept numbers", "kept places")]
        ends_there = lane.send("ends", ends)
        _write_kept[where](numbers, places, rows, ends_there, *out)
        kept_numbers, kept_places = (to_host(array, total, np.int64, self.threads, lane.work) for array in out)
        return kept_numbers, kept_places


@cache
def _search_of(mismatches: int) -> type[_Search]:
    """For queries of which so many residues may differ."""

    class Search(_Search):
        parts = mismatches + 1
        query_bytes = 16 + 32 * parts  # start and length; of each part the first row, rows, rows before it, spare

    return Search


class NearQueriesCuda(QueriesOnDevices, NearQueriesCpu):
    __doc__ = NearQueriesCpu.__doc__

    def search(self) -> type[PartSearch]:
        return _search_of(self.options.mismatches)

    def what(self) -> str:
        return f"places with {self.options.mismatches} other residues"


__all__ = ["NearQueriesCuda"]
