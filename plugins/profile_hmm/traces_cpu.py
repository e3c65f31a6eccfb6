"""Sampled paths through the Forward matrix of a region, as in ``traces_reference.py``, and null2 of their domains.

The paths of a region share most of their cells. What is drawn at a cell is therefore written down when a path first
comes to it, as a record of eight whole numbers: below which random numbers each of the first three ways is taken, the
record of the cell that each of the four ways leads to, and where the cell's use is counted. From then on a step is to
compare a random number with three of them and to go on to another record.

The bounds are HMMER's quotients times 2³², rounded up, so that a random number of 32 bits is below the one just where
its share of 2³² is below the other. A bound of 2³² is kept as one less: what the largest random number then leads to is
the last way that has any weight, as ``_way`` sees to.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import load, same_quads, splat, store

from .accuracy_cpu import spread_to_degenerate
from .exact_math import F32, Array32
from .forward_cpu import BY_SLOT, SCALE, SPECIALS, STEP, B, C, E, J, Matrices, N
from .profile import LANES
from .residues import residues_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ENTRY, _INTO_MM, _INTO_IM, _INTO_DM, _MI, _II, _MD, _DD = (LANES * n for n in range(8))
_ZERO, _ONE = F32(0.0), F32(1.0)
_FACTOR, _MASK, _WHOLE = 69069, 0xFFFFFFFF, 4294967296.0
_ALL, _HALF, _QUARTER = 1 << 32, 1 << 31, 1 << 30
_M, _I, _D = 0, 1, 2
_START, _AROUND, _ENDING, _INSIDE = range(4)
_FIRST_SEGMENTS = 1024
_RECORD, _LINKS, _USED = 8, 3, 7
"""Numbers of a record; where the records of the ways and the place of the cell's use begin in it."""
_UNKNOWN, _BEGIN, _NEXT, _FIRST_RECORD = 0, 1, 2, 3
"""In place of a record: a way that no path has taken yet, the one to B, and the one to the record behind."""
_RECORD_BITS = 17
_RECORD_MASK = (1 << _RECORD_BITS) - 1
_MOST_RECORDS, _LEAST_RECORDS, _RECORDS_FOR_A_RESIDUE = 1 << 16, 1 << 10, 24
_EXIT_BYTES = 1 << 20
"""Of the sums that the ways into E are drawn from, of several rows."""
TABLE_BYTES = _EXIT_BYTES + (4 * _RECORD + 3 * 8) * _MOST_RECORDS
"""Of all that is noted of the paths through a region, at most."""
_CLOSE = 2.0**-18
"""Share of the whole by which a roll must be off the boundary between two ways into E to be told without HMMER's
quotients: its boundaries, sums of quotients of f32, are off the true ones by less than an eighth of this."""
_WIDE = 16
"""Lanes of a vector of null2 odds: of four letters at a time."""


@inline
def _next(number):
    """The generator's next state, of which a 2³²th is HMMER's deviate in [0, 1)."""
    return (number * _FACTOR + 1) & _MASK


@inline
def _bound(part, whole):
    """The least number whose 2³²th isn't below ``part / whole``, f64."""
    return np.int64(math.ceil(part / whole * _WHOLE))


@kernel
def _bound_of_two(first, second):
    """Numbers below this take the first of two ways, with chances as f32 weights say; their sum is Kahan's."""
    total = first + second
    if total == _ZERO:
        return _HALF
    one = np.float64(first / total)
    return _bound(one, one + np.float64(second / total))


@kernel
def _bounds_of_four(first, second, third, fourth):
    """Numbers below these take the first, the second and the third of four ways; as ``_bound_of_two``."""
    total = first + second
    compensation = (total - first) - second
    corrected = third - compensation
    larger = total + corrected
    compensation = (larger - total) - corrected
    total = larger + (fourth - compensation)
    if total == _ZERO:
        return _QUARTER, _HALF, _HALF + _QUARTER
    a = np.float64(first / total)
    b = a + np.float64(second / total)
    c = b + np.float64(third / total)
    whole = c + np.float64(fourth / total)
    return _bound(a, whole), _bound(b, whole), _bound(c, whole)


