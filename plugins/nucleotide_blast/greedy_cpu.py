"""Greedy alignment on the CPU: the rules of ``greedy``, eight bases at a time along runs of equal ones.

A sequence comes twice: as bytes, and as overlapping words of eight bytes, one from every place on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import highest_bit, lowest_bit
from seqloom.plugins.nucleotide_blast.greedy import DELETE, INSERT, PAIR

ABSENT = -2
EDGE = 2
(QUERY, TARGET, DIFFERENCES, RUN_QUERY, RUN_TARGET, RUN_LENGTH, _DIAGONAL) = range(7)
"""What is known of a one-sided extension."""
DONE, MORE_CELLS, MORE_ROWS = range(3)


class Sequence(NamedTuple):
    """u1[n] bases, in which ambiguities differ from everything in the other, and u8[n - 7] words of them."""

    bases: np.ndarray
    words: np.ndarray


def sequence(bases: np.ndarray) -> Sequence:
    """Of u1[n] ``bases``, which are padded where there are less than eight."""
    bases = np.ascontiguousarray(bases)
    if len(bases) < 8:
        bases = np.concatenate([bases, np.full(8 - len(bases), 0xFD, np.uint8)])
    return Sequence(bases, np.ndarray((len(bases) - 7,), np.uint64, bases.data, 0, (1,)))


class Rows(NamedTuple):
    """Target offsets by diagonal, one row for each distance.

    cells: i4; beside those of a row there are ``EDGE`` more that are absent. rows: i8[d, 4]: place of the first cell,
    its diagonal, diagonal of the last one, best score so far.
    """

    cells: np.ndarray
    rows: np.ndarray


def rows_room(cells: int, rows: int) -> Rows:
    return Rows(np.empty(cells, np.int32), np.empty((rows, 4), np.int64))


@inline
def _equal_ahead(query, i, target, j, most):
    """How many bases from i and j on are equal."""
    count = np.int64(0)
    while count + 8 <= most:
        differing = query.words[i + count] ^ target.words[j + count]
        if differing:
            return count + np.int64(lowest_bit(differing) >> np.uint64(3))
        count += 8
    while count < most and query.bases[i + count] == target.bases[j + count]:
        count += 1
    return count


@inline
def _equal_back(query, i, target, j, most):
    """How many bases before i and j are equal."""
    count = np.int64(0)
    while count + 8 <= most:
        differing = query.words[i - count - 8] ^ target.words[j - count - 8]
        if differing:
            return count + 7 - np.int64(highest_bit(differing) >> np.uint64(3))
        count += 8
    while count < most and query.bases[i - count - 1] == target.bases[j - count - 1]:
        count += 1
    return count


@inline
def _equal(query, q, i, target, t, j, most, back):
    if back:
        return _equal_back(query, q - i, target, t - j, most)
    return _equal_ahead(query, q + i, target, t + j, most)


@inline
def _cell(rows, distance, diagonal):
    """Target offset of a diagonal at a distance."""
    first = rows.rows[distance, 1]
    if diagonal < first or diagonal > rows.rows[distance, 2]:
        return np.int64(ABSENT)
    return np.int64(rows.cells[rows.rows[distance, 0] + diagonal - first])


@kernel
def extend(query, q, size, target, t, width, back, match, mismatch, x_drop, rows, found):
    """``greedy.extend`` from a point, ahead or back, over ``size`` and ``width`` bases at most; fills ``found``.

    Returns DONE, or what there is too little of.
    """
    reach = _equal(query, q, 0, target, t, 0, min(size, width), back)
    found[QUERY] = found[TARGET] = found[RUN_LENGTH] = reach
    found[DIFFERENCES] = found[RUN_QUERY] = found[RUN_TARGET] = found[_DIAGONAL] = 0
    if reach == min(size, width):
        return DONE
    cells, table = rows.cells, rows.rows
    half, cost = match // 2, match + mismatch
    look_back = (x_drop + half) // cost + 1
    cells[: 2 * EDGE + 1] = ABSENT
    cells[EDGE] = reach
    table[0, 0], table[0, 1], table[0, 2], table[0, 3] = EDGE, 0, 0, reach * match
    used, lower, upper, distance = 2 * EDGE + 1, -1, 1, 0
    run_length, run_query, run_target = reach, np.int64(0), np.int64(0)
    query_ended = target_ended = False
    while lower <= upper:
        distance += 1
        if distance >= len(table):
            return MORE_ROWS
        if used + upper - lower + 1 + 2 * EDGE > len(cells):
            return MORE_CELLS
        behind = table[distance - 1, 0] - table[distance - 1, 1]  # place of the cell of diagonal 0
        for edge in (lower - 1, lower, upper, upper + 1):
            cells[behind + edge] = ABSENT
        before = table[distance - look_back, 3] if distance >= look_back else np.int64(0)
        floor = max(0, -(-(before + cost * distance - x_drop) // half))
        first, last = lower, upper
        here = used + EDGE - first
        cells[used : used + EDGE] = ABSENT
        furthest = furthest_j = np.int64(0)
        furthest_diagonal = 0
        below, same = np.int64(cells[behind + first - 1]), np.int64(cells[behind + first])
        for diagonal in range(first, last + 1):
            above = np.int64(cells[behind + diagonal + 1])
            j = max(max(same, above) + 1, below)
            below, same = same, above
            i = j + diagonal
            if j < 0 or i + j < floor:
                cells[here + diagonal] = ABSENT
                if diagonal == lower:
                    lower += 1
                continue
            upper = diagonal
            length = _equal(query, q, i, target, t, j, min(size - i, width - j), back)
            if length > run_length:
                run_query, run_target, run_length = i, j, length
            i, j = i + length, j + length
            cells[here + diagonal] = j
            if i + j > furthest:
                furthest, furthest_j, furthest_diagonal = i + j, j, diagonal
            if j == width:
                lower, target_ended = diagonal + 1, True
            if i == size:
                upper, query_ended = diagonal - 1, True
        cells[here + last + 1 : here + last + 1 + EDGE] = ABSENT
        table[distance, 0], table[distance, 1], table[distance, 2] = used + EDGE, first, last
        used += last - first + 1 + 2 * EDGE
        score, best = furthest * half - distance * cost, table[distance - 1, 3]
        if score >= best:
            found[QUERY], found[TARGET] = furthest_j + furthest_diagonal, furthest_j
            found[DIFFERENCES], found[_DIAGONAL] = distance, furthest_diagonal
        table[distance, 3] = max(score, best)
        if lower > upper:
            break
        lower -= not target_ended
        upper += not query_ended
    found[RUN_QUERY], found[RUN_TARGET], found[RUN_LENGTH] = run_query, run_target, run_length
    return DONE


@kernel
def _append(script, count, operation, length):
    """Add a run to i4[n, 2] ``script``; returns the number of runs."""
    if length <= 0:
        return count
    if count and script[count - 1, 0] == operation:
        script[count - 1, 1] += length
        return count
    script[count, 0], script[count, 1] = operation, length
    return count + 1


@kernel
def script_of(rows, found, script):
    """Write the edit script of an extension, from its end back to its start; returns the number of runs."""
    count, distance, diagonal, target = 0, found[DIFFERENCES], found[_DIAGONAL], found[TARGET]
    while distance:
        below = _cell(rows, distance - 1, diagonal - 1)
        same, above = _cell(rows, distance - 1, diagonal), _cell(rows, distance - 1, diagonal + 1)
        if below > max(same, above):
            pairs, operation, step, before = target - below, INSERT, -1, below
        elif same > above:
            pairs, operation, step, before = target - same, PAIR, 0, same
        else:
            pairs, operation, step, before = target - above - 1, DELETE, 1, above
        count = _append(script, count, PAIR, pairs)
        if operation != PAIR:
            count = _append(script, count, operation, 1)
        diagonal, target, distance = diagonal + step, before, distance - 1
    return _append(script, count, PAIR, target)


@kernel
def anchor(q, t, left, right):
    """Middle of the longest run of matches on either side, as far as it lies within the alignment."""
    half_right = half_left = np.int64(0)
    ahead_q = ahead_t = back_q = back_t = np.int64(0)
    if right[RUN_QUERY] < right[QUERY] and right[RUN_TARGET] < right[TARGET]:
        room = min(right[QUERY] - right[RUN_QUERY], right[TARGET] - right[RUN_TARGET], right[RUN_LENGTH])
        half_right, ahead_q, ahead_t = room // 2, right[RUN_QUERY], right[RUN_TARGET]
    if left[RUN_QUERY] < left[QUERY] and left[RUN_TARGET] < left[TARGET]:
        room = min(left[QUERY] - left[RUN_QUERY], left[TARGET] - left[RUN_TARGET], left[RUN_LENGTH])
        half_left, back_q, back_t = room // 2, left[RUN_QUERY], left[RUN_TARGET]
    if half_right > half_left:
        return q + ahead_q + half_right, t + ahead_t + half_right
    return q - back_q - half_left, t - back_t - half_left
