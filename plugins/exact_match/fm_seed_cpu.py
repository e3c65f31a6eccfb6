"""``fm-matches`` on the CPU: backward search that leaps over what the text lacks, many places of the query at a time.

A match of at least ``length`` residues begins with a stretch of that length. A stretch is looked up from its last
residue on; where the text lacks what was read, no match holds it, and the next stretch begins behind the first residue
that was read. The first stretches of many parts of the query are looked up step by step in turns, so that the memory of
one is fetched while the others are at work.

For unique matches, only matches that no longer one covers can count. From a stretch that occurs, the first of these is
found by reading on to the left until the text lacks it, and then by the longest continuation to the right; the next one
holds the residue behind its end, so that the stretch that ends there is looked up next. Where all matches are wanted,
every stretch has to be looked up; but inside of a match, one whose last residues occur once gives nothing new, nor do
the ones that share these residues.
"""

from collections.abc import Sequence
from itertools import chain, islice

import numpy as np
from seqloom.core.backends import with_capacity
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.index import Index
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import prefetch
from seqloom.core.stages import Footprint, Shape

from .fm_index import CODE, KIND, SMALLER, Tables, tables_of, text_of
from .fm_search_cpu import (
    extended,
    is_plain,
    locate,
    mapped_base,
    shared,
    symbol_before,
    word_ranges,
)
from .fm_seed_reference import FmMatches
from .seed_reference import MOST_WORK, RESIDUES, Strand, most_work
from .strands_cpu import strand_of
from .symbols import NEVER, separator

_U64 = np.uint64
_LANES = 16  # parts of the query that a thread searches in turns
_LEAST_PART = 4096  # residues of such a part at least: where parts meet, a match may be looked at twice
_LONGEST_WORD = 12  # residues of the words whose rows are looked up in a table, at most
_AHEAD = 32  # words that are asked for from memory before the first is looked at
_LONGEST_SIFTED = 14  # residues of the words in the sieve, at most: 32 MiB


@kernel
def _longest(fm, text, query, start, low, high, known):
    """The most residues that a suffix of rows low … high − 1 shares with the query from ``start`` on.

    known: residues that all of them share. Returns that number, the first row that shares as many, and whether the next
    row does too. The query's place among the rows is found by halving; its neighbours there share most.
    """
    first, last, best = low, high, known
    while first < last:
        row = (first + last) >> _U64(1)
        place = locate(fm, row)
        residues = shared(text, place, query, start, known)
        best = max(best, residues)
        if text[place + residues] < query[start + residues]:
            first = row + _U64(1)
        else:
            last = row
    last, first = first, low
    while first < last:
        row = (first + last) >> _U64(1)
        if shared(text, locate(fm, row), query, start, known) >= best:
            last = row
        else:
            first = row + _U64(1)
    another = first + _U64(1)
    return best, first, another < high and shared(text, locate(fm, another), query, start, known) >= best


@kernel
def _put(out, found, start, place, residues):
    """Write a match if there is room for it; returns how many there are now."""
    if found < _U64(len(out)):
        out[found, 0], out[found, 1], out[found, 2] = start, place, residues
    return found + _U64(1)


@kernel
def _cover(fm, text, query, start, length, low, high, begin, stop, out, found):
    """The first match that holds the stretch at ``start``, whose rows are given, and that no longer one covers.

    It is written if it begins from ``begin`` on and before ``stop``; twice if it occurs so often. One that begins
    before need not be followed to its first residue. Returns where it begins, where it ends, and how many are written.
    """
    symbols, blocks, odd_rows, shift, packed, _, _ = fm
    first = start
    place, alone = _U64(0), high - low == _U64(1)
    while not alone and first >= begin and query[first - _U64(1)] != NEVER:
        symbol = query[first - _U64(1)]
        code = _U64(symbols[symbol, 2])
        if is_plain(blocks, shift, code, low, high):
            next_low, next_high = mapped_base(blocks, shift, code, low), mapped_base(blocks, shift, code, high)
        else:
            next_low, next_high = extended(symbols, blocks, odd_rows, shift, packed, symbol, low, high)
        if next_low >= next_high:
            break
        low, high = next_low, next_high
        first -= _U64(1)
        alone = high - low == _U64(1)
    residues, another = start + length - first, False
    if alone:
        place = locate(fm, low)
        while place > 0 and first >= begin and text[place - _U64(1)] == query[first - _U64(1)]:
            place -= _U64(1)
            first -= _U64(1)
            residues += _U64(1)
        residues = shared(text, place, query, first, residues)
    else:
        residues, low, another = _longest(fm, text, query, first, low, high, residues)
        place = locate(fm, low)
    if begin <= first < stop:
        found = _put(out, found, first, place, residues)
        if another:
            found = _put(out, found, first, locate(fm, low + _U64(1)), residues)
    return first, max(first + residues, start + length), found


