# ruff: noqa: F821, SIM102  (names in capitals in the kernel template are constants, which ``specialise`` fills in)
# mypy: disable-error-code="name-defined"
"""The kernel that scans targets for diagonals of a tile of a query, and how queries are cut into tiles.

``LANES`` neighbouring lanes of a warp take a target together and own a query tile: each lane 2 · ROWS positions one
behind the other, two to a register, the first ROWS of them in the lower halves. A segment that ends at a position with
a residue is the one that ended a diagonal step before, or a new one, plus the pair's score:

    ending = max(0, ending of the register before + score)

is one instruction on the pipe of the multipliers for two cells (halves as floating-point numbers, whole ones up to
2,048 exactly), and half an instruction on the pipe of the maxima says whether a step has any score worth noting. Scores
stand in shared memory by residue. Residues are read four or sixteen at a time. One shuffle a step hands the last
position's score to the next lane.

What reaches the cutoff is rare. It is noted with its diagonal, and the diagonal begins anew, so that a long segment
isn't found step after step and no half outgrows what is exact. The scores that cross the border between two tiles are
kept in device memory, a half for each residue.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import cuda as _cuda
from numba import int32, int64, uint32, uint64
from seqloom.core.classes import NamedTuple
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.cuda.read_only import four_read_only
from seqloom.core.kernels.packed8 import KEEP, TAKE
from seqloom.core.kernels.packed16 import (
    EXACT_HALVES,
    Arithmetic,
    add_half_or_zero,
    choose_bytes,
    four_words,
    from_lane,
    from_lane_before,
    from_partner,
)
from seqloom.core.kernels.unroll import specialise

cuda: Any = _cuda  # numba's types don't know what code on the device may do

RESIDUES = 29
"""Of the table of scores: those of proteins, and the one that follows."""
PAD = RESIDUES - 1
"""Residue before and behind a target."""
LOWEST_SCORE = -EXACT_HALVES
"""Of a pair of residues; that of padding."""
WARPS = 8
LEAST_SPREAD = 8
"""Lanes that have scores side by side, at least: they read from all banks of shared memory at a time. Groups of fewer
lanes have a copy of the table each, so that they can't ask one bank for different residues."""
LANE_COUNTS = (1, 2, 4, 8, 16)
ROW_COUNTS = (8, 16, 24)
"""Registers of a lane: multiples of four. Few, since each shape that a search needs is compiled, for some seconds."""
_SHARED_WORDS = 48 * 1024 // 4
"""That the shared memory of a block has for scores."""
_WIDE_LANES = 2
"""So few lanes or fewer read sixteen residues at a time: each target is in a part of memory of its own."""
_STEP_ROWS = 6
"""What a step costs beside its registers, in registers."""
MOST_REGISTERS = 80


def registers(count):  # pragma: no cover - names for the template
    """Place holder; see ``core/kernels/unroll.py``."""


def unrolled(count):  # pragma: no cover
    """Place holder; see ``core/kernels/unroll.py``."""


