"""Word hits on the CPU: one scan of the targets for all queries whose tables have words of one width.

Such queries share a table. Where they have far more words than a target, as whole genomes and many reads do, the table
is made of the target's words instead, and those of the queries are looked up in it. A vector of presence bits says
whether a word is in a table, and the number of bits set before it, kept for every 64, is its rank; the places of the
words lie one behind the other in order of rank. So a table has the size of the presence vector and of the words that
there are, whatever their width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from seqloom.core.context import Context
from seqloom.core.distinct import distinct
from seqloom.core.engine.threads import run_tasks
from seqloom.core.index import Index
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import highest_bit, lowest_bit, prefetch
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.grouping import even_parts
from seqloom.plugins.nucleotide_blast.greedy_cpu import Sequence, sequence
from seqloom.plugins.nucleotide_blast.index_reference import WORDS
from seqloom.plugins.nucleotide_blast.packed_cpu import packed_bases
from seqloom.plugins.nucleotide_blast.scanned_cpu import Places, ScannedSeeds, places_of, query_at, scanned
from seqloom.plugins.nucleotide_blast.seed_reference import (
    BYTES_PER_SEED,
    CHUNK,
    CHUNK_COLUMN,
    SHIFT_COLUMN,
    WordHits,
    chunk_starts,
)

_ROOM = 1 << 16
"""Hits of a chunk that there is room for at a time."""
BYTES_PER_ROW = 12
AT_ONCE = 512
"""Words of a target that are made, and looked for in a table's presence bits, before those that are there are used."""
WIDE = 12
"""Bases of words that are looked for in place of narrow ones, which are in tables of targets many times by chance."""
FETCHED = 256
"""Words whose presence bits are fetched before the first of them is looked for."""
ROLLED = 2
"""Bases from one word of a target to the next up to which several words are made of the same bases."""


class WordTable(NamedTuple):
    """Words of some queries: u8 presence bits, i4 bits set before each 64, i4[words + 1] starts in i4 entries.

    Entries are places in the strands of the whole batch, ascending in a word.
    """

    bits: np.ndarray
    ranks: np.ndarray
    starts: np.ndarray
    entries: np.ndarray


class QueryTable(NamedTuple):
    """The strands of all queries: u1 bases, bool places of table words, bool places from which a whole word is open.

    eights: u8, the eight bases from each place on. begins, blocks: as of ``Places``.
    """

    strands: np.ndarray
    eights: np.ndarray
    indexed: np.ndarray
    opens: np.ndarray
    begins: np.ndarray
    blocks: np.ndarray


