"""Scan of packed targets on the CPU: words are made of eight bytes at a time and looked for in a table's presence bits
before anything else is fetched."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.index import Index
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import highest_bit, lowest_bit, prefetch
from seqloom.plugins.nucleotide_blast.greedy_cpu import sequence
from seqloom.plugins.nucleotide_blast.index_reference import compared_strands
from seqloom.plugins.nucleotide_blast.packed_cpu import (
    WORD,
    base_at,
    bases_from,
    eight_from,
    in_stretches,
    move_on,
    stretch_of,
    word_from,
    words_of,
)
from seqloom.plugins.nucleotide_blast.scanned_cpu import places_of, query_at
from seqloom.plugins.nucleotide_blast.strands_cpu import EACH, next_unlike
from seqloom.plugins.nucleotide_blast.word_table_cpu import bit_of, rank_of

ROOM = 1 << 16
"""Hits of a chunk that there is room for at a time."""
AT_ONCE = 512
"""Words of a target that are looked for in a table's presence bits before those that are there are used."""
_GROUP = 8
"""Words that are made of the same eight bytes."""


class QueryTable(NamedTuple):
    """``compared_strands`` of all queries, one behind the other.

    Attributes:
        strands: u1[m], bases. eights: u8, the eight bases from each place on, the first one lowest.
        indexed: bool[m], where words of the table begin. opens: bool[m], from where on a whole word isn't masked.
        begins, blocks: as of ``scanned_cpu.Places``.
    """

    strands: np.ndarray
    eights: np.ndarray
    indexed: np.ndarray
    opens: np.ndarray
    begins: np.ndarray
    blocks: np.ndarray


@kernel
def _mark_open(masked, begins, size, opens):
    """Mark where ``size`` bases and more in a row of a query's strands aren't masked. masked: ``sequence`` of flags."""
    for query in range(len(begins) - 1):
        end = begins[query + 1]
        start = next_unlike(masked, begins[query], end, EACH, EACH)
        while start < end:
            stop = next_unlike(masked, start, end, np.uint64(0), EACH)
            opens[start : max(start, stop - size + 1)] = True
            start = next_unlike(masked, stop, end, EACH, EACH)


@inline
def may_grow(piece, query, place, target, width, size):
    """Whether a word may be part of one of ``size`` bases, by the eight bases on either side of it."""
    q, t = place + width, target + width
    if size == width or min(place, target) < 8 or q + 8 > len(query.strands) or t + 8 > piece.size:
        return True
    ahead = query.eights[q] ^ eight_from(piece.words, piece.begin + t)
    back = query.eights[place - 8] ^ eight_from(piece.words, piece.begin + target - 8)
    if ahead == 0 or back == 0:
        return True
    right = np.int64(lowest_bit(ahead) >> np.uint64(3))
    return right + 7 - np.int64(highest_bit(back) >> np.uint64(3)) >= size - width


@inline
def equal_back(query, place, piece, target, most):
    """How many bases before two places are equal, ``most`` at most."""
    count, target = np.int64(0), target + piece.begin
    while count + 8 <= most:
        differing = query.eights[place - count - 8] ^ eight_from(piece.words, target - count - 8)
        if differing:
            return count + 7 - np.int64(highest_bit(differing) >> np.uint64(3))
        count += 8
    while count < most and query.strands[place - count - 1] == base_at(piece.bits, target - count - 1):
        count += 1
    return count


@inline
def equal_ahead(query, place, piece, target, most):
    """How many bases from two places on are equal, ``most`` at most."""
    count, target = np.int64(0), target + piece.begin
    while count + 8 <= most:
        differing = query.eights[place + count] ^ eight_from(piece.words, target + count)
        if differing:
            return count + np.int64(lowest_bit(differing) >> np.uint64(3))
        count += 8
    while count < most and query.strands[place + count] == base_at(piece.bits, target + count):
        count += 1
    return count


