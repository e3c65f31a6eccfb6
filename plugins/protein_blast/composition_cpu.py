"""Scores adjusted to the composition of a pair, in kernels: what ``composition`` does, with matrices that are equal.

Where ``composition`` solves a system of 40 equations for each step of Newton's method, the sums of rows are eliminated
here before: each occurs in one equation of its own, so that a system of 21 is left.
"""

import math
from typing import NamedTuple

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import load, maximum, splat, store
from seqloom.plugins.common.karlin_altschul import lambda_root
from seqloom.plugins.common.logarithm_cpu import LogarithmRoom, logarithms
from seqloom.plugins.common.matrices import FORBIDDEN, PROTEIN_CODES
from seqloom.plugins.protein_blast.composition import (
    ADJUSTED_SCORES,
    BIASED,
    FAR_APART,
    HIGHEST_UNKNOWN,
    LEAST_RATIO,
    LENGTH_RATIO,
    MOST_STEPS,
    NO_SCORES,
    PI,
    PLACES,
    PSEUDOCOUNTS,
    RELATIVE_ENTROPY,
    SCALED_SCORES,
    SHORT,
    TO_BOUNDARY,
    TOLERANCE,
    WIDE_ANGLE,
    Adjuster,
    with_ambiguous,
)
from seqloom.plugins.protein_blast.options import CONDITIONAL, SCALED

SIZE = len(PLACES)
CODES = len(PROTEIN_CODES)
_C, _U, _X, _O, _STOP = (PROTEIN_CODES.index(residue) for residue in "CUXO*")
_LETTERS, _MEMBERS = with_ambiguous()
_FIRST, _SECOND = (np.array([np.flatnonzero(row)[part] for row in _MEMBERS]) for part in (0, -1))
"""Of each of `_LETTERS` the first and the last amino acid that it stands for."""
_PLACE_OF = np.full(CODES, -1)
_PLACE_OF[PLACES] = np.arange(SIZE)
_PLACE_OF[_U] = _PLACE_OF[_C]
_IN_CODE_ORDER = np.argsort(PLACES)
_ENTROPY, _LACK = SIZE, SIZE + 1
QUAD, OCTET, WIDTH = 4, 8, 24
"""Lanes of vectors, and numbers in a row of a system of equations."""
_root = kernel(lambda_root)


class Rules(NamedTuple):
    """What an ``Adjuster`` knows, with logarithms of its frequencies (f8[400]) and ratios, and the range of scores."""

    mode: int
    joint: np.ndarray
    of_joint: np.ndarray
    usual: np.ndarray
    logarithms: np.ndarray
    lambda_: float
    standard: np.ndarray
    low: int
    high: int

    @classmethod
    def of(cls, adjuster: Adjuster) -> "Rules":
        low, high = adjuster.range()
        with np.errstate(divide="ignore"):
            logarithms = np.log(adjuster.ratios)
        joint = adjuster.joint.reshape(-1)
        return cls(adjuster.mode, joint, np.log(joint), adjuster.usual, logarithms, adjuster.lambda_,
                   adjuster.standard, low, high)


class Room(NamedTuple):
    """Arrays to work in.

    Attributes:
        found, bits, logs: f8[400] frequencies, the same as i8[400] bits, and their logarithms.
        bend, slope: f8[400]
        rows, shares, system: f8[21 · ``WIDTH``] each, equations in rows of so many numbers.
        by_row, vectors, four: f8[3, 80] sums of rows in four parts, f8[12, ``WIDTH``], f8[4].
        scores: f8[28, 28]
        distribution: f8[] of scores.
        of_logarithms: see there.
    """

    found: np.ndarray
    bits: np.ndarray
    logs: np.ndarray
    bend: np.ndarray
    slope: np.ndarray
    rows: np.ndarray
    shares: np.ndarray
    system: np.ndarray
    by_row: np.ndarray
    vectors: np.ndarray
    four: np.ndarray
    scores: np.ndarray
    distribution: np.ndarray
    of_logarithms: LogarithmRoom


