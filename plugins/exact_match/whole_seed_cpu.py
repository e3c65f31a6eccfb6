"""``whole-queries`` on the CPU: backward search for many queries in turns."""

from collections.abc import Sequence
from itertools import islice

import numpy as np
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.kernels.jit import kernel
from seqloom.core.stages import Footprint, Shape

from .fm_index import KIND, Tables, tables_of
from .fm_search_cpu import extended, is_plain, locate, mapped_base
from .fm_seed_cpu import codes_of, word_table
from .seed_reference import Strand
from .strands_cpu import strand_of
from .symbols import NEVER
from .whole_seed_reference import WholeQueries

_U64 = np.uint64
_LANES = 16  # queries that a thread looks up in turns
_QUERIES = 1 << 14  # queries of a piece of work


@kernel
def _search(fm, codes, query, residues, ranges, starts, lengths, number, work, lows, highs):
    """Fill the rows of each query; equal where it doesn't occur.

    residues, ranges: of the words in the table, and their rows; 0 residues without one. codes: see ``codes_of``.
    number, work: i8[lanes] and u8[3, lanes], working space for as many queries at a time.
    """
    symbols, blocks, odd_rows, shift, packed, _, _ = fm
    place, low, high = work[0], work[1], work[2]
    lanes = len(number)
    for lane in range(lanes):
        number[lane] = -1
    taken, left = 0, lanes
    while left:
        # What a lane looked up is not used before its next turn, when it has come from memory.
        for lane in range(lanes):
            n = number[lane]
            if n == len(starts):
                continue
            if n >= 0 and low[lane] < high[lane] and place[lane] > starts[n]:
                place[lane] -= _U64(1)
                symbol = query[place[lane]]
                code = codes[symbol]
                if symbol == NEVER:
                    high[lane] = low[lane]
                elif is_plain(blocks, shift, code, low[lane], high[lane]):
                    low[lane] = mapped_base(blocks, shift, code, low[lane])
                    high[lane] = mapped_base(blocks, shift, code, high[lane])
                else:
                    low[lane], high[lane] = extended(symbols, blocks, odd_rows, shift, packed, symbol, low[lane],
                                                     high[lane])
                continue
            if n >= 0:
                lows[n], highs[n] = low[lane], max(low[lane], high[lane])
            n = number[lane] = taken
            if n == len(starts):
                left -= 1
                continue
            taken += 1
            place[lane], low[lane], high[lane] = starts[n] + lengths[n], 0, symbols[-1, 0]
            if lengths[n] == 0:
                high[lane] = 0
            elif residues > _U64(0) and lengths[n] >= residues:
                word, odd = _U64(0), False
                for at in range(place[lane] - residues, place[lane]):
                    word = (word << _U64(2)) | codes[query[at]]
                    odd |= codes[query[at]] > _U64(3)
                if not odd:
                    place[lane] -= residues
                    low[lane], high[lane] = ranges[word, 0], ranges[word, 1]


@kernel
def _places(fm, lows, highs, numbers, places):
    """Fill the number of the query and the place in the text of every row."""
    found = 0
    for n in range(len(lows)):
        for row in range(lows[n], highs[n]):
            numbers[found], places[found] = n, locate(fm, row)
            found += 1


def rows_of(fm: Tables, codes: np.ndarray, query: np.ndarray, starts: np.ndarray, lengths: np.ndarray,
            words: tuple[np.uint64, np.ndarray] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """u8[n]: the first row of each of some stretches of a query, u8 places and lengths, and the row behind the last.

    Args:
        words: of ``word_table``, if there is one.
    """
    residues, ranges = words or (_U64(0), np.empty((1, 2), fm.samples.dtype))
    lows, highs = np.zeros(len(starts), np.uint64), np.zeros(len(starts), np.uint64)
    _search(fm, codes, query, residues, ranges, starts, lengths, np.empty(_LANES, np.int64),
            np.empty((3, _LANES), np.uint64), lows, highs)
    return lows, highs


def located(fm: Tables, lows: np.ndarray, highs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """i8[n] numbers of ranges of rows, and places in the text of all rows of each; u8 ``lows`` and ``highs``."""
    numbers, places = (np.empty(int((highs - lows).sum()), np.int64) for _ in range(2))
    _places(fm, lows, highs, numbers, places)
    return numbers, places


class WholeQueriesCpu(WholeQueries):
    __doc__ = WholeQueries.__doc__
    backend = "cpu"
    strand_of = staticmethod(strand_of)

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=8 * shape.query_residues + 64 * shape.queries)

    def places(self, context: Context, strands: Sequence[Strand]) -> list[tuple[np.ndarray, np.ndarray]]:
        fm, lengths = tables_of(context.index(KIND)), context.queries.lengths.astype(np.uint64)
        codes = codes_of(fm)
        words = word_table(fm, int(lengths.max(initial=0)), context.queries.total_residues * len(strands))

        def part(task: tuple[Strand, int]) -> tuple[np.ndarray, np.ndarray]:
            strand, first = task
            context.cancellation.check()
            starts = strand.starts[first : first + _QUERIES].astype(np.uint64)
            lows, highs = rows_of(fm, codes, strand.symbols, starts, lengths[first : first + _QUERIES], words)
            numbers, places = located(fm, lows, highs)
            return numbers + first, places

        firsts = range(0, len(lengths), _QUERIES)
        parts = iter(run_tasks(context.threads, part, [(strand, first) for strand in strands for first in firsts]))
        found = [list(islice(parts, len(firsts))) for _ in strands]
        none = np.empty(0, np.int64)
        return [(np.concatenate([none, *(numbers for numbers, _ in some)]),
                 np.concatenate([none, *(places for _, places in some)])) for some in found]