@kernel
def _all_at(fm, text, query, start, length, low, high, out, found):
    """Write every match that begins at ``start``, where the stretch has the rows given.

    Returns how many are written now, how far one of those that hold the stretch reaches, and the work: rows that were
    looked at, and ``RESIDUES`` for each residue that was compared.
    """
    symbols, blocks, odd_rows, shift, packed, _, _ = fm
    place = locate(fm, low)
    reach = start + shared(text, place, query, start, length)
    work = np.float64(high - low) + RESIDUES * np.float64(reach - start)
    for row in range(low, high):
        if symbol_before(symbols, blocks, odd_rows, shift, packed, row) != _U64(query[start - _U64(1)]):
            place = locate(fm, row)
            residues = shared(text, place, query, start, length)
            found = _put(out, found, start, place, residues)
            reach = max(reach, start + residues)
            work += RESIDUES * np.float64(residues)
    return found, reach, work


@kernel
def _search(fm, codes, text, query, length, possible, step, residues, ranges, begins, stops, unique, most_work, work,
            out):
    """Write (query place, text place, length) of every match that counts and begins in one of the parts.

    possible, step: bool, whether the text may have the word at each place of the query that is a multiple of two to the
    power of ``step``; every stretch holds such a word. Empty: not known. residues, ranges: of the words in the table,
    and their rows; 0 residues without one. begins, stops: u8, places of the query where the parts begin and end.
    codes: see ``codes_of``. work: u8[6, lanes], working space.

    Returns the number of matches, also when ``out`` is full, and what was looked at in vain where all matches are
    wanted: work of ``_all_at`` less ``MOST_WORK`` for each match. It ends early once that is above ``most_work``.
    """
    symbols, blocks, odd_rows, shift, packed, _, _ = fm
    # Rows low … high − 1 are those of the stretch's residues from ``place`` on; as if one had just ended in vain.
    start, least, reach, place, low, high = work[0], work[1], work[2], work[3], work[4], work[5]
    found, lanes, left, vain = _U64(0), len(begins), 0, 0.0
    for lane in range(lanes):
        start[lane], least[lane], reach[lane] = begins[lane], begins[lane], 0
        place[lane], low[lane], high[lane] = begins[lane] - _U64(1), 0, 0
        left += begins[lane] < stops[lane]
    while left and vain <= most_work:
        # What a lane looked up is not used before its next turn, when it has come from memory.
        for lane in range(lanes):
            if least[lane] >= stops[lane]:
                continue
            if low[lane] >= high[lane] or (not unique and high[lane] - low[lane] == _U64(1)
                                           and start[lane] + length <= reach[lane]):
                start[lane] = least[lane] = place[lane] + _U64(1)
            elif place[lane] > start[lane]:
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
            elif unique:
                first, end, found = _cover(fm, text, query, start[lane], length, low[lane], high[lane], begins[lane],
                                           stops[lane], out, found)
                least[lane] = first + _U64(1)
                start[lane] = max(least[lane], end + _U64(1) - length)
            else:
                before = found
                found, end, looked = _all_at(fm, text, query, start[lane], length, low[lane], high[lane], out, found)
                vain += looked - MOST_WORK * np.float64(found - before)
                reach[lane] = max(reach[lane], end)
                start[lane] += _U64(1)
                least[lane] = start[lane]
            # The next stretch that may occur.
            first = start[lane]
            if len(possible):
                n = (first + (_U64(1) << step) - _U64(1)) >> step
                while n < _U64(len(possible)) and not possible[n]:
                    n += _U64(1)
                    first = ((n - _U64(1)) << step) + _U64(1)
                if first > start[lane]:
                    start[lane] = least[lane] = first
            if first + length > _U64(len(query)):
                least[lane] = stops[lane]
            if least[lane] >= stops[lane]:
                left -= 1
                continue
            place[lane], low[lane], high[lane] = first + length, 0, symbols[-1, 0]
            word, odd = _U64(0), residues == _U64(0)
            for n in range(first + length - residues, first + length):
                word = (word << _U64(2)) | codes[query[n]]
                odd |= codes[query[n]] > _U64(3)
            if not odd:
                place[lane] -= residues
                low[lane], high[lane] = ranges[word, 0], ranges[word, 1]
    return found, vain


