"""MSV of one target at a time, the model striped over eight-bit lanes: for the few where a second segment could count.

Node k sits in slot q = (k − 1) mod Q of lane r = (k − 1) div Q, so that the cell a diagonal step before is in the slot
before, and only at slot 0 a lane further down (Farrar 2007). Few targets side by side would leave most lanes idle.
"""

import numpy as np
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import (
    BYTE_LANES,
    aligned,
    greater_lanes,
    highest,
    load,
    maximum,
    shift_in,
    splat,
    store,
)

from .profile import BYTE_BASE, ByteProfile

LANES = BYTE_LANES
_NOTHING = np.uint8(0)


def striped_costs(profile: ByteProfile) -> np.ndarray:
    """u1[28 · Q · LANES], flat: cost of each residue code at each match state, striped; 255 beyond the model."""
    codes, length = profile.cost.shape
    slots = -(-length // LANES)
    costs = np.full((codes, LANES * slots), 255, np.uint8)
    costs[:, :length] = profile.cost
    striped = aligned(codes * slots * LANES, np.uint8)
    striped.reshape(codes, slots, LANES)[:] = np.swapaxes(costs.reshape(codes, LANES, slots), 1, 2)
    return striped


@kernel
def _fill_j(costs, slots, bias, entry, end, residues, begins, ends, length_costs, cells, best_j, overflow):
    """MSV of targets ``residues[begins[n]:ends[n]]``.

    costs: of ``striped_costs``. length_costs: i2[n]. cells: u1[Q · LANES], working space. best_j: i2[n], values of J
    before the first residue and then behind the last one. overflow: bool[n], filled.
    """
    nothing, more, row = splat(_NOTHING, LANES), splat(np.uint8(bias), LANES), slots * LANES
    for n in range(len(begins)):
        j, top, cost = np.int64(best_j[n]), np.int64(0), np.int64(length_costs[n]) + entry
        begin, reached = splat(np.uint8(max(max(BYTE_BASE, j) - cost, 0)), LANES), nothing
        for place in range(0, row, LANES):
            store(cells, place, nothing)
        for i in range(begins[n], ends[n]):
            code = np.int64(residues[i]) * row
            diagonal, best = shift_in(load(cells, row - LANES, LANES), _NOTHING), nothing
            for place in range(0, row, LANES):
                cell = maximum(diagonal, begin) + more - load(costs, code + place, LANES)
                diagonal = load(cells, place, LANES)
                store(cells, place, cell)
                best = maximum(best, cell)
            if greater_lanes(best, reached):  # J is what the best cell so far has made of it
                top = np.int64(highest(best))
                j = max(j, top - end)
                begin, reached = splat(np.uint8(max(max(BYTE_BASE, j) - cost, 0)), LANES), splat(np.uint8(top), LANES)
        best_j[n], overflow[n] = j, top + bias >= 255


def with_j(profile: ByteProfile, residues: np.ndarray, begins: np.ndarray, ends: np.ndarray, costs: np.ndarray,
           begin_j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Value of J, i2[n], and overflow, bool[n], behind the last residues of targets ``residues[begins[n]:ends[n]]``.

    Args:
        costs, begin_j: i2[n], cost of N, J, C → move and value of J before the first residue.
    """
    ended_j, overflow, striped = begin_j.astype(np.int16), np.empty(len(begins), np.bool_), striped_costs(profile)
    slots = -(-profile.cost.shape[1] // LANES)
    _fill_j(striped, slots, profile.bias, profile.entry, profile.end, residues, begins, ends, costs,
            aligned(slots * LANES, np.uint8), ended_j, overflow)
    return ended_j, overflow
