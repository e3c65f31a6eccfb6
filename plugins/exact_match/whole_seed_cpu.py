"""``whole-queries`` on the CPU: backward search for many queries in turns."""

from collections.abc import Sequence
from itertools import islice

import numpy as np
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.index import Index
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import prefetch
from seqloom.core.stages import Footprint, Shape

from .fm_index import KIND, SMALLER, Tables, tables_of, text_of
from .fm_search_cpu import _FLAG, count_bits, extended, is_plain, mapped, mapped_base, symbol_before
from .fm_seed_cpu import codes_of, word_table
from .query_seeds_cpu import seeds_of_queries
from .same_symbols_cpu import same_before
from .seed_reference import Strand
from .strands_cpu import strand_of
from .symbols import NEVER
from .whole_seed_reference import WholeQueries

_U64 = np.uint64
_LANES = 16  # queries that a thread looks up in turns
_AHEAD, _LINE = 16, 64  # how many places ahead memory is asked for, and bytes of it before a place
_QUERIES = 1 << 14  # queries of a piece of work
_MANY = 1 << 16  # residues of queries below which no text is read for them
_PLENTY = 8  # times as much memory as the text takes, or more, is plenty
_NOTHING = np.empty(0, np.uint8)
_NOWHERE = np.uint64(2**64 - 1)


@kernel
def _search(fm, lines, codes, query, residues, ranges, starts, lengths, number, work, lows, highs, left_over):
    """Fill the rows of each query; equal where it doesn't occur.

    lines: ``fm.blocks`` in one dimension. residues, ranges: of the words in the table, and their rows; 0 residues
    without one. codes: see ``codes_of``. number, work: i8[lanes] and u8[3, lanes], working space for as many queries at
    a time. left_over: where it is given, a query isn't looked up further as soon as it has one row, and its residues
    that are left are counted there.
    """
    symbols, blocks, odd_rows, shift, packed, _, _ = fm
    place, low, high = work[0], work[1], work[2]
    lanes, width = len(number), _U64(blocks.shape[1])
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
                if high[lane] - low[lane] == _U64(1) and len(left_over):
                    left_over[n] = place[lane] - starts[n]
                    place[lane] = starts[n]
                    continue
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
                prefetch(lines, (low[lane] >> shift) * width)
                prefetch(lines, (high[lane] >> shift) * width)
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
def _sampled(fm, lines, marked, rows, number, work, places, steps):
    """For each row, the place in ``samples`` of the next row that has one, and how many steps before it that is.

    lines, marked: ``fm.blocks`` and ``fm.marks`` in one dimension. number, work: i8[lanes] and u8[2, lanes], working
    space. As ``locate``, for many rows in turns: a row without a sample near enough gets the last one.
    """
    symbols, blocks, odd_rows, shift, packed, samples, marks = fm
    here, taken_steps = work[0], work[1]
    lanes, width = len(number), _U64(blocks.shape[1])
    taken = left = min(lanes, len(rows))
    for lane in range(left):
        number[lane], here[lane], taken_steps[lane] = lane, rows[lane], 0
    while left:
        for lane in range(lanes):
            n, row = number[lane], here[lane]
            if n >= len(rows):
                continue
            word, bit = marks[row >> _U64(6), 1], _U64(1) << (row & _U64(63))
            ended = taken_steps[lane] * _U64(len(samples)) > _U64(len(marks)) << _U64(7)
            if word & bit or ended:
                sample = marks[row >> _U64(6), 0] + count_bits(word & (bit - _U64(1)))
                places[n] = min(sample, _U64(len(samples) - 1))
                steps[n] = taken_steps[lane]
                n = number[lane] = taken
                if n == len(rows):
                    left -= 1
                    continue
                taken += 1
                row, taken_steps[lane] = rows[n], 0
            else:
                if packed and not blocks[row >> shift, 0] & _FLAG:
                    inside = row & ((_U64(1) << shift) - _U64(1))
                    letters = blocks[row >> shift, _U64(4) + (inside >> _U64(5))]
                    row = mapped_base(blocks, shift, (letters >> (_U64(2) * (inside & _U64(31)))) & _U64(3), row)
                else:
                    symbol = symbol_before(symbols, blocks, odd_rows, shift, packed, row)
                    row = mapped(symbols, blocks, odd_rows, shift, packed, symbol, row)
                taken_steps[lane] += _U64(1)
            here[lane] = row
            prefetch(lines, (row >> shift) * width)
            prefetch(marked, row >> _U64(6) << _U64(1))


