# ruff: noqa: F821  (names in capitals in the kernel template are constants, which ``specialise`` fills in)
# mypy: disable-error-code="name-defined"
"""Semi-gapped X-drop extension on CUDA devices, scores and ends alone: the rule of ``xdrop``, cell by cell.

A thread takes one side of an extension after the other. It keeps a score and a column gap for each column of its band,
sixteen bits each, in a ring of words of shared memory, a bank to each thread; so all threads of a warp may be at
columns of their own. Between two rows a thread whose extension has ended takes the next one, and the others don't wait.

What the ring or sixteen bits have no room for is left to the host.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import cuda as _cuda
from numba import int32, int64
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.kernels.unroll import specialise

from .xdrop import RESTRICTION

cuda: Any = _cuda  # numba's types don't know what code on the device may do
RESIDUES = 32
"""Columns of the table of scores, and rows at most."""
ROOM = 128
"""Columns of a band at a time, at most; a power of two. Usual costs let bands of real proteins have some 60."""
THREADS = 64
"""Of a block, whose rings have 32 KiB then."""
HIGHEST_COST = 10_000
"""Of what a drop, a gap's opening and a pair of residues may amount to, so that sixteen bits do."""
HIGHEST_SCORE = 31_000 - HIGHEST_COST // 10
UNKNOWN = -1
"""Score of an extension that is left to the host."""
ENDS = 3
"""Numbers of a side: score, and how many row and column residues it takes in."""


