"""``whole-queries`` on CUDA devices: a thread looks up a query by backward search, another one a place of a row.

Index and queries that exceed the devices' memory are cut (``partition_cuda.py``).

Source: A. Drozd's thesis on string sorting and BWT alignment, 3.5: the index lies on the device, queries go there,
ranges of rows come back. Places are looked up there as well, where the sampled suffixes are then, or on the host, as in
the thesis: which leaves room for more than twice as much text. A table of the rows of words, as the host has one, would
take longer to make than all look-ups.
"""

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numba import int64, uint64
from seqloom.core.context import Context
from seqloom.core.cuda.jit import kernel
from seqloom.core.cuda.transfer import to_host
from seqloom.core.engine.threads import run_tasks
from seqloom.core.stages import LARGE_BATCH, Footprint, Shape

from . import partition_cuda
from .fm_index import IndexPart
from .fm_search_cuda import FUNCTIONS, DeviceTables, Layout, backward, cuda, grid, range_of
from .partition import Costs, Split
from .partition_cuda import Lane, Partition, PartSearch, QueryPart, Room, machine_costs
from .seed_reference import Strand
from .whole_seed_cpu import WholeQueriesCpu, located
from .whole_seed_reference import WholeQueries

_THREADS = 128
_locate = FUNCTIONS["locate"]


@kernel()
def _search(symbols, blocks, odd_rows, shift, packed, samples, marks, codes, text, query, begin, starts, lengths, count,
            lows, sizes):
    """Fill the first row of each of ``count`` queries, and in how many rows it occurs.

    codes: u8[256], two-bit codes by symbol. starts: where queries begin in a text whose place ``begin`` is the first of
    ``query``.
    """
    number = cuda.grid(1)
    if number >= count:
        return
    first = uint64(starts[number] - begin)
    low, high, _ = backward(symbols, blocks, odd_rows, shift, packed, codes, query, first,
                            first + uint64(lengths[number]))
    lows[number] = low
    sizes[number] = int64(high - low) if low < high and lengths[number] > 0 else int64(0)


@kernel()
def _place(symbols, blocks, odd_rows, shift, packed, samples, marks, codes, text, lows, bounds, queries, begin, count,
           numbers, places):
    """Fill the query of every row and its place in the text.

    bounds: i8[queries + 1], rows of the queries before each. ``count`` rows are filled, the first is number ``begin``.
    """
    n = cuda.grid(1)
    if n >= count:
        return
    row = begin + n
    number = range_of(bounds, queries, row)
    fm = (symbols, blocks, odd_rows, shift, packed, samples, marks)
    numbers[n] = number
    places[n] = int64(_locate(fm, uint64(lows[number]) + uint64(row - bounds[number])))


