"""Regions on the CPU: posterior expectations along a target, and what is cut from them, as ``regions_reference.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.kernels.jit import kernel

from .exact_math import F32
from .forward_cpu import SCALE, SPECIALS, B, C, E, J, Matrices, N
from .regions_reference import EXTEND, MULTIPLE, TRIGGER, Region

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ZERO, _ONE = F32(0.0), F32(1.0)


@kernel
def _occupancy(forward, backward, lanes, length, own_scales, loop, begins, ends, inside):
    """Fill f4[L + 1] ``begins``, ``ends`` and ``inside``; whether scaling overflowed."""
    to_n, to_b, to_e = N * lanes, B * lanes, E * lanes
    to_j, to_c, to_scale = J * lanes, C * lanes, SCALE * lanes
    factor = _ONE / backward[to_n]
    begins[0], ends[0], inside[0] = _ZERO, _ZERO, _ZERO
    for i in range(1, length + 1):
        above, here = (i - 1) * SPECIALS * lanes, i * SPECIALS * lanes
        begins[i] = begins[i - 1] + forward[above + to_b] * backward[above + to_b] * forward[above + to_scale] * factor
        if own_scales:
            factor = factor * (forward[above + to_scale] / backward[above + to_scale])
        ends[i] = ends[i - 1] + forward[here + to_e] * backward[here + to_e] * forward[here + to_scale] * factor
        outside = _ZERO + forward[above + to_n] * backward[here + to_n] * loop * factor
        outside = outside + forward[above + to_j] * backward[here + to_j] * loop * factor
        outside = outside + forward[above + to_c] * backward[here + to_c] * loop * factor
        inside[i] = _ONE - outside
    return factor == np.float32(np.inf) or factor == np.float32(-np.inf)


@kernel
def _regions(begins, ends, inside, found):
    """Fill ``found`` i8[k, 3] with first and last residue of regions and whether they may hold several domains."""
    count, start, triggered = 0, 0, False
    for j in range(1, len(inside)):
        if not triggered:
            if inside[j] - (begins[j] - begins[j - 1]) < EXTEND or start == 0:
                start = j
            triggered = inside[j] >= TRIGGER
        elif inside[j] - (ends[j] - ends[j - 1]) < EXTEND:
            multiple = False
            for z in range(start, j + 1):
                multiple |= min(ends[z] - ends[start - 1], begins[j] - begins[z - 1]) >= MULTIPLE
            found[count, 0], found[count, 1], found[count, 2] = start, j, multiple
            count += 1
            start, triggered = 0, False
    return count


def regions_of(matrices: Matrices, number: int) -> tuple[np.float32, list[Region]] | None:
    """Expected number of domains of a whole target and its regions from left to right; None if scaling overflowed.

    ``number``: of the target in the matrices, multihit.
    """
    length, at = int(matrices.lengths[number]), matrices.firsts[number]
    begins, ends, inside = np.empty((3, length + 1), F32)
    if _occupancy(matrices.forward[at:], matrices.backward[at:], matrices.lanes, length,
                  matrices.own_scales[number], matrices.loops[number], begins, ends, inside):
        return None
    found: NDArray[np.int64] = np.empty((length // 2 + 1, 3), np.int64)
    count = _regions(begins, ends, inside, found)
    return begins[-1], [Region(start, end, bool(multiple)) for start, end, multiple in found[:count].tolist()]
