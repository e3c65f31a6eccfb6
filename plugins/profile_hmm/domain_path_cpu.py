"""Domains' paths as edit operations and counts on the CPU, as ``domain_path.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import DELETE, INSERT, MATCH, MISMATCH, Ragged

from .profile import SearchProfile

if TYPE_CHECKING:
    from numpy.typing import NDArray

_M, _I, _D = 0, 1, 2


@kernel
def _describe(states, residues, place, node, consensus, match, runs, counts):
    """Fill u4 ``runs`` with runs of operations and i8[6] ``counts``; how many runs."""
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
            runs[n_runs - 1] += np.uint32(1 << 4)
        else:
            runs[n_runs] = 1 << 4 | operation
            n_runs += 1
        before = operation
        place += state != _D
        node += state != _I
    return n_runs


@kernel
def _describe_all(states, offsets, residues, places, nodes, consensus, match, runs, offsets_of_runs, counts):
    """``_describe`` of paths, those of one behind those of the other."""
    offsets_of_runs[0] = 0
    for n in range(len(counts)):
        begin = offsets_of_runs[n]
        offsets_of_runs[n + 1] = begin + _describe(states[offsets[n] : offsets[n + 1]], residues, places[n], nodes[n],
                                                   consensus, match, runs[begin:], counts[n])


def describe_paths(profile: SearchProfile, states: NDArray[np.uint8], offsets: NDArray[np.int64],
                   residues: NDArray[np.uint8], places: NDArray[np.int64],
                   nodes: NDArray[np.int64]) -> tuple[Ragged, NDArray[np.int64]]:
    """Edit paths (``length << 4 | operation``) and counts i8[n, 6], in the order of ``PathCounts``.

    Args:
        profile: the query.
        states: u1, 0, 1, 2 for M, I, D, those of path n from ``offsets[n]`` on; each from its first to its last match
            state.
        residues: u8 codes, of which the first one of path n is at ``places[n]``.
        nodes: i8[n], 0-based, of the first match states.
    """
    runs, counts = np.empty(len(states), np.uint32), np.empty((len(nodes), 6), np.int64)
    offsets_of_runs = np.empty(len(offsets), np.int64)
    _describe_all(states, offsets, residues, places, nodes, profile.model.alphabet.encode(profile.model.consensus),
                  profile.match, runs, offsets_of_runs, counts)
    return Ragged(offsets_of_runs, runs[: int(offsets_of_runs[-1])]), counts
