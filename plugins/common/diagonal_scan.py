"""All diagonals of a query with queued targets on which some segment scores well, by one pass of eight-bit vectors.

A segment that ends at (position, letter) is the one that ended a diagonal step before, or a new one, plus the cell's
score: one saturating addition, as lanes hold score − 128 and saturation at the lower end is the floor of 0. What binds
is the number of vector instructions, so there are as few as can be:

- Only odd columns are compared with the cutoff. A segment that reaches the cutoff C in an even column still has
  C + the lowest score of a cell in the next one, which is what odd columns are compared with; the rare blocks where one
  exceeds that are looked at exactly. Targets end in odd columns, and a last row of zeros stands for the query's end.
- Scores of cells come partly from byte permutations and partly from memory, where the scores of every letter of the
  query with the columns at hand are laid out once per block: both paths run side by side.
- Odd columns are compared by way of their maximum, or one by one where maxima would wait for the additions.
"""

import numpy as np
from seqloom.core.index import Index
from seqloom.core.jit import inline, kernel
from seqloom.core.simd import (
    ALL_LANES,
    BYTE_LANES,
    HAS_BYTE_PERMUTE,
    LOOKUP_ENTRIES,
    LOOKUP_STRIDE,
    SATURATES_ON_ONE_PORT,
    aligned,
    greater_lanes,
    load,
    lookup,
    lookup_tables,
    lowest_bit,
    maximum,
    not_greater_lanes,
    splat,
    store,
)

from .grouping import group_starts
from .lane_queues import COLUMNS, PAD

LANES = BYTE_LANES
STRIDE = LOOKUP_STRIDE
WIDTH = COLUMNS
PARTS = WIDTH // 2
LAID = 4 if HAS_BYTE_PERMUTE else WIDTH
"""How many columns of a block have their scores laid out in memory; a look-up is one instruction for the others."""
CEILING = 255
"""Largest cutoff that the scan tells from larger ones."""
END = LOOKUP_ENTRIES - 1
"""Letter behind the end of a query, which scores 0 with every letter."""
MEMORY = 8
"""Diagonals last noted that are remembered per lane."""


