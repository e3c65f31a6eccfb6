"""A domain's path as edit operations and counts on the CPU, as ``domain_path.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import DELETE, INSERT, MATCH, MISMATCH
from seqloom.plugins.common.edit_path import PathCounts

from .domains import Domain
from .profile import SearchProfile

if TYPE_CHECKING:
    from numpy.typing import NDArray

_M, _I, _D = b"MID"


@kernel
def _describe(states, residues, place, node, consensus, match, runs, counts):
    """Fill i8 ``runs`` with runs of operations and i8[6] ``counts``; how many runs."""
    n_runs, before = 0, -1
    counts[:] = 0
    counts[0] = len(states)
    for state in states:
        operation = INSERT if state == _D else DELETE
        if state == _M:
            equal = residues[place] == consensus[node]
            operation = MATCH if equal else MISMATCH
            counts[1] += equal
            counts[2] += equal or match[residues[place], node + 1] > np.float32(0.0)
            counts[3] += not equal
        else:
            counts[4] += operation != before
            counts[5] += 1
        if operation == before:
            runs[n_runs - 1] += 1 << 4
        else:
            runs[n_runs] = 1 << 4 | operation
            n_runs += 1
        before = operation
        place += state != _D
        node += state != _I
    return n_runs


@kernel
def compensated_sum(values):
    """Kahan-compensated f32 sum, in order."""
    total = compensation = np.float32(0.0)
    for value in values:
        corrected = value - compensation
        larger = total + corrected
        compensation = (larger - total) - corrected
        total = larger
    return total


def describe_path(profile: SearchProfile, domain: Domain, residues: NDArray[np.uint8],
                  begin: int) -> tuple[list[int], PathCounts]:
    """Edit path (``length << 4 | operation``) and counts of a domain of the target that begins at ``begin``."""
    path = domain.path
    states = np.frombuffer(path.states.encode(), np.uint8)
    runs, counts = np.empty(len(states), np.int64), np.empty(6, np.int64)
    n_runs = _describe(states, residues, begin + domain.start + path.start - 2, path.model_start - 1,
                       profile.model.alphabet.encode(profile.model.consensus), profile.match, runs, counts)
    return runs[:n_runs].tolist(), PathCounts(*counts.tolist())
