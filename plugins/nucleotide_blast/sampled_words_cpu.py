"""Scan of targets for hits by whichever words are least work, in place of those that a table of BLAST has.

A hit of ``size`` equal bases has a word of ``width`` bases at one of the places that are multiples of ``size - width +
1`` in the target. So all hits are found by one table of such words of the queries, however wide BLAST's own words of
each query are; and the equal bases around a word say which hits BLAST records there. Wider words are more places to
look at, and fewer words that are equal by chance.

Of what is found by chance the ungapped extension saves little. Where it extends single hits, those that it doesn't save
are counted here and not kept: all that such a hit leaves behind there is how far its diagonal is done, which is no
further than its run of equal bases, and of a short run the first hit alone is extended.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.classes import NamedTuple
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
from seqloom.plugins.nucleotide_blast.ungapped_segment_cpu import (
    CUTOFF,
    REDUCED,
    X_DROP,
    groups_of,
    most_of_approximate,
    segment,
)
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


class HitFilter(NamedTuple):
    """Which hits an extension of single hits saves; the others needn't be kept.

    Attributes:
        every: whether all are kept nevertheless; the rest is empty then.
        rules: i4[16, 16], the score matrix, and i8[256], ``scores_of_groups``.
        strands, begins: u1 and i8, ``laid_out_strands``. groups: u8, ``eights`` of ``grouped`` strands.
        limits: i8[q, 2, 3], ``strand_limits``.
    """

    every: bool
    rules: tuple[np.ndarray, np.ndarray]
    strands: np.ndarray
    begins: np.ndarray
    groups: np.ndarray
    limits: np.ndarray

    @classmethod
    def all_hits(cls) -> HitFilter:
        nothing = np.empty(0, np.int64)
        return cls(True, (np.empty((0, 0), np.int64), nothing), np.empty(0, np.uint8), nothing, np.empty(0, np.uint64),
                   np.empty((0, 2, 3), np.int64))


@inline
def _may_be_saved(piece, query, hit_filter, number, place, target, length):
    """Whether the extension of a hit of ``length`` bases reaches the cutoff, or goes on after eight groups of bases.

    If it does, other hits may lie on its way, which would be extended over the same bases again.
    """
    begin, end = hit_filter.begins[number], hit_filter.begins[number + 1]
    size, at = end - begin - 1, place - query.begins[number]
    limit = hit_filter.limits[number, np.int64(at > size >> 1)]
    groups = groups_of(hit_filter.groups, hit_filter.begins, number)
    most = most_of_approximate(hit_filter.rules[1], groups, size, piece.words, piece.begin, piece.size, at, target,
                               limit[X_DROP])
    if most < 0:
        return True
    if most < min(limit[REDUCED], limit[CUTOFF]):
        return False
    found = segment(hit_filter.rules, hit_filter.strands[begin:end], groups, piece.bits, piece.begin, piece.size, at,
                    target, length, target + length, limit)
    return found[3] >= limit[CUTOFF]


@inline
def _first_of_run(query, place, target, low, high, own, size):
    """Where the first hit of a run of equal bases begins, which is the only one that is extended; −1 if that isn't
    certain, since some of its words are masked."""
    need, step = size - own, size - own + 1
    scanned = (low + need) // step * step
    first = max(scanned - need, low)
    while scanned <= high - own:
        begin = max(scanned - need, low)
        if begin + size > high:
            break
        if not query.indexed[place + scanned - target] or (need > 0 and not query.opens[place + begin - target]):
            return np.int64(-1)
        scanned += step
    return np.int64(first)


@inline
def _hits_around(piece, size, width, stride, query, widths, hit_filter, place, target, found, count):
    """Write the hits that BLAST records, of which the word at a place is the first one; how many rows there are then,
    and how many hits these are with those that nobody wants.

    place, target: where the word begins in the strands and in the piece.
    """
    if not may_grow(piece, query, place, target, width, size):
        return count, 0
    number = query_at(query, place)
    first, last = query.begins[number], query.begins[number + 1]
    own = np.int64(widths[number])
    need, step = size - own, size - own + 1
    # How far the bases around the word are equal, no further than matters.
    back = equal_back(query, place, piece, target, min(size, place - first, target))
    ahead = min(size + stride - 1, last - place - width, piece.size - target - width)
    low, high = target - back, target + width + equal_ahead(query, place + width, piece, target + width, ahead)
    if high - max(low, target - stride + 1) < size:
        return count, 0
    alone = np.int64(-1)
    if not hit_filter.every and back < size and high - low < 2 * size:
        alone = _first_of_run(query, place, target, low, high, own, size)
    hits, scanned = 0, (max(low, target - stride + 1) + need) // step * step
    while scanned <= min(target + need, high - own):
        begin = max(scanned - need, low)
        if target - stride < begin <= high - size and query.indexed[place + scanned - target]:
            whole, start, opposite, shift = without_masked(piece, query, place + begin - target, begin, need, size)
            hits += whole
            if whole and (alone < 0 or (begin == alone and _may_be_saved(piece, query, hit_filter, number, start,
                                                                         opposite, size))):
                found[count, 0], found[count, 1], found[count, 2] = start, opposite, shift
                count += 1
        scanned += step
    return count, hits


@kernel
def _use_pairs(piece, size, width, stride, query, widths, hit_filter, pairs, number, found, count):
    """Write the hits around equal words at pairs of places; rows and hits as ``_hits_around``."""
    hits = 0
    for at in range(number):
        count, more = _hits_around(piece, size, width, stride, query, widths, hit_filter, pairs[0, at], pairs[1, at],
                                   found, count)
        hits += more
    return count, hits


@kernel
def scan_sampled(piece, size, width, stride, table, query, widths, most, hit_filter, totals, found, first, present,
                 pairs):
    """As ``scan_cpu.scan``, in ``sampled_table``, of hits that a ``HitFilter`` keeps.

    Args:
        widths: i4, of the words that BLAST has of each query.
        most: rows that one pair of equal words may give.
        totals: i8[1], to which the number of all hits is added.
        present, pairs: ``room_for_sampled``.
    """
    count = looked_up = hits = 0
    places = min(max(0, (piece.size - width) // stride + 1), piece.behind)
    for begin in range(first, places, AT_ONCE):
        before, known, old_hits, own = count, looked_up, hits, min(AT_ONCE, places - begin)
        waiting = 0
        for at in range(find_present(piece.words, piece.begin + begin * stride, own, width, stride, table, present)):
            target, rank = (begin + present[0, at]) * stride, present[1, at]
            for entry in range(table.starts[rank], table.starts[rank + 1]):
                if waiting == pairs.shape[1]:
                    if count + most * waiting > len(found):
                        totals[0] += old_hits
                        return before, known, begin
                    count, more = _use_pairs(piece, size, width, stride, query, widths, hit_filter, pairs, waiting,
                                             found, count)
                    hits, waiting = hits + more, 0
                place = np.int64(table.entries[entry])
                pairs[0, waiting], pairs[1, waiting] = place, target
                prefetch(query.eights, max(0, place - 8))
                waiting += 1
                looked_up += 1
        if count + most * waiting > len(found):
            totals[0] += old_hits
            return before, known, begin
        count, more = _use_pairs(piece, size, width, stride, query, widths, hit_filter, pairs, waiting, found, count)
        hits += more
    totals[0] += hits
    return count, looked_up, -1


def most_rows(size: int, stride: int, widths: np.ndarray) -> int:
    """Rows that a pair of equal words may give: places that BLAST looks at, of which the word is the first one.

    widths: i4[k], bases of the words that BLAST has of each query.
    """
    need = size - widths
    return int(((stride + need) // (need + 1) + 1).max())


def room_for_sampled() -> tuple[np.ndarray, np.ndarray]:
    """What ``scan_sampled`` works in."""
    return room_for_present(), np.empty((2, PAIRS), np.int64)
