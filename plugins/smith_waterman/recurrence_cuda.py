# ruff: noqa: F821  (names in capitals in the kernel template are constants filled in by ``specialise``)
# mypy: disable-error-code="name-defined"
"""The Smith–Waterman recurrence on a CUDA device: query rows in registers of a few lanes, residues passed along.

``LANES`` neighbouring lanes of a warp own a query tile: lane g its rows g·ROWS … g·ROWS + ROWS − 1. Residues of the
target enter at the first lane and move to the next one each step, together with the h and f values that cross the
border between their rows, so that all lanes work on one antidiagonal of blocks (Munekawa, Ino & Hagihara 2010, section
5, with registers in the place of shared memory). Warps fetch work from a common counter, longest targets first. Queries
longer than a tile are taken tile by tile; what crosses the border between two tiles is kept in device memory.

A register holds one number each of two targets (``core/kernels/packed16.py``), or a single one of 32 bits:

    h = max(diagonal + residue score, e, f)      opened = h − first
    e = max(e − further, opened, 0)             f = max(f − further, opened)

The floor of 0 is taken with e, where packed instructions have it for nothing. On devices that have them a row is four
operations on the pipe of the maxima, its additions go to the pipe of the multipliers. Where halves can't be negative,
numbers are kept ``BIAS`` above what they stand for.

Sixteen bits overflow. A step adds at most the best residue score, so a best score passes through the last such stretch
below ``ScoreFormat.ceiling`` before anything wraps: what is in it or above is scored again in 32 bits.
"""

import threading
from functools import cache
from typing import Any

import numpy as np
from numba import cuda as _cuda
from numba import int32, int64, uint32, uint64
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Scoring
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.kernels.packed16 import (
    ORDINARY,
    PACKED,
    SIMULATED,
    SINGLE,
    Arithmetic,
    choose_bytes,
    dot4,
    from_lane,
    from_lane_before,
    from_partner,
    maximum_unsigned,
    maximum_unsigned3,
    multiply_add,
)
from seqloom.core.kernels.unroll import specialise

cuda: Any = _cuda  # numba's types don't know what code on the device may do

PAD = 31
"""Residue behind the end of a target."""
RESIDUES = 32
LOWEST_SCORE = -100
"""Of a residue, in eight bits; that of padding."""
WARPS = 4
STEPS = 2
"""Columns that are spelled out in the loop over the columns; a divisor of the lanes."""
MOST_REGISTERS = 128
"""Of a thread, so that a multiprocessor holds sixteen warps."""
SELECT = tuple(k | (k | 8) << 4 | (4 + k) << 8 | (12 + k) << 12 for k in range(4))
"""Byte k of two words, each widened with its sign to 16 bits."""
DOTS = tuple(1 << 8 * k for k in range(4))
BEST, FIRST, LAST = range(3)
"""What a kernel finds: the best score; with its first cell by row, then column; or with the last column that has it."""
PLACE_BITS = 20
"""Bits of a row or column in a place."""
LAST_PLACE = (1 << PLACE_BITS) - 1


def registers(count):  # pragma: no cover - names for the template
    """Place holder; see ``core/kernels/unroll.py``."""


def unrolled(count):  # pragma: no cover
    """Place holder; see ``core/kernels/unroll.py``."""


