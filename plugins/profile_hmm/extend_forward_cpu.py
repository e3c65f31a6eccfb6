"""``forward-filter`` on the CPU: several targets side by side."""

from __future__ import annotations

import numpy as np
from seqloom.core.context import Context
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Records
from seqloom.core.stages import Footprint, Shape

from .chunks import Chunk, over_chunks
from .extend_forward_reference import ForwardFilter
from .forward_cpu import SPECIALS, WIDE, RoomsOfThreads, StripedOdds, forward_scores
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
        return Footprint(host=shape.threads * 4 * (rows + SPECIALS * WIDE * (shape.longest_target + 1))
                         + 24 * shape.targets)

    def run(self, context: Context, records: Records) -> Records:
        scores = np.full(len(records), -np.inf, np.float32)
        p_values, rooms_of_threads = np.ones(len(records)), RoomsOfThreads()

        def look(chunk: Chunk) -> None:
            model, rows = chunk.profile.model, chunk.rows
            with rooms_of_threads.lent() as rooms:
                found = forward_scores(StripedOdds(chunk.profile.floats), chunk.residues, chunk.begins, chunk.ends,
                                       rooms)
            fits = ~np.isnan(found)
            if not fits.all():
                context.count("overflowed", len(rows) - int(fits.sum()))
            rows = rows[fits]
            scores[rows] = found[fits]
            p = np.empty(len(rows), np.float64)
            _p_values(scores[rows], records.filter_null[rows], model.forward_tau, model.forward_lambda, p)
            p_values[rows] = p

        over_chunks(context, records, np.arange(len(records)), look)
        kept = np.flatnonzero((p_values <= context.options.largest_p("F3")) & np.isfinite(scores))
        context.count("passed", len(kept))
        return records.replace(score=scores, filter_p=p_values).take(kept)