def room(rules: Rules) -> Room:
    found, logs, bend, slope = (np.empty(SIZE * SIZE) for _ in range(4))
    rows, shares, system = (np.zeros((SIZE + 1) * WIDTH) for _ in range(3))
    return Room(found, found.view(np.int64), logs, bend, slope, rows, shares, system, np.empty((3, SIZE * QUAD)),
                np.empty((12, WIDTH)), np.empty(QUAD), np.empty((CODES, CODES)), np.empty(rules.high - rules.low + 1),
                LogarithmRoom.of(SIZE * SIZE))


@kernel
def composition(residues, begin, end, frequencies):
    """Shares of the amino acids among the residues (codes) of a stretch, f8[20]; returns how many these are."""
    counts = np.zeros(SIZE, np.int64)
    for k in range(begin, end):
        place = _PLACE_OF[residues[k]]
        if place >= 0:
            counts[place] += 1
    counted = counts.sum()
    for place in range(SIZE):
        frequencies[place] = counts[place] / max(counted, 1)
    return counted


@kernel
def _distance(first, second):
    total = 0.0
    for one in (first, second):
        own = 0.0
        for k in range(SIZE):
            if one[k] > 0:
                own += one[k] * math.log(one[k] / ((first[k] + second[k]) / 2))
        total += own / 2
    return math.sqrt(max(total, 0.0))


@kernel
def _biased(frequencies, length):
    if length <= SHORT:
        return False
    first = second = 0.0
    for share in frequencies:
        if share > first:
            first, second = share, first
        elif share > second:
            second = share
    return second + first > BIASED


@kernel
def _scaling_is_better(query, query_length, target, target_length, usual):
    if _biased(query, query_length) or _biased(target, target_length):
        return False
    apart = _distance(query, target)
    if apart <= FAR_APART or max(query_length, target_length) / min(query_length, target_length) <= LENGTH_RATIO:
        return False
    of_query, of_target = _distance(query, usual), _distance(target, usual)
    if of_query == 0 or of_target == 0:
        return False
    cosine = (of_query * of_query + of_target * of_target - apart * apart) / 2 / of_query / of_target
    return abs(cosine) <= 1 and math.acos(cosine) * 180 / PI > WIDE_ANGLE


@inline
def _sum_of_four(vector, four):
    store(four, 0, vector)
    return (four[0] + four[1]) + (four[2] + four[3])


