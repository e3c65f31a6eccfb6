"""A domain's path as edit operations, and the counts that follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.records import DELETE, INSERT, MATCH, MISMATCH
from seqloom.plugins.common.edit_path import PathCounts, run_lengths

from .domains import Path
from .profile import SearchProfile

if TYPE_CHECKING:
    from numpy.typing import NDArray


def describe_path(profile: SearchProfile, path: Path, residues: NDArray[np.uint8]) -> tuple[list[int], PathCounts]:
    """Edit path (``length << 4 | operation``) and counts of a domain.

    A column is equal where the residue is the consensus residue of the node, and positive where it is that or scores
    above 0. A skipped node is an insertion (query residues against a gap), an inserted residue a deletion.

    Args:
        profile: the query.
        path: from its first to its last match state.
        residues: u8 codes of the envelope that the path counts in.
    """
    columns = list(_columns(profile, path, residues))
    operations = [operation for operation, _ in columns]
    runs = run_lengths(operations)
    gaps = sum(operation in (INSERT, DELETE) for operation in operations)
    counts = PathCounts(
        length=len(operations),
        identities=operations.count(MATCH),
        positives=sum(positive for _, positive in columns),
        mismatches=operations.count(MISMATCH),
        gap_opens=sum(run & 15 in (INSERT, DELETE) for run in runs),
        gaps=gaps,
    )
    return runs, counts


def _columns(profile: SearchProfile, path: Path, residues: NDArray[np.uint8]) -> Iterator[tuple[int, bool]]:
    """Operation of each column, and whether it is positive."""
    consensus = profile.model.alphabet.encode(profile.model.consensus)
    i, k = path.start - 1, path.model_start
    for state in path.states:
        if state == "M":
            equal = bool(residues[i] == consensus[k - 1])
            yield (MATCH if equal else MISMATCH), equal or bool(profile.match[residues[i], k] > 0.0)
        else:
            yield (INSERT if state == "D" else DELETE), False
        i += state != "D"
        k += state != "I"