@kernel
def _bounds_at(transitions, slots, cells, lanes, row_begin, from_begin, k, here):
    """Bounds of the ways from state ``here`` of node k, whose row begins at ``row_begin`` of ``cells``; from a match
    state to B, M, I, D, else to M and to I or D. from_begin: the row before's B."""
    deletes, inserts = slots * lanes, 2 * slots * lanes
    slot, lane = (k - 1) % slots, (k - 1) // slots
    left_slot, left_lane = (slot - 1, lane) if slot else (slots - 1, lane - 1)
    left, left_t, t = left_slot * lanes + left_lane, left_slot * STEP + left_lane, slot * STEP + lane
    above = row_begin - 3 * slots * lanes
    if here == _M:
        of_match = of_insert = of_delete = _ZERO
        if k > 1:
            of_match = cells[above + left] * transitions[t + _INTO_MM]
            of_insert = cells[above + inserts + left] * transitions[t + _INTO_IM]
            of_delete = cells[above + deletes + left] * transitions[t + _INTO_DM]
        return _bounds_of_four(from_begin * transitions[t + _ENTRY], of_match, of_insert, of_delete)
    if here == _D:
        return _bound_of_two(cells[row_begin + left] * transitions[left_t + _MD],
                             cells[row_begin + deletes + left] * transitions[left_t + _DD]), _ALL, _ALL
    at = slot * lanes + lane
    return _bound_of_two(cells[above + at] * transitions[t + _MI],
                         cells[above + inserts + at] * transitions[t + _II]), _ALL, _ALL


@inline
def _bucket(cell, buckets):
    """Where to look for a cell first."""
    return ((cell * 0x9E3779B1) >> 15) & (len(buckets) - 1)


@kernel
def _found(cell, buckets):
    """Record of the cell, or 0."""
    place = _bucket(cell, buckets)
    while buckets[place]:
        if buckets[place] >> _RECORD_BITS == cell:
            return buckets[place] & _RECORD_MASK
        place = (place + 1) & (len(buckets) - 1)
    return 0


@kernel
def _added(cell, bounds, used_at, count, buckets, abouts, records):
    """Write record ``count`` of a cell down."""
    place, at, ways = _bucket(cell, buckets), count * _RECORD, 0
    while buckets[place]:
        place = (place + 1) & (len(buckets) - 1)
    buckets[place] = cell << _RECORD_BITS | count
    for n in range(3):
        records[at + n] = max(0, min(bounds[n], _MASK))
        ways += bounds[n] < _ALL
    for n in range(4):
        records[at + _LINKS + n] = _UNKNOWN
    records[at + _USED] = used_at
    abouts[count] = 4 * cell + ways


@inline
def _way(about, chosen):
    """The way that is taken, which has some weight."""
    return min(chosen, about & 3)


@kernel
def _sum_exits(cells, lanes, row_begin, slots, sums):
    """Fill f8[Q] ``sums`` with those of the cells of the slots so far."""
    total = 0.0
    for q in range(slots):
        place = row_begin + q * lanes
        matched = (cells[place] + cells[place + 1]) + (cells[place + 2] + cells[place + 3])
        place += slots * lanes
        total += np.float64(matched + ((cells[place] + cells[place + 1]) + (cells[place + 2] + cells[place + 3])))
        sums[q] = total


