"""``forward-filter`` on the CPU: several targets side by side."""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Records
from seqloom.core.stages import Footprint, Shape

from .chunks import Chunk, over_chunks
from .extend_forward_reference import ForwardFilter
from .forward_cpu import SPECIALS, WIDE, RoomsOfThreads, StripedOdds, forward_groups
from .kept_states_cpu import KEPT_BYTES, kept_states
from .p_values_cpu import exponential


@kernel
def _p_values(scores, nulls, tau, rate, p_values):
    for n in range(len(scores)):
        p_values[n] = exponential(scores[n], nulls[n], tau, rate)


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
        p_values, rooms_of_threads = np.ones(len(records)), RoomsOfThreads()
        states, largest = kept_states(context), context.options.largest_p("F3")

        def look(chunk: Chunk) -> None:
            model, targets = chunk.profile.model, records.target
            with rooms_of_threads.lent() as rooms:
                for matrices, chosen in forward_groups(StripedOdds(chunk.profile.floats), chunk.residues, chunk.begins,
                                                       chunk.ends, rooms):
                    found = matrices.scores[: len(chosen)]
                    fits = ~np.isnan(found)
                    if not fits.all():
                        context.count("overflowed", len(found) - int(fits.sum()))
                    rows, p = chunk.rows[chosen[fits]], np.empty(int(fits.sum()), np.float64)
                    scores[rows] = found[fits]
                    _p_values(scores[rows], records.filter_null[rows], model.forward_tau, model.forward_lambda, p)
                    p_values[rows] = p
                    for n in np.flatnonzero(fits & (p_values[chunk.rows[chosen]] <= largest)).tolist():
                        states.keep(chunk.query, int(targets[chunk.rows[chosen[n]]]), int(matrices.lengths[n]),
                                    matrices.forward[matrices.firsts[n] :], matrices.lanes)

        over_chunks(context, records, np.arange(len(records)), look)
        kept = np.flatnonzero((p_values <= largest) & np.isfinite(scores))
        context.count("passed", len(kept))
        return records.replace(score=scores, filter_p=p_values).take(kept)
