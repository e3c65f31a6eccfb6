"""The Smith–Waterman recurrence of one pair in 64-bit numbers, for scores beyond what vectors of small numbers hold.

Row by row, as the reference does it. To trace a pair, h and f are kept before every so many rows; the rows between two
such places are computed again when the alignment, followed back from its end, comes to them. Memory grows with the
length of the target times the square root of the query's.
"""

import math
from typing import NamedTuple

import numpy as np
from seqloom.core.jit import kernel
from seqloom.core.records import DELETE, INSERT, MATCH, MISMATCH

NOT_PAIR, NOT_INSERT, INSERT_GOES_ON, DELETE_GOES_ON = 1, 2, 4, 8
"""Bits of a cell: h isn't reached by a pair of letters; h isn't reached by query letters against a gap; a gap in query
(target) letters that has come here, seen from behind, goes on: to open it here would have been worse."""
_NEVER = -(1 << 60)


@kernel
def _rows(scores, places, target, first, further, begin, end, h, f, bits, mark, found):
    """Rows begin…end − 1; h and f (for the row to come) are updated, ``found`` (score, row, column) too.

    bits: u8[end − begin, n], filled if ``mark``.
    """
    score, row, column = found[0], found[1], found[2]
    for i in range(begin, end):
        line = scores[places[i]]
        diagonal = 0
        e = _NEVER
        for j in range(len(h)):
            pair = diagonal + line[target[j]]
            diagonal = h[j]
            gap = f[j]
            best = max(max(pair, gap), max(e, 0))
            opened = best - first
            longer = e - further
            higher = gap - further
            if mark:
                bits[i - begin, j] = ((best != pair) * NOT_PAIR + (best != gap) * NOT_INSERT
                                      + (higher > opened) * INSERT_GOES_ON + (longer > opened) * DELETE_GOES_ON)
            h[j] = best
            e = max(longer, opened)
            f[j] = max(higher, opened)
            if best > score:
                score, row, column = best, i, j
    found[0], found[1], found[2] = score, row, column


ROW, COLUMN, GAP, SCORE, USED, SIMILAR = range(6)
"""State of an alignment that is followed back: next cell, the gap it is in, score still to be explained, runs written,
pairs of unequal letters that score above 0."""


@kernel
def step(state, bits, scores, place, query_letter, target_letter, gap_open, gap_extend, path):
    """Follow the alignment through the cell at which it stands; ``path`` gets runs from the last to the first.

    The choice is the reference's: pair, else query letters against a gap, else target letters; gaps end when they can.
    """
    gap = state[GAP]
    if (gap == INSERT and not bits & INSERT_GOES_ON) or (gap == DELETE and not bits & DELETE_GOES_ON):
        state[SCORE] += gap_open
        gap = 0
    if gap:
        operation = gap
    elif not bits & NOT_PAIR:
        operation = MATCH if query_letter == target_letter else MISMATCH
    else:
        gap = operation = DELETE if bits & NOT_INSERT else INSERT
    state[GAP] = gap
    if gap:
        state[SCORE] += gap_extend
    else:
        score = scores[place, target_letter]
        state[SCORE] -= score
        state[SIMILAR] += operation == MISMATCH and score > 0
    state[ROW] -= operation != DELETE
    state[COLUMN] -= operation != INSERT
    used = state[USED]
    if used and path[used - 1] & np.uint32(15) == np.uint32(operation):
        path[used - 1] += np.uint32(16)
    else:
        path[used] = np.uint32(16 | operation)
        state[USED] = used + 1


@kernel
def _follow(state, bits, begin, scores, places, query, target, gap_open, gap_extend, path):
    """Follow the alignment back through rows ``begin`` and later, whose cells are in ``bits``."""
    while state[SCORE] > 0 and state[ROW] >= begin:
        i, j = state[ROW], state[COLUMN]
        step(state, bits[i - begin, j], scores, places[i], query[i], target[j], gap_open, gap_extend, path)


class ScalarTrace(NamedTuple):
    """An alignment: score, where it starts and ends (0-based half-open), its similar unequal pairs, u4 path."""

    score: int
    query_start: int
    query_end: int
    target_start: int
    target_end: int
    similar: int
    path: np.ndarray


def scalar_bytes(query_length: int, target_length: int) -> int:
    """Host memory that ``scalar_trace`` takes at most."""
    return 2 * _stride(query_length) * target_length + 64 * target_length + 8 * query_length


def _stride(rows: int) -> int:
    return max(16, math.isqrt(16 * rows))


def scalar_score(scores: np.ndarray, places: np.ndarray, target: np.ndarray, gap_open: int, gap_extend: int) -> int:
    """Best local score of one pair.

    Args:
        scores: i4[letters, codes].
        places: i8[m], row of ``scores`` of each query letter.
        target: u8[n].
    """
    found = np.array([0, -1, -1], np.int64)
    h, f = np.zeros(len(target), np.int64), np.full(len(target), _NEVER, np.int64)
    _rows(scores, places, target, gap_open + gap_extend, gap_extend, 0, len(places), h, f, np.empty((0, 0), np.uint8),
          False, found)
    return int(found[0])


def scalar_trace(scores: np.ndarray, places: np.ndarray, query: np.ndarray, target: np.ndarray, gap_open: int,
                 gap_extend: int) -> ScalarTrace:
    """The alignment that the reference chooses for one pair; ``query`` holds the letters of ``places``."""
    first, stride = gap_open + gap_extend, _stride(len(places))
    kept, found = [], np.array([0, -1, -1], np.int64)
    h, f = np.zeros(len(target), np.int64), np.full(len(target), _NEVER, np.int64)
    bits = np.empty((0, 0), np.uint8)
    for begin in range(0, len(places), stride):
        kept.append((h.copy(), f.copy()))
        _rows(scores, places, target, first, gap_extend, begin, min(len(places), begin + stride), h, f, bits, False,
              found)
    score, row, column = found.tolist()
    if not score:
        return ScalarTrace(0, 0, 0, 0, 0, 0, np.empty(0, np.uint32))
    state = np.array([row, column, 0, score, 0, 0], np.int64)
    width = column + 1
    bits = np.empty((min(stride, len(places)), width), np.uint8)
    path = np.empty(2 * min(row, column) + 4, np.uint32)
    while state[SCORE] > 0:
        block = int(state[ROW]) // stride
        h, f = kept[block]
        _rows(scores, places, target[:width], first, gap_extend, block * stride, int(state[ROW]) + 1, h[:width],
              f[:width], bits, True, found)
        _follow(state, bits, block * stride, scores, places, query, target, gap_open, gap_extend, path)
    return ScalarTrace(score, int(state[ROW]) + 1, row + 1, int(state[COLUMN]) + 1, column + 1, int(state[SIMILAR]),
                       path[: state[USED]][::-1].copy())
