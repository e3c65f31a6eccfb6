"""P-values in kernels, with the operations of ``p_values.py``."""

import math

import numpy as np
from seqloom.core.kernels.jit import kernel

from .exact_math import LN2


@kernel
def bits(score, null):
    """Score in bits, f32 as f64, of a raw score over a null score, f32 nats."""
    return np.float64(np.float32(np.float64(score - null) / LN2))


@kernel
def gumbel(score, null, mu, rate):
    """P-value of a raw score, f32 nats, over a null score under a Gumbel distribution of scores in bits."""
    power = -rate * (bits(score, null) - mu)
    tail = math.exp(power) if power < 709.0 else np.inf
    return tail if tail < 5e-9 else 1.0 - math.exp(-tail)


@kernel
def exponential(score, null, tau, rate):
    """P-value of a raw score, f32 nats, over a null score under an exponential distribution that begins at tau bits."""
    over = bits(score, null)
    return 1.0 if over < tau else math.exp(-rate * (over - tau))


@kernel
def _gumbel_all(scores, nulls, mus, rates, p_values):
    for n in range(len(scores)):
        p_values[n] = gumbel(scores[n], nulls[n], mus[n], rates[n])


@kernel
def _exponential_all(scores, nulls, taus, rates, p_values):
    for n in range(len(scores)):
        p_values[n] = exponential(scores[n], nulls[n], taus[n], rates[n])


def gumbel_p_values(scores: np.ndarray, nulls: np.ndarray, mus: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """P-values f8[n] of raw scores f4[n] over null scores f4[n], in nats, under distributions f8[n]."""
    p_values = np.empty(len(scores), np.float64)
    _gumbel_all(scores, nulls, mus, rates, p_values)
    return p_values


def exponential_p_values(scores: np.ndarray, nulls: np.ndarray, taus: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """P-values f8[n] of raw scores f4[n] over null scores f4[n], in nats, under distributions f8[n]."""
    p_values = np.empty(len(scores), np.float64)
    _exponential_all(scores, nulls, taus, rates, p_values)
    return p_values
