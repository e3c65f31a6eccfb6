"""``viterbi-filter`` on the CPU."""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Records
from seqloom.core.stages import Footprint, Shape

from .chunks import Chunk, over_chunks
from .extend_viterbi_reference import ViterbiFilter
from .p_values_cpu import gumbel_p_values
from .viterbi_cpu import viterbi_scores


class ViterbiFilterCpu(ViterbiFilter):
    __doc__ = ViterbiFilter.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        # Striped words of a model, which has some nodes more by padding, and a row of states, for each thread.
        return Footprint(host=shape.threads * 100 * (shape.longest_query + 64) + 24 * shape.targets)

    def run(self, context: Context, records: Records) -> Records:
        largest = context.options.largest_p("F2")
        scores, p_values = records.score.copy(), records.filter_p.copy()

        def look(chunk: Chunk) -> None:
            model, rows = chunk.profile.model, chunk.rows
            scores[rows] = viterbi_scores(chunk.profile, chunk.residues, chunk.begins, chunk.ends)
            p_values[rows] = gumbel_p_values(scores[rows], records.filter_null[rows], model.viterbi_mu,
                                             model.viterbi_lambda)

        over_chunks(context, records, np.flatnonzero(p_values > largest), look)
        kept = np.flatnonzero(p_values <= largest)
        context.count("passed", len(kept))
        return records.replace(score=scores, filter_p=p_values).take(kept)
