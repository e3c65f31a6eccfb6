"""Alignments of one query with interleaved targets: where the best ones end, and the way back from there.

A first pass over a group of targets notes for each lane the first place that has its best score, and keeps h and e
before every block of columns. From the last block on, blocks are then computed again with four bits a cell that say
how the cell came about (one machine word holds one bit of all lanes), and every lane follows its alignment through
them. Blocks that no lane comes to, and rows below all ends, are left out.
"""

import math

import numpy as np
from seqloom.core.index import Index
from seqloom.core.jit import inline, kernel
from seqloom.core.simd import (
    ALL_LANES,
    greater_lanes,
    load,
    lowered,
    lowered_to,
    lowest_bit,
    maximum,
    not_greater_lanes,
    splat,
    spread,
    store,
    wrapped_difference,
    wrapped_sum,
)
from seqloom.plugins.common.lanes import COLUMNS
from seqloom.plugins.smith_waterman import recurrence_cpu, scalar_cpu
from seqloom.plugins.smith_waterman.recurrence_cpu import (
    LANES,
    RAISED,
    SPAN,
    Arithmetic,
    Profile,
    Workspace,
    bound_of,
    cells,
    fill_columns,
    rise_of,
)
from seqloom.plugins.smith_waterman.scalar_cpu import (
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
MOST_BYTES = 192 << 20
"""Working space of a group beyond which its longest targets are traced one by one instead."""


def block_columns(longest: int) -> int:
    """Columns of a block, so that blocks and what is kept before each of them take about equal memory."""
    return max(64, math.isqrt(8 * longest) // COLUMNS * COLUMNS)


def trace_bytes(query_length: int, longest: int) -> int:
    """Working space for a group, in bytes, with sixteen-bit lanes."""
    block = block_columns(longest)
    return query_length * (block * _BITS * 8 + (longest // block + 3) * 4 * LANES)


@kernel
def _note(h, above, best, i, j, ends):
    """Note (i, j) as the end of the alignments of those lanes whose best score stands there; lanes that score more."""
    there = greater_lanes(h, above)
    while there != 0:
        lane = np.int64(lowest_bit(there))
        there &= there - np.uint64(1)
        if ends[lane, 0] < 0 or i < ends[lane, 0]:
            ends[lane, 0] = i
            ends[lane, 1] = j
    return greater_lanes(h, best)


@inline
def _note_span(h0, h1, h2, h3, rise, above, best, i, j, ends):
    """Note the ends in a row of a span that begins with column j; lanes that score more."""
    h1 = wrapped_difference(h1, rise)
    h2 = wrapped_difference(wrapped_difference(h2, rise), rise)
    h3 = wrapped_difference(wrapped_difference(wrapped_difference(h3, rise), rise), rise)
    return (_note(h0, above, best, i, j, ends) | _note(h1, above, best, i, j + 1, ends)
            | _note(h2, above, best, i, j + 2, ends) | _note(h3, above, best, i, j + 3, ends))


@kernel
def _copy(values, copies):
    """By vectors; numba's own assignment takes several times as long."""
    for place in range(0, len(values), LANES):
        store(copies, place, load(values, place, LANES))


@kernel(helpers=(recurrence_cpu,))
def _find_ends(rows, places, tables, columns, begin, end, block, zero, gap_first, gap_further, source, spans, narrow,
               scores, h_row, e_row, below, kept_h, kept_e, ends):
    """First place of each lane's best score, one more than ``below``; h and e before every block of columns.

    Returns:
        u64, the lanes that score more.
    """
    width = SPAN * len(spans)
    z0, further = splat(zero, LANES), splat(gap_further, LANES)
    opening = wrapped_difference(splat(gap_first, LANES), further)
    rise = rise_of(further)
    z1 = wrapped_sum(z0, rise)
    z2 = wrapped_sum(z1, rise)
    z3 = wrapped_sum(z2, rise)
    span = wrapped_difference(wrapped_sum(z3, rise), z0)
    above = load(below, 0, LANES)
    best = above + spread(1, above)
    bound = bound_of(above, opening, further)
    more = np.uint64(0)
    ends[:] = -1
    for i in range(len(places)):
        store(h_row, i * LANES, z3)
        store(e_row, i * LANES, z0)
    number = 0
    column = 0
    for position in range(begin, end, width * LANES):
        if column == number * block:
            _copy(h_row, kept_h[number])
            _copy(e_row, kept_e[number])
            number += 1
        fill_columns(rows, tables, columns, position, width, source, narrow, scores)
        d0, d1, d2, d3, f0, f1, f2, f3 = z3, z0, z1, z2, z0, z1, z2, z3
        d4, d5, d6, d7, f4, f5, f6, f7 = z3, z0, z1, z2, z0, z1, z2, z3
        for i in range(len(places)):
            place = places[i] * (width * LANES)
            left = load(h_row, i * LANES, LANES)
            e = load(e_row, i * LANES, LANES)
            h0, h1, h2, h3, e, f0, f1, f2, f3 = cells(d0, d1, d2, d3, scores, place, e, f0, f1, f2, f3, z0, z1, z2,
                                                      z3, opening, further)
            d0, d1, d2, d3, last = left, h0, h1, h2, h3
            within = not_greater_lanes(e, bound, ALL_LANES)
            e = wrapped_difference(e, span)
            if len(spans) == 2:
                h4, h5, h6, h7, e, f4, f5, f6, f7 = cells(d4, d5, d6, d7, scores, place + SPAN * LANES, e, f4, f5, f6,
                                                          f7, z0, z1, z2, z3, opening, further)
                d4, d5, d6, d7, last = h3, h4, h5, h6, h7
                within = not_greater_lanes(e, bound, within)
                e = wrapped_difference(e, span)
            store(h_row, i * LANES, last)
            store(e_row, i * LANES, e)
            if within != ALL_LANES:
                more |= _note_span(d1, d2, d3, h3, rise, above, best, i, column, ends)
                if len(spans) == 2:
                    more |= _note_span(d5, d6, d7, last, rise, above, best, i, column + SPAN, ends)
        column += width
    return more


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


@kernel(helpers=(recurrence_cpu,))
def _mark_block(rows, places, last_row, tables, columns, begin, end, zero, gap_first, gap_further, source, narrow,
                scores, h_row, e_row, bits):
    """Cells of a block of columns, rows 0…last_row: how each came about."""
    z0, further = splat(zero, LANES), splat(gap_further, LANES)
    opening = wrapped_difference(splat(gap_first, LANES), further)
    rise = rise_of(further)
    z1 = wrapped_sum(z0, rise)
    z2 = wrapped_sum(z1, rise)
    z3 = wrapped_sum(z2, rise)
    span = wrapped_difference(wrapped_sum(z3, rise), z0)
    place_of_bits = 0
    for position in range(begin, end, SPAN * LANES):
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


@kernel(helpers=(recurrence_cpu, scalar_cpu))
def _follow_lanes(bits, first_column, last_row, columns, begin, letter_scores, places, query, gap_open, gap_extend,
                  states, paths):
    """Follow every lane's alignment back through a block that begins with ``first_column``."""
    for lane in range(LANES):
        state = states[lane]
        while state[SCORE] > 0 and state[COLUMN] >= first_column:
            i, j = state[ROW], state[COLUMN]
            inside = j - first_column
            place = ((inside // SPAN) * (last_row + 1) + i) * (SPAN * _BITS) + (inside % SPAN) * _BITS
            mine = np.uint64(lane)
            one = np.uint64(1)
            how = (np.int64((bits[place] >> mine) & one) * NOT_PAIR
                   + np.int64((bits[place + 1] >> mine) & one) * NOT_INSERT
                   + np.int64((bits[place + 2] >> mine) & one) * INSERT_GOES_ON
                   + np.int64((bits[place + 3] >> mine) & one) * DELETE_GOES_ON)
            step(state, how, letter_scores, places[i], query[i], columns[begin + j * LANES + lane], gap_open,
                 gap_extend, paths[lane])


@kernel(helpers=(recurrence_cpu, scalar_cpu))
def _trace_group(rows, places, tables, columns, begin, end, block, zero, gap_first, gap_further, source, spans,
                 narrow, scores, h_row, e_row, below, kept_h, kept_e, ends, bits, letter_scores, query, gap_open,
                 gap_extend, wanted, states, paths):
    """Alignments of one group: ``ends`` i8[lanes, 2], ``states`` i8[lanes, 6] as they stand at the beginnings.

    Returns:
        Whether the ``wanted`` scores are the best ones; nothing is traced otherwise.
    """
    more = _find_ends(rows, places, tables, columns, begin, end, block, zero, gap_first, gap_further, source, spans,
                      narrow, scores, h_row, e_row, below, kept_h, kept_e, ends)
    right = not more
    for lane in range(LANES):
        right = right and (wanted[lane] == 0 or ends[lane, 0] >= 0)
        states[lane, ROW] = ends[lane, 0]
        states[lane, COLUMN] = ends[lane, 1]
        states[lane, GAP] = states[lane, USED] = states[lane, SIMILAR] = 0
        states[lane, SCORE] = wanted[lane] if ends[lane, 0] >= 0 else 0
    while right:
        last_row = last_column = -1
        for lane in range(LANES):
            if states[lane, SCORE] > 0:
                last_row = max(last_row, states[lane, ROW])
                last_column = max(last_column, states[lane, COLUMN])
        if last_column < 0:
            break
        number = last_column // block
        first_column = number * block
        _copy(kept_h[number], h_row)
        _copy(kept_e[number], e_row)
        stop = begin + (last_column // SPAN + 1) * SPAN * LANES
        _mark_block(rows, places, last_row, tables, columns, begin + first_column * LANES, stop, zero, gap_first,
                    gap_further, source, narrow, scores, h_row, e_row, bits)
        _follow_lanes(bits, first_column, last_row, columns, begin, letter_scores, places, query, gap_open,
                      gap_extend, states, paths)
    return right


def trace_lanes(profile: Profile, arithmetic: Arithmetic, lanes: Index, query: np.ndarray, wanted: np.ndarray,
                gap_open: int, gap_extend: int, check=lambda: None) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """The alignment that the reference chooses for the query and each interleaved target.

    Args:
        query: u8[m], the codes that the profile was made of.
        wanted: i4[k], best score of each target in the order of ``lanes["order"]``; all in 1…``ceiling`` − 1.
        check: called before every group; may raise.

    Returns:
        i8[k, 6] with score, query start and end, target start and end (0-based half-open), similar unequal pairs; and
        k u4 paths; in the order of ``lanes["order"]``. None if one of the scores isn't the best.
    """
    starts, order = lanes["starts"], lanes["order"]
    lengths = (np.diff(starts) // LANES).tolist()
    longest = max(lengths, default=0)
    blocks = [block_columns(length) for length in lengths]
    work = Workspace(profile, arithmetic)
    most_kept = max((length // block + 1 for length, block in zip(lengths, blocks, strict=True)), default=0)
    kept = np.empty((2, most_kept, profile.length * LANES), arithmetic.dtype)
    bits = np.empty(profile.length * min(block_columns(longest), longest) * _BITS, np.uint64)
    ends, states = np.empty((LANES, 2), np.int64), np.empty((LANES, 6), np.int64)
    paths = np.empty((LANES, 2 * min(profile.length, longest) + 4), np.uint32)
    found, traced = np.empty((len(order), 6), np.int64), []
    for group in range(len(starts) - 1):
        check()
        mine = np.zeros(LANES, np.int64)
        there = wanted[group * LANES : (group + 1) * LANES]
        mine[: len(there)] = there
        below = np.where(mine > 0, mine - 1 + arithmetic.floor, np.iinfo(arithmetic.dtype).max).astype(arithmetic.dtype)
        right = _trace_group(
            work.rows, profile.places, work.tables, lanes["columns"], starts[group], starts[group + 1],
            blocks[group], *work.arguments, below, kept[0], kept[1], ends, bits, profile.rows, query, gap_open,
            gap_extend, mine, states, paths)
        if not right:
            return None
        for lane in range(len(there)):
            found[group * LANES + lane] = (
                there[lane], states[lane, ROW] + 1, ends[lane, 0] + 1, states[lane, COLUMN] + 1, ends[lane, 1] + 1,
                states[lane, SIMILAR])
            traced.append(paths[lane, : states[lane, USED]][::-1].copy())
    return found, traced
