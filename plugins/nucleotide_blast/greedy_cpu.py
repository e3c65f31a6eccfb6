"""Greedy alignment on the CPU: the rules of ``greedy``, a vector of diagonals at a time.

Four bases of every diagonal are compared at once; where all are equal, that diagonal goes on by itself, eight bases at
a time. A sequence comes twice: as bytes, and as overlapping words of eight bytes, one from every place on.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import (
    BYTE_LANES,
    choose_greater,
    greater_lanes,
    highest,
    highest_bit,
    load,
    lowest_bit,
    maximum,
    minimum,
    spread,
    store,
    words_at,
    wrapped_difference,
    wrapped_sum,
)
from seqloom.plugins.common.culling_cpu import QUERY_END, QUERY_START, SCORE, TARGET_END, TARGET_START
from seqloom.plugins.nucleotide_blast.greedy import DELETE, INSERT, PAIR

ABSENT = -2
EDGE = 2
(QUERY, TARGET, DIFFERENCES, RUN_QUERY, RUN_TARGET, RUN_LENGTH, _DIAGONAL) = range(7)
"""What is known of a one-sided extension."""
DONE, MORE_CELLS, MORE_ROWS = range(3)
LANES, WORD = BYTE_LANES // 4, 4
"""Diagonals of a vector, and bases that are compared at once."""
_NUMBERS, _UNSIGNED = np.arange(LANES, dtype=np.int32), np.zeros(LANES, np.uint32)
_ONE, _ALL = np.uint64(1), np.uint64((1 << LANES) - 1)


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
def equal_ahead(query, i, target, j, most):
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
    return equal_ahead(query, q + i, target, t + j, most)


@inline
def _cell(rows, distance, diagonal):
    """Target offset of a diagonal at a distance."""
    first = rows.rows[distance, 1]
    if diagonal < first or diagonal > rows.rows[distance, 2]:
        return np.int64(ABSENT)
    return np.int64(rows.cells[rows.rows[distance, 0] + diagonal - first])


@inline
def _row(query, q, size, target, t, width, back, cells, before, here, first, last, floor, run):
    """Cells of a distance, of diagonals ``first`` … ``last``; returns its first and last diagonal that is alive, the
    furthest antidiagonal, whether a sequence has ended, and the longest run: length and begin in query and target.

    before, here: where the cell of diagonal 0 would stand of the distance before and of this one. run: the longest so
    far.
    """
    numbers = load(_NUMBERS, 0, LANES)
    nothing, one = spread(0, numbers), spread(1, numbers)
    sizes, widths, floors, absent = (spread(size, numbers), spread(width, numbers), spread(floor, numbers),
                                     spread(ABSENT, numbers))
    # ~i is -i - 1: the word before i ends there.
    turned = spread(-1 if back else 0, numbers)
    q_places, t_places = (spread(q - 3 if back else q, numbers), spread(t - 3 if back else t, numbers))
    q_last, t_last = spread(len(query.bases) - WORD, numbers), spread(len(target.bases) - WORD, numbers)
    words = load(_UNSIGNED, 0, LANES)
    none = spread(0, words)
    mask_1 = spread(0xFF000000 if back else 0xFF, words)
    mask_2 = spread(0xFFFF0000 if back else 0xFFFF, words)
    mask_3 = spread(0xFFFFFF00 if back else 0xFFFFFF, words)
    low, high = last + 1, last
    ended = False
    run_length, run_query, run_target = run
    furthest = np.int64(0)
    sums = nothing
    for place in range(first, last + 1, LANES):
        diagonals = wrapped_sum(numbers, spread(place, numbers))
        same, above = load(cells, before + place, LANES), load(cells, before + place + 1, LANES)
        below = load(cells, before + place - 1, LANES)
        j = maximum(wrapped_sum(maximum(same, above), one), below)
        i = wrapped_sum(j, diagonals)
        # Not negative in the lanes that are alive.
        alive = minimum(minimum(wrapped_difference(wrapped_sum(i, j), floors), j),
                        wrapped_difference(spread(last, numbers), diagonals))
        room = minimum(wrapped_difference(sizes, i), wrapped_difference(widths, j))
        q_at = minimum(maximum(wrapped_sum(i ^ turned, q_places), nothing), q_last)
        t_at = minimum(maximum(wrapped_sum(j ^ turned, t_places), nothing), t_last)
        differing = words_at(query.bases, q_at) ^ words_at(target.bases, t_at)
        equal = wrapped_sum(
            wrapped_sum(choose_greater(differing & mask_1, none, nothing, one),
                        choose_greater(differing & mask_2, none, nothing, one)),
            wrapped_sum(choose_greater(differing & mask_3, none, nothing, one),
                        choose_greater(differing, none, nothing, one)))
        # Where all are equal there may be more of them; near the ends the words are others, and nothing is known.
        open_lanes = greater_lanes(equal, spread(min(run_length, WORD - 1), numbers)) | greater_lanes(
            spread(WORD, numbers), room)
        equal = choose_greater(spread(WORD, numbers), room, nothing, equal)
        reached = wrapped_sum(j, equal)
        dead = greater_lanes(nothing, alive)
        sums = maximum(sums, choose_greater(nothing, alive, nothing, wrapped_sum(wrapped_sum(i, equal), reached)))
        store(cells, here + place, choose_greater(nothing, alive, absent, reached))
        living = ~dead & _ALL
        if living:
            low = min(low, place + np.int64(lowest_bit(living)))
            high = place + np.int64(highest_bit(living))
        open_lanes &= living
        while open_lanes:
            lane = np.int64(lowest_bit(open_lanes))
            open_lanes &= open_lanes - _ONE
            diagonal = place + lane
            known = np.int64(cells[here + diagonal])
            most = min(size - known - diagonal, width - known)
            end = known + _equal(query, q, known + diagonal, target, t, known, most, back)
            cells[here + diagonal] = end
            furthest = max(furthest, 2 * end + diagonal)
            ended = ended or end == width or end + diagonal == size
            # The cell began where its diagonal, or a neighbour's, was left.
            begin = max(max(np.int64(cells[before + diagonal]), np.int64(cells[before + diagonal + 1])) + 1,
                        np.int64(cells[before + diagonal - 1]))
            if end - begin > run_length:
                run_length, run_query, run_target = end - begin, begin + diagonal, begin
    return low, high, max(furthest, np.int64(highest(sums))), ended, (run_length, run_query, run_target)


@kernel
def extend(query, q, size, target, t, width, back, match, mismatch, x_drop, with_run, rows, found):
    """``greedy.extend`` from a point, ahead or back, over ``size`` and ``width`` bases at most; fills ``found``.

    Returns DONE, or what there is too little of.

    with_run: whether the longest run is wanted. The extension ends where nothing can reach the best score again, nor
    give a longer run.
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
    run = reach, np.int64(0), np.int64(0)
    query_ended = target_ended = False
    while lower <= upper:
        distance += 1
        if distance >= len(table):
            return MORE_ROWS
        if used + upper - lower + 1 + 2 * EDGE + LANES > len(cells):
            return MORE_CELLS
        behind = table[distance - 1, 0] - table[distance - 1, 1]  # place of the cell of diagonal 0
        for edge in (lower - 1, lower, upper, upper + 1):
            cells[behind + edge] = ABSENT
        before = table[distance - look_back, 3] if distance >= look_back else np.int64(0)
        floor = max(0, -(-(before + cost * distance - x_drop) // half))
        first, last = lower, upper
        here = used + EDGE - first
        cells[used : used + EDGE] = ABSENT
        lower, upper, furthest, ended, run = _row(query, q, size, target, t, width, back, cells, behind, here, first,
                                                  last, floor, run)
        cells[here + last + 1 : here + last + 1 + EDGE] = ABSENT
        if ended:
            lower, upper, target_ended, query_ended = _narrowed(cells, here, first, last, size, width, target_ended,
                                                                query_ended)
        table[distance, 0], table[distance, 1], table[distance, 2] = used + EDGE, first, last
        used += last - first + 1 + 2 * EDGE
        score, best = furthest * half - distance * cost, table[distance - 1, 3]
        if score >= best:
            diagonal = first
            while cells[here + diagonal] < 0 or 2 * cells[here + diagonal] + diagonal != furthest:
                diagonal += 1
            found[QUERY], found[TARGET] = cells[here + diagonal] + diagonal, cells[here + diagonal]
            found[DIFFERENCES], found[_DIAGONAL] = distance, diagonal
            best = score
        table[distance, 3] = best
        if lower > upper:
            break
        lower -= not target_ended
        upper += not query_ended
        # One more difference costs more than the diagonal beside can reach further.
        diagonal = min(max(size - width, lower), upper)
        if min(2 * size - diagonal, 2 * width + diagonal) * half - (distance + 1) * cost < best:
            if not with_run:
                break
            # From the floor on there may be no longer run either.
            before = table[distance + 1 - look_back, 3] if distance + 1 >= look_back else np.int64(0)
            floor = -(-(before + cost * (distance + 1) - x_drop) // half)
            if 2 * run[0] >= min(2 * size - floor - lower, 2 * width - floor + upper):
                break
    found[RUN_LENGTH], found[RUN_QUERY], found[RUN_TARGET] = run
    return DONE


@inline
def _narrowed(cells, here, first, last, size, width, target_ended, query_ended):
    """First and last diagonal that go on, where alignments of some have ended, and whether either sequence has."""
    lower, upper = first, last
    for diagonal in range(first, last + 1):
        j = np.int64(cells[here + diagonal])
        if j < 0:
            lower += diagonal == lower
            continue
        upper = diagonal
        if j == width:
            lower, target_ended = diagonal + 1, True
        if j + diagonal == size:
            upper, query_ended = diagonal - 1, True
    return lower, upper, target_ended, query_ended


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


@inline
def write_ends(q, t, left, right, reward, penalty, hsp):
    """Score and ends of the alignment whose sides, from (q, t) on, are as ``extend`` fills them."""
    bases = np.int64(left[QUERY]) + left[TARGET] + right[QUERY] + right[TARGET]
    differences = np.int64(left[DIFFERENCES]) + right[DIFFERENCES]
    hsp[SCORE] = bases * reward // 2 - differences * (reward - penalty)
    hsp[QUERY_START], hsp[QUERY_END] = q - left[QUERY], q + right[QUERY]
    hsp[TARGET_START], hsp[TARGET_END] = t - left[TARGET], t + right[TARGET]


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
