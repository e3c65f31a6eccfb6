"""The bias filter on CUDA devices: a thread takes a target, with the operations of ``bias_reference.py`` in order.

What is wanted of a row's scale is libm's double-precision logarithm rounded to f32. The device's is as near to the true
one as libm's; where all numbers within 2⁻⁴⁸ of it round to the same f32, that is it. Targets with another one, a few in
a million, are left to the CPU, and what depends on lengths alone is.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numba import cuda as _cuda
from numba import float32, float64, int32, int64, uint64
from seqloom.core.cuda.rounding import over, plus, times

from .bias_cpu import bias_odds
from .bias_reference import START
from .exact_math import F32, Array32
from .pairs_cuda import CODES
from .profile import SearchProfile

cuda: Any = _cuda  # numba's types don't know what code on the device may do
TABLE = 2 * CODES + 2
"""Numbers of a model: odds of each code in both states, and transitions from composition to background and back."""
_START_BACKGROUND, _START_COMPOSITION = (float(start) for start in START)
BELOW, ABOVE = 1.0 - 2.0**-48, 1.0 + 2.0**-48
"""Times a logarithm of the device: numbers between which that of libm is."""


def sum_logs(tables, models, residues, begins, ends, places, works, sums, lasts):
    """Kernel: sum of the logs of a target's scales, and of the states of its last row.

    Args:
        tables: f4, TABLE numbers of each model (``DeviceBias.table``).
        models, places: i4, number of the model and place of the target of each of ``works`` pairs.
        residues: u1; residues ``begins[p]`` … ``ends[p]`` − 1 are those of the target at place p.
        sums, lasts: f4, of each pair; the sum is NaN where a logarithm is in doubt.
    """
    work = int32(cuda.grid(1))
    if work < works:
        table = uint64(models[work]) * uint64(TABLE)
        place = places[work]
        begin = int64(begins[place])
        length = int32(ends[place] - begin)
        stay = over(float32(length), float32(length + int32(1)))
        leave = plus(float32(1.0), -stay)
        returning = tables[uint64(table + uint64(2 * CODES))]
        staying = tables[uint64(table + uint64(2 * CODES + 1))]
        here = uint64(table + uint64(2) * uint64(residues[uint64(begin)]))
        background = times(float32(_START_BACKGROUND), tables[here])
        composition = times(float32(_START_COMPOSITION), tables[uint64(here + uint64(1))])
        total = float32(0.0)
        known = True
        for i in range(int32(1), length + int32(1)):
            scale = float32(max(background, composition))
            background = over(background, scale)
            composition = over(composition, scale)
            if scale > float32(0.0):
                log = math.log(float64(scale))
                rounded = float32(log * BELOW)
                known = known and rounded == float32(log * ABOVE)
                total = plus(total, rounded)
            else:
                known = False
            if i < length:
                here = uint64(table + uint64(2) * uint64(residues[uint64(begin + int64(i))]))
                to_background = plus(times(background, stay), times(composition, returning))
                to_composition = plus(times(background, leave), times(composition, staying))
                background = times(to_background, tables[here])
                composition = times(to_composition, tables[uint64(here + uint64(1))])
        sums[work] = total if known else float32(np.nan)
        lasts[work] = plus(background, composition)


class DeviceBias:
    """Numbers of a model."""

    words = TABLE

    def __init__(self, profile: SearchProfile) -> None:
        self._profile = profile

    def facts(self, begin: int) -> tuple[int, ...]:
        """None: all tables are of one size."""
        return ()

    @cached_property
    def table(self) -> Array32:
        """f4[TABLE]."""
        odds = bias_odds([self._profile.model])[0]
        biased = F32(self._profile.length) / F32(8.0)
        table = np.ones(TABLE, F32)
        table[: odds.size] = odds.reshape(-1)
        table[2 * CODES :] = F32(1.0) / (biased + F32(1.0)), biased / (biased + F32(1.0))
        return table
