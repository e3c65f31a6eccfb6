"""Exact ungapped scores of one profile against many interleaved targets: best segments, and diagonals of good ones.

The recurrence is one saturating addition and one maximum a cell: a segment that ends at (position, letter) is the one
that ended a diagonal step before, or a new one, plus the cell's score. Eight-bit lanes hold score − 128, so that
saturation at the lower end is the floor of 0; scores above ``CEILING`` come out as ``CEILING``.
"""

import numpy as np
from seqloom.core.index import Index
from seqloom.core.jit import kernel
from seqloom.core.simd import (
    BYTE_LANES,
    LOOKUP_ENTRIES,
    LOOKUP_STRIDE,
    aligned,
    greater_lanes,
    load,
    lookup,
    lookup_tables,
    lowest_bit,
    maximum,
    splat,
    store,
)

from .lanes import COLUMNS, PAD

LANES = BYTE_LANES
STRIDE = LOOKUP_STRIDE
WIDTH = COLUMNS
CEILING = 255
"""Largest score that the scan tells apart; a pair at the ceiling may have more."""


@kernel
def _scan(tables, positions, columns, starts, row, best):
    floor = splat(np.int8(-128), LANES)
    for group in range(len(starts) - 1):
        best_a = floor
        best_b = floor
        for k in range(positions):
            store(row, k * LANES, floor)
        for begin in range(starts[group], starts[group + 1], WIDTH * LANES):
            x0 = load(columns, begin, LANES)
            x1 = load(columns, begin + LANES, LANES)
            x2 = load(columns, begin + 2 * LANES, LANES)
            x3 = load(columns, begin + 3 * LANES, LANES)
            x4 = load(columns, begin + 4 * LANES, LANES)
            x5 = load(columns, begin + 5 * LANES, LANES)
            x6 = load(columns, begin + 6 * LANES, LANES)
            x7 = load(columns, begin + 7 * LANES, LANES)
            d0 = d1 = d2 = d3 = d4 = d5 = d6 = d7 = floor
            for k in range(positions):
                table = k * STRIDE
                left = load(row, k * LANES, LANES)
                h0 = d0 + lookup(tables, table, x0)
                h1 = d1 + lookup(tables, table, x1)
                h2 = d2 + lookup(tables, table, x2)
                h3 = d3 + lookup(tables, table, x3)
                h4 = d4 + lookup(tables, table, x4)
                h5 = d5 + lookup(tables, table, x5)
                h6 = d6 + lookup(tables, table, x6)
                h7 = d7 + lookup(tables, table, x7)
                best_a = maximum(maximum(best_a, h0), maximum(maximum(h1, h2), h3))
                best_b = maximum(maximum(best_b, h4), maximum(maximum(h5, h6), h7))
                store(row, k * LANES, h7)
                d0, d1, d2, d3, d4, d5, d6, d7 = left, h0, h1, h2, h3, h4, h5, h6
        store(best, group * LANES, maximum(best_a, best_b))


@kernel
def _note(above, first, diagonal, latest, found, count):
    """Note ``diagonal`` for the lanes in ``above``, unless it is the one noted last there; returns the new count."""
    while above:
        lane = np.int64(lowest_bit(above))
        if latest[lane] != diagonal:
            latest[lane] = diagonal
            if count < len(found):
                found[count, 0] = first + lane
                found[count, 1] = diagonal
            count += 1
        above &= above - np.uint64(1)
    return count


