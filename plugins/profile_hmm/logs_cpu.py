"""Logarithms on the CPU as ``exact_math.log_f32`` rounds them, many at a time.

What is wanted is libm's double-precision logarithm rounded to f32. A series is within 2⁻⁴⁹ of the logarithm, and libm
within 2⁻⁵²; where all numbers that near round to the same f32, that is it, and libm is asked in the few other cases.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.kernels.jit import kernel

from .exact_math import F32, LN2, Array32

if TYPE_CHECKING:
    from numpy.typing import NDArray

AT_ONCE = 512
"""Numbers that ``rounded_logs`` has room for."""
_MANTISSA_BITS = 52
_MANTISSA = np.int64((1 << _MANTISSA_BITS) - 1)
_HALF_ROOT = np.int64(np.float64(0.5**0.5).view(np.int64))
"""Bits of the least mantissa: from here to twice as much, those that are nearest to 1."""
_LEAST, _FROM_INFINITY = np.int64(1 << _MANTISSA_BITS), np.int64(0x7FF << _MANTISSA_BITS)
_BELOW, _ABOVE = 1.0 - 2.0**-48, 1.0 + 2.0**-48

Room = tuple["NDArray[np.float64]", "NDArray[np.int64]", "NDArray[np.float64]", "NDArray[np.int64]",
             "NDArray[np.int64]"]


def room_for_logs() -> Room:
    """For ``rounded_logs``: f8[AT_ONCE] for the numbers and the same as i8, f8 and i8 for mantissas, and i8."""
    numbers, mantissas = np.empty((2, AT_ONCE))
    return numbers, numbers.view(np.int64), mantissas, mantissas.view(np.int64), np.empty(AT_ONCE, np.int64)


@kernel
def rounded_logs(room, count, found):
    """Fill the first ``count`` of f4 ``found`` with logs of the first numbers of the room, which aren't below 0; −∞
    for 0."""
    numbers, bits, mantissas, mantissa_bits, exponents = room
    doubtful = False
    for n in range(count):
        above = bits[n] - _HALF_ROOT
        exponents[n] = above >> _MANTISSA_BITS
        mantissa_bits[n] = (above & _MANTISSA) + _HALF_ROOT
        doubtful |= bits[n] < _LEAST or bits[n] >= _FROM_INFINITY
    for n in range(count):
        # log m = 2 artanh s, by its series.
        beyond = mantissas[n] - 1.0
        s = beyond / (beyond + 2.0)
        z = s * s
        series = 1.0 / 13.0 + z * (1.0 / 15.0 + z * (1.0 / 17.0 + z * (1.0 / 19.0 + z * (1.0 / 21.0))))
        series = 1.0 / 5.0 + z * (1.0 / 7.0 + z * (1.0 / 9.0 + z * (1.0 / 11.0 + z * series)))
        found_log = np.float64(exponents[n]) * LN2 + 2.0 * (s + s * (z * (1.0 / 3.0 + z * series)))
        found[n] = np.float32(found_log * _BELOW)
        doubtful |= found[n] != np.float32(found_log * _ABOVE)
    if doubtful:
        for n in range(count):
            found[n] = np.float32(math.log(numbers[n])) if numbers[n] > 0.0 else np.float32(-np.inf)


@kernel
def logs(values, room, found):
    """Fill f4[n] with logs of f8[n] ``values``, as ``log_f32``."""
    for first in range(0, len(values), AT_ONCE):
        count = min(AT_ONCE, len(values) - first)
        room[0][:count] = values[first : first + count]
        rounded_logs(room, count, found[first : first + count])


def log_f32(values: NDArray[np.floating]) -> Array32:
    """``exact_math.log_f32`` of numbers that aren't below 0."""
    wide = np.ascontiguousarray(values, np.float64)
    found = np.empty(wide.size, F32)
    logs(wide.reshape(-1), room_for_logs(), found)
    return found.reshape(wide.shape)
