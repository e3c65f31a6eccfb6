"""Filter: the best gapped path. Pairs that MSV already found significant are not asked again."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Pairs, Records
from seqloom.core.stages import ExtendStage

from .columns import PAIR_COLUMNS, by_query, residues_of
from .index_reference import KIND, profile_of
from .p_values import bits, gumbel_survival
from .scoring import HmmScoring, ProfileScoring
from .viterbi_reference import viterbi_score


class ViterbiFilter(ExtendStage):
    """Pairs with P ≤ F2 by their Viterbi score, or by MSV before."""

    name = "viterbi-filter"
    takes = (Pairs,)
    gives = Pairs
    gives_order = None
    reads: ClassVar[tuple[str, ...]] = (KIND,)
    columns = PAIR_COLUMNS
    scoring: ClassVar[type[ProfileScoring]] = HmmScoring
    counts_queries = True

    def run(self, context: Context, records: Records) -> Records:
        largest = context.options.largest_p("F2")
        scores, p_values = records.score.copy(), records.filter_p.copy()
        for query, all_rows in by_query(records):
            rows = all_rows[p_values[all_rows] > largest]
            profile = profile_of(context, query)
            model = profile.model
            for row, target in zip(rows, residues_of(context.targets, records.target[rows]), strict=True):
                context.advance(1, len(records))
                scores[row] = viterbi_score(profile.words, target)
                score = float(bits(scores[row], records.filter_null[row]))
                p_values[row] = gumbel_survival(score, model.viterbi_mu, model.viterbi_lambda)
        kept = np.flatnonzero(p_values <= largest)
        context.count("passed", len(kept))
        return records.replace(score=scores, filter_p=p_values).take(kept)
