"""Search profiles on the CPU: ``profile.search_profile`` with libm's logarithms called by kernels."""

import math

import numpy as np
from seqloom.core.kernels.jit import kernel

from .exact_math import F32
from .hmmfile import DM, MI, MM, ProfileHmm
from .profile import SearchProfile
from .residues import expected_score, table_by_code


@kernel
def _logs(values, found):
    """f32 of the double-precision logs of f8 ``values``; −∞ for 0."""
    for n in range(len(values)):
        found[n] = np.float32(math.log(values[n])) if values[n] > 0.0 else np.float32(-np.inf)


@kernel
def _occupancies(t, occupancy):
    """Fill f4[M + 1] with the probability that a match state is used; the weight of all of them together."""
    length = len(occupancy) - 1
    occupancy[0], occupancy[1] = np.float32(0.0), t[0, MI] + t[0, MM]
    for k in range(2, length + 1):
        staying = occupancy[k - 1] * (t[k - 1, MM] + t[k - 1, MI])
        returning = (1.0 - np.float64(occupancy[k - 1])) * np.float64(t[k - 1, DM])
        occupancy[k] = np.float32(np.float64(staying) + returning)
    weight = np.float32(0.0)
    for k in range(1, length + 1):
        weight = weight + occupancy[k] * np.float32(length - k + 1)
    return weight


def log_f32(values: np.ndarray) -> np.ndarray:
    """``exact_math.log_f32`` of numbers that aren't below 0."""
    wide = np.ascontiguousarray(values, np.float64)
    found = np.empty(wide.size, F32)
    _logs(wide.reshape(-1), found)
    return found.reshape(wide.shape)


def search_profile(model: ProfileHmm) -> SearchProfile:
    """Configure a model for local multihit search."""
    length = model.length
    background = model.residues.background.astype(np.float64)
    residues = np.full((len(background), length + 1), -np.inf, F32)
    residues[:, 1:] = log_f32(model.match[1:].astype(np.float64) / background).T
    transitions = np.full((length + 1, 7), -np.inf, F32)
    transitions[1:length] = log_f32(model.transitions[1:length])
    occupancy = np.empty(length + 1, F32)
    weight = _occupancies(np.ascontiguousarray(model.transitions), occupancy)
    entry = log_f32(occupancy / F32(weight))
    entry[0] = -np.inf
    return SearchProfile(model, table_by_code(residues, expected_score, -np.inf), entry, transitions)
