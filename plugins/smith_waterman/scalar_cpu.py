"""The Smith–Waterman recurrence of one pair in numbers of 32 or 64 bits, for scores beyond what small lanes hold.

Row by row, as the reference does it: what depends on the row above first, then the gap along the row, then the rest,
so that all but the gap are loops without a chain. To trace a pair, h and f are kept before every so many rows; the rows
between two such places are computed again when the alignment, followed back from its end, comes to them. Memory grows
with the length of the target times the square root of the query's.
"""

import math
from typing import NamedTuple

import numpy as np
from seqloom.core.jit import kernel
from seqloom.core.records import DELETE, INSERT, MATCH, MISMATCH
from seqloom.core.simd import LOOKUP_ENTRIES

NOT_PAIR, NOT_INSERT, INSERT_GOES_ON, DELETE_GOES_ON = 1, 2, 4, 8
"""Bits of a cell: h isn't reached by a pair of letters; h isn't reached by query letters against a gap; a gap in query
(target) letters that has come here, seen from behind, goes on: to open it here would have been worse."""


@kernel
def _rows(profile, places, width, first, further, begin, end, h, f, pair, e, bits, mark, found):
    """Rows begin…end − 1 of ``width`` columns; h and f (of the row to come) and ``found`` are updated.

    Args:
        profile: [letters, n], score of each query letter in each column; the type of the costs and of all rows.
        h, f: [n + 1], place j + 1 for column j; h[0] is 0.
        pair, e: [n + 1], working space.
        bits: u8[end − begin, n], filled if ``mark``.
        found: i8[3], best score and its first row and column, so far.
    """
    zero = first - first
    for i in range(begin, end):
        line = profile[places[i]]
        for j in range(width):
            pair[j + 1] = h[j] + line[j]
        for j in range(1, width + 1):
            h[j] = max(max(pair[j], f[j]), zero)
        # A gap that starts behind a gap of its own direction is never the better one, so h without e will do.
        gap = -first - further
        best = zero
        for j in range(1, width + 1):
            e[j] = gap
            gap = max(gap - further, h[j] - first)
        for j in range(1, width + 1):
            h[j] = max(h[j], e[j])
            best = max(best, h[j])
        if mark:
            for j in range(1, width + 1):
                opened = h[j] - first
                bits[i - begin, j - 1] = (np.uint8(h[j] != pair[j]) * NOT_PAIR | np.uint8(h[j] != f[j]) * NOT_INSERT
                                          | np.uint8(f[j] - further > opened) * INSERT_GOES_ON
                                          | np.uint8(e[j] - further > opened) * DELETE_GOES_ON)
        for j in range(1, width + 1):
            f[j] = max(f[j] - further, h[j] - first)
        if best > found[0]:
            found[0], found[1] = best, i
            for j in range(width, 0, -1):
                if h[j] == best:
                    found[2] = j - 1


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
    return (2 * _stride(query_length) + 8 * (LOOKUP_ENTRIES + 8)) * (target_length + 1) + 8 * query_length


def _stride(rows: int) -> int:
    return max(16, math.isqrt(16 * rows))


def scalar_score(scores: np.ndarray, places: np.ndarray, target: np.ndarray, gap_open: int, gap_extend: int) -> int:
    """Best local score of one pair.

    Args:
        scores: i4[letters, codes].
        places: i8[m], row of ``scores`` of each query letter.
        target: u8[n].
    """
    pair = _Pair(scores, places, target, gap_open, gap_extend)
    pair.rows(0, len(places), len(target), *pair.start(), _NO_BITS)
    return int(pair.found[0])


_NO_BITS = np.empty((0, 0), np.uint8)


class _Pair:
    """One query and one target, in numbers that hold any of their scores."""

    def __init__(self, scores: np.ndarray, places: np.ndarray, target: np.ndarray, gap_open: int,
                 gap_extend: int) -> None:
        most = max(0, int(scores.max(initial=0))) * min(len(places), len(target)) + gap_open + 2 * gap_extend
        self.dtype = np.dtype(np.int32) if most < 1 << 30 and scores.min(initial=0) > -(1 << 30) else np.dtype(np.int64)
        self.profile = scores[:, target].astype(self.dtype)
        self.places = places
        self.first, self.further = self.dtype.type(gap_open + gap_extend), self.dtype.type(gap_extend)
        self.pair, self.e = (np.empty(len(target) + 1, self.dtype) for _ in range(2))
        self.found = np.array([0, -1, -1], np.int64)

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """h and f before the first row."""
        size = len(self.pair)
        return np.zeros(size, self.dtype), np.full(size, -self.first - self.further, self.dtype)

    def rows(self, begin: int, end: int, width: int, h: np.ndarray, f: np.ndarray, bits: np.ndarray) -> None:
        _rows(self.profile, self.places, width, self.first, self.further, begin, end, h, f, self.pair, self.e, bits,
              bits is not _NO_BITS, self.found)


def scalar_trace(scores: np.ndarray, places: np.ndarray, query: np.ndarray, target: np.ndarray, gap_open: int,
                 gap_extend: int) -> ScalarTrace:
    """The alignment that the reference chooses for one pair; ``query`` holds the letters of ``places``."""
    pair, stride = _Pair(scores, places, target, gap_open, gap_extend), _stride(len(places))
    kept = []
    h, f = pair.start()
    for begin in range(0, len(places), stride):
        kept.append((h.copy(), f.copy()))
        pair.rows(begin, min(len(places), begin + stride), len(target), h, f, _NO_BITS)
    score, row, column = pair.found.tolist()
    if not score:
        return ScalarTrace(0, 0, 0, 0, 0, 0, np.empty(0, np.uint32))
    state = np.array([row, column, 0, score, 0, 0], np.int64)
    width = column + 1
    bits = np.empty((min(stride, len(places)), width), np.uint8)
    path = np.empty(2 * min(row, column) + 4, np.uint32)
    while state[SCORE] > 0:
        block = int(state[ROW]) // stride
        h, f = kept[block]
        pair.rows(block * stride, int(state[ROW]) + 1, width, h, f, bits)
        _follow(state, bits, block * stride, scores, places, query, target, gap_open, gap_extend, path)
    return ScalarTrace(score, int(state[ROW]) + 1, row + 1, int(state[COLUMN]) + 1, column + 1, int(state[SIMILAR]),
                       path[: state[USED]][::-1].copy())