@kernel
def _places(samples, steps, last, places):
    """Places in the text, at most ``last``, of places in ``samples`` with so many steps behind them."""
    for n in range(len(places)):
        if n + _AHEAD < len(places):
            prefetch(samples, places[n + _AHEAD])
        places[n] = min(_U64(samples[places[n]]) + steps[n], last)


@kernel
def _compare(text, query, ends, left_over, places, alone):
    """``alone`` gets where a query begins in the text, if what is ``left_over`` of it stands before a place there.

    ends: behind what is left over in ``query``.
    """
    for n in range(len(places)):
        if n + _AHEAD < len(places):
            prefetch(text, places[n + _AHEAD] - min(places[n + _AHEAD], _U64(_LINE)))
        at, rest = places[n], left_over[n]
        if same_before(text, at, query, ends[n], min(at, rest)) == rest:
            alone[n] = at - rest


@kernel
def _listed(lows, highs, alone, numbers, places, rows):
    """Fill the number of the query of every row, and of places that are known already, which ``places`` gets; ``rows``
    gets the others, which are ``_NOWHERE`` in ``places`` before they are looked up."""
    found = listed = 0
    for n in range(len(lows)):
        if len(alone) and alone[n] != _NOWHERE:
            numbers[found], places[found] = n, alone[n]
            found += 1
        for row in range(lows[n], highs[n]):
            numbers[found], places[found], rows[listed] = n, _NOWHERE, row
            found, listed = found + 1, listed + 1


