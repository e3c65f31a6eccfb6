"""All diagonals of queries with queued targets on which some segment scores well, by one pass of eight-bit vectors.

A segment that ends at (position, letter) is the one that ended a diagonal step before, or a new one, plus the cell's
score: one saturating addition, as lanes hold score − 128 and saturation at the lower end is the floor of 0. What binds
is the number of vector instructions, so there are as few as can be:

- Only odd columns are compared with the cutoff. A segment that reaches the cutoff C in an even column still has
  C + the lowest score of a cell in the next one, which is what odd columns are compared with; the rare rows where one
  exceeds that are looked at exactly. Targets end in odd columns, and a last row of zeros stands for the query's end.
- Scores of cells come from memory, where those of every letter of the queries with the columns at hand are laid out
  once for several queries; in part from byte permutations where these run beside the additions.
- Odd columns are compared by way of their maximum, or one by one where maxima would wait for the additions.
- A diagonal that has been found begins anew, so that a long segment isn't found row after row.
"""

from collections.abc import Sequence

import numpy as np
from seqloom.core.distinct import distinct
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
    choose_greater,
    greater_lanes,
    load,
    lookup,
    lookup_tables,
    lowest_bit,
    maximum,
    not_greater_lanes,
    splat,
    store,
    wrapped_difference,
)

from .grouping import group_starts
from .lane_queues import COLUMNS, PAD

LANES = BYTE_LANES
STRIDE = LOOKUP_STRIDE
WIDTH = COLUMNS
PARTS = WIDTH // 2
LAID = 4 if HAS_BYTE_PERMUTE and not SATURATES_ON_ONE_PORT else WIDTH
"""How many columns of a block have their scores laid out in memory; a look-up is one instruction for the others."""
STEP = LAID * LANES
CEILING = 255
"""Largest cutoff that the scan tells from larger ones."""
END = LOOKUP_ENTRIES - 1
"""Letter behind the end of a query, which scores 0 with every letter."""
MEMORY = 8
"""Diagonals last noted that are remembered per lane."""