class FmMatchesCpu(FmMatches):
    __doc__ = FmMatches.__doc__
    backend = "cpu"
    batch_residues, flight = 2_000_000, 4
    strand_of = staticmethod(strand_of)

    def footprint(self, shape: Shape) -> Footprint:
        text, queries = shape.target_residues + shape.targets, shape.query_residues + shape.queries
        residues = sifted_residues(text)
        sieve = 4**residues // 8 if residues <= _LONGEST_SIFTED and 8 * queries >= text else 0
        # Of each strand the symbols, and room for a match to 16 residues.
        return Footprint(host=5 * queries + 2 * text + sieve)

    def matches(self, context: Context, strands: Sequence[Strand]) -> list[np.ndarray]:
        index = context.index(KIND)
        fm, text = tables_of(index), text_of(index, context.targets)
        length, unique = np.uint64(context.options.length), context.options.mode() != "maxmatch"
        residues = sum(len(strand.symbols) for strand in strands)
        sieve = index.kept(("sieve", int(length), 8 * residues < len(text)),
                           lambda: _Sieve(fm, text, int(length), residues))
        words = word_table(index, int(length), index.tallied("residues", residues))

        def part(task: tuple[np.ndarray, np.ndarray, np.ndarray]) -> tuple[np.ndarray, bool]:
            query, possible, bounds = task
            enough, vain = np.inf if unique else most_work(context, len(text) + len(query)), 0.0
            context.cancellation.check()

            def launch(capacity: int) -> tuple[int, np.ndarray]:
                nonlocal vain
                out, work = np.empty((capacity, 3), np.int64), np.empty((6, len(bounds) - 1), np.uint64)
                count, vain = _search(fm, sieve.codes, text, query, length, possible, np.uint64(sieve.step), *words,
                                      bounds[:-1], bounds[1:], unique, enough, work, out)
                return int(count), out[:count]

            return with_capacity(launch, int(bounds[-1] - bounds[0]) // 16 + 1024), vain > enough

        tasks = [[(symbols, possible, bounds) for bounds in _parts(len(symbols), context.threads)]
                 for symbols, _, _ in strands for possible in [sieve.sift(symbols)]]
        parts = iter(run_tasks(context.threads, part, list(chain(*tasks))))
        found = []
        for strand, of_strand in zip(strands, tasks, strict=True):
            rows, repetitive = zip(*islice(parts, len(of_strand)), strict=True)
            found.append(self._of_repeats(context, strand, text) if any(repetitive) else np.concatenate(rows))
        context.count("matches", sum(map(len, found)))
        return found

    def _of_repeats(self, context: Context, strand: Strand, text: np.ndarray) -> np.ndarray:
        """All matches of repetitive texts, from their suffixes."""
        from seqloom.plugins.exact_match.repeats_cpu import maximal_matches  # with kernels that are seldom needed

        context.count("repetitive")
        ended = np.concatenate([np.array([separator(context.targets.alphabet)], np.uint8), text])
        return maximal_matches(ended, strand.symbols, context.options.length) - [0, 1, 0]


def _parts(residues: int, threads: int) -> list[np.ndarray]:
    """u8[lanes + 1] bounds of the parts of a strand that each thread searches; the first symbol begins no match."""
    lanes = max(1, min(threads * _LANES, residues // _LEAST_PART))
    bounds = np.linspace(1, residues, lanes + 1).astype(np.uint64)
    each = -(-lanes // threads)
    return [bounds[n : n + each + 1] for n in range(0, lanes, each)]


@kernel
def _put_words(text, codes, residues, sieve):
    """Set the bit of every word of ``residues`` two-bit residues that the text has; u8[…] ``codes`` by symbol."""
    mask = (_U64(1) << (_U64(2) * residues)) - _U64(1)
    word, whole = _U64(0), _U64(0)
    for symbol in text:
        code = codes[symbol]
        whole = whole + _U64(1) if code <= _U64(3) else _U64(0)
        word = ((word << _U64(2)) | (code & _U64(3))) & mask
        if whole >= residues:
            sieve[word >> _U64(3)] |= np.uint8(1 << (word & _U64(7)))


@kernel
def _sift(query, codes, residues, sieve, step, possible):
    """Fill ``possible`` for ``_search``; a word with residues without a code may always be there."""
    mask = (_U64(1) << (_U64(2) * residues)) - _U64(1)
    word, read, clear = _U64(0), _U64(0), _U64(0)  # residues before ``clear`` are followed by one without a code
    words = np.empty(_AHEAD, np.uint64)
    for first in range(_U64(0), _U64(len(possible)), _U64(_AHEAD)):
        last = min(first + _U64(_AHEAD), _U64(len(possible)))
        for n in range(first, last):
            for place in range(read, (n << step) + residues):
                code = codes[query[place]]
                word = (word << _U64(2)) | (code & _U64(3))
                if code > _U64(3):
                    clear = place + _U64(1)
            read = (n << step) + residues
            possible[n] = clear > n << step
            words[n - first] = word & mask
            prefetch(sieve, (word & mask) >> _U64(3))
        for n in range(first, last):
            word_there = words[n - first]
            possible[n] |= (sieve[word_there >> _U64(3)] >> np.uint8(word_there & _U64(7))) & np.uint8(1) != 0


def codes_of(fm: Tables) -> np.ndarray:
    """u8[256]: two-bit code of each symbol, more than 3 where there is none."""
    codes = np.full(256, NEVER, np.uint64)
    codes[: len(fm.symbols)] = fm.symbols[:, CODE].astype(np.uint64)
    return codes


def sifted_residues(text: int) -> int:
    """Residues of the words that are sifted, of which a text of so many symbols has an eighth at most."""
    residues = 1
    while 4**residues < 8 * text:
        residues += 1
    return residues


class _Sieve:
    """Which words a text has: words so long that it can have an eighth of them at most. ``residues`` is 0 without one.

    Where a look at one bit tells that a word is not there, nothing need be looked up for the stretches that hold it.
    """

    def __init__(self, fm: Tables, text: np.ndarray, length: int, residues: int) -> None:
        """For a query of so many residues, which has to pay for the sieve."""
        self.codes = codes_of(fm)
        self.residues = sifted_residues(len(text))
        if not fm.packed or self.residues > min(length, _LONGEST_SIFTED) or 8 * residues < len(text):
            self.residues = 0
        self.step = max(0, (length - self.residues + 1).bit_length() - 1)
        self.bits = np.zeros(max(1, 4**self.residues // 8), np.uint8)
        if self.residues:
            _put_words(text, self.codes, np.uint64(self.residues), self.bits)

    def sift(self, query: np.ndarray) -> np.ndarray:
        """bool[m]: for every ``2 ** step``-th place of a query, whether the text may have the word there."""
        count = (len(query) - self.residues) // (1 << self.step) + 1 if self.residues else 0
        possible = np.empty(max(0, count), np.bool_)
        _sift(query, self.codes, np.uint64(self.residues), self.bits, np.uint64(self.step), possible)
        return possible


def word_table(index: Index, length: int, residues: int) -> tuple[np.uint64, np.ndarray]:
    """Residues and rows of the words whose look-up pays for a query of so many residues; kept with the index."""
    size, fm = 0, tables_of(index)
    most = min(residues, int(fm.symbols[-1, SMALLER])) // 16
    while fm.packed and size < min(length, _LONGEST_WORD) and 4 ** (size + 1) <= most:
        size += 1

    def made() -> np.ndarray:
        ranges = np.empty((4**size, 2), fm.samples.dtype)
        if size:
            coded = np.argsort(fm.symbols[:, CODE], kind="stable")[-4:].astype(np.uint64)
            word_ranges(fm.symbols, fm.blocks, fm.odd_rows, fm.shift, fm.packed, coded, size, ranges)
        return ranges

    return np.uint64(size), index.kept(("words", size), made)
