"""Karlin–Altschul statistics as BLAST+ 2.12 computes them: ungapped lambda, K and H, E-values, bit scores, cutoffs.

Scores are raw score units of the matrix; lambda is per raw unit, H in nats per aligned pair. The numeric recipes
(start values, tolerances, numbers of terms) are part of the answer, because cutoffs derived from them are truncated to
integers. Sources: Karlin & Altschul 1990; Altschul & Gish 1996; for the finite-size E-value Park, Sheetlin, Ma, Madden
& Spouge 2012; for the numeric details the public NCBI toolkit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.distinct import ranked

LN2 = math.log(2.0)

_NEWTON_STEPS, _ALL_STEPS, _LAMBDA_TOLERANCE, _START = 20, 37, 1e-5, 0.5
_K_TERMS, _K_SMALLEST_TERM = 100, 1e-4
_ADJUSTMENT_STEPS = 20
_EXPM1_TERMS = 13
_MANY = 256
"""Values of which it is looked for equal ones."""
EXCLUDED = -32768
"""Scores down to this one are of pairs that don't count."""


@dataclass(frozen=True)
class KarlinBlock:
    """Lambda (per raw unit), K and H (nats) of one scoring system."""

    lambda_: float
    k: float
    h: float

    def bit_score(self, raw: int) -> float:
        """Bits of a raw score."""
        return (raw * self.lambda_ - math.log(self.k)) / LN2

    def bit_scores(self, raws: np.ndarray) -> np.ndarray:
        """f8[n]: bits of raw scores."""
        return (raws * self.lambda_ - math.log(self.k)) / LN2

    def raw_from_bits(self, bits: float) -> float:
        """Raw score of a number of bits, not rounded: `(bits ln 2 + ln K) / lambda`."""
        return (bits * LN2 + math.log(self.k)) / self.lambda_


@dataclass(frozen=True)
class ScoreDistribution:
    """Probabilities, f8[n], of the scores `low`, `low + 1`, … of a pair of random residues; both ends have
    probability > 0."""

    low: int
    probabilities: np.ndarray

    @property
    def scores(self) -> np.ndarray:
        return np.arange(self.low, self.low + len(self.probabilities))

    @property
    def high(self) -> int:
        return self.low + len(self.probabilities) - 1


def score_distribution(
    matrix: np.ndarray, row_frequencies: np.ndarray, column_frequencies: np.ndarray
) -> ScoreDistribution | None:
    """Distribution of `matrix` scores (i4[a, a]) under two residue distributions (f8[a]); cells ≤ −32768 don't count.

    None when no pair of residues has a probability.
    """
    weights = np.outer(row_frequencies, column_frequencies)
    counted = (matrix > EXCLUDED) & (weights > 0)
    if not counted.any():
        return None
    scores, weights = matrix[counted], weights[counted]
    low = int(scores.min())
    probabilities = np.bincount(scores - low, weights=weights)
    return ScoreDistribution(low, probabilities / _sum(probabilities))


def _sum(values: np.ndarray) -> float:
    """Sum in the order of the values: the last digit of a parameter decides the order of equal scores."""
    return float(np.cumsum(values)[-1])


def ungapped_parameters(distribution: ScoreDistribution | None) -> KarlinBlock | None:
    """Lambda, H and K of a score distribution; None where they don't exist (mean ≥ 0, no positive score)."""
    if distribution is None:
        return None
    low, high = distribution.low, distribution.high
    mean = _sum(distribution.scores * distribution.probabilities)
    if low >= 0 or high <= 0 or mean >= 0:
        return None
    unit, step = _on_unit_lattice(distribution)
    lambda_ = _solve_lambda(unit) / step
    h = _entropy(distribution, lambda_)
    if h <= 0:
        return None
    # As in BLAST, whose series for a coarser lattice reads the probabilities of the finer one from its lowest score on.
    read = distribution.probabilities[: len(unit.probabilities)]
    k = _series_k(unit, read, mean / step, lambda_ * step, h)
    return KarlinBlock(lambda_, k, h) if k > 0 else None


