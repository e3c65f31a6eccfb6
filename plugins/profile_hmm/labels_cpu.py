"""``labels_reference`` on the CPU: tenths of posteriors, before scores of optimal paths take their place.

A posterior p becomes ⌊10 p + ½⌋, in whole numbers of 2⁻²⁸: numbers of single precision from 2⁻⁵ on have no finer parts,
and smaller ones are less than half a tenth.
"""

import numpy as np
from seqloom.core.kernels.jit import inline
from seqloom.core.kernels.simd import highest_bytes, minimum, splat, whole_numbers, wrapped_sum

from .labels_reference import NONE, SURE

SKIPPED = 11
LETTERS = np.frombuffer(f"0123456789{SURE}{NONE}".encode(), np.uint8)
"""By tenths; behind them that of a skipped node."""
TENTH = 4
"""Bits of a number from ``tenths_of`` below those that count."""
_ONE, _PARTS, _HALF = np.float32(1.0), np.float32(1 << 28), np.int32(1 << 27)


@inline
def tenths_of(posteriors, lanes):
    """u1 lanes with the rounded tenths of f4 posteriors in their highest bits, behind ``TENTH`` others."""
    parts = whole_numbers(minimum(posteriors, splat(_ONE, lanes)) * splat(_PARTS, lanes))
    twice = wrapped_sum(parts, parts)
    five = wrapped_sum(wrapped_sum(twice, twice), parts)
    return highest_bytes(wrapped_sum(wrapped_sum(five, five), splat(_HALF, lanes)))
