"""Filter: the MSV score again, against a null model that knows the composition of the model."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Pairs, Records
from seqloom.core.stages import ExtendStage

from .bias_reference import bias_odds, bias_score
from .columns import PAIR_COLUMNS, by_query, residues_of
from .index_reference import KIND, profile_of
from .p_values import bits, gumbel_survival
from .scoring import HmmScoring, ProfileScoring


class BiasFilter(ExtendStage):
    """Pairs whose MSV score still reaches P ≤ F1 over biased composition; idle with --nobias and --max."""

    name = "bias-filter"
    takes = (Pairs,)
    gives = Pairs
    gives_order = None
    reads: ClassVar[tuple[str, ...]] = (KIND,)
    columns = PAIR_COLUMNS
    scoring: ClassVar[type[ProfileScoring]] = HmmScoring
    counts_queries = True

    def run(self, context: Context, records: Records) -> Records:
        if not context.options.uses_bias_filter:
            context.count("passed", len(records))
            return records
        nulls, p_values = records.filter_null.copy(), records.filter_p.copy()
        for query, rows in by_query(records):
            model = profile_of(context, query).model
            odds = bias_odds(model)
            for row, target in zip(rows, residues_of(context.targets, records.target[rows]), strict=True):
                context.advance(1, len(records))
                nulls[row] = bias_score(odds, model.length, target)
                score = float(bits(records.score[row], nulls[row]))
                p_values[row] = gumbel_survival(score, model.msv_mu, model.msv_lambda)
        kept = np.flatnonzero(p_values <= context.options.largest_p("F1"))
        context.count("passed", len(kept))
        return records.replace(filter_null=nulls, filter_p=p_values).take(kept)
