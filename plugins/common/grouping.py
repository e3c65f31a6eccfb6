"""Groups of equal rows in ordered records."""

from __future__ import annotations

import numpy as np


def group_starts(*columns: np.ndarray) -> np.ndarray:
    """i8[g + 1]: where rows differ from the row before in any column, and the number of rows at the end."""
    count = len(columns[0])
    changes = np.zeros(max(count - 1, 0), bool)
    for column in columns:
        changes |= column[1:] != column[:-1]
    return np.r_[np.zeros(min(count, 1), np.int64), np.flatnonzero(changes) + 1, [count]].astype(np.int64)
