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


def covered(starts: np.ndarray, ends: np.ndarray) -> int:
    """Letters in the union of half-open stretches."""
    order = np.argsort(starts, kind="stable")
    total, reached = 0, 0
    for start, end in zip(starts[order].tolist(), ends[order].tolist()):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total