def score_tile(profile, profile_first, residues, ranked, begins, ends, borders, first_work, works, counters, counter,
               crossing, one, high, first_row, found, found_first):
    """Kernel template: the best of each target for the rows of one query tile.

    A work is NUMBERS targets that share registers, of like length; ranks w · NUMBERS … belong to work w.

    Args:
        profile: i8; from ``profile_first`` on 32 · WORDS · SPREAD of them are scores of the tile's rows: word
            (residue · WORDS + w) · SPREAD + lane.
        residues: u1, codes of all targets. That of rank r, t = ``ranked[r]`` (i4), is read from ``begins[t]`` on to
            ``ends[t]`` − 1 (i8), or (STRIDE −1) as many residues backwards; one residue more than there is may be read.
        borders: i8, where the border of each work begins in ``crossing`` (i8), below 2^32: h, and f in the upper half,
            of the row above the tile, replaced by those of its last row.
        first_work, works: the works that are asked for: first one and number of them.
        counters, counter: i4, of which the one at ``counter`` says how many works have been taken so far.
        one, high: 1 and 65,536, which the compiler must not know.
        first_row: row of the query where the tile begins.
        found, found_first: kept where larger, from that place on by rank. GOAL BEST: i4 score of each target.
            Others: i8 place of each (``place_of``).
    """
    shared = cuda.shared.array(WORDS * SPREAD * 32, int64)
    thread = int32(cuda.threadIdx.x)
    for word in range(thread, int32(WORDS * SPREAD * 32), int32(THREADS)):
        shared[word] = profile[profile_first + word]
    cuda.syncthreads()
    h = registers(ROWS)
    e = registers(ROWS)
    lane = int32(thread & int32(LANES - 1))
    ulane = uint32(thread & int32(SPREAD - 1))
    group = int32(int32(thread & int32(31)) - lane)
    floor = int32(FLOOR)
    while True:
        base = int32(0)
        if thread & int32(31) == int32(0):
            base = int32(cuda.atomic.add(counters, counter, int32(32 // LANES)))
        base = from_lane(base, int32(0))
        if base >= works:
            break
        work = int32(base + (thread & int32(31)) // int32(LANES))
        there = work < works
        work = int32(work + first_work)
        length_a = int32(0)
        start_a = int64(0)
        length_b = int32(0)
        start_b = int64(0)
        border = uint32(0)
        if there:
            target_a = int64(ranked[work * NUMBERS])
            start_a = int64(begins[target_a])
            length_a = int32(ends[target_a] - start_a)
            if NUMBERS == 2:
                target_b = int64(ranked[work * 2 + 1])
                start_b = int64(begins[target_b])
                length_b = int32(ends[target_b] - start_b)
            if BORDERED or CONTINUED:
                border = uint32(borders[work])
        # The first of two targets is the longer one. What lies behind an end is not used, but may be read.
        last_a = int32(max(int32(length_a - int32(1)), int32(0)))
        last_b = int32(max(int32(length_b - int32(1)), int32(0)))
        if CONTINUED:
            # Columns that this lane keeps; as numbers without sign, columns before the first are beyond them too.
            kept = uint32(length_a if lane == int32(LANES - 1) else int32(0))
        steps = int32(length_a + int32(LANES - 1))
        if LANES < 32:
            steps = int32(max(steps, from_partner(steps, int32(16))))
        if LANES < 16:
            steps = int32(max(steps, from_partner(steps, int32(8))))
        if LANES < 8:
            steps = int32(max(steps, from_partner(steps, int32(4))))
        for k in unrolled(ROWS):
            h[k] = floor
            e[k] = floor
        best = floor
        if GOAL == FIRST:
            best = int32(0)
        column_a = int32(0)
        column_b = int32(0)
        top = floor
        before: Any
        paired: Any
        last = floor
        f = floor
        above = floor
        # A residue goes about as the place of its scores in the table, that of the second target in the upper half.
        # What LANES steps take is loaded by the lanes together, one such stretch ahead.
        residue = int32(PADDING)
        buffer = residue
        buffer_h = floor
        buffer_f = floor
        mine = lane
        coming_a = int32(residues[uint64(start_a + int64(int32(STRIDE) * min(mine, last_a)))])
        coming_b = int32(PAD)
        if NUMBERS == 2:
            coming_b = int32(residues[uint64(start_b + int64(int32(STRIDE) * min(mine, last_b)))])
        if BORDERED:
            coming = int64(crossing[uint32(border + uint32(min(mine, last_a)))])
        for first_step in range(int32(0), steps, int32(STEPS)):
            phase = int32(first_step & int32(LANES - 1))
            if phase == int32(0):
                buffer = int32(coming_a * int32(WORDS * SPREAD)) if mine < length_a else int32(PADDING & 0xFFFF)
                if NUMBERS == 2:
                    buffer = int32(buffer | (int32(coming_b * int32((WORDS * SPREAD) << 16)) if mine < length_b else
                                             int32(PADDING & 0xFFFF0000)))
                if BORDERED:
                    buffer_h = int32(coming) if mine < length_a else floor
                    buffer_f = int32(coming >> int64(32)) if mine < length_a else floor
                mine = int32(mine + int32(LANES))
                coming_a = int32(residues[uint64(start_a + int64(int32(STRIDE) * min(mine, last_a)))])
                if NUMBERS == 2:
                    coming_b = int32(residues[uint64(start_b + int64(int32(STRIDE) * min(mine, last_b)))])
                if BORDERED:
                    coming = int64(crossing[uint32(border + uint32(min(mine, last_a)))])
            for other in unrolled(STEPS):
                step = int32(first_step + int32(other))
                diagonal = above
                entering = from_lane(buffer, int32(phase + group + int32(other)))
                if BORDERED:
                    entering_h = from_lane(buffer_h, int32(phase + group + int32(other)))
                    entering_f = from_lane(buffer_f, int32(phase + group + int32(other)))
                residue = from_lane_before(residue)
                above = from_lane_before(last)
                f = from_lane_before(f)
                if lane == int32(0):
                    residue = entering
                    if BORDERED:
                        above = entering_h
                        f = entering_f
                    else:
                        above = floor
                        f = floor
                first = uint32(uint32(residue & int32(0xFFFF)) + ulane)
                if NUMBERS == 2:
                    second = uint32(uint32(residue >> int32(16)) + ulane)
                if GOAL == FIRST:
                    top = int32(0)
                if GOAL == LAST:
                    top = floor
                # A row's pairs are computed before h of the row above it is replaced, which saves a copy of it.
                for k in unrolled(ROWS + 1):
                    if k < ROWS:
                        if k > 0:
                            diagonal = h[k - 1]
                        if WORD[k] >= 0:
                            word_a = shared[first + uint32(WORD[k] * SPREAD)]
                            if NUMBERS == 2:
                                word_b = shared[second + uint32(WORD[k] * SPREAD)]
                            if MIXED and k % 2 == 0:
                                pair_a = word_a
                                pair_b = word_b
                            if MIXED and k % 2 == 1:
                                eight_a = word_a
                                eight_b = word_b
                        if NUMBERS == 1:
                            following = add(diagonal, int32(word_a >> int64(k % 2 * 32)))
                        elif MIXED and k % 2 == 0:
                            following = multiply_add(int32(pair_b >> int64(k // 2 % 2 * 32)), high,
                                                     add(diagonal, int32(pair_a >> int64(k // 2 % 2 * 32))))
                        elif MIXED:
                            if k // 2 % 4 == 0:
                                four_a = int32(eight_a >> int64(k // 2 % 8 * 8))
                                four_b = int32(eight_b >> int64(k // 2 % 8 * 8))
                            following = add(diagonal, choose_bytes(four_a, four_b, int32(SELECT[k // 2 % 4])))
                        else:
                            if k % 4 == 0:
                                four_a = int32(word_a >> int64(k % 8 * 8))
                                four_b = int32(word_b >> int64(k % 8 * 8))
                            following = multiply_add(dot4(four_b, int32(DOTS[k % 4]), int32(0)), high,
                                                     dot4(four_a, int32(DOTS[k % 4]), diagonal))
                    if k > 0:
                        cell = maximum3(paired, e[k - 1], f)
                        h[k - 1] = cell
                        if SIGNED:
                            opened = add(cell, int32(OPENING))
                            e[k - 1] = add_maximum_zero(e[k - 1], int32(EXTENDING), opened)
                        else:
                            opened = multiply_add(cell, one, int32(OPENING))
                            e[k - 1] = maximum3(add(e[k - 1], int32(EXTENDING)), opened, floor)
                        f = add_maximum(f, int32(EXTENDING), opened)
                        if GOAL == FIRST:
                            paired = multiply_add(cell, one * int32(KEY_ROWS), int32(KEYS[k - 1]))
                            if k % 2 == 0:
                                top = key_maximum3(top, before, paired)
                        if GOAL == LAST and k % 2 == 0:
                            top = maximum3(top, before, paired)
                        if GOAL == BEST and k % 2 == 0:
                            best = maximum3(best, before, paired)
                        before = paired
                    paired = following
                if ROWS % 2 == 1:
                    if GOAL == BEST:
                        best = maximum(best, before)
                    if GOAL == LAST:
                        top = maximum(top, before)
                    if GOAL == FIRST:
                        top = key_maximum(top, before)
                last = h[ROWS - 1]
                if GOAL == FIRST:
                    better = key_maximum(best, top)
                    changed = int32(better ^ best)
                    best = better
                if GOAL == LAST:
                    best = maximum(best, top)
                    differs = int32(best ^ top)
                    changed = int32(1) if differs == int32(0) else int32(0)
                    if NUMBERS == 2:
                        changed = int32(1) if int32(differs & int32(0xFFFF)) == int32(0) else int32(0)
                        if int32(differs & int32(-65536)) == int32(0):
                            changed = int32(changed | int32(1 << 16))
                if GOAL != BEST:
                    if NUMBERS == 2:
                        if int32(changed & int32(0xFFFF)) != int32(0):
                            column_a = int32(step - lane)
                        if int32(changed & int32(-65536)) != int32(0):
                            column_b = int32(step - lane)
                    elif changed != int32(0):
                        column_a = int32(step - lane)
                if CONTINUED:
                    column = int32(step - int32(LANES - 1))
                    if uint32(column) < kept:
                        crossing[uint32(border + uint32(column))] = (int64(f) << int64(32)) | int64(uint32(last))
        if GOAL == BEST:
            distance = int32(LANES // 2)
            while distance > int32(0):
                best = maximum(best, from_partner(best, distance))
                distance = distance >> int32(1)
            if lane == int32(0) and there:
                place = found_first + work * int32(NUMBERS)
                if NUMBERS == 2:
                    found[place] = max(found[place], (best & int32(0xFFFF)) - int32(BIAS))
                    found[place + 1] = max(found[place + 1], ((best >> int32(16)) & int32(0xFFFF)) - int32(BIAS))
                else:
                    found[place] = max(found[place], best)
        else:
            for half in unrolled(NUMBERS):
                value = best
                if NUMBERS == 2:
                    value = (best >> int32(16 * half)) & int32(0xFFFF)
                at = column_a
                if half == 1:
                    at = column_b
                if GOAL == FIRST:
                    row = first_row + lane * int32(ROWS) + int32(KEY_ROWS - 1) - (value & int32(KEY_ROWS - 1))
                    value = value >> int32(KEY_BITS)
                    place = ((int64(value) << int64(2 * PLACE_BITS)) | (int64(LAST_PLACE - row) << int64(PLACE_BITS))
                             | int64(LAST_PLACE - at))
                else:
                    place = (int64(value - int32(BIAS)) << int64(2 * PLACE_BITS)) | int64(at)
                distance = int32(LANES // 2)
                while distance > int32(0):
                    place = max(place, int64(from_partner(place, distance)))
                    distance = distance >> int32(1)
                if lane == int32(0) and there:
                    target = found_first + work * int32(NUMBERS) + int32(half)
                    found[target] = max(int64(found[target]), place)


class Place(NamedTuple):
    """Best scores i8[k], with rows (−1 where there is none) and columns i8[k] that a kernel found."""

    score: np.ndarray
    row: np.ndarray
    column: np.ndarray


def place_of(found: np.ndarray, goal: int) -> Place:
    """What i8[k] ``found`` of a kernel with GOAL ``FIRST`` or ``LAST`` says."""
    column = found & LAST_PLACE
    row = found >> PLACE_BITS & LAST_PLACE
    if goal == FIRST:
        return Place(found >> 2 * PLACE_BITS, LAST_PLACE - row, LAST_PLACE - column)
    return Place(found >> 2 * PLACE_BITS, np.full(len(found), -1), column)


class ScoreFormat(NamedTuple):
    """How scores of one query are computed.

    Attributes:
        arithmetic: packed or single.
        bias: above what a number stands for.
        ceiling: best scores below it are exact; one at or above it may be anything that is at or above it.
    """

    arithmetic: Arithmetic
    bias: int
    ceiling: int


def numbers(scoring: Scoring, lowest: int, highest: int, goal: int, packed: Arithmetic, query_length: int
            ) -> list[ScoreFormat]:
    """What can be used for residue scores in lowest…highest, the faster first; what is at a ceiling goes to the next.

    Scores below ``LOWEST_SCORE`` are taken for it, which makes no difference where two gaps cost less.
    """
    first, further = scoring.gap_open + scoring.gap_extend, scoring.gap_extend
    ways = []
    bias = 0 if packed.signed else first + further - LOWEST_SCORE
    fits = highest <= 127 and (lowest >= LOWEST_SCORE or 2 * first <= -LOWEST_SCORE)
    if packed.numbers == 2 and fits and bias < 8192:
        most = packed.largest
        if goal == FIRST:
            rows = 1 << key_bits(tiling(query_length, 2).rows[0])
            most = min(most, bias + (1 << 16) // rows - 1) if packed is PACKED else 0
        ceiling = most - bias - 2 * max(1, highest)
        if ceiling > 2 * highest:
            ways.append(ScoreFormat(packed, bias, ceiling))
    # The best cell adds at most the highest score to that before it; keys of a score and a row have 31 bits.
    most = highest * query_length
    if most < 1 << (23 if goal != BEST else 30) and max(first, -lowest) < 1 << 30:
        ways.append(ScoreFormat(SINGLE, 0, 1 << 30))
    return ways


class Tiling(NamedTuple):
    """How a query is cut: into tiles of so many lanes with as many rows each, the last one with fewer."""

    lanes: int
    rows: tuple[int, ...]

    @property
    def firsts(self) -> list[int]:
        """Row of the query where each tile begins."""
        return [self.rows[0] * self.lanes * n for n in range(len(self.rows))]


ROW_COUNTS = (4, 8, 16, 20, 24, 28, 32, 33)
"""Rows of a lane for queries of one tile: as many as registers hold, few enough to compile all kernels once."""
TILE_ROWS = (24, 28, 31, 32, 33)
"""Rows of a lane for queries of several tiles, in all but the last of them."""
LAST_ROWS = (8, 16, 20, 24, 28, 31, 33)
"""Rows of a lane in the last one."""
MOST_BETWEEN = 32
"""Rows of a lane in tiles between two others, whose borders take registers."""
LANE_COUNTS = (4, 8, 16, 32)
TILE_LANES = 16
"""Lanes for queries of several tiles."""
_STEP_ROWS = 4
"""What a step costs beside its rows, in rows."""
_STRETCH_ROWS = 12, 62
"""What residues for ``LANES`` steps cost, in rows, for a query of one tile and one of several, with their borders."""
_USUAL_COLUMNS = 300
TABLE_WORDS = 48 * 1024 // 8 // RESIDUES
"""Words of a residue's scores that fit the shared memory of a block."""


@cache
def tiling(length: int, targets: int) -> Tiling:
    """For ``length`` query residues and so many targets in a register: what should take the least time.

    A step of a lane takes its rows and some more; at both ends of a target all lanes but one wait.
    """
    arithmetic = PACKED if targets == 2 else SINGLE

    def fits(rows: int, lanes: int) -> bool:
        return table_words(rows, arithmetic)[0] * spread(lanes) <= TABLE_WORDS

    def cost(shape: Tiling) -> float:
        several = len(shape.rows) > 1
        steps = sum(shape.rows) + len(shape.rows) * (_STEP_ROWS + _STRETCH_ROWS[several] / shape.lanes)
        return shape.lanes * steps * (_USUAL_COLUMNS + shape.lanes - 1)

    shapes = [Tiling(lanes, (rows,)) for lanes in LANE_COUNTS for rows in ROW_COUNTS
              if rows * lanes >= length and fits(rows, lanes)]
    for rows in TILE_ROWS:
        others = -(-length // (rows * TILE_LANES)) - 1
        if others > 0 and fits(rows, TILE_LANES) and (others == 1 or rows <= MOST_BETWEEN):
            left = length - others * rows * TILE_LANES
            last = next(last for last in LAST_ROWS if last * TILE_LANES >= left)
            shapes.append(Tiling(TILE_LANES, (rows,) * others + (last,)))
    return min(shapes, key=cost)


def table_words(rows: int, arithmetic: Arithmetic) -> tuple[int, list[int]]:
    """How many words of eight bytes hold a residue's scores for a lane, and which of them a row is the first to read.

    −1 where the row's word has been read. ``PACKED`` has the scores of even rows in halves of their own, which can be
    added by the multipliers' pipe, and those of odd rows in bytes, which a permutation on the pipe of the maxima puts
    side by side: both pipes and the shared memory keep up with each other then. Others have all rows in numbers of 32
    bits or in bytes.
    """
    places = []
    pairs = -(-((rows + 1) // 2) // 2) if arithmetic is PACKED else 0
    for k in range(rows):
        if arithmetic is PACKED:
            places.append(k // 4 if k % 2 == 0 else pairs + k // 16)
        else:
            places.append(k // (2 if arithmetic.numbers == 1 else 8))
    return max(places) + 1, [word if word not in places[:k] else -1 for k, word in enumerate(places)]


def spread(lanes: int) -> int:
    """Lanes that have scores side by side: half a warp at least, which reads from all banks of shared memory then.

    Groups of fewer lanes have a copy of the table each, so that they can't ask one bank for different residues.
    """
    return max(16, lanes)


def key_bits(rows: int) -> int:
    """Bits of a key that tell the rows of a lane apart."""
    return max(5, (rows - 1).bit_length())


def tile_profile(scores: np.ndarray, rows: int, lanes: int, arithmetic: Arithmetic) -> np.ndarray:
    """i8 profile of one tile from scores[position, ``RESIDUES``] of up to rows × lanes positions."""
    words, _ = table_words(rows, arithmetic)
    laid = np.empty((RESIDUES, words, lanes), np.int64)
    padded = np.full((lanes * rows, RESIDUES), LOWEST_SCORE, np.int64)
    padded[: len(scores)] = scores
    by_row = padded.reshape(lanes, rows, RESIDUES).transpose(2, 1, 0)  # [residue, row, lane]

    def fill(first: int, some: np.ndarray, dtype: Any) -> None:
        """Rows ``some`` as numbers of ``dtype`` from word ``first`` on."""
        together = 8 // np.dtype(dtype).itemsize
        count = -(-some.shape[1] // together)
        numbers_ = np.full((RESIDUES, count * together, lanes), LOWEST_SCORE, dtype)
        numbers_[:, : some.shape[1]] = some
        joined = numbers_.reshape(RESIDUES, count, together, lanes).transpose(0, 1, 3, 2)
        laid[:, first : first + count] = np.ascontiguousarray(joined).view(np.int64)[..., 0]

    if arithmetic is PACKED:
        fill(0, by_row[:, 0::2] & 0xFFFF, np.int32)
        if rows > 1:
            fill(-(-((rows + 1) // 2) // 2), by_row[:, 1::2], np.int8)
    else:
        fill(0, by_row, np.int32 if arithmetic.numbers == 1 else np.int8)
    return np.tile(laid, spread(lanes) // lanes).reshape(-1)


def query_profiles(query: np.ndarray, matrix: np.ndarray, shape: Tiling, arithmetic: Arithmetic) -> list[np.ndarray]:
    """Profiles of all tiles of u8[m] ``query``."""
    scores = np.full((len(query), RESIDUES), LOWEST_SCORE, np.int64)
    scores[:, : matrix.shape[1]] = matrix[query]
    if arithmetic.numbers == 2:
        scores = np.maximum(scores, LOWEST_SCORE)
    return [tile_profile(scores[first : first + rows * shape.lanes], rows, shape.lanes, arithmetic)
            for first, rows in zip(shape.firsts, shape.rows, strict=True)]


_compiling = threading.Lock()


def kernel(rows: int, lanes: int, format_: ScoreFormat, scoring: Scoring, goal: int, bordered: bool, continued: bool,
           backwards: bool = False) -> Any:
    """The compiled kernel for one shape of tile and one pair of gap costs."""
    with _compiling:
        return _kernel(rows, lanes, format_.arithmetic, format_.bias, scoring.gap_open,
                       scoring.gap_extend, goal, bordered, continued, backwards, WARPS)


@cache
def _kernel(rows: int, lanes: int, arithmetic: Arithmetic, bias: int, gap_open: int, gap_extend: int, goal: int,
            bordered: bool, continued: bool, backwards: bool, warps: int) -> Any:
    words, word = table_words(rows, arithmetic)
    bits = key_bits(rows)
    keyed = ({"key_maximum": maximum_unsigned, "key_maximum3": maximum_unsigned3} if arithmetic.numbers == 2 else
             {"key_maximum": arithmetic.functions["maximum"], "key_maximum3": arithmetic.functions["maximum3"]})
    special = specialise(
        score_tile, {**arithmetic.functions, **keyed}, arithmetic.name, ROWS=rows, LANES=lanes, SPREAD=spread(lanes),
        WORDS=words, WORD=tuple(word), THREADS=32 * warps, NUMBERS=arithmetic.numbers, SIGNED=arithmetic.signed,
        MIXED=arithmetic is PACKED, STEPS=STEPS, BIAS=bias, FLOOR=arithmetic.both(bias),
        BORDERED=bordered, CONTINUED=continued,
        STRIDE=-1 if backwards else 1, GOAL=goal, BEST=BEST, FIRST=FIRST, LAST=LAST,
        OPENING=arithmetic.addend(-gap_open - gap_extend), EXTENDING=arithmetic.addend(-gap_extend), SELECT=SELECT,
        DOTS=DOTS, PADDING=PAD * words * spread(lanes) * (0x10001 if arithmetic.numbers == 2 else 1), PAD=PAD,
        KEY_BITS=bits, KEY_ROWS=1 << bits,
        KEYS=tuple(arithmetic.plus((1 << bits) - 1 - k - (bias << bits)) for k in range(rows)),
        PLACE_BITS=PLACE_BITS, LAST_PLACE=LAST_PLACE)
    return kept_kernel(max_registers=MOST_REGISTERS)(special)


__all__ = ["BEST", "FIRST", "LAST", "ORDINARY", "PACKED", "SIMULATED", "ScoreFormat", "kernel", "numbers", "place_of",
           "query_profiles", "tiling"]
