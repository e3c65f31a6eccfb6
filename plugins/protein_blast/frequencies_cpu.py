"""``target_frequencies`` in kernels, of as many pairs of compositions at a time as a vector has lanes.

A pair has a lane of its own in all that is computed; one that is done leaves it to the next. Where ``composition``
solves a system of 40 equations for each step of Newton's method, these are eliminated in order here: those of the rows
first, each of which has one sum of a row alone, then those of the columns and that of the entropy. All are scaled by
what the inverse of a frequency's curvature is divided by, so that the frequencies are coefficients as they are.
"""

import math

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import aligned, greater_lanes, load, maximum, minimum, splat, store
from seqloom.plugins.common.logarithm_cpu import LANES, logarithms
from seqloom.plugins.protein_blast.composition import (
    MOST_STEPS,
    PLACES,
    RELATIVE_ENTROPY,
    TO_BOUNDARY,
    TOLERANCE,
)

SIZE = len(PLACES)
_ENTROPY, _LACK = SIZE, SIZE + 1
_WIDTH = SIZE + 2
"""Numbers in a row of equations: multipliers of columns, that of the entropy, and what is lacking."""
_EQUATIONS = 2 * SIZE + 1
"""Rows of frequencies, of which the first needs no equation, and what the others leave of 21 equations."""
_ROW = _WIDTH * LANES
_ALL = np.uint64((1 << LANES) - 1)
_NOBODY = -1


class NewtonRoom(NamedTuple):
    """Arrays to work in; numbers are as many as a vector has lanes, side by side.

    Attributes:
        equations: f8[41 · 22] numbers, rows of equations, of which the first 20 are frequencies and sums of them.
        scores, slopes: f8[400] numbers, logarithms of the frequencies or what they are over chance; how far each goes.
        inverse: f8[41] numbers, of the pivots.
        by_row: f8[7, 20] numbers, what is known of rows.
        by_column: f8[7, 21] numbers, what is known of columns.
        of_entropy, norms: f8[1] number.
        owners, steps: i8[l], which pair has a lane, and the steps that it has made.
    """

    equations: np.ndarray
    scores: np.ndarray
    slopes: np.ndarray
    inverse: np.ndarray
    by_row: np.ndarray
    by_column: np.ndarray
    of_entropy: np.ndarray
    norms: np.ndarray
    owners: np.ndarray
    steps: np.ndarray

    @classmethod
    def of(cls) -> "NewtonRoom":
        """With numbers in it that lanes without a pair may compute with."""
        equations = aligned(_EQUATIONS * _ROW, np.float64)
        scores, slopes = (aligned(SIZE * SIZE * LANES, np.float64) for _ in range(2))
        by_row, by_column = np.zeros((7, SIZE * LANES)), np.zeros((7, (SIZE + 1) * LANES))
        equations[:], slopes[:] = 1 / SIZE**2, 0
        by_row[0], by_column[0] = 1 / SIZE, 1 / SIZE
        by_row[1], by_column[1] = -math.log(SIZE), -math.log(SIZE)
        return cls(equations, scores, slopes, aligned(_EQUATIONS * LANES, np.float64),
                   by_row, by_column, np.zeros(LANES), np.empty(LANES), np.full(LANES, _NOBODY),
                   np.zeros(LANES, np.int64))


@kernel
def _take_lane(room, lane, pair, joint, rows, columns):
    """Begin with a pair, whose margins are ``rows`` and ``columns``, in a lane."""
    margins, logarithms_of = room.by_row[0], room.by_row[1]
    of_margins, of_logarithms = room.by_column[0], room.by_column[1]
    room.owners[lane], room.steps[lane], room.of_entropy[lane] = pair, 0, 0.0
    for i in range(SIZE):
        margins[i * LANES + lane], of_margins[i * LANES + lane] = rows[i], columns[i]
        logarithms_of[i * LANES + lane], of_logarithms[i * LANES + lane] = math.log(rows[i]), math.log(columns[i])
        room.by_row[2, i * LANES + lane] = room.by_column[2, i * LANES + lane] = 0.0
        for j in range(SIZE):
            room.equations[i * _ROW + j * LANES + lane] = joint[i * SIZE + j]
            room.slopes[(i * SIZE + j) * LANES + lane] = 0.0


@inline
def _tilt(room, of_joint, k, share, by_row, by_column, of_row, of_column, multiplier, one):
    """Of a frequency (``share``) its score, kept, and one more than that, and its slope, kept."""
    scores, slopes = room.scores, room.slopes
    logarithm = load(scores, k * LANES, LANES)
    score = logarithm - by_row - by_column
    bent = score + one
    slope = of_column + of_row + multiplier * bent - (logarithm - splat(of_joint[k], LANES) + one)
    store(scores, k * LANES, score)
    store(slopes, k * LANES, slope)
    return bent, slope, share * bent, share * slope


