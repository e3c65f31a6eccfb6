"""Bits and E-values of exact Smith–Waterman scores."""

from typing import ClassVar

import numpy as np
from seqloom.core.context import Context, Scoring
from seqloom.core.distinct import distinct
from seqloom.core.records import Hits, Pairs, Records
from seqloom.core.stages import ScoreStage

from .scoring import SmithWatermanScoring


class SmithWatermanStatistics(ScoreStage):
    """Turns scored pairs into hits with bits and E-value; drops those above the E-value limit.

    Statistics are BLAST's (gapped Karlin–Altschul parameters, finite-size correction). Where none are known for the
    matrix and gap costs, bits and E-value are absent and nothing is dropped.
    """

    name: ClassVar[str] = "sw-statistics"
    takes: ClassVar[tuple[type[Records] | None, ...]] = (Pairs,)
    gives: ClassVar[type[Records]] = Hits
    scoring: ClassVar[type[Scoring]] = SmithWatermanScoring

    def run(self, context: Context, records: Records) -> Hits:
        scoring = context.scoring
        evalues = np.empty(len(records), np.float64)
        lengths = context.targets.lengths[context.targets.locate(records.target)]
        for query in distinct(records.query).tolist():
            mine = records.query == query
            length = int(context.queries.lengths[context.queries.locate(query)])
            evalues[mine] = scoring.evalues(records.score[mine], length, lengths[mine])
        hits = Hits({"query": records.query, "target": records.target, "score": records.score,
                     "bit_score": scoring.bit_scores(records.score), "evalue": evalues})
        return hits.take(~(evalues > scoring.largest_evalue))
