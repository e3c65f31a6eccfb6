"""``viterbi-filter`` on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Records
from seqloom.core.stages import Footprint, Shape

from .chunks import Chunk, of_models, over_chunks
from .extend_viterbi_reference import ViterbiFilter
from .p_values_cpu import gumbel_p_values
from .viterbi_cpu import viterbi_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ViterbiFilterCpu(ViterbiFilter):
    __doc__ = ViterbiFilter.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        # Striped words of a model, which has some nodes more by padding, and a row of states, for each thread.
        return Footprint(host=shape.threads * 100 * (shape.longest_query + 64) + 24 * shape.targets)

    def run(self, context: Context, records: Records) -> Records:
        largest = context.options.largest_p("F2")
        scores, p_values = records.score.copy(), records.filter_p.copy()
        chosen = np.flatnonzero(p_values > largest)
        self.score(context, records, chosen, scores)
        p_values[chosen] = gumbel_p_values(
            scores[chosen], records.filter_null[chosen],
            *of_models(context, records.query[chosen], "viterbi_mu", "viterbi_lambda"))
        kept = np.flatnonzero(p_values <= largest)
        context.count("passed", len(kept))
        return records.replace(score=scores, filter_p=p_values).take(kept)

    def score(self, context: Context, records: Records, chosen: NDArray[np.int64],
              scores: NDArray[np.float32]) -> None:
        """Put raw scores of the ``chosen`` rows of records into ``scores``, f4 of all rows."""

        def look(chunk: Chunk) -> None:
            scores[chunk.rows] = viterbi_scores(chunk.profile, chunk.residues, chunk.begins, chunk.ends)

        over_chunks(context, records, chosen, look)
