"""P-values of scores: Gumbel for MSV and Viterbi, exponential for Forward (HMMER 3; Eddy 2008).

All functions are f64 over a score in bits.
"""

from __future__ import annotations

import math

import numpy as np

from .exact_math import F32, LN2


def bits(score: float | np.floating, null: float | np.floating) -> np.float32:
    """Score in bits over the null model; f32 difference, f64 quotient, rounded to f32."""
    return F32(float(F32(score) - F32(null)) / LN2)


def gumbel_survival(score: float, mu: float, rate: float) -> float:
    """P(S > score) under a Gumbel distribution; 0 for +inf."""
    tail = math.exp(-rate * (score - mu)) if -rate * (score - mu) < 709.0 else math.inf
    return tail if tail < 5e-9 else 1.0 - math.exp(-tail)


def exponential_log_survival(score: float, tau: float, rate: float) -> float:
    """ln P(S > score) under an exponential distribution that begins at tau."""
    return 0.0 if score < tau else -rate * (score - tau)


def exponential_survival(score: float, tau: float, rate: float) -> float:
    """P(S > score) under an exponential distribution that begins at tau."""
    return 1.0 if score < tau else math.exp(-rate * (score - tau))