@inline
def _ones(bits):
    """How many bits of a u8 are set."""
    bits -= bits >> np.uint64(1) & np.uint64(0x5555555555555555)
    bits = (bits & np.uint64(0x3333333333333333)) + (bits >> np.uint64(2) & np.uint64(0x3333333333333333))
    bits = bits + (bits >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64(bits * np.uint64(0x0101010101010101) >> np.uint64(56))


@inline
def is_present(bits, word):
    """Whether a table with these presence bits has the word."""
    return bits[word >> 6] >> np.uint64(word & 63) & np.uint64(1) != 0


@inline
def rank_of(bits, ranks, word):
    """How many words of a table come before this one."""
    return ranks[word >> 6] + _ones(bits[word >> 6] & ((np.uint64(1) << np.uint64(word & 63)) - np.uint64(1)))


@kernel
def _count_words(words, bits, ranks):
    """Set the presence bits and the ranks; returns the number of different words."""
    for word in words:
        bits[word >> 6] |= np.uint64(1) << np.uint64(word & 63)
    total = 0
    for block in range(len(bits)):
        ranks[block] = total
        total += _ones(bits[block])
    return total


@kernel
def _fill(words, places, bits, ranks, starts, entries):
    """Put places in their words' stretches. starts: i4[words + 2], zero."""
    for word in words:
        starts[rank_of(bits, ranks, word) + 2] += 1
    for rank in range(2, len(starts)):
        starts[rank] += starts[rank - 1]
    for number in range(len(words)):
        rank = rank_of(bits, ranks, words[number]) + 1
        entries[starts[rank]] = places[number]
        starts[rank] += 1


def word_table(words: np.ndarray, places: np.ndarray, kinds: int) -> WordTable:
    """A table of i4 ``words`` (below ``kinds``) at i4 ``places``."""
    bits, ranks = np.zeros((kinds + 63) // 64, np.uint64), np.empty((kinds + 63) // 64, np.int32)
    starts = np.zeros(_count_words(words, bits, ranks) + 2, np.int32)
    entries = np.empty(len(words), np.int32)
    _fill(words, places, bits, ranks, starts, entries)
    return WordTable(bits, ranks, starts, entries)


@kernel
def _mark_open(masked, begins, size, opens):
    """Mark where ``size`` bases and more in a row of a query's strands aren't masked."""
    for query in range(len(begins) - 1):
        run = 0
        for place in range(begins[query + 1] - 1, begins[query] - 1, -1):
            run = 0 if masked[place] else run + 1
            opens[place] = run >= size


@inline
def _may_grow(piece, query, place, target, width, size):
    """Whether a word may be part of one of ``size`` bases, by the eight bases on either side of it."""
    q, t = place + width, target + width
    if size == width or min(place, target) < 8 or q + 8 > len(query.strands) or t + 8 > len(piece.bases):
        return True
    ahead, back = query.eights[q] ^ piece.words[t], query.eights[place - 8] ^ piece.words[target - 8]
    if ahead == 0 or back == 0:
        return True
    right = np.int64(lowest_bit(ahead) >> np.uint64(3))
    return right + 7 - np.int64(highest_bit(back) >> np.uint64(3)) >= size - width


@inline
def _whole_word(bases, query, place, target, width, size):
    """Mini-extension and skipping of masked bases: (whether a hit is left, its start in strands and bases, shift)."""
    number = query_at(query, place)
    first, last = query.begins[number], query.begins[number + 1]
    need, left, right = size - width, 0, 0
    if need == 0:
        return True, place, target, 0
    strands = query.strands
    most = min(need, place - first, target)
    while left < most and strands[place - left - 1] == bases[target - left - 1]:
        left += 1
    most = min(need, last - place - width, len(bases) - target - width)
    while left + right < need and right < most and strands[place + width + right] == bases[target + width + right]:
        right += 1
    if left + right < need:
        return False, place, target, 0
    place, target = place - left, target - left
    if query.opens[place]:
        return True, place, target, 0
    if not query.indexed[place + need]:
        return False, place, target, 0
    shift = 0
    while not query.indexed[place + shift]:
        shift += 1
    place, target = place + shift, target + shift
    if not query.opens[place] or target + size > len(bases):
        return False, place, target, 0
    for k in range(size):
        if strands[place + k] != bases[target + k]:
            return False, place, target, 0
    return True, place, target, shift


@inline
def _eight(bases):
    """Eight bases, one in each byte of a u8 and the first one lowest, as a word of two bits each."""
    bases = (bases << np.uint64(2) | bases >> np.uint64(8)) & np.uint64(0x000F000F000F000F)
    bases = (bases << np.uint64(4) | bases >> np.uint64(16)) & np.uint64(0x000000FF000000FF)
    return np.int64((bases << np.uint64(8) | bases >> np.uint64(32)) & np.uint64(0xFFFF))


@inline
def _word_at(piece, place, width):
    """The word of 8 to 16 bases there."""
    more = np.int64(2 * (width - 8))
    return (_eight(piece.words[place]) << more) | (_eight(piece.words[place + width - 8]) & ((np.int64(1) << more) - 1))


@kernel
def present_words(bits, words, count, present):
    """Keep the first ``count`` words that a table has: their numbers in ``present``; returns how many there are.

    Without a branch: which words are there can't be foreseen.
    """
    there = np.int64(0)
    for number in range(count):
        word = words[number]
        present[there] = number
        there += np.int64(bits[word >> 6] >> np.uint64(word & 63) & np.uint64(1))
    return there


def scratch(arrays: int) -> tuple[np.ndarray, ...]:
    """Room for ``AT_ONCE`` words, so many times, and for those that are present: kernels that make arrays are slow."""
    return tuple(np.empty(AT_ONCE + 1, np.int64) for _ in range(arrays + 1))


@kernel
def rolled_words(piece, first, count, width, stride, words):
    """The words of 1 to 24 bases of a piece at ``count`` places, 1, 2, 4 or 8 apart, from ``first`` on."""
    number, after = 0, first
    ahead = len(piece.words) - 24
    window = np.int64(0)
    mask = (np.int64(1) << np.int64(2 * width)) - 1
    while number < count and first + number * stride < ahead:
        place = first + number * stride
        if place != after or number == 0:
            window = ((_eight(piece.words[place]) << 32) | (_eight(piece.words[place + 8]) << 16)
                      | _eight(piece.words[place + 16]))
        window = window << 16 | _eight(piece.words[place + 24])
        after = place + 8
        if stride == 1 and number + 8 <= count:
            for k in range(8):
                words[number + k] = window >> np.int64(2 * (32 - width - k)) & mask
            number += 8
            continue
        for k in range(0, 8, stride):
            if number < count:
                words[number] = window >> np.int64(2 * (32 - width - k)) & mask
                number += 1
    for rest in range(number, count):
        word = np.int64(0)
        for place in range(first + rest * stride, first + rest * stride + width):
            word = word << 2 | piece.bases[place]
        words[rest] = word


@kernel
def _words(piece, first, count, width, stride, words):
    """The words of a chunk at ``count`` places, ``stride`` apart, from ``first`` on."""
    if stride <= ROLLED:
        rolled_words(piece, first, count, width, stride, words)
        return
    for number in range(count):
        word = np.int64(0)
        for place in range(first + number * stride, first + number * stride + width):
            word = word << 2 | piece.bases[place]
        words[number] = word


@kernel
def _scan_whole(piece, length, width, stride, table, found, first, words, present):
    """As ``_scan``, of words that needn't be extended. words, present: ``scratch``."""
    count = 0
    places = max(0, (length - width) // stride + 1)
    for begin in range(first, places, AT_ONCE):
        own, before = min(AT_ONCE, places - begin), count
        _words(piece, begin * stride, own, width, stride, words)
        for at in range(present_words(table.bits, words, own, present)):
            rank = rank_of(table.bits, table.ranks, words[present[at]])
            entry, last = table.starts[rank], table.starts[rank + 1]
            if count + last - entry > len(found):
                return before, before, begin
            for place in table.entries[entry:last]:
                found[count, 0], found[count, 1], found[count, 2] = place, (begin + present[at]) * stride, 0
                count += 1
    return count, count, -1


@kernel
def _scan(piece, length, size, width, stride, table, query, found, first, words, present):
    """Hits of a chunk from a word on: rows of place in the strands, place in the chunk, shift.

    Returns their number, that of equal words, and the word from which on there was no room, or −1.

    Args:
        piece: ``Sequence`` of the chunk, which has ``length`` bases.
        words, present: ``scratch``.
    """
    bases = piece.bases[:length]
    count = looked_up = 0
    apart = stride > ROLLED and 8 <= width <= length
    places = max(0, (length - width) // stride + 1)
    for begin in range(first, places, AT_ONCE):
        own, before, known = min(AT_ONCE, places - begin), count, looked_up
        if apart:
            for number in range(own):
                words[number] = _word_at(piece, (begin + number) * stride, width)
        else:
            _words(piece, begin * stride, own, width, stride, words)
        for at in range(present_words(table.bits, words, own, present)):
            target, rank = (begin + present[at]) * stride, rank_of(table.bits, table.ranks, words[present[at]])
            if count + table.starts[rank + 1] - table.starts[rank] > len(found):
                return before, known, begin
            for entry in range(table.starts[rank], table.starts[rank + 1]):
                looked_up += 1
                if not _may_grow(piece, query, np.int64(table.entries[entry]), target, width, size):
                    continue
                whole, place, opposite, shift = _whole_word(bases, query, np.int64(table.entries[entry]), target, width,
                                                            size)
                if whole:
                    found[count, 0], found[count, 1], found[count, 2] = place, opposite, shift
                    count += 1
    return count, looked_up, -1


@kernel
def _every(bases, width, stride, words, places):
    """Words of a chunk that begin at every ``stride``-th base, and where."""
    for number in range(len(words)):
        word = np.int64(0)
        for place in range(number * stride, number * stride + width):
            word = word << 2 | bases[place]
        words[number], places[number] = word, number * stride


@inline
def _bases_at(bases, words, place, count):
    """Up to eight bases from a place on as a word; −1 where one isn't a base, or there are less."""
    if place < 0 or place + count > len(bases):
        return np.int64(-1)
    if place < len(words):
        eight = words[place]
        if eight & (np.uint64(0xFCFCFCFCFCFCFCFC) >> np.uint64(8 * (8 - count))):
            return np.int64(-1)
        return _eight(eight) >> np.int64(2 * (8 - count))
    word = np.int64(0)
    for k in range(count):
        if bases[place + k] > 3:
            return np.int64(-1)
        word = word << 2 | bases[place + k]
    return word


@kernel
def _widened(piece, words, places, width, more, wide, where, back):
    """Words with ``more`` bases ahead of or behind them, where there are such, and their places; their number."""
    count = 0
    for number in range(len(words)):
        place = np.int64(places[number])
        other = _bases_at(piece.bases, piece.words, place - more if back else place + width, more)
        if other >= 0:
            word = np.int64(words[number])
            wide[count] = other << 2 * width | word if back else word << 2 * more | other
            where[count] = place
            count += 1
    return count


@kernel
def _scan_words(queries, high, piece, size, more, ahead, back, query, keys, ranks, found, low):
    """As ``_scan``, of a chunk in tables, for words ``low`` … ``high`` − 1 of the queries.

    A hit that needs ``more`` bases on either side of its word has so many equal ones on one side at least: it is looked
    for by wider words, which are there less often by chance. What one table gives, the other needn't.

    Args:
        queries: ``QueryWords``.
        more: bases by which words are wider; 0 if all hits are looked for in ``ahead``.
        ahead, back: tables of the chunk's words with ``more`` bases ahead of and behind them.
        keys, ranks: i8[2, ``FETCHED``], wider words, −1 where there is none; i8[2 · ``FETCHED``, 3] for ``_fetched``.
        found: a fourth column has where the chunk's word begins.
    """
    count = looked_up = begun = seen = 0
    width = queries.width
    for number in range(len(queries.widths)):
        if queries.widths[number] != width:
            continue
        begin = query.begins[number]
        to = min(high, queries.word_offsets[number + 1])
        for block in range(max(low, queries.word_offsets[number]), to, FETCHED):
            last_of_block = min(block + FETCHED, to)
            for at in range(block, last_of_block):
                word, place = np.int64(queries.words[at]), begin + queries.positions[at]
                if not more:
                    keys[0, at - block] = word
                    prefetch(ahead.bits, word >> 6)
                    continue
                after = _bases_at(query.strands, query.eights, place + width, more)
                before = _bases_at(query.strands, query.eights, place - more, more)
                keys[0, at - block] = word << 2 * more | after if after >= 0 else -1
                keys[1, at - block] = before << 2 * width | word if before >= 0 else -1
                prefetch(ahead.bits, keys[0, at - block] >> 6)
                prefetch(back.bits, keys[1, at - block] >> 6)
            known = -1
            for row in range(_fetched(piece, last_of_block - block, width, more, ahead, back, keys, ranks)):
                at, side, rank = ranks[row, 0], ranks[row, 1], ranks[row, 2]
                place = begin + queries.positions[block + at]
                first, last = _entries(back, rank) if side else _entries(ahead, rank)
                if at != known:
                    known, begun, seen = at, count, looked_up
                if count + last - first > len(found):
                    return begun, seen, block + at
                for entry in range(first, last):
                    target = np.int64(back.entries[entry] if side else ahead.entries[entry])
                    if side and keys[0, at] >= 0 and (
                            keys[0, at] & (np.int64(1) << 2 * more) - 1
                            == _bases_at(piece.bases, piece.words, target + width, more)):
                        continue
                    looked_up += 1
                    count += _hit(piece, query, place, target, width, size, found, count)
    return count, looked_up, -1


@inline
def _entries(table, rank):
    """First and last entry of a word, behind it."""
    return table.starts[rank], table.starts[rank + 1]


@kernel
def _fetched(piece, count, width, more, ahead, back, keys, ranks):
    """Note which of ``count`` words are there: i8[n, 3] number, table and rank; returns how many.

    All that is known of one is far from what is known of others, so each is fetched before the first is looked at.
    """
    there = 0
    for number in range(count):
        for side in range(2 if more else 1):
            key = keys[side, number]
            if key >= 0 and (is_present(back.bits, key) if side else is_present(ahead.bits, key)):
                ranks[there, 0], ranks[there, 1], ranks[there, 2] = number, side, key
                prefetch(back.ranks if side else ahead.ranks, key >> 6)
                there += 1
    for at in range(there):
        side, key = ranks[at, 1], ranks[at, 2]
        ranks[at, 2] = rank_of(back.bits, back.ranks, key) if side else rank_of(ahead.bits, ahead.ranks, key)
        prefetch(back.starts if side else ahead.starts, ranks[at, 2])
    for at in range(there):
        side, rank = ranks[at, 1], ranks[at, 2]
        prefetch(back.entries if side else ahead.entries, back.starts[rank] if side else ahead.starts[rank])
    for at in range(there):
        side, rank = ranks[at, 1], ranks[at, 2]
        entry = back.entries[back.starts[rank]] if side else ahead.entries[ahead.starts[rank]]
        prefetch(piece.bases, np.int64(entry) + width)
    return there


@inline
def _hit(piece, query, place, target, width, size, found, row):
    """Write the hit of a word, if it is one, to a row; whether it is."""
    if not _may_grow(piece, query, place, target, width, size):
        return False
    whole, begin, opposite, shift = _whole_word(piece.bases, query, place, target, width, size)
    if whole:
        found[row, 0], found[row, 1], found[row, 2], found[row, 3] = begin, opposite, shift, target
    return whole


@kernel
def _gather(queries, begins, words, places):
    """The words of ``QueryWords``, and where these are in the strands of the whole batch."""
    count = 0
    for query in range(len(queries.widths)):
        if queries.widths[query] == queries.width:
            for number in range(queries.word_offsets[query], queries.word_offsets[query + 1]):
                words[count], places[count] = queries.words[number], begins[query] + queries.positions[number]
                count += 1


class QueryWords(NamedTuple):
    """Words of the queries of a batch that have words of one width: i4 words and their positions in the strands.

    widths: i4[k], of each query. word_offsets: i8[k + 1], where the words of each query begin.
    """

    width: int
    widths: np.ndarray
    word_offsets: np.ndarray
    words: np.ndarray
    positions: np.ndarray

    @property
    def total(self) -> int:
        return int(np.diff(self.word_offsets)[self.widths == self.width].sum())

    def table(self, begins: np.ndarray, kinds: int) -> WordTable:
        """Of words of as many kinds, at places in strands that begin at ``begins``."""
        words, places = np.empty((2, self.total), np.int32)
        _gather(self, begins, words, places)
        return word_table(words, places, kinds)


def all_hits(columns: int, scan: Callable[[np.ndarray, int], tuple[int, int, int]], first: int = 0
             ) -> tuple[list[np.ndarray], int]:
    """Rows that a scan finds, i4[n, columns], part by part; and how many equal words there were.

    scan: called with room and where to begin; gives the rows that are in the room, how many equal words there were, and
    where it ran out of it, or −1.
    """
    room, parts, words = np.empty((_ROOM, columns), np.int32), [], 0
    while True:
        count, looked_up, after = scan(room, first)
        words += looked_up
        if count:
            parts.append(room[:count].copy())
        if after < 0:
            return parts, words
        if after == first and not count:
            room = np.empty((4 * len(room), columns), np.int32)
        first = after


def _wide_table(piece: Sequence, words: np.ndarray, places: np.ndarray, width: int, more: int, back: bool) -> WordTable:
    wide, where = np.empty((2, len(words)), np.int32)
    count = _widened(piece, words, places, width, more, wide, where, back)
    return word_table(wide[:count], where[:count], 4 ** (width + more))


def hits_of_query_words(threads: int, queries: QueryWords, piece: np.ndarray, size: int, query: QueryTable
                        ) -> tuple[list[np.ndarray], int]:
    """Hits of the words of queries in a chunk, as ``_scan`` finds them, and how many equal words there were."""
    width = queries.width
    stride = size - width + 1
    own, begins = np.empty((2, max(0, (len(piece) - width) // stride + 1)), np.int32)
    _every(piece, width, stride, own, begins)
    chunk, more = sequence(piece), WIDE - width
    if more > 1 and 2 * more <= size - width:
        ahead, back = (_wide_table(chunk, own, begins, width, more, side) for side in (False, True))
    else:
        more = 0
        ahead = back = word_table(own, begins, 4**width)

    def part(rows: tuple[int, int]) -> tuple[list[np.ndarray], int]:
        low, high = rows
        keys, ranks = np.empty((2, FETCHED), np.int64), np.empty((2 * FETCHED, 3), np.int64)
        return all_hits(4, lambda found, at: _scan_words(queries, high, chunk, size, more, ahead, back, query, keys,
                                                         ranks, found, at), low)

    parts = run_tasks(threads, part, even_parts(len(queries.words), threads))
    found = np.concatenate([np.empty((0, 4), np.int32), *(rows for some, _ in parts for rows in some)])
    found = found[np.argsort(found[:, 3], kind="stable")]
    return [np.ascontiguousarray(found[:, :3])], sum(looked_up for _, looked_up in parts)


Scan = Callable[[np.ndarray, WordTable, QueryTable, np.ndarray, int], tuple[int, int, int]]


_LOOKED_UP = 20
"""Words that are looked up in the time that one takes to be put into a table."""


def is_less_by_target(words: int, of_targets: int, chunks: int) -> bool:
    """Whether tables of the targets' words, for each chunk, are less work than one of the queries' ``words``."""
    return _LOOKED_UP * of_targets + chunks * words < _LOOKED_UP * words + of_targets


def word_seeds(context: Context, kind: str, length: int, kinds: Callable[[int], int], scanner: Callable,
               whole_words: bool, follow: bool) -> Seeds:
    """Seeds of all words of the index of a kind, by query, target, chunk and as ``scanner`` finds them.

    Args:
        length: bases of a hit.
        kinds: how many different words of a width there can be.
        scanner: gives for a width and a stride the function that scans a chunk.
        whole_words: whether words are of neighbouring bases, so that those of a target can be put into a table, too.
        follow: whether ``scanner`` finds the hits of a diagonal in the order of their places.
    """
    index, bases = context.index(kind), packed_bases(context)
    queries, targets = context.queries, context.targets
    query = _query_table(index, length)
    work = [(target, chunk) for target, length_ in enumerate(targets.lengths.tolist())
            for chunk in chunk_starts(length_)]
    found: list[list[np.ndarray]] = [[] for _ in work]
    of_widths = [QueryWords(width, index["width"], index["word_offsets"], index["words"], index["positions"])
                 for width in distinct(index["width"]).tolist()]
    of_widths = [queries for queries in of_widths if queries.total]
    for own in of_widths:
        width, stride = own.width, int(index["stride"][index["width"] == own.width][0])
        turned = whole_words and is_less_by_target(own.total, targets.total_residues // stride, len(work))
        table = None if turned else own.table(query.begins, kinds(width))
        scan = scanner(width, stride)

        def look(at: int, own: QueryWords = own, table: WordTable | None = table, scan: Scan = scan,
                 stride: int = stride) -> tuple[list[np.ndarray], int]:
            target, chunk = work[at]
            low = int(targets.offsets[target]) + chunk
            piece = bases.piece(low, min(low + CHUNK, int(targets.offsets[target + 1])))
            if table is None:
                rows, looked_up = hits_of_query_words(context.threads, own, piece, length, query)
            else:
                rows, looked_up = all_hits(3, lambda found, at: scan(piece, table, query, found, at))
            context.advance(len(piece), len(of_widths) * targets.total_residues)
            return rows, looked_up

        threads = 1 if turned else context.threads
        for at, (rows, looked_up) in enumerate(run_tasks(threads, look, range(len(work)))):
            found[at] += rows
            context.count("table_hits", looked_up)
    chunks = np.array([(targets.ordinals[target], chunk) for target, chunk in work], np.int64).reshape(-1, 2)
    hits = scanned(Places(query.begins, query.blocks), found, chunks)
    make = ScannedSeeds(hits, query.begins, length, queries.ordinals, follow)
    return Seeds.later(len(hits.hits), make, (CHUNK_COLUMN, SHIFT_COLUMN))


def _query_table(index: Index, size: int) -> QueryTable:
    strands, begins = index["strands"], index["strand_offsets"]
    opens = np.empty(len(strands), np.bool_)
    _mark_open(index["masked"], begins, size, opens)
    return QueryTable(strands, sequence(strands).words, index["indexed"], opens, *places_of(begins))


def shared_scan_seconds(shape: Shape) -> float:
    """One scan of the targets for all queries; and there are stages behind."""
    return shape.target_residues / 1e8 + shape.query_residues * shape.target_residues / 1e12


def shared_scan_footprint(shape: Shape, stride: int, words: int, whole_words: int, tables: int = 1) -> Footprint:
    """Presence bits with ranks, what is known of every place of the queries, hits of chunks, and seeds.

    Args:
        stride: bases from one word of a target to the next.
        words, whole_words: how many different words there can be in a table, and of the size that makes seeds.
        tables: words that begin at a base.
    """
    places, chunk = 2 * shape.query_residues, min(CHUNK, shape.longest_target)
    found = _ROOM + 4 * tables * places * chunk // (words * stride)
    seeds = 2 * shape.query_residues * shape.target_residues // whole_words + shape.query_residues // stride
    return Footprint(host=words // 8 + words // 16 + (10 + 16 * tables) * places + shape.threads * chunk
                     + BYTES_PER_ROW * shape.threads * found + BYTES_PER_SEED * seeds)


class WordHitsCpu(WordHits):
    __doc__ = WordHits.__doc__
    backend = "cpu"
    reads_residues = False

    def footprint(self, shape: Shape) -> Footprint:
        return shared_scan_footprint(shape, *self.word_counts(shape))

    def seconds(self, shape: Shape) -> float:
        return shared_scan_seconds(shape)

    def run(self, context: Context, records: Records | None) -> Seeds:
        size = context.options.word_size

        def scanner(width: int, stride: int) -> Scan:
            if width == size:
                return lambda bases, table, query, found, first: _scan_whole(sequence(bases), len(bases), width, stride,
                                                                             table, found, first, *scratch(1))
            return lambda bases, table, query, found, first: _scan(sequence(bases), len(bases), size, width, stride,
                                                                   table, query, found, first, *scratch(1))

        return word_seeds(context, WORDS, size, lambda width: 4**width, scanner, True, True)
