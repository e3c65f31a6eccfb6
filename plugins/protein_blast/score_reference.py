"""E-values and bit scores of protein alignments, and the E-value threshold.

Scores with fractions, as adjusted scores have them, count with these for the E-value; what is reported is the nearest
whole score and its bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from seqloom.core.context import Context
from seqloom.core.distinct import ranked
from seqloom.core.records import Alignments, Records
from seqloom.core.stages import ScoreStage
from seqloom.plugins.common.rank_reference import covering
from seqloom.plugins.protein_blast.options import BlastpOptions
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring

RAW_SCORE = next(column for column in Alignments.columns if column.name == "score")


class FiniteSizeEvalue(ScoreStage):
    """Bit scores and E-values, finite-size ones (Park et al. 2012) with gaps; drops what is above the E-value limit."""

    name = "finite-size-evalue"
    backend = "reference"
    takes = (Alignments,)
    gives = Alignments
    scoring = ProteinBlastScoring
    uses = ("qcov_hsp_perc",)

    @classmethod
    def applies(cls, options: Any) -> bool:
        """Where final alignments are made before."""
        return not (isinstance(options, BlastpOptions) and options.winnows() and not options.ungapped)

    def run(self, context: Context, records: Records) -> Alignments:
        assert isinstance(records, Alignments)
        scoring, queries, targets = context.scoring, context.queries, context.targets
        if scoring.ungapped:
            return self._segments(context, records)
        expected = self.evalues(scoring, records.score, queries.lengths[queries.locate(records.query)],
                                targets.lengths[targets.locate(records.target)])
        if records.score.dtype.kind == "f":
            records = records.replace([RAW_SCORE], score=np.floor(records.score + 0.5))
        scores, places = ranked(records.score)
        bits = np.array([scoring.bit_score(score) for score in scores.tolist()], float)[places]
        return records.replace(evalue=expected, bit_score=bits).take(expected <= scoring.evalue_limit)

    def _segments(self, context: Context, records: Alignments) -> Alignments:
        """Of ungapped segments, by the statistics of each query's own composition.

        As in the peer, targets are ranked without what covers too little of the query.
        """
        scoring = context.scoring
        rows = list(zip(context.queries.locate(records.query).tolist(), records.score.tolist(), strict=True))
        expected = np.array([scoring.segment_evalue(place, score) for place, score in rows], float)
        bits = np.array([scoring.own(place).bit_score(score) for place, score in rows], float)
        kept = (expected <= scoring.evalue_limit) & covering(context, records)
        return records.replace(evalue=expected, bit_score=bits).take(kept)

    def evalues(self, scoring: ProteinBlastScoring, score: np.ndarray, query_length: np.ndarray,
                target_length: np.ndarray) -> np.ndarray:
        """f8[n]: E-values of n raw scores, one by one."""
        rows = zip(score.tolist(), query_length.tolist(), target_length.tolist(), strict=True)
        return np.array([scoring.evalue(*row) for row in rows], float)
