"""Scores adjusted to the composition of a pair, in kernels: what ``composition`` does, with matrices that are equal.

Pairs are handed in many at a time, since joint frequencies are looked for side by side (``frequencies_cpu``).
"""

import math

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import load, store
from seqloom.plugins.common.karlin_altschul import lambda_root
from seqloom.plugins.common.logarithm_cpu import LANES, logarithms
from seqloom.plugins.common.matrices import FORBIDDEN, PROTEIN_CODES
from seqloom.plugins.protein_blast.composition import (
    ADJUSTED_SCORES,
    BIASED,
    FAR_APART,
    HIGHEST_UNKNOWN,
    LEAST_RATIO,
    LENGTH_RATIO,
    NO_SCORES,
    PI,
    PLACES,
    PSEUDOCOUNTS,
    SCALED_SCORES,
    SHORT,
    WIDE_ANGLE,
    Adjuster,
    with_ambiguous,
)
from seqloom.plugins.protein_blast.frequencies_cpu import SIZE, NewtonRoom, target_frequencies
from seqloom.plugins.protein_blast.options import CONDITIONAL, SCALED

CODES = len(PROTEIN_CODES)
_C, _U, _X, _O, _STOP = (PROTEIN_CODES.index(residue) for residue in "CUXO*")
_LETTERS, _MEMBERS = with_ambiguous()
_FIRST, _SECOND = (np.array([np.flatnonzero(row)[part] for row in _MEMBERS]) for part in (0, -1))
"""Of each of `_LETTERS` the first and the last amino acid that it stands for."""
_PLACE_OF = np.full(CODES, -1)
_PLACE_OF[PLACES] = np.arange(SIZE)
_PLACE_OF[_U] = _PLACE_OF[_C]
_IN_CODE_ORDER = np.argsort(PLACES)
_root = kernel(lambda_root)


class Rules(NamedTuple):
    """What an ``Adjuster`` knows, and what is made of it once.

    Attributes:
        mode, lambda_: as of ``Adjuster``.
        joint, of_joint: f8[400], joint frequencies of amino acids, and their logarithms.
        usual: f8[20], frequencies of amino acids. logarithms: f8[28, 28], of the ratios.
        standard: i4[28, 28], scores. low, high: least and highest score that there can be.
    """

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
    """Arrays to work in, for up to n pairs at a time.

    Attributes:
        waiting, margins: i8[n], f8[n, 2, 20], pairs whose joint frequencies are looked for, and the margins of these.
        found, over_chance, there: see ``target_frequencies``.
        newton: see there.
        ratios, gained: f8[], room for those of letters that stand for two amino acids, and logarithms of them.
        scores: f8[28, 28]
        distribution: f8[] of scores.
    """

    waiting: np.ndarray
    margins: np.ndarray
    found: np.ndarray
    over_chance: np.ndarray
    there: np.ndarray
    newton: NewtonRoom
    ratios: np.ndarray
    gained: np.ndarray
    scores: np.ndarray
    distribution: np.ndarray

    @classmethod
    def of(cls, rules: Rules, count: int) -> "Room":
        found, over_chance = np.empty((2, count, SIZE * SIZE))
        ratios, gained = np.empty((2, -(-(len(_LETTERS) ** 2 - SIZE**2) // LANES) * LANES))
        return cls(np.empty(count, np.int64), np.empty((count, 2, SIZE)), found, over_chance, np.empty(count, np.bool_),
                   NewtonRoom.of(), ratios, gained, np.empty((CODES, CODES)), np.empty(rules.high - rules.low + 1))


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
def _from_joint(rules, space, place, matrix):
    """The matrix of joint frequencies and of what they are over chance; letters that stand for two are scored last."""
    found, over_chance, ratios, gained, scores = (space.found[place], space.over_chance[place], space.ratios,
                                                  space.gained, space.scores)
    rows, columns = space.margins[place, 0], space.margins[place, 1]
    sums = load(found, 0, LANES)
    for k in range(LANES, SIZE * SIZE, LANES):
        sums = sums + load(found, k, LANES)
    store(ratios, 0, sums)
    total = 0.0
    for lane in range(LANES):
        total += ratios[lane]
    of_total = math.log(total)
    for k in range(SIZE * SIZE):
        over_chance[k] = (over_chance[k] - of_total) / rules.lambda_
    ratios[:] = 1.0
    count = 0
    for a in range(len(_LETTERS)):
        first, second = _FIRST[a], _SECOND[a]
        in_row = rows[first] + (rows[second] if second != first else 0.0)
        for b in range(SIZE if first == second else 0, len(_LETTERS)):
            third, fourth = _FIRST[b], _SECOND[b]
            share, in_column = found[first * SIZE + third], columns[third]
            if second != first:
                share += found[second * SIZE + third]
            if fourth != third:
                in_column += columns[fourth]
                share += found[first * SIZE + fourth]
                if second != first:
                    share += found[second * SIZE + fourth]
            ratios[count] = share / (in_row * in_column)
            count += 1
    logarithms(ratios, gained)
    for k in range(count):
        gained[k] = (gained[k] - of_total) / rules.lambda_
    scores[:] = -math.inf
    count = 0
    for a in range(len(_LETTERS)):
        alone = SIZE if _FIRST[a] == _SECOND[a] else 0
        for b in range(alone):
            scores[_LETTERS[a], _LETTERS[b]] = over_chance[a * SIZE + b]
        for b in range(alone, len(_LETTERS)):
            scores[_LETTERS[a], _LETTERS[b]] = gained[count]
            count += 1
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
def adjusted(rules, space, shares, counted, lengths, matrices, ways):
    """The matrices of n pairs of compositions, of query and target; how they were made.

    Args:
        space: `Room` for n pairs at least.
        shares, counted, lengths: f8[n, 2, 20], i8[n, 2] each: shares of amino acids, which are ``counted`` of so many
            residues.
        matrices: i4[n, 28, 28], where they go.
        ways: i8[n], where `SCALED_SCORES`, `ADJUSTED_SCORES`, or `NO_SCORES` go.
    """
    count = 0
    for pair in range(len(ways)):
        query, target = shares[pair, 0], shares[pair, 1]
        if counted[pair, 0] == 0 or counted[pair, 1] == 0:
            ways[pair] = NO_SCORES
        elif rules.mode == SCALED or (rules.mode == CONDITIONAL and _scaling_is_better(
                query, lengths[pair, 0], target, lengths[pair, 1], rules.usual)):
            ways[pair] = SCALED_SCORES
        else:
            ways[pair] = ADJUSTED_SCORES
            for side in range(2):
                usual = PSEUDOCOUNTS / (counted[pair, side] + PSEUDOCOUNTS)
                for k in range(SIZE):
                    space.margins[count, side, k] = (1 - usual) * shares[pair, side, k] + usual * rules.usual[k]
            space.waiting[count] = pair
            count += 1
    target_frequencies(rules.joint, rules.of_joint, space.margins, count, space.newton, space.found, space.over_chance,
                       space.there)
    for place in range(count):
        pair = space.waiting[place]
        if space.there[place]:
            _from_joint(rules, space, place, matrices[pair])
        else:
            ways[pair] = SCALED_SCORES
    for pair in range(len(ways)):
        if ways[pair] == SCALED_SCORES:
            _scaled(rules, space, shares[pair, 0], shares[pair, 1], matrices[pair])
