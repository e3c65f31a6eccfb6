"""SSV of one target at a time, the model striped over the lanes: for CPUs where a look-up by residue is dear.

Node k sits in slot q = (k − 1) mod Q of lane r = (k − 1) div Q. A diagonal goes from slot to slot, residue by residue,
and from the last slot to the first one a lane further on. ``WIDTH`` slots side by side are followed along the whole
target, each in a register, so that a cell is a sum with what stands in memory and a maximum (Knudsen's SSV in HMMER 3.1
does the same in sixteen lanes).
"""

from functools import cache
from typing import Any

import numpy as np
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import BYTE_LANES, HAS_BYTE_PERMUTE, aligned, highest, load, maximum, shift_in, splat
from seqloom.core.kernels.unroll import specialise

from .profile import ByteProfile

LANES = BYTE_LANES
COSTS = {4: 1.45, 5: 1.2, 6: 1.07, 7: 1.03, 8: 1.0}
"""What a slot takes by ``WIDTH``: the fewer are followed together, the more often residues are read."""
_FLOOR = np.int8(-128)
LEAST_LENGTH = 1 << 30 if HAS_BYTE_PERMUTE else 5 * LANES // 2
"""Shortest model that goes faster this way than targets side by side."""


WIDTH = max(COSTS)
"""In the template a constant that is filled in."""


def registers(count):  # pragma: no cover - names for the template
    raise NotImplementedError


def unrolled(count):  # pragma: no cover
    raise NotImplementedError


def segments(tables, slots, residues, begins, ends, best):
    """Template: best segment score − 128, i1[n] ``best``, of targets ``residues[begins[n]:ends[n]]``, saturating."""
    floor = splat(_FLOOR, LANES)
    row = (slots + WIDTH) * LANES
    for n in range(len(begins)):
        top, also = floor, floor
        for band in range(0, slots, WIDTH):
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
        best[n] = highest(maximum(top, also))


@cache
def _kernel(width: int) -> Any:
    return kernel(specialise(segments, WIDTH=width))


class StripedScores:
    """Scores of a model, striped.

    Attributes:
        width: slots that are followed together. slots: Q, a multiple of it.
        tables: i1[28 · (Q + width) · LANES], bias − cost of each residue code; slots Q… are the first ones again.
    """

    def __init__(self, profile: ByteProfile) -> None:
        codes, length = profile.cost.shape
        self.width, self.slots = min(((width, -(-length // (LANES * width)) * width) for width in COSTS),
                                     key=lambda sizes: sizes[1] * COSTS[sizes[0]])
        scores = np.full((codes, LANES * self.slots), _FLOOR)
        scores[:, :length] = np.maximum(profile.bias - profile.cost.astype(np.int16), -128)
        striped = np.swapaxes(scores.reshape(codes, LANES, self.slots), 1, 2)
        self.tables = aligned(codes * (self.slots + self.width) * LANES, np.int8)
        laid = self.tables.reshape(codes, self.slots + self.width, LANES)
        laid[:, : self.slots], laid[:, self.slots :] = striped, striped[:, : self.width]


def segment_scores(scores: StripedScores, residues: np.ndarray, begins: np.ndarray, ends: np.ndarray,
                   best: np.ndarray) -> None:
    """Best ungapped segments of targets ``residues[begins[n]:ends[n]]``: i1 ``best``, score − 128."""
    _kernel(scores.width)(scores.tables, scores.slots, residues, begins, ends, best)
