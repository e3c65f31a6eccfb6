"""``bias-filter`` on the CPU."""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Records

from .bias_cpu import bias_odds, bias_scores
from .chunks import Chunk, over_chunks
from .extend_bias_reference import BiasFilter
from .p_values_cpu import gumbel_p_values


class BiasFilterCpu(BiasFilter):
    __doc__ = BiasFilter.__doc__
    backend = "cpu"

    def run(self, context: Context, records: Records) -> Records:
        if not context.options.uses_bias_filter:
            context.count("passed", len(records))
            return records
        nulls, p_values = np.empty(len(records), np.float32), np.empty(len(records), np.float64)

        def look(chunk: Chunk) -> None:
            model, rows = chunk.profile.model, chunk.rows
            found = bias_scores(bias_odds(model), model.length, chunk.residues, chunk.begins, chunk.ends)
            nulls[rows] = found
            p_values[rows] = gumbel_p_values(records.score[rows], found, model.msv_mu, model.msv_lambda)

        over_chunks(context, records, np.arange(len(records)), look)
        kept = np.flatnonzero(p_values <= context.options.largest_p("F1"))
        context.count("passed", len(kept))
        return records.replace(filter_null=nulls, filter_p=p_values).take(kept)