def rows_of(fm: Tables, codes: np.ndarray, query: np.ndarray, starts: np.ndarray,
            lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """u8[n]: the first row of each of some stretches of a query, u8 places and lengths, and the row behind the last."""
    return _found(fm, codes, _NOTHING, query, starts, lengths, (_U64(0), np.empty((1, 2), fm.samples.dtype)))[:2]


def _found(fm: Tables, codes: np.ndarray, text: np.ndarray, query: np.ndarray, starts: np.ndarray,
           lengths: np.ndarray, words: tuple[np.uint64, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As of ``rows_of``, with the words of ``word_table``; and u8[n] places of stretches that occur once in the text,
    of which no rows are looked up, ``_NOWHERE`` for others; none without a text."""
    lows, highs = np.zeros(len(starts), np.uint64), np.zeros(len(starts), np.uint64)
    left_over = np.zeros(len(starts) if len(text) else 0, np.uint64)
    _search(fm, fm.blocks.reshape(-1), codes, query, *words, starts, lengths, np.empty(_LANES, np.int64),
            np.empty((3, _LANES), np.uint64), lows, highs, left_over)
    alone = np.full(len(left_over), _NOWHERE)
    single = np.flatnonzero(left_over)
    if len(single):
        rest, found = left_over[single], np.full(len(single), _NOWHERE)
        _compare(text, query, starts[single] + rest, rest, _located(fm, lows[single]), found)
        alone[single], highs[single] = found, lows[single]
    return lows, highs, alone


def _located(fm: Tables, rows: np.ndarray) -> np.ndarray:
    """u8[n]: where in the text the suffixes of rows, u8[n], begin."""
    last = _U64(fm.symbols[-1, SMALLER]) - _U64(1)
    if not len(fm.marks):
        places, steps, last = np.minimum(rows, _U64(len(fm.samples) - 1)), np.zeros(len(rows), np.uint64), _NOWHERE
    else:
        places, steps = np.empty(len(rows), np.uint64), np.empty(len(rows), np.uint64)
        _sampled(fm, fm.blocks.reshape(-1), fm.marks.reshape(-1), rows, np.full(_LANES, len(rows)),
                 np.empty((2, _LANES), np.uint64), places, steps)
    _places(fm.samples, steps, last, places)
    return places


def located(fm: Tables, lows: np.ndarray, highs: np.ndarray,
            alone: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """i8[n] numbers of ranges of rows, and places in the text of all rows of each; u8 ``lows`` and ``highs``, and
    ``alone`` as of ``_found``."""
    alone = np.empty(0, np.uint64) if alone is None else alone
    count = int((highs - lows).sum()) + int((alone != _NOWHERE).sum())
    numbers, places = np.empty(count, np.int64), np.empty(count, np.uint64)
    rows = np.empty(int((highs - lows).sum()), np.uint64)
    _listed(lows, highs, alone, numbers, places, rows)
    if len(rows):
        places[places == _NOWHERE] = _located(fm, rows)
    return numbers, places.view(np.int64)


def pays(residues: int, text: int) -> bool:
    """Whether to read the text, and not its index alone, pays for so many residues of queries."""
    return residues >= max(_MANY, text // 8)


def text_bytes(residues: int, text: int, memory: int | None) -> int:
    """Bytes that the text takes where it is read: for a batch of so many residues, or for many such batches one after
    the other, if there is plenty of memory."""
    whole = 3 * text  # residues as they are stored, and in symbols twice
    return whole if pays(residues, text) or memory is None or whole <= memory // _PLENTY else 0


def text_for(index: Index, context: Context, strands: int, text: int) -> tuple[np.ndarray, int]:
    """The text of an index, of so many symbols, or nothing where it isn't to be read; and how many residues of queries
    have been looked up in the index so far, those of the batch too."""
    residues = context.queries.total_residues * strands
    so_far = index.tallied("residues", residues)
    read = pays(so_far, text) and text_bytes(residues, text, context.memory)
    return text_of(index, context.targets) if read else _NOTHING, so_far


class WholeQueriesCpu(WholeQueries):
    __doc__ = WholeQueries.__doc__
    backend = "cpu"
    batch_residues, flight = 2_000_000, 2
    strand_of = staticmethod(strand_of)
    seeds = staticmethod(seeds_of_queries)

    def footprint(self, shape: Shape) -> Footprint:
        compared = text_bytes(2 * shape.query_residues, shape.target_residues + shape.targets, shape.memory)
        return Footprint(host=8 * shape.query_residues + 128 * shape.queries + compared)

    def places(self, context: Context, strands: Sequence[Strand]) -> list[tuple[np.ndarray, np.ndarray]]:
        index, lengths = context.index(KIND), context.queries.lengths.astype(np.uint64)
        fm = tables_of(index)
        text, so_far = text_for(index, context, len(strands), int(fm.symbols[-1, SMALLER]))
        codes, words = codes_of(fm), word_table(index, int(lengths.max(initial=0)), so_far)

        def part(task: tuple[Strand, int]) -> tuple[np.ndarray, np.ndarray]:
            strand, first = task
            context.cancellation.check()
            starts = strand.starts[first : first + _QUERIES].astype(np.uint64)
            rows = _found(fm, codes, text, strand.symbols, starts, lengths[first : first + _QUERIES], words)
            numbers, places = located(fm, *rows)
            return numbers + first, places

        firsts = range(0, len(lengths), _QUERIES)
        parts = iter(run_tasks(context.threads, part, [(strand, first) for strand in strands for first in firsts]))
        found = [list(islice(parts, len(firsts))) for _ in strands]
        none = np.empty(0, np.int64)
        return [(np.concatenate([none, *(numbers for numbers, _ in some)]),
                 np.concatenate([none, *(places for _, places in some)])) for some in found]