@inline
def whole_word(piece, query, place, target, width, size):
    """Mini-extension and skipping of masked bases: (whether a hit is left, its start in strands and piece, shift)."""
    number = query_at(query, place)
    first, last = query.begins[number], query.begins[number + 1]
    need = size - width
    if need == 0:
        return True, place, target, 0
    left = equal_back(query, place, piece, target, min(need, place - first, target))
    right = equal_ahead(query, place + width, piece, target + width,
                         min(need - left, last - place - width, piece.size - target - width))
    if left + right < need:
        return False, place, target, 0
    return without_masked(piece, query, place - left, target - left, need, size)


@inline
def without_masked(piece, query, place, target, need, size):
    """Skipping of masked bases of a hit that needs so many more bases than its table word, as ``whole_word``."""
    if need == 0 or query.opens[place]:
        return True, place, target, 0
    if not query.indexed[place + need]:
        return False, place, target, 0
    shift = 0
    while not query.indexed[place + shift]:
        shift += 1
    place, target = place + shift, target + shift
    if not query.opens[place] or target + size > piece.size:
        return False, place, target, 0
    for k in range(size):
        if query.strands[place + k] != base_at(piece.bits, piece.begin + target + k):
            return False, place, target, 0
    return True, place, target, shift


def room_for_present() -> np.ndarray:
    """i8[2, n]: for the numbers of words that are in a table, and their ranks; kernels that make arrays are slow."""
    return np.empty((2, AT_ONCE + _GROUP), np.int64)


@inline
def note_rank(table, word, ranks, at):
    """Write the rank of a u8 word that is in a table, and fetch where its places begin."""
    ranks[at] = rank_of(table, word)
    prefetch(table.starts, ranks[at])


@inline
def fetch_places(table, ranks):
    """Fetch the first place of every word: each is far from what is known of others."""
    for rank in ranks:
        prefetch(table.entries, np.int64(table.starts[rank]))


@inline
def find_present(words, first, count, width, stride, table, present):
    """Note which of ``count`` words from place ``first`` on a table has, and their ranks; returns how many."""
    there = noted(words, first, count, width, stride, table.bits, present[0])
    for at in range(there):
        note_rank(table, word_from(words, first + present[0, at] * stride, width), present[1], at)
    fetch_places(table, present[1, :there])
    return there


@kernel
def _noted_in_groups(words, first, count, width, stride, bits, present):
    """As ``noted``, of words so near to each other that several are made of the same bytes."""
    there, mask = np.uint64(0), (np.uint64(1) << np.uint64(2 * width)) - np.uint64(1)
    down, step = np.uint64(64 - 2 * width), np.uint64(2 * stride)
    number = 0
    while number + _GROUP <= count:
        bases = bases_from(words, first + number * stride)
        for k in range(_GROUP):
            present[there] = number + k
            there += bit_of(bits, bases >> (down - step * np.uint64(k)) & mask)
        number += _GROUP
    while number < count:
        present[there] = number
        there += bit_of(bits, word_from(words, first + number * stride, width))
        number += 1
    return np.int64(there)


@kernel
def noted(words, first, count, width, stride, bits, present):
    """Note which of ``count`` words, ``stride`` apart from a place on, a table has; returns how many these are.

    Without a branch: which words are there can't be foreseen.
    """
    if width + (_GROUP - 1) * stride <= WORD:
        return _noted_in_groups(words, first, count, width, stride, bits, present)
    there = np.uint64(0)
    for number in range(count):
        present[there] = number
        there += bit_of(bits, word_from(words, first + number * stride, width))
    return np.int64(there)


@kernel
def _scan_whole(piece, width, stride, table, found, first, present):
    """As ``scan_whole``, of a stretch."""
    count = 0
    places = min(words_of(piece, 0, width, stride), piece.behind)
    for begin in range(first, places, AT_ONCE):
        before, own = count, min(AT_ONCE, places - begin)
        for at in range(find_present(piece.words, piece.begin + begin * stride, own, width, stride, table, present)):
            number, rank = begin + present[0, at], present[1, at]
            entry, last = table.starts[rank], table.starts[rank + 1]
            if count + last - entry > len(found):
                return before, before, begin
            for place in table.entries[entry:last]:
                found[count, 0], found[count, 1], found[count, 2] = place, number * stride, 0
                count += 1
    return count, count, -1


