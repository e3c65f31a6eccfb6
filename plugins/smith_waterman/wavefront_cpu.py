"""The Smith–Waterman recurrence of one pair in numbers of 32 or 64 bits, for scores beyond what small lanes hold.

As many rows as a vector has lanes go along the target side by side, each one column behind the row above it, so that a
cell finds what it depends on in the lane below, computed one step before. To trace a pair, h and f are kept before
every so many rows; the rows between two such places are computed again when the alignment, followed back from its end,
comes to them. Memory grows with the length of the target times the square root of the query's.
"""

import math

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import (
    BYTE_LANES,
    LOOKUP_ENTRIES,
    choose_greater,
    greater_lanes,
    load,
    maximum,
    shift_in,
    splat,
    spread,
    store,
)
from seqloom.core.records import DELETE, INSERT, MATCH, MISMATCH

LANES = BYTE_LANES // 4
"""Rows that are done side by side."""
_PAD = LOOKUP_ENTRIES - 1
"""Code of what stands beside a target; no residue has it."""
_STEPS = 128
"""Steps whose residue scores are looked up together."""
NOT_PAIR, NOT_INSERT, INSERT_GOES_ON, DELETE_GOES_ON = 1, 2, 4, 8
"""Bits of a cell: h isn't reached by a pair of residues; h isn't reached by query residues against a gap; a gap in
query (target) residues that has come here, seen from behind, goes on: to open it here would have been worse."""
_BITS = 16
"""Of a word of cells for each kind of bits: at least as many as lanes."""


@kernel
def _look_up(table, lines, residues, first, last, scores):
    """Residue scores of steps first … last − 1, those of each step side by side; ``lines`` u8, places in the table."""
    lanes = np.uint64(LANES)
    for step in range(np.uint64(first), np.uint64(last)):
        for lane in range(lanes):
            score = table[lines[lane] + np.uint64(residues[step - lane + lanes])]
            scores[(step - np.uint64(first)) * lanes + lane] = score


@kernel
def _strips(table, places, residues, width, first, further, begin, end, h_row, f_row, scores, bits, mark, found):
    """Rows begin … end − 1 of ``width`` columns; h, f (of the row to come) and ``found`` are updated.

    What cells beside the target hold is never more than the cell before, in the last column, and what rows behind
    ``end`` hold is less than what it comes from: both can be neither the best nor a way to it.

    Args:
        table: [(residues + 1) · 32], score of each query residue with each code, and a line for no residue; the type of
            the costs and of all rows.
        residues: u1[LANES + n + LANES], codes of the columns between padding.
        h_row, f_row: [n + 1 + LANES], place j + 1 for column j.
        scores: [_STEPS · LANES], working space.
        bits: u8[strips, n + LANES] words, filled if ``mark``: of each step the cells' bits, kind by kind.
        found: i8[3], best score and its first row and column, so far.
    """
    opening, longer = splat(first, LANES), splat(further, LANES)
    floor = spread(0, opening)
    nothing = len(table) // LOOKUP_ENTRIES - 1
    lines = np.empty(LANES, np.uint64)
    one, other = np.empty(LANES, table.dtype), np.empty(LANES, table.dtype)
    for row in range(begin, end, LANES):
        for lane in range(LANES):
            lines[lane] = (places[row + lane] if row + lane < end else nothing) * LOOKUP_ENTRIES
        h = diagonal = top = where = floor
        e = f_below = floor - opening
        for block in range(0, width + LANES - 1, _STEPS):
            behind = min(block + _STEPS, width + LANES - 1)
            _look_up(table, lines, residues, block, behind, scores)
            for step in range(block, behind):
                # In the lane below stands the cell above, of the step before.
                above, f = shift_in(h, h_row[step + 1]), shift_in(f_below, f_row[step + 1])
                pair = diagonal + load(scores, (step - block) * LANES, LANES)
                diagonal = above
                open_or_pair = maximum(maximum(pair, f), floor)
                # A gap that starts behind a gap of its own direction is never the better one: h without e will do.
                h = maximum(open_or_pair, e)
                opened, e_further, f_further = h - opening, e - longer, f - longer
                if mark:
                    bits[(row - begin) // LANES, step] = (
                        greater_lanes(h, pair) | greater_lanes(h, f) << np.uint64(_BITS)
                        | greater_lanes(f_further, opened) << np.uint64(2 * _BITS)
                        | greater_lanes(e_further, opened) << np.uint64(3 * _BITS))
                e = maximum(e_further, open_or_pair - opening)
                f_below = maximum(f_further, opened)
                where = choose_greater(h, top, spread(step, where), where)
                top = maximum(top, h)
                # The last lane is done with a column that the first one has left behind.
                if step >= LANES - 1:
                    store(one, 0, h)
                    store(other, 0, f_below)
                    h_row[step - LANES + 2], f_row[step - LANES + 2] = one[LANES - 1], other[LANES - 1]
        store(one, 0, top)
        store(other, 0, where)
        for lane in range(LANES):
            if one[lane] > found[0]:
                found[0], found[1], found[2] = one[lane], row + lane, other[lane] - lane


ROW, COLUMN, GAP, SCORE, USED, SIMILAR = range(6)
"""State of an alignment that is followed back: next cell, the gap it is in, score still to be explained, runs written,
pairs of unequal residues that score above 0."""