def extend_sides(columns, begins, ends, rows, row_begins, table, row_of, column_of, splits, restricted, opening,
                 gap_extend, x_drop, taken, sides, found):
    """Kernel template: score and end of the best extension to the right (even numbers) and to the left of splits.

    Args:
        columns, begins, ends: u1, residues of all column sequences, and where each begins and ends in them.
        rows, row_begins: u1 and i8, the same of row sequences, each of which ends where the next one begins.
        table: i4[RESIDUES · RESIDUES], scores by row and column residue.
        row_of, column_of: i4[n], numbers of the sequences that are extended in.
        splits: i4[2n], first residue of either that the right side takes.
        restricted: u1[n], whether gaps live in every tenth row and column alone.
        opening, gap_extend, x_drop: what the first and each other residue of a gap cost; how far scores may fall.
        taken: i4[1], how many sides have been taken so far, of ``sides`` = 2n.
        found: i4[ENDS · sides], of side 2 · n + s those of extension n; UNKNOWN scores where there was no room.
    """
    thread = int32(cuda.threadIdx.x)
    scores = cuda.shared.array(RESIDUES * RESIDUES, int32)
    ring = cuda.shared.array(ROOM * THREADS, int32)
    for n in range(thread, int32(RESIDUES * RESIDUES), int32(THREADS)):
        scores[n] = table[n]
    cuda.syncthreads()
    side = int32(0)
    busy = False
    narrow = False
    step = int64(1)
    row_at = int64(0)
    column_at = int64(0)
    height = int32(0)
    width = int32(0)
    row = int32(0)
    first = int32(0)
    length = int32(0)
    top = int32(0)
    top_row = int32(0)
    top_column = int32(0)
    while True:
        prolonged = int32(0)
        if not busy:
            side = int32(cuda.atomic.add(taken, 0, int32(1)))
            if side >= sides:
                break
            extension = int32(side >> int32(1))
            split_row = int64(splits[2 * extension])
            split_column = int64(splits[2 * extension + 1])
            row_sequence = int32(row_of[extension])
            column_sequence = int32(column_of[extension])
            narrow = restricted[extension] != 0
            row_at = int64(row_begins[row_sequence]) + split_row
            column_at = int64(begins[column_sequence]) + split_column
            if side & int32(1):
                step = int64(-1)
                row_at -= 1
                column_at -= 1
                height = int32(split_row)
                width = int32(split_column)
            else:
                step = int64(1)
                height = int32(row_begins[row_sequence + 1] - row_at)
                width = int32(ends[column_sequence] - column_at)
            top = int32(0)
            top_row = int32(0)
            top_column = int32(0)
            row = int32(0)
            first = int32(0)
            length = int32(1)
            ring[thread] = int32((-opening) << int32(16))
            prolonged = int32(-opening)
            busy = height > int32(0) and width > int32(0)
        floor = int32(top - x_drop)
        goes_on = busy
        fits = True
        if busy:
            if row > int32(0):
                scores_at = int32(rows[row_at + step * int64(row - int32(1))]) * int32(RESIDUES)
                spreads = not narrow or row % int32(RESTRICTION) == int32(0)
                diagonal = int32(LEAST)
                row_gap = int32(LEAST)
                last = first
                begin = first
                for column in range(begin, length):
                    place = int32((column & int32(ROOM - 1)) * int32(THREADS) + thread)
                    both = ring[place]
                    from_above = int32(both >> int32(16))
                    score = diagonal
                    residue = int32(0)
                    if column < width:
                        residue = int32(columns[column_at + step * int64(column)])
                    diagonal = int32(int32(int32(both << int32(16)) >> int32(16)) + scores[scores_at + residue])
                    gaps = not narrow or column % int32(RESTRICTION) == int32(0)
                    if gaps and from_above > score:
                        score = from_above
                    if spreads and row_gap > score:
                        score = row_gap
                    if score < floor:
                        if column == first:
                            first = int32(column + int32(1))
                        else:
                            ring[place] = int32((both & int32(-65536)) | int32(LEAST & 0xFFFF))
                    else:
                        last = int32(column)
                        if score > top:
                            top = score
                            top_row = row
                            top_column = int32(column)
                            floor = int32(score - x_drop)
                        opened = int32(score - opening)
                        if spreads:
                            row_gap = int32(max(opened, int32(row_gap - gap_extend)))
                        if gaps:
                            from_above = int32(max(opened, int32(from_above - gap_extend)))
                        ring[place] = int32((from_above << int32(16)) | (score & int32(0xFFFF)))
                goes_on = bool(first < length)
                fits = bool(top <= int32(HIGHEST_SCORE))
                prolonged = row_gap if spreads else diagonal
                if last < length - int32(1):
                    length = int32(last + int32(1))
                    prolonged = int32(LEAST)
            while goes_on and fits and prolonged >= floor and length <= width:
                fits = bool(length - first < int32(ROOM))
                ring[(length & int32(ROOM - 1)) * int32(THREADS) + thread] = int32(
                    (int32(prolonged - opening) << int32(16)) | (prolonged & int32(0xFFFF)))
                prolonged = int32(prolonged - gap_extend)
                length = int32(length + int32(1))
            if row > int32(0) and length <= width:
                fits = bool(fits and length - first < int32(ROOM))
                ring[(length & int32(ROOM - 1)) * int32(THREADS) + thread] = int32(
                    (int32(LEAST) << int32(16)) | int32(LEAST & 0xFFFF))
                length = int32(length + int32(1))
            row = int32(row + int32(1))
            busy = bool(goes_on and fits and row <= height)
        if not busy:
            found[ENDS * side] = top if fits else int32(UNKNOWN)
            found[ENDS * side + 1] = top_row
            found[ENDS * side + 2] = top_column


@cache
def sides_kernel() -> Any:
    """The kernel, for blocks of ``THREADS``."""
    return kept_kernel()(specialise(extend_sides, ROOM=ROOM, THREADS=THREADS, RESIDUES=RESIDUES, ENDS=ENDS,
                                    RESTRICTION=RESTRICTION, HIGHEST_SCORE=HIGHEST_SCORE, UNKNOWN=UNKNOWN,
                                    LEAST=-30_000))


def score_table(matrix: np.ndarray) -> np.ndarray:
    """i4[RESIDUES · RESIDUES] from scores by row and column residue; very low ones as the lowest."""
    table = np.zeros((RESIDUES, RESIDUES), np.int32)
    table[: len(matrix), : matrix.shape[1]] = np.maximum(matrix, -HIGHEST_COST)
    return table.reshape(-1)


def has_room(matrix: np.ndarray, gap_open: int, gap_extend: int, x_drop: int) -> bool:
    """Whether sixteen bits do for extensions with these scores and costs."""
    costs = max(x_drop, gap_open + gap_extend) + gap_open + gap_extend
    return max(matrix.shape) <= RESIDUES and costs <= HIGHEST_COST and int(matrix.max()) <= HIGHEST_COST // 10


@cache
def blocks() -> int:
    """Blocks that fill the device, or more; threads fetch their work, so the number changes no result."""
    return 1 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT) * 6
