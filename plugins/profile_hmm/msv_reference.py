"""The first filter: MSV, the best set of ungapped segments, and SSV, the best single one, in eight bits.

All targets run side by side, one row of the model per residue. HMMER tries SSV first and runs MSV where a second
segment could matter; starting the J state at SSV's floor gives the value that HMMER returns in one pass. SSV alone is
MSV without the J state: it never says more than MSV, and the same wherever HMMER leaves it at SSV.
CUDAMPF++ section 2.1 and algorithms 2 and 7; Eddy 2011 for the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

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
    return _by_lanes(_scores_of_lanes, F32, profile, targets, did)


def ssv_scores(profile: ByteProfile, targets: Sequence[NDArray[np.uint8]],
               did: Callable[[int], None] = lambda residues: None) -> NDArray[np.float32]:
    """Raw SSV filter scores in nats, f32, +inf where 8 bits overflow; arguments as of ``msv_scores``."""
    best = best_segments(profile, targets, did)
    length_cost = np.array([byte_length_cost(len(target)) for target in targets], np.int16)
    reached = np.maximum(BYTE_BASE - length_cost - profile.entry, 0) + best
    floor = first_j(profile, length_cost)
    ended_j = np.where(best > 0, np.maximum(reached - profile.end, floor), floor)
    scores = ((ended_j - length_cost).astype(F32) - F32(BYTE_BASE)) / BYTE_SCALE - F32(3.0)
    return np.where((best > 0) & (reached + profile.bias >= 255), F32(np.inf), scores)


def best_segments(profile: ByteProfile, targets: Sequence[NDArray[np.uint8]],
                  did: Callable[[int], None] = lambda residues: None) -> NDArray[np.int32]:
    """i4: what the best ungapped segment of each target scores, in third-bits, 0 where none gains; arguments as of
    ``msv_scores``."""
    return _by_lanes(_segments_of_lanes, np.int32, profile, targets, did)


def _by_lanes(values: Callable[[ByteProfile, list[NDArray[np.uint8]]], NDArray[Any]], kind: type[np.generic],
              profile: ByteProfile, targets: Sequence[NDArray[np.uint8]], did: Callable[[int], None]) -> NDArray[Any]:
    """Values of all targets, of which ``LANES`` in descending order of length are handed on at a time."""
    found = np.empty(len(targets), kind)
    longest_first = sorted(range(len(targets)), key=lambda n: -len(targets[n]))
    for start in range(0, len(longest_first), LANES):
        chosen = longest_first[start : start + LANES]
        found[chosen] = values(profile, [targets[n] for n in chosen])
        did(sum(len(targets[n]) for n in chosen))
    return found


def _rows(targets: list[NDArray[np.uint8]]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """How many of the targets, in descending order of length, have a residue in each row, and these residues."""
    lengths = np.array([len(t) for t in targets])
    residues = np.zeros((lengths[0], len(targets)), np.uint8)
    for lane, target in enumerate(targets):
        residues[: len(target), lane] = target
    still_running = np.searchsorted(-lengths, -np.arange(1, lengths[0] + 1), side="right")
    for row, running in zip(residues, still_running.tolist(), strict=True):
        yield running, row[:running]


def _segments_of_lanes(profile: ByteProfile, targets: list[NDArray[np.uint8]]) -> NDArray[np.int32]:
    """Best segments of targets that stand in descending order of length."""
    best = np.zeros(len(targets), np.int32)
    width = profile.cost.shape[1]
    cells = np.zeros((len(targets), width + 1), np.int32)
    scores = np.int32(profile.bias) - profile.cost.astype(np.int32)
    for running, residues in _rows(targets):
        cells[:running, 1:] = np.maximum(cells[:running, :width] + scores[residues], 0)
        best[:running] = np.maximum(best[:running], cells[:running].max(axis=1))
    return best


def _scores_of_lanes(profile: ByteProfile, targets: list[NDArray[np.uint8]]) -> NDArray[np.float32]:
    """Scores of targets that stand in descending order of length."""
    lengths = np.array([len(t) for t in targets])
    length_cost = np.array([byte_length_cost(int(n)) for n in lengths], np.int16)
    begin_cost = length_cost + np.int16(profile.entry)
    best_j = first_j(profile, length_cost)
    begin = np.maximum(np.maximum(BYTE_BASE, best_j) - begin_cost, 0)
    overflow = np.zeros(len(targets), bool)
    width = profile.cost.shape[1]
    cells = np.zeros((len(targets), width + 1), np.int16)
    cost = profile.cost.astype(np.int16)
    for running, residues in _rows(targets):
        previous = np.maximum(cells[:running, :width], begin[:running, None])
        new = np.minimum(previous + np.int16(profile.bias), 255) - cost[residues]
        cells[:running, 1:] = np.maximum(new, 0)
        best = cells[:running, 1:].max(axis=1)
        overflow[:running] |= best + profile.bias >= 255
        best_j[:running] = np.maximum(best_j[:running], best - profile.end)
        begin[:running] = np.maximum(np.maximum(BYTE_BASE, best_j[:running]) - begin_cost[:running], 0)
    scores = ((best_j - length_cost).astype(F32) - F32(BYTE_BASE)) / BYTE_SCALE - F32(3.0)
    return np.where(overflow, F32(np.inf), scores)


def first_j(profile: ByteProfile, length_cost: NDArray[np.int16]) -> NDArray[np.int16]:
    """Value of J before the first residue of each target, i2[n]: the least that SSV can return, or 0 where HMMER
    doesn't try SSV."""
    floor = BYTE_BASE - length_cost - profile.entry - profile.end
    no_ssv = length_cost + profile.entry + profile.end + profile.bias >= 127
    return np.where(no_ssv, 0, np.maximum(floor, 0)).astype(np.int16)