@inline
def step(row, column, gap, score, used, similar, bits, residue_score, equal, gap_open, gap_extend, path):
    """The state of an alignment behind the cell at which it stands; ``path`` gets runs from the last to the first.

    The choice is the reference's: pair, else query residues against a gap, else target residues; gaps end when they
    can.

    residue_score, equal: of the two residues of the cell.
    """
    if (gap == INSERT and not bits & INSERT_GOES_ON) or (gap == DELETE and not bits & DELETE_GOES_ON):
        score += gap_open
        gap = 0
    if gap:
        operation = gap
    elif not bits & NOT_PAIR:
        operation = MATCH if equal else MISMATCH
    else:
        gap = operation = DELETE if bits & NOT_INSERT else INSERT
    if gap:
        score += gap_extend
    else:
        score -= residue_score
        similar += operation == MISMATCH and residue_score > 0
    if used and path[used - 1] & np.uint32(15) == np.uint32(operation):
        path[used - 1] += np.uint32(16)
    else:
        path[used] = np.uint32(16 | operation)
        used += 1
    return row - (operation != DELETE), column - (operation != INSERT), gap, score, used, similar


@kernel
def _follow(state, bits, begin, scores, places, query, target, gap_open, gap_extend, path):
    """Follow the alignment back through rows ``begin`` and later, whose cells are in ``bits``."""
    one = np.uint64(1)
    i, j, gap, score, used, similar = state[ROW], state[COLUMN], state[GAP], state[SCORE], state[USED], state[SIMILAR]
    while score > 0 and i >= begin:
        lane = (i - begin) % LANES
        word = bits[(i - begin) // LANES, j + lane] >> np.uint64(lane)
        how = (np.int64(word & one) * NOT_PAIR + np.int64(word >> np.uint64(_BITS) & one) * NOT_INSERT
               + np.int64(word >> np.uint64(2 * _BITS) & one) * INSERT_GOES_ON
               + np.int64(word >> np.uint64(3 * _BITS) & one) * DELETE_GOES_ON)
        i, j, gap, score, used, similar = step(i, j, gap, score, used, similar, how, scores[places[i], target[j]],
                                               query[i] == target[j], gap_open, gap_extend, path)
    state[ROW], state[COLUMN], state[GAP], state[SCORE], state[USED], state[SIMILAR] = i, j, gap, score, used, similar


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
    stride = _stride(query_length)
    kept = 16 * (query_length // stride + 2)
    path = 8 * min(query_length, target_length)
    return (kept + 8 * stride // LANES + 2) * (target_length + 2 * LANES) + path + 8 * query_length + (1 << 16)


def _stride(rows: int) -> int:
    """Rows between two places where h and f are kept, so that these and the bits take about equal memory."""
    return max(1, math.isqrt(2 * LANES * rows) // LANES) * LANES


def scalar_score(scores: np.ndarray, places: np.ndarray, target: np.ndarray, gap_open: int, gap_extend: int) -> int:
    """Best local score of one pair.

    Args:
        scores: i4[residues, codes].
        places: i8[m], row of ``scores`` of each query residue.
        target: u8[n].
    """
    pair = _Pair(scores, places, target, gap_open, gap_extend)
    pair.rows(0, len(places), len(target), *pair.start(), _NO_BITS)
    return int(pair.found[0])


_NO_BITS = np.empty((0, 0), np.uint64)


class _Pair:
    """One query and one target, in numbers that hold any of their scores."""

    def __init__(self, scores: np.ndarray, places: np.ndarray, target: np.ndarray, gap_open: int,
                 gap_extend: int) -> None:
        most = max(0, int(scores.max(initial=0))) * min(len(places), len(target)) + gap_open + 2 * gap_extend
        self.dtype = np.dtype(np.int32) if most < 1 << 30 and scores.min(initial=0) > -(1 << 30) else np.dtype(np.int64)
        table = np.full((len(scores) + 1, LOOKUP_ENTRIES), np.iinfo(self.dtype).min, self.dtype)
        table[:-1, : min(scores.shape[1], _PAD)] = scores[:, :_PAD]
        self.table = table.reshape(-1)
        self.residues = np.full(len(target) + 2 * LANES, _PAD, np.uint8)
        self.residues[LANES:-LANES] = target
        self.places, self.width = places, len(target)
        self.first, self.further = self.dtype.type(gap_open + gap_extend), self.dtype.type(gap_extend)
        self.scores = np.empty(_STEPS * LANES, self.dtype)
        self.found = np.array([0, -1, -1], np.int64)

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """h and f before the first row."""
        size = self.width + 1 + LANES
        return np.zeros(size, self.dtype), np.full(size, -self.first - self.further, self.dtype)

    def rows(self, begin: int, end: int, width: int, h: np.ndarray, f: np.ndarray, bits: np.ndarray) -> None:
        _strips(self.table, self.places, self.residues, width, self.first, self.further, begin, end, h, f, self.scores,
                bits, bits is not _NO_BITS, self.found)


def scalar_trace(scores: np.ndarray, places: np.ndarray, query: np.ndarray, target: np.ndarray, gap_open: int,
                 gap_extend: int) -> ScalarTrace:
    """The alignment that the reference chooses for one pair; ``query`` holds the residues of ``places``."""
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
    bits = np.empty((-(-min(stride, len(places)) // LANES), width + LANES), np.uint64)
    path = np.empty(2 * min(row, column) + 4, np.uint32)
    while state[SCORE] > 0:
        block = int(state[ROW]) // stride
        h, f = kept[block]
        pair.rows(block * stride, int(state[ROW]) + 1, width, h, f, bits)
        _follow(state, bits, block * stride, scores, places, query, target, gap_open, gap_extend, path)
    return ScalarTrace(score, int(state[ROW]) + 1, row + 1, int(state[COLUMN]) + 1, column + 1, int(state[SIMILAR]),
                       path[: state[USED]][::-1].copy())
