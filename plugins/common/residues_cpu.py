"""Which residues occur in sequences or keys."""

import numpy as np
from seqloom.core.kernels.jit import kernel


@kernel
def mark_residues(values, first, last, seen):
    """Set bool[256] ``seen`` for each residue of ``values[first:last]``."""
    for place in range(first, last):
        seen[values[place]] = True


def residues_of(values: np.ndarray) -> np.ndarray:
    """i8[k]: the residues that occur in u1[n] ``values``, ascending."""
    seen = np.zeros(256, np.bool_)
    mark_residues(values, 0, len(values), seen)
    return np.flatnonzero(seen)


@kernel
def count_codes(codes, offsets, counts):
    """Add to i8[k, a] ``counts`` how often each code (u1[n], below a) occurs in each of k sequences."""
    for sequence in range(len(offsets) - 1):
        for place in range(offsets[sequence], offsets[sequence + 1]):
            counts[sequence, codes[place]] += 1