@kernel
def _exit(sums, roll, cells, lanes, row_begin, slots, end):
    """State and node, as 2 · node + (1 for D), from which E was reached; ``sums`` are those of its row."""
    wanted, margin, deletes = roll * np.float64(end), _CLOSE * np.float64(end), slots * lanes
    low, high = 0, slots
    while low < high:
        middle = (low + high) // 2
        if wanted < sums[middle]:
            high = middle
        else:
            low = middle + 1
    before = sums[low - 1] if low else 0.0
    if low < slots and (wanted > before + margin or low == 0) and wanted < sums[low] - margin:
        for state in range(8):
            before += np.float64(cells[row_begin + low * lanes + state % 4 + (deletes if state >= 4 else 0)])
            if wanted < before - margin:
                return 2 * (state % 4 * slots + low + 1) + (state >= 4)
            if wanted < before + margin:
                break
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
def _null2(by_slot, slots, use, first, last, residues_inside, codes, n_members, members, degenerate, sums, odds):
    """Odds f4[28] of a domain that used nodes ``first`` to ``last`` as often as f4[Q · 4] ``use`` says, which is
    cleared; those of degenerate residues if they are wanted. by_slot: f4[Q, 20, 4], odds of the letters. sums: f4[80],
    working space.
    """
    weight = splat(_ONE / np.float32(residues_inside), _WIDE)
    low, high = (first - 1) % slots, (last - 1) % slots
    if last - first + 1 >= slots:
        low, high = 0, slots - 1
    sum0 = sum1 = sum2 = sum3 = sum4 = splat(_ZERO, _WIDE)
    for part in range(2):
        begin, end = (low, high) if low <= high else (0, high) if part == 0 else (low, slots - 1)
        for q in range(begin, end + 1):
            used, at = same_quads(use, q * 4, _WIDE) * weight, q * 4 * BY_SLOT
            store(use, q * 4, splat(_ZERO, 4))
            sum0 = sum0 + load(by_slot, at, _WIDE) * used
            sum1 = sum1 + load(by_slot, at + _WIDE, _WIDE) * used
            sum2 = sum2 + load(by_slot, at + 2 * _WIDE, _WIDE) * used
            sum3 = sum3 + load(by_slot, at + 3 * _WIDE, _WIDE) * used
            sum4 = sum4 + load(by_slot, at + 4 * _WIDE, _WIDE) * used
        if low <= high:
            break
    store(sums, 0, sum0)
    store(sums, _WIDE, sum1)
    store(sums, 2 * _WIDE, sum2)
    store(sums, 3 * _WIDE, sum3)
    store(sums, 4 * _WIDE, sum4)
    for n in range(len(codes)):
        odds[codes[n]] = (sums[4 * n] + sums[4 * n + 1]) + (sums[4 * n + 2] + sums[4 * n + 3])
    if degenerate:
        spread_to_degenerate(codes, n_members, members, odds)


@kernel
def _has_degenerate(residues, codes, n_members, members):
    """Whether a residue is none of those that models emit."""
    found = False
    for residue in residues:
        found |= n_members[residue] != 1 or codes[members[residue, 0]] != residue
    return found


