"""E-values and bit scores of nucleotide alignments, and the E-value threshold (Altschul et al. 1997)."""

from __future__ import annotations

from typing import Any

from seqloom.core.context import Context
from seqloom.core.records import Alignments, Records
from seqloom.core.stages import ScoreStage
from seqloom.plugins.common.rank_reference import covering
from seqloom.plugins.nucleotide_blast.scoring import NucleotideBlastOptions, NucleotideScoring


class SearchSpaceEvalue(ScoreStage):
    """Bit scores, and E-values from the effective search space; drops what is above the E-value limit.

    As in the peer, targets are ranked without ungapped segments that cover too little of the query.
    """

    name = "search-space-evalue"
    scoring = NucleotideScoring
    uses = ("qcov_hsp_perc",)

    @classmethod
    def applies(cls, options: Any) -> bool:
        """Where final alignments are made before."""
        return not (isinstance(options, NucleotideBlastOptions) and options.winnows() and not options.ungapped)

    def run(self, context: Context, records: Records) -> Alignments:
        assert isinstance(records, Alignments)
        scoring = context.scoring
        places = context.queries.locate(records.query)
        frames = records.query_frame * records.target_frame
        evalues = scoring.evalues(records.score, places, frames)
        bits = scoring.bit_scores(records.score, places, frames)
        kept = evalues <= context.options.evalue
        if context.options.ungapped:
            kept &= covering(context, records)
        return records.replace(evalue=evalues, bit_score=bits).take(kept)
