"""Clusters of sampled domains on the CPU: those of ``clusters.py``, of which most members are copies of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.kernels.jit import kernel

from .clusters import DIAGONAL_TOLERANCE, END_POINT_SHARE, LEAST_POSTERIOR, OVERLAP, Envelope, without_dominated

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIFTHS = round(OVERLAP * 5)
"""Of the shorter of two segments, four fifths must be shared. A quotient of f32 is less than f32(0.8) just where that
of the whole numbers is less than four fifths, as long as these are below 2²⁰: two such quotients differ by more than
f32 rounds."""


@kernel
def _shared(segments, a, b):
    """Whether two segments share enough residues and nodes."""
    i, j, k, m = segments[a, 0], segments[a, 1], segments[a, 2], segments[a, 3]
    i2, j2, k2, m2 = segments[b, 0], segments[b, 1], segments[b, 2], segments[b, 3]
    shared, shorter = min(j, j2) - max(i, i2) + 1, min(j - i, j2 - i2) + 1
    if 5 * shared < _FIFTHS * shorter:
        return False
    # HMMER counts shared nodes one short.
    shared, shorter = min(m, m2) - max(k, k2), min(m - k, m2 - k2) + 1
    return 5 * shared >= _FIFTHS * shorter


@kernel
def _kinds(segments, buckets, first_like, kinds):
    """Fill ``kinds`` with the first ones of segments that are the same, and ``first_like`` with that of each segment;
    how many kinds there are."""
    mask = len(buckets) - 1
    n_kinds = 0
    for n in range(len(segments)):
        key = (segments[n, 0] * 1000003 + segments[n, 1]) * 1000003 + segments[n, 2] * 8191 + segments[n, 3]
        place = (key ^ (key >> 17)) & mask
        while buckets[place] >= 0:
            other = buckets[place]
            if (segments[other, 0] == segments[n, 0] and segments[other, 1] == segments[n, 1]
                    and segments[other, 2] == segments[n, 2] and segments[other, 3] == segments[n, 3]):
                break
            place = (place + 1) & mask
        if buckets[place] < 0:
            buckets[place] = n
            kinds[n_kinds] = n
            n_kinds += 1
        first_like[n] = buckets[place]
    return n_kinds


@kernel
def _components(segments, nodes, buckets, first_like, kinds, waiting, heads, following, labels):
    """Fill i8[n] ``labels`` with the number of each segment's component, by its earliest member; −1 for segments that
    aren't linked with their like, which are components of their own. Returns how many components have numbers.

    Two segments are linked if they share enough and one of their ends is on about the same diagonal; so those without a
    number are kept in lists by the diagonals of their first and of their last ends.

    buckets: i8[power of two above n], filled with −1. heads: i8[2, residues + nodes + 1], −1; kinds, waiting,
    first_like: i8[n], following: i8[2, n], working space.
    """
    n_kinds = _kinds(segments, buckets, first_like, kinds)
    for x in range(n_kinds):
        n = kinds[n_kinds - 1 - x]
        labels[n] = -1
        for side in range(2):
            diagonal = segments[n, side] - segments[n, 2 + side] + nodes
            following[side, n] = heads[side, diagonal]
            heads[side, diagonal] = n
    count = 0
    for x in range(n_kinds):
        n = kinds[x]
        if labels[n] >= 0 or not _shared(segments, n, n):
            continue
        labels[n] = count
        waiting[0], n_waiting = n, 1
        while n_waiting:
            n_waiting -= 1
            one = waiting[n_waiting]
            for side in range(2):
                diagonal = segments[one, side] - segments[one, 2 + side] + nodes
                for near in range(max(0, diagonal - DIAGONAL_TOLERANCE),
                                  min(heads.shape[1], diagonal + DIAGONAL_TOLERANCE + 1)):
                    before, other = -1, heads[side, near]
                    while other >= 0:
                        behind = following[side, other]
                        if labels[other] < 0 and _shared(segments, other, one):
                            labels[other] = count
                            waiting[n_waiting] = other
                            n_waiting += 1
                        if labels[other] < 0:
                            before = other
                        elif before < 0:
                            heads[side, near] = behind
                        else:
                            following[side, before] = behind
                        other = behind
        count += 1
    for n in range(len(segments)):
        labels[n] = labels[first_like[n]]
    return count


@kernel
def _end_point(counts, needed, first):
    """Smallest (or largest) coordinate that is counted often enough, else the most frequent one."""
    best = 0
    for n in range(len(counts)):
        place = n if first else len(counts) - 1 - n
        if counts[place] >= needed:
            return place
        if counts[n] > counts[best]:
            best = n
    return best


@kernel
def _consensus(traces, segments, labels, count, n_traces, residues, nodes, found, posteriors):
    """Fill i8[k, 2] ``found`` and f4[k] ``posteriors`` with the envelopes of clusters that are supported; their
    number."""
    counts_i, counts_j = np.zeros(residues + 1, np.int64), np.zeros(residues + 1, np.int64)
    counts_k, counts_m = np.zeros(nodes + 1, np.int64), np.zeros(nodes + 1, np.int64)
    n_found = 0
    for label in range(count):
        supporting, last_trace = 0, -1
        for n in range(len(labels)):
            if labels[n] == label and traces[n] != last_trace:
                last_trace = traces[n]
                supporting += 1
        posterior = np.float32(supporting) / np.float32(n_traces)
        if posterior < LEAST_POSTERIOR:
            continue
        counts_i[:], counts_j[:], counts_k[:], counts_m[:] = 0, 0, 0, 0
        for n in range(len(labels)):
            if labels[n] == label:
                counts_i[segments[n, 0]] += 1
                counts_j[segments[n, 1]] += 1
                counts_k[segments[n, 2]] += 1
                counts_m[segments[n, 3]] += 1
        needed = np.int64(np.ceil(np.float32(supporting) * END_POINT_SHARE))
        i, k = _end_point(counts_i, needed, True), _end_point(counts_k, needed, True)
        j, m = _end_point(counts_j, needed, False), _end_point(counts_m, needed, False)
        if i <= j and k <= m:
            found[n_found, 0], found[n_found, 1], posteriors[n_found] = i, j, posterior
            n_found += 1
    return n_found


@kernel
def _envelopes(traces, segments, n_traces, residues, nodes, found, posteriors):
    """Fill ``found`` and ``posteriors`` as ``_consensus`` does; their number, −1 if there is no room for them."""
    n, size = len(segments), 2
    while size <= 2 * n:
        size *= 2
    buckets, heads = np.full(size, -1, np.int64), np.full((2, residues + nodes + 1), -1, np.int64)
    rooms = np.empty((6, n), np.int64)
    count = _components(segments, nodes, buckets, rooms[0], rooms[1], rooms[2], heads, rooms[4:], rooms[3])
    if count > len(found):
        return -count
    return _consensus(traces, segments, rooms[3], count, n_traces, residues, nodes, found, posteriors)


_ROOM = 64


def envelopes(traces: NDArray[np.int64], segments: NDArray[np.int64], n_traces: int, residues: int,
              nodes: int) -> list[Envelope]:
    """Envelopes of a region of some residues, from left to right, as ``clusters.envelopes``; segments in the order of
    their traces."""
    kept = -_ROOM
    while kept < 0:
        found, posteriors = np.empty((-kept, 2), np.int64), np.empty(-kept, np.float32)
        kept = _envelopes(traces, segments, n_traces, residues, nodes, found, posteriors)
    rows = [Envelope(start, end, posteriors[row]) for row, (start, end) in enumerate(found[:kept].tolist())]
    if len(rows) < 2:
        return rows
    return without_dominated(sorted(rows, key=lambda envelope: envelope.start))
