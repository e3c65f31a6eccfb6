"""Alignments of one query with many targets: where the best ones end, and the way back from there.

Targets are queued lane by lane, each from a block of columns of its own on, so that lanes are about equally full. A
first pass over the queues notes for each target the first place that has its best score, and keeps h and e before every
block. Alignments are then followed back block by block. Of all that are under way, as many as there are lanes, those
that stand lowest in the query, are taken together, whichever blocks of theirs they stand in: these blocks are computed
again as far as the lowest of them, with four bits a cell that say how the cell came about (one machine word holds one
bit of all lanes).
"""

from collections.abc import Callable

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import (
    ALL_LANES,
    aligned,
    choose_greater,
    greater_lanes,
    load,
    lowered,
    lowered_to,
    lowest_bit,
    maximum,
    prefetch,
    spread,
    store,
    wrapped_difference,
    wrapped_sum,
)
from seqloom.core.records import Ragged
from seqloom.plugins.common.lane_tiles import TILE
from seqloom.plugins.common.lanes import COLUMNS, PAD, interleave
from seqloom.plugins.common.stretches_cpu import Stretches

from .recurrence_cpu import (
    LANES,
    RAISED,
    SPAN,
    Arithmetic,
    Profile,
    Workspace,
    bound_of,
    cells,
    fill_columns,
    numbers_of,
)
from .wavefront_cpu import (
    COLUMN,
    DELETE_GOES_ON,
    GAP,
    INSERT_GOES_ON,
    NOT_INSERT,
    NOT_PAIR,
    ROW,
    SCORE,
    SIMILAR,
    USED,
    step,
)

_BITS = 4
_USUAL_BLOCK = 128
ROUND_BYTES = 16 << 20
"""Working space of the targets that are traced together, unless the longest of them takes more."""
ROUND_TARGETS = 16 * LANES
"""Most targets that are traced together."""
MOST_BYTES = 192 << 20
"""Working space of a target, with others in the other lanes, beyond which it is traced by itself instead."""


def block_columns(query_length: int, longest: np.ndarray | int) -> np.ndarray:
    """Columns of a block; for large pairs as many as make it and what is kept before blocks take about equal memory."""
    large = _bytes(query_length, longest, _USUAL_BLOCK) > ROUND_BYTES
    balanced = np.sqrt(8 * longest).astype(np.int64) // COLUMNS * COLUMNS
    return np.where(large, np.maximum(balanced, COLUMNS), _USUAL_BLOCK)


def trace_bytes(query_length: int, longest: np.ndarray | int) -> np.ndarray:
    """Working space for targets up to that length, one in each lane, in bytes, with sixteen-bit lanes."""
    return _bytes(query_length, longest, block_columns(query_length, longest))


