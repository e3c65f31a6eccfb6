"""E-values and bit scores of protein alignments, and the E-value threshold."""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
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
        query_lengths = queries.lengths[queries.locate(records.query)]
        target_lengths = targets.lengths[targets.locate(records.target)]
        rows = zip(records.score.tolist(), query_lengths.tolist(), target_lengths.tolist(), strict=True)
        evalues = np.array([scoring.evalue(*row) for row in rows], float)
        bits = np.array([scoring.bit_score(score) for score in records.score.tolist()], float)
        return records.replace(evalue=evalues, bit_score=bits).take(evalues <= scoring.evalue_limit)
