# ruff: noqa: F821  (names in capitals in the kernel template are constants filled in by ``specialise``)
# mypy: disable-error-code="name-defined,assignment"
"""Greedy alignment on CUDA devices: the rules of ``greedy``, a warp for each side of an alignment, a lane a diagonal.

Two rows of target offsets stand in shared memory. A first pass over all alignments finds where each ends, and how many
cells lead there; a second one, over those that are wanted, keeps two bits of each of these cells, which say where it
comes from. So no room is taken for what is behind the best end, most of all rows, nor for alignments that nobody wants.
How many bases are equal between two differences isn't kept: they are compared once more. The first pass alone is the
preliminary extension.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import cuda as _cuda
from numba import int32, int64, uint64
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.packed16 import (
    SIMULATED,
    any_of_warp,
    first_lane,
    from_partner,
    lanes_where,
    meet_warp,
)
from seqloom.core.kernels.unroll import specialise
from seqloom.plugins.common.resident_cuda import Volume
from seqloom.plugins.common.workspace_cuda import WorkKind, WorkSize, Workspace
from seqloom.plugins.nucleotide_blast.greedy import DELETE, INSERT, PAIR
from seqloom.plugins.nucleotide_blast.scan_cuda import base_at, sixteen
from seqloom.plugins.nucleotide_blast.traceback_reference import GOOD_RUN, VERY_GOOD_RUN
from seqloom.plugins.nucleotide_blast.ungapped_cpu import kept_with_queries

cuda: Any = _cuda  # numba's types don't know what code on the device may do
LANES, _STEPS = (2, 1) if SIMULATED else (32, 5)  # of a block, which is a warp, and its logarithm
DIAGONALS, BESTS = 256, 64
"""Of a row at most, and distances of which the best score is known; powers of two."""
ABSENT = -2
ABOUT = 13
"""Numbers of an alignment: begin and size of its strand, begin and width of its target, anchor in both, X-drop, start
and end in the strand, and in the target; and between which places of the target there are no ambiguities."""
TARGET_BEGIN = 2
ENDS = 8
"""Numbers of a side: as of ``greedy_cpu.extend``, and ``choices`` of all rows up to the end, which aren't counted with
``RUNS``. Where there is no room for a row, or an ambiguity was met, there are −1 differences."""
CHOICES = 7
FARTHEST = 1 << 30
"""Bases of a strand and of its target together that places on a device have bits for."""
PLACES = 2
"""Numbers of a side whose choices are kept: where these and its rows begin."""


@cuda.jit(device=True)
def query_sixteen(words, place):
    """Sixteen bases, or what else has two bits each, of u4 ``words`` from a place on, the first one highest."""
    number = place >> int64(4)
    two = (uint64(words[number]) << uint64(32)) | uint64(words[number + int64(1)])
    return (two >> (uint64(32) - uint64(2) * uint64(place & int64(15)))) & uint64(0xFFFFFFFF)


@cuda.jit(device=True)
def target_sixteen(words, place):
    """The same of packed targets."""
    number = place >> int64(4)
    two = (sixteen(words, number) << uint64(32)) | sixteen(words, number + int64(1))
    return (two >> (uint64(32) - uint64(2) * uint64(place & int64(15)))) & uint64(0xFFFFFFFF)


@cuda.jit(device=True)
def differing(query, unknown, q, words, t):
    """i4 with one of two bits set for each of sixteen bases that differ, the first one highest."""
    bits = query_sixteen(query, q) ^ target_sixteen(words, t)
    return int32(((bits | (bits >> uint64(1))) & uint64(0x55555555)) | query_sixteen(unknown, q))


@cuda.jit(device=True)
def equal_bases(query, unknown, q, words, t, most, back):
    """How many bases are equal from two places on, or before them, ``most`` at most."""
    count = int64(0)
    while count < most:
        if back:
            # Before the first base there is nothing, which isn't looked at either.
            beyond = max(int64(0), int64(16) - min(q, t) + count)
            bits = differing(query, unknown, q - count - int64(16) + beyond, words, t - count - int64(16) + beyond)
            bits = int32(uint64(bits) >> (uint64(2) * uint64(beyond)))
            same = int64(16)
            if bits != int32(0):
                same = int64(first_lane(bits)) >> int64(1)
        else:
            bits = differing(query, unknown, q + count, words, t + count)
            same = int64(cuda.clz(bits)) >> int64(1)
        count += same
        if same < int64(16):
            break
    return min(count, most)


@cuda.jit(device=True)
def is_equal(query, unknown, q, words, t):
    """Whether two bases are equal."""
    more = uint64(30) - uint64(2) * uint64(q & int64(15))
    base = int32((uint64(query[q >> int64(4)]) >> more) & uint64(3))
    known = (uint64(unknown[q >> int64(4)]) >> more) & uint64(3) == uint64(0)
    return known and base == base_at(words, t)


@cuda.jit(device=True)
def same_or_ended(query, unknown, begin, size, i, words, low, width, j):
    """Whether both have the same base there, or both have ended."""
    if i >= size or j >= width:
        return i >= size and j >= width
    return is_equal(query, unknown, begin + i, words, low + j)


@cuda.jit(device=True)
def start_point(query, unknown, begin, size, words, low, width, q, t, q_start, q_end, t_start, t_end):
    """Where an alignment is traced from: see ``traceback_reference.start_point``."""
    run = int64(-1)
    i = q
    j = t
    while i < q_end and same_or_ended(query, unknown, begin, size, i, words, low, width, j):
        run += int64(1)
        i += int64(1)
        j += int64(1)
        if run > GOOD_RUN:
            return q, t
    i = q
    j = t
    while min(i, j) >= 0 and same_or_ended(query, unknown, begin, size, i, words, low, width, j):
        run += int64(1)
        i -= int64(1)
        j -= int64(1)
        if run > GOOD_RUN:
            return q, t
    before = min(q - q_start, t - t_start)
    first_q = q - before
    first_t = t - before
    count = min(q_end - first_q, t_end - first_t)
    longest = int64(0)
    run = int64(0)
    middle = int64(-1)
    place = int64(0)
    while place <= count:
        if place < count and is_equal(query, unknown, begin + first_q + place, words, low + first_t + place):
            run += int64(1)
            if run > VERY_GOOD_RUN:
                middle = place - int64(VERY_GOOD_RUN // 2)
                break
        else:
            if run > longest:
                longest = run
                middle = place - run // int64(2)
            run = int64(0)
        place += int64(1)
    if middle >= 0:
        return first_q + middle, first_t + middle
    return q, t


@cuda.jit(device=True)
def put_run(runs, first, count, last, operation, length):
    """Add a run, ``length << 2 | operation``, at the end; returns their number and the last operation."""
    if length <= 0:
        return count, last
    if operation == last:
        runs[first + count - 1] += int32(length << int64(2))
        return count, last
    runs[first + count] = int32((length << int64(2)) | operation)
    return count + int64(1), operation


def align_sides(words, query, unknown, about, chosen, match, mismatch, anchors, ends, places, choices, rows, sizes):
    """Kernel: both sides of alignments, first the one before the anchor; a block takes one side.

    Args:
        words: u4, packed bases of the volume.
        query, unknown: u4, strands at two bits a base, the first one highest; bits where there are no bases.
        about: i8[n · ABOUT]; the X-drop, ``match`` and ``mismatch`` are such that half a match is whole.
        chosen: i4, numbers of alignments whose choices are kept (``KEEP``); else all are taken.
        anchors: i4[2 · n], filled with where they are traced from. ends: i4[2 · n · ENDS], filled.
        places: i8[2 · chosen · PLACES].
        choices: i4, two for every ``LANES`` diagonals of a row: bits of those whose cell comes from the diagonal below,
            as an insertion, and from the one above, as a deletion. There are none of the row without differences.
        rows: i4, one number of each side, and two of each row with differences: the first of its choices, and its first
            diagonal. They give way to operations, and these to runs, from the anchor to the end; see ``put_run``.
        sizes: i4[2 · chosen], filled with numbers of runs.

    With ``RUNS`` the longest run of matches is looked for, from the anchor that is given; else the anchor is moved
    first (``start_point``).
    """
    ring = cuda.shared.array(2 * DIAGONALS, int32)
    bests = cuda.shared.array(BESTS, int64)
    lane = int64(cuda.threadIdx.x)
    number = int64(cuda.blockIdx.x) >> int64(1)
    back = (int64(cuda.blockIdx.x) & int64(1)) == int64(0)
    if KEEP == 1:
        number = int64(chosen[number])
    own = number * int64(ABOUT)
    begin = int64(about[own])
    size = int64(about[own + 1])
    low = int64(about[own + 2])
    width = int64(about[own + 3])
    q = int64(about[own + 4])
    t = int64(about[own + 5])
    x_drop = int64(about[own + 6])
    end = (2 * number + (int64(cuda.blockIdx.x) & int64(1))) * int64(ENDS)
    last_distance = int64(1) << int64(40)
    first_choice = int64(0)
    first_row = int64(0)
    if KEEP == 1:
        q = int64(anchors[2 * number])
        t = int64(anchors[2 * number + 1])
        last_distance = int64(ends[end + 2])
        first_choice = int64(places[int64(cuda.blockIdx.x) * int64(PLACES)])
        first_row = int64(places[int64(cuda.blockIdx.x) * int64(PLACES) + 1])
    elif RUNS == 0:
        q, t = start_point(query, unknown, begin, size, words, low, width, q, t, int64(about[own + 7]),
                           int64(about[own + 8]), int64(about[own + 9]), int64(about[own + 10]))
        if lane == 0 and back:
            anchors[2 * number] = int32(q)
            anchors[2 * number + 1] = int32(t)
    q_place = begin + q
    t_place = low + t
    size = size - q
    width = width - t
    clear = int64(about[own + 12]) - t
    sign = int64(1)
    if back:
        size = q
        width = t
        clear = t - int64(about[own + 11])
        sign = int64(-1)
    half = match // int64(2)
    cost = match + mismatch
    look_back = (x_drop + half) // cost + int64(1)
    reach = equal_bases(query, unknown, q_place, words, t_place, min(size, width), back)
    end_target = reach
    end_diagonal = int64(0)
    differences = int64(0)
    end_choices = int64(0)
    used = int64(0)
    best = reach * match
    if lane == 0:
        for diagonal in range(-2, 3):
            ring[diagonal & (DIAGONALS - 1)] = int32(ABSENT)
        ring[0] = int32(reach)
        bests[0] = best
    lower = int64(-1)
    upper = int64(1)
    distance = int64(0)
    query_ended = False
    target_ended = False
    run_length = int32(reach)
    run_row = int32(0)
    run_diagonal = int32(0)
    run_begin = int32(0)
    if reach == min(size, width):
        upper = int64(-2)
    if reach >= clear:
        differences = int64(-1)
        upper = int64(-2)
    while lower <= upper and distance < last_distance:
        distance += int64(1)
        if upper - lower + int64(5) > int64(DIAGONALS):
            differences = int64(-1)
            break
        before = ((distance - int64(1)) & int64(1)) * int64(DIAGONALS)
        here = (distance & int64(1)) * int64(DIAGONALS)
        if lane == 0:
            for edge in range(4):
                diagonal = lower - int64(1) + int64(edge)
                if edge > 1:
                    diagonal = upper + int64(edge - 2)
                ring[before + (diagonal & int64(DIAGONALS - 1))] = int32(ABSENT)
            for edge in range(2):
                ring[here + ((lower - int64(1 + edge)) & int64(DIAGONALS - 1))] = int32(ABSENT)
                ring[here + ((upper + int64(1 + edge)) & int64(DIAGONALS - 1))] = int32(ABSENT)
            if KEEP == 1:
                rows[first_row + 2 * distance - int64(1)] = int32(used)
                rows[first_row + 2 * distance] = int32(lower)
        meet_warp()
        known = int64(0)
        if distance >= look_back:
            known = bests[(distance - look_back) & int64(BESTS - 1)]
        floor = max(int64(0), known + cost * distance - x_drop + half - int64(1)) // half
        furthest = int32(0)
        at_furthest = int32(0)
        lowest = int32(lower - upper - int64(1))  # as numbers from ``lower`` on that are taken from 0
        highest = int32(-1)
        ended = False
        lost = False
        diagonal = lower + lane
        while diagonal - lane <= upper:
            from_below = False
            from_above = False
            if diagonal <= upper:
                same = int64(ring[before + (diagonal & int64(DIAGONALS - 1))])
                above = int64(ring[before + ((diagonal + int64(1)) & int64(DIAGONALS - 1))])
                below = int64(ring[before + ((diagonal - int64(1)) & int64(DIAGONALS - 1))])
                from_below = below > max(same, above)
                from_above = above >= max(same, below)
                j = max(max(same, above) + int64(1), below)
                value = int64(ABSENT)
                if j >= 0 and 2 * j + diagonal >= floor:
                    most = min(size - j - diagonal, width - j)
                    value = j + equal_bases(query, unknown, q_place + sign * (j + diagonal), words, t_place + sign * j,
                                            max(most, int64(0)), back)
                    if int32(2 * value + diagonal) > furthest:
                        furthest = int32(2 * value + diagonal)
                        at_furthest = int32(diagonal - lower)
                    lowest = max(lowest, int32(lower - diagonal))
                    highest = max(highest, int32(diagonal - lower))
                    ended = ended or value == width or value + diagonal == size
                    lost = lost or value >= clear
                    if RUNS == 1 and value - j > int64(run_length):
                        run_length = int32(value - j)
                        run_row = int32(distance)
                        run_diagonal = int32(diagonal)
                        run_begin = int32(j)
                ring[here + (diagonal & int64(DIAGONALS - 1))] = int32(value)
            if KEEP == 1:
                insertions = lanes_where(from_below)
                deletions = lanes_where(from_above)
                if lane == 0:
                    choice = first_choice + used + 2 * ((diagonal - lower) // int64(LANES))
                    choices[choice] = insertions
                    choices[choice + 1] = deletions
            diagonal += int64(LANES)
        if any_of_warp(lost):
            differences = int64(-1)
            break
        of_lane = furthest
        for step in unrolled(STEPS):
            furthest = max(furthest, from_partner(furthest, int32(1 << step)))
            lowest = max(lowest, from_partner(lowest, int32(1 << step)))
            highest = max(highest, from_partner(highest, int32(1 << step)))
        meet_warp()
        if RUNS == 0:
            used += 2 * ((upper - lower) // int64(LANES) + int64(1))
        first = lower
        last = upper
        if any_of_warp(ended):
            lower = first
            upper = last
            diagonal = first
            while diagonal <= last:
                j = int64(ring[here + (diagonal & int64(DIAGONALS - 1))])
                if j < 0:
                    if diagonal == lower:
                        lower += int64(1)
                else:
                    upper = diagonal
                    if j == width:
                        lower = diagonal + int64(1)
                        target_ended = True
                    if j + diagonal == size:
                        upper = diagonal - int64(1)
                        query_ended = True
                diagonal += int64(1)
        elif highest >= 0:
            lower = first - int64(lowest)
            upper = first + int64(highest)
        else:
            lower = last + int64(1)
            upper = last
        score = int64(furthest) * half - distance * cost
        if score >= best:
            leftmost = int32(DIAGONALS)
            if of_lane == furthest:
                leftmost = at_furthest
            for step in unrolled(STEPS):
                leftmost = min(leftmost, from_partner(leftmost, int32(1 << step)))
            end_diagonal = first + int64(leftmost)
            end_target = (int64(furthest) - end_diagonal) // int64(2)
            differences = distance
            end_choices = used
            best = score
        if lane == 0:
            bests[distance & int64(BESTS - 1)] = best
        if lower > upper:
            break
        if not target_ended:
            lower -= int64(1)
        if not query_ended:
            upper += int64(1)
        # One more difference costs more than the diagonal beside can reach further.
        diagonal = min(max(size - width, lower), upper)
        if min(2 * size - diagonal, 2 * width + diagonal) * half - (distance + int64(1)) * cost < best:
            if RUNS == 0:
                break
            longest = run_length
            for step in unrolled(STEPS):
                longest = max(longest, from_partner(longest, int32(1 << step)))
            # From the floor of the next row on there may be no longer run either.
            known = int64(0)
            if distance + int64(1) >= look_back:
                known = bests[(distance + int64(1) - look_back) & int64(BESTS - 1)]
            floor = max(int64(0), known + cost * (distance + int64(1)) - x_drop + half - int64(1)) // half
            if 2 * int64(longest) >= min(2 * size - floor - lower, 2 * width - floor + upper):
                break
    if RUNS == 1:
        for step in unrolled(STEPS):
            other_length = from_partner(run_length, int32(1 << step))
            other_row = from_partner(run_row, int32(1 << step))
            other_diagonal = from_partner(run_diagonal, int32(1 << step))
            other_begin = from_partner(run_begin, int32(1 << step))
            better = other_length > run_length
            if other_length == run_length:
                better = other_row < run_row or (other_row == run_row and other_diagonal < run_diagonal)
            if better:
                run_length = other_length
                run_row = other_row
                run_diagonal = other_diagonal
                run_begin = other_begin
    if KEEP == 0:
        if lane == 0:
            ends[end] = int32(end_target + end_diagonal)
            ends[end + 1] = int32(end_target)
            ends[end + 2] = int32(differences)
            ends[end + 3] = int32(run_begin + run_diagonal)
            ends[end + 4] = run_begin
            ends[end + 5] = run_length
            ends[end + 6] = int32(end_diagonal)
            ends[end + 7] = int32(end_choices)
    else:
        meet_warp()
        if lane == 0:
            diagonal = int64(ends[end + 6])
            row = first_row + 2 * last_distance
            while row > first_row:
                place = diagonal - int64(rows[row])
                choice = first_choice + int64(rows[row - 1]) + 2 * (place // int64(LANES))
                operation = int64(PAIR)
                if (int64(choices[choice]) >> (place % int64(LANES))) & int64(1) == int64(1):
                    operation = int64(INSERT)
                    diagonal -= int64(1)
                elif (int64(choices[choice + 1]) >> (place % int64(LANES))) & int64(1) == int64(1):
                    operation = int64(DELETE)
                    diagonal += int64(1)
                rows[row] = int32(operation)
                row -= int64(2)
            # There are at most one more runs than numbers of rows that were read.
            count, last_operation = put_run(rows, first_row, int64(0), int64(-1), int64(PAIR), reach)
            j = reach
            while row < first_row + 2 * last_distance:
                row += int64(2)
                operation = int64(rows[row])
                count, last_operation = put_run(rows, first_row, count, last_operation, operation, int64(1))
                if operation == int64(INSERT):
                    diagonal += int64(1)
                else:
                    j += int64(1)
                    if operation == int64(DELETE):
                        diagonal -= int64(1)
                most = min(size - j - diagonal, width - j)
                same = equal_bases(query, unknown, q_place + sign * (j + diagonal), words, t_place + sign * j,
                                   max(most, int64(0)), back)
                count, last_operation = put_run(rows, first_row, count, last_operation, int64(PAIR), same)
                j += same
            sizes[int64(cuda.blockIdx.x)] = int32(count)


@cache
def align_kernel(keep: bool, runs: bool = False) -> Any:
    """keep: choices of alignments that are chosen, which are followed. runs: the longest ones are wanted."""
    return kept_kernel()(specialise(
        align_sides, KEEP=int(keep), RUNS=int(runs), LANES=LANES, STEPS=_STEPS, DIAGONALS=DIAGONALS, BESTS=BESTS,
        ABOUT=ABOUT, ENDS=ENDS, PLACES=PLACES, ABSENT=ABSENT, PAIR=PAIR, INSERT=INSERT, DELETE=DELETE))


@kernel
def _two_bits(strands, words, unknown):
    """Write strands at two bits a base, the first one highest, and bits where there is no base; both are 0 before."""
    for place in range(len(strands)):
        code, down = np.uint32(strands[place]), np.uint32(30 - 2 * (place & 15))
        words[place >> 4] |= (code & np.uint32(3)) << down
        unknown[place >> 4] |= np.uint32(code > 3) << down


def two_bits(strands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """u4 words of u1 codes, and of where there are no bases, as ``align_sides`` reads them."""
    words = np.zeros((2, len(strands) // 16 + 2), np.uint32)
    _two_bits(strands, *words)
    return words[0], words[1]


class Costs(NamedTuple):
    """Match and mismatch in units that make half a match whole, and how many of these a unit of the scores is."""

    match: int
    mismatch: int
    factor: int

    @classmethod
    def of(cls, scoring: Any) -> Costs:
        factor = 2 if scoring.reward % 2 else 1
        return cls(scoring.reward * factor, -scoring.penalty * factor, factor)

    def fit(self, x_drop: int) -> bool:
        """Whether as many best scores are known as an X-drop, in units of the scores, looks back."""
        return (x_drop * self.factor + self.match // 2) // (self.match + self.mismatch) + 1 < BESTS


def working_bytes(need: WorkSize, columns: int = 0) -> int:
    """Device memory that alignments take beside the volume: of ``need.stretches``, and of ``need.query`` bases of
    strands; ``need.residues`` numbers of choices and rows."""
    of_row = 8 * ABOUT + 4 * (2 + 2 * ENDS) + 4 + 2 * (8 * PLACES + 4 + 8)
    return (need.query // 2 + of_row * need.stretches + 6 * need.residues + (1 << 16)) // 16 * 17


ALIGNING = WorkKind("greedy alignment on the device", working_bytes, fills=False)


class Sides:
    """Alignments on the current device.

    Args:
        space: of the kind ``ALIGNING``.
        volume: packed bases.
        about: i8[n, ABOUT].
    """

    def __init__(self, context: Context, space: Workspace, volume: Volume, strands: np.ndarray, about: np.ndarray
                 ) -> None:
        self.space, self.count = space, len(about)
        costs = Costs.of(context.scoring)
        words = kept_with_queries(context, "strands at two bits a base", lambda: two_bits(strands))
        volume.arrived(space.streams)
        self.bases = (volume.residues.view(np.uint32), *(
            space.send(name, bits) for name, bits in zip(("strands", "unknown"), words, strict=True)))
        self.about = space.send("about", about.reshape(-1))
        self.costs = np.int64(costs.match), np.int64(costs.mismatch)
        self.anchors, self.ends = (space.room(name, size * self.count, np.int32)
                                   for name, size in (("anchors", 2), ("ends", 2 * ENDS)))

    def align(self, runs: bool) -> np.ndarray:
        """i4[n, 2, ENDS]: where the sides of all alignments end."""
        space = self.space
        nothing, nowhere = space.room("nothing", 1, np.int32), space.room("nowhere", 1, np.int64)
        align_kernel(False, runs)[2 * self.count, LANES, space.streams[0]](
            *self.bases, self.about, nothing, *self.costs, self.anchors, self.ends, nowhere, nothing, nothing,
            nothing)
        return space.fetch(self.ends, 0, 2 * ENDS * self.count).reshape(-1, 2, ENDS)
