"""Natural logarithms of many numbers at a time, by loops that LLVM turns into vectors.

A number is f · 2^e with f from sqrt(1/2) to sqrt(2); ln f = 2 artanh s with s = (f − 1) / (f + 1), |s| < 0.172, by its
series. Numbers and their bits are views of the same memory; a loop reads or writes one of the two alone.
"""

import math
from typing import NamedTuple

import numpy as np
from seqloom.core.kernels.jit import kernel

_SMALLEST = float(np.finfo(np.float64).tiny)
_MANTISSA = 52
_BEGIN = int(np.float64(math.sqrt(0.5)).view(np.int64))
_SHIFTED = 1 << 51 | 1 << 52
"""Of a number as large as this the lowest bits are an integer."""
_SHIFTED_BITS = int(np.float64(_SHIFTED).view(np.int64))
_LN2 = math.log(2)
_A1, _A2, _A3, _A4, _A5, _A6, _A7, _A8, _A9, _A10 = (1 / (2 * k + 1) for k in range(1, 11))


class LogarithmRoom(NamedTuple):
    """Room for fractions and powers of f8[n] numbers, and views of it as i8[n]."""

    fractions: np.ndarray
    fraction_bits: np.ndarray
    powers: np.ndarray
    power_bits: np.ndarray

    @classmethod
    def of(cls, size: int) -> "LogarithmRoom":
        fractions, powers = np.empty(size), np.empty(size)
        return cls(fractions, fractions.view(np.int64), powers, powers.view(np.int64))


@kernel
def logarithms(numbers, bits, room, result):
    """Natural logarithms of f8[n] numbers from 0 on to f8[n] ``result``, within 2 units in the last place.

    −infinity for 0. bits: a view of the numbers as i8[n].
    """
    fractions, fraction_bits, powers, power_bits = room
    for k in range(len(bits)):
        power = (bits[k] - _BEGIN) >> _MANTISSA
        fraction_bits[k] = bits[k] - (power << _MANTISSA)
        power_bits[k] = _SHIFTED_BITS + power
    for k in range(len(numbers)):
        s = (fractions[k] - 1) / (fractions[k] + 1)
        z = s * s
        series = z * (_A1 + z * (_A2 + z * (_A3 + z * (_A4 + z * (_A5 + z * (
            _A6 + z * (_A7 + z * (_A8 + z * (_A9 + z * _A10)))))))))
        value = (powers[k] - _SHIFTED) * _LN2 + (2 * s + 2 * s * series)
        result[k] = value
    small = 0
    for k in range(len(numbers)):
        small += numbers[k] < _SMALLEST
    if small:  # 0 or subnormal, seldom
        for k in range(len(numbers)):
            if numbers[k] < _SMALLEST:
                result[k] = math.log(numbers[k]) if numbers[k] > 0 else -math.inf