class _Search(PartSearch):
    """Gives numbers of queries in the batch and places in the text of all rows, i8 both."""

    layout = Layout(places=True)
    query_bytes = 48  # start, length, first row, rows, rows before it, spare
    row_bytes = 16  # its query and its place

    def arrays(self, queries: QueryPart) -> dict[str, np.ndarray]:
        strand, (first, last) = self.strands[queries.strand], self.span(queries)
        return {"query": strand.symbols[first:last], "starts": strand.starts[queries.first : queries.last],
                "lengths": self.lengths[queries.first : queries.last]}

    def look_up(self, lane: Lane, there: DeviceTables, sent: dict[str, Any], part: IndexPart,
                queries: QueryPart) -> tuple[np.ndarray, np.ndarray]:
        count, begin = queries.last - queries.first, self.span(queries)[0]
        lows, sizes = (lane.array(name, count, np.int64) for name in ("lows", "sizes"))
        blocks, threads = grid(count, _THREADS)
        _search[blocks, threads, lane.work](*there, sent["query"], begin, sent["starts"], sent["lengths"], count,
                                            lows, sizes)
        rows = to_host(sizes, count, np.int64, self.threads, lane.work)
        if self.layout.places:
            numbers, places = self._places(lane, there, lows, rows)
        else:
            numbers, places = self._places_on_host(part, to_host(lows, count, np.int64, self.threads, lane.work), rows)
        if not part.whole:  # what begins behind is the next part's
            mine = places < part.places
            numbers, places = numbers[mine], places[mine]
        return numbers + queries.first, places + part.begin

    def _places(self, lane: Lane, there: DeviceTables, lows: Any, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers in the part and places of all rows, some at a time."""
        bounds = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=bounds[1:])
        bounds_there, found = lane.send("bounds", bounds), []
        for begin in range(0, int(bounds[-1]), self.room.rows):
            count = min(self.room.rows, int(bounds[-1]) - begin)
            filled = [lane.array(name, count, np.int64) for name in ("numbers", "places")]
            blocks, threads = grid(count, _THREADS)
            _place[blocks, threads, lane.work](*there, lows, bounds_there, len(sizes), begin, count, *filled)
            found.append([to_host(array, count, np.int64, self.threads, lane.work) for array in filled])
        return joined([numbers for numbers, _ in found]), joined([places for _, places in found])

    def _places_on_host(self, part: IndexPart, lows: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same, from the host's suffixes."""
        inner = np.searchsorted(np.cumsum(sizes), np.linspace(0, sizes.sum(), 4 * self.threads + 1)[1:-1])
        bounds = [0, *inner.tolist(), len(sizes)]

        def some(task: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
            first, last = task
            low = lows[first:last].astype(np.uint64)
            numbers, places = located(part.fm, low, low + sizes[first:last].astype(np.uint64))
            return numbers + first, places

        found = run_tasks(self.threads, some, [task for task in pairwise(bounds) if task[0] < task[1]])
        return joined([numbers for numbers, _ in found]), joined([places for _, places in found])


class _RangeSearch(_Search):
    """The same, with places looked up on the host."""

    layout = Layout(places=False)


class QueriesOnDevices(WholeQueries):
    """What stages that look up queries as a whole have in common; to be named before what they do on the CPU.

    Their searches give numbers of queries in the batch and places in the text, i8 both.
    """

    backend = "cuda"
    batch_residues, flight = LARGE_BATCH, 4

    @abstractmethod
    def search(self) -> type[PartSearch]:
        """Looks up a part of the queries in a part of the index."""

    @abstractmethod
    def what(self) -> str:
        """Is looked up: costs of different things are kept apart."""

    def footprint(self, shape: Shape) -> Footprint:
        text, search = shape.target_residues + shape.targets, self.search()
        # On the device, the least that it can do with: the smallest part of the index, and the longest query, twice.
        residues = min(text, max(partition_cuda.LEAST_RESIDUES, shape.longest_query)) + 2 * shape.longest_query
        # On the host, residues and text too, of which the index is made anew in parts where it doesn't fit.
        return Footprint(host=16 * shape.query_residues + 64 * shape.queries + (2 + 2 * search.layout.text) * text,
                         device=2 * ((4 + search.layout.text) * residues + 2 * shape.longest_query
                                     + 2 * search.query_bytes + partition_cuda.SLACK))

    def places(self, context: Context, strands: Sequence[Strand]) -> list[tuple[np.ndarray, np.ndarray]]:
        if not len(context.queries):
            return [(np.empty(0, np.int64), np.empty(0, np.int64)) for _ in strands]
        partition = self.partition(context, strands)
        _, found = partition.run(lambda: self.costs(context))
        return _by_strand(found, strands)

    def partition(self, context: Context, strands: Sequence[Strand], room: Room | None = None) -> Partition:
        """Of a search; parts of the index have the longest query in common at least."""
        overlap = 1 << int(context.queries.lengths.max()).bit_length()
        return Partition(context, strands, self.search(), overlap, room)

    def costs(self, context: Context) -> Costs:
        """Of this machine."""
        return machine_costs(context, self.options.costs, self.what(), self.search().query_bytes, self.looked_up)

    def looked_up(self, context: Context, strands: Sequence[Strand], parts: list[IndexPart], split: Split,
                  room: Room | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
        """As ``places``, by a split and parts of the index, with a room that may be taken, or all."""
        partition = self.partition(context, strands, room or Room(1 << 62, partition_cuda.MOST_ROWS))
        return _by_strand(partition.met(split, parts), strands)


class WholeQueriesCuda(QueriesOnDevices, WholeQueriesCpu):
    __doc__ = WholeQueriesCpu.__doc__

    def search(self) -> type[PartSearch]:
        return _Search if self.options.places == "device" else _RangeSearch

    def what(self) -> str:
        return f"places on the {self.options.places}"


def _by_strand(found: list[tuple[QueryPart, IndexPart, tuple[np.ndarray, np.ndarray]]],
               strands: Sequence[Strand]) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(joined([numbers for part, _, (numbers, _) in found if part.strand == n]),
             joined([places for part, _, (_, places) in found if part.strand == n])) for n in range(len(strands))]


def joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """i8[n]: the parts one behind the other; the only one as it is."""
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.int64), *parts])


__all__ = ["QueriesOnDevices", "WholeQueriesCuda"]
