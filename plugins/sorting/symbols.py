"""Symbols of byte strings as the sorters see them: a string's end is a symbol of its own, below every byte."""

import numpy as np
from seqloom.core.records import Ragged

SYMBOLS = 257
"""Size of the alphabet: the end of a string (0) and the 256 bytes (1…256)."""


def symbols_at(keys: Ragged, rows: np.ndarray, depth: "int | np.ndarray") -> np.ndarray:
    """i8[len(rows)]: symbol of each row at ``depth`` (0-based, one for all or one per row); 0 behind a row's end."""
    places = keys.offsets[rows] + depth
    inside = places < keys.offsets[rows + 1]
    symbols = np.zeros(len(rows), np.int64)
    symbols[inside] = keys.values[places[inside]]
    symbols[inside] += 1
    return symbols
