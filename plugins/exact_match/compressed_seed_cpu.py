"""``compressed-queries`` and ``compressed-matches`` on the CPU: backward search by halving and reading differences.

As soon as what was read of a query occurs once, its place is looked up and the text compared, where there are so many
queries that the text is read. Matches are searched as ``fm-matches`` does where all are wanted: a stretch is looked up
from its last residue on, the next one begins behind the first residue that the text lacks, and inside of a match one
whose last residues occur once gives nothing new.
"""

from collections.abc import Sequence
from itertools import islice

import numpy as np
from seqloom.core.backends import with_capacity
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.index import Index
from seqloom.core.kernels.jit import kernel
from seqloom.core.stages import Footprint, Shape

from .compressed_array import KIND, psi_tables
from .compressed_search_cpu import first_row, place_of
from .compressed_seed_reference import CompressedMatches, CompressedQueries
from .fm_index import text_of
from .query_seeds_cpu import seeds_of_queries
from .same_symbols_cpu import same_before, same_behind
from .seed_reference import Strand
from .strands_cpu import strand_of
from .symbols import NEVER
from .whole_seed_cpu import text_bytes, text_for

_U64 = np.uint64
_QUERIES = 1 << 12  # of a piece of work
_LEAST_PART = 1 << 16  # residues of a piece of work at least: where two meet, a match may be looked at twice
_NOTHING = np.empty(0, np.uint8)


@kernel
def _ranges(tables, text, query, starts, lengths, lows, sizes, places):
    """Fill the first row of each query and in how many rows it occurs; or, with a text, its only ``places``, and no
    rows, where what was read occurs once."""
    smaller, heads, begins, bits, shift, _, _ = tables
    for n in range(len(starts)):
        place, low, high = starts[n] + lengths[n], _U64(0), _U64(smaller[-1])
        if lengths[n] == _U64(0):
            high = low
        while low < high and place > starts[n]:
            if high - low == _U64(1) and len(text):
                at, left = place_of(tables, low), place - starts[n]
                if same_before(text, at, query, place, min(at, left)) == left:
                    places[n] = at - left
                high = low
                break
            place -= _U64(1)
            symbol = _U64(query[place])
            if symbol == _U64(NEVER):
                high = low
            else:
                low = first_row(smaller, heads, begins, bits, shift, symbol, low)
                high = first_row(smaller, heads, begins, bits, shift, symbol, high)
        lows[n], sizes[n] = low, max(low, high) - low


@kernel
def _listed(tables, lows, sizes, places, numbers, found):
    """Fill numbers of queries and places of the text of all rows; ``places`` are those known, −1 for others."""
    count = 0
    for n in range(len(lows)):
        if places[n] >= 0:
            numbers[count], found[count] = n, places[n]
            count += 1
        for row in range(lows[n], lows[n] + sizes[n]):
            numbers[count], found[count] = n, place_of(tables, row)
            count += 1


@kernel
def _matches(tables, text, query, length, begin, stop, out):
    """Write (query place, text place, length) of every match that begins from ``begin`` on and before ``stop``; returns
    how many there are, also when ``out`` is full."""
    smaller, heads, begins, bits, shift, _, _ = tables
    found, start, reach = 0, begin, _U64(0)
    while start < stop and start + length <= _U64(len(query)):
        place, low, high = start + length, _U64(0), _U64(smaller[-1])
        while place > start and low < high and not (high - low == _U64(1) and start + length <= reach):
            place -= _U64(1)
            symbol = _U64(query[place])
            if symbol == _U64(NEVER):
                high = low
            else:
                low = first_row(smaller, heads, begins, bits, shift, symbol, low)
                high = first_row(smaller, heads, begins, bits, shift, symbol, high)
        if low >= high or (high - low == _U64(1) and start + length <= reach):
            start = place + _U64(1)  # no stretch with these residues occurs, or gives anything new
            continue
        for row in range(low, high):
            at = place_of(tables, row)
            residues = same_behind(text, at, query, start)
            reach = max(reach, start + residues)
            if at == _U64(0) or text[at - _U64(1)] != query[start - _U64(1)]:
                if found < len(out):
                    out[found, 0], out[found, 1], out[found, 2] = start, at, residues
                found += 1
        start += _U64(1)
    return found


