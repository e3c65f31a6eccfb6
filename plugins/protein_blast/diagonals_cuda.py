"""``segment-diagonals`` on CUDA devices: one pass over the resident volume for every query."""

from itertools import pairwise

import numpy as np
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks, short_switch_interval
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.diagonal_scan_cuda import (
    CEILING,
    Asked,
    can_scan,
    good_diagonals,
    query_profile,
    work_size,
    working_bytes,
)
from seqloom.plugins.common.resident_cuda import ascending, devices_for
from seqloom.plugins.common.resident_index_cuda import KIND, OnDevices
from seqloom.plugins.protein_blast.diagonals_cpu import (
    SegmentDiagonalsCpu,
    Task,
    every_diagonal,
    joined,
    scan_footprint,
    whole_diagonals,
)
from seqloom.plugins.protein_blast.scoring import read_as_query


def found_on_devices(context: Context, residues: np.ndarray, tasks: list[Task]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Place i8[n] and diagonal i8[n], for each query, where a segment scores its cutoff, and few others.

    ``residues`` are those of all queries, as they are searched; each meets all targets.
    """
    queries, targets, scoring = context.queries, context.targets, context.scoring
    asked, total = [], len(tasks)
    for number, _ in tasks:
        query = residues[queries.offsets[number] : queries.offsets[number + 1]]
        if (cutoff := scoring.filter_cutoff(number)) > 0:
            asked.append(Asked(number, query_profile(query, scoring.matrix), len(query), cutoff))
    with short_switch_interval():
        numbers, places, diagonals = good_diagonals(
            asked, targets, context.device_memory, context.cancellation.check,
            lambda count: context.advance(count, total), count=context.count, on=devices_for(context))
    bounds = np.searchsorted(numbers, np.arange(len(queries) + 1))
    found = [(places[first:last], diagonals[first:last]) for first, last in pairwise(bounds)]
    return [found[number] if scoring.filter_cutoff(number) > 0 else
            every_diagonal(int(queries.lengths[number]), targets, chosen) for number, chosen in tasks]


class SegmentDiagonalsCuda(OnDevices, SegmentDiagonalsCpu):
    __doc__ = SegmentDiagonalsCpu.__doc__
    reads = (KIND,)
    own_device = True
    flight = 8

    def footprint(self, shape: Shape) -> Footprint:
        need = work_size(shape.targets, shape.target_residues, shape.longest_target, shape.queries,
                         shape.query_residues, shape.longest_query)
        return Footprint(host=scan_footprint(shape).host, device=working_bytes(need))

    def run(self, context: Context, records: Records | None) -> Seeds:
        if records is not None or not can_scan():
            return super().run(context, records)
        residues = read_as_query(context.queries.searched())
        everything = ascending(len(context.targets))
        tasks = [(place, everything) for place in np.flatnonzero(context.scoring.valid).tolist()]
        found = found_on_devices(context, residues, tasks)

        def seeds(row: tuple[Task, tuple[np.ndarray, np.ndarray]]) -> tuple[Seeds, int]:
            return whole_diagonals(context, residues, *row, CEILING)

        return joined(context, run_tasks(context.threads, seeds, list(zip(tasks, found, strict=True))))
