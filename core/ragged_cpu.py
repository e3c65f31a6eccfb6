"""Rows of unlike lengths, copied: other threads have the interpreter meanwhile, which numpy keeps where it repeats."""

import numpy as np

from .kernels.jit import kernel


@kernel
def _copied(values, starts, offsets, out):
    """Fill ``out`` with rows that begin at ``starts``, and in it at ``offsets``."""
    for row in range(len(starts)):
        first, begin = np.uint64(starts[row]), np.uint64(offsets[row])
        for n in range(np.uint64(offsets[row + 1]) - begin):
            out[begin + n] = values[first + n]


def copied_rows(values: np.ndarray, starts: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Rows of ``values``, all of which lie within it, one behind the other.

    Args:
        starts: i8[n], where each begins.
        offsets: i8[n + 1], where each is to begin, and the end of the last one.
    """
    out = np.empty(int(offsets[-1]), values.dtype)
    _copied(np.ascontiguousarray(values), starts, offsets, out)
    return out


__all__ = ["copied_rows"]
