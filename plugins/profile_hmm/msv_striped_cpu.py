"""MSV of one target at a time, the model striped over eight-bit lanes: for the few where a second segment could count.

SSV alone is the same without what J adds to entering the model.

Node k sits in slot q = (k − 1) mod Q of lane r = (k − 1) div Q, so that the cell a diagonal step before is in the slot
before, and only at slot 0 a lane further down (Farrar 2007). Few targets side by side would leave most lanes idle.
"""

from collections.abc import Sequence

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
_NOTHING, _MOST = np.uint8(0), np.uint8(255)


@kernel
def _stripe(cost, slots, striped):
    """Fill u1[codes · Q · LANES] with u1[codes, M], 255 beyond the model."""
    for code in range(cost.shape[0]):
        for lane in range(LANES):
            for q in range(slots):
                k = lane * slots + q
                striped[(code * slots + q) * LANES + lane] = cost[code, k] if k < cost.shape[1] else _MOST


def _striped_costs(profiles: Sequence[ByteProfile]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """u1: costs of models one behind the other, of each code at each match state, striped, [codes · Q · LANES] each;
    where those of each begin and how many slots Q each has, i8[models]."""
    slots = [-(-profile.cost.shape[1] // LANES) for profile in profiles]
    sizes = [profile.cost.shape[0] * of_model * LANES for profile, of_model in zip(profiles, slots, strict=True)]
    firsts = np.cumsum([0, *sizes])
    striped = aligned(int(firsts[-1]), np.uint8)
    for profile, of_model, first, size in zip(profiles, slots, firsts.tolist(), sizes, strict=False):
        _stripe(profile.cost, of_model, striped[first : first + size])
    return striped, firsts[:-1], np.array(slots)


@kernel
def _fill_j(costs, firsts, slots, biases, entries, exits, models, residues, begins, ends, length_costs, multihit,
            cells, best_j, overflow):
    """MSV, or without ``multihit`` SSV, of targets ``residues[begins[n]:ends[n]]``, each by the model at ``models[n]``.

    costs, firsts, slots: of ``_striped_costs``. biases, entries, exits: of each model. length_costs: i2[n]. cells:
    u1[Q · LANES] of the longest model, working space. best_j: i2[n], values of J before the first residue and then
    behind the last one. overflow: bool[n], filled.
    """
    nothing = splat(_NOTHING, LANES)
    for n in range(len(begins)):
        first, row = firsts[models[n]], slots[models[n]] * LANES
        bias, entry, end = biases[models[n]], entries[models[n]], exits[models[n]]
        more = splat(np.uint8(bias), LANES)
        j, top, cost = np.int64(best_j[n]), np.int64(0), np.int64(length_costs[n]) + entry
        begin, reached = splat(np.uint8(max(max(BYTE_BASE, j) - cost, 0)), LANES), nothing
        for place in range(0, row, LANES):
            store(cells, place, nothing)
        for i in range(begins[n], ends[n]):
            code = first + np.int64(residues[i]) * row
            diagonal, best = shift_in(load(cells, row - LANES, LANES), _NOTHING), nothing
            for place in range(0, row, LANES):
                cell = maximum(diagonal, begin) + more - load(costs, code + place, LANES)
                diagonal = load(cells, place, LANES)
                store(cells, place, cell)
                best = maximum(best, cell)
            if greater_lanes(best, reached):  # J is what the best cell so far has made of it
                top = np.int64(highest(best))
                j = max(j, top - end)
                reached = splat(np.uint8(top), LANES)
                if multihit:
                    begin = splat(np.uint8(max(max(BYTE_BASE, j) - cost, 0)), LANES)
        best_j[n], overflow[n] = j, top + bias >= 255


def by_rows(profiles: Sequence[ByteProfile], models: np.ndarray, residues: np.ndarray, begins: np.ndarray,
            ends: np.ndarray, costs: np.ndarray, begin_j: np.ndarray,
            multihit: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Value of J, i2[n], and overflow, bool[n], behind the last residues of targets ``residues[begins[n]:ends[n]]``, by
    MSV (``multihit``), or by SSV alone, which must have a segment that gains.

    Args:
        models: i8[n], the place of each one's model among the profiles.
        costs, begin_j: i2[n], cost of N, J, C → move and value of J before the first residue.
    """
    ended_j, overflow = begin_j.astype(np.int16), np.empty(len(begins), np.bool_)
    striped, firsts, slots = _striped_costs(profiles)
    biases, entries, exits = (np.array([getattr(profile, field) for profile in profiles])
                              for field in ("bias", "entry", "end"))
    _fill_j(striped, firsts, slots, biases, entries, exits, models, residues, begins, ends, costs, multihit,
            aligned(int(slots.max()) * LANES, np.uint8), ended_j, overflow)
    return ended_j, overflow
