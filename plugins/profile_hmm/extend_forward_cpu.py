"""``forward-filter`` on the CPU: several targets side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Records
from seqloom.core.stages import Footprint, Shape

from .chunks import Chunk, of_models, over_chunks
from .exact_math import F32
from .extend_forward_reference import ForwardFilter
from .forward_cpu import SPECIALS, WIDE, RoomsOfThreads, StripedOdds, forward_groups
from .kept_states_cpu import KEPT_BYTES, kept_states
from .p_values_cpu import exponential_p_values

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ForwardFilterCpu(ForwardFilter):
    __doc__ = ForwardFilter.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        # For each thread: odds of a model, two rows of states for several targets, and the states around the model.
        rows = (28 * 4 * 4 + 11 * 4 + 2 * 3 * WIDE) * (shape.longest_query // 4 + 2)
        kept = min(KEPT_BYTES, 4 * SPECIALS * shape.queries * (shape.target_residues + shape.targets))
        return Footprint(host=shape.threads * 4 * (rows + SPECIALS * WIDE * (shape.longest_target + 1))
                         + 24 * shape.targets + kept)

    def run(self, context: Context, records: Records) -> Records:
        scores = np.full(len(records), -np.inf, np.float32)
        self.score(context, records, np.arange(len(records)), scores)
        p_values = exponential_p_values(scores, records.filter_null,
                                        *of_models(context, records.query, "forward_tau", "forward_lambda"))
        kept = np.flatnonzero((p_values <= context.options.largest_p("F3")) & np.isfinite(scores))
        context.count("passed", len(kept))
        return records.replace(score=scores, filter_p=p_values).take(kept)

    def score(self, context: Context, records: Records, chosen: NDArray[np.int64],
              scores: NDArray[np.float32]) -> None:
        """Put raw scores of the ``chosen`` rows of records into ``scores``, f4 of all rows; −∞ where one leaves the
        range of f32. The states around the model of what passes are kept."""
        rooms_of_threads = RoomsOfThreads()
        states, largest = kept_states(context), context.options.largest_p("F3")
        taus, rates = of_models(context, records.query, "forward_tau", "forward_lambda")

        def look(chunk: Chunk) -> None:
            targets = records.target
            with rooms_of_threads.lent() as rooms:
                for matrices, part in forward_groups(StripedOdds(chunk.profile.floats), chunk.residues, chunk.begins,
                                                     chunk.ends, rooms):
                    found, rows = matrices.scores[: len(part)], chunk.rows[part]
                    fits = ~np.isnan(found)
                    if not fits.all():
                        context.count("overflowed", len(found) - int(fits.sum()))
                    scores[rows] = np.where(fits, found, F32(-np.inf))
                    p_values = exponential_p_values(scores[rows], records.filter_null[rows], taus[rows], rates[rows])
                    for n in np.flatnonzero(fits & (p_values <= largest)).tolist():
                        states.keep(chunk.query, int(targets[rows[n]]), int(matrices.lengths[n]),
                                    matrices.forward[matrices.firsts[n] :], matrices.lanes)

        over_chunks(context, records, chosen, look)
