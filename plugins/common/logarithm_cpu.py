"""Natural logarithms of many numbers at a time.

A number is f · 2^e with f from sqrt(1/2) to sqrt(2); ln f = 2 artanh s with s = (f − 1) / (f + 1), |s| < 0.172, by a
polynomial of s² whose coefficients are those of Sun's fdlibm (e_log.c).
"""

import math

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import (
    BYTE_LANES,
    bits_of,
    greater_lanes,
    load,
    minimum,
    numbers_of,
    shifted_down,
    splat,
    store,
    wrapped_difference,
    wrapped_sum,
)

LANES = BYTE_LANES // 8
_SMALLEST = float(np.finfo(np.float64).tiny)
_MANTISSA = 52
_BIAS = 1024
"""Added to powers of two, so that none is below 0."""
_BEGIN = int(np.float64(math.sqrt(0.5)).view(np.int64)) - (_BIAS << _MANTISSA)
_POWER = -1 << _MANTISSA
_SHIFTED = float(1 << _MANTISSA)
"""Of a number as large as this the lowest bits are an integer."""
_SHIFTED_BITS = int(np.float64(_SHIFTED).view(np.int64))
_LN2 = math.log(2)
_A1, _A2, _A3, _A4, _A5, _A6, _A7 = (
    6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
    1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01,
)  # fmt: skip


@inline
def _logarithm(number):
    """Of lanes that are normal numbers above 0."""
    bits, one = bits_of(number), splat(1.0, LANES)
    above = wrapped_difference(bits, splat(_BEGIN, LANES))
    power = numbers_of(wrapped_sum(shifted_down(above, _MANTISSA), splat(_SHIFTED_BITS, LANES)))
    fraction = numbers_of(wrapped_difference(bits, wrapped_difference(above & splat(_POWER, LANES),
                                                                      splat(_BIAS << _MANTISSA, LANES))))
    s = (fraction - one) / (fraction + one)
    z = s * s
    series = z * (splat(_A1, LANES) + z * (splat(_A2, LANES) + z * (splat(_A3, LANES) + z * (splat(_A4, LANES) + z * (
        splat(_A5, LANES) + z * (splat(_A6, LANES) + z * splat(_A7, LANES)))))))
    return (power - splat(_SHIFTED + _BIAS, LANES)) * splat(_LN2, LANES) + (s + s + s * series)


@kernel
def logarithms(numbers, result):
    """Natural logarithms of f8[n] numbers from 0 on to f8[n] ``result``, within 2 units in the last place.

    −infinity for 0. n is a multiple of ``LANES``.
    """
    least = splat(_SMALLEST, LANES)
    for k in range(0, len(numbers), LANES):
        number = load(numbers, k, LANES)
        least = minimum(least, number)
        store(result, k, _logarithm(number))
    if greater_lanes(splat(_SMALLEST, LANES), least):  # 0 or subnormal, seldom
        for k in range(len(numbers)):
            if numbers[k] < _SMALLEST:
                result[k] = math.log(numbers[k]) if numbers[k] > 0 else -math.inf
