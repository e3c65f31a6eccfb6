"""Symmetric DUST by its definition, for many sequences without N at once.

An interval that is masked ends with a triplet that occurs in it so often that the pairs it makes alone outweigh the
threshold: had it fewer, the interval without it would score higher. So a count of the triplets in a sliding window
tells where masked intervals may end, which is at few places; from there one looks back for intervals that score enough,
and evaluates the definition, one length after the other, in the stretches that these cover.
"""

from __future__ import annotations

import numpy as np
from seqloom.core.kernels.jit import kernel

_TRIPLETS = 64
_SHORTEST = 4
"""Bases of the shortest interval that can be masked."""


@kernel
def _furthest(triplets, end, longest, level, counts):
    """Where the longest interval of triplets begins that ends there and scores more than the threshold; −1: none."""
    counts[:] = 0
    pairs, first = 0, -1
    for place in range(end, max(-1, end - longest), -1):
        pairs += counts[triplets[place]]
        counts[triplets[place]] += 1
        if 10 * pairs > level * (end - place) and place < end:
            first = place
    return first


@kernel
def _mark_perfect(triplets, level, longest, pairs, shorter, best_inside, marked):
    """Add 1 to ``marked`` where a perfect interval begins and −1 behind its end.

    pairs, shorter, best_inside: by start, the pairs of equal triplets in the interval of the present length and in the
    one before, and the best score within.
    """
    size = len(triplets)
    pairs[: size + 1] = 0
    shorter[: size + 1] = 0
    best_inside[: size + 1] = 0.0
    marked[: size + 3] = 0
    for length in range(2, min(longest, size) + 1):
        for start in range(size - length + 1):
            before = pairs[start]
            found = before + pairs[start + 1] - shorter[start + 1] + (triplets[start] == triplets[start + length - 1])
            pairs[start], shorter[start] = found, before
            # Equal fractions give equal doubles, and unequal ones differ by far more than the rounding.
            score = found / (length - 1)
            inside = max(best_inside[start], best_inside[start + 1])
            if score >= inside and 10 * found > level * (length - 1):
                marked[start] += 1
                marked[start + length + 2] -= 1
            best_inside[start] = max(inside, score)


@kernel
def _append_runs(marked, size, begin, sequence, linker, rows, first, count):
    """Add what is marked of ``size`` bases from ``begin`` on to ``rows``; those of a sequence start at ``first``."""
    depth, start = 0, -1
    for place in range(size + 1):
        depth += marked[place] if place < size else -depth
        if depth > 0 and start < 0:
            start = begin + place
        elif depth == 0 and start >= 0:
            # The last masked base and the next first one may be ``linker`` apart: touching intervals are one apart.
            if count > first and start - (rows[count - 1, 2] - 1) <= linker:
                rows[count - 1, 2] = begin + place
            else:
                rows[count, 0], rows[count, 1], rows[count, 2] = sequence, start, begin + place
                count += 1
            start = -1
    return count


@kernel
def _find(codes, offsets, wanted, level, window, linker, triplets, pairs, shorter, best_inside, marked, rows):
    """Write rows of sequence, start and end; returns their number."""
    count, enough = 0, level // 10 + 1
    counts, behind = np.zeros(_TRIPLETS, np.int64), np.zeros(_TRIPLETS, np.int64)
    for sequence in range(len(wanted)):
        low, size = offsets[sequence], offsets[sequence + 1] - offsets[sequence] - 2
        if not wanted[sequence] or size < 1:
            continue
        longest, first, triplet = min(window - 2, size), count, 0
        counts[:] = 0
        begin = end = np.int64(-1)
        for place in range(-2, size):
            code = codes[low + place + 2]
            triplet = (triplet << 2 | (code if code < 4 else 0)) & (_TRIPLETS - 1)
            if place < 0:
                continue
            triplets[place] = triplet
            counts[triplet] += 1
            if place >= longest:
                counts[triplets[place - longest]] -= 1
            if counts[triplet] <= enough:
                continue
            start = _furthest(triplets, place, longest, level, behind)
            if start < 0:
                continue
            if end >= 0 and place - longest < end:  # a later interval may still begin in this stretch
                begin, end = min(begin, np.int64(start)), np.int64(place)
                continue
            if end >= 0:
                _mark_perfect(triplets[begin : end + 1], level, longest, pairs, shorter, best_inside, marked)
                count = _append_runs(marked, end - begin + 3, begin, sequence, linker, rows, first, count)
            begin, end = np.int64(start), np.int64(place)
        if end >= 0:
            _mark_perfect(triplets[begin : end + 1], level, longest, pairs, shorter, best_inside, marked)
            count = _append_runs(marked, end - begin + 3, begin, sequence, linker, rows, first, count)
    return count


def intervals_by_definition(codes: np.ndarray, offsets: np.ndarray, wanted: np.ndarray, level: int, window: int,
                            linker: int) -> np.ndarray:
    """Low-complexity intervals, i8[m, 3] of sequence, first base and end, by sequence and place.

    Args:
        codes: u1[n], ambiguities count as A.
        offsets: i8[k + 1] of the sequences.
        wanted: bool[k], sequences to look at.
        level, window, linker: as of ``dust.dust_intervals``, within their ranges.
    """
    room = int(np.diff(offsets).max(initial=0)) + 4
    rows = np.empty((len(codes) // (_SHORTEST + 1) + len(wanted), 3), np.int64)
    count = _find(np.ascontiguousarray(codes), offsets, wanted, level, window, linker, np.empty(room, np.uint8),
                  np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room), np.empty(room, np.int32), rows)
    return rows[:count]
