"""``segment-diagonals`` on the CPU: one target letter against all query positions at a time, in eight-bit lanes.

Cells are kept by diagonal: query position k and target position s share cell k − s, so a row of the recurrence is one
saturating addition at a place that moves by one cell per target letter, and nothing is shifted. Lanes hold score − 128.
A cell's diagonal is noted when it exceeds the cutoff, which few do; its best score is then found exactly.
"""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.jit import kernel
from seqloom.core.records import Records, Seeds
from seqloom.core.simd import BYTE_LANES, any_greater, load, splat, store
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.protein_blast.diagonals_reference import SegmentDiagonals, diagonal_rows, pairs_to_search
from seqloom.plugins.protein_blast.scoring import read_as_query

LANES = BYTE_LANES


@kernel
def _mark(profile, width, target, below, cells, marked):
    """Set ``marked`` for every diagonal on which a segment scores more than ``below`` (score − 128, i1).

    profile: i1[letters * width], scores of each letter along the query, padded with −128 to ``width``, a multiple of
    LANES. cells: i1[width + len(target)], marked: bool of the same length; diagonal d at len(target) − 1 − d.
    """
    floor = np.int8(-128)
    cells[:] = floor
    limit = splat(np.int8(below), LANES)
    last = len(target) - 1
    for place in range(len(target)):
        row = np.int64(target[place]) * width
        base = last - place
        for k in range(0, width, LANES):
            score = load(cells, base + k, LANES) + load(profile, row + k, LANES)
            store(cells, base + k, score)
            if any_greater(score, limit):
                for lane in range(base + k, base + k + LANES):
                    if cells[lane] > below:
                        marked[lane] = True


@kernel
def _best_on(matrix, query, target, diagonal):
    """Best segment score on one diagonal."""
    best = total = 0
    first = max(0, -diagonal)
    for k in range(first, min(len(query), len(target) - diagonal)):
        total = max(0, total + matrix[query[k], target[k + diagonal]])
        best = max(best, total)
    return best


@kernel
def _find(matrix, profile, width, query, residues, offsets, chosen, cutoff, cells, marked, found):
    """Write (target position, diagonal, score) of every diagonal that reaches the cutoff; returns how many there are.

    found: i8[capacity, 3]; rows beyond the capacity are counted and not written.
    """
    count = 0
    below = min(cutoff, 255) - 129
    for position in chosen:
        target = residues[offsets[position] : offsets[position + 1]]
        span = width + len(target)
        marked[:span] = cutoff <= 0
        if cutoff > 0:
            _mark(profile, width, target, below, cells[:span], marked)
        for cell in range(len(query) + len(target) - 2, -1, -1):
            if marked[cell]:
                diagonal = len(target) - 1 - cell
                score = _best_on(matrix, query, target, diagonal)
                if score >= cutoff:
                    if count < len(found):
                        found[count, 0], found[count, 1], found[count, 2] = position, diagonal, score
                    count += 1
    return count


def query_profile(scores: np.ndarray) -> tuple[np.ndarray, int]:
    """i1[letters * width] and width: scores[letter, position] clipped to eight bits and padded to whole vectors."""
    letters, size = scores.shape
    width = -(-max(1, size) // LANES) * LANES
    profile = np.full((letters, width), -128, np.int8)
    profile[:, :size] = np.clip(scores, -128, 127)
    return profile.reshape(-1), width


class SegmentDiagonalsCpu(SegmentDiagonals):
    __doc__ = SegmentDiagonals.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=64 * shape.longest_query + 2 * shape.longest_target + 200 * shape.targets)

    def run(self, context: Context, records: Records | None) -> Seeds:
        scoring, queries, targets = context.scoring, context.queries, context.targets
        letters = read_as_query(queries.searched())
        longest = int(targets.lengths.max(initial=0)) + int(queries.lengths.max(initial=0)) + LANES
        cells, marked = np.empty(longest, np.int8), np.empty(longest, np.bool_)
        parts = []
        for place, chosen in pairs_to_search(context, records):
            context.cancellation.check()
            query = letters[queries.offsets[place] : queries.offsets[place + 1]]
            profile, width = query_profile(scoring.matrix[query].T)
            cutoff = scoring.ungapped_cutoff(place)
            found = np.empty((4 * len(chosen) + 16, 3), np.int64)
            while True:
                count = _find(scoring.matrix, profile, width, query, targets.residues, targets.offsets, chosen, cutoff,
                              cells, marked, found)
                if count <= len(found):
                    break
                found = np.empty((count, 3), np.int64)
            position, diagonal, score = found[:count].T
            sizes = len(query), targets.lengths[position]
            parts.append(Seeds(diagonal_rows(queries.ordinals[place], targets.ordinals[position], sizes, diagonal,
                                             score)))
        return Seeds.concat(parts)
