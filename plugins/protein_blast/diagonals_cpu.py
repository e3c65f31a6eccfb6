"""``segment-diagonals`` on the CPU: the eight-bit scan of all targets; beyond eight bits, its finds exactly."""

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import Ragged, Records, Seeds
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.diagonal_scan import CEILING, LANES, good_diagonals
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.protein_blast.diagonals_reference import SegmentDiagonals, diagonal_rows, pairs_to_search
from seqloom.plugins.protein_blast.scoring import read_as_query
from seqloom.plugins.protein_blast.words import segment_excess


@kernel
def _scores(matrix, query, residues, offsets, places, diagonals, scores):
    """Best segment score on each diagonal (target minus query position) of the targets at ``places``."""
    for row in range(len(places)):
        target = residues[offsets[places[row]] : offsets[places[row] + 1]]
        diagonal = diagonals[row]
        best = total = 0
        for k in range(max(0, -diagonal), min(len(query), len(target) - diagonal)):
            total = max(0, total + matrix[query[k], target[k + diagonal]])
            best = max(best, total)
        scores[row] = best


def best_on_diagonals(context: Context, query: np.ndarray, places: np.ndarray, diagonals: np.ndarray) -> np.ndarray:
    """i8[n]: best segment score on each diagonal of the targets at ``places``."""
    scores = np.empty(len(places), np.int64)
    targets = context.targets
    _scores(context.scoring.matrix, query, targets.residues, targets.offsets, places, diagonals, scores)
    return scores


Task = tuple[int, np.ndarray]
"""Position of a query in its batch, and those of the targets that it is compared with."""
TOGETHER = 4096
"""Residues of the queries that are scanned together, at most: so many that what all queries need of the targets, once
for a block of columns, takes little beside the rest."""
SHARE, LEAST = 2, 1024
"""Several threads take groups of a thread's part of the residues that are left, over this, but no smaller ones than the
least: large ones first, and small ones last, so that all threads end at about the same time."""
DIAGONALS_PER_CELL = 2e-6
"""Good diagonals per pair of residues, of real proteins with default options."""
BYTES_PER_DIAGONAL = 100
LEAST_CUTOFF = 16
"""Below it a query is scanned alone: so many diagonals are good that what is noted of them takes most of the room."""


def _whole(context: Context, task: Task) -> bool:
    """Whether a query meets all targets of the volume in a scan that notes few diagonals."""
    return len(task[1]) == len(context.targets) and context.scoring.filter_cutoff(task[0]) >= LEAST_CUTOFF


def scanned_together(context: Context, tasks: Iterable[Task]) -> list[list[Task]]:
    """The tasks, in their order; neighbours that meet all targets of the volume are put together."""
    sizes, left = context.queries.lengths, context.queries.total_residues
    groups: list[list[Task]] = []
    residues, most = 0, 0
    for task in tasks:
        residues += int(sizes[task[0]])
        if groups and residues <= most and _whole(context, task) and _whole(context, groups[-1][-1]):
            groups[-1].append(task)
        else:
            groups.append([task])
            residues = int(sizes[task[0]])
            most = TOGETHER if context.threads == 1 else min(TOGETHER, max(LEAST, left // (SHARE * context.threads)))
        left -= int(sizes[task[0]])
    return groups


def promising_diagonals(context: Context, residues: np.ndarray,
                        group: list[Task]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Place i8[n] and diagonal i8[n], for each query of a group, where a segment scores its cutoff, and few others.

    ``residues`` are those of all queries, as they are searched. Places and diagonals rise as the tasks' targets do.
    """
    queries = [residues[context.queries.offsets[number] : context.queries.offsets[number + 1]] for number, _ in group]
    cutoffs = [context.scoring.filter_cutoff(number) for number, _ in group]
    chosen = group[0][1]
    if min(cutoffs) <= 0:
        return [every_diagonal(len(query), context.targets, chosen) for query in queries]
    targets = context.targets
    if len(chosen) < len(targets):
        picked = Ragged(targets.offsets, targets.searched()).take(chosen)
        targets = SequenceBatch(targets.alphabet, picked.values, picked.offsets, targets.ordinals[chosen])
    numbers, places, diagonals = good_diagonals(context.scoring.matrix, queries, targets, cutoffs, context.threads)
    bounds = np.searchsorted(numbers, np.arange(len(queries) + 1))
    return [(chosen[places[first:last]], diagonals[first:last]) for first, last in pairwise(bounds)]


class SegmentDiagonalsCpu(SegmentDiagonals):
    __doc__ = SegmentDiagonals.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        return scan_footprint(shape)

    def run(self, context: Context, records: Records | None) -> Seeds:
        residues = read_as_query(context.queries.searched())

        def of_group(group: list[Task]) -> list[tuple[Seeds, int]]:
            context.cancellation.check()
            found = promising_diagonals(context, residues, group)
            return [whole_diagonals(context, residues, *row) for row in zip(group, found, strict=True)]

        groups = scanned_together(context, pairs_to_search(context, records))
        parts = [part for parts in run_tasks(context.threads, of_group, groups) for part in parts]
        return joined(context, parts)


def whole_diagonals(context: Context, residues: np.ndarray, task: Task, found: tuple[np.ndarray, np.ndarray],
                    ceiling: int = CEILING) -> tuple[Seeds, int]:
    """Seeds of the good ones of a query's diagonals that a scan found, and how many of its targets have none.

    Args:
        residues: of all queries, as they are searched.
        found: place i8[n] and diagonal i8[n], sorted.
        ceiling: cutoffs above it were taken for it.
    """
    number, chosen = task
    queries, targets = context.queries, context.targets
    places, diagonals = found
    cutoff = context.scoring.filter_cutoff(number)
    if cutoff > ceiling:
        query = residues[queries.offsets[number] : queries.offsets[number + 1]]
        good = best_on_diagonals(context, query, places, diagonals) >= cutoff
        places, diagonals = places[good], diagonals[good]
    sizes = int(queries.lengths[number]), targets.lengths[places]
    rows = diagonal_rows(queries.ordinals[number], targets.ordinals[places], sizes, diagonals)
    return Seeds(rows), len(chosen) - (len(group_starts(places)) - 1)


def joined(context: Context, parts: list[tuple[Seeds, int]]) -> Seeds:
    """The seeds of all queries; what was left out is counted."""
    context.count("pairs left out", sum(out for _, out in parts))
    return Seeds.concat([seeds for seeds, _ in parts])


def scan_footprint(shape: Shape) -> Footprint:
    """Rows of the scan, what is noted of the queries that threads are at, and the diagonals that are found."""
    all_of_them = shape.targets * shape.query_residues + shape.queries * shape.target_residues
    found = min(all_of_them, DIAGONALS_PER_CELL * segment_excess(shape) * shape.query_residues * shape.target_residues)
    return Footprint(host=shape.threads * ((LANES + 64) * (shape.longest_query + TOGETHER) + 128 * shape.targets)
                     + int(BYTES_PER_DIAGONAL * found))


def every_diagonal(size: int, targets: SequenceBatch, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Place and diagonal of every diagonal of the targets at ``chosen``, in order."""
    counts = np.maximum(0, targets.lengths[chosen] + size - 1)
    ends = np.cumsum(counts)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    return np.repeat(chosen, counts), within + 1 - size
