"""``segment-diagonals`` on the CPU: one target letter against all query positions at a time, in eight-bit lanes.

The query is striped over the lanes (Farrar 2007): position k sits in vector k mod Q of lane k div Q, so the diagonal
step of a whole row is from each vector to the next, and only the last one has to move its lanes. Lanes hold
score − 128. A cell's diagonal is noted when it exceeds the cutoff, which few do; its best score is then found exactly.
"""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.jit import kernel
from seqloom.core.records import Records, Seeds
from seqloom.core.simd import BYTE_LANES, aligned, greater_lanes, load, lowest_bit, maximum, shift_in, splat, store
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.protein_blast.diagonals_reference import SegmentDiagonals, diagonal_rows, pairs_to_search
from seqloom.plugins.protein_blast.scoring import read_as_query

LANES = BYTE_LANES


@kernel
def _note(above, place, first, stripes, marked, noted, count):
    """Note the diagonals of the lanes in ``above`` that aren't noted yet; returns how many are."""
    while above:
        lane = np.int64(lowest_bit(above))
        diagonal = place - lane * stripes - first
        cell = diagonal + stripes * LANES - 1
        if not marked[cell]:
            marked[cell] = True
            noted[count] = diagonal
            count += 1
        above &= above - np.uint64(1)
    return count


@kernel
def _mark(profile, stripes, target, below, cells, marked, noted):
    """Write to ``noted`` every diagonal on which a segment scores more than ``below`` (score − 128, i1); their number.

    Two target letters are taken at a time, which saves half of the traffic with ``cells``.

    profile: i1[letters * stripes * LANES], scores of each letter along the striped query, −128 behind its end.
    cells: i1[stripes * LANES], working space. marked: bool, all False, target minus query position d at
    d + stripes * LANES − 1; left marked. noted: i8[stripes * LANES + len(target)].
    """
    floor = np.int8(-128)
    limit = splat(np.int8(below), LANES)
    for stripe in range(stripes):
        store(cells, stripe * LANES, splat(floor, LANES))
    end = stripes * LANES
    last = end - LANES
    count = 0
    for place in range(0, len(target) - 1, 2):
        row = np.int64(target[place]) * end
        next_row = np.int64(target[place + 1]) * end
        before = shift_in(load(cells, last, LANES), floor)
        # The first letter's last vector is needed before the loop comes to it, unless it is the only one.
        left = before if stripes == 1 else load(cells, max(0, last - LANES), LANES)
        behind = shift_in(left + load(profile, row + last, LANES), floor)
        for stripe in range(0, end, LANES):
            score = before + load(profile, row + stripe, LANES)
            next_score = behind + load(profile, next_row + stripe, LANES)
            before = load(cells, stripe, LANES)
            behind = score
            store(cells, stripe, next_score)
            above = greater_lanes(maximum(score, next_score), limit)
            if above:
                first = stripe // LANES
                count = _note(greater_lanes(score, limit), place, first, stripes, marked, noted, count)
                count = _note(greater_lanes(next_score, limit), place + 1, first, stripes, marked, noted, count)
    if len(target) % 2:
        place = len(target) - 1
        row = np.int64(target[place]) * end
        before = shift_in(load(cells, last, LANES), floor)
        for stripe in range(0, end, LANES):
            score = before + load(profile, row + stripe, LANES)
            before = load(cells, stripe, LANES)
            count = _note(greater_lanes(score, limit), place, stripe // LANES, stripes, marked, noted, count)
    return count


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
def _find(matrix, profile, stripes, query, residues, offsets, chosen, cutoff, cells, marked, noted, found):
    """Write (target position, diagonal, score) of every diagonal that reaches the cutoff; returns how many there are.

    found: i8[capacity, 3]; rows beyond the capacity are counted and not written.
    """
    count = 0
    end = stripes * LANES
    below = min(cutoff, 255) - 129
    for position in chosen:
        target = residues[offsets[position] : offsets[position + 1]]
        if cutoff > 0:
            several = _mark(profile, stripes, target, below, cells, marked, noted)
            for place in range(several):
                marked[noted[place] + end - 1] = False
            noted[:several].sort()
        else:
            several = max(0, len(query) + len(target) - 1)
            for place in range(several):
                noted[place] = place + 1 - len(query)
        for place in range(several):
            diagonal = noted[place]
            score = _best_on(matrix, query, target, diagonal)
            if score >= cutoff:
                if count < len(found):
                    found[count, 0], found[count, 1], found[count, 2] = position, diagonal, score
                count += 1
    return count


def striped_profile(scores: np.ndarray) -> tuple[np.ndarray, int]:
    """i1 profile for ``_mark`` and its number of vectors per letter, from scores[letter, position] (clipped)."""
    letters, size = scores.shape
    stripes = max(1, -(-size // LANES))
    padded = np.full((letters, LANES * stripes), -128, np.int8)
    padded[:, :size] = np.clip(scores, -128, 127)
    profile = aligned(padded.size, np.int8)
    profile.reshape(letters, stripes, LANES)[:] = padded.reshape(letters, LANES, stripes).transpose(0, 2, 1)
    return profile, stripes


class SegmentDiagonalsCpu(SegmentDiagonals):
    __doc__ = SegmentDiagonals.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=64 * shape.longest_query + 2 * shape.longest_target + 200 * shape.targets)

    def run(self, context: Context, records: Records | None) -> Seeds:
        scoring, queries, targets = context.scoring, context.queries, context.targets
        letters = read_as_query(queries.searched())
        room = int(queries.lengths.max(initial=0)) + LANES
        span = room + int(targets.lengths.max(initial=0))
        cells, marked, noted = aligned(room, np.int8), np.zeros(span, np.bool_), np.empty(span, np.int64)
        parts = []
        for place, chosen in pairs_to_search(context, records):
            context.cancellation.check()
            query = letters[queries.offsets[place] : queries.offsets[place + 1]]
            profile, stripes = striped_profile(scoring.matrix[query].T)
            cutoff = scoring.filter_cutoff(place)
            found = np.empty((4 * len(chosen) + 16, 3), np.int64)
            while True:
                count = _find(scoring.matrix, profile, stripes, query, targets.residues, targets.offsets, chosen,
                              cutoff, cells, marked, noted, found)
                if count <= len(found):
                    break
                found = np.empty((count, 3), np.int64)
            position, diagonal, score = found[:count].T
            sizes = len(query), targets.lengths[position]
            parts.append(Seeds(diagonal_rows(queries.ordinals[place], targets.ordinals[position], sizes, diagonal,
                                             score)))
        return Seeds.concat(parts)
