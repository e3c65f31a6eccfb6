"""Sampled paths through the Forward matrix of a region, as in ``traces_reference.py``, and null2 of their domains."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import load, splat, store

from .accuracy_cpu import spread_to_degenerate
from .exact_math import F32, Array32
from .forward_cpu import SCALE, SPECIALS, STEP, B, C, E, J, Matrices, N
from .profile import LANES
from .residues import residues_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ENTRY, _INTO_MM, _INTO_IM, _INTO_DM, _MI, _II, _MD, _DD = (LANES * n for n in range(8))
_ZERO, _ONE = F32(0.0), F32(1.0)
_FACTOR, _MASK, _WHOLE = 69069, 0xFFFFFFFF, 4294967296.0
_M, _I, _D = 0, 1, 2
_START, _AROUND, _ENDING, _INSIDE = range(4)
_FIRST_SEGMENTS = 1024
_SURELY, _MAYBE = 1.0 - 2.0**-50, 1.0 + 2.0**-50
_CLOSE = 2.0**-18
"""Share of the whole by which a roll must be off a boundary to be told without dividing: HMMER's boundaries, sums of
some quotients of f32, are off the true ones by less than an eighth of this."""


@kernel
def _next(numbers):
    """The next number of the generator whose state is ``numbers[0]``, in [0, 1)."""
    numbers[0] = (numbers[0] * _FACTOR + 1) & _MASK
    return np.float64(numbers[0]) / _WHOLE


@inline
def _below(roll, part, whole):
    """Whether ``roll < part / whole``; they are divided where that is a close thing."""
    scaled = roll * whole
    return scaled < part * _SURELY or (scaled <= part * _MAYBE and roll < part / whole)


@inline
def _one_of_two(first, second, roll):
    """0 or 1 with chances as f32 weights say; their sum is Kahan's."""
    one = np.float64(first)
    whole = one + np.float64(second)
    place, margin = roll * whole, _CLOSE * whole
    if place < one - margin:
        return 0
    if place > one + margin:
        return 1
    total = first + second
    if total == _ZERO:
        return 0 if roll < 0.5 else 1
    one = np.float64(first / total)
    return 0 if _below(roll, one, one + np.float64(second / total)) else 1


@kernel
def _closely_one_of_four(first, second, third, fourth, roll):
    """``_one_of_four`` as HMMER computes it."""
    total = first + second
    compensation = (total - first) - second
    corrected = third - compensation
    larger = total + corrected
    compensation = (larger - total) - corrected
    total = larger + (fourth - compensation)
    if total == _ZERO:
        return np.int64(roll * 4.0)
    a = np.float64(first / total)
    b = a + np.float64(second / total)
    c = b + np.float64(third / total)
    whole = c + np.float64(fourth / total)
    return 0 if _below(roll, a, whole) else 1 if _below(roll, b, whole) else 2 if _below(roll, c, whole) else 3


@inline
def _one_of_four(first, second, third, fourth, roll):
    """0, 1, 2 or 3 with chances as f32 weights say; their sum is Kahan's."""
    a = np.float64(first)
    b = a + np.float64(second)
    c = b + np.float64(third)
    whole = c + np.float64(fourth)
    place, margin = roll * whole, _CLOSE * whole
    if min(abs(place - a), min(abs(place - b), abs(place - c))) > margin:
        return np.int64(place > a) + np.int64(place > b) + np.int64(place > c)
    return _closely_one_of_four(first, second, third, fourth, roll)


@kernel
def _exit(cells, lanes, row_begin, slots, end, roll):
    """State and node, as 2 · node + (1 for D), from which E was reached."""
    deletes = slots * lanes
    wanted, margin, total = roll * np.float64(end), _CLOSE * np.float64(end), 0.0
    for q in range(slots):
        place = row_begin + q * lanes
        matched = (cells[place] + cells[place + 1]) + (cells[place + 2] + cells[place + 3])
        place += deletes
        deleted = (cells[place] + cells[place + 1]) + (cells[place + 2] + cells[place + 3])
        behind = total + np.float64(matched + deleted)
        if wanted < behind + margin:
            for state in range(8):
                place = row_begin + q * lanes + state % 4 + (deletes if state >= 4 else 0)
                total += np.float64(cells[place])
                if wanted < total - margin:
                    return 2 * (state % 4 * slots + q + 1) + (state >= 4)
                if wanted < total + margin:
                    break
            break
        total = behind
    return _closely_exit(cells, lanes, row_begin, slots, end, roll)


@kernel
def _closely_exit(cells, lanes, row_begin, slots, end, roll):
    """``_exit`` as HMMER computes it."""
    norm = _ONE / end
    deletes = slots * lanes
    total = 0.0
    for _ in range(2):  # the walk starts over when rounding leaves a roll beyond its end
        for q in range(slots):
            place = row_begin + q * lanes
            for lane in range(4):
                total += np.float64(cells[place + lane] * norm)
                if roll < total:
                    return 2 * (lane * slots + q + 1)
            for lane in range(4):
                total += np.float64(cells[place + deletes + lane] * norm)
                if roll < total:
                    return 2 * (lane * slots + q + 1) + 1
    return 2


