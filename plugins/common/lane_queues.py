"""Targets queued lane by lane: each lane of a vector reads many targets one behind the other, all lanes about as much.

Nothing is wasted on targets of unequal lengths, however few of them there are. Between two targets stand ``GAP`` or one
more letters ``PAD``, which take any eight-bit score back to nothing. Every target ends in an odd column, so that a
kernel that looks only at odd columns sees the last letter of each. Queues are made once per volume and serve all
queries.
"""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.jit import kernel
from seqloom.core.sequences import SequenceBatch
from seqloom.core.simd import BYTE_LANES, LOOKUP_ENTRIES, aligned
from seqloom.core.stages import Footprint, IndexStage, Shape

KIND = "lane-queues"
PAD = LOOKUP_ENTRIES - 1
"""Letter between targets: the last entry of a look-up table, which kernels score as the lowest value."""
GAP = 2
"""Letters between targets: twice −128 takes the largest score of eight bits, 255, to nothing."""
COLUMNS = 12
"""Columns that kernels take at a time."""
BLOCK = 64
"""Columns that are interleaved at a time: their letters stay in the nearest cache."""


@kernel
def _assign(order, lengths, gap, lane_of, begin_of, ends):
    """Put each of ``order``, longest first, behind the shortest queue; 0 letters take no place (lane −1)."""
    ends[:] = 0
    for place in order:
        if lengths[place] == 0:
            lane_of[place] = -1
            continue
        lane = 0
        for other in range(1, len(ends)):
            if ends[other] < ends[lane]:
                lane = other
        begin = ends[lane] + gap if ends[lane] else 0
        begin += (begin + lengths[place]) % 2
        lane_of[place], begin_of[place] = lane, begin
        ends[lane] = begin + lengths[place]


@kernel
def _interleave(residues, offsets, numbers, firsts, places, begins, block, pad, columns, present):
    """Fill ``columns`` block by block, lane by lane within a block; mark the letters ``present``."""
    lanes = len(firsts) - 1
    current = firsts[:-1].copy()
    for first in range(0, len(columns) // lanes, block):
        last = min(first + block, len(columns) // lanes)
        for lane in range(lanes):
            column = first
            while column < last:
                entry = current[lane]
                if entry == firsts[lane + 1]:
                    stop = last
                    for place in range(column, stop):
                        columns[place * lanes + lane] = pad
                    column = stop
                    continue
                begin = begins[entry]
                stop = min(begin, last)
                for place in range(column, stop):
                    columns[place * lanes + lane] = pad
                column = max(column, stop)
                source = offsets[numbers[places[entry]]] - begin
                end = begin + offsets[numbers[places[entry]] + 1] - offsets[numbers[places[entry]]]
                stop = min(end, last)
                for place in range(column, stop):
                    letter = residues[source + place]
                    columns[place * lanes + lane] = letter
                    present[letter] = True
                column = max(column, stop)
                if column == end:
                    current[lane] += 1


def queued(targets: SequenceBatch, numbers: np.ndarray | None = None, lanes: int = BYTE_LANES) -> Index:
    """Lane queues of a volume, or of the targets at i8[k] ``numbers`` in it. Hard-masked letters read as unknown.

    Returns:
        Index of kind "lane-queues" with ``columns`` u8 (letter of lane l in column c at c · lanes + l), ``firsts``
        i8[lanes + 1], and ``places`` and ``begins`` i8[n]: ``places[firsts[l]:firsts[l + 1]]`` are the targets of lane
        l in their order, as places in ``numbers``, and begin in these columns. ``letters`` i8: those that occur.
    """
    numbers = np.arange(len(targets)) if numbers is None else np.asarray(numbers, np.int64)
    lengths = targets.lengths[numbers].astype(np.int64)
    lane_of, begin_of = np.empty(len(numbers), np.int64), np.empty(len(numbers), np.int64)
    ends = np.empty(lanes, np.int64)
    _assign(np.argsort(-lengths, kind="stable"), lengths, GAP, lane_of, begin_of, ends)
    placed = np.flatnonzero(lane_of >= 0)
    places = placed[np.lexsort((begin_of[placed], lane_of[placed]))]
    firsts = np.searchsorted(lane_of[places], np.arange(lanes + 1))
    height = -(-(int(ends.max()) + GAP) // COLUMNS) * COLUMNS
    columns = aligned(height * lanes, np.uint8)
    begins = begin_of[places]
    present = np.zeros(256, np.bool_)
    _interleave(targets.searched(), targets.offsets, numbers, firsts, places, begins, BLOCK, PAD, columns, present)
    arrays = {"columns": columns, "firsts": firsts, "places": places, "begins": begins,
              "letters": np.flatnonzero(present)}
    return Index(KIND, "target", arrays, {"lanes": lanes})


class LaneQueues(IndexStage):
    """Targets queued for vectors: every lane reads about as many letters, target behind target."""

    name = "lane-queues"
    backend = "cpu"
    side = "target"
    provides = KIND

    def footprint(self, shape: Shape) -> Footprint:
        # The lanes are about equally full, or the longest target is all that one of them holds.
        return Footprint(host=shape.target_letters + (shape.longest_target + 64) * BYTE_LANES + 48 * shape.targets)

    def run(self, context: Context, batch: SequenceBatch) -> Index:
        return queued(batch)
