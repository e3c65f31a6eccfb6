"""Groups of equal rows in ordered records."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from seqloom.core.distinct import distinct

_PARTS, _PARTS_PER_THREAD = 16, 2
"""At least so many, so that threads are done at about the same time, however long single groups take; not many more,
since each makes arrays and calls kernels, for which threads wait for the interpreter."""


def group_starts(*columns: np.ndarray) -> np.ndarray:
    """i8[g + 1]: where rows differ from the row before in any column, and the number of rows at the end."""
    count = len(columns[0])
    changes = np.zeros(max(count - 1, 0), bool)
    for column in columns:
        changes |= column[1:] != column[:-1]
    return np.concatenate([np.zeros(min(count, 1), np.int64), np.flatnonzero(changes) + 1, np.array([count], np.int64)])


def even_parts(rows: int, threads: int, work: float = math.inf) -> list[tuple[int, int]]:
    """Rows first … last − 1 of parts of equally many: some for each of several threads, one for one.

    Args:
        work: of all rows, in parts that are worth it: no more parts are made.
    """
    parts = max(_PARTS, _PARTS_PER_THREAD * threads) if threads > 1 else 1
    parts = int(min(parts, max(work, 1)))
    return list(pairwise(distinct(rows * np.arange(parts + 1) // parts).tolist()))


def cut_at(parts: list[tuple[int, int]], alone: Iterable[int]) -> list[tuple[int, int]]:
    """Parts first … last − 1 of neighbouring groups, of which some groups get parts of their own."""
    cuts = {0, *(last for _, last in parts), *(end for group in alone for end in (group, group + 1))}
    return list(pairwise(sorted(cuts)))


def group_parts(starts: np.ndarray, threads: int, work: float = math.inf) -> list[tuple[int, int]]:
    """Groups first … last − 1 of parts of about equally many rows, as many as of ``even_parts``.

    Args:
        starts: i8[g + 1] of ``group_starts``.
    """
    rows = [last for _, last in even_parts(int(starts[-1]), threads, work)[:-1]]
    cuts = distinct(np.r_[0, np.searchsorted(starts, rows), len(starts) - 1]).astype(np.int64).tolist()
    return list(pairwise(cuts))
