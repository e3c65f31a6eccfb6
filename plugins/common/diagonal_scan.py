"""All diagonals of queries with queued targets on which some segment scores well, by one pass of eight-bit vectors.

A segment that ends at (position, residue) is the one that ended a diagonal step before, or a new one, plus the cell's
score: one saturating addition, as lanes hold score − 128 and saturation at the lower end is the floor of 0. What binds
is the number of vector instructions, so there are as few as can be:

- Only odd columns are compared with the cutoff. A segment that reaches the cutoff C in an even column still has
  C + the lowest score of a cell in the next one, which is what odd columns are compared with; the rare rows where one
  exceeds that are looked at exactly. Targets end in odd columns, and a last row of zeros stands for the query's end.
- Scores of cells come from memory, where those of every residue of the queries with the columns in memory are laid out
  once for several queries; in part from byte permutations where these run beside the additions.
- Odd columns are compared by way of their maximum, or one by one where maxima would wait for the additions.
- A diagonal that has been found begins anew, so that a long segment isn't found row after row.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from seqloom.core.distinct import distinct
from seqloom.core.index import Index
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import (
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
"""Residue behind the end of a query, which scores 0 with every residue."""
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


class Queries(NamedTuple):
    """Queries one behind the other.

    Attributes:
        residues: i8[], those of all queries, each with ``END`` behind it, times ``STEP``; query n begins at
            ``starts[n]``.
        belows: i8[n], what a score − 128 has to be above.
        hints: i8[n], ``belows`` plus the lowest score of a cell.
        used: residues that occur, and ``END``.
    """

    residues: np.ndarray
    starts: np.ndarray
    belows: np.ndarray
    hints: np.ndarray
    used: np.ndarray


class Room(NamedTuple):
    """Arrays to work in: the current entry of each lane's queue, scores laid out, the last column of each row, odd
    columns of one row, bits of rows that are good, these rows, keys noted last, and what is found."""

    current: np.ndarray
    laid: np.ndarray
    row: np.ndarray
    odd: np.ndarray
    good: np.ndarray
    rows_of: np.ndarray
    latest: np.ndarray
    found: np.ndarray


@kernel
def _scan(rows, queries, columns, firsts, places, begins, span, step, room):
    """Note (query · ``step`` + place) · ``span`` + diagonal + query length where a score is good enough.

    Some are noted more than once. Returns their number; those beyond what ``found`` i8[capacity] holds are counted, and
    not written.

    rows: look-up tables of the scores of each residue. columns, firsts, places, begins: arrays of the queues.
    """
    residues, starts, belows, hints, used = queries
    current, laid, row, odd, good, rows_of, latest, found = room
    floor = splat(np.int8(-128), LANES)
    current[:] = firsts[:-1]
    latest[:] = -1
    count = 0
    for k in range(len(residues)):
        store(row, k * LANES, floor)
    for begin in range(0, len(columns), WIDTH * LANES):
        for residue in used:
            for c in range(LAID):
                scores = lookup(rows, residue * STRIDE, load(columns, begin + c * LANES, LANES))
                store(laid, residue * STEP + c * LANES, scores)
        x4 = load(columns, begin + 4 * LANES, LANES)
        x5 = load(columns, begin + 5 * LANES, LANES)
        x6 = load(columns, begin + 6 * LANES, LANES)
        x7 = load(columns, begin + 7 * LANES, LANES)
        x8 = load(columns, begin + 8 * LANES, LANES)
        x9 = load(columns, begin + 9 * LANES, LANES)
        x10 = load(columns, begin + 10 * LANES, LANES)
        x11 = load(columns, begin + 11 * LANES, LANES)
        for n in range(len(hints)):
            query, edge = residues[starts[n] : starts[n + 1]], row[starts[n] * LANES : starts[n + 1] * LANES]
            hint, below = splat(np.int8(hints[n]), LANES), splat(np.int8(belows[n]), LANES)
            d0 = d1 = d2 = d3 = d4 = d5 = d6 = d7 = d8 = d9 = d10 = d11 = floor
            near_rows = k = 0
            while True:
                # Registers must do for this loop, so what is rare stands outside.
                while k < len(query):
                    here = query[k]
                    h0, h1 = d0 + load(laid, here, LANES), d1 + load(laid, here + LANES, LANES)
                    h2, h3 = d2 + load(laid, here + 2 * LANES, LANES), d3 + load(laid, here + 3 * LANES, LANES)
                    if LAID == WIDTH:
                        h4, h5 = d4 + load(laid, here + 4 * LANES, LANES), d5 + load(laid, here + 5 * LANES, LANES)
                        h6, h7 = d6 + load(laid, here + 6 * LANES, LANES), d7 + load(laid, here + 7 * LANES, LANES)
                        h8, h9 = d8 + load(laid, here + 8 * LANES, LANES), d9 + load(laid, here + 9 * LANES, LANES)
                        h10 = d10 + load(laid, here + 10 * LANES, LANES)
                        h11 = d11 + load(laid, here + 11 * LANES, LANES)
                    else:
                        table = here // STEP * STRIDE
                        h4, h5 = d4 + lookup(rows, table, x4), d5 + lookup(rows, table, x5)
                        h6, h7 = d6 + lookup(rows, table, x6), d7 + lookup(rows, table, x7)
                        h8, h9 = d8 + lookup(rows, table, x8), d9 + lookup(rows, table, x9)
                        h10, h11 = d10 + lookup(rows, table, x10), d11 + lookup(rows, table, x11)
                    if _near(h1, h3, h5, h7, h9, h11, hint):
                        break
                    d0 = load(edge, k * LANES, LANES)
                    store(edge, k * LANES, h11)
                    d1, d2, d3, d4, d5, d6 = h0, h1, h2, h3, h4, h5
                    d7, d8, d9, d10, d11 = h6, h7, h8, h9, h10
                    k += 1
                if k == len(query):
                    break
                store(odd, 0, h1)
                store(odd, LANES, h3)
                store(odd, 2 * LANES, h5)
                store(odd, 3 * LANES, h7)
                store(odd, 4 * LANES, h9)
                store(odd, 5 * LANES, h11)
                here, any_good = query[k], np.uint64(0)
                for part in range(PARTS):
                    ending, c = load(odd, part * LANES, LANES), 2 * part + 1
                    if c < LAID:
                        score = load(laid, here + c * LANES, LANES)
                    else:
                        score = lookup(rows, here // STEP * STRIDE, load(columns, begin + c * LANES, LANES))
                    better = _better(ending, score)
                    lanes = greater_lanes(better, below) & greater_lanes(ending, hint)
                    good[near_rows * PARTS + part] = lanes
                    any_good |= lanes
                    store(odd, part * LANES, choose_greater(better, below, floor, ending))
                if any_good:
                    rows_of[near_rows] = k
                    near_rows += 1
                d0 = load(edge, k * LANES, LANES)
                store(edge, k * LANES, load(odd, 5 * LANES, LANES))
                d1, d2, d3, d4 = h0, load(odd, 0, LANES), h2, load(odd, LANES, LANES)
                d5, d6, d7, d8 = h4, load(odd, 2 * LANES, LANES), h6, load(odd, 3 * LANES, LANES)
                d9, d10, d11 = h8, load(odd, 4 * LANES, LANES), h10
                k += 1
            if near_rows:
                count = _note(good, rows_of[:near_rows], begin // LANES + 1, len(query) - 1, span, n * step, firsts,
                              places, begins, current, latest, found, count)
    return count


def good_diagonals(matrix: np.ndarray, queries: Sequence[np.ndarray], queues: Index,
                   cutoffs: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Diagonals on which some segment scores a query's cutoff or more; at cutoffs beyond ``CEILING``, at least that.

    Args:
        matrix: integer[residues, residues], score of each residue of a query with each of a target, −128…127 or
        clipped. queries: u1[m] each, residues.
        queues: index of kind "lane-queues" with ``BYTE_LANES`` lanes.
        cutoffs: of each query, at least 1.

    Returns:
        Number i8[n] of the query, place i8[n] of the target in ``queues`` and diagonal i8[n] (target minus query
        position), sorted, each once.
    """
    limits = np.minimum(cutoffs, CEILING)
    used = np.flatnonzero(np.bincount(np.concatenate(queries)))
    # A score below 1 − cutoff ends every segment that hasn't reached the cutoff, as 1 − cutoff does.
    lowest = np.maximum(1 - limits, max(-128, int(matrix[np.ix_(used, queues["residues"])].min(initial=0))))
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
    residues = np.full(starts[-1], END)
    for number, start in zip(chosen, starts, strict=False):
        residues[start : start + len(queries[number])] = queries[number]
    used = np.flatnonzero(np.bincount(residues))
    lowest = int(scores[np.ix_(used, queues["residues"])].min(initial=0))
    scores[:, PAD] = -128
    longest = int(lengths.max())
    step, span = int(queues["places"].max(initial=0)) + 1, longest + len(queues["columns"]) // LANES
    belows = cutoffs[chosen] - 129
    asked = Queries(residues * STEP, starts, belows, belows + lowest, used)
    room = Room(np.empty(LANES, np.int64), aligned(LOOKUP_ENTRIES * STEP, np.int8),
                aligned(len(residues) * LANES, np.int8), aligned(PARTS * LANES, np.int8),
                np.empty((longest + 1) * PARTS, np.uint64), np.empty(longest + 1, np.int64),
                np.empty(LANES * MEMORY, np.int64),
                np.empty(16 * len(queues["places"]) + 1024 * len(chosen), np.int64))
    tables, of_queues = lookup_tables(scores), [queues[name] for name in ("columns", "firsts", "places", "begins")]
    while (count := _scan(tables, asked, *of_queues, span, step, room)) > len(room.found):
        room = room._replace(found=np.empty(count, np.int64))
    found = room.found
    found = found[:count]
    found.sort()  # np.unique, which hashes, takes three times as long
    pairs, diagonals = np.divmod(found[group_starts(found)[:-1]], span)
    places_of, places = np.divmod(pairs, step)
    return chosen[places_of], places, diagonals - lengths[places_of]
