"""``segment-diagonals`` on the CPU: the eight-bit scan of queued targets; beyond eight bits, its finds exactly."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.jit import kernel
from seqloom.core.records import Records, Seeds
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, Shape
from seqloom.core.threads import in_turn
from seqloom.plugins.common.diagonal_scan import CEILING, LANES, good_diagonals
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.common.lane_queues import KIND, queued
from seqloom.plugins.protein_blast.diagonals_reference import SegmentDiagonals, diagonal_rows, pairs_to_search
from seqloom.plugins.protein_blast.scoring import read_as_query


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


def promising_diagonals(context: Context, query: np.ndarray, chosen: np.ndarray,
                        cutoff: int) -> tuple[np.ndarray, np.ndarray]:
    """Place i8[n] and diagonal i8[n] in the targets at ``chosen`` where a segment scores ``cutoff``, and few others.

    Both rise as ``chosen`` does.
    """
    if cutoff <= 0:
        return _every_diagonal(len(query), context.targets, chosen)
    whole = len(chosen) == len(context.targets)
    queues = context.index(KIND) if whole else queued(context.targets, chosen)
    places, diagonals = good_diagonals(context.scoring.matrix, query, queues, cutoff)
    return chosen[places], diagonals


class SegmentDiagonalsCpu(SegmentDiagonals):
    __doc__ = SegmentDiagonals.__doc__
    backend = "cpu"
    reads = (KIND,)

    def footprint(self, shape: Shape) -> Footprint:
        return scan_footprint(shape)

    def run(self, context: Context, records: Records | None) -> Seeds:
        queries, targets = context.queries, context.targets
        letters = read_as_query(queries.searched())

        def of_query(task: tuple[int, np.ndarray]) -> tuple[Seeds, int]:
            number, chosen = task
            context.cancellation.check()
            query = letters[queries.offsets[number] : queries.offsets[number + 1]]
            cutoff = context.scoring.filter_cutoff(number)
            places, diagonals = promising_diagonals(context, query, chosen, cutoff)
            if cutoff > CEILING:
                good = best_on_diagonals(context, query, places, diagonals) >= cutoff
                places, diagonals = places[good], diagonals[good]
            sizes = len(query), targets.lengths[places]
            rows = diagonal_rows(queries.ordinals[number], targets.ordinals[places], sizes, diagonals)
            return Seeds(rows), len(chosen) - (len(group_starts(places)) - 1)

        parts = in_turn(context.threads, of_query, list(pairs_to_search(context, records)))
        context.count("pairs left out", sum(out for _, out in parts))
        return Seeds.concat([seeds for seeds, _ in parts])


def scan_footprint(shape: Shape) -> Footprint:
    """Rows of the scan, and what is noted of the queries that threads are at."""
    return Footprint(host=shape.threads * (8 * LANES * shape.longest_query + 64 * shape.targets))


def _every_diagonal(size: int, targets: SequenceBatch, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Place and diagonal of every diagonal of the targets at ``chosen``, in order."""
    counts = np.maximum(0, targets.lengths[chosen] + size - 1)
    ends = np.cumsum(counts)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    return np.repeat(chosen, counts), within + 1 - size