@kernel
def _scan_diagonals(tables, positions, columns, starts, row, below, latest, found):
    """Note every (lane place, diagonal) with a cell above ``below`` (score − 128), some more than once; their number.

    The recurrence of ``_scan``, with a test of eight cells at a time in the place of the running maximum.
    """
    floor = splat(np.int8(-128), LANES)
    limit = splat(np.int8(below), LANES)
    count = 0
    for group in range(len(starts) - 1):
        first = group * LANES
        latest[:] = positions + starts[len(starts) - 1]
        for k in range(positions):
            store(row, k * LANES, floor)
        column = -1
        for begin in range(starts[group], starts[group + 1], WIDTH * LANES):
            x0 = load(columns, begin, LANES)
            x1 = load(columns, begin + LANES, LANES)
            x2 = load(columns, begin + 2 * LANES, LANES)
            x3 = load(columns, begin + 3 * LANES, LANES)
            x4 = load(columns, begin + 4 * LANES, LANES)
            x5 = load(columns, begin + 5 * LANES, LANES)
            x6 = load(columns, begin + 6 * LANES, LANES)
            x7 = load(columns, begin + 7 * LANES, LANES)
            d0 = d1 = d2 = d3 = d4 = d5 = d6 = d7 = floor
            for k in range(positions):
                table = k * STRIDE
                left = load(row, k * LANES, LANES)
                h0 = d0 + lookup(tables, table, x0)
                h1 = d1 + lookup(tables, table, x1)
                h2 = d2 + lookup(tables, table, x2)
                h3 = d3 + lookup(tables, table, x3)
                h4 = d4 + lookup(tables, table, x4)
                h5 = d5 + lookup(tables, table, x5)
                h6 = d6 + lookup(tables, table, x6)
                h7 = d7 + lookup(tables, table, x7)
                top = maximum(maximum(maximum(h0, h1), maximum(h2, h3)), maximum(maximum(h4, h5), maximum(h6, h7)))
                if greater_lanes(top, limit):
                    diagonal = column - k
                    count = _note(greater_lanes(h0, limit), first, diagonal + 1, latest, found, count)
                    count = _note(greater_lanes(h1, limit), first, diagonal + 2, latest, found, count)
                    count = _note(greater_lanes(h2, limit), first, diagonal + 3, latest, found, count)
                    count = _note(greater_lanes(h3, limit), first, diagonal + 4, latest, found, count)
                    count = _note(greater_lanes(h4, limit), first, diagonal + 5, latest, found, count)
                    count = _note(greater_lanes(h5, limit), first, diagonal + 6, latest, found, count)
                    count = _note(greater_lanes(h6, limit), first, diagonal + 7, latest, found, count)
                    count = _note(greater_lanes(h7, limit), first, diagonal + 8, latest, found, count)
                store(row, k * LANES, h7)
                d0, d1, d2, d3, d4, d5, d6, d7 = left, h0, h1, h2, h3, h4, h5, h6
            column += WIDTH
    return count


def profile_tables(scores: np.ndarray) -> np.ndarray:
    """Look-up tables of a profile.

    Args:
        scores: integer[m, letters], score of each letter at each position; clipped to −128…127.

    Returns:
        i1 tables for ``best_scores``; padding scores −128.
    """
    rows = np.full((len(scores), LOOKUP_ENTRIES), -128, np.int8)
    rows[:, : scores.shape[1]] = np.clip(scores, -128, 127)
    rows[:, PAD] = -128
    return lookup_tables(rows)


def best_scores(tables: np.ndarray, positions: int, lanes: Index) -> np.ndarray:
    """i4[k]: best ungapped segment score of a profile with each target of a volume, at most ``CEILING``; batch order.

    Args:
        tables: of ``profile_tables``.
        positions: m, length of the profile.
        lanes: index of kind "lanes" with ``BYTE_LANES`` lanes.
    """
    starts = lanes["starts"]
    best = np.empty((len(starts) - 1) * LANES, np.int8)
    _scan(tables, positions, lanes["columns"], starts, aligned(max(1, positions) * LANES, np.int8), best)
    order = lanes["order"]
    scores = np.empty(len(order), np.int32)
    scores[order] = best[: len(order)].astype(np.int32) + 128
    return scores


def good_diagonals(tables: np.ndarray, positions: int, lanes: Index, cutoff: int) -> tuple[np.ndarray, np.ndarray]:
    """Diagonals on which some segment may score ``cutoff`` or more: all that do, and none that stays below ``CEILING``.

    Args:
        tables, positions, lanes: as for ``best_scores``.
        cutoff: at least 1.

    Returns:
        place i8[n] of the target in its batch and diagonal i8[n] (target minus profile position), sorted, each once.
    """
    starts, order = lanes["starts"], lanes["order"]
    row = aligned(max(1, positions) * LANES, np.int8)
    latest = np.empty(LANES, np.int64)
    found = np.empty((len(order) + 1024, 2), np.int64)
    while True:
        count = _scan_diagonals(tables, positions, lanes["columns"], starts, row, min(cutoff, CEILING) - 129, latest,
                                found)
        if count <= len(found):
            break
        found = np.empty((count, 2), np.int64)
    place, diagonal = order[found[:count, 0]], found[:count, 1]
    span = positions + len(lanes["columns"])
    keys = np.unique(place * span + diagonal + positions)
    return keys // span, keys % span - positions
