"""``bias-filter`` on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Records

from .bias_cpu import bias_odds, bias_scores
from .chunks import Chunk, over_chunks
from .columns import by_query
from .extend_bias_reference import BiasFilter
from .index_reference import profile_of
from .p_values_cpu import gumbel_p_values

if TYPE_CHECKING:
    from numpy.typing import NDArray


class BiasFilterCpu(BiasFilter):
    __doc__ = BiasFilter.__doc__
    backend = "cpu"

    def run(self, context: Context, records: Records) -> Records:
        if not context.options.uses_bias_filter:
            context.count("passed", len(records))
            return records
        nulls, p_values = np.empty(len(records), np.float32), np.empty(len(records), np.float64)
        self.score(context, records, np.arange(len(records)), nulls)
        for query, rows in by_query(records):
            model = profile_of(context, query).model
            p_values[rows] = gumbel_p_values(records.score[rows], nulls[rows], model.msv_mu, model.msv_lambda)
        kept = np.flatnonzero(p_values <= context.options.largest_p("F1"))
        context.count("passed", len(kept))
        return records.replace(filter_null=nulls, filter_p=p_values).take(kept)

    def score(self, context: Context, records: Records, chosen: NDArray[np.int64],
              nulls: NDArray[np.float32]) -> None:
        """Put null scores of the ``chosen`` rows of records into ``nulls``, f4 of all rows."""

        def look(chunk: Chunk) -> None:
            model = chunk.profile.model
            nulls[chunk.rows] = bias_scores(bias_odds(model), model.length, chunk.residues, chunk.begins, chunk.ends)

        over_chunks(context, records, chosen, look)