@kernel
def _note(good, rows, first, size, span, base, firsts, places, begins, current, latest, found, count):
    """Note target and diagonal of each set bit, but for those noted lately; returns the new count.

    good: u8[n · PARTS], a bit per lane, of the query's ``rows`` i8[n] in every other column from ``first`` on. current:
    i8[lanes], entry of each lane's queue that was read last. latest: i8[lanes · MEMORY], keys noted last.
    """
    for part in range(len(rows) * PARTS):
        lanes = good[part]
        row, column = rows[part // PARTS], first + 2 * (part % PARTS)
        while lanes:
            lane = np.int64(lowest_bit(lanes))
            lanes &= lanes - np.uint64(1)
            entry = current[lane]
            while entry + 1 < firsts[lane + 1] and begins[entry + 1] <= column:
                entry += 1
            while begins[entry] > column:
                entry -= 1
            current[lane] = entry
            diagonal = column - begins[entry] - row
            key = (base + places[entry]) * span + diagonal + size
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


@inline
def _better(ending, score):
    """The better of the segment that ends here and the one that ended a step before, without this cell's ``score``.

    Where ``ending`` has come down to the floor the latter isn't known.
    """
    return maximum(ending, wrapped_difference(ending, score))


@kernel
def _scan(rows, used, letters, starts, columns, hints, belows, span, step, firsts, places, begins, current, laid, row,
          good, rows_of, latest, found):
    """Note (query · ``step`` + place) · ``span`` + diagonal + query length where a score − 128 is above ``belows``.

    Some are noted more than once. Returns their number; those beyond what ``found`` i8[capacity] holds are counted, and
    not written.

    rows: look-up tables of the scores of each letter. used: letters that occur in queries, and ``END``. letters: i8[],
    those of all queries, each with ``END`` behind it, times ``STEP``; query n begins at ``starts[n]``. hints:
    ``belows`` plus the lowest score of a cell, for each query. The others are working space.
    """
    floor = splat(np.int8(-128), LANES)
    current[:] = firsts[:-1]
    latest[:] = -1
    count = 0
    for k in range(len(letters)):
        store(row, k * LANES, floor)
    for begin in range(0, len(columns), WIDTH * LANES):
        for letter in used:
            for c in range(LAID):
                scores = lookup(rows, letter * STRIDE, load(columns, begin + c * LANES, LANES))
                store(laid, letter * STEP + c * LANES, scores)
        x4 = load(columns, begin + 4 * LANES, LANES)
        x5 = load(columns, begin + 5 * LANES, LANES)
        x6 = load(columns, begin + 6 * LANES, LANES)
        x7 = load(columns, begin + 7 * LANES, LANES)
        x8 = load(columns, begin + 8 * LANES, LANES)
        x9 = load(columns, begin + 9 * LANES, LANES)
        x10 = load(columns, begin + 10 * LANES, LANES)
        x11 = load(columns, begin + 11 * LANES, LANES)
        for n in range(len(hints)):
            query, edge = letters[starts[n] : starts[n + 1]], row[starts[n] * LANES : starts[n + 1] * LANES]
            hint = splat(np.int8(hints[n]), LANES)
            d0 = d1 = d2 = d3 = d4 = d5 = d6 = d7 = d8 = d9 = d10 = d11 = floor
            near_rows = 0
            for k in range(len(query)):
                here = query[k]
                left = load(edge, k * LANES, LANES)
                h0 = d0 + load(laid, here, LANES)
                s1 = load(laid, here + LANES, LANES)
                h1 = d1 + s1
                h2 = d2 + load(laid, here + 2 * LANES, LANES)
                s3 = load(laid, here + 3 * LANES, LANES)
                h3 = d3 + s3
                if LAID == WIDTH:
                    s4, s5 = load(laid, here + 4 * LANES, LANES), load(laid, here + 5 * LANES, LANES)
                    s6, s7 = load(laid, here + 6 * LANES, LANES), load(laid, here + 7 * LANES, LANES)
                    s8, s9 = load(laid, here + 8 * LANES, LANES), load(laid, here + 9 * LANES, LANES)
                    s10, s11 = load(laid, here + 10 * LANES, LANES), load(laid, here + 11 * LANES, LANES)
                else:
                    table = here // STEP * STRIDE
                    s4, s5, s6, s7 = (lookup(rows, table, x4), lookup(rows, table, x5), lookup(rows, table, x6),
                                      lookup(rows, table, x7))
                    s8, s9, s10, s11 = (lookup(rows, table, x8), lookup(rows, table, x9), lookup(rows, table, x10),
                                        lookup(rows, table, x11))
                h4, h5, h6, h7 = d4 + s4, d5 + s5, d6 + s6, d7 + s7
                h8, h9, h10, h11 = d8 + s8, d9 + s9, d10 + s10, d11 + s11
                if _near(h1, h3, h5, h7, h9, h11, hint):
                    below = splat(np.int8(belows[n]), LANES)
                    b1, b3, b5 = _better(h1, s1), _better(h3, s3), _better(h5, s5)
                    b7, b9, b11 = _better(h7, s7), _better(h9, s9), _better(h11, s11)
                    g1 = greater_lanes(b1, below) & greater_lanes(h1, hint)
                    g3 = greater_lanes(b3, below) & greater_lanes(h3, hint)
                    g5 = greater_lanes(b5, below) & greater_lanes(h5, hint)
                    g7 = greater_lanes(b7, below) & greater_lanes(h7, hint)
                    g9 = greater_lanes(b9, below) & greater_lanes(h9, hint)
                    g11 = greater_lanes(b11, below) & greater_lanes(h11, hint)
                    if g1 | g3 | g5 | g7 | g9 | g11:
                        at = near_rows * PARTS
                        good[at], good[at + 1], good[at + 2] = g1, g3, g5
                        good[at + 3], good[at + 4], good[at + 5] = g7, g9, g11
                        rows_of[near_rows] = k
                        near_rows += 1
                        h1, h3 = choose_greater(b1, below, floor, h1), choose_greater(b3, below, floor, h3)
                        h5, h7 = choose_greater(b5, below, floor, h5), choose_greater(b7, below, floor, h7)
                        h9, h11 = choose_greater(b9, below, floor, h9), choose_greater(b11, below, floor, h11)
                store(edge, k * LANES, h11)
                d0, d1, d2, d3, d4, d5 = left, h0, h1, h2, h3, h4
                d6, d7, d8, d9, d10, d11 = h5, h6, h7, h8, h9, h10
            if near_rows:
                count = _note(good, rows_of[:near_rows], begin // LANES + 1, len(query) - 1, span, n * step, firsts,
                              places, begins, current, latest, found, count)
    return count


def good_diagonals(matrix: np.ndarray, queries: Sequence[np.ndarray], queues: Index,
                   cutoffs: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Diagonals on which some segment scores a query's cutoff or more; at cutoffs beyond ``CEILING``, at least that.

    Args:
        matrix: integer[letters, letters], score of each letter of a query with each of a target, −128…127 or clipped.
        queries: u1[m] each, letters.
        queues: index of kind "lane-queues" with ``BYTE_LANES`` lanes.
        cutoffs: of each query, at least 1.

    Returns:
        Number i8[n] of the query, place i8[n] of the target in ``queues`` and diagonal i8[n] (target minus query
        position), sorted, each once.
    """
    limits = np.minimum(cutoffs, CEILING)
    used = np.flatnonzero(np.bincount(np.concatenate(queries)))
    # A score below 1 − cutoff ends every segment that hasn't reached the cutoff, as 1 − cutoff does.
    lowest = np.maximum(1 - limits, max(-128, int(matrix[np.ix_(used, queues["letters"])].min(initial=0))))
    found = [_with_scores_from(int(least), matrix, queries, np.flatnonzero(lowest == least), queues, limits)
             for least in distinct(lowest)]
    numbers, places, diagonals = (np.concatenate(columns) for columns in zip(*found, strict=True))
    if len(found) > 1:
        order = np.argsort(numbers, kind="stable")
        numbers, places, diagonals = numbers[order], places[order], diagonals[order]
    return numbers, places, diagonals


def _with_scores_from(least: int, matrix: np.ndarray, queries: Sequence[np.ndarray], chosen: np.ndarray,
                      queues: Index, cutoffs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Good diagonals of the ``chosen`` queries, where lower scores than ``least`` read as that."""
    scores = np.zeros((LOOKUP_ENTRIES, LOOKUP_ENTRIES), np.int8)
    scores[: len(matrix), : matrix.shape[1]] = np.clip(matrix, least, 127)
    lengths = np.array([len(queries[number]) for number in chosen])
    starts = np.concatenate([[0], np.cumsum(lengths + 1)])
    letters = np.full(starts[-1], END)
    for number, start in zip(chosen, starts, strict=False):
        letters[start : start + len(queries[number])] = queries[number]
    used = np.flatnonzero(np.bincount(letters))
    lowest = int(scores[np.ix_(used, queues["letters"])].min(initial=0))
    scores[:, PAD] = -128
    longest = int(lengths.max())
    step, span = int(queues["places"].max(initial=0)) + 1, longest + len(queues["columns"]) // LANES
    belows = cutoffs[chosen] - 129
    row = aligned(len(letters) * LANES, np.int8)
    good = np.empty((longest + 1) * PARTS, np.uint64)
    rows_of = np.empty(longest + 1, np.int64)
    laid = aligned(LOOKUP_ENTRIES * STEP, np.int8)
    current, latest = np.empty(LANES, np.int64), np.empty(LANES * MEMORY, np.int64)
    found = np.empty(16 * len(queues["places"]) + 1024 * len(chosen), np.int64)
    while True:
        count = _scan(lookup_tables(scores), used, letters * STEP, starts, queues["columns"], belows + lowest, belows,
                      span, step, queues["firsts"], queues["places"], queues["begins"], current, laid, row, good,
                      rows_of, latest, found)
        if count <= len(found):
            break
        found = np.empty(count, np.int64)
    found = found[:count]
    found.sort()  # np.unique, which hashes, takes three times as long
    pairs, diagonals = np.divmod(found[group_starts(found)[:-1]], span)
    places_of, places = np.divmod(pairs, step)
    return chosen[places_of], places, diagonals - lengths[places_of]
