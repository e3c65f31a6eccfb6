"""``fm-matches`` on CUDA devices: a thread searches a short part of the query as a lane of the host's does.

The search is the host's, compiled for the device. Every part writes its first matches to room of its own, and says how
many there are; those that have more are searched once more, with room for all. Index and queries that exceed the
devices' memory are cut (``partition_cuda.py``), and matches of parts are made matches of the text on the host
(``parted_matches.py``).

Where places are the host's, as in A. Drozd's thesis (3.5), the device has the transform alone: it gives every stretch
of the query that occurs, and the rows that begin with it, of which the host makes matches by its text and suffixes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numba import uint64
from seqloom.core.backends import with_capacity
from seqloom.core.context import Context
from seqloom.core.cuda.jit import kernel
from seqloom.core.cuda.transfer import to_host
from seqloom.core.engine.threads import run_tasks
from seqloom.core.errors import BudgetError
from seqloom.core.kernels.jit import kernel as host_kernel
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.stages import LARGE_BATCH, Footprint, Shape
from seqloom.plugins.exact_match import fm_seed_cpu as host

from . import partition_cuda
from .fm_index import KIND, IndexPart, tables_of
from .fm_search_cuda import FUNCTIONS, DeviceTables, Layout, backward, cuda, device_functions, grid
from .fm_seed_cpu import FmMatchesCpu, _all_at, _cover
from .parted_matches import crossing_matches, joined_matches, whole_matches
from .partition import Costs, Split
from .partition_cuda import Lane, Partition, PartSearch, QueryPart, Room, machine_costs
from .seed_reference import Strand
from .symbols import target_text

_THREADS = 64
_PARTS = 1 << 17  # of a query that are searched at a time, at most
_LEAST_PART = 8 if SIMULATED else 64  # residues
_FIRST = 2 if SIMULATED else 8  # matches of a part that have room at once
OVERLAP = 1 << 16
"""Residues that a part of the index reaches into the next, at least."""

_search = device_functions(host._longest, host._put, host._cover, host._all_at, host._search, **FUNCTIONS)["_search"]
_U64 = np.uint64


@kernel()
def _match(symbols, blocks, odd_rows, shift, packed, samples, marks, codes, text, query, length, bounds, chosen, unique,
           ends, counts, out):
    """Count the matches of some parts of the query, and write those that have room.

    bounds: u8[parts + 1], where parts begin. chosen: i8, the numbers of the parts. ends: i8[parts + 1], where the room
    of each part ends in ``out``, i8[…, 3].
    """
    n = cuda.grid(1)
    if n >= len(chosen):
        return
    n = chosen[n]
    work = cuda.local.array((6, 1), uint64)
    fm = (symbols, blocks, odd_rows, shift, packed, samples, marks)
    counts[n], _ = _search(fm, codes, text, query, length, out[:0, 0], uint64(0), uint64(0), out[:0], bounds[n : n + 1],
                           bounds[n + 1 : n + 2], unique, np.inf, work, out[ends[n] : ends[n + 1]])


@kernel()
def _occur(symbols, blocks, odd_rows, shift, packed, samples, marks, codes, text, query, length, bounds, chosen, unique,
           ends, counts, out):
    """Count the stretches that occur, and write where those begin that have room, their first row, and the one behind
    their last. Arguments as of ``_match``."""
    n = cuda.grid(1)
    if n >= len(chosen):
        return
    n = chosen[n]
    start, found, room = bounds[n], ends[n], ends[n + 1]
    while start < bounds[n + 1] and start + length <= uint64(len(query)):
        low, high, place = backward(symbols, blocks, odd_rows, shift, packed, codes, query, start, start + length)
        if low < high:
            if found < room:
                out[found, 0], out[found, 1], out[found, 2] = start, low, high
            found += 1
            start += uint64(1)
        else:
            start = place + uint64(1)
    counts[n] = found - ends[n]


@host_kernel
def _matches_of(fm, text, query, length, stretches, at, begin, stop, unique, out):
    """Write the matches that begin from ``begin`` on and before ``stop``, as ``fm_seed_cpu._search`` does.

    Args:
        stretches: i8[n, 3], all that occur, by place in the query, with their first row and the one behind their last.
        at: the first of them that doesn't begin before ``begin``.
    """
    found, wanted, least, reach = _U64(0), begin, begin, _U64(0)
    for n in range(at, len(stretches)):
        start, low, high = _U64(stretches[n, 0]), _U64(stretches[n, 1]), _U64(stretches[n, 2])
        if start < wanted:
            continue
        if start > wanted:  # what was wanted doesn't occur
            least = start
        if least >= stop:
            break
        if unique:
            first, end, found = _cover(fm, text, query, start, length, low, high, begin, stop, out, found)
            least = first + _U64(1)
            wanted = max(least, end + _U64(1) - length)
            continue
        if high - low > _U64(1) or start + length > reach:  # else it is inside of a match, and occurs nowhere else
            found, end, _ = _all_at(fm, text, query, start, length, low, high, out, found)
            reach = max(reach, end)
        least = wanted = start + _U64(1)
    return found


@kernel()
def _gather(rows, first, counts, starts, out):
    """Copy the matches of parts that had room, ``first`` at most for each, to where those of each part start."""
    part = cuda.grid(1)
    if part < len(counts) and counts[part] <= first:
        for n in range(counts[part]):
            for column in range(3):
                out[starts[part] + n, column] = rows[first * part + n, column]


class _Search(PartSearch):
    """Gives i8[n, 3]: place in the strand, place in the stretch of text and length of every match."""

    layout = Layout(places=True, text=True)
    query_bytes = 0
    row_bytes = 24
    search = _match

    def __init__(self, context: Context, strands: Sequence[Strand], room: Room) -> None:
        super().__init__(context, strands, room)
        self._length, self._unique = np.uint64(context.options.length), context.options.mode() != "maxmatch"

    def arrays(self, queries: QueryPart) -> dict[str, np.ndarray]:
        first, last = self.span(queries)
        return {"query": self.strands[queries.strand].symbols[first:last]}

    def look_up(self, lane: Lane, there: DeviceTables, sent: dict[str, Any], part: IndexPart,
                queries: QueryPart) -> np.ndarray:
        first, last = self.span(queries)
        residues = last - first
        bounds = np.linspace(1, residues, max(1, residues // _LEAST_PART) + 1).astype(np.uint64)
        each = max(1, min(_PARTS, self.room.rows // (2 * _FIRST)))
        found = [np.empty((0, 3), np.int64)]
        for begin in range(0, len(bounds) - 1, each):
            self.check()
            found += self._matches(lane, (*there, sent["query"], self._length), bounds[begin : begin + each + 1])
        return self.finished(np.concatenate(found), part, queries) + np.array([first, 0, 0])

    def finished(self, rows: np.ndarray, part: IndexPart, queries: QueryPart) -> np.ndarray:
        """Matches of what kernels gave, in places of the stretch of the strand that they were sent."""
        return rows

    def _matches(self, lane: Lane, given: tuple[Any, ...], bounds: np.ndarray) -> Iterator[np.ndarray]:
        """Matches that begin between some bounds, in pieces."""
        count = len(bounds) - 1
        there, room = lane.send("bounds", bounds), np.arange(count + 1, dtype=np.int64) * _FIRST
        first = lane.table("first", _FIRST * count)
        self._searched(lane, given, there, np.arange(count), room, first)
        counts = to_host(lane.array("counts", count, np.int64), count, np.int64, self.threads, lane.work)
        ends, begin = np.cumsum(counts), 0
        while begin < count:  # as many parts at a time as have room for all matches
            before = int(ends[begin - 1]) if begin else 0
            behind = int(np.searchsorted(ends, before + self.room.rows // 2, "right"))
            if behind == begin:
                raise BudgetError("the matches of a few residues of a query on the device", 2 * self.row_bytes
                                  * int(counts[begin]), self.row_bytes * self.room.rows, "raise --device-memory")
            total = int(ends[behind - 1]) - before
            starts = np.clip(ends - counts - before, 0, total)
            some = np.where((np.arange(count) >= begin) & (np.arange(count) < behind), counts, 0)
            if total:
                out, (blocks, threads) = lane.table("rows", total), grid(count, _THREADS)
                _gather[blocks, threads, lane.work](first, _FIRST, lane.send("some", some),
                                                    lane.send("starts", starts), out)
                more = np.flatnonzero(some > _FIRST)
                if len(more):
                    self._searched(lane, given, there, more, np.append(starts, total), out)
                yield to_host(out.reshape(-1), 3 * total, np.int64, self.threads, lane.work).reshape(-1, 3)
            begin = behind

    def _searched(self, lane: Lane, given: tuple[Any, ...], bounds: Any, chosen: np.ndarray, ends: np.ndarray,
                  out: Any) -> None:
        """Search some parts, whose matches go to ``out`` as far as there is room before the end of each."""
        blocks, threads = grid(len(chosen), _THREADS)
        counts = lane.array("counts", len(ends) - 1, np.int64)
        type(self).search[blocks, threads, lane.work](*given, bounds, lane.send("chosen", chosen), self._unique,
                                           lane.send("ends", ends), counts, out)


class _RangeSearch(_Search):
    """The same, with stretches and rows from the device and matches made of them on the host."""

    layout = Layout(places=False, text_on_host=True)
    search = _occur

    def finished(self, rows: np.ndarray, part: IndexPart, queries: QueryPart) -> np.ndarray:
        first, last = self.span(queries)
        query = self.strands[queries.strand].symbols[first:last]
        inner = rows[np.linspace(0, len(rows), 4 * self.threads + 1).astype(int)[1:-1], 0] if len(rows) else rows[:, 0]
        bounds = np.unique(np.concatenate([[1], inner, [len(query)]]))

        def some(task: tuple[int, int]) -> np.ndarray:
            begin, stop = task
            at = int(np.searchsorted(rows[:, 0], begin))

            def launch(capacity: int) -> tuple[int, np.ndarray]:
                out = np.empty((capacity, 3), np.int64)
                count = int(_matches_of(part.fm, part.text, query, self._length, rows, at, _U64(begin), _U64(stop),
                                        self._unique, out))
                return count, out[:count]

            self.check()
            return with_capacity(launch, (stop - begin) // 16 + 1024)

        return np.concatenate([rows[:0], *run_tasks(self.threads, some, list(pairwise(bounds.tolist())))])


class FmMatchesCuda(FmMatchesCpu):
    __doc__ = FmMatchesCpu.__doc__
    backend = "cuda"
    batch_residues = LARGE_BATCH

    def footprint(self, shape: Shape) -> Footprint:
        text, longest = shape.target_residues + shape.targets, shape.longest_query
        # On the device, the least that it can do with: the smallest part of the index, and the longest query, twice.
        residues = min(text, partition_cuda.LEAST_RESIDUES + 2 * OVERLAP)
        return Footprint(super().footprint(shape).host + 2 * text,
                         device=2 * (4 * residues + 2 * longest + partition_cuda.SLACK))

    def matches(self, context: Context, strands: Sequence[Strand]) -> list[np.ndarray]:
        if not len(context.queries):
            return [np.empty((0, 3), np.int64) for _ in strands]
        partition = self._partition(context, strands)
        parts, found = partition.run(lambda: self._costs(context))
        rows = self._joined(context, strands, parts, found)
        context.count("matches", sum(map(len, rows)))
        return rows

    def _partition(self, context: Context, strands: Sequence[Strand], room: Room | None = None) -> Partition:
        """Of a search; what parts of the index have in common can't be shorter than a match."""
        return Partition(context, strands, self._search(), _overlap(context), room)

    def _search(self) -> type[PartSearch]:
        return _Search if self.options.places == "device" else _RangeSearch

    def _joined(self, context: Context, strands: Sequence[Strand], parts: list[IndexPart],
                found: list[tuple[QueryPart, IndexPart, np.ndarray]]) -> list[np.ndarray]:
        """i8[n, 3] for each strand: matches in the whole text."""
        unique, joined = context.options.mode() != "maxmatch", []
        text = target_text(context.targets, acgt_only=False)[0] if len(parts) > 1 else parts[0].text
        for number, strand in enumerate(strands):
            rows = [np.empty((0, 3), np.int64)]
            rows += [whole_matches(some, part, text, strand.symbols) for query, part, some in found
                     if query.strand == number]
            if len(parts) > 1:
                rows.append(crossing_matches(parts, _overlap(context), text, strand.symbols))
                rows = [joined_matches(np.concatenate(rows), tables_of(context.index(KIND)), strand.symbols, unique)]
            joined.append(np.concatenate(rows))
        return joined

    def _costs(self, context: Context) -> Costs:
        """Of this machine, for matches of the mode and length that are asked for."""

        def look_up(small: Context, strands: Sequence[Strand], parts: list[IndexPart], split: Split) -> object:
            room = Room(1 << 62, partition_cuda.MOST_ROWS)
            return self._partition(replace(small, options=context.options), strands, room).met(split, parts)

        on_host = "" if self.options.places == "device" else ", places on the host"
        return machine_costs(context, self.options.costs, f"matches, {context.options.mode()}{on_host}",
                             _Search.query_bytes, look_up)


def _overlap(context: Context) -> int:
    return max(OVERLAP, 1 << int(context.options.length).bit_length())


__all__ = ["FmMatchesCuda"]
