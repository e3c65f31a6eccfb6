"""Scores and statistics of nucleotides by match reward and mismatch penalty, as BLAST+ 2.12 has them.

Codes are those of ``ACGTRYMKWSBDHVN-``. Scores are raw units; lambda is per raw unit, H in nats.
"""

from __future__ import annotations

import math

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.errors import OptionError
from seqloom.plugins.common.karlin_altschul import (
    KarlinBlock,
    effective_search_space,
    length_adjustment,
    score_distribution,
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
        beta = -2.0 if (reward, penalty) in ((1, -1), (2, -3)) else 0.0
        return block, block.lambda_ / block.h, beta
    known = ", ".join(f"{o * divisor}/{e * divisor}" for o, e in table.rows)
    raise OptionError(
        f"no statistics for gap costs {gap_open}/{gap_extend} with scores {reward}/{penalty}; known: {known}, and "
        f"anything from {table.limits[0] * divisor}/{table.limits[1] * divisor} up"
    )


def ungapped_karlin(matrix: np.ndarray, codes: np.ndarray | None = None) -> KarlinBlock | None:
    """Ungapped parameters of a query against a database of equally frequent bases; None where there are none.

    codes: u8[n], one strand of the query; equal shares of all bases by default. N and gaps don't count, other
    ambiguities do. Queries without ambiguities differ in the last digits only, but these decide the order of equal
    scores on both strands.
    """
    bases = np.zeros(16)
    bases[:4] = 0.25
    shares = bases
    if codes is not None:
        counts = np.bincount(codes, minlength=16)[:16].astype(np.float64)
        counts[[NUCLEOTIDE.unknown_code, SENTINEL]] = 0.0
        if not counts.any():
            return None
        shares = counts / counts.sum()
    return ungapped_parameters(score_distribution(matrix, shares, bases))


def has_even_scores(reward: int, penalty: int) -> bool:
    """Whether E-values are those of the next even score below."""
    divisor = math.gcd(reward, -penalty)
    return (reward // divisor, penalty // divisor) in EVEN_SCORES


def search_space(karlin: KarlinBlock, alpha: float, beta: float, length: int, bases: int, sequences: int) -> int:
    """Effective search space of a query of this length in a database of so many bases and sequences."""
    adjustment = length_adjustment(karlin, alpha / karlin.lambda_, beta, length, bases, sequences)
    return effective_search_space(adjustment, length, bases, sequences)
