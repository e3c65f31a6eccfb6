"""What can be counted in an alignment, from its edit path."""

from collections.abc import Iterable

import numpy as np
from seqloom.core.classes import dataclass

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
    """Residues in the union of all half-open stretches of each one's group (i8 from 0): i8[n]."""
    order = np.lexsort([starts, groups])
    group, start, end = (values[order].astype(np.int64) for values in (groups, starts, ends))
    apart = group * (int(end.max(initial=0)) + 2)  # the ends of one group are all beyond those of the one before
    reached = np.maximum.accumulate(end + apart) - apart
    before = np.zeros(len(group), np.int64)
    before[1:] = np.where(group[1:] == group[:-1], reached[:-1], 0)
    totals = np.bincount(group, np.maximum(0, end - np.maximum(start, before)))
    return totals.astype(np.int64)[groups]


class Stretches:
    """A set of places, as disjoint half-open stretches in order."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, int]] = []

    def missing(self, start: int, end: int) -> list[tuple[int, int]]:
        """The parts of a stretch that aren't in the set."""
        found = []
        for low, high in self._parts:
            if high <= start or low >= end:
                continue
            if low > start:
                found.append((start, low))
            start = high
        return [*found, (start, end)] if start < end else found

    def add(self, start: int, end: int) -> None:
        self._parts = sorted([*self._parts, *self.missing(start, end)])

    def __len__(self) -> int:
        return sum(end - start for start, end in self._parts)


def uniquely_covered(alignments: Iterable[tuple[int, int, int, int, bool, np.ndarray]]) -> int:
    """Residues of the query that alignments with one target cover where no earlier one takes the same target residues.

    alignments: in order of report, query start and end, target start and end, whether they run in opposite directions,
    and the path along the query (empty without gaps). Of an alignment whose target stretch is partly taken, each
    part that isn't taken counts from the query residue opposite its first residue to that opposite its last.
    """
    taken, counted = Stretches(), Stretches()
    for query_start, query_end, target_start, target_end, turned, path in alignments:
        parts = taken.missing(target_start, target_end)
        if parts == [(target_start, target_end)]:
            counted.add(query_start, query_end)
        else:
            for start, end in parts:
                along = (target_end - end, target_end - start) if turned else (start - target_start, end - target_start)
                counted.add(query_start + _opposite(path, along[0]), query_start + _opposite(path, along[1] - 1) + 1)
        for part in parts:
            taken.add(*part)
    return len(counted)


def _opposite(path: np.ndarray, residue: int) -> int:
    """Query residues before the one opposite a target residue, both counted along the path; before a gap: beside it."""
    query = target = 0
    for run in path.tolist():
        length, kind = run >> 4, run & 15
        if kind == INSERT:
            query += length
        elif target + length > residue:
            return query + (residue - target if kind != DELETE else 0)
        else:
            query += length if kind != DELETE else 0
            target += length
    return query + residue - target
