"""From sampled domains to envelopes: clustering of (residues, nodes) segments over many traces.

Single linkage of similar segments, clusters that few traces support are dropped, consensus end points, and of two that
overlap much the more probable one stays. Coordinates are 1-based inclusive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.classes import dataclass

from .exact_math import F32

if TYPE_CHECKING:
    from numpy.typing import NDArray

OVERLAP = 0.8
DIAGONAL_TOLERANCE = 4
LEAST_POSTERIOR = F32(0.25)
END_POINT_SHARE = F32(0.02)


@dataclass(frozen=True)
class Envelope:
    """Consensus of a cluster: residues start…end, and the share of traces that have it."""

    start: int
    end: int
    posterior: np.float32


def envelopes(trace: Sequence[int], segments: NDArray[np.int64], n_traces: int) -> list[Envelope]:
    """Envelopes of a region, from left to right.

    Args:
        trace: number of the trace of each segment.
        segments: i64[n, 4], first and last residue, first and last node.
        n_traces: number of traces sampled.
    """
    traces = np.asarray(trace)
    labels = _components(segments)
    found = []
    for label in range(labels.max(initial=-1) + 1):
        members = labels == label
        supporting = len(np.unique(traces[members]))
        posterior = F32(supporting) / F32(n_traces)
        if posterior < LEAST_POSTERIOR:
            continue
        needed = int(np.ceil(F32(supporting) * END_POINT_SHARE))
        i, k = (_end_point(segments[members, column], needed, first=True) for column in (0, 2))
        j, m = (_end_point(segments[members, column], needed, first=False) for column in (1, 3))
        if i <= j and k <= m:
            found.append(Envelope(i, j, posterior))
    found.sort(key=lambda e: e.start)
    return without_dominated(found)


def _components(segments: NDArray[np.int64]) -> NDArray[np.int64]:
    """Connected components of linked segments, numbered by their earliest member.

    A segment of fewer than five nodes isn't linked with anything, not even with its like.
    """
    labels = np.full(len(segments), -1)
    distinct, place = np.unique(segments, axis=0, return_inverse=True)
    place = place.reshape(-1)
    like_itself = np.array([bool(_linked(one[None], one)[0]) for one in distinct], bool)
    of_distinct = np.full(len(distinct), -1)
    count = 0
    for n in range(len(segments)):
        if of_distinct[place[n]] < 0 or not like_itself[place[n]]:
            waiting = [place[n]]
            of_distinct[place[n]] = count
            while waiting:
                linked = _linked(distinct, distinct[waiting.pop()]) & (of_distinct < 0)
                of_distinct[linked] = count
                waiting.extend(np.flatnonzero(linked).tolist())
            count += 1
        labels[n] = of_distinct[place[n]]
    return labels


def _linked(segments: NDArray[np.int64], one: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which segments are similar to ``one``: in residues, in nodes, and in the diagonal of one of their ends."""
    i, j, k, m = segments.T
    i1, j1, k1, m1 = one
    shared = np.minimum(j, j1) - np.maximum(i, i1) + 1
    # HMMER counts shared nodes one short.
    shared_nodes = np.minimum(m, m1) - np.maximum(k, k1)
    shorter = np.minimum(j - i, j1 - i1) + 1
    shorter_nodes = np.minimum(m - k, m1 - k1) + 1
    near = (np.abs((i - k) - (i1 - k1)) <= DIAGONAL_TOLERANCE) | (np.abs((j - m) - (j1 - m1)) <= DIAGONAL_TOLERANCE)
    return _share(shared, shorter) & _share(shared_nodes, shorter_nodes) & near


def _share(part: NDArray[np.int64], whole: NDArray[np.int64]) -> NDArray[np.bool_]:
    return part.astype(F32) / whole.astype(F32) >= F32(OVERLAP)


def _end_point(values: NDArray[np.int64], needed: int, first: bool) -> int:
    """Smallest (or largest) coordinate at which enough members start (or end); else the most frequent one."""
    coordinates, counts = np.unique(values, return_counts=True)
    enough = coordinates[counts >= needed]
    if len(enough):
        return int(enough[0] if first else enough[-1])
    return int(coordinates[np.argmax(counts)])


def without_dominated(found: list[Envelope]) -> list[Envelope]:
    dominated: set[int] = set()
    for d, one in enumerate(found):
        for d2 in range(d + 1, len(found)):
            other = found[d2]
            shared = min(one.end, other.end) - max(one.start, other.start) + 1
            if shared == 0:
                # HMMER stops here, but not where the two lie further apart.
                break
            shorter = min(one.end - one.start, other.end - other.start) + 1
            if F32(shared) / F32(shorter) >= F32(OVERLAP):
                dominated.add(d2 if one.posterior > other.posterior else d)
    return [e for d, e in enumerate(found) if d not in dominated]