@kernel
def _null2(match, slots, use, used, first, last, residues_inside, codes, n_members, members, odds, lanes):
    """Odds f4[28] of a domain that used nodes ``first`` to ``last`` as often as f4[Q · 4] ``use`` says, which is
    cleared."""
    weight = splat(_ONE / np.float32(residues_inside), 4)
    count, low, high = 0, (first - 1) % slots, (last - 1) % slots
    if last - first + 1 >= slots:
        low, high = 0, slots - 1
    for part in range(2):
        begin, end = (low, high) if low <= high else (0, high) if part == 0 else (low, slots - 1)
        for q in range(begin, end + 1):
            if use[q * 4] + use[q * 4 + 1] + use[q * 4 + 2] + use[q * 4 + 3] > _ZERO:
                used[count] = q
                count += 1
                store(use, q * 4, load(use, q * 4, 4) * weight)
        if low <= high:
            break
    for x in range(0, len(codes), 4):  # four sums at a time, which needn't wait for each other
        sum0 = sum1 = sum2 = sum3 = splat(_ZERO, 4)
        from0, from1 = codes[x] * slots * 4, codes[x + 1] * slots * 4
        from2, from3 = codes[x + 2] * slots * 4, codes[x + 3] * slots * 4
        for n in range(count):
            place = used[n] * 4
            weights = load(use, place, 4)
            sum0 = sum0 + load(match, from0 + place, 4) * weights
            sum1 = sum1 + load(match, from1 + place, 4) * weights
            sum2 = sum2 + load(match, from2 + place, 4) * weights
            sum3 = sum3 + load(match, from3 + place, 4) * weights
        store(lanes, 0, sum0)
        odds[codes[x]] = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
        store(lanes, 0, sum1)
        odds[codes[x + 1]] = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
        store(lanes, 0, sum2)
        odds[codes[x + 2]] = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
        store(lanes, 0, sum3)
        odds[codes[x + 3]] = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
    for n in range(count):
        store(use, used[n] * 4, splat(_ZERO, 4))
    spread_to_degenerate(codes, n_members, members, odds)


