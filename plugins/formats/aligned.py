"""The two rows of letters of an alignment, and what can be counted in them, from its edit path."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...core.alphabet import Alphabet
from ...core.records import DELETE, INSERT, MATCH, MISMATCH

GAP = ord("-")


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


def aligned_rows(query: np.ndarray | None, target: np.ndarray, alphabet: Alphabet, bounds: tuple[int, int, int, int],
                 frames: tuple[int, int], path: np.ndarray) -> tuple[bytes, bytes]:
    """Letters of both sequences with gaps, along the forward strand of the query.

    Args:
        query: u1 codes of the whole query; None for a model, whose positions are shown as "x".
        target: u1 codes of the whole target.
        alphabet: of both.
        bounds: query_start, query_end, target_start, target_end.
        frames: query_frame, target_frame.
        path: u4 edit operations in the direction of query_frame.
    """
    kinds = np.repeat(shown_path(path, frames[0]) & 15, shown_path(path, frames[0]) >> 4)
    upper = np.full(len(kinds), GAP, np.uint8)
    upper[kinds != DELETE] = ord("x") if query is None else alphabet.bytes[query[bounds[0] : bounds[1]]]
    codes = target[bounds[2] : bounds[3]]
    if frames[0] * frames[1] < 0:
        codes = alphabet.complement[codes[::-1]]
    lower = np.full(len(kinds), GAP, np.uint8)
    lower[kinds != INSERT] = alphabet.bytes[codes]
    return upper.tobytes(), lower.tobytes()


def btops(alignments: Sequence[tuple[bytes, bytes]]) -> list[str]:
    """BLAST's traceback operations of each alignment: numbers of equal letters, and the pairs of unequal ones.

    Args:
        alignments: rows of letters of query and target. The query's letter comes first in a pair.
    """
    if not alignments:
        return []
    # One behind the other, with unequal ends, so that a number never reaches from one into the next.
    upper, lower = (np.frombuffer(b"".join(row + end for row in rows), np.uint8)
                    for rows, end in zip(zip(*alignments, strict=True), (b"\n", b"\t"), strict=False))
    places = np.flatnonzero(upper != lower)
    runs, kinds = np.unique(np.diff(places, prepend=-1) - 1, return_inverse=True)
    parts = np.empty((len(places), 2), object)
    parts[:, 0] = np.array([b"%d" % run if run else b"" for run in runs.tolist()], object)[kinds]
    parts[:, 1] = np.stack([upper[places], lower[places]], axis=1).view("S2").ravel()
    return b"".join(parts.ravel().tolist()).decode("ascii").split("\n\t")[:-1]


def covered(starts: np.ndarray, ends: np.ndarray) -> int:
    """Letters in the union of half-open stretches."""
    order = np.argsort(starts, kind="stable")
    total, reached = 0, 0
    for start, end in zip(starts[order].tolist(), ends[order].tolist()):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total
