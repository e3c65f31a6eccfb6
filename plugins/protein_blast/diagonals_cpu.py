"""``segment-diagonals`` on the CPU: the eight-bit scan over interleaved targets; exact scores where it finds any."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.jit import kernel
from seqloom.core.records import Records, Seeds
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.lanes import KIND, interleaved
from seqloom.plugins.common.scan import LANES, good_diagonals, profile_tables
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


class SegmentDiagonalsCpu(SegmentDiagonals):
    __doc__ = SegmentDiagonals.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=(LANES + 64) * shape.longest_query + 16 * shape.targets + 2 * shape.target_letters)

    def run(self, context: Context, records: Records | None) -> Seeds:
        scoring, queries, targets = context.scoring, context.queries, context.targets
        letters = read_as_query(queries.searched())
        parts = []
        for number, chosen in pairs_to_search(context, records):
            context.cancellation.check()
            query = letters[queries.offsets[number] : queries.offsets[number + 1]]
            cutoff = scoring.filter_cutoff(number)
            if cutoff > 0:
                lanes = _lanes(context, chosen)
                places, diagonals = good_diagonals(profile_tables(scoring.matrix[query]), len(query), lanes, cutoff)
                places = chosen[places]
            else:
                places, diagonals = _every_diagonal(len(query), targets, chosen)
            scores = np.empty(len(places), np.int64)
            _scores(scoring.matrix, query, targets.residues, targets.offsets, places, diagonals, scores)
            kept = scores >= cutoff
            places, diagonals, scores = places[kept], diagonals[kept], scores[kept]
            context.count("pairs left out", len(chosen) - len(np.unique(places)))
            sizes = len(query), targets.lengths[places]
            parts.append(Seeds(diagonal_rows(queries.ordinals[number], targets.ordinals[places], sizes, diagonals,
                                             scores)))
        return Seeds.concat(parts)


def _lanes(context: Context, chosen: np.ndarray) -> Index:
    """The interleaved targets at ``chosen``: the volume's own index for all of them, else made here."""
    targets = context.targets
    made = next((index for index in context.indexes.values() if index.kind == KIND), None)
    if len(chosen) == len(targets):
        return made or interleaved(targets)
    parts = [targets[place] for place in chosen.tolist()]
    offsets = np.concatenate([[0], np.cumsum([len(p) for p in parts])]).astype(np.int64)
    residues = np.concatenate(parts) if parts else np.empty(0, np.uint8)
    return interleaved(SequenceBatch(targets.alphabet, residues, offsets, np.arange(len(parts))))


def _every_diagonal(size: int, targets: SequenceBatch, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Place and diagonal of every diagonal of the targets at ``chosen``, in order."""
    counts = np.maximum(0, targets.lengths[chosen] + size - 1)
    ends = np.cumsum(counts)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    return np.repeat(chosen, counts), within + 1 - size
