"""The first filter: MSV, the best set of ungapped segments, in saturating 8-bit arithmetic.

All targets run side by side, one row of the model per residue. HMMER tries SSV (a single segment) first and runs MSV
where a second segment could matter; starting the J state at SSV's floor gives the value that HMMER returns in one pass.
CUDAMPF++ section 2.1 and algorithm 2; Eddy 2011 for the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .exact_math import F32
from .profile import BYTE_BASE, BYTE_SCALE, ByteProfile, byte_length_cost

if TYPE_CHECKING:
    from numpy.typing import NDArray

LANES = 256
"""Targets that run side by side."""


def msv_scores(profile: ByteProfile, targets: Sequence[NDArray[np.uint8]],
               did: Callable[[int], None] = lambda residues: None) -> NDArray[np.float32]:
    """Raw MSV filter scores in nats, f32, +inf where 8 bits overflow.

    Args:
        profile: costs of the query.
        targets: u8 residue codes of each target, none empty.
        did: informed of the residues that have been looked at.
    """
    scores = np.empty(len(targets), F32)
    longest_first = sorted(range(len(targets)), key=lambda n: -len(targets[n]))
    for start in range(0, len(longest_first), LANES):
        chosen = longest_first[start : start + LANES]
        scores[chosen] = _scores_of_lanes(profile, [targets[n] for n in chosen])
        did(sum(len(targets[n]) for n in chosen))
    return scores


def _scores_of_lanes(profile: ByteProfile, targets: list[NDArray[np.uint8]]) -> NDArray[np.float32]:
    """Scores of targets that stand in descending order of length."""
    lengths = np.array([len(t) for t in targets])
    residues = np.zeros((lengths[0], len(targets)), np.uint8)
    for lane, target in enumerate(targets):
        residues[: len(target), lane] = target
    still_running = np.searchsorted(-lengths, -np.arange(1, lengths[0] + 1), side="right")

    length_cost = np.array([byte_length_cost(int(n)) for n in lengths], np.int16)
    begin_cost = length_cost + np.int16(profile.entry)
    best_j = first_j(profile, length_cost)
    begin = np.maximum(np.maximum(BYTE_BASE, best_j) - begin_cost, 0)
    overflow = np.zeros(len(targets), bool)
    width = profile.cost.shape[1]
    cells = np.zeros((len(targets), width + 1), np.int16)
    cost = profile.cost.astype(np.int16)
    for row, running in enumerate(still_running.tolist()):
        previous = np.maximum(cells[:running, :width], begin[:running, None])
        new = np.minimum(previous + np.int16(profile.bias), 255) - cost[residues[row, :running]]
        cells[:running, 1:] = np.maximum(new, 0)
        best = cells[:running, 1:].max(axis=1)
        overflow[:running] |= best + profile.bias >= 255
        best_j[:running] = np.maximum(best_j[:running], best - profile.end)
        begin[:running] = np.maximum(np.maximum(BYTE_BASE, best_j[:running]) - begin_cost[:running], 0)
    scores = ((best_j - length_cost).astype(F32) - F32(BYTE_BASE)) / BYTE_SCALE - F32(3.0)
    return np.where(overflow, F32(np.inf), scores)


def first_j(profile: ByteProfile, length_cost: NDArray[np.int16]) -> NDArray[np.int16]:
    """Value of J before the first residue: the least that SSV can return, or 0 where HMMER doesn't try SSV."""
    floor = BYTE_BASE - length_cost - profile.entry - profile.end
    no_ssv = length_cost + profile.entry + profile.end + profile.bias >= 127
    return np.where(no_ssv, 0, np.maximum(floor, 0)).astype(np.int16)
