"""What can be counted in an alignment, from its edit path."""

from dataclasses import dataclass

import numpy as np

from ...core.records import DELETE, INSERT, MATCH, MISMATCH


@dataclass(frozen=True)
class PathCounts:
    """Columns of an alignment by kind."""

    length: int
    identities: int
    mismatches: int
    gap_opens: int
    gaps: int


def count_path(path: np.ndarray) -> PathCounts:
    """Counts in u4 edit operations."""
    lengths, kinds = path >> 4, path & 15
    gap = (kinds == INSERT) | (kinds == DELETE)
    return PathCounts(int(lengths.sum()), int(lengths[kinds == MATCH].sum()), int(lengths[kinds == MISMATCH].sum()),
                      int(gap.sum()), int(lengths[gap].sum()))


def shown_path(path: np.ndarray, query_frame: int) -> np.ndarray:
    """The path in the direction in which it is printed: along the forward strand of the query."""
    return path[::-1] if query_frame < 0 else path


def covered(groups: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Letters in the union of all half-open stretches of each one's group (i8 from 0): i8[n]."""
    order = np.lexsort([starts, groups])
    group, start, end = (values[order].astype(np.int64) for values in (groups, starts, ends))
    apart = group * (int(end.max(initial=0)) + 2)  # the ends of one group are all beyond those of the one before
    reached = np.maximum.accumulate(end + apart) - apart
    before = np.zeros(len(group), np.int64)
    before[1:] = np.where(group[1:] == group[:-1], reached[:-1], 0)
    totals = np.bincount(group, np.maximum(0, end - np.maximum(start, before)))
    return totals.astype(np.int64)[groups]
