"""All diagonals of queries with targets on which some segment scores well, by one pass of eight-bit vectors.

Residues of targets are read where they lie, one target behind the other. Each lane of a vector takes a stretch of them,
beginning wherever it does: stretches overlap by as much as a segment can be long. So nothing has to be made ready for a
search but a few columns at a time, which stay in the nearest cache. A segment may thus run from one target on into the
next; where one that was found may have, its diagonal is scored once more by itself.

A segment that ends at (position, residue) is the one that ended a diagonal step before, or a new one, plus the cell's
score: one saturating addition, as lanes hold score − 128 and saturation at the lower end is the floor of 0. What binds
is the number of vector instructions, so there are as few as can be:

- Only odd columns are compared with the cutoff. A segment that reaches the cutoff C in an even column still has
  C + the lowest score of a cell in the next one, which is what odd columns are compared with; the rare rows where one
  exceeds that are looked at exactly. Rows and columns of zeros stand for the ends of queries and of all targets.
- Scores of cells come from memory, where those of every residue of the queries with the columns in memory are laid out
  once for several queries; in part from byte permutations where these run beside the additions.
- Odd columns are compared by way of their maximum, or one by one where maxima would wait for the additions.
- A diagonal that has been found begins anew, so that a long segment isn't found row after row.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.distinct import distinct
from seqloom.core.engine.threads import run_tasks
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import (
    ALL_LANES,
    BYTE_LANES,
    HAS_BYTE_PERMUTE,
    LOOKUP_ENTRIES,
    LOOKUP_STRIDE,
    SATURATES_ON_ONE_PORT,
    WORKS_BY_HALVES,
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
from seqloom.core.sequences import SequenceBatch

from .grouping import group_starts
from .lane_tiles import TILE, lay, turn

LANES = BYTE_LANES
STRIDE = LOOKUP_STRIDE
WIDTH = 12
"""Columns that are taken at a time."""
TURNED = TILE // 24 * 24
"""Columns that are laid out at a time: whole blocks, and whole words of eight."""
PARTS = WIDTH // 2
LAID = WIDTH if not HAS_BYTE_PERMUTE or SATURATES_ON_ONE_PORT else 8 if WORKS_BY_HALVES else 4
"""How many columns of a block, 4, 8 or all, have their scores laid out in memory; a look-up is one instruction for the
others, and where a vector is worked on by halves it takes as long as two loads."""
STEP = LAID * LANES
CEILING = 255
"""Largest cutoff that the scan tells from larger ones."""
END = LOOKUP_ENTRIES - 1
"""Residue behind the end of a query, and of all targets, which scores 0 with every residue."""
MEMORY = 8
"""Diagonals last noted that are remembered per lane."""
LANE = 1 << 16
"""Residues of targets that a lane takes at a time, at least; all lanes together what a cache holds that several cores
share."""
OVERLAP = 128
"""Times the longest query that a lane takes, at least, so that what overlaps is little."""
LEAST_NOTED, NOTED_PER_CELL = 1 << 16, 4e-6
"""Room for what is noted in a part; a part that has more, as with low cutoffs, is scanned twice."""


@kernel
def _target_of(place, target, offsets):
    """The target with the residue at ``place``, looked for from ``target`` on."""
    while offsets[target + 1] <= place:
        target += 1
    while offsets[target] > place:
        target -= 1
    return target


@kernel
def _note(good, rows, column, size, span, base, offsets, places, current, latest, found, count):
    """Note target and diagonal of each set bit, but for those noted lately; returns the new count.

    A bit says that a segment is good enough in its column or in the one before. What is noted is twice a key, and one
    more where the segment may have begun in the target before.

    good: u8[n · PARTS], a bit per lane, of the query's ``rows`` i8[n] in every other column from ``column`` on.
    current: i8[lanes], target that each lane has read last. latest: i8[lanes · MEMORY], what was noted last.
    """
    end = offsets[len(offsets) - 1]
    for part in range(len(rows) * PARTS):
        lanes = good[part]
        row = rows[part // PARTS]
        while lanes:
            lane = np.int64(lowest_bit(lanes))
            lanes &= lanes - np.uint64(1)
            place = places[lane] + column + 2 * (part % PARTS)
            if place > end:  # was noted where the last target ends
                continue
            first_in_target = place == end
            if place < end:
                current[lane] = _target_of(place, current[lane], offsets)
                first_in_target = place == offsets[current[lane]]
            for before in range(1 + first_in_target):
                if place == end and not before:
                    continue
                if place == 0 and before:
                    break
                target = _target_of(place - before, current[lane], offsets)
                diagonal = place - offsets[target] - row
                if diagonal <= -size or diagonal >= offsets[target + 1] - offsets[target]:
                    continue
                key = 2 * ((base + target) * span + diagonal + size) + (diagonal < 0 or first_in_target)
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
    """Arrays to work in.

    Attributes:
        current: the last target of each lane.
        tile: u1[lanes · TILE], residues of lanes. columns: u1[lanes · TURNED], the same as columns.
        laid: i1, scores laid out. row: i1[residues of queries · lanes], the last column of each row.
        odd: i1, odd columns of one row.
        good: u8, bits of rows that are good, ``PARTS`` for each. rows_of: i8, these rows.
        latest: i8[lanes · MEMORY], what was noted last. found: i8, what is found.
    """

    current: np.ndarray
    tile: np.ndarray
    columns: np.ndarray
    laid: np.ndarray
    row: np.ndarray
    odd: np.ndarray
    good: np.ndarray
    rows_of: np.ndarray
    latest: np.ndarray
    found: np.ndarray


@kernel
def _lay_out(residues, places, tile, columns):
    """``TURNED`` residues of each lane from i8[lanes] ``places`` on as columns; ``END`` behind the last one."""
    for lane in range(len(places)):
        place, there = lane * TILE, min(TURNED, max(0, len(residues) - places[lane]))
        lay(tile, place, residues, places[lane], there)
        tile[place + there : place + TURNED] = END
    turn(tile, TURNED, columns, 0, LANES)


@kernel
def _scan(rows, queries, residues, begins, height, offsets, places, span, step, room):
    """Note (query · ``step`` + target) · ``span`` + diagonal + query length where a score is good enough.

    Some are noted more than once; see ``_note``. Returns their number; those beyond what ``found`` i8[capacity] holds
    are counted, and not written.

    rows: look-up tables of the scores of each residue. residues: u1[], of which each lane reads ``height``, a multiple
    of ``TURNED``, from i8[lanes] ``begins`` on; ``places`` i8[lanes] says where that is among the residues of all
    targets, which begin at i8[targets + 1] ``offsets``.
    """
    query_residues, starts, belows, hints, used = queries
    current, tile, columns, laid, row, odd, good, rows_of, latest, found = room
    floor = splat(np.int8(-128), LANES)
    latest[:] = -1
    count = 0
    for k in range(len(query_residues)):
        store(row, k * LANES, floor)
    for first in range(0, height, WIDTH):
        begin = first % TURNED * LANES
        if begin == 0:
            _lay_out(residues, begins + first, tile, columns)
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
            query, edge = query_residues[starts[n] : starts[n + 1]], row[starts[n] * LANES : starts[n + 1] * LANES]
            hint, below = splat(np.int8(hints[n]), LANES), splat(np.int8(belows[n]), LANES)
            d0 = d1 = d2 = d3 = d4 = d5 = d6 = d7 = d8 = d9 = d10 = d11 = floor
            near_rows = k = 0
            while True:
                # Registers must do for this loop, so what is rare stands outside.
                while k < len(query):
                    here = query[k]
                    h0, h1 = d0 + load(laid, here, LANES), d1 + load(laid, here + LANES, LANES)
                    h2, h3 = d2 + load(laid, here + 2 * LANES, LANES), d3 + load(laid, here + 3 * LANES, LANES)
                    table = here // STEP * STRIDE
                    if LAID >= 8:
                        h4, h5 = d4 + load(laid, here + 4 * LANES, LANES), d5 + load(laid, here + 5 * LANES, LANES)
                        h6, h7 = d6 + load(laid, here + 6 * LANES, LANES), d7 + load(laid, here + 7 * LANES, LANES)
                    else:
                        h4, h5 = d4 + lookup(rows, table, x4), d5 + lookup(rows, table, x5)
                        h6, h7 = d6 + lookup(rows, table, x6), d7 + lookup(rows, table, x7)
                    if LAID == WIDTH:
                        h8, h9 = d8 + load(laid, here + 8 * LANES, LANES), d9 + load(laid, here + 9 * LANES, LANES)
                        h10 = d10 + load(laid, here + 10 * LANES, LANES)
                        h11 = d11 + load(laid, here + 11 * LANES, LANES)
                    else:
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
                count = _note(good, rows_of[:near_rows], first + 1, len(query) - 1, span, n * step, offsets, places,
                              current, latest, found, count)
    return count


@kernel
def _reached(matrix, query, residues, offsets, targets, diagonals, cutoff, reached):
    """bool[n] ``reached``: whether a segment on a diagonal of a target alone scores ``cutoff``."""
    for n in range(len(targets)):
        begin, end = offsets[targets[n]], offsets[targets[n] + 1]
        row = max(0, -diagonals[n])
        place = begin + row + diagonals[n]
        total = 0
        while row < len(query) and place < end and total < cutoff:
            total = max(0, total + matrix[query[row], residues[place]])
            row += 1
            place += 1
        reached[n] = total >= cutoff


def parts_of(total: int, longest: int) -> list[tuple[int, int]]:
    """First residue of so many of targets that are scanned at a time, and the one behind them, for queries up to the
    ``longest``."""
    size = LANES * max(LANE, OVERLAP * longest)
    return [(first, min(first + size, total)) for first in range(0, total, size)]


def good_diagonals(matrix: np.ndarray, queries: Sequence[np.ndarray], targets: SequenceBatch, cutoffs: Sequence[int],
                   threads: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Diagonals on which some segment scores a query's cutoff or more; at cutoffs beyond ``CEILING``, at least that.

    Args:
        matrix: integer[residues, residues], score of each residue of a query with each of a target, −128…127 or
            clipped.
        queries: u1[m] each, residues.
        cutoffs: of each query, at least 1.
        threads: that take parts of the targets side by side.

    Returns:
        Number i8[n] of the query, place i8[n] of the target and diagonal i8[n] (target minus query position), sorted,
        each once.
    """
    limits, lengths = np.minimum(cutoffs, CEILING), np.array([len(query) for query in queries])
    step, span = len(targets), int(lengths.max()) + targets.longest + 2
    used = np.flatnonzero(np.bincount(np.concatenate(queries)))

    def scanned(part: tuple[int, int]) -> list[np.ndarray]:
        residues, begins, height = _lanes(targets, *part, int(lengths.max()))
        # Of residues below the least that occurs no score counts; above it are few that are rare.
        scored = matrix[used][:, int(residues.min(initial=END)) :]
        # A score below 1 − cutoff ends every segment that hasn't reached the cutoff, as 1 − cutoff does.
        lowest = np.maximum(1 - limits, max(-128, int(scored.min(initial=0))))
        return [_with_scores_from(int(least), matrix, queries, np.flatnonzero(lowest == least), limits, step, span,
                                  residues, begins, height, targets.offsets, part[0]) for least in distinct(lowest)]

    parts = parts_of(targets.total_residues, int(lengths.max()))
    found = np.concatenate([np.empty(0, np.int64), *(
        some for part in run_tasks(threads, scanned, parts, "scan") for some in part)])
    found.sort()  # np.unique, which hashes, takes three times as long
    found = found[group_starts(found >> 1)[:-1]]  # of equal ones the first, which is sure if one of them is
    pairs, diagonals = np.divmod(found >> 1, span)
    numbers, places = np.divmod(pairs, max(1, step))
    diagonals -= lengths[numbers]
    kept = np.ones(len(found), np.bool_)
    unsure = np.flatnonzero(found & 1)
    bounds = np.searchsorted(numbers[unsure], np.arange(len(queries) + 1))
    for number, (first, last) in enumerate(pairwise(bounds.tolist())):
        rows, reached = unsure[first:last], np.empty(last - first, np.bool_)
        if len(rows):
            _reached(matrix, queries[number], targets.searched(), targets.offsets, places[rows], diagonals[rows],
                     int(limits[number]), reached)
            kept[rows] = reached
    return numbers[kept], places[kept], diagonals[kept]