@kernel
def _look(room, of_joint):
    """Scores and slopes of all frequencies, and their sums; ``norms`` squared of what is lacking."""
    equations, of_entropy, by_row, by_column = room.equations, room.of_entropy, room.by_row, room.by_column
    rows, by_rows, of_rows, in_rows, bent_rows, pulled_rows, _ = by_row
    columns, by_columns, of_columns, in_columns, bent_columns, pulled_columns, _ = by_column
    zero, one = splat(0.0, LANES), splat(1.0, LANES)
    multiplier = load(of_entropy, 0, LANES)
    in_rows[:], bent_rows[:], pulled_rows[:] = 0.0, 0.0, 0.0
    squares = bent_entropy = pulled_entropy = everything = entropy = zero
    for j in range(0, SIZE, 2):
        by_first, by_second = load(by_columns, j * LANES, LANES), load(by_columns, (j + 1) * LANES, LANES)
        of_first, of_second = load(of_columns, j * LANES, LANES), load(of_columns, (j + 1) * LANES, LANES)
        first_sum = second_sum = first_bent_sum = second_bent_sum = first_pulled_sum = second_pulled_sum = zero
        for i in range(SIZE):
            by, of, k = load(by_rows, i * LANES, LANES), load(of_rows, i * LANES, LANES), i * SIZE + j
            first = load(equations, i * _ROW + j * LANES, LANES)
            second = load(equations, i * _ROW + (j + 1) * LANES, LANES)
            bend, slope, first_bent, first_pulled = _tilt(room, of_joint, k, first, by, by_first, of, of_first,
                                                          multiplier, one)
            squares = squares + slope * slope
            bent_entropy, pulled_entropy = bent_entropy + first_bent * bend, pulled_entropy + first_bent * slope
            bend, slope, second_bent, second_pulled = _tilt(room, of_joint, k + 1, second, by, by_second, of, of_second,
                                                            multiplier, one)
            squares = squares + slope * slope
            bent_entropy, pulled_entropy = bent_entropy + second_bent * bend, pulled_entropy + second_bent * slope
            first_sum, second_sum = first_sum + first, second_sum + second
            first_bent_sum, second_bent_sum = first_bent_sum + first_bent, second_bent_sum + second_bent
            first_pulled_sum, second_pulled_sum = first_pulled_sum + first_pulled, second_pulled_sum + second_pulled
            store(in_rows, i * LANES, load(in_rows, i * LANES, LANES) + (first + second))
            store(bent_rows, i * LANES, load(bent_rows, i * LANES, LANES) + (first_bent + second_bent))
            store(pulled_rows, i * LANES, load(pulled_rows, i * LANES, LANES) + (first_pulled + second_pulled))
        store(in_columns, j * LANES, first_sum)
        store(in_columns, (j + 1) * LANES, second_sum)
        store(bent_columns, j * LANES, first_bent_sum)
        store(bent_columns, (j + 1) * LANES, second_bent_sum)
        store(pulled_columns, j * LANES, first_pulled_sum)
        store(pulled_columns, (j + 1) * LANES, second_pulled_sum)
        everything = everything + (first_sum + second_sum)
        entropy = entropy + (first_bent_sum + second_bent_sum)
    lack_entropy = splat(RELATIVE_ENTROPY, LANES) - (entropy - everything)
    norm = lack_entropy * lack_entropy + squares
    for j in range(SIZE):
        lack = load(columns, j * LANES, LANES) - load(in_columns, j * LANES, LANES)
        norm = norm + lack * lack
        if j:
            lack = load(rows, j * LANES, LANES) - load(in_rows, j * LANES, LANES)
            norm = norm + lack * lack
    store(room.norms, 0, norm)
    # What the equations have beside the frequencies, and those of the columns and of the entropy to begin with.
    scale = one - multiplier
    for i in range(1, SIZE):
        lack = load(rows, i * LANES, LANES) - load(in_rows, i * LANES, LANES)
        store(equations, i * _ROW + _ENTROPY * LANES, load(bent_rows, i * LANES, LANES))
        store(equations, i * _ROW + _LACK * LANES, scale * lack - load(pulled_rows, i * LANES, LANES))
    equations[SIZE * _ROW :] = 0.0
    for j in range(SIZE):
        row, within = (SIZE + j) * _ROW, load(in_columns, j * LANES, LANES)
        lack = load(columns, j * LANES, LANES) - within
        store(equations, row + j * LANES, within)
        store(equations, row + _ENTROPY * LANES, load(bent_columns, j * LANES, LANES))
        store(equations, row + _LACK * LANES, scale * lack - load(pulled_columns, j * LANES, LANES))
    row = (SIZE + _ENTROPY) * _ROW
    store(equations, row + _ENTROPY * LANES, bent_entropy)
    store(equations, row + _LACK * LANES, scale * lack_entropy - pulled_entropy)


