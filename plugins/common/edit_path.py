"""Steps of a traceback as run-length edit operations, and the counts that follow from them."""

from __future__ import annotations

from collections.abc import Iterable

from seqloom.core.classes import NamedTuple
from seqloom.core.records import DELETE, INSERT, MATCH, MISMATCH
from seqloom.plugins.common.xdrop import BOTH, ROW_ONLY, Matrix


class PathCounts(NamedTuple):
    """Columns of an alignment by kind; `length` is their total, `gaps` the columns with a gap, `gap_opens` its runs."""

    length: int
    identities: int
    positives: int
    mismatches: int
    gap_opens: int
    gaps: int


def run_lengths(operations: Iterable[int]) -> list[int]:
    """Runs of equal operations as `length << 4 | operation`."""
    runs: list[int] = []
    for operation in operations:
        if runs and runs[-1] & 15 == operation:
            runs[-1] += 1 << 4
        else:
            runs.append(1 << 4 | operation)
    return runs


def path_of_steps(steps: Iterable[int], query: bytes, target: bytes, rows_are_query: bool = True) -> list[int]:
    """Edit path of traceback steps along the aligned stretches `query` and `target` (codes, as printed).

    Equal codes make a match, whatever they score.
    """
    query_only = ROW_ONLY if rows_are_query else 3 - ROW_ONLY
    operations = []
    i = j = 0
    for step in steps:
        if step == BOTH:
            operations.append(MATCH if query[i] == target[j] else MISMATCH)
            i += 1
            j += 1
        elif step == query_only:
            operations.append(INSERT)
            i += 1
        else:
            operations.append(DELETE)
            j += 1
    return run_lengths(operations)


def count_path(path: Iterable[int], query: bytes, target: bytes, matrix: Matrix | None) -> PathCounts:
    """Counts of an edit path along the aligned stretches; equal residues and pairs that score above 0 are positive.

    Without a matrix only equal residues are.
    """
    columns = {INSERT: 0, DELETE: 0, MATCH: 0, MISMATCH: 0}
    similar = gap_opens = 0
    i = j = 0
    for run in path:
        length, operation = run >> 4, run & 15
        columns[operation] += length
        if matrix is not None and operation == MISMATCH:
            similar += sum(matrix[query[i + k]][target[j + k]] > 0 for k in range(length))
        gap_opens += operation in (INSERT, DELETE)
        i += 0 if operation == DELETE else length
        j += 0 if operation == INSERT else length
    gaps = columns[INSERT] + columns[DELETE]
    return PathCounts(
        length=sum(columns.values()),
        identities=columns[MATCH],
        positives=columns[MATCH] + similar,
        mismatches=columns[MISMATCH],
        gap_opens=gap_opens,
        gaps=gaps,
    )