@kernel
def _target_frequencies(rules, rows, columns, space):
    """Joint frequencies with these margins, to ``space.found``, and their logarithms; whether there are any.

    See the reference. Four columns at a time, whose sums stay in registers; sums of rows are made in four parts.
    """
    joint, of_joint, found, logs, bend, slope = (rules.joint, rules.of_joint, space.found, space.logs, space.bend,
                                                 space.slope)
    equations, shares, system, four = space.rows, space.shares, space.system, space.four
    row_sums, bend_sums, pull_sums = space.by_row
    by_rows, by_columns, of_rows, of_columns, in_rows, in_columns, raised, raised_rows, bent_columns, pulled_columns = (
        space.vectors[:10])
    zero, one = splat(0.0, QUAD), splat(1.0, QUAD)
    of_columns[:], of_rows[:], raised[:] = 0.0, 0.0, 0.0
    of_entropy = 0.0
    for j in range(SIZE):
        by_columns[j], by_rows[j] = math.log(columns[j]), math.log(rows[j])
    for k in range(SIZE * SIZE):
        found[k] = joint[k]
    for step in range(MOST_STEPS + 1):
        logarithms(found, space.bits, space.of_logarithms, logs)
        row_sums[:], bend_sums[:], pull_sums[:] = 0.0, 0.0, 0.0
        entropies = squares = zero
        multiplier = splat(of_entropy, QUAD)
        for first in range(0, SIZE, QUAD):
            by_column, of_column, sums = load(by_columns, first, QUAD), load(of_columns, first, QUAD), zero
            for i in range(SIZE):
                k = i * SIZE + first
                share, logarithm = load(found, k, QUAD), load(logs, k, QUAD)
                score = logarithm - splat(by_rows[i], QUAD) - by_column
                bent = score + one
                sloping = (of_column + splat(of_rows[i], QUAD) + multiplier * bent
                           - (logarithm - load(of_joint, k, QUAD) + one))
                store(bend, k, bent)
                store(slope, k, sloping)
                entropies = entropies + share * score
                squares = squares + sloping * sloping
                sums = sums + share
                store(row_sums, i * QUAD, load(row_sums, i * QUAD, QUAD) + share)
            store(in_columns, first, sums)
        lack_entropy = RELATIVE_ENTROPY - _sum_of_four(entropies, four)
        norm = lack_entropy * lack_entropy + _sum_of_four(squares, four)
        for j in range(SIZE):
            in_rows[j] = _sum_of_four(load(row_sums, j * QUAD, QUAD), four)
            lack_column, lack_row = columns[j] - in_columns[j], rows[j] - in_rows[j] if j else 0.0
            norm += lack_column * lack_column + lack_row * lack_row
        if not math.sqrt(norm) > TOLERANCE:
            return math.sqrt(norm) <= TOLERANCE and of_entropy < 1
        if step == MOST_STEPS or of_entropy >= 1:
            return False
        # The system, in rows of 20 multipliers of columns, that of entropy, and what is lacking.
        inverted = 1 / (1 - of_entropy)
        inverting = splat(inverted, QUAD)
        bent_entropy = pulled_entropy = zero
        for first in range(0, SIZE, QUAD):
            bent_sums = pulled_sums = zero
            for i in range(SIZE):
                k = i * SIZE + first
                inverse = load(found, k, QUAD) * inverting
                bent = inverse * load(bend, k, QUAD)
                pulled = inverse * load(slope, k, QUAD)
                store(equations, i * WIDTH + first, inverse)
                bent_sums, pulled_sums = bent_sums + bent, pulled_sums + pulled
                bent_entropy = bent_entropy + bent * load(bend, k, QUAD)
                pulled_entropy = pulled_entropy + bent * load(slope, k, QUAD)
                store(bend_sums, i * QUAD, load(bend_sums, i * QUAD, QUAD) + bent)
                store(pull_sums, i * QUAD, load(pull_sums, i * QUAD, QUAD) + pulled)
            store(bent_columns, first, bent_sums)
            store(pulled_columns, first, pulled_sums)
        system[:] = 0.0
        for j in range(SIZE):
            at = j * WIDTH
            system[at + j] = in_columns[j] * inverted
            system[at + _ENTROPY] = bent_columns[j]
            system[at + _LACK] = columns[j] - in_columns[j] - pulled_columns[j]
            equations[at + _ENTROPY] = _sum_of_four(load(bend_sums, j * QUAD, QUAD), four)
            equations[at + _LACK] = rows[j] - in_rows[j] - _sum_of_four(load(pull_sums, j * QUAD, QUAD), four)
            in_rows[j] *= inverted
            if not in_rows[j] > 0:
                return False
        system[_ENTROPY * WIDTH + _ENTROPY] = _sum_of_four(bent_entropy, four)
        system[_ENTROPY * WIDTH + _LACK] = lack_entropy - _sum_of_four(pulled_entropy, four)
        # Rows are eliminated one by one, of which the first is bound by the others.
        for i in range(1, SIZE):
            per_sum = splat(in_rows[i], OCTET)
            for first in range(i * WIDTH, (i + 1) * WIDTH, OCTET):
                store(shares, first, load(equations, first, OCTET) / per_sum)
        for j in range(SIZE + 1):
            at = j * WIDTH
            a, b, c = load(system, at, OCTET), load(system, at + OCTET, OCTET), load(system, at + 2 * OCTET, OCTET)
            for i in range(1, SIZE):
                k, share = i * WIDTH, splat(shares[i * WIDTH + j], OCTET)
                a = a - share * load(equations, k, OCTET)
                b = b - share * load(equations, k + OCTET, OCTET)
                c = c - share * load(equations, k + 2 * OCTET, OCTET)
            store(system, at, a)
            store(system, at + OCTET, b)
            store(system, at + 2 * OCTET, c)
        for j in range(SIZE + 1):
            at = j * WIDTH
            pivot = system[at + j]
            if not pivot > 0:
                return False
            a, b, c = load(system, at, OCTET), load(system, at + OCTET, OCTET), load(system, at + 2 * OCTET, OCTET)
            for i in range(j + 1, SIZE + 1):
                k, share = i * WIDTH, splat(system[at + i] / pivot, OCTET)
                store(system, k, load(system, k, OCTET) - share * a)
                store(system, k + OCTET, load(system, k + OCTET, OCTET) - share * b)
                store(system, k + 2 * OCTET, load(system, k + 2 * OCTET, OCTET) - share * c)
        for j in range(SIZE, -1, -1):
            value = system[j * WIDTH + _LACK]
            for k in range(j + 1, SIZE + 1):
                value -= system[j * WIDTH + k] * raised[k]
            raised[j] = value / system[j * WIDTH + j]
        raised_rows[0] = 0.0
        for i in range(1, SIZE):
            value = equations[i * WIDTH + _LACK]
            for j in range(SIZE + 1):
                value -= equations[i * WIDTH + j] * raised[j]
            raised_rows[i] = value / in_rows[i]
        # How far each frequency goes, and all of them, so that none becomes 0.
        raised_entropy = splat(raised[_ENTROPY], QUAD)
        shrinking = zero
        for first in range(0, SIZE, QUAD):
            raised_columns = load(raised, first, QUAD)
            for i in range(SIZE):
                k = i * SIZE + first
                pull = (load(slope, k, QUAD) + raised_columns + splat(raised_rows[i], QUAD)
                        + raised_entropy * load(bend, k, QUAD)) * inverting
                store(slope, k, pull)
                shrinking = maximum(shrinking, zero - pull)
        store(four, 0, shrinking)
        reach = TO_BOUNDARY / max(max(four[0], four[1]), max(four[2], four[3]), TO_BOUNDARY)
        for k in range(SIZE * SIZE):
            found[k] += reach * slope[k] * found[k]
        for i in range(SIZE):
            of_rows[i] += reach * raised_rows[i]
            of_columns[i] += reach * raised[i]
        of_entropy += reach * raised[_ENTROPY]
    return False


