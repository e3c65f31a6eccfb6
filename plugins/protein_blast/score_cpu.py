"""``finite-size-evalue`` on the CPU: the reference's arithmetic on all alignments at once."""

import math

import numpy as np
from seqloom.plugins.protein_blast.score_reference import FiniteSizeEvalue
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring


def evalues(scoring: ProteinBlastScoring, score: np.ndarray, query_length: np.ndarray,
            target_length: np.ndarray) -> np.ndarray:
    """f8[n]: ``scoring.evalue`` of every row, bit for bit: its operations one by one, in its order."""
    gapped, karlin = scoring.gapped, scoring.gapped.karlin
    if scoring.search_space:
        powers = (-karlin.lambda_ * score + math.log(karlin.k)).tolist()
        return float(scoring.search_space) * np.array([math.exp(power) for power in powers], float)
    return gapped.evalues(score, query_length, target_length, scoring.database_residues or None)


class FiniteSizeEvalueCpu(FiniteSizeEvalue):
    __doc__ = FiniteSizeEvalue.__doc__
    backend = "cpu"

    def evalues(self, scoring: ProteinBlastScoring, score: np.ndarray, query_length: np.ndarray,
                target_length: np.ndarray) -> np.ndarray:
        return evalues(scoring, score, query_length, target_length)
