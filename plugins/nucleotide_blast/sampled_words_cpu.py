"""Scan of targets for hits by whichever words are least work, in place of those that a table of BLAST has.

A hit of ``size`` equal bases has a word of ``width`` bases at one of the places that are multiples of ``size - width +
1`` in the target. So all hits are found by one table of such words of the queries, however wide BLAST's own words of
each query are; and the equal bases around a word say which hits BLAST records there. Wider words are more places to
look at, and fewer words that are equal by chance.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.index import Index
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import prefetch
from seqloom.plugins.nucleotide_blast.scan_cpu import (
    AT_ONCE,
    QueryTable,
    equal_ahead,
    equal_back,
    find_present,
    may_grow,
    room_for_present,
    without_masked,
)
from seqloom.plugins.nucleotide_blast.scanned_cpu import query_at
from seqloom.plugins.nucleotide_blast.word_table_cpu import WordTable, word_table

PAIRS = 256
"""Equal words whose query bases are fetched before the first of them is looked at."""


@kernel
def _covering_words(query, widths, size, width, words, places):
    """Words of ``width`` comparable bases that may lie in a hit, and their places in the strands; how many there are.

    A hit of ``size`` bases has a word of BLAST's table in it, which begins at most so many bases before or behind.
    """
    count, mask = 0, (np.int64(1) << 2 * width) - 1
    for number in range(len(widths)):
        begin, end = query.begins[number], query.begins[number + 1]
        before, behind = size - width, size - widths[number]
        word, run, known, ahead = np.int64(0), 0, np.int64(-size), begin
        for last in range(begin, end):
            code = np.int64(query.strands[last])
            word = (word << 2 | code & 3) & mask
            run = run + 1 if code < 4 else 0
            place = last - width + 1
            if run < width:
                continue
            # The last word of the table that isn't too far behind.
            while ahead < min(end, place + behind + 1):
                if query.indexed[ahead]:
                    known = ahead
                ahead += 1
            if known >= place - before:
                words[count], places[count] = word, place
                count += 1
    return count


def sampled_table(query: QueryTable, index: Index, size: int, width: int, threads: int = 1) -> WordTable:
    """The table of all queries in an index of words."""
    words, places = np.empty((2, len(query.strands)), np.int32)
    count = _covering_words(query, index["width"], size, width, words, places)
    return word_table(words[:count], places[:count], 4**width, threads)


@inline
def _hits_around(piece, size, width, stride, query, widths, place, target, found, count):
    """Write the hits that BLAST records, of which the word at a place is the first one; how many rows there are then.

    place, target: where the word begins in the strands and in the piece.
    """
    if not may_grow(piece, query, place, target, width, size):
        return count
    number = query_at(query, place)
    first, last = query.begins[number], query.begins[number + 1]
    own = np.int64(widths[number])
    need, step = size - own, size - own + 1
    # How far the bases around the word are equal, no further than matters.
    low = target - equal_back(query, place, piece, target, min(stride, place - first, target))
    ahead = min(stride - 1, last - place - width, piece.size - target - width)
    high = target + width + equal_ahead(query, place + width, piece, target + width, ahead)
    if high - max(low, target - stride + 1) < size:
        return count
    scanned = (max(low, target - stride + 1) + need) // step * step
    while scanned <= min(target + need, high - own):
        begin = max(scanned - need, low)
        word = place + scanned - target
        if target - stride < begin <= high - size and query.indexed[word]:
            whole, start, opposite, shift = without_masked(piece, query, place + begin - target, begin, need, size)
            if whole:
                found[count, 0], found[count, 1], found[count, 2] = start, opposite, shift
                count += 1
        scanned += step
    return count


@kernel
def _use_pairs(piece, size, width, stride, query, widths, pairs, number, found, count):
    """Write the hits around equal words at pairs of places; returns how many rows there are then."""
    for at in range(number):
        count = _hits_around(piece, size, width, stride, query, widths, pairs[0, at], pairs[1, at], found, count)
    return count


@kernel
def scan_sampled(piece, size, width, stride, table, query, widths, most, found, first, present, pairs):
    """As ``scan_cpu.scan``, in ``sampled_table``.

    Args:
        widths: i4, of the words that BLAST has of each query.
        most: rows that one pair of equal words may give.
        present, pairs: ``room_for_sampled``.
    """
    count = looked_up = 0
    places = min(max(0, (piece.size - width) // stride + 1), piece.behind)
    for begin in range(first, places, AT_ONCE):
        before, known, own = count, looked_up, min(AT_ONCE, places - begin)
        waiting = 0
        for at in range(find_present(piece, begin, own, width, stride, table, present)):
            target, rank = (begin + present[0, at]) * stride, present[1, at]
            for entry in range(table.starts[rank], table.starts[rank + 1]):
                if waiting == pairs.shape[1]:
                    if count + most * waiting > len(found):
                        return before, known, begin
                    count = _use_pairs(piece, size, width, stride, query, widths, pairs, waiting, found, count)
                    waiting = 0
                place = np.int64(table.entries[entry])
                pairs[0, waiting], pairs[1, waiting] = place, target
                prefetch(query.eights, max(0, place - 8))
                waiting += 1
                looked_up += 1
        if count + most * waiting > len(found):
            return before, known, begin
        count = _use_pairs(piece, size, width, stride, query, widths, pairs, waiting, found, count)
    return count, looked_up, -1


def most_rows(size: int, stride: int, widths: np.ndarray) -> int:
    """Rows that a pair of equal words may give: places that BLAST looks at, of which the word is the first one."""
    need = size - widths
    return int(((stride + need) // (need + 1) + 1).max())


def room_for_sampled() -> tuple[np.ndarray, np.ndarray]:
    """What ``scan_sampled`` works in."""
    return room_for_present(), np.empty((2, PAIRS), np.int64)