def _lanes(targets: SequenceBatch, first: int, last: int, longest: int) -> tuple[np.ndarray, np.ndarray, int]:
    """u1[], residues of all targets from ``first`` on, at least those that lanes read of first … last − 1; where lanes
    begin in it, i8[lanes]; and how many residues each reads."""
    stride = -(-(last - first) // LANES)
    begins = np.arange(LANES) * stride
    # Nothing that begins before a lane's end goes on behind the end of its target, or for longer than a query.
    ends = np.minimum(first + begins + stride, targets.total_residues)
    target_ends = targets.offsets[np.searchsorted(targets.offsets, ends)]
    height = stride + min(longest, int((target_ends - ends).max())) + 1
    height = -(-height // TURNED) * TURNED
    return targets.stretch(first, min(targets.total_residues, first + int(begins[-1]) + height)), begins, height


def _with_scores_from(least: int, matrix: np.ndarray, queries: Sequence[np.ndarray], chosen: np.ndarray,
                      cutoffs: np.ndarray, step: int, span: int, residues: np.ndarray, begins: np.ndarray,
                      height: int, offsets: np.ndarray, first: int) -> np.ndarray:
    """What ``_scan`` notes of the ``chosen`` queries, by number, where lower scores than ``least`` read as that."""
    scores = np.zeros((LOOKUP_ENTRIES, LOOKUP_ENTRIES), np.int8)
    scores[: len(matrix), : matrix.shape[1]] = np.clip(matrix, least, 127)
    lengths = np.array([len(queries[number]) for number in chosen])
    starts = np.concatenate([[0], np.cumsum(lengths + 1)])
    own = np.full(starts[-1], END)
    for number, start in zip(chosen, starts, strict=False):
        own[start : start + len(queries[number])] = queries[number]
    belows = cutoffs[chosen] - 129
    asked = Queries(own * STEP, starts, belows, belows + min(least, 0), np.flatnonzero(np.bincount(own)))
    longest = int(lengths.max())
    places = begins + first
    current = np.searchsorted(offsets, np.minimum(places, offsets[-1] - 1), "right") - 1
    expected = int(NOTED_PER_CELL * len(own) * LANES * height)
    room = Room(current, aligned(LANES * TILE, np.uint8), aligned(LANES * TURNED, np.uint8),
                aligned(LOOKUP_ENTRIES * STEP, np.int8), aligned(len(own) * LANES, np.int8),
                aligned(PARTS * LANES, np.int8), np.empty((longest + 1) * PARTS, np.uint64),
                np.empty(longest + 1, np.int64), np.empty(LANES * MEMORY, np.int64),
                np.empty(LEAST_NOTED + expected, np.int64))
    tables = lookup_tables(scores)
    lanes = residues, begins, height, offsets, places
    while (count := _scan(tables, asked, *lanes, span, step, room)) > len(room.found):
        room = room._replace(found=np.empty(count, np.int64))
    found = room.found[:count]
    if len(chosen) < len(queries):
        found += 2 * span * step * (chosen[found // (2 * span * step)] - found // (2 * span * step))
    return found
