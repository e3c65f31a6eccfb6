"""Elementary functions whose last bit decides the answer.

HMMER rounds at exact places: C's single-precision ``expf``/``logf`` while it reads a model, the double-precision
``log`` of libm everywhere else, and a polynomial ``expf`` of its own for odds ratios. numpy's vectorised ``exp`` and
``log`` differ from libm in the last bit, so nothing here uses them.
"""

from __future__ import annotations

import ctypes
import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.distinct import ranked

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array32 = NDArray[np.float32]
else:
    Array32 = np.ndarray

F32 = np.float32
LN2 = 0.69314718055994529
LOG2_E = 1.44269504088896341



@cache
def _libm_function(name: str):  # type: ignore[no-untyped-def]
    # The interpreter itself is linked with libm; looking a library up by name would start other programs.
    function = getattr(ctypes.CDLL(None), name)
    function.argtypes = [ctypes.c_float]
    function.restype = ctypes.c_float
    return function


def expf(values: ArrayLike) -> Array32:
    """libm's single-precision exponential of each value (rounded to f32 first, infinity beyond it); shape kept."""
    with np.errstate(over="ignore"):
        single = np.asarray(values, dtype=F32)
    different, which = ranked(single.reshape(-1))
    function = _libm_function("expf")
    powers = np.array([function(v) for v in different.tolist()], dtype=F32)
    return powers[which].reshape(single.shape)


def logf(value: float | np.floating) -> np.float32:
    """libm's single-precision natural logarithm of one value (rounded to f32 first); -inf for 0."""
    return F32(_libm_function("logf")(float(value)))


def log(value: float | np.floating) -> float:
    """libm's double-precision natural logarithm of one value; -inf for 0 as in C."""
    wide = float(value)
    return math.log(wide) if wide > 0.0 else -math.inf


def log_f32(values: ArrayLike) -> Array32:
    """Double-precision ``log`` of each value, rounded to f32; shape kept; log 0 = -inf."""
    wide = np.asarray(values, dtype=np.float64)
    logs = [log(v) for v in wide.ravel().tolist()]
    return np.array(logs, dtype=np.float64).astype(F32).reshape(wide.shape)


EXP_COEFFICIENTS = tuple(
    F32(c)
    for c in (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
)
EXP_LIMIT = F32(88.3762626647949)


def odds(scores: ArrayLike) -> Array32:
    """Odds ratio exp(score) of f32 log-odds scores, by the polynomial that HMMER's vector code uses.

    Every operation is rounded to f32 by itself; scores beyond ±88.376 give inf and 0; shape kept.
    """
    score = np.asarray(scores, dtype=F32)
    inside = np.abs(score) < EXP_LIMIT
    x = np.where(inside, score, F32(0.0))
    power = np.floor(x * F32(LOG2_E) + F32(0.5))
    x = x - power * F32(0.693359375)
    x = x - power * F32(-2.12194440e-4)
    square = x * x
    y = np.full_like(x, EXP_COEFFICIENTS[0])
    for coefficient in EXP_COEFFICIENTS[1:]:
        y = y * x + coefficient
    y = y * square + x + F32(1.0)
    exponent_bits = (power.astype(np.int32) + 127) << 23
    result = y * exponent_bits.view(F32)
    return np.where(inside, result, np.where(score > 0, F32(np.inf), F32(0.0))).astype(F32)


def round_half_away(values: ArrayLike) -> NDArray[np.float64]:
    """C's ``roundf`` of each value, f8: nearest integer, halves away from zero; infinities stay."""
    wide = np.asarray(values, dtype=np.float64)
    return np.copysign(np.floor(np.abs(wide) + 0.5), wide)


def log_sum(a: float | np.floating, b: float | np.floating) -> np.float32:
    """HMMER's table-driven log(exp(a) + exp(b)) in f32: differences are truncated to steps of 0.001 nat."""
    larger, smaller = max(F32(a), F32(b)), min(F32(a), F32(b))
    difference = larger - smaller
    if np.isneginf(smaller) or difference >= F32(15.7):
        return larger
    return larger + F32(_log_sum_step(int(difference * F32(1000.0))))


def _log_sum_step(step: int) -> float:
    return math.log(1.0 + math.exp(-step / 1000.0))


@cache
def log_sum_table() -> Array32:
    """f32[15700]: what ``log_sum`` adds to the larger number, by the difference in steps of 0.001 nat."""
    return np.array([_log_sum_step(step) for step in range(15700)], F32)


def compensated_sum(values: ArrayLike) -> np.float32:
    """Kahan-compensated f32 sum, in order."""
    total = compensation = F32(0.0)
    for value in np.asarray(values, dtype=F32):
        corrected = value - compensation
        new_total = total + corrected
        compensation = (new_total - total) - corrected
        total = new_total
    return total


def running_sum(values: Array32) -> Array32:
    """f32 sums of the first 1, 2, ... rows, each addition rounded, strictly in order."""
    return np.add.accumulate(values, axis=0, dtype=F32)
