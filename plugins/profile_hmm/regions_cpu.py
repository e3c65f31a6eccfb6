"""Regions on the CPU: posterior expectations along a target, and what is cut from them, as ``regions_reference.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.kernels.jit import kernel

from .exact_math import F32, Array32
from .forward_cpu import SCALE, SPECIALS, B, C, E, J, Matrices, N
from .regions_reference import EXTEND, MULTIPLE, TRIGGER

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


@kernel
def _regions_of_all(forward, backward, lanes, firsts, lengths, own_scales, loops, expected, counts, found, working):
    """Fill f4[n] ``expected`` with the expected number of domains of targets and i8[n] ``counts`` with how many regions
    each has, −1 where scaling overflowed; ``found`` as ``_regions`` does, those of one target behind those of the
    other. working: f4[3, longest + 1]."""
    begins, ends, inside = working[0], working[1], working[2]
    behind = 0
    for n in range(len(expected)):
        rows = lengths[n] + 1
        counts[n] = -1
        if not _occupancy(forward[firsts[n] :], backward[firsts[n] :], lanes, lengths[n], own_scales[n], loops[n],
                          begins[:rows], ends[:rows], inside[:rows]):
            expected[n] = begins[lengths[n]]
            counts[n] = _regions(begins[:rows], ends[:rows], inside[:rows], found[behind:])
            behind += counts[n]


def regions_of(matrices: Matrices, targets: int) -> tuple[Array32, NDArray[np.int64], NDArray[np.int64]]:
    """Expected number of domains f4[n] of the first n ``targets`` in the matrices, whole and multihit; how many regions
    each has, −1 where scaling overflowed; and the regions i8[k, 3], those of one target behind those of the other:
    first and last residue, 1-based, and whether it may hold several domains."""
    lengths = matrices.lengths[:targets]
    expected, counts = np.zeros(targets, F32), np.empty(targets, np.int64)
    found = np.empty((int((lengths // 2 + 1).sum()), 3), np.int64)
    _regions_of_all(matrices.forward, matrices.backward, matrices.lanes, matrices.firsts, lengths, matrices.own_scales,
                    matrices.loops, expected, counts, found, np.empty((3, int(lengths.max()) + 1), F32))
    return expected, counts, found[: int(counts[counts > 0].sum())]
