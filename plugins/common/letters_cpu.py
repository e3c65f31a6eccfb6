"""Which letters occur in sequences or keys."""

import numpy as np
from seqloom.core.jit import kernel


@kernel
def mark_letters(values, first, last, seen):
    """Set bool[256] ``seen`` for each letter of ``values[first:last]``."""
    for place in range(first, last):
        seen[values[place]] = True


def letters_of(values: np.ndarray) -> np.ndarray:
    """i8[k]: the letters that occur in u1[n] ``values``, ascending."""
    seen = np.zeros(256, np.bool_)
    mark_letters(values, 0, len(values), seen)
    return np.flatnonzero(seen)
