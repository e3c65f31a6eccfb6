"""``bias-filter`` on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.context import Context
from seqloom.core.distinct import distinct, ranked
from seqloom.core.engine.threads import run_tasks
from seqloom.core.records import Records

from .bias_cpu import Mixtures, bias_scores
from .chunks import of_models
from .extend_bias_reference import BiasFilter
from .index_reference import profile_of
from .p_values_cpu import gumbel_p_values

if TYPE_CHECKING:
    from numpy.typing import NDArray


CHUNK_RESIDUES = 1 << 22
"""Of the targets of the pairs that are scored between two looks at the cancellation flag: a tenth of a second."""
_PARTS_PER_THREAD = 4


class BiasFilterCpu(BiasFilter):
    __doc__ = BiasFilter.__doc__
    backend = "cpu"

    def run(self, context: Context, records: Records) -> Records:
        if not context.options.uses_bias_filter:
            context.count("passed", len(records))
            return records
        nulls = np.empty(len(records), np.float32)
        self.score(context, records, np.arange(len(records)), nulls)
        p_values = gumbel_p_values(records.score, nulls, *of_models(context, records.query, "msv_mu", "msv_lambda"))
        kept = np.flatnonzero(p_values <= context.options.largest_p("F1"))
        context.count("passed", len(kept))
        return records.replace(filter_null=nulls, filter_p=p_values).take(kept)

    def score(self, context: Context, records: Records, chosen: NDArray[np.int64],
              nulls: NDArray[np.float32]) -> None:
        """Put null scores of the ``chosen`` rows of records into ``nulls``, f4 of all rows."""
        if not len(chosen):
            return
        numbers, models = ranked(records.query[chosen])
        mixtures = Mixtures.of([profile_of(context, number).model for number in numbers.tolist()])
        targets, residues = context.targets, context.targets.searched()
        places = targets.locate(records.target[chosen])
        begins, ends = targets.offsets[places], targets.offsets[places + 1]
        # Whatever their models, pairs with targets of about the same length go side by side.
        order = np.argsort(begins - ends, kind="stable")
        sums = np.cumsum((ends - begins)[order])
        parts = max(1, -(-int(sums[-1]) // CHUNK_RESIDUES), _PARTS_PER_THREAD * context.threads * (context.threads > 1))
        cuts = np.searchsorted(sums, np.arange(1, parts) * int(sums[-1]) // parts, side="right")

        def look(part: NDArray[np.int64]) -> None:
            nulls[chosen[part]] = bias_scores(mixtures, models[part], residues, begins[part], ends[part])
            context.advance(len(part), len(chosen))

        run_tasks(context.threads, look, [part for part in np.split(order, distinct(cuts)) if len(part)])
