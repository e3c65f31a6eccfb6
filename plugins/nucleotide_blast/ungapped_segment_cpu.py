"""One ungapped segment on the CPU, around a word hit: the reference's rules."""

from __future__ import annotations

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
from seqloom.plugins.nucleotide_blast.packed_cpu import base_at, four_at, reversed_bytes
from seqloom.plugins.nucleotide_blast.strands import MINUS, PLUS
from seqloom.plugins.nucleotide_blast.ungapped_reference import GROUP, SHORTEST_APPROXIMATE_WORD

COLUMNS = (
    "query", "target", "chunk", "query_frame", "query_pos", "target_pos", "length", "score", "word_query",
    "word_target",
)  # fmt: skip
_EACH = np.uint64(0x0101010101010101)
X_DROP, REDUCED, CUTOFF = range(3)
"""Columns of the limits of a strand."""


@kernel
def _group_strands(fours, strands, begins, groups):
    """Write ``group_bytes``; fours: four u4[m], the four bases from every fourth place on, from each of 0 to 3."""
    for query in range(len(begins) - 1):
        low, size = begins[query], begins[query + 1] - begins[query]
        quarter, to = (size + 3) // GROUP, low + GROUP * query
        for shift in range(GROUP):
            first, count = low + shift, max(0, size - shift) // GROUP
            whole = fours[first & 3][first >> 2 : (first >> 2) + count]
            own = groups[to + shift * quarter : to + (shift + 1) * quarter]
            for k in range(len(whole)):
                four = whole[k]
                own[k] = np.uint8(four << np.uint32(6) | four >> np.uint32(4) | four >> np.uint32(14)
                                  | four >> np.uint32(24))
        for place in range(max(0, size - GROUP + 1), size):
            four = np.uint8(0)
            for k in range(GROUP):
                four = np.uint8(four << np.uint8(2) | (strands[low + place + k] if place + k < size else np.uint8(0)))
            groups[to + (place & 3) * quarter + (place >> 2)] = four