@kernel
def _eliminate_four(equations, inverse, j, k):
    """Equations j and j + 1 of the columns, of which columns k … k + 3, less those before j."""
    row = (SIZE + j) * _ROW + k * LANES
    a, b, c, d = (load(equations, row, LANES), load(equations, row + LANES, LANES),
                  load(equations, row + 2 * LANES, LANES), load(equations, row + 3 * LANES, LANES))
    row += _ROW
    e, f, g, h = (load(equations, row, LANES), load(equations, row + LANES, LANES),
                  load(equations, row + 2 * LANES, LANES), load(equations, row + 3 * LANES, LANES))
    for other in range(1, SIZE + j):
        per, place = load(inverse, other * LANES, LANES), other * _ROW
        first = load(equations, place + j * LANES, LANES) * per
        second = load(equations, place + (j + 1) * LANES, LANES) * per
        place += k * LANES
        one, two = load(equations, place, LANES), load(equations, place + LANES, LANES)
        three, four = load(equations, place + 2 * LANES, LANES), load(equations, place + 3 * LANES, LANES)
        a, b, c, d = a - first * one, b - first * two, c - first * three, d - first * four
        e, f, g, h = e - second * one, f - second * two, g - second * three, h - second * four
    store(equations, row, e)
    store(equations, row + LANES, f)
    store(equations, row + 2 * LANES, g)
    store(equations, row + 3 * LANES, h)
    row -= _ROW
    store(equations, row, a)
    store(equations, row + LANES, b)
    store(equations, row + 2 * LANES, c)
    store(equations, row + 3 * LANES, d)


@kernel
def _eliminate_two(equations, inverse, j, k):
    """As ``_eliminate_four``, of columns k and k + 1."""
    row = (SIZE + j) * _ROW + k * LANES
    a, b = load(equations, row, LANES), load(equations, row + LANES, LANES)
    c, d = load(equations, row + _ROW, LANES), load(equations, row + _ROW + LANES, LANES)
    for other in range(1, SIZE + j):
        per, place = load(inverse, other * LANES, LANES), other * _ROW
        first = load(equations, place + j * LANES, LANES) * per
        second = load(equations, place + (j + 1) * LANES, LANES) * per
        one, two = load(equations, place + k * LANES, LANES), load(equations, place + (k + 1) * LANES, LANES)
        a, b, c, d = a - first * one, b - first * two, c - second * one, d - second * two
    store(equations, row, a)
    store(equations, row + LANES, b)
    store(equations, row + _ROW, c)
    store(equations, row + _ROW + LANES, d)


@kernel
def _solve(room):
    """Where the multipliers go; which lanes had no pivot of 0 or below."""
    equations, inverse, in_rows, raised_rows = room.equations, room.inverse, room.by_row[3], room.by_row[6]
    raised = room.by_column[6]
    zero, one, fine = splat(0.0, LANES), splat(1.0, LANES), _ALL
    for i in range(1, SIZE):
        pivot = load(in_rows, i * LANES, LANES)
        fine &= greater_lanes(pivot, zero)
        store(inverse, i * LANES, one / pivot)
    for j in range(0, SIZE, 2):
        k = j
        if (_WIDTH - j) % 4:
            _eliminate_two(equations, inverse, j, j)
            k += 2
        while k < _WIDTH:
            _eliminate_four(equations, inverse, j, k)
            k += 4
        row = (SIZE + j) * _ROW
        pivot = load(equations, row + j * LANES, LANES)
        fine &= greater_lanes(pivot, zero)
        per = one / pivot
        store(inverse, (SIZE + j) * LANES, per)
        share = load(equations, row + (j + 1) * LANES, LANES) * per
        for k in range(j + 1, _WIDTH):
            place = row + k * LANES
            store(equations, place + _ROW,
                  load(equations, place + _ROW, LANES) - share * load(equations, place, LANES))
        pivot = load(equations, row + _ROW + (j + 1) * LANES, LANES)
        fine &= greater_lanes(pivot, zero)
        store(inverse, (SIZE + j + 1) * LANES, one / pivot)
    row = (SIZE + _ENTROPY) * _ROW + _ENTROPY * LANES
    pivot, lack = load(equations, row, LANES), load(equations, row + LANES, LANES)
    for other in range(1, SIZE + _ENTROPY):
        place = other * _ROW + _ENTROPY * LANES
        value = load(equations, place, LANES)
        share = value * load(inverse, other * LANES, LANES)
        pivot, lack = pivot - share * value, lack - share * load(equations, place + LANES, LANES)
    fine &= greater_lanes(pivot, zero)
    store(raised, _ENTROPY * LANES, lack / pivot)
    for j in range(SIZE - 1, -1, -1):
        row = (SIZE + j) * _ROW
        value = load(equations, row + _LACK * LANES, LANES)
        for k in range(_ENTROPY, j, -1):
            value = value - load(equations, row + k * LANES, LANES) * load(raised, k * LANES, LANES)
        store(raised, j * LANES, value * load(inverse, (SIZE + j) * LANES, LANES))
    store(raised_rows, 0, zero)
    for i in range(1, SIZE):
        value = load(equations, i * _ROW + _LACK * LANES, LANES)
        for j in range(SIZE + 1):
            value = value - load(equations, i * _ROW + j * LANES, LANES) * load(raised, j * LANES, LANES)
        store(raised_rows, i * LANES, value * load(inverse, i * LANES, LANES))
    return fine


