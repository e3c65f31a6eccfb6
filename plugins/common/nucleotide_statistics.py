"""Scores and statistics of nucleotides by match reward and mismatch penalty, as BLAST+ 2.12 has them.

Codes are those of ``ACGTRYMKWSBDHVN-``. Scores are raw units; lambda is per raw unit, H in nats.
"""

from __future__ import annotations

import math

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.distinct import ranked, ranked_rows
from seqloom.core.errors import OptionError
from seqloom.plugins.common.karlin_altschul import (
    EXCLUDED,
    KarlinBlock,
    ScoreDistribution,
    effective_search_space,
    length_adjustment,
    ungapped_parameters,
)
from seqloom.plugins.common.nucleotide_tables import EVEN_SCORES, GAPPED

BASES_OF_CODE: tuple[tuple[int, ...], ...] = (
    (0,), (1,), (2,), (3,), (0, 2), (1, 3), (0, 1), (2, 3), (0, 3), (1, 2),
    (1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2), (0, 1, 2, 3), (0, 1, 2, 3),
)  # fmt: skip
"""The bases that each code stands for, in the order A C G T; the gap is treated as N."""

SENTINEL = 15
"""Code between the strands of a query: it stops every extension, as its score is far below all others."""
SENTINEL_SCORE = -(1 << 30)


def residue_scores(reward: int, penalty: int) -> np.ndarray:
    """i4[16, 16] over blastna codes.

    An ambiguity that shares a base with the other base scores the mean over its bases, rounded; which of the two
    counts the bases is the one with the higher code. The sentinel scores below everything.
    """
    matrix = np.full((16, 16), penalty, np.int32)
    for high in range(SENTINEL):
        for low in range(high + 1):
            bases = len(BASES_OF_CODE[high])
            if set(BASES_OF_CODE[high]) & set(BASES_OF_CODE[low]):
                mean = ((bases - 1) * penalty + reward) / bases
                matrix[high, low] = matrix[low, high] = math.floor(abs(mean) + 0.5) * (1 if mean > 0 else -1)
    matrix[SENTINEL, :] = matrix[:, SENTINEL] = SENTINEL_SCORE
    return matrix


def gapped_karlin(
    reward: int, penalty: int, gap_open: int, gap_extend: int, ungapped: KarlinBlock | None = None
) -> tuple[KarlinBlock, float, float]:
    """Gapped lambda, K and H, with alpha and beta of the length adjustment.

    Args:
        ungapped: parameters of the query without gaps, which hold for large gap costs; those of a query with equal
            shares of all bases by default.

    Raises:
        OptionError: no statistics are known for these scores and costs; the message lists those that are.
    """
    divisor = math.gcd(reward, -penalty)
    table = GAPPED.get((reward // divisor, penalty // divisor))
    if table is None:
        known = ", ".join(f"{r}/{p}" for r, p in sorted(GAPPED))
        raise OptionError(f"no statistics for reward {reward} and penalty {penalty}; known ratios: {known}")
    for (row_open, row_extend), (lambda_, k, h, alpha, beta) in table.rows.items():
        if (row_open * divisor, row_extend * divisor) == (gap_open, gap_extend):
            return KarlinBlock(lambda_ / divisor, k, h), alpha / divisor, beta
    if gap_open >= table.limits[0] * divisor and gap_extend >= table.limits[1] * divisor:
        block = ungapped or ungapped_karlin(residue_scores(reward, penalty))
        assert block is not None  # all tables are of scores that are negative on average
        return ungapped_alpha_beta(reward, penalty, block)
    known = ", ".join(f"{o * divisor}/{e * divisor}" for o, e in table.rows)
    raise OptionError(
        f"no statistics for gap costs {gap_open}/{gap_extend} with scores {reward}/{penalty}; known: {known}, and "
        f"anything from {table.limits[0] * divisor}/{table.limits[1] * divisor} up"
    )


def ungapped_alpha_beta(reward: int, penalty: int, block: KarlinBlock) -> tuple[KarlinBlock, float, float]:
    """Ungapped parameters with alpha and beta of the length adjustment; scores without a table have none of that."""
    divisor = math.gcd(reward, -penalty)
    if (reward // divisor, penalty // divisor) not in GAPPED:
        return block, 0.0, 0.0
    return block, block.lambda_ / block.h, -2.0 if (reward, penalty) in ((1, -1), (2, -3)) else 0.0


def ungapped_karlin(matrix: np.ndarray, codes: np.ndarray | None = None) -> KarlinBlock | None:
    """Ungapped parameters of a query against a database of equally frequent bases; None where there are none.

    codes: u8[n], one strand of the query; equal shares of all bases by default.
    """
    codes = np.arange(4, dtype=np.uint8) if codes is None else codes
    kinds, kind_of = ungapped_karlins(matrix, np.bincount(codes, minlength=16)[None, :16])
    return kinds[kind_of[0]]


def ungapped_karlins(matrix: np.ndarray, counts: np.ndarray) -> tuple[list[KarlinBlock | None], np.ndarray]:
    """The different parameters of many strands, and i8[k]: which of them each strand has.

    counts: i8[k, 16], how often each code occurs in a strand. N and gaps don't count, other ambiguities do. Queries
    without ambiguities differ in the last digits only, but these decide the order of equal scores on both strands.
    """
    shares = counts.astype(np.float64)
    shares[:, [NUCLEOTIDE.unknown_code, SENTINEL]] = 0.0
    totals = shares.sum(axis=1)
    shares /= np.where(totals > 0, totals, 1.0)[:, None]
    scores, column_of = ranked(matrix[:, :4].reshape(-1))
    column_of = column_of.reshape(-1, 4)
    weights = np.zeros((len(counts), len(scores)))
    for row in np.flatnonzero(shares.any(axis=0)).tolist():  # cell by cell: the last digits hang on the order
        for column in column_of[row].tolist():
            weights[:, column] += shares[:, row] * 0.25
    weights[:, scores <= EXCLUDED] = 0.0
    sums = np.cumsum(weights, axis=1)[:, -1]
    different, kind_of = ranked_rows(weights / np.where(sums > 0, sums, 1.0)[:, None])
    return [ungapped_parameters(_distribution(scores, row)) for row in different], kind_of


def _distribution(scores: np.ndarray, shares: np.ndarray) -> ScoreDistribution | None:
    """Of ascending scores, of which some may have no share."""
    there = np.flatnonzero(shares)
    if not len(there):
        return None
    low, high = scores[there[[0, -1]]].tolist()
    probabilities = np.zeros(high - low + 1)
    probabilities[scores[there] - low] = shares[there]
    return ScoreDistribution(low, probabilities)


def has_even_scores(reward: int, penalty: int) -> bool:
    """Whether E-values are those of the next even score below."""
    divisor = math.gcd(reward, -penalty)
    return (reward // divisor, penalty // divisor) in EVEN_SCORES


def search_space(karlin: KarlinBlock, alpha: float, beta: float, length: int, bases: int, sequences: int) -> int:
    """Effective search space of a query of this length in a database of so many bases and sequences."""
    adjustment = length_adjustment(karlin, alpha / karlin.lambda_, beta, length, bases, sequences)
    return effective_search_space(adjustment, length, bases, sequences)