def ungapped_lambda(distribution: ScoreDistribution, start: float) -> float | None:
    """Lambda alone, sought from `start` on; None where it doesn't exist. Scores at the ends may have probability 0."""
    mean = _sum(distribution.scores * distribution.probabilities)
    if distribution.low >= 0 or distribution.high <= 0 or mean >= 0:
        return None
    unit, step = _on_unit_lattice(distribution)
    return _solve_lambda(unit, start) / step


def _on_unit_lattice(distribution: ScoreDistribution) -> tuple[ScoreDistribution, int]:
    """The distribution in units of the common divisor of its scores, and this: there the lattice has span 1, which the
    series for K assumes."""
    low, occurring = distribution.low, distribution.scores[distribution.probabilities > 0]
    step = reduce(math.gcd, (abs(int(score)) for score in occurring), abs(low))
    return ScoreDistribution(low // step, distribution.probabilities[::step]), step


def _entropy(distribution: ScoreDistribution, lambda_: float) -> float:
    """H: lambda times the mean score under the weights p(s) exp(lambda s), by Horner's rule in exp(−lambda)."""
    decay, total = math.exp(-lambda_), 0.0
    for score, probability in zip(distribution.scores.tolist(), distribution.probabilities.tolist(), strict=True):
        total = score * probability + decay * total
    return lambda_ * total / _power(decay, distribution.high)


def _power(base: float, exponent: int) -> float:
    """By repeated squaring."""
    result = 1.0
    while exponent:
        result *= base if exponent & 1 else 1.0
        base *= base
        exponent >>= 1
    return result


def _solve_lambda(distribution: ScoreDistribution, start: float = _START) -> float:
    return lambda_root(distribution.probabilities.tolist(), -distribution.low, start)


def lambda_root(coefficients: Sequence[float], zero: int, start: float) -> float:
    """The positive root of Σ p(s) exp(lambda s) = 1, with p(s) = `coefficients[s + zero]`; kernels call it as well.

    With x = exp(−lambda) this is a root in (0, 1) of a polynomial, f(x) = Σ p(s) x^(high − s) − x^high, positive left
    of the root and negative right of it. Newton from lambda = `start`, kept in the bracket by bisection whenever a
    step leaves it, the slope has the wrong sign, or the last Newton step gained too little.
    """
    lower, upper = 0.0, 1.0
    x = math.exp(-start)
    previous = 4.0
    by_newton = False
    for step in range(_ALL_STEPS):
        value, slope = 0.0, 0.0
        for place in range(len(coefficients)):
            slope = slope * x + value
            value = value * x + coefficients[place]
            if place == zero:
                value -= 1.0
        if value > 0:
            lower = x
        elif value < 0:
            upper = x
        else:
            break
        if upper - lower < 2 * lower * (1 - upper) * _LAMBDA_TOLERANCE:
            x = (lower + upper) / 2
            break
        change = -value / slope if slope < 0 else math.inf
        too_slow = by_newton and abs(value) > 0.9 * abs(previous)
        by_newton = step < _NEWTON_STEPS and not too_slow and lower < x + change < upper
        previous = value
        if not by_newton:
            x = (lower + upper) / 2
            continue
        x += change
        if abs(change) < _LAMBDA_TOLERANCE * x * (1 - x):
            break
    return -math.log(x)


def _series_k(distribution: ScoreDistribution, read: np.ndarray, mean: float, lambda_: float, h: float) -> float:
    """K on a lattice of span 1: closed forms where only one step down or up exists, else the series of random walks.

    read: f8, probabilities that the series takes.
    """
    low, high = distribution.low, distribution.high
    probabilities = distribution.probabilities
    if low == -1 and high == 1:
        difference = probabilities[0] - probabilities[-1]
        return float(difference * difference / probabilities[0])
    decay, ratio = math.exp(-lambda_), h / lambda_
    if low == -1 or high == 1:
        if high != 1:
            ratio = mean * mean / ratio
        return ratio * (1.0 - decay)
    from .random_walk_cpu import walk_series  # most scoring systems of nucleotides get by without a kernel

    total = walk_series(read, decay, low, _K_TERMS, _K_SMALLEST_TERM)
    return -math.exp(-2.0 * total) / (ratio * _expm1(-lambda_))


def _expm1(x: float) -> float:
    """exp(x) − 1 with the peer's rounding: by the difference itself from 0.33 on, else by Taylor's series."""
    if abs(x) > 0.33:
        return math.exp(x) - 1.0
    total = 0.0
    for order in range(_EXPM1_TERMS, 0, -1):
        total = 1.0 / math.factorial(order) + x * total
    return x * total


@dataclass(frozen=True)
class GappedParameters:
    """Statistics of a matrix with gap costs, and the ungapped values that the finite-size correction needs.

    `alpha` and `beta` describe the mean length of alignments, `alpha_v` and `sigma` its variance and covariance
    (raw score units); `ungapped_alpha`, `ungapped_alpha_v` are the same of the matrix without gaps.
    """

    gap_open: int
    gap_extend: int
    karlin: KarlinBlock
    alpha: float
    beta: float
    alpha_v: float
    sigma: float
    ungapped_alpha: float
    ungapped_alpha_v: float

    def evalue(self, raw: int, query_length: int, target_length: int, database_residues: int | None) -> float:
        """Expected number of alignments of at least `raw` in a database, by Spouge's finite-size form.

        The expectation is that of the pair, scaled by `database_residues / target_length` (not scaled when None).
        """
        karlin, cost = self.karlin, self.gap_open + self.gap_extend
        length_shift = self.alpha * raw + 2 * cost * (self.ungapped_alpha - self.alpha)
        variance = max(
            2 * self.alpha_v / karlin.lambda_, self.alpha_v * raw + 2 * cost * (self.ungapped_alpha_v - self.alpha_v)
        )
        covariance = max(
            2 * self.sigma / karlin.lambda_, self.sigma * raw + 2 * cost * (self.ungapped_alpha_v - self.sigma)
        )
        query_mean, query_fits = _room(query_length - length_shift, variance)
        target_mean, target_fits = _room(target_length - length_shift, variance)
        area = query_mean * target_mean + covariance * query_fits * target_fits
        pair = area * karlin.k * math.exp(-karlin.lambda_ * raw)
        return pair if database_residues is None else pair * (database_residues / target_length)

    def evalues(self, raws: np.ndarray, query_lengths: np.ndarray | int, target_lengths: np.ndarray,
                database_residues: int | None) -> np.ndarray:
        """f8[n]: `evalue` of many scores and pairs, to the last bit: i8[n] or f8[n] `raws`, i8[n] lengths."""
        karlin, cost = self.karlin, self.gap_open + self.gap_extend
        length_shift = self.alpha * raws + 2 * cost * (self.ungapped_alpha - self.alpha)
        variance = np.maximum(
            2 * self.alpha_v / karlin.lambda_, self.alpha_v * raws + 2 * cost * (self.ungapped_alpha_v - self.alpha_v)
        )
        covariance = np.maximum(
            2 * self.sigma / karlin.lambda_, self.sigma * raws + 2 * cost * (self.ungapped_alpha_v - self.sigma)
        )
        query_mean, query_fits = _rooms(query_lengths - length_shift, variance)
        target_mean, target_fits = _rooms(target_lengths - length_shift, variance)
        area = query_mean * target_mean + covariance * query_fits * target_fits
        pair = area * karlin.k * each(math.exp, -karlin.lambda_ * raws)
        return pair if database_residues is None else pair * (database_residues / target_lengths)

    def score_cutoff(self, evalue: float, query_length: int, target_length: int, database_residues: int | None) -> int:
        """Score one less than the first that passes `evalue`, by integer bisection; 0 when every score passes.
        """
        scale = 1 if database_residues is None else database_residues
        lower, upper = 0, max(int(math.log(scale / evalue) / self.karlin.lambda_), 2)
        while self.evalue(upper, query_length, target_length, database_residues) > evalue:
            lower, upper = upper, 2 * upper
        while upper - lower > 1:
            middle = (lower + upper) // 2
            if self.evalue(middle, query_length, target_length, database_residues) > evalue:
                lower = middle
            else:
                upper = middle
        return lower


def erfc(x: float) -> float:
    """The complementary error function as the peer has it, which between 0.5 and 1.5 differs in the seventh digit.

    There it takes the rational function of Boost's `erf` (Maddock 2006), but without the last term of its denominator.
    """
    if not 0.5 <= abs(x) < 1.5:
        return math.erfc(x)
    z = abs(x)
    share = _horner(_ERFC_ABOVE, z - 0.5) / _horner(_ERFC_BELOW, z - 0.5)
    tail = (_ERFC_OFFSET + share) * (math.exp(-z * z) / z)
    return tail if x > 0 else 2.0 - tail


_ERFC_OFFSET = 0.405935764312744140625
_ERFC_ABOVE = (-0.098090592216281240205, 0.178114665841120341155, 0.191003695796775433986, 0.0888900368967884466578,
               0.0195049001251218801359, 0.00180424538297014223957)
_ERFC_BELOW = (1.0, 1.84759070983002217845, 1.42628004845511324508, 0.578052804889902404909, 0.12385097467900864233,
               0.0113385233577001411017)
"""Coefficients by rising power; 0.337511472483094676155e-5 would follow."""


def _horner(coefficients: tuple[float, ...], x: float) -> float:
    """Value of a polynomial with these coefficients by rising power."""
    total = 0.0
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def _room(length: float, variance: float) -> tuple[float, float]:
    """Mean of max(X, 0) and P(X > 0) of a normal X: what is left of a sequence beside an alignment's extent."""
    deviation = math.sqrt(variance)
    reduced = length / deviation
    fits = erfc(-reduced / math.sqrt(2.0)) / 2.0
    density = 0.3989422804014327 * math.exp(-0.5 * reduced * reduced)
    return length * fits + deviation * density, fits


def _rooms(lengths: np.ndarray, variances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`_room` of each."""
    deviations = np.sqrt(variances)
    reduced = lengths / deviations
    fits = each(erfc, -reduced / math.sqrt(2.0)) / 2.0
    density = 0.3989422804014327 * each(math.exp, -0.5 * reduced * reduced)
    return lengths * fits + deviations * density, fits


def each(function: Callable[[float], float], values: np.ndarray) -> np.ndarray:
    """f8[n]: a function of `math` of each value; numpy's own may differ in the last bit.

    Of many alignments most have the score of others, and each call of the function keeps the interpreter from others.
    """
    if len(values) < _MANY:
        return np.fromiter(map(function, values.tolist()), np.float64, len(values))
    different, places = ranked(values)
    return np.fromiter(map(function, different.tolist()), np.float64, len(different))[places]


def length_adjustment(
    karlin: KarlinBlock,
    alpha_over_lambda: float,
    beta: float,
    query_length: int,
    database_residues: int,
    database_sequences: int,
) -> int:
    """Residues to take off each sequence for edge effects (Altschul & Gish 1996): the largest integer `ell` with
    `ell ≤ alpha/lambda · ln(K (m − ell)(n − N ell)) + beta`, by a bracketed fixed-point iteration; 0 if there's none.
    """
    m, n, count = float(query_length), float(database_residues), float(database_sequences)
    log_k = math.log(karlin.k)

    def fixed_point(ell: float) -> float:
        return alpha_over_lambda * (log_k + math.log((m - ell) * (n - count * ell))) + beta

    # The upper end of the bracket solves K (m − ell)(n − N ell) = max(m, n), a quadratic in ell.
    linear = m * count + n
    constant = n * m - max(m, n) / karlin.k
    if constant < 0:
        return 0
    upper = 2 * constant / (linear + math.sqrt(linear * linear - 4 * count * constant))
    lower, following = 0.0, 0.0
    converged = False
    for step in range(_ADJUSTMENT_STEPS):
        ell = following
        target = fixed_point(ell)
        if target >= ell:
            lower = ell
            if target - lower <= 1.0:
                converged = True
                break
            if lower == upper:
                break
        else:
            upper = ell
        bisected = upper if step == 0 else (lower + upper) / 2
        following = target if lower <= target <= upper else bisected
    adjustment = math.floor(lower)
    if converged:
        ceiling = math.ceil(lower)
        if ceiling <= upper and fixed_point(ceiling) >= ceiling:
            adjustment = ceiling
    return adjustment


def effective_search_space(
    adjustment: int, query_length: int, database_residues: int, database_sequences: int
) -> int:
    """`(m − ell) · max(n − N ell, 1)`, in pairs of residues."""
    return (query_length - adjustment) * max(database_residues - database_sequences * adjustment, 1)