@kernel
def _note(ends, rows, near, below, scores, query, columns, first, span, firsts, places, begins, current, latest, found,
          count):
    """Note target and diagonal of the cells above ``below``, but for those noted lately; returns the new count.

    ends: i1[n · PARTS · LANES], cells of the query's ``rows`` i8[n], in every other column from ``first`` on. current:
    i8[lanes], entry of each lane's queue that was read last. latest: i8[lanes · MEMORY], keys noted last.
    """
    hint = splat(np.int8(near), LANES)
    for part in range(len(rows) * PARTS):
        above = greater_lanes(load(ends, part * LANES, LANES), hint)
        row, column = rows[part // PARTS], first + 2 * (part % PARTS)
        while above:
            lane = np.int64(lowest_bit(above))
            above &= above - np.uint64(1)
            # The even column's cell that this one has come from is this one without its own score.
            score = np.int64(ends[part * LANES + lane])
            if score <= below and score - scores[query[row], columns[column * LANES + lane]] <= below:
                continue
            entry = current[lane]
            while entry + 1 < firsts[lane + 1] and begins[entry + 1] <= column:
                entry += 1
            while begins[entry] > column:
                entry -= 1
            current[lane] = entry
            diagonal = column - begins[entry] - row
            key = places[entry] * span + diagonal
            slot = lane * MEMORY + (diagonal & (MEMORY - 1))
            if latest[slot] != key:
                latest[slot] = key
                if count < len(found):
                    found[count] = key
                count += 1
    return count


@inline
def _near(h1, h3, h5, h7, h9, h11, hint):
    """Whether a lane of any of these is above that of ``hint``."""
    if SATURATES_ON_ONE_PORT:
        below = not_greater_lanes(h3, hint, not_greater_lanes(h1, hint, ALL_LANES))
        below = not_greater_lanes(h7, hint, not_greater_lanes(h5, hint, below))
        return not_greater_lanes(h11, hint, not_greater_lanes(h9, hint, below)) != ALL_LANES
    top = maximum(maximum(maximum(h1, h3), maximum(h5, h7)), maximum(h9, h11))
    return greater_lanes(top, hint) != np.uint64(0)


@kernel
def _scan(scores, rows, used, query, columns, near, below, span, firsts, places, begins, laid, row, ends, rows_of,
          latest, found):
    """Note ``place · span + diagonal`` of every cell above ``below`` (score − 128), some more than once; their number.

    scores: i1[letters, letters]; rows: look-up tables of its rows. used: letters that occur in ``query``, which ends
    in ``END``. near: ``below`` plus the lowest score of a cell. found: i8[capacity]; more are counted and not written.
    The others are working space.
    """
    floor = splat(np.int8(-128), LANES)
    hint = splat(np.int8(near), LANES)
    current = firsts[:-1].copy()
    latest[:] = -1 - span
    count = 0
    for k in range(len(query)):
        store(row, k * LANES, floor)
    for begin in range(0, len(columns), WIDTH * LANES):
        for c in range(LAID):
            letters = load(columns, begin + c * LANES, LANES)
            for letter in used:
                store(laid, (letter * LAID + c) * LANES, lookup(rows, letter * STRIDE, letters))
        x4 = load(columns, begin + 4 * LANES, LANES)
        x5 = load(columns, begin + 5 * LANES, LANES)
        x6 = load(columns, begin + 6 * LANES, LANES)
        x7 = load(columns, begin + 7 * LANES, LANES)
        x8 = load(columns, begin + 8 * LANES, LANES)
        x9 = load(columns, begin + 9 * LANES, LANES)
        x10 = load(columns, begin + 10 * LANES, LANES)
        x11 = load(columns, begin + 11 * LANES, LANES)
        d0 = d1 = d2 = d3 = d4 = d5 = d6 = d7 = d8 = d9 = d10 = d11 = floor
        near_rows = 0
        for k in range(len(query)):
            here = query[k] * (LAID * LANES)
            table = query[k] * STRIDE
            left = load(row, k * LANES, LANES)
            h0 = d0 + load(laid, here, LANES)
            h1 = d1 + load(laid, here + LANES, LANES)
            h2 = d2 + load(laid, here + 2 * LANES, LANES)
            h3 = d3 + load(laid, here + 3 * LANES, LANES)
            h4 = d4 + (load(laid, here + 4 * LANES, LANES) if LAID == WIDTH else lookup(rows, table, x4))
            h5 = d5 + (load(laid, here + 5 * LANES, LANES) if LAID == WIDTH else lookup(rows, table, x5))
            h6 = d6 + (load(laid, here + 6 * LANES, LANES) if LAID == WIDTH else lookup(rows, table, x6))
            h7 = d7 + (load(laid, here + 7 * LANES, LANES) if LAID == WIDTH else lookup(rows, table, x7))
            h8 = d8 + (load(laid, here + 8 * LANES, LANES) if LAID == WIDTH else lookup(rows, table, x8))
            h9 = d9 + (load(laid, here + 9 * LANES, LANES) if LAID == WIDTH else lookup(rows, table, x9))
            h10 = d10 + (load(laid, here + 10 * LANES, LANES) if LAID == WIDTH else lookup(rows, table, x10))
            h11 = d11 + (load(laid, here + 11 * LANES, LANES) if LAID == WIDTH else lookup(rows, table, x11))
            if _near(h1, h3, h5, h7, h9, h11, hint):
                store(ends, near_rows * PARTS * LANES, h1)
                store(ends, (near_rows * PARTS + 1) * LANES, h3)
                store(ends, (near_rows * PARTS + 2) * LANES, h5)
                store(ends, (near_rows * PARTS + 3) * LANES, h7)
                store(ends, (near_rows * PARTS + 4) * LANES, h9)
                store(ends, (near_rows * PARTS + 5) * LANES, h11)
                rows_of[near_rows] = k
                near_rows += 1
            store(row, k * LANES, h11)
            d0, d1, d2, d3, d4, d5 = left, h0, h1, h2, h3, h4
            d6, d7, d8, d9, d10, d11 = h5, h6, h7, h8, h9, h10
        if near_rows:
            count = _note(ends, rows_of[:near_rows], near, below, scores, query, columns, begin // LANES + 1, span,
                          firsts, places, begins, current, latest, found, count)
    return count


def good_diagonals(matrix: np.ndarray, query: np.ndarray, queues: Index, cutoff: int) -> tuple[np.ndarray, np.ndarray]:
    """Diagonals on which some segment scores ``cutoff`` or more; at cutoffs beyond ``CEILING``, at least ``CEILING``.

    Args:
        matrix: integer[letters, letters], score of each letter of a query with each of a target, −128…127 or clipped.
        query: u1[m], letters.
        queues: index of kind "lane-queues" with ``BYTE_LANES`` lanes.
        cutoff: at least 1.

    Returns:
        place i8[n] of the target in ``queues`` and diagonal i8[n] (target minus query position), sorted, each once.
    """
    cutoff = min(cutoff, CEILING)
    scores = np.zeros((LOOKUP_ENTRIES, LOOKUP_ENTRIES), np.int8)
    # A score below 1 − cutoff ends every segment that hasn't reached the cutoff, as 1 − cutoff does.
    least = max(1 - cutoff, -128)
    scores[: len(matrix), : matrix.shape[1]] = np.clip(matrix, least, 127)
    used = np.flatnonzero(np.bincount(query))
    lowest = int(scores[np.ix_(used, queues["letters"])].min(initial=0))
    scores[:, PAD] = -128
    span = len(query) + len(queues["columns"])
    row = aligned((len(query) + 1) * LANES, np.int8)
    ends = aligned((len(query) + 1) * PARTS * LANES, np.int8)
    rows_of = np.empty(len(query) + 1, np.int64)
    laid = aligned(LOOKUP_ENTRIES * LAID * LANES, np.int8)
    tables, used = lookup_tables(scores), np.append(used, END).astype(np.int64)
    latest = np.empty(LANES * MEMORY, np.int64)
    found = np.empty(16 * len(queues["places"]) + 1024, np.int64)
    letters = np.append(query, END).astype(np.int64)
    while True:
        count = _scan(scores, tables, used, letters, queues["columns"], cutoff + lowest - 129, cutoff - 129, span,
                      queues["firsts"], queues["places"], queues["begins"], laid, row, ends, rows_of, latest, found)
        if count <= len(found):
            break
        found = np.empty(count, np.int64)
    found = found[:count]
    found.sort()  # np.unique, which hashes, takes three times as long
    places, diagonals = np.divmod(found[group_starts(found)[:-1]] + len(query), span)  # a diagonal is more than −m
    return places, diagonals - len(query)