def scan_tile(profile, profile_first, residues, ranked, begins, ends, pieces, count, cut, piece_length, rank_first,
              rank_step, works, counters, counter, crossing, limit, least, classes, cutoffs, first_cutoff, first_row,
              base, span, shift, found, room):
    """Kernel template: note (``base`` + target) · ``span`` + diagonal + ``shift`` where a segment scores well.

    Args:
        profile: i4; from ``profile_first`` on TABLE of them are scores of the tile's positions with each residue (see
            ``tile_profile``).
        residues: i4, four codes each, of all targets; residues ``begins[t]`` … ``ends[t]`` − 1 are those of target t.
        ranked: i4, targets. Those of rank ``rank_first``, ``rank_first`` + ``rank_step``, … are looked at; ``works``
            of them.
        pieces, count, cut, piece_length: i8, first residues of ``count`` pieces of that length, and the target of each,
            which rank first, in place of the first ``cut`` of ``ranked``. None of TILED queries, as scores that cross
            are kept for each residue once.
        counters, counter: i4, of which the one at ``counter`` says how many have been taken so far.
        crossing: i8, where a query has several tiles (TILED): scores of the position before the tile with four residues
            each, unless it is the first; replaced by those of its last position.
        limit, least: bits of the half before the first that is good, as both halves of a register; the half itself.
        classes, cutoffs, first_cutoff: in place of these two where targets have some of their own (CLASSED): u1, the
            class of each target, and i4, the half of the first class at ``first_cutoff`` and those of others behind it.
        first_row: position of the query where the tile begins.
        found, room: i8; the number of diagonals noted, and that many of them at most.
    """
    shared = cuda.shared.array(TABLE, int32)
    thread = int32(cuda.threadIdx.x)
    for word in range(thread, int32(TABLE), int32(THREADS)):
        shared[word] = profile[profile_first + word]
    cuda.syncthreads()
    noted = cuda.local.array(ROWS, int32)
    h = registers(ROWS)
    lane = int32(thread & int32(LANES - 1))
    own = int32(int32(thread & int32(SPREAD - 1)) * int32(4))
    while True:
        taken = int32(0)
        if thread & int32(31) == int32(0):
            taken = int32(cuda.atomic.add(counters, counter, int32(32 // LANES)))
        taken = from_lane(taken, int32(0))
        if taken >= works:
            break
        work = int32(taken + (thread & int32(31)) // int32(LANES))
        place = int32(0)
        first = int64(0)
        head = int32(0)
        ahead = int32(0)
        length = int32(0)
        if work < works:
            at = int32(rank_first + work * rank_step)
            if at < count:
                place = int32(pieces[int32(count + at)])
                begin = int64(pieces[at])
                length = int32(piece_length)
                ahead = int32(begin - int64(begins[place]))
            else:
                place = int32(ranked[int32(at - count + cut)])
                begin = int64(begins[place])
                length = int32(ends[place] - begin)
            first = int64(int64(begin >> int64(2)) & int64(-WORDS))
            head = int32(begin - int64(4) * first)
        lowest = least
        below = limit
        if CLASSED:
            lowest = int32(cutoffs[first_cutoff + int32(classes[place])])
            below = int32(int32(lowest - int32(1)) * int32(0x00010001))
        words = int32(int32(head + length + int32(3)) >> int32(2)) if length > int32(0) else int32(0)
        most = words
        if LANES < 32:
            most = int32(max(most, from_partner(most, int32(16))))
        if LANES < 16:
            most = int32(max(most, from_partner(most, int32(8))))
        if LANES < 8:
            most = int32(max(most, from_partner(most, int32(4))))
        if LANES < 4:
            most = int32(max(most, from_partner(most, int32(2))))
        if LANES < 2:
            most = int32(max(most, from_partner(most, int32(1))))
        last_word = int32(max(int32(words - int32(1)), int32(0)))
        border = int64(first + int64(place))
        for k in unrolled(ROWS):
            h[k] = int32(0)
        last = int32(0)
        crossed = int32(0)
        if WORDS == 4:
            coming0, coming1, coming2, coming3 = four_read_only(residues, first)
            word0, word1, word2, word3 = coming0, coming1, coming2, coming3
        else:
            coming = int32(residues[uint64(first)])
        if TILED:
            coming_crossed = int64(crossing[uint64(border)])
        for step in range(int32(0), most):
            if WORDS == 4:
                if int32(step & int32(3)) == int32(0):
                    word0, word1, word2, word3 = coming0, coming1, coming2, coming3
                    coming0, coming1, coming2, coming3 = four_read_only(
                        residues, int64(first + int64(int32(min(int32(step + int32(4)), last_word)) & int32(-4))))
                word = int32(word0)
                word0, word1, word2 = word1, word2, word3
            else:
                word = coming
                coming = int32(residues[uint64(first + int64(min(int32(step + int32(1)), last_word)))])
            if TILED:
                entering = coming_crossed if step < words and first_row > int32(0) else int64(0)
                leaving = int64(0)
                coming_crossed = int64(crossing[uint64(border + int64(min(int32(step + int32(1)), last_word)))])
            if step < int32(WORDS) or step >= last_word:
                padded = int32(PADS)
                for j in unrolled(4):
                    if uint32(int32(step * int32(4) + int32(j)) - head) < uint32(length):
                        padded = int32((padded & int32(KEEP[j])) | (word & int32(TAKE[j])))
                word = padded
            for j in range(int32(4)):
                before = crossed
                if LANES > 1:
                    before = from_lane_before(last)
                    if lane == int32(0):
                        before = crossed
                scores = int32(int32(int32(word >> int32(int32(8) * j)) & int32(255)) * int32(ROWS * SPREAD) + own)
                # The last position of the lane before comes into the lower half, that in the middle into the upper.
                before = choose_bytes(before, last, int32(0x5432))
                top = below
                for k in unrolled(ROWS):
                    if k % 4 == 0:
                        four = four_words(shared, int32(scores + int32((ROWS - 4 - k) * SPREAD)))
                    if k < ROWS - 1:
                        h[ROWS - 1 - k] = add_half_or_zero(h[ROWS - 2 - k], four[3 - k % 4])
                    else:
                        h[0] = add_half_or_zero(before, four[0])
                    if k % 2 == 1:
                        top = maximum3(top, h[ROWS - 1 - k], h[ROWS - k])
                if top != below:
                    for k in unrolled(ROWS):
                        noted[k] = h[k]
                    column = int32(int32(step * int32(4) + int32(j)) + ahead - head - first_row
                                   - lane * int32(2 * ROWS))
                    row = (base + int64(place)) * span + int64(column + shift)
                    for k in range(ROWS):
                        halves = noted[k]
                        if int32(halves & int32(0xFFFF)) >= lowest:
                            number = cuda.atomic.add(found, 0, int64(1))
                            if number < room:
                                found[number + 1] = row - int64(k)
                            halves = int32(halves & int32(-65536))
                        if int32(halves >> int32(16)) >= lowest:
                            number = cuda.atomic.add(found, 0, int64(1))
                            if number < room:
                                found[number + 1] = row - int64(k + ROWS)
                            halves = int32(halves & int32(0xFFFF))
                        noted[k] = halves
                    for k in unrolled(ROWS):
                        h[k] = noted[k]
                last = h[ROWS - 1]
                if TILED:
                    crossed = int32(int32(entering >> int64(int32(16) * j)) << int32(16))
                    leaving = leaving | (int64((last >> int32(16)) & int32(0xFFFF)) << int64(int32(16) * j))
            if TILED:
                if lane == int32(LANES - 1) and step < words:
                    crossing[uint64(border + int64(step))] = leaving


class Tiling(NamedTuple):
    """How a query is cut: into so many tiles of so many lanes with so many registers each."""

    lanes: int
    rows: int
    tiles: int

    @property
    def positions(self) -> int:
        """Of a tile."""
        return 2 * self.rows * self.lanes

    @property
    def words(self) -> int:
        """Of a tile's profile."""
        return RESIDUES * self.rows * spread(self.lanes)


@cache
def tiling(length: int) -> Tiling:
    """For ``length`` query residues: what should take the least time."""
    shapes = [Tiling(lanes, rows, -(-length // (2 * rows * lanes))) for lanes in LANE_COUNTS for rows in ROW_COUNTS]
    fit = [shape for shape in shapes if shape.words <= _SHARED_WORDS
           and (shape.tiles == 1 or shape.lanes == LANE_COUNTS[-1])]
    return min(fit, key=lambda shape: shape.tiles * shape.lanes * (shape.rows + _STEP_ROWS))


@cache
def _kernel(lanes: int, rows: int, tiled: bool, classed: bool, arithmetic: Arithmetic, warps: int) -> Any:
    special = specialise(
        scan_tile, {"maximum3": arithmetic.functions["maximum3"]}, arithmetic.name, LANES=lanes, ROWS=rows,
        WORDS=4 if lanes <= _WIDE_LANES and not tiled else 1,
        SPREAD=spread(lanes), TABLE=Tiling(lanes, rows, 1).words, THREADS=32 * warps, TILED=tiled,
        CLASSED=classed, PADS=PAD * 0x01010101, KEEP=KEEP, TAKE=TAKE)
    return kept_kernel(max_registers=MOST_REGISTERS)(special)


def scan_kernel(shape: Tiling, classed: bool, arithmetic: Arithmetic) -> tuple[Any, int]:
    """The kernel for tiles of that shape, and threads of a block; ``classed`` where targets have cutoffs of their
    own."""
    return _kernel(shape.lanes, shape.rows, shape.tiles > 1, classed, arithmetic, WARPS), 32 * WARPS


def spread(lanes: int) -> int:
    """Lanes that have scores side by side."""
    return max(LEAST_SPREAD, lanes)


def tile_profile(scores: np.ndarray, lanes: int, rows: int) -> np.ndarray:
    """i4 profile of a tile from f2[positions, RESIDUES] scores.

    Word ((residue · rows / 4 + w) · spread + lane) · 4 + r is for register 4 · w + r of a lane.
    """
    by_lane = scores.reshape(lanes, 2, rows // 4, 4, RESIDUES)  # lane, half, word, register, residue
    laid = by_lane.transpose(4, 2, 0, 3, 1).reshape(RESIDUES, rows // 4, lanes, 8)
    return np.tile(laid, (spread(lanes) // lanes, 1)).reshape(-1).view(np.int32)
