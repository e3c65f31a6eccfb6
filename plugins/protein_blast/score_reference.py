"""E-values and bit scores of protein alignments, and the E-value threshold."""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.distinct import ranked
from seqloom.core.records import Alignments, Records
from seqloom.core.stages import ScoreStage
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring


class FiniteSizeEvalue(ScoreStage):
    """Bit scores and finite-size E-values (Park et al. 2012); drops what is above the E-value limit."""

    name = "finite-size-evalue"
    backend = "reference"
    takes = (Alignments,)
    gives = Alignments
    scoring = ProteinBlastScoring

    def run(self, context: Context, records: Records) -> Alignments:
        assert isinstance(records, Alignments)
        scoring, queries, targets = context.scoring, context.queries, context.targets
        expected = self.evalues(scoring, records.score, queries.lengths[queries.locate(records.query)],
                                targets.lengths[targets.locate(records.target)])
        scores, places = ranked(records.score)
        bits = np.array([scoring.bit_score(score) for score in scores.tolist()], float)[places]
        return records.replace(evalue=expected, bit_score=bits).take(expected <= scoring.evalue_limit)

    def evalues(self, scoring: ProteinBlastScoring, score: np.ndarray, query_length: np.ndarray,
                target_length: np.ndarray) -> np.ndarray:
        """f8[n]: E-values of n raw scores, one by one."""
        rows = zip(score.tolist(), query_length.tolist(), target_length.tolist(), strict=True)
        return np.array([scoring.evalue(*row) for row in rows], float)
