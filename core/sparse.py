"""Large arrays of which few stretches are written: the system provides memory for these alone."""

import mmap
from contextlib import suppress

import numpy as np

from .engine.heap import OWN_MAPPING

DENSE = 4
"""Of an array one part in so many that is written makes it a dense one."""


def sparse(size: int, written: int) -> np.ndarray:
    """u1[size] with any content, of which about ``written`` bytes in a few stretches will be written.

    As others, large arrays would get memory in pages of 2 MiB, which are cleared whole for a few bytes.
    """
    if size < OWN_MAPPING or DENSE * written >= size or not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.empty(size, np.uint8)
    mapped = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with suppress(OSError):
            mapped.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(mapped, np.uint8)