@kernel
def _sample(transitions, by_slot, slots, nodes, residues, loop, move, end_loop, end_move, specials, cells, lanes,
            first_row, last_row, traces, codes, n_members, members, around, exit_rows, row_of_exit, exit_sums, buckets,
            abouts, records, use, odds, sums_of_lanes, sums, owners, segments, walk):
    """Sample ``traces`` paths of the stretch of ``residues`` in the first four of ``lanes`` lanes; add to f4[length]
    ``sums`` the null2 odds of each residue in each of them.

    Where a path needs other rows than those of ``cells``, ``first_row`` to ``last_row``, it is left: i8[17] ``walk``,
    all 0 to begin with, says whether all paths have been sampled, the row that is needed, the number of domains, how to
    go on, the random number before and the number of records. Of domains those that there is room for are noted: i8[n]
    ``owners``, their paths, and i8[n, 4] ``segments``, first and last residue and node.

    around: i8[3, L + 1], bounds of the ways from C, from J and from B of each row, all −1. exit_rows: i8[n], −1, rows
    whose ways into E are summed up; row_of_exit: i8[L + 1], −1, where those of a row are; exit_sums: f8[n, Q].
    buckets: i8[power of two], 0, of each the cell and its record; abouts: i8[records], of each its cell's number and,
    in the last two bits, how many ways have weight, less one; records: u4[records · 8]. use: f4[Q · 4 + 4], zeros, of
    which the last ones are for what isn't counted; it stays as it is while a path is left. odds, sums_of_lanes: f4[28],
    f4[80], working space.
    """
    row, length = 3 * slots * lanes, len(residues)
    states, to_n, to_b, to_e = SPECIALS * lanes, N * lanes, B * lanes, E * lanes
    to_j, to_c, to_scale = J * lanes, C * lanes, SCALE * lanes
    degenerate = _has_degenerate(residues, codes, n_members, members)
    i, count, mode, trace, first_of_trace, from_j, behind = (
        walk[1], walk[2], walk[3], walk[4], walk[5], walk[6], walk[7])
    k, here, start, end, first, last, drawn, n_records, n_exits = (
        walk[8], walk[9], walk[10], walk[11], walk[12], walk[13], walk[14], walk[15], walk[16])
    if n_records == 0:
        n_records = _FIRST_RECORD
    while True:
        if mode == _START:
            if trace == traces:
                break
            first_of_trace, i, from_j, mode = count, length, 0, _AROUND
            behind = length  # residues up to here are still to be counted
        if mode == _AROUND:
            # From C or J back to the E that it came from.
            state, out = (to_j, end_loop) if from_j else (to_c, end_move)
            while True:
                bound = around[from_j, i]
                if bound < 0:
                    bound = around[from_j, i] = _bound_of_two(
                        specials[(i - 1) * states + state] * loop,
                        specials[i * states + to_e] * out * specials[i * states + to_scale])
                drawn = _next(drawn)
                if drawn >= bound:
                    break
                i -= 1
            mode = _ENDING
        if i > last_row or (i <= first_row and first_row > 0):
            break
        if mode == _ENDING:
            place = row_of_exit[i]
            if place < 0:
                place = n_exits % len(exit_rows)
                n_exits += 1
                if exit_rows[place] >= 0:
                    row_of_exit[exit_rows[place]] = -1
                exit_rows[place], row_of_exit[i] = i, place
                _sum_exits(cells, lanes, (i - first_row) * row, slots, exit_sums[place])
            drawn = _next(drawn)
            chosen = _exit(exit_sums[place], np.float64(drawn) / _WHOLE, cells, lanes, (i - first_row) * row, slots,
                           specials[i * states + to_e])
            k, here, mode = chosen // 2, _D if chosen % 2 else _M, _INSIDE
            start = end = first = last = 0
        entered, link = False, 0
        while not entered and (i > first_row or first_row == 0):
            cell = (i * (nodes + 1) + k) * 4 + here
            record = _found(cell, buckets)
            if record == 0:
                if n_records == len(abouts):
                    n_records, link = _FIRST_RECORD, 0
                    buckets[:] = 0
                record = n_records
                used_at = slots * 4 if here == _D else (k - 1) % slots * 4 + (k - 1) // slots
                _added(cell, _bounds_at(transitions, slots, cells, lanes, (i - first_row) * row,
                                        specials[(i - 1) * states + to_b], k, here), used_at, record, buckets, abouts,
                       records)
                n_records += 1
            if link:
                records[link] = _NEXT if record == link // _RECORD + 1 else record
            while True:
                while True:
                    at = record * _RECORD
                    if not end and abouts[record] >> 2 & 3 == _M:
                        end, last = (abouts[record] >> 4) // (nodes + 1), (abouts[record] >> 4) % (nodes + 1)
                    use[records[at + _USED]] += _ONE
                    drawn = _next(drawn)
                    chosen = (np.int64(drawn >= np.int64(records[at])) + np.int64(drawn >= np.int64(records[at + 1]))
                              + np.int64(drawn >= np.int64(records[at + 2])))
                    link = at + _LINKS + chosen
                    ahead = np.int64(records[link])
                    if ahead != _NEXT:
                        break
                    record += 1
                if ahead < _FIRST_RECORD:
                    break
                record = ahead
            about = abouts[record]
            i, k, here = (about >> 4) // (nodes + 1), (about >> 4) % (nodes + 1), about >> 2 & 3
            way = _way(about, chosen)
            if here == _M:
                if way == 0:
                    records[link] = _BEGIN
                    start, first, entered = i, k, True
                i, k, here = i - 1, k - 1, way - 1
            elif here == _D:
                k, here = k - 1, _M if way == 0 else _D
            else:
                i, here = i - 1, _M if way == 0 else _I
        if not entered:
            break
        # As in HMMER, the first residue of a domain counts as outside.
        _null2(by_slot, slots, use, first, last, end - start + 1, codes, n_members, members, degenerate, sums_of_lanes,
               odds)
        for place in range(end, behind):
            sums[place] += _ONE
        for place in range(start, end):
            sums[place] += odds[residues[place]]
        behind = start
        if count < len(owners):
            owners[count] = trace
            segments[count, 0], segments[count, 1], segments[count, 2], segments[count, 3] = start, end, first, last
        count += 1
        from_j, mode = 1, _AROUND
        bound = around[2, i]
        if bound < 0:
            bound = around[2, i] = _bound_of_two(specials[i * states + to_n] * move, specials[i * states + to_j] * move)
        drawn = _next(drawn)
        if drawn < bound:
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
    walk[6], walk[7], walk[8], walk[9], walk[10], walk[11] = from_j, behind, k, here, start, end
    walk[12], walk[13], walk[14], walk[15], walk[16] = first, last, drawn, n_records, n_exits


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
    rooms, slots, codes = matrices.rooms, odds.slots, residues_of(odds.codes).arrays
    wanted = max(_LEAST_RECORDS, min(_RECORDS_FOR_A_RESIDUE * length, _MOST_RECORDS))
    n_records = 1 << (wanted - 1).bit_length()
    n_exits = max(4, min(length, _EXIT_BYTES // (8 * slots)))
    while True:
        use, walk = np.zeros(slots * LANES + LANES, F32), np.zeros(17, np.int64)
        owners, segments = np.empty(room, np.int64), np.empty((room, 4), np.int64)
        around, exit_rows = np.full((3, length + 1), -1, np.int64), np.full(n_exits, -1, np.int64)
        row_of_exit = np.full(length + 1, -1, np.int64)
        exit_sums = rooms.of("exits", n_exits * slots, np.float64)[: n_exits * slots].reshape(n_exits, -1)
        buckets = rooms.of("buckets", 2 * n_records, np.int64)[: 2 * n_records]
        buckets[:] = 0
        abouts = rooms.of("abouts", n_records, np.int64)[:n_records]
        records = rooms.of("records", n_records * _RECORD, np.uint32)
        sums, walk[1], walk[14] = np.zeros(length, F32), length, state
        while not walk[0]:
            block, first, last = next((n, *rows) for n, rows in enumerate(matrices.blocks) if walk[1] <= rows[1])
            matrices.fill(block)
            _sample(odds.transitions, odds.by_slot, slots, odds.length, residues[begin : begin + length],
                    matrices.loops[number], matrices.moves[number], matrices.end_loop, matrices.end_move,
                    matrices.forward[lane:], matrices.cells[lane:], matrices.lanes, first, last, traces, *codes,
                    around, exit_rows, row_of_exit, exit_sums, buckets, abouts, records, use,
                    np.empty(odds.codes, F32), np.empty(LANES * BY_SLOT, F32), sums, owners, segments, walk)
        count = int(walk[2])
        if count <= room:
            break
        room = count
    _mean_logs(sums, traces)
    return owners[:count], segments[:count], sums
