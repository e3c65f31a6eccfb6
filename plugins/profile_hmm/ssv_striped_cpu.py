"""SSV of one target at a time, the model striped over the lanes: for CPUs where a look-up by residue is dear.

Node k sits in slot q = (k − 1) mod Q of lane r = (k − 1) div Q. A diagonal goes from slot to slot, residue by residue,
and from the last slot to the first one a lane further on. ``WIDTH`` slots side by side, a band, are followed along the
whole target, each in a register, so that a cell is a sum with what stands in memory and a maximum (Knudsen's SSV in
HMMER 3.1 does the same in sixteen lanes). Bands are as wide as registers allow, and of about the same width.
"""

from functools import cache
from itertools import groupby
from typing import Any

import numpy as np
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import (
    BYTE_LANES,
    HAS_BYTE_PERMUTE,
    WORKS_BY_HALVES,
    aligned,
    highest,
    load,
    maximum,
    shift_in,
    splat,
)
from seqloom.core.kernels.unroll import specialise

from .profile import ByteProfile

LANES = BYTE_LANES
WIDEST, NARROWEST = (10, 2) if HAS_BYTE_PERMUTE else (8, 4)
"""Slots of a band, at most and at least: with fewer, sums wait for each other and residues are read too often."""
_FLOOR = np.int8(-128)
LEAST_LENGTH = 1 << 30 if HAS_BYTE_PERMUTE and not WORKS_BY_HALVES else 5 * LANES // 2
"""Shortest model that goes faster this way than targets side by side."""


WIDTH = WIDEST
"""In the template a constant that is filled in."""


def registers(count):  # pragma: no cover - names for the template
    raise NotImplementedError


def unrolled(count):  # pragma: no cover
    raise NotImplementedError


def segments(tables, row, slots, first_slot, last_slot, residues, begins, ends, best):
    """Template: raise i1[n] ``best`` to the best segment score − 128, saturating, of each target
    ``residues[begins[n]:ends[n]]``, on diagonals that begin in bands of slots from ``first_slot`` to ``last_slot``.

    tables, row, slots: of ``StripedScores``.
    """
    floor = splat(_FLOOR, LANES)
    for n in range(len(begins)):
        top, also = floor, floor
        for band in range(first_slot, last_slot, WIDTH):
            h = registers(WIDTH)
            for w in unrolled(WIDTH):
                h[w] = floor
            s, i, end = band, begins[n], ends[n]
            while i < end:
                run = min(end - i, slots - WIDTH + 1 - s)
                for r in range(run):
                    place = np.int64(residues[i + r]) * row + (s + r) * LANES
                    for w in unrolled(WIDTH):
                        h[w] = h[w] + load(tables, place + w * LANES, LANES)
                        if w % 2:
                            also = maximum(also, h[w])
                        else:
                            top = maximum(top, h[w])
                i += run
                s += run
                for last in unrolled(WIDTH - 1):
                    if i < end:
                        h[WIDTH - 1 - last] = shift_in(h[WIDTH - 1 - last], _FLOOR)
                        place = np.int64(residues[i]) * row + s * LANES
                        for w in unrolled(WIDTH):
                            h[w] = h[w] + load(tables, place + w * LANES, LANES)
                            if w % 2:
                                also = maximum(also, h[w])
                            else:
                                top = maximum(top, h[w])
                        i += 1
                        s += 1
                h[0] = shift_in(h[0], _FLOOR)
                s = 0
        best[n] = max(best[n], highest(maximum(top, also)))


@cache
def _kernel(width: int) -> Any:
    return kernel(specialise(segments, WIDTH=width))


def bands(slots: int) -> list[int]:
    """Widths of the bands of so many slots, wide ones first; their sum is the least that there can be."""
    number = -(-slots // WIDEST)
    return [max(NARROWEST, slots // number + (band < slots % number)) for band in range(number)]


class StripedScores:
    """Scores of a model, striped.

    Attributes:
        bands: widths of those that are followed together. slots: Q, their sum.
        row: numbers of the scores of a residue.
        tables: i1[28 · row], bias − cost of each residue code by slots; behind slot Q are the first ones again.
    """

    def __init__(self, profile: ByteProfile) -> None:
        codes, length = profile.cost.shape
        self.bands = bands(-(-length // LANES))
        self.slots = sum(self.bands)
        scores = np.full((codes, LANES * self.slots), _FLOOR)
        scores[:, :length] = np.maximum(profile.bias - profile.cost.astype(np.int16), -128)
        striped = np.swapaxes(scores.reshape(codes, LANES, self.slots), 1, 2)
        again = self.bands[0]
        self.row = (self.slots + again) * LANES
        self.tables = aligned(codes * self.row, np.int8)
        laid = self.tables.reshape(codes, self.slots + again, LANES)
        laid[:, : self.slots], laid[:, self.slots :] = striped, striped[:, :again]


def segment_scores(scores: StripedScores, residues: np.ndarray, begins: np.ndarray, ends: np.ndarray,
                   best: np.ndarray) -> None:
    """Best ungapped segments of targets ``residues[begins[n]:ends[n]]``: i1 ``best``, score − 128."""
    best[:], first = _FLOOR, 0
    for width, alike in groupby(scores.bands):
        last = first + sum(alike)
        _kernel(width)(scores.tables, scores.row, scores.slots, first, last, residues, begins, ends, best)
        first = last
