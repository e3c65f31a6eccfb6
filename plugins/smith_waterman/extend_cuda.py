"""``sw-traceback`` with a CUDA device: it finds where large alignments end and begin, and the host traces between.

The device notes the first best cell of each target. Read backwards from there, the last column that has the best score
bounds where any best alignment with this end begins; the host traces in that part of the target alone. Where a query's
hits are few and short, the host does it all: a launch takes longer.
"""

from dataclasses import replace

import numpy as np
from seqloom.core.context import Context
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.stretches_cpu import Stretches
from seqloom.plugins.common.workspace_cuda import WorkSize

from .extend_cpu import SmithWatermanTracebackCpu
from .recurrence_cpu import Profile, Workers
from .targets_cuda import on_device_targets, working_bytes

LEAST_CELLS = 1 << 31
"""Cells of a query with all its hits from which on the device is asked."""


class SmithWatermanTracebackCuda(SmithWatermanTracebackCpu):
    __doc__ = SmithWatermanTracebackCpu.__doc__
    backend = "cuda"
    records_on = "host"

    def tracing_footprint(self, shape: Shape) -> Footprint:
        host = super().tracing_footprint(shape).host
        need = WorkSize(shape.targets, shape.target_residues, shape.longest_target, 1, shape.longest_query)
        return Footprint(host=host, device=working_bytes(need))

    def best_parts(self, context: Context, directions: list[np.ndarray], profiles: list[Profile],
                   stretches: Stretches, said: np.ndarray | None,
                   workers: Workers) -> tuple[np.ndarray, list[Stretches]]:
        cells = sum(len(d) for d in directions) * int(stretches.lengths.sum())
        if cells >= LEAST_CELLS:
            found = _best_parts(context, directions, stretches)
            if found is not None:
                context.count("ends found on the device", len(stretches))
                return found
        return super().best_parts(context, directions, profiles, stretches, said, workers)


def _best_parts(context: Context, directions: list[np.ndarray],
                stretches: Stretches) -> tuple[np.ndarray, list[Stretches]] | None:
    """As ``best_parts``; None where the device can't."""
    everything = np.arange(len(stretches))
    scoring, longest = context.scoring, max(map(len, directions))
    with on_device_targets(context.targets, stretches, everything, 1, longest, context.device_memory,
                           context.cancellation.check) as targets:
        ends = []
        for strand in directions:
            found = targets.ends(strand, scoring, everything)
            if found is None:
                return None
            ends.append(found)
        scores = np.stack([found.score for found in ends])
        best = np.zeros(int(stretches.owners.max(initial=-1)) + 1, np.int64)
        np.maximum.at(best, stretches.owners, scores.max(axis=0))
        parts = []
        for strand, found in zip(directions, ends, strict=True):
            starts, stops = stretches.begins.copy(), stretches.ends.copy()
            mine = np.flatnonzero((found.score > 0) & (found.score == best[stretches.owners]))
            reaches = targets.reaches(strand, scoring, mine, type(found)(*(column[mine] for column in found)))
            if reaches is None:
                return None
            stops[mine] = stretches.begins[mine] + found.column[mine] + 1
            starts[mine] = stops[mine] - reaches
            parts.append(replace(stretches, begins=starts, ends=stops,
                                 starts=stretches.starts + starts - stretches.begins, whole=False))
    return scores, parts
