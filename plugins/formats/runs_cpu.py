"""Runs of equal numbers."""

import numpy as np
from seqloom.core.kernels.jit import kernel


@kernel
def _count_in_runs(keys, places):
    """Fill the place of each key among the equal ones beside it."""
    for n in range(len(keys)):
        places[n] = places[n - 1] + 1 if n and keys[n] == keys[n - 1] else 1


def places_in_runs(keys: np.ndarray) -> np.ndarray:
    """i8[n]: how many of equal keys, which stand side by side, there are up to each, from 1."""
    places = np.empty(len(keys), np.int64)
    _count_in_runs(np.ascontiguousarray(keys), places)
    return places


__all__ = ["places_in_runs"]