@kernel
def _sample(match, transitions, slots, residues, begin, length, loop, move, end_loop, end_move, specials, cells, lanes,
            first_row, last_row, traces, numbers, codes, n_members, members, use, used, odds, sums_of_lanes, sums,
            owners, segments, walk):
    """Sample ``traces`` paths of the stretch in the first four of ``lanes`` lanes; add to f4[length] ``sums`` the null2
    odds of each residue in each of them.

    Where a path needs other rows than those of ``cells``, ``first_row`` to ``last_row``, it is left: i8[15] ``walk``,
    all 0 to begin with, says whether all paths have been sampled, the row that is needed, the number of domains, and
    how to go on. Of domains those that there is room for are noted: i8[n] ``owners``, their paths, and i8[n, 4]
    ``segments``, first and last residue and node. use, used, odds, sums_of_lanes: f4[Q · 4] of zeros, i8[Q], f4[28],
    f4[4], working space; ``use`` stays as it is while a path is left.
    """
    row, deletes, inserts = 3 * slots * lanes, slots * lanes, 2 * slots * lanes
    around, to_n, to_b, to_e = SPECIALS * lanes, N * lanes, B * lanes, E * lanes
    to_j, to_c, to_scale = J * lanes, C * lanes, SCALE * lanes
    i, count, mode, trace, first_of_trace, from_c, behind = (
        walk[1], walk[2], walk[3], walk[4], walk[5], walk[6], walk[7])
    k, here, start, end, first, last = walk[8], walk[9], walk[10], walk[11], walk[12], walk[13]
    inside = walk[14]
    while True:
        if mode == _START:
            if trace == traces:
                break
            first_of_trace, i, from_c, mode = count, length, 1, _AROUND
            behind = length  # residues up to here are still to be counted
        if mode == _AROUND:
            # From C or J back to the E that it came from.
            state, out = (to_c, end_move) if from_c else (to_j, end_loop)
            while True:
                staying = specials[(i - 1) * around + state] * loop
                ending = specials[i * around + to_e] * out * specials[i * around + to_scale]
                if _one_of_two(staying, ending, _next(numbers)) != 0:
                    break
                i -= 1
            mode = _ENDING
        if i > last_row or (i <= first_row and first_row > 0):
            break
        if mode == _ENDING:
            chosen = _exit(cells, lanes, (i - first_row) * row, slots, specials[i * around + to_e], _next(numbers))
            k, here, mode = chosen // 2, _D if chosen % 2 else _M, _INSIDE
            start = end = first = last = inside = 0
        entered = False
        slot, lane = (k - 1) % slots, (k - 1) // slots
        while not entered and (i > first_row or first_row == 0):
            used_at, at, t = slot * 4 + lane, slot * lanes + lane, slot * STEP + lane
            left_slot, left_lane = (slot - 1, lane) if slot else (slots - 1, lane - 1)
            left, left_t = left_slot * lanes + left_lane, left_slot * STEP + left_lane
            above = (i - 1 - first_row) * row
            if here == _M:
                if not end:
                    end, last = i, k
                start, first = i, k
                use[used_at] += _ONE
                inside += 1
                of_match = of_insert = of_delete = _ZERO
                if k > 1:
                    of_match = cells[above + left] * transitions[t + _INTO_MM]
                    of_insert = cells[above + inserts + left] * transitions[t + _INTO_IM]
                    of_delete = cells[above + deletes + left] * transitions[t + _INTO_DM]
                way = _one_of_four(specials[(i - 1) * around + to_b] * transitions[t + _ENTRY], of_match, of_insert,
                                   of_delete, _next(numbers))
                i, k, entered = i - 1, k - 1, way == 0
                slot, lane, here = left_slot, left_lane, way - 1
            elif here == _D:
                of_match = cells[above + row + left] * transitions[left_t + _MD]
                of_delete = cells[above + row + deletes + left] * transitions[left_t + _DD]
                here = _M if _one_of_two(of_match, of_delete, _next(numbers)) == 0 else _D
                k, slot, lane = k - 1, left_slot, left_lane
            else:
                use[used_at] += _ONE
                inside += 1
                of_match = cells[above + at] * transitions[t + _MI]
                of_insert = cells[above + inserts + at] * transitions[t + _II]
                here = _M if _one_of_two(of_match, of_insert, _next(numbers)) == 0 else _I
                i -= 1
        if not entered:
            break
        # As in HMMER, the first residue of a domain counts as outside.
        _null2(match, slots, use, used, first, last, inside, codes, n_members, members, odds, sums_of_lanes)
        for place in range(end, behind):
            sums[place] += _ONE
        for place in range(start, end):
            sums[place] += odds[residues[begin + place]]
        behind = start
        if count < len(owners):
            owners[count] = trace
            segments[count, 0], segments[count, 1], segments[count, 2], segments[count, 3] = start, end, first, last
        count += 1
        from_c, mode = 0, _AROUND
        to_n_weight, to_j_weight = specials[i * around + to_n] * move, specials[i * around + to_j] * move
        if _one_of_two(to_n_weight, to_j_weight, _next(numbers)) == 0:
            for place in range(behind):
                sums[place] += _ONE
            if count <= len(owners):  # from left to right
                low, high = first_of_trace, count - 1
                while low < high:
                    for column in range(4):
                        kept = segments[low, column]
                        segments[low, column] = segments[high, column]
                        segments[high, column] = kept
                    low, high = low + 1, high - 1
            trace, mode = trace + 1, _START
    walk[0], walk[1], walk[2], walk[3], walk[4], walk[5] = trace == traces, i, count, mode, trace, first_of_trace
    walk[6], walk[7], walk[8], walk[9], walk[10], walk[11] = from_c, behind, k, here, start, end
    walk[12], walk[13], walk[14] = first, last, inside


@kernel
def _mean_logs(sums, traces):
    for i in range(len(sums)):
        sums[i] = np.float32(math.log(sums[i] / np.float32(traces)))


def sampled(matrices: Matrices, number: int, residues: NDArray[np.uint8], begin: int, traces: int,
            state: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Array32]:
    """Paths through a whole Forward matrix, multihit.

    Args:
        number: of the stretch in the matrices, which begins at ``residues[begin]``.
        traces: how many.
        state: of the random numbers before the first.

    Returns:
        Path i8[n] of each domain, in order, and i8[n, 4] first and last residue (1-based in the stretch) and node;
        f4[L] log of the mean null2 odds of each residue.
    """
    odds, length, lane, room = matrices.odds, int(matrices.lengths[number]), LANES * number, _FIRST_SEGMENTS
    while True:
        codes = residues_of(odds.codes).arrays
        use, used, walk = np.zeros(odds.slots * LANES, F32), np.empty(odds.slots, np.int64), np.zeros(15, np.int64)
        owners, segments = np.empty(room, np.int64), np.empty((room, 4), np.int64)
        sums, numbers, walk[1] = np.zeros(length, F32), np.array([state]), length
        while not walk[0]:
            block, first, last = next((n, *rows) for n, rows in enumerate(matrices.blocks) if walk[1] <= rows[1])
            matrices.fill(block)
            _sample(odds.match, odds.transitions, odds.slots, residues, begin, length, matrices.loops[number],
                    matrices.moves[number], matrices.end_loop, matrices.end_move, matrices.forward[lane:],
                    matrices.cells[lane:], matrices.lanes, first, last, traces, numbers, *codes, use, used,
                    np.empty(odds.codes, F32), np.empty(4, F32), sums, owners, segments, walk)
        count = int(walk[2])
        if count <= room:
            break
        room = count
    _mean_logs(sums, traces)
    return owners[:count], segments[:count], sums