@kernel
def _lambda(distribution, low, start):
    """Lambda of a distribution of scores from ``low`` on, 0 where it doesn't exist: ``karlin_altschul``'s."""
    size = len(distribution)
    mean = 0.0
    step = -low
    for k in range(size):
        mean += (low + k) * distribution[k]
        if distribution[k] > 0:
            step = math.gcd(step, abs(low + k))
    if low >= 0 or low + size - 1 <= 0 or mean >= 0:
        return 0.0
    return _root(distribution[::step], -low // step, start) / step


@inline
def _nearest(score):
    """The nearest integer, halves away from 0."""
    return np.int32(max(score, FORBIDDEN) + (0.5 if score >= 0 else -0.5))


@kernel
def _whole(rules, scores, rows, columns, matrix):
    """Scores with those of X, U, O and stops, rounded. See the reference."""
    mean = 0.0
    for letter in range(len(_LETTERS)):
        code = _LETTERS[letter]
        as_row = as_column = 0.0
        for k in range(SIZE):
            as_row += scores[code, PLACES[k]] * columns[k]
            as_column += scores[PLACES[k], code] * rows[k]
        if letter < SIZE:
            mean += rows[letter] * as_row
        scores[code, _X], scores[_X, code] = min(as_row, HIGHEST_UNKNOWN), min(as_column, HIGHEST_UNKNOWN)
    scores[_X, _X] = min(mean, HIGHEST_UNKNOWN)
    for other, like in ((_U, _C), (_O, _X)):
        for code in range(CODES):
            scores[other, code] = scores[like, code]
        for code in range(CODES):
            scores[code, other] = scores[code, like]
    for i in range(CODES):
        for j in range(CODES):
            matrix[i, j] = _nearest(scores[i, j])
    for code in range(CODES):
        matrix[_STOP, code], matrix[code, _STOP] = rules.standard[_STOP, code], rules.standard[code, _STOP]


@kernel
def _from_joint(rules, space, rows, columns, matrix):
    found, logs, scores = space.found, space.logs, space.scores
    by_rows, by_columns = space.vectors[:2]
    of_total = math.log(found.sum())
    scores[:] = -math.inf
    for a in range(len(_LETTERS)):
        first, second = _FIRST[a], _SECOND[a]
        in_row = rows[first] + (rows[second] if second != first else 0.0)
        for b in range(len(_LETTERS)):
            third, fourth = _FIRST[b], _SECOND[b]
            if second == first and fourth == third:
                over_chance = logs[first * SIZE + third] - by_rows[first] - by_columns[third]
            else:
                share, in_column = found[first * SIZE + third], columns[third]
                if second != first:
                    share += found[second * SIZE + third]
                if fourth != third:
                    in_column += columns[fourth]
                    share += found[first * SIZE + fourth]
                    if second != first:
                        share += found[second * SIZE + fourth]
                over_chance = math.log(share / (in_row * in_column))
            scores[_LETTERS[a], _LETTERS[b]] = (over_chance - of_total) / rules.lambda_
    _whole(rules, scores, rows, columns, matrix)


@kernel
def _scaled(rules, space, rows, columns, matrix):
    distribution, scores = space.distribution, space.scores
    distribution[:] = 0.0
    for i in _IN_CODE_ORDER:
        for j in _IN_CODE_ORDER:
            distribution[rules.standard[PLACES[i], PLACES[j]] - rules.low] += rows[i] * columns[j]
    own = _lambda(distribution, rules.low, rules.lambda_)
    scaled = rules.lambda_ / max(min(own / rules.lambda_, 1.0), LEAST_RATIO)
    for i in range(CODES):
        for j in range(CODES):
            scores[i, j] = rules.logarithms[i, j] / scaled
    _whole(rules, scores, rows, columns, matrix)


@kernel
def adjusted(rules, space, query, query_counted, query_length, target, target_counted, target_length, matrix):
    """The matrix (i4[28, 28]) of a pair of compositions; `SCALED_SCORES`, `ADJUSTED_SCORES`, or `NO_SCORES`.

    query, target: f8[20] shares of amino acids, which are ``…_counted`` of ``…_length`` residues.
    """
    if query_counted == 0 or target_counted == 0:
        return NO_SCORES
    if rules.mode != SCALED and (rules.mode != CONDITIONAL or not _scaling_is_better(
            query, query_length, target, target_length, rules.usual)):
        rows, columns = space.vectors[10], space.vectors[11]
        of_query = PSEUDOCOUNTS / (query_counted + PSEUDOCOUNTS)
        of_target = PSEUDOCOUNTS / (target_counted + PSEUDOCOUNTS)
        for k in range(SIZE):
            rows[k] = (1 - of_query) * query[k] + of_query * rules.usual[k]
            columns[k] = (1 - of_target) * target[k] + of_target * rules.usual[k]
        if _target_frequencies(rules, rows, columns, space):
            _from_joint(rules, space, rows, columns, matrix)
            return ADJUSTED_SCORES
    _scaled(rules, space, query, target, matrix)
    return SCALED_SCORES
