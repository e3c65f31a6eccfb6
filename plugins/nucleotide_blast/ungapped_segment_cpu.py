"""One ungapped segment on the CPU, around a word hit: the reference's rules."""

from __future__ import annotations

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
from seqloom.plugins.nucleotide_blast.packed_cpu import base_at, four_at
from seqloom.plugins.nucleotide_blast.strands import MINUS, PLUS
from seqloom.plugins.nucleotide_blast.ungapped_reference import GROUP, SHORTEST_APPROXIMATE_WORD

COLUMNS = (
    "query", "target", "chunk", "query_frame", "query_pos", "target_pos", "length", "score", "word_query",
    "word_target",
)  # fmt: skip
X_DROP, REDUCED, CUTOFF = range(3)
"""Columns of the limits of a strand."""


@inline
def _approximate(scores, groups, size, bits, low, width, query, target, word_end, x_drop):
    """Segment of whole groups of four: query, target, length, score.

    groups: of the query's strands, which have ``size`` codes; its target has ``width`` bases from ``low`` on.
    """
    shift = -target % GROUP
    query, target = query + shift, target + shift
    score, start, gain = 0, query, 0
    for group in range(1, min(query, target) // GROUP + 1):
        q, t = query - GROUP * group, target - GROUP * group
        gain += scores[groups[q] ^ four_at(bits, low + t)]
        if gain > 0:
            score, start, gain = score + gain, q, 0
        if gain < -x_drop:
            break
    end, gain = query + 1, 0
    for group in range(min(size - query, width - target) // GROUP):
        q, t = query + GROUP * group, target + GROUP * group
        gain += scores[groups[q] ^ four_at(bits, low + t)]
        if gain > 0:
            score, end, gain = score + gain, q + GROUP, 0
        if gain < -x_drop:
            break
    begin = target - (query - start)
    return start, begin, max(word_end - begin, end - start), score


@inline
def _eight_at(bits, place):
    """Eight groups from a place on, the first one highest."""
    at, word = place >> 2, np.uint64(0)
    for k in range(8):
        word = word << np.uint64(8) | np.uint64(bits[at + k])
    shift = np.uint64(2 * (place & 3))
    return word << shift | np.uint64(bits[at + 8]) >> (np.uint64(8) - shift)


@inline
def most_of_approximate(scores, groups, size, bits, low, width, query, target, x_drop):
    """At least the score of ``_approximate``, from eight groups to either side; −1 if these don't end the extension."""
    shift = -target % GROUP
    query, target = query + shift, target + shift
    if min(query, target) < 8 * GROUP or min(size - query, width - target) < 8 * GROUP:
        return np.int64(-1)
    before, behind = _eight_at(bits, low + target - 8 * GROUP), _eight_at(bits, low + target)
    left = best_left = right = best_right = np.int64(0)
    for k in range(8):
        back = np.int64(before >> np.uint64(8 * k) & np.uint64(255))
        ahead = np.int64(behind >> np.uint64(56 - 8 * k) & np.uint64(255))
        left += scores[groups[query - GROUP * (k + 1)] ^ back]
        right += scores[groups[query + GROUP * k] ^ ahead]
        best_left, best_right = max(best_left, left), max(best_right, right)
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
def segment(rules, query, groups, bits, low, width, place, opposite, length, limit):
    """The segment around a hit: query, target, length, score; exact if it is short or reaches the reduced cutoff.

    rules: matrix and scores of groups. query, groups: ``laid_out_strands`` of one query and its groups.
    """
    matrix, scores = rules
    if length >= SHORTEST_APPROXIMATE_WORD:
        found = _approximate(scores, groups, len(query) - 1, bits, low, width, place, opposite, opposite + length,
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
