"""``finite-size-evalue`` on the CPU: the reference's arithmetic on all alignments at once."""

import math
from collections.abc import Callable

import numpy as np
from seqloom.plugins.protein_blast.score_reference import FiniteSizeEvalue
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring


def evalues(scoring: ProteinBlastScoring, score: np.ndarray, query_length: np.ndarray,
            target_length: np.ndarray) -> np.ndarray:
    """f8[n]: ``scoring.evalue`` of every row, bit for bit: its operations one by one, in its order."""
    gapped, karlin = scoring.gapped, scoring.gapped.karlin
    if scoring.search_space:
        return float(scoring.search_space) * _each(math.exp, -karlin.lambda_ * score + math.log(karlin.k))
    cost = gapped.gap_open + gapped.gap_extend
    length_shift = gapped.alpha * score + 2 * cost * (gapped.ungapped_alpha - gapped.alpha)
    variance = np.maximum(2 * gapped.alpha_v / karlin.lambda_,
                          gapped.alpha_v * score + 2 * cost * (gapped.ungapped_alpha_v - gapped.alpha_v))
    covariance = np.maximum(2 * gapped.sigma / karlin.lambda_,
                            gapped.sigma * score + 2 * cost * (gapped.ungapped_alpha_v - gapped.sigma))
    deviation = np.sqrt(variance)
    means, shares = [], []
    for length in (query_length - length_shift, target_length - length_shift):
        reduced = length / deviation
        fits = _each(math.erfc, -reduced / math.sqrt(2.0)) / 2.0
        density = 0.3989422804014327 * _each(math.exp, -0.5 * reduced * reduced)
        means.append(length * fits + deviation * density)
        shares.append(fits)
    area = means[0] * means[1] + covariance * shares[0] * shares[1]
    pair = area * karlin.k * _each(math.exp, -karlin.lambda_ * score)
    return pair * (scoring.database_residues / target_length) if scoring.database_residues else pair


def _each(function: Callable[[float], float], values: np.ndarray) -> np.ndarray:
    """A function of ``math``, which rounds otherwise than numpy's, of every value."""
    return np.fromiter(map(function, values.tolist()), np.float64, len(values))


class FiniteSizeEvalueCpu(FiniteSizeEvalue):
    __doc__ = FiniteSizeEvalue.__doc__
    backend = "cpu"

    def evalues(self, scoring: ProteinBlastScoring, score: np.ndarray, query_length: np.ndarray,
                target_length: np.ndarray) -> np.ndarray:
        return evalues(scoring, score, query_length, target_length)