def group_bytes(strands: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """``packed`` of the reference for u1 ``laid_out_strands`` of every query, those of every fourth place side by side.

    Returns:
        u1: a query's begin at ``begins[query] + 4 * query``, and there as ``group_place`` says; there are at least
        eight more behind the last.
    """
    groups = np.zeros(len(strands) + GROUP * len(begins) + 16, np.uint8)
    fours = tuple(strands[first:][: len(strands[first:]) & ~3].view(np.uint32) for first in range(GROUP))
    _group_strands(fours, strands, begins, groups)
    return groups


@inline
def groups_of(groups, begins, query):
    """The part of ``group_bytes``, as ``eights``, that is of one query."""
    return groups[begins[query] + GROUP * query : begins[query + 1] + GROUP * (query + 1)]


@inline
def group_place(size, place):
    """Where ``group_bytes`` of a query with ``size`` + 1 codes have the group from a place on."""
    return (place & 3) * ((size >> 2) + 1) + (place >> 2)


@inline
def _group_at(groups, place):
    """The group at a place of ``group_bytes``."""
    return np.int64(groups[place] & np.uint64(255))


@inline
def _approximate(scores, groups, size, bits, low, width, query, target, word_end, x_drop):
    """Segment of whole groups of four: query, target, length, score.

    groups: ``group_bytes`` of the query, which has ``size`` codes and one behind; its target has ``width`` bases
    from ``low`` on.
    """
    shift = -target % GROUP
    query, target = query + shift, target + shift
    place = group_place(size, query)
    score, start, gain = 0, query, 0
    for group in range(1, min(query, target) // GROUP + 1):
        gain += scores[_group_at(groups, place - group) ^ four_at(bits, low + target - GROUP * group)]
        if gain > 0:
            score, start, gain = score + gain, query - GROUP * group, 0
        if gain < -x_drop:
            break
    end, gain = query + 1, 0
    for group in range(min(size - query, width - target) // GROUP):
        gain += scores[_group_at(groups, place + group) ^ four_at(bits, low + target + GROUP * group)]
        if gain > 0:
            score, end, gain = score + gain, query + GROUP * (group + 1), 0
        if gain < -x_drop:
            break
    begin = target - (query - start)
    return start, begin, max(word_end - begin, end - start), score


@inline
def _eight_groups(words, place):
    """Eight groups of a target from a base on, the first one lowest. words: as of a ``Piece``."""
    at, up = place >> 2, np.uint64(2 * (place & 3))
    lower = (np.uint64(0xFF) >> up) * _EACH
    return (words[at] & lower) << up | words[at + 1] >> np.uint64(8) - up & ~(lower << up)


@inline
def _mismatches(groups, others):
    """How many bases differ in each of eight groups: bytes of a u8."""
    differ = groups ^ others
    differ = (differ | differ >> np.uint64(1)) & np.uint64(0x5555555555555555)
    differ = (differ & np.uint64(0x3333333333333333)) + (differ >> np.uint64(2) & np.uint64(0x3333333333333333))
    return differ + (differ >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)


@inline
def _best_and_last(scores, sums):
    """The best score that 0 to 8 groups have, and that of all 8. sums: bytes, mismatches of 1 to 8 groups."""
    all_equal, cost = scores[0], scores[0] - scores[1]
    best = last = np.int64(0)
    for k in range(8):
        last = all_equal * (k + 1) - cost * np.int64(sums >> np.uint64(8 * k) & np.uint64(255))
        best = max(best, last)
    return best, last


@inline
def most_of_approximate(scores, groups, size, words, low, width, query, target, x_drop):
    """At least the score of ``_approximate``, from eight groups to either side; −1 if these don't end the extension."""
    shift = -target % GROUP
    query, target = query + shift, target + shift
    if min(query, target) < 8 * GROUP or min(size - query, width - target) < 8 * GROUP:
        return np.int64(-1)
    place = group_place(size, query)
    before = _mismatches(groups[place - 8], _eight_groups(words, low + target - 8 * GROUP))
    behind = _mismatches(groups[place], _eight_groups(words, low + target))
    best_left, left = _best_and_last(scores, reversed_bytes(before) * _EACH)
    best_right, right = _best_and_last(scores, behind * _EACH)
    if left >= best_left - x_drop or right >= best_right - x_drop:
        return np.int64(-1)
    return best_left + best_right


@kernel
def _exact(matrix, strands, bits, low, width, query, target, x_drop):
    """Best segment base by base: query, target, length, score."""
    score, start, gain = 0, query, 0
    for back in range(1, min(query, target) + 1):
        gain += matrix[strands[query - back], base_at(bits, low + target - back)]
        if gain > 0:
            score, start, gain = score + gain, query - back, 0
        elif gain < -x_drop:
            break
    end, floor, gain = query, -x_drop, 0
    for ahead in range(min(len(strands) - query, width - target)):
        gain += matrix[strands[query + ahead], base_at(bits, low + target + ahead)]
        if gain > 0:
            score, end, gain = score + gain, query + ahead + 1, 0
            floor = max(-score, -x_drop)
        elif gain < floor:
            break
    return start, target - (query - start), end - start, score


@inline
def segment(rules, query, groups, bits, low, width, place, opposite, length, word_end, limit):
    """The segment around a hit: query, target, length, score; exact if it is short or reaches the reduced cutoff.

    rules: matrix and scores of groups. query, groups: ``laid_out_strands`` of one query, and ``group_bytes``.
    word_end: end in the target of the word, or of what it goes on to; an approximate segment reaches at least as far.
    """
    matrix, scores = rules
    if length >= SHORTEST_APPROXIMATE_WORD:
        found = _approximate(scores, groups, len(query) - 1, bits, low, width, place, opposite, word_end,
                             limit[X_DROP])
        if found[3] < limit[REDUCED]:
            return found
    return _exact(matrix, query, bits, low, width, place, opposite, limit[X_DROP])


@inline
def write_segment(row, size, numbers, minus, found, place, opposite):
    """A segment as a row of ``COLUMNS``. numbers: of query and target, and the begin of the chunk."""
    chunk = numbers[2]
    offset = size + 1 if minus else 0
    start, word = found[0] - offset, place - offset
    row[0], row[1], row[2], row[3] = numbers[0], numbers[1], chunk, MINUS if minus else PLUS
    row[4] = size - start - found[2] if minus else start
    row[5], row[6], row[7] = found[1] + chunk, found[2], found[3]
    row[8], row[9] = size - word if minus else word, opposite + chunk