@kernel
def scan_whole(piece, opens, width, stride, table, found, first, present):
    """As ``scan``, of words that needn't be extended: the first one of a stretch is at its first base.

    The loop is that of ``in_stretches``, by which this takes 1 to 4 % longer.
    """
    count = before = 0
    for number in range(len(opens.stretches)):
        stretch = stretch_of(piece, opens, number, before)
        words, begin = words_of(stretch, 0, width, stride), max(0, first - before)
        if begin < min(words, stretch.behind):
            more, _, after = _scan_whole(stretch, width, stride, table, found[count:], begin, present)
            move_on(found, count, count + more, stretch.begin - piece.begin)
            count += more
            if after >= 0:
                return count, count, before + after
        before += words
    return count, count, -1


@kernel
def _scan(piece, given, found, first, present):
    """As ``scan``, of a stretch. given: where in it the first word is, and size, width, stride, table and query."""
    late, size, width, stride, table, query = given
    count = looked_up = 0
    places = min(words_of(piece, late, width, stride), piece.behind)
    for begin in range(first, places, AT_ONCE):
        before, known, own = count, looked_up, min(AT_ONCE, places - begin)
        place = late + begin * stride
        for at in range(find_present(piece.words, piece.begin + place, own, width, stride, table, present)):
            target, rank = place + present[0, at] * stride, present[1, at]
            if count + table.starts[rank + 1] - table.starts[rank] > len(found):
                return before, known, begin
            for entry in range(table.starts[rank], table.starts[rank + 1]):
                looked_up += 1
                if not may_grow(piece, query, np.int64(table.entries[entry]), target, width, size):
                    continue
                whole, place_of, opposite, shift = whole_word(piece, query, np.int64(table.entries[entry]), target,
                                                              width, size)
                if whole:
                    found[count, 0], found[count, 1], found[count, 2] = place_of, opposite, shift
                    count += 1
    return count, looked_up, -1


@kernel
def scan(piece, opens, size, width, stride, table, query, found, first, present):
    """Hits of a piece from a word on, which have ``size`` bases; see ``in_stretches``.

    Args:
        width, stride: bases of a word of the table, and from one to the next.
        table: ``WordTable``. query: ``QueryTable``.
    """
    return in_stretches(_scan, (opens.first, size, width, stride, table, query), opens.first, width, stride, 1, piece,
                        opens, found, first, present)


def all_hits(columns: int, scan: Callable[[np.ndarray, int], tuple[int, int, int]], first: int = 0
             ) -> tuple[list[np.ndarray], int]:
    """Rows that a scan finds, i4[n, columns], part by part; and how many equal words there were.

    scan: called with room and where to begin; gives the number of rows that are in the room, how many equal words there
    were, and where it ran out of it, or −1.
    """
    parts: list[np.ndarray] = []
    room, words = np.empty((ROOM, columns), np.int32), 0
    while True:
        count, looked_up, after = scan(room, first)
        words += looked_up
        if after < 0:
            return [*parts, room[:count].copy()], words
        parts.append(room[:count])
        # One word may be at more places than there is room for.
        room = np.empty(((4 if after == first else 1) * len(room), columns), np.int32)
        first = after


def query_table(index: Index, size: int) -> QueryTable:
    """The strands of an index of words, for hits of ``size`` bases."""
    (strands, shut), begins = compared_strands(index), index["strand_offsets"]
    opens = np.zeros(len(strands), np.bool_)
    _mark_open(sequence(shut.view(np.uint8)), begins, size, opens)
    return QueryTable(strands, sequence(strands).words, index["indexed"], opens, *places_of(begins))