class CompressedQueriesCpu(CompressedQueries):
    __doc__ = CompressedQueries.__doc__
    backend = "cpu"
    batch_residues, flight = 2_000_000, 2
    strand_of = staticmethod(strand_of)
    seeds = staticmethod(seeds_of_queries)

    def footprint(self, shape: Shape) -> Footprint:
        compared = text_bytes(2 * shape.query_residues, shape.target_residues + shape.targets, shape.memory)
        return Footprint(host=8 * shape.query_residues + 128 * shape.queries + compared)

    def places(self, context: Context, strands: Sequence[Strand]) -> list[tuple[np.ndarray, np.ndarray]]:
        index, lengths = context.index(KIND), context.queries.lengths.astype(np.uint64)
        tables = psi_tables(index)
        text, _ = text_for(index, context, len(strands), int(tables.smaller[-1]))

        def part(task: tuple[Strand, int]) -> tuple[np.ndarray, np.ndarray]:
            strand, first = task
            context.cancellation.check()
            starts = strand.starts[first : first + _QUERIES].astype(np.uint64)
            lows, sizes = np.empty(len(starts), np.uint64), np.empty(len(starts), np.uint64)
            places = np.full(len(starts), -1, np.int64)
            _ranges(tables, text, strand.symbols, starts, lengths[first : first + _QUERIES], lows, sizes, places)
            numbers = np.empty(int(sizes.sum()) + int((places >= 0).sum()), np.int64)
            found = np.empty_like(numbers)
            _listed(tables, lows, sizes, places, numbers, found)
            return numbers + first, found

        firsts = range(0, len(lengths), _QUERIES)
        parts = iter(run_tasks(context.threads, part, [(strand, first) for strand in strands for first in firsts]))
        none, joined = np.empty(0, np.int64), []
        for _ in strands:
            some = list(islice(parts, len(firsts)))
            joined.append((np.concatenate([none, *(numbers for numbers, _ in some)]),
                           np.concatenate([none, *(found for _, found in some)])))
        return joined


class CompressedMatchesCpu(CompressedMatches):
    __doc__ = CompressedMatches.__doc__
    backend = "cpu"
    batch_residues, flight = 2_000_000, 4
    strand_of = staticmethod(strand_of)

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=8 * (shape.query_residues + shape.queries) + 2 * (shape.target_residues + shape.targets))

    def matches(self, context: Context, strands: Sequence[Strand]) -> list[np.ndarray]:
        index: Index = context.index(KIND)
        tables, text, length = psi_tables(index), text_of(index, context.targets), context.options.length

        def part(task: tuple[np.ndarray, int, int]) -> np.ndarray:
            query, begin, stop = task
            context.cancellation.check()

            def launch(capacity: int) -> tuple[int, np.ndarray]:
                out = np.empty((capacity, 3), np.int64)
                count = int(_matches(tables, text, query, _U64(length), _U64(begin), _U64(stop), out))
                return count, out[:count]

            return with_capacity(launch, (stop - begin) // 16 + 1024)

        found = []
        for strand in strands:
            size = len(strand.symbols)
            parts = max(1, min(4 * context.threads, size // _LEAST_PART))
            bounds = np.linspace(1, size, parts + 1).astype(int).tolist()
            rows = run_tasks(context.threads, part, [(strand.symbols, bounds[n], bounds[n + 1])
                                                     for n in range(len(bounds) - 1)])
            found.append(np.concatenate([np.empty((0, 3), np.int64), *rows]))
            context.count("matches", len(found[-1]))
        return found
