"""Karlin–Altschul statistics as BLAST+ 2.12 computes them: ungapped lambda, K and H, E-values, bit scores, cutoffs.

Scores are raw score units of the matrix; lambda is per raw unit, H in nats per aligned pair. The numeric recipes
(start values, tolerances, numbers of terms) are part of the answer, because cutoffs derived from them are truncated to
integers. Sources: Karlin & Altschul 1990; Altschul & Gish 1996; for the finite-size E-value Park, Sheetlin, Ma, Madden
& Spouge 2012; for the numeric details the public NCBI toolkit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np

LN2 = math.log(2.0)

_NEWTON_STEPS, _ALL_STEPS, _TOLERANCE, _START = 20, 37, 1e-5, 0.5
_K_TERMS, _K_SMALLEST_TERM = 100, 1e-4
_ADJUSTMENT_STEPS = 20
_EXCLUDED = -32768


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
    """Probabilities of the scores `low`, `low + 1`, … of a pair of random letters; both ends have probability > 0."""

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
    """Distribution of `matrix` scores (i4[a, a]) under two letter distributions (f8[a]); cells ≤ −32768 don't count.

    None when no pair of letters has a probability.
    """
    weights = np.outer(row_frequencies, column_frequencies)
    counted = (matrix > _EXCLUDED) & (weights > 0)
    if not counted.any():
        return None
    scores, weights = matrix[counted], weights[counted]
    low = int(scores.min())
    probabilities = np.bincount(scores - low, weights=weights)
    return ScoreDistribution(low, probabilities / probabilities.sum())


def ungapped_parameters(distribution: ScoreDistribution | None) -> KarlinBlock | None:
    """Lambda, H and K of a score distribution; None where they don't exist (mean ≥ 0, no positive score)."""
    if distribution is None:
        return None
    low, high = distribution.low, distribution.high
    mean = float((distribution.scores * distribution.probabilities).sum())
    if low >= 0 or high <= 0 or mean >= 0:
        return None
    occurring = distribution.scores[distribution.probabilities > 0]
    step = reduce(math.gcd, (abs(int(score)) for score in occurring))
    # In units of the common divisor the lattice has span 1, which the series for K assumes.
    unit = ScoreDistribution(low // step, distribution.probabilities[::step])
    lambda_ = _solve_lambda(unit)
    h = lambda_ * float((unit.scores * unit.probabilities * np.exp(lambda_ * unit.scores)).sum())
    if h <= 0:
        return None
    k = _series_k(unit, lambda_, h)
    return KarlinBlock(lambda_ / step, k, h) if k > 0 else None


def _solve_lambda(distribution: ScoreDistribution) -> float:
    """The positive root of Σ p(s) exp(lambda s) = 1.

    With x = exp(−lambda) this is a root in (0, 1) of a polynomial, f(x) = Σ p(s) x^(high − s) − x^high, positive left
    of the root and negative right of it. Newton from lambda = 0.5, kept in the bracket by bisection whenever a
    step leaves it, the slope has the wrong sign, or the last Newton step gained too little.
    """
    coefficients = distribution.probabilities.copy()
    coefficients[-distribution.low] -= 1.0  # the score 0
    lower, upper = 0.0, 1.0
    x = math.exp(-_START)
    previous = 4.0
    by_newton = False
    for step in range(_ALL_STEPS):
        value, slope = 0.0, 0.0
        for coefficient in coefficients.tolist():
            slope = slope * x + value
            value = value * x + coefficient
        if value > 0:
            lower = x
        elif value < 0:
            upper = x
        else:
            break
        if upper - lower < 2 * lower * (1 - upper) * _TOLERANCE:
            x = (lower + upper) / 2
            break
        newton = x - value / slope if slope < 0 else math.inf
        too_slow = by_newton and abs(value) > 0.9 * abs(previous)
        by_newton = step < _NEWTON_STEPS and not too_slow and lower < newton < upper
        previous = value
        if not by_newton:
            x = (lower + upper) / 2
            continue
        moved, x = abs(newton - x), newton
        if moved < _TOLERANCE * x * (1 - x):
            break
    return -math.log(x)


def _series_k(distribution: ScoreDistribution, lambda_: float, h: float) -> float:
    """K on a lattice of span 1: closed forms where only one step down or up exists, else the series of random walks."""
    low, high = distribution.low, distribution.high
    probabilities = distribution.probabilities
    if low == -1 and high == 1:
        return float((probabilities[0] - probabilities[-1]) ** 2 / probabilities[0])
    if low == -1 or high == 1:
        ratio = h / lambda_
        if high != 1:
            mean = float((distribution.scores * probabilities).sum())
            ratio = mean * mean / ratio
        return ratio * (1.0 - math.exp(-lambda_))
    from .random_walk_cpu import walk_series  # most scoring systems of nucleotides get by without a kernel

    weights = np.exp(lambda_ * np.minimum(np.arange(_K_TERMS * low, _K_TERMS * high + 1), 0))
    total = walk_series(probabilities, weights, low, _K_TERMS, _K_SMALLEST_TERM)
    return -math.exp(-2.0 * total) * lambda_ / (h * math.expm1(-lambda_))


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

    def evalues(self, raws: np.ndarray, query_length: int, target_lengths: np.ndarray,
                database_residues: int) -> np.ndarray:
        """f8[n]: `evalue` of many scores and targets, to the last bit; i8[n] `raws` and `target_lengths`."""
        karlin, cost = self.karlin, self.gap_open + self.gap_extend
        length_shift = self.alpha * raws + 2 * cost * (self.ungapped_alpha - self.alpha)
        variance = np.maximum(
            2 * self.alpha_v / karlin.lambda_, self.alpha_v * raws + 2 * cost * (self.ungapped_alpha_v - self.alpha_v)
        )
        covariance = np.maximum(
            2 * self.sigma / karlin.lambda_, self.sigma * raws + 2 * cost * (self.ungapped_alpha_v - self.sigma)
        )
        query_mean, query_fits = _rooms(query_length - length_shift, variance)
        target_mean, target_fits = _rooms(target_lengths - length_shift, variance)
        area = query_mean * target_mean + covariance * query_fits * target_fits
        pair = area * karlin.k * _each(math.exp, -karlin.lambda_ * raws)
        return pair * (database_residues / target_lengths)

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


def _room(length: float, variance: float) -> tuple[float, float]:
    """Mean of max(X, 0) and P(X > 0) of a normal X: what is left of a sequence beside an alignment's extent."""
    deviation = math.sqrt(variance)
    reduced = length / deviation
    fits = math.erfc(-reduced / math.sqrt(2.0)) / 2.0
    density = 0.3989422804014327 * math.exp(-0.5 * reduced * reduced)
    return length * fits + deviation * density, fits


def _rooms(lengths: np.ndarray, variances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`_room` of each."""
    deviations = np.sqrt(variances)
    reduced = lengths / deviations
    fits = _each(math.erfc, -reduced / math.sqrt(2.0)) / 2.0
    density = 0.3989422804014327 * _each(math.exp, -0.5 * reduced * reduced)
    return lengths * fits + deviations * density, fits


def _each(function: Callable[[float], float], values: np.ndarray) -> np.ndarray:
    """A function of `math` of each value; numpy's own may differ in the last bit."""
    return np.fromiter(map(function, values.tolist()), np.float64, len(values))


def length_adjustment(
    karlin: KarlinBlock,
    alpha_over_lambda: float,
    beta: float,
    query_length: int,
    database_residues: int,
    database_sequences: int,
) -> int:
    """Letters to take off each sequence for edge effects (Altschul & Gish 1996): the largest integer `ell` with
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
    """`(m − ell) · max(n − N ell, 1)`, in pairs of letters."""
    return (query_length - adjustment) * max(database_residues - database_sequences * adjustment, 1)
