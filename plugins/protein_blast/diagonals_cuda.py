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
    device_footprint,
    good_diagonals,
    query_profile,
)
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.common.resident_cuda import ascending, devices_for, in_parts
from seqloom.plugins.common.resident_index_cuda import KIND, OnDevices
from seqloom.plugins.protein_blast.diagonals_cpu import (
    SegmentDiagonalsCpu,
    Task,
    every_diagonal,
    joined,
    scan_footprint,
    whole_diagonals,
)
from seqloom.plugins.protein_blast.diagonals_reference import diagonal_rows
from seqloom.plugins.protein_blast.scoring import read_as_query


def found_on_devices(context: Context, residues: np.ndarray, tasks: list[Task]
                     ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number i8[n] of the query, place i8[n] and diagonal i8[n] where a segment scores a query's cutoff, and few
    others; none of queries whose cutoff is 0.

    ``residues`` are those of all queries, as they are searched; each meets all targets.
    """
    queries, targets, scoring = context.queries, context.targets, context.scoring
    asked, total = [], len(tasks)
    for number, _ in tasks:
        query = residues[queries.offsets[number] : queries.offsets[number + 1]]
        if (cutoff := scoring.filter_cutoff(number)) > 0:
            asked.append(Asked(number, query_profile(query, scoring.matrix), len(query), cutoff))
    with short_switch_interval():
        return good_diagonals(
            asked, targets, context.device_memory, context.cancellation.check,
            lambda count: context.advance(count, total), count=context.count, on=devices_for(context),
            by_parts=in_parts(context))


def of_each_query(context: Context, tasks: list[Task], found: tuple[np.ndarray, np.ndarray, np.ndarray]
                  ) -> list[tuple[np.ndarray, np.ndarray]]:
    """Places and diagonals for each of the tasks, from ``found_on_devices``."""
    queries, (numbers, places, diagonals) = context.queries, found
    bounds = np.searchsorted(numbers, np.arange(len(queries) + 1))
    own = [(places[first:last], diagonals[first:last]) for first, last in pairwise(bounds)]
    return [own[number] if context.scoring.filter_cutoff(number) > 0 else
            every_diagonal(int(queries.lengths[number]), context.targets, chosen) for number, chosen in tasks]


class SegmentDiagonalsCuda(OnDevices, SegmentDiagonalsCpu):
    __doc__ = SegmentDiagonalsCpu.__doc__
    reads = (KIND,)
    own_device = True
    flight = 8

    def footprint(self, shape: Shape) -> Footprint:
        return device_footprint(shape, scan_footprint(shape).host)

    def run(self, context: Context, records: Records | None) -> Seeds:
        if records is not None or not can_scan():
            return super().run(context, records)
        residues = read_as_query(context.queries.searched())
        everything = ascending(len(context.targets))
        tasks = [(place, everything) for place in np.flatnonzero(context.scoring.valid).tolist()]
        found = found_on_devices(context, residues, tasks)
        if all(0 < context.scoring.filter_cutoff(number) <= CEILING for number, _ in tasks):
            return self._all_good(context, len(tasks), *found)

        def seeds(row: tuple[Task, tuple[np.ndarray, np.ndarray]]) -> tuple[Seeds, int]:
            return whole_diagonals(context, residues, *row, CEILING)

        own = of_each_query(context, tasks, found)
        return joined(context, run_tasks(context.threads, seeds, list(zip(tasks, own, strict=True))))

    def _all_good(self, context: Context, asked: int, numbers: np.ndarray, places: np.ndarray,
                  diagonals: np.ndarray) -> Seeds:
        """What is found of so many queries, all of it good, at once: volumes may be small and queries many."""
        queries, targets = context.queries, context.targets
        context.count("pairs left out", asked * len(targets) - (len(group_starts(numbers, places)) - 1))
        sizes = queries.lengths[numbers], targets.lengths[places]
        return Seeds(diagonal_rows(queries.ordinals[numbers], targets.ordinals[places], sizes, diagonals))
