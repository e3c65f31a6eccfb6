"""Targets interleaved lane by lane, so that one vector holds one residue of each of many targets.

Targets are taken longest first, ``lanes`` of them to a group. Within a group, column j holds residue j of every target,
lane by lane; targets that have ended, and lanes without a target, hold ``PAD``. The columns of a group are a multiple
of ``COLUMNS``. Sorting by length keeps the padding small. Many queries share columns that are laid out once; for a few
they are laid out some groups at a time, by ``laid_out``, in memory that stays in the cache.
"""

from collections.abc import Callable

import numpy as np
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import BYTE_LANES, LOOKUP_ENTRIES, aligned
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, IndexStage, Shape
from seqloom.plugins.common.lane_tiles import TILE, lay, turn

KIND = "lanes"
PAD = LOOKUP_ENTRIES - 1
"""Residue behind the end of a target: the last entry of a look-up table, which kernels score as the lowest value."""
COLUMNS = 8
"""Columns that kernels take at a time."""
LAID = 4 << 20
"""Bytes of columns that are laid out at a time where they aren't kept."""
FEW = 4
"""Queries for which columns are laid out anew for each: making room for those of a whole volume takes longer."""


@kernel
def interleave(residues, begins, ends, order, starts, lanes, pad, tile, columns):
    """Fill ``columns`` group by group, tile by tile within a group.

    starts: where groups begin in ``columns``, multiples of ``COLUMNS`` · lanes. tile: u8[lanes · TILE], working space.
    """
    for group in range(len(starts) - 1):
        members = order[group * lanes : (group + 1) * lanes]
        height = (starts[group + 1] - starts[group]) // lanes
        for first in range(0, height, TILE):
            width = min(TILE, height - first)
            tile[:] = pad
            for lane in range(len(members)):
                source = begins[members[lane]] + first
                lay(tile, lane * TILE, residues, source, max(0, min(width, ends[members[lane]] - source)))
            turn(tile, width, columns, starts[group] + first * lanes, lanes)


def interleaved(targets: SequenceBatch, lanes: int = BYTE_LANES) -> Index:
    """The lane-interleaved copy of a volume. Hard-masked residues are interleaved as the unknown residue.

    ``lanes`` is a multiple of eight.

    Returns:
        Index of kind "lanes" with ``columns`` u8 (flat), ``starts`` i8[g+1] (where each group begins in ``columns``)
        and ``order`` i8[k] (``order[g * lanes + l]``: position in the batch of the target in lane l of group g).
    """
    offsets = targets.offsets
    return interleaved_stretches(targets.searched(), offsets[:-1], offsets[1:], np.arange(len(targets)), lanes)


def interleaved_stretches(residues: np.ndarray, begins: np.ndarray, ends: np.ndarray, numbers: np.ndarray,
                          lanes: int = BYTE_LANES) -> Index:
    """As ``interleaved``, of stretches ``begins[n]``…``ends[n]`` of ``residues`` for n in i8[k] ``numbers``.

    ``order`` holds numbers of stretches.
    """
    groups = grouped_stretches(residues, begins, ends, numbers, lanes)
    columns, _ = laid_out(groups, 0, len(groups["starts"]) - 1)
    return Index(KIND, "target", {"columns": columns, **groups.arrays}, {"lanes": lanes})


def grouped(targets: SequenceBatch, lanes: int = BYTE_LANES) -> Index:
    """As ``interleaved``, but for the columns, which ``laid_out`` makes when they are needed."""
    offsets = targets.offsets
    return _grouped(targets.searched, offsets[:-1], offsets[1:], np.arange(len(targets)), lanes)


def grouped_stretches(residues: np.ndarray, begins: np.ndarray, ends: np.ndarray, numbers: np.ndarray,
                      lanes: int = BYTE_LANES) -> Index:
    """As ``interleaved_stretches``, but for the columns, which ``laid_out`` makes when they are needed."""
    return _grouped(lambda: residues, begins, ends, numbers, lanes)


def _grouped(residues: Callable[[], np.ndarray], begins: np.ndarray, ends: np.ndarray, numbers: np.ndarray,
             lanes: int) -> Index:
    lengths = ends - begins
    order = np.asarray(numbers, np.int64)[np.argsort(-lengths[numbers], kind="stable")]
    longest = lengths[order[::lanes]]
    starts = np.zeros(len(longest) + 1, np.int64)
    np.cumsum(-(-longest // COLUMNS) * COLUMNS * lanes, out=starts[1:])
    return Index(KIND, "target", {"starts": starts, "order": order}, {"lanes": lanes},
                 {"residues": residues, "bounds": (begins, ends)})


def laid_out(index: Index, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns u8 with groups ``first`` … ``last`` − 1 of an index of this kind, and where each begins in them, i8."""
    starts = index["starts"][first : last + 1]
    if "columns" in index.arrays:
        return index["columns"], starts
    lanes, starts = index.parameters["lanes"], starts - starts[0]
    columns = aligned(int(starts[-1]), np.uint8)
    interleave(index.objects["residues"](), *index.objects["bounds"], index["order"][first * lanes : last * lanes],
               starts, lanes, PAD, aligned(lanes * TILE, np.uint8), columns)
    return columns, starts


class LaneInterleaved(IndexStage):
    """Targets interleaved for vectors: one residue of each of many targets side by side, longest targets first."""

    name = "lane-interleaved"
    backend = "cpu"
    side = "target"
    provides = KIND

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=shape.target_residues * 5 // 4 + shape.longest_target * BYTE_LANES)

    def run(self, context: Context, batch: SequenceBatch) -> Index:
        return interleaved(batch)