def _bytes(query_length: int, columns: np.ndarray | int, block: np.ndarray | int) -> np.ndarray:
    return np.asarray(query_length * (block * _BITS * 8 + (columns // block + 3) * 4 * LANES))


def round_bytes(query_length: int, longest: int) -> int:
    """Most that ``trace_lanes`` takes for targets up to that length, beside what it gives."""
    working = max(ROUND_BYTES, min(MOST_BYTES, int(trace_bytes(query_length, longest))))
    queued = max(LANES * longest, 64 * (ROUND_BYTES // max(1, query_length)))
    return working + 8 * min(queued, ROUND_TARGETS * min(query_length, longest))


@kernel
def _queue(lengths, block, most, lane_of, firsts):
    """Put targets, longest first, each behind the shortest queue, until it would have more than ``most`` blocks.

    lane_of, firsts: i8, filled with the lane of each target and its first block there.

    Returns:
        How many have been put, which is one at least, and the blocks of the longest queue.
    """
    ends = np.zeros(LANES, np.int64)
    for n in range(len(lengths)):
        lane = 0
        for other in range(1, LANES):
            if ends[other] < ends[lane]:
                lane = other
        end = ends[lane] + -(-lengths[n] // block)
        if n == 0:
            most = max(most, end)
        if end > most:
            return n, ends.max()
        lane_of[n], firsts[n], ends[lane] = lane, ends[lane], end
    return len(lengths), ends.max()


@kernel
def _note(h, above, best, i, j, current, before, ends):
    """Note (i, j) as the end of the alignments of those lanes whose best score stands there; lanes that score more."""
    there = greater_lanes(h, above)
    while there != 0:
        lane = np.int64(lowest_bit(there))
        there &= there - np.uint64(1)
        target = current[lane]
        if ends[target, 0] < 0 or i < ends[target, 0]:
            ends[target, 0] = i
            ends[target, 1] = before[lane] + j
    return greater_lanes(h, best)


@inline
def _note_span(h0, h1, h2, h3, rise, above, best, i, j, current, before, ends):
    """Note the ends in a row of a span that begins with column j; lanes that score more."""
    h1 = wrapped_difference(h1, rise)
    h2 = wrapped_difference(wrapped_difference(h2, rise), rise)
    h3 = wrapped_difference(wrapped_difference(wrapped_difference(h3, rise), rise), rise)
    return (_note(h0, above, best, i, j, current, before, ends)
            | _note(h1, above, best, i, j + 1, current, before, ends)
            | _note(h2, above, best, i, j + 2, current, before, ends)
            | _note(h3, above, best, i, j + 3, current, before, ends))


@kernel
def _begin_block(fresh, z0, z3, h_row, e_row, kept_h, kept_e):
    """Clear h and e in the lanes where ``fresh`` is 1, not 0, and keep all of them."""
    cleared, nothing = load(fresh, 0, LANES), spread(0, z0)
    for place in range(0, len(h_row), LANES):
        h = choose_greater(cleared, nothing, z3, load(h_row, place, LANES))
        e = choose_greater(cleared, nothing, z0, load(e_row, place, LANES))
        store(h_row, place, h)
        store(e_row, place, e)
        store(kept_h, place, h)
        store(kept_e, place, e)


class _Targets(NamedTuple):
    """Targets that are traced together.

    Attributes:
        residues, begins, stops: u1, i8[k]: target n is ``residues[begins[n]:stops[n]]``.
        lane_of, firsts: i8[k], the lane whose queue a target is in, and the number of its first block there.
        block: columns of a block.
    """

    residues: np.ndarray
    begins: np.ndarray
    stops: np.ndarray
    lane_of: np.ndarray
    firsts: np.ndarray
    block: int


class _Pairing(NamedTuple):
    """Scores of the profile's rows with residues, the query's codes, and gap costs, as ``step`` wants them."""

    residue_scores: np.ndarray
    query: np.ndarray
    gap_open: int
    gap_extend: int


@kernel
def _find_ends(work, targets, below, columns, tile, kept_h, kept_e, ends):
    """First place of each target's best score, one more than ``below``; h and e before every block of columns.

    below: one more than there are targets; the last is for lanes without a target.
    kept_h, kept_e: [blocks, rows · LANES].

    Returns:
        Whether there is a place for each, and no score is better.
    """
    rows, tables, places, zero, gap_first, gap_further, source, spans, narrow, scores, h_row, e_row = work
    residues, begins, stops, lane_of, firsts, block = targets
    width = SPAN * len(spans)
    z0, z1, z2, z3, rise, span, opening, further = numbers_of(zero, gap_first, gap_further)
    members = np.full((len(kept_h), LANES), -1)
    for target in range(len(ends)):
        number = firsts[target] + -(-(stops[target] - begins[target]) // block)
        members[firsts[target] : number, lane_of[target]] = target
    begin_of, stop_of, before = np.empty(LANES, np.int64), np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    least, fresh = np.empty(LANES, below.dtype), np.empty(LANES, below.dtype)
    order, starts = np.arange(LANES), np.zeros(2, np.int64)
    more = np.uint64(0)
    ends[:] = -1
    for number in range(len(members)):
        current = members[number]
        longest = 0
        for lane in range(LANES):
            target = current[lane]
            before[lane] = (number - firsts[target]) * block if target >= 0 else 0
            fresh[lane] = before[lane] == 0
            least[lane] = below[target]
            begin_of[lane] = begins[target] + before[lane]
            stop_of[lane] = stops[target] if target >= 0 else 0
            longest = max(longest, stop_of[lane] - begin_of[lane])
        starts[1] = min(block, -(-longest // COLUMNS) * COLUMNS) * LANES
        interleave(residues, begin_of, stop_of, order, starts, LANES, PAD, tile, columns)
        _begin_block(fresh, z0, z3, h_row, e_row, kept_h[number], kept_e[number])
        above = load(least, 0, LANES)
        best = above + spread(1, above)
        bound = bound_of(above, opening, further)
        for position in range(0, starts[1], width * LANES):
            fill_columns(rows, tables, columns, position, width, source, narrow, scores)
            d0, d1, d2, d3, f0, f1, f2, f3 = z3, z0, z1, z2, z0, z1, z2, z3
            d4, d5, d6, d7, f4, f5, f6, f7 = z3, z0, z1, z2, z0, z1, z2, z3
            for i in range(len(places)):
                place = places[i] * (width * LANES)
                left = load(h_row, i * LANES, LANES)
                e = load(e_row, i * LANES, LANES)
                h0, h1, h2, h3, e, f0, f1, f2, f3, within = cells(d0, d1, d2, d3, scores, place, e, f0, f1, f2, f3, z0,
                                                                  z1, z2, z3, span, opening, further, bound, ALL_LANES)
                d0, d1, d2, d3, last = left, h0, h1, h2, h3
                if len(spans) == 2:
                    h4, h5, h6, h7, e, f4, f5, f6, f7, within = cells(
                        d4, d5, d6, d7, scores, place + SPAN * LANES, e, f4, f5, f6, f7, z0, z1, z2, z3, span, opening,
                        further, bound, within)
                    d4, d5, d6, d7, last = h3, h4, h5, h6, h7
                store(h_row, i * LANES, last)
                store(e_row, i * LANES, e)
                if within != ALL_LANES:
                    column = position // LANES
                    more |= _note_span(d1, d2, d3, h3, rise, above, best, i, column, current, before, ends)
                    if len(spans) == 2:
                        more |= _note_span(d5, d6, d7, last, rise, above, best, i, column + SPAN, current, before, ends)
    found = not more
    for target in range(len(ends)):
        found = found and ends[target, 0] >= 0
    return found


@inline
def _marked(diagonal, score, e, f, floor, opening, further, bits, place):
    """One cell with the h and e that ``cell`` gives, and its four words of bits."""
    pair = wrapped_sum(diagonal, score)
    gap = lowered_to(floor, f, further) if RAISED else lowered(f, further)
    e = e if RAISED else wrapped_difference(e, further)
    h = maximum(maximum(pair, gap), e)
    opened = wrapped_difference(h, opening)
    bits[np.uint64(place)] = greater_lanes(h, pair)  # of a signed place it would be looked whether it is below 0
    bits[np.uint64(place + 1)] = greater_lanes(h, gap)
    bits[np.uint64(place + 2)] = greater_lanes(gap, opened)
    bits[np.uint64(place + 3)] = greater_lanes(e, opened)
    return h, maximum(e, opened), maximum(gap, opened)


@kernel
def _mark_block(work, last_row, columns, end, bits):
    """Cells of a block of columns, rows 0…last_row: how each came about."""
    rows, tables, places, zero, gap_first, gap_further, source, _, narrow, scores, h_row, e_row = work
    z0, z1, z2, z3, _, span, opening, further = numbers_of(zero, gap_first, gap_further)
    place_of_bits = 0
    for position in range(0, end, SPAN * LANES):
        fill_columns(rows, tables, columns, position, SPAN, source, narrow, scores)
        d0, d1, d2, d3, f0, f1, f2, f3 = z3, z0, z1, z2, z0, z1, z2, z3
        for i in range(last_row + 1):
            place = places[i] * (SPAN * LANES)
            left = load(h_row, i * LANES, LANES)
            e = load(e_row, i * LANES, LANES)
            to = place_of_bits + i * SPAN * _BITS
            h0, e, f0 = _marked(d0, load(scores, place, LANES), e, f0, z0, opening, further, bits, to)
            h1, e, f1 = _marked(d1, load(scores, place + LANES, LANES), e, f1, z1, opening, further, bits, to + _BITS)
            h2, e, f2 = _marked(d2, load(scores, place + 2 * LANES, LANES), e, f2, z2, opening, further, bits,
                                to + 2 * _BITS)
            h3, e, f3 = _marked(d3, load(scores, place + 3 * LANES, LANES), e, f3, z3, opening, further, bits,
                                to + 3 * _BITS)
            store(h_row, i * LANES, h3)
            store(e_row, i * LANES, wrapped_difference(e, span))
            d0, d1, d2, d3 = left, h0, h1, h2
        place_of_bits += (last_row + 1) * SPAN * _BITS


@kernel
def _follow(state, lane, bits, first_column, last_row, columns, places, pairing, path):
    """Follow the alignment of a lane back through a block that begins with ``first_column``."""
    residue_scores, query, gap_open, gap_extend = pairing
    mine, one = np.uint64(lane), np.uint64(1)
    column_words = (last_row + 1) * SPAN * _BITS
    i, j, gap, score, used, similar = (state[ROW], state[COLUMN] - first_column, state[GAP], state[SCORE], state[USED],
                                       state[SIMILAR])
    while score > 0 and j >= 0:
        place = np.uint64((j // SPAN) * column_words + (i * SPAN + j % SPAN) * _BITS)
        prefetch(bits, place - np.uint64(column_words + SPAN * SPAN * _BITS))
        how = (np.int64((bits[place] >> mine) & one) * NOT_PAIR
               + np.int64((bits[place + np.uint64(1)] >> mine) & one) * NOT_INSERT
               + np.int64((bits[place + np.uint64(2)] >> mine) & one) * INSERT_GOES_ON
               + np.int64((bits[place + np.uint64(3)] >> mine) & one) * DELETE_GOES_ON)
        residue = columns[j * LANES + lane]
        i, j, gap, score, used, similar = step(i, j, gap, score, used, similar, how, residue_scores[places[i], residue],
                                               query[i] == residue, gap_open, gap_extend, path)
    state[ROW], state[COLUMN], state[GAP], state[SCORE], state[USED], state[SIMILAR] = (
        i, first_column + j, gap, score, used, similar)


@kernel
def _follow_back(work, targets, pairing, columns, tile, kept_h, kept_e, bits, states, rooms, runs):
    """Follow all alignments from their ends to their beginnings; ``runs`` of each from its room on, the last first.

    states: i8[targets, 6], at the ends, as they stand at the beginnings when it is done.
    """
    residues, begins, _, lane_of, firsts, block = targets
    places, h_row, e_row = work.places, work.h_row, work.e_row
    begin_of, stop_of, taken = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64), np.empty(LANES, np.int64)
    order, starts = np.arange(LANES), np.zeros(2, np.int64)
    # Of those that stand in a row the last to come, and of each the one that came before.
    standing, earlier = np.full(len(places), -1), np.empty(len(states), np.int64)
    for target in range(len(states)):
        row = states[target, ROW]
        earlier[target], standing[row] = standing[row], target
    row = len(places) - 1
    while True:
        count = 0
        while row >= 0 and count < LANES:
            target = standing[row]
            if target >= 0:
                standing[row], taken[count] = earlier[target], target
                count += 1
            else:
                row -= 1
        if not count:
            return
        longest = 0
        for lane in range(count):
            target = taken[lane]
            number = states[target, COLUMN] // block
            begin_of[lane] = begins[target] + number * block
            stop_of[lane] = begins[target] + states[target, COLUMN] + 1
            longest = max(longest, stop_of[lane] - begin_of[lane])
            before_h, before_e = kept_h[firsts[target] + number], kept_e[firsts[target] + number]
            apart = lane_of[target] - lane
            for place in range(lane, (states[target, ROW] + 1) * LANES, LANES):
                h_row[place], e_row[place] = before_h[place + apart], before_e[place + apart]
        begin_of[count:] = stop_of[count:] = 0
        starts[1] = -(-longest // COLUMNS) * COLUMNS * LANES
        interleave(residues, begin_of, stop_of, order, starts, LANES, PAD, tile, columns)
        last_row = states[taken[0], ROW]
        _mark_block(work, last_row, columns, longest * LANES, bits)
        for lane in range(count):
            target = taken[lane]
            state = states[target]
            _follow(state, lane, bits, begin_of[lane] - begins[target], last_row, columns, places, pairing,
                    runs[rooms[target] : rooms[target + 1]])
            if state[SCORE] > 0:
                earlier[target], standing[state[ROW]] = standing[state[ROW]], target
                row = max(row, state[ROW])


@kernel
def _forward(rooms, runs, offsets, values):
    """Paths with their first runs first, one right behind the other."""
    for n in range(len(offsets) - 1):
        for k in range(offsets[n + 1] - offsets[n]):
            values[offsets[n + 1] - 1 - k] = runs[rooms[n] + k]


def trace_lanes(profile: Profile, arithmetic: Arithmetic, stretches: Stretches, numbers: np.ndarray, query: np.ndarray,
                wanted: np.ndarray, gap_open: int, gap_extend: int,
                check: Callable[[], None] = lambda: None) -> tuple[np.ndarray, Ragged] | None:
    """The alignments that the reference chooses for the query and stretches of targets.

    Args:
        numbers: i8[k], which of the stretches, the longest first.
        query: u8[m], the codes that the profile was made of.
        wanted: i8[k], best score of each; all in 1…``ceiling`` − 1.
        check: called before every round; may raise.

    Returns:
        i8[k, 6] with score, query start and end, target start and end (0-based half-open), similar unequal pairs; and
        k paths. None if one of the scores isn't the best.
    """
    work = Workspace.of(profile, arithmetic)
    found, paths = [np.empty((0, 6), np.int64)], [Ragged.of([])]
    first = 0
    while first < len(numbers):
        check()
        some = slice(first, first + ROUND_TARGETS)
        traced = _traced(profile, arithmetic, work, stretches, numbers[some], query, wanted[some], gap_open, gap_extend)
        if traced is None:
            return None
        found.append(traced[0])
        paths.append(traced[1])
        first += len(traced[1])
    return np.concatenate(found), Ragged.concat(paths)


def _traced(profile: Profile, arithmetic: Arithmetic, work: Workspace, stretches: Stretches, numbers: np.ndarray,
            query: np.ndarray, wanted: np.ndarray, gap_open: int, gap_extend: int) -> tuple[np.ndarray, Ragged] | None:
    """As ``trace_lanes``, of as many of the first stretches as are traced together."""
    lengths = stretches.lengths[numbers]
    block = int(block_columns(profile.length, lengths[0]))
    columns, tile = aligned(block * LANES, np.uint8), aligned(LANES * TILE, np.uint8)
    bits = np.empty(profile.length * block * _BITS, np.uint64)
    lane_of, firsts = np.empty((2, len(numbers)), np.int64)
    most = (ROUND_BYTES - bits.nbytes) // (2 * work.h_row.nbytes)
    count, blocks = _queue(lengths, block, most, lane_of, firsts)
    numbers, wanted = numbers[:count], wanted[:count]
    begins, stops = stretches.begins[numbers], stretches.ends[numbers]
    targets = _Targets(stretches.residues, begins, stops, lane_of[:count], firsts[:count], block)
    below = np.append(wanted - 1 + arithmetic.floor, np.iinfo(arithmetic.dtype).max).astype(arithmetic.dtype)
    kept_h, kept_e = np.empty((2, blocks, len(work.h_row)), arithmetic.dtype)
    ends, states = np.empty((count, 2), np.int64), np.zeros((count, 6), np.int64)
    if not _find_ends(work, targets, below, columns, tile, kept_h, kept_e, ends):
        return None
    states[:, ROW], states[:, COLUMN], states[:, SCORE] = *ends.T, wanted
    rooms = np.append(0, np.cumsum(2 * ends.min(axis=1) + 4))
    runs = np.empty(rooms[-1], np.uint32)
    pairing = _Pairing(profile.rows, query, gap_open, gap_extend)
    _follow_back(work, targets, pairing, columns, tile, kept_h, kept_e, bits, states, rooms, runs)
    offsets = np.append(0, np.cumsum(states[:, USED]))
    paths = Ragged(offsets, np.empty(offsets[-1], np.uint32))
    _forward(rooms, runs, paths.offsets, paths.values)
    starts = states[:, [ROW, COLUMN]] + 1
    ends += 1
    return np.column_stack([wanted, starts[:, 0], ends[:, 0], starts[:, 1], ends[:, 1], states[:, SIMILAR]]), paths