@kernel
def _go(room):
    """Go as far with multipliers and frequencies as none of the latter becomes 0."""
    equations, scores, slopes, of_entropy = room.equations, room.scores, room.slopes, room.of_entropy
    of_rows, raised_rows, of_columns, raised = room.by_row[2], room.by_row[6], room.by_column[2], room.by_column[6]
    zero, one, bound = splat(0.0, LANES), splat(1.0, LANES), splat(TO_BOUNDARY, LANES)
    raised_entropy, multiplier = load(raised, _ENTROPY * LANES, LANES), load(of_entropy, 0, LANES)
    inverting, least = one / (one - multiplier), zero
    for i in range(SIZE):
        raised_row = load(raised_rows, i * LANES, LANES)
        for j in range(SIZE):
            k = (i * SIZE + j) * LANES
            pull = (load(slopes, k, LANES) + load(raised, j * LANES, LANES) + raised_row
                    + raised_entropy * (load(scores, k, LANES) + one)) * inverting
            store(slopes, k, pull)
            least = minimum(least, pull)
    reach = bound / maximum(zero - least, bound)
    for i in range(SIZE):
        for j in range(SIZE):
            place = i * _ROW + j * LANES
            share = load(equations, place, LANES)
            store(equations, place, share + reach * load(slopes, (i * SIZE + j) * LANES, LANES) * share)
        place = i * LANES
        store(of_rows, place, load(of_rows, place, LANES) + reach * load(raised_rows, place, LANES))
        store(of_columns, place, load(of_columns, place, LANES) + reach * load(raised, place, LANES))
    store(of_entropy, 0, multiplier + reach * raised_entropy)


@kernel
def target_frequencies(joint, of_joint, margins, count, room, found, scores, there):
    """Joint frequencies with given margins, of ``count`` pairs, and what they are over chance; whether there are any.

    Args:
        joint, of_joint: f8[400], usual joint frequencies and their logarithms.
        margins: f8[n, 2, 20], of rows and columns.
        found, scores: f8[n, 400], where the frequencies go, and the logarithms of what they are over chance.
        there: bool[n].
    """
    equations, owners, steps = room.equations, room.owners, room.steps
    begun = done = 0
    owners[:] = _NOBODY
    while done < count:
        for lane in range(LANES):
            if owners[lane] == _NOBODY and begun < count:
                _take_lane(room, lane, begun, joint, margins[begun, 0], margins[begun, 1])
                begun += 1
        for i in range(SIZE):
            place = i * _ROW
            logarithms(equations[place : place + SIZE * LANES],
                       room.scores[i * SIZE * LANES : (i + 1) * SIZE * LANES])
        _look(room, of_joint)
        for lane in range(LANES):
            pair, norm, of_entropy = owners[lane], math.sqrt(room.norms[lane]), room.of_entropy[lane]
            if pair == _NOBODY or (norm > TOLERANCE and steps[lane] < MOST_STEPS and of_entropy < 1):
                continue
            owners[lane] = _NOBODY
            done += 1
            there[pair] = norm <= TOLERANCE and of_entropy < 1
            if there[pair]:
                for i in range(SIZE):
                    for j in range(SIZE):
                        k = i * SIZE + j
                        found[pair, k] = equations[i * _ROW + j * LANES + lane]
                        scores[pair, k] = room.scores[k * LANES + lane]
        fine = _solve(room)
        if fine != _ALL:
            for lane in range(LANES):
                if not fine >> np.uint64(lane) & np.uint64(1) and owners[lane] != _NOBODY:
                    there[owners[lane]] = False
                    owners[lane] = _NOBODY
                    done += 1
        for lane in range(LANES):
            steps[lane] += 1
        _go(room)
