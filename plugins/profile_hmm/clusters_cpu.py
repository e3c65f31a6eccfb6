"""Clusters of sampled domains on the CPU: those of ``clusters.py``, of which most members are copies of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.kernels.jit import kernel

from .clusters import DIAGONAL_TOLERANCE, END_POINT_SHARE, LEAST_POSTERIOR, OVERLAP, Envelope, without_dominated

if TYPE_CHECKING:
    from numpy.typing import NDArray

_OVERLAP = np.float32(OVERLAP)


@kernel
def _linked(segments, a, b):
    """Whether two segments are similar in residues, in nodes, and in the diagonal of one of their ends."""
    i, j, k, m = segments[a, 0], segments[a, 1], segments[a, 2], segments[a, 3]
    i2, j2, k2, m2 = segments[b, 0], segments[b, 1], segments[b, 2], segments[b, 3]
    if abs((i - k) - (i2 - k2)) > DIAGONAL_TOLERANCE and abs((j - m) - (j2 - m2)) > DIAGONAL_TOLERANCE:
        return False
    shared, shorter = min(j, j2) - max(i, i2) + 1, min(j - i, j2 - i2) + 1
    if np.float32(shared) / np.float32(shorter) < _OVERLAP:
        return False
    # HMMER counts shared nodes one short.
    shared, shorter = min(m, m2) - max(k, k2), min(m - k, m2 - k2) + 1
    return np.float32(shared) / np.float32(shorter) >= _OVERLAP


@kernel
def _components(segments, buckets, first_like, kinds, waiting, labels):
    """Fill i8[n] ``labels`` with the number of each segment's component, by its earliest member; −1 for segments that
    aren't linked with their like, which are components of their own. Returns how many components have numbers.

    buckets: i8[power of two above n], filled with −1. kinds, waiting, first_like: i8[n], working space.
    """
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
            labels[n] = -1
            n_kinds += 1
        first_like[n] = buckets[place]
    count = 0
    for x in range(n_kinds):
        n = kinds[x]
        if labels[n] >= 0 or not _linked(segments, n, n):
            continue
        labels[n] = count
        waiting[0], n_waiting = n, 1
        while n_waiting:
            n_waiting -= 1
            one = waiting[n_waiting]
            for y in range(n_kinds):
                other = kinds[y]
                if labels[other] < 0 and _linked(segments, other, one):
                    labels[other] = count
                    waiting[n_waiting] = other
                    n_waiting += 1
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


def envelopes(traces: NDArray[np.int64], segments: NDArray[np.int64], n_traces: int, residues: int,
              nodes: int) -> list[Envelope]:
    """Envelopes of a region of some residues, from left to right, as ``clusters.envelopes``; segments in the order of
    their traces."""
    n = len(segments)
    buckets = np.full(1 << (2 * n).bit_length(), -1, np.int64)
    kinds, waiting, first_like, labels = np.empty((4, n), np.int64)
    count = _components(segments, buckets, first_like, kinds, waiting, labels)
    found, posteriors = np.empty((count, 2), np.int64), np.empty(count, np.float32)
    kept = _consensus(traces, segments, labels, count, n_traces, residues, nodes, found, posteriors)
    rows = [Envelope(start, end, posteriors[row]) for row, (start, end) in enumerate(found[:kept].tolist())]
    return without_dominated(sorted(rows, key=lambda envelope: envelope.start))
