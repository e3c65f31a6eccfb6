"""Both strands of a query in one array, and the way between strand and forward coordinates.

Stages compute in the coordinates of the strand that was searched: position 0 is the first base of that strand. Records
hold forward coordinates. A half-open stretch or a boundary between two bases is mirrored by ``length - position``.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.plugins.common.nucleotide_statistics import SENTINEL

PLUS, MINUS = 1, -1


def both_strands(codes: np.ndarray) -> np.ndarray:
    """u8[2n + 1]: the sequence (u8[n]), a sentinel, and its reverse complement."""
    reverse = NUCLEOTIDE.complement[codes][::-1]
    return np.concatenate([codes, np.array([SENTINEL], np.uint8), reverse])


def strand_start(frame: int, length: int) -> int:
    """Where the strand of ``frame`` begins in ``both_strands`` of a sequence of this length."""
    return 0 if frame == PLUS else length + 1


def mirrored(start: int, end: int, length: int, frame: int) -> tuple[int, int]:
    """A stretch in the coordinates of a strand as one in forward coordinates, and the other way round."""
    return (start, end) if frame == PLUS else (length - end, length - start)
