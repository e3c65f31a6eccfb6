"""Targets queued lane by lane: each lane of a vector reads many targets one behind the other, all lanes about as much.

Nothing is wasted on targets of unequal lengths, however few of them there are. Between two targets stand ``GAP`` or one
more residues ``PAD``, which take any eight-bit score back to nothing. Every target ends in an odd column, so that a
kernel that looks only at odd columns sees the last residue of each. Queues are made once per volume and serve all
queries.
"""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.engine.threads import by_threads, run_tasks
from seqloom.core.index import Index
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import BYTE_LANES, LOOKUP_ENTRIES, aligned
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, IndexStage, Shape
from seqloom.plugins.common.lane_tiles import TILE, lay, turn

KIND = "lane-queues"
PAD = LOOKUP_ENTRIES - 1
"""Residue between targets: the last entry of a look-up table, which kernels score as the lowest value."""
GAP = 2
"""Residues between targets: twice −128 takes the largest score of eight bits, 255, to nothing."""
COLUMNS = 12
"""Columns that kernels take at a time."""


@kernel
def _assign(order, lengths, gap, lane_of, begin_of, ends):
    """Put each of ``order``, longest first, behind the shortest queue, the first of equal ones."""
    lanes = len(ends)
    heap = np.arange(lanes)  # end of a queue · lanes + lane
    for place in order:
        end, lane = heap[0] // lanes, heap[0] % lanes
        begin = end + gap if end else end
        begin += (begin + lengths[place]) % 2
        lane_of[place], begin_of[place] = lane, begin
        key, node, child = (begin + lengths[place]) * lanes + lane, 0, 1
        while child < lanes:
            if child + 1 < lanes and heap[child + 1] < heap[child]:
                child += 1
            if heap[child] > key:
                break
            heap[node] = heap[child]
            node, child = child, 2 * child + 1
        heap[node] = key
    for key in heap:
        ends[key % lanes] = key // lanes


@kernel
def _interleave(residues, offsets, numbers, firsts, places, begins, pad, start, stop, tile, columns, present):
    """Fill columns ``start`` … ``stop`` − 1 tile by tile, lane by lane within a tile; mark what is ``present``."""
    lanes = len(firsts) - 1
    current = firsts[:-1].copy()
    for first in range(start, stop, TILE):
        width = min(TILE, stop - first)
        tile[:] = pad
        for lane in range(lanes):
            entry = current[lane]
            while entry < firsts[lane + 1] and begins[entry] < first + width:
                number, begin = numbers[places[entry]], begins[entry] - first  # in this tile, or before it
                end = begin + offsets[number + 1] - offsets[number]
                column = max(begin, 0)
                if end > column:
                    source = offsets[number] + column - begin
                    lay(tile, lane * TILE + column, residues, source, min(end, width) - column)
                if end > width:
                    break
                entry += 1
            current[lane] = entry
        for residue in tile:
            present[residue] = True
        turn(tile, width, columns, first * lanes, lanes)


def queued(targets: SequenceBatch, numbers: np.ndarray | None = None, lanes: int = BYTE_LANES,
           threads: int = 1) -> Index:
    """Lane queues of a volume, or of the targets at i8[k] ``numbers`` in it. Hard-masked residues read as unknown.

    ``lanes`` is a multiple of eight.

    Returns:
        Index of kind "lane-queues" with ``columns`` u8 (residue of lane l in column c at c · lanes + l), ``firsts``
        i8[lanes + 1], and ``places`` and ``begins`` i8[n]: ``places[firsts[l]:firsts[l + 1]]`` are the targets of lane
        l in their order, as places in ``numbers``, and begin in these columns. ``residues`` i8: those that occur.
    """
    numbers = np.arange(len(targets)) if numbers is None else np.asarray(numbers, np.int64)
    lengths = targets.lengths[numbers].astype(np.int64)
    lane_of, begin_of = np.empty(len(numbers), np.uint8), np.empty(len(numbers), np.int64)
    ends = np.empty(lanes, np.int64)
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    # Residues that have to be read first are, meanwhile.
    run_tasks(threads, lambda task: task(), [
        targets.load, lambda: _assign(order, lengths, GAP, lane_of, begin_of, ends)])
    places = order[np.argsort(lane_of[order], kind="stable")]
    firsts = np.searchsorted(lane_of[places], np.arange(lanes + 1))
    height = -(-(int(ends.max()) + GAP) // COLUMNS) * COLUMNS
    columns = aligned(-(-height // 8) * 8 * lanes, np.uint8)
    begins = begin_of[places]
    present = np.zeros(256, np.bool_)
    residues = targets.searched()

    def interleave(_: int, first: int, last: int) -> None:
        _interleave(residues, targets.offsets, numbers, firsts, places, begins, PAD, first * TILE,
                    min(last * TILE, len(columns) // lanes), aligned(lanes * TILE, np.uint8), columns, present)

    by_threads(threads, 0, -(-(len(columns) // lanes) // TILE), interleave)
    present[PAD] = False
    arrays = {"columns": columns[: height * lanes], "firsts": firsts, "places": places, "begins": begins,
              "residues": np.flatnonzero(present)}
    return Index(KIND, "target", arrays, {"lanes": lanes})


class LaneQueues(IndexStage):
    """Targets queued for vectors: every lane reads about as many residues, target behind target."""

    name = "lane-queues"
    backend = "cpu"
    side = "target"
    provides = KIND

    def footprint(self, shape: Shape) -> Footprint:
        # The lanes are about equally full, or the longest target is all that one of them holds.
        return Footprint(host=shape.target_residues + (shape.longest_target + 64) * BYTE_LANES + 48 * shape.targets)

    def run(self, context: Context, batch: SequenceBatch) -> Index:
        return queued(batch, threads=context.threads)
