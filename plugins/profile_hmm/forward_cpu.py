"""Forward and Backward in f32 lanes, every sum in the order of ``forward_reference.py``.

A model fills four lanes, no more, as the order of its sums asks for; wider vectors hold several targets, each in four
lanes of its own. What a row's delete states wait for is mostly the carry from slot to slot, so that vectors of several
registers, and with them more targets, cost little. Four lanes take a stream of targets, one after the other, so that
lanes aren't idle where targets differ in length: a target of L residues takes L + 1 rows, the first of which has
nothing in its cells.

Deletions are extended three times more, from lane to lane. A carry that is less than 2⁻²⁷ of its delete state in all
lanes changes no sum any more, neither in this pass nor in a later one: a delete state is at least the one before it
times the same transition. The factor leaves room for rounding, as long as no number is so small that it has fewer
digits; so it is where enough comes to every delete state from its match state. Then the passes end.

A row of cells is M, D and I, each f4[Q · lanes]; the states around the model are kept for all rows, N, B, E, J, C and
the row's scale side by side, each in all lanes of its target.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING, Any

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import (
    BYTE_LANES,
    aligned,
    choose_greater,
    greater_lanes,
    load,
    maximum,
    quads,
    quads_down,
    quads_halves,
    quads_pairs,
    quads_up,
    same_quads,
    splat,
    store,
)
from seqloom.core.subnormals import flushed

from .exact_math import F32, Array32
from .kept_states_cpu import SPECIALS, spread_states
from .profile import LANES, FloatProfile, LengthModel
from .residues import residues_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDE = BYTE_LANES // 2
"""Lanes of vectors of several stretches: two registers."""
WIDTHS = tuple(sorted({LANES, max(LANES, WIDE // 4), max(LANES, WIDE // 2), WIDE}))
"""Lanes of all vectors: those of one stretch, of as many as fill half a register, a whole one, or two."""
N, B, E, J, C, SCALE = range(SPECIALS)
_ENTRY, _INTO_MM, _INTO_IM, _INTO_DM, _MI, _II, _MD, _DD, _OUT_MM, _OUT_IM, _OUT_DM = (4 * n for n in range(11))
STEP = 48
"""Numbers from one slot's transitions to the next one's: whole cache lines, of which Forward needs the first two."""
BY_SLOT = 20
"""Letters of a slot in ``StripedOdds.by_slot``: as many as any model emits."""
WAYS = 32
"""Numbers of a slot in ``StripedOdds.ways``."""
_ZERO, _ONE = F32(0.0), F32(1.0)
RESCALE_ABOVE, _OWN_SCALES_ABOVE = F32(1.0e4), F32(1.0e16)
_NOTHING, _NORMAL = F32(2.0**-27), F32(2.0**-90)
_CHECKED = 4
"""Slots after which it is checked whether a pass still matters."""
NO_CHANGES_FROM = 100
"""Models from this length on stop extending deletions when a pass changes nothing."""


class StripedOdds:
    """Odds of a model laid out for the kernels.

    Attributes:
        length, slots: M and Q.
        codes: how many residue codes there are. match: f4[codes · Q · 4].
        transitions: f4[Q · 48]; of each slot four lanes of entry, into M from M, I, D; mi, ii, md, dd;
            into the M of the next node from M, I, D; then nothing.
    """

    def __init__(self, profile: FloatProfile) -> None:
        self.length, self.slots, self.codes = profile.length, profile.slots, len(profile.match)
        self.match = np.ascontiguousarray(profile.match).reshape(-1)
        self.transitions = aligned(self.slots * STEP, F32)
        _lay_out(profile.entry, profile.into_mm, profile.into_im, profile.into_dm, profile.mi, profile.ii, profile.md,
                 profile.dd, self.transitions.reshape(self.slots, STEP // LANES, LANES))

    @cached_property
    def least(self) -> Array32:
        """f4[codes · 4]: what comes to every delete state from its match state in a row of this residue, at least, for
        each unit of B in the row before; each four times."""
        least = np.empty(self.codes, F32)
        _least_opened(self.match, self.transitions, self.length, self.slots, np.empty(LANES * self.slots, F32), least)
        return np.repeat(least, LANES)

    @cached_property
    def by_slot(self) -> Array32:
        """f4[Q · BY_SLOT · 4]: ``match`` of the letters that models emit, those of a slot together; 0 behind them."""
        letters = self.match.reshape(-1, self.slots, LANES)[residues_of(self.codes).code_of_residue]
        by_slot = aligned(self.slots * BY_SLOT * LANES, F32)
        rows = by_slot.reshape(self.slots, BY_SLOT, LANES)
        rows[:, : len(letters)], rows[:, len(letters) :] = letters.transpose(1, 0, 2), 0.0
        return by_slot

    @cached_property
    def ways(self) -> Array32:
        """f4[Q · 32]: ∞ where a transition exists and 0 where it doesn't, in the order of ``transitions``."""
        first = self.transitions.reshape(self.slots, -1)[:, :WAYS]
        ways = aligned(self.slots * WAYS, F32)
        ways[:] = np.where(first > 0.0, F32(np.inf), F32(0.0)).reshape(-1)
        return ways


@kernel
def _lay_out(entry, into_mm, into_im, into_dm, mi, ii, md, dd, rows):
    """Fill f4[Q, 12, 4], the transitions of ``StripedOdds``, from f4[Q, 4] each."""
    slots = len(rows)
    for q in range(slots):
        for lane in range(LANES):
            # The next node is in the next slot, or behind the last one in the first slot a lane further on.
            behind, across = (q + 1, lane) if q + 1 < slots else (0, lane + 1)
            there = across < LANES
            row = rows[q]
            row[0, lane], row[1, lane], row[2, lane] = entry[q, lane], into_mm[q, lane], into_im[q, lane]
            row[3, lane], row[4, lane], row[5, lane] = into_dm[q, lane], mi[q, lane], ii[q, lane]
            row[6, lane], row[7, lane] = md[q, lane], dd[q, lane]
            row[8, lane] = into_mm[behind, across] if there else _ZERO
            row[9, lane] = into_im[behind, across] if there else _ZERO
            row[10, lane] = into_dm[behind, across] if there else _ZERO
            row[11, lane] = _ZERO


@kernel
def _least_opened(match, transitions, length, slots, room, least):
    """Fill f4[codes] ``least``; see ``StripedOdds.least``. room: f4[4 · Q], working space."""
    for q in range(slots):
        for lane in range(4):
            at = q * STEP + lane
            opens = lane * slots + q < length - 1
            room[q * 4 + lane] = transitions[at + _ENTRY] * transitions[at + _MD] if opens else np.float32(np.inf)
    for code in range(len(least)):
        lowest, row = _ONE, match[code * slots * 4 : (code + 1) * slots * 4]
        for place in range(len(room)):
            if room[place] < np.float32(np.inf):
                lowest = min(lowest, row[place] * room[place])
        least[code] = lowest


@kernel
def spread_ways(moves, loops, current, room):
    """Put those of the targets that the streams are at into the first and second numbers of ``room`` for all lanes."""
    lanes = 4 * len(current)
    for lane in range(lanes):
        target = current[lane // 4]
        room[lane], room[lanes + lane] = moves[target], loops[target]


def _lanes_at(lanes: int) -> Any:
    """Function for vectors of ``lanes`` lanes."""

    @inline
    def lanes_at(rows, i, room):
        """1 in the lanes of streams whose target begins in row i, else 0; by the third numbers of ``room``."""
        for lane in range(lanes):
            room[2 * lanes + lane] = _ONE if rows[lane // 4] == i else _ZERO
        return load(room, 2 * lanes, lanes)

    return lanes_at


def _forward_kernel(lanes: int) -> Any:
    """Kernel for vectors of ``lanes`` lanes."""
    lanes_at = _lanes_at(lanes)

    @inline
    def entered(match, transitions, q, places, b, m, s, d):
        """Match states of slot q from B, M, I and D of the nodes and row before."""
        t = q * STEP
        cell = b * same_quads(transitions, t + _ENTRY, lanes)
        cell = cell + m * same_quads(transitions, t + _INTO_MM, lanes)
        cell = cell + s * same_quads(transitions, t + _INTO_IM, lanes)
        cell = cell + d * same_quads(transitions, t + _INTO_DM, lanes)
        return cell * quads(match, places, q * 4, lanes)

    @kernel
    def fill_forward(match, transitions, least, slots, stops, residues, begins, lengths, moves, loops, heads, following,
                     end_move, end_loop, first, last, kept, cells, specials, places, current, rows, fours, room):
        """Fill rows ``first`` + 1 to ``last`` of ``specials`` f4[rows · 6 · lanes] and ``cells`` f4[kept · 3 · Q ·
        lanes], of which row i stands at i − ``first`` modulo ``kept``, for lanes / 4 streams of targets. Row ``first``
        is there already, unless it is 0; if it isn't 0, a stream is one target.

        stops: whether deletions stop being extended when nothing changes. begins, lengths, moves, loops: of each
        target. heads: the first target of each stream; following: the one behind each target, or −1. places, current,
        rows, fours: i8[lanes / 4], room: f4[3 · lanes], working space.
        """
        zero, one, limit = splat(_ZERO, lanes), splat(_ONE, lanes), splat(RESCALE_ABOVE, lanes)
        share, normal_from = splat(_NOTHING, lanes), splat(_NORMAL, lanes)
        to_c, to_j = splat(end_move, lanes), splat(end_loop, lanes)
        targets, row = lanes // 4, 3 * slots * lanes
        for t in range(targets):
            current[t], rows[t] = heads[t], 0
        spread_ways(moves, loops, current, room)
        move, loop = load(room, 0, lanes), load(room, lanes, lanes)
        deletes, inserts, end = slots * lanes, 2 * slots * lanes, (slots - 1) * lanes
        if first == 0:
            for place in range(0, row, lanes):
                store(cells, place, zero)
            store(specials, N * lanes, one)
            store(specials, B * lanes, move)
            store(specials, E * lanes, zero)
            store(specials, J * lanes, zero)
            store(specials, C * lanes, zero)
            store(specials, SCALE * lanes, one)
        at = first * SPECIALS * lanes
        n, b = load(specials, at + N * lanes, lanes), load(specials, at + B * lanes, lanes)
        j, c = load(specials, at + J * lanes, lanes), load(specials, at + C * lanes, lanes)
        for i in range(first + 1, last + 1):
            beginning = False
            for t in range(targets):
                target = current[t]
                if i - rows[t] > lengths[target] and following[target] >= 0:
                    target = following[target]
                    current[t], rows[t], beginning = target, i, True
                # A stream that has ended goes on with its last residue, which nobody looks at.
                place = min(max(i - rows[t], 1), lengths[target])
                code = np.int64(residues[begins[target] + place - 1])
                places[t], fours[t] = code * slots * 4, code * 4
            normal = not greater_lanes(normal_from, b * quads(least, fours, 0, lanes))
            above, here = (i - 1 - first) % kept * row, (i - first) % kept * row
            m = quads_up(load(cells, above + end, lanes))
            d = quads_up(load(cells, above + deletes + end, lanes))
            s = quads_up(load(cells, above + inserts + end, lanes))
            # What opens in the last slot comes to the first one a lane on, and with it the delete states begin.
            before = end - lanes
            cell = entered(match, transitions, slots - 1, places, b, load(cells, above + before, lanes),
                            load(cells, above + inserts + before, lanes), load(cells, above + deletes + before, lanes))
            carry = quads_up(cell * same_quads(transitions, (slots - 1) * STEP + _MD, lanes))
            ends, opened = zero, zero
            for q in range(slots):
                t, place = q * STEP, q * lanes
                cell = entered(match, transitions, q, places, b, m, s, d)
                m, s = load(cells, above + place, lanes), load(cells, above + inserts + place, lanes)
                d = load(cells, above + deletes + place, lanes)
                store(cells, here + place, cell)
                store(cells, here + inserts + place, m * same_quads(transitions, t + _MI, lanes)
                      + s * same_quads(transitions, t + _II, lanes))
                ends = ends + cell
                deleted = carry + opened
                store(cells, here + deletes + place, deleted)
                carry = deleted * same_quads(transitions, t + _DD, lanes)
                opened = cell * same_quads(transitions, t + _MD, lanes)
            of_matches, running = ends, targets
            for _ in range(3):
                carry = quads_up(carry)
                if running < targets:
                    carry = carry * load(room, 2 * lanes, lanes)
                grown, ends, done, matters = zero, of_matches, 0, True
                while done < slots and matters:
                    begin, done = done, min(done + _CHECKED, slots)
                    added = extended = zero
                    for q in range(begin, done):
                        place = here + deletes + q * lanes
                        deleted, added = load(cells, place, lanes), carry
                        extended = deleted + added
                        store(cells, place, extended)
                        ends = ends + extended
                        grown = maximum(grown, extended - deleted)
                        carry = carry * same_quads(transitions, q * STEP + _DD, lanes)
                    if normal:
                        matters = greater_lanes(added, extended * share) != np.uint64(0)
                if not matters:
                    for q in range(done, slots):
                        ends = ends + load(cells, here + deletes + q * lanes, lanes)
                    break
                if stops:
                    changed = greater_lanes(grown, zero)
                    if not changed:
                        break
                    running = 0
                    for t in range(targets):
                        on = (changed >> np.uint64(4 * t)) & np.uint64(15) != 0
                        running += on
                        for lane in range(4 * t, 4 * t + 4):
                            room[2 * lanes + lane] = _ONE if on else _ZERO
            ends = ends + quads_pairs(ends)
            ends = ends + quads_halves(ends)
            n = n * loop
            c = c * loop + ends * to_c
            j = j * loop + ends * to_j
            b = j * move + n * move
            scale = one
            if greater_lanes(ends, limit):
                scale = choose_greater(ends, limit, ends, one)
                n, b, ends, j, c = n / scale, b / scale, ends / scale, j / scale, c / scale
                inverse = one / scale
                for place in range(here, here + row, lanes):
                    store(cells, place, load(cells, place, lanes) * inverse)
            if beginning:
                spread_ways(moves, loops, current, room)
                move, loop = load(room, 0, lanes), load(room, lanes, lanes)
                new = lanes_at(rows, i, room)
                n, b = choose_greater(new, zero, one, n), choose_greater(new, zero, move, b)
                ends, j = choose_greater(new, zero, zero, ends), choose_greater(new, zero, zero, j)
                c, scale = choose_greater(new, zero, zero, c), choose_greater(new, zero, one, scale)
                for place in range(here, here + row, lanes):
                    store(cells, place, choose_greater(new, zero, zero, load(cells, place, lanes)))
            at = i * SPECIALS * lanes
            store(specials, at + N * lanes, n)
            store(specials, at + B * lanes, b)
            store(specials, at + E * lanes, ends)
            store(specials, at + J * lanes, j)
            store(specials, at + C * lanes, c)
            store(specials, at + SCALE * lanes, scale)

    return fill_forward


@kernel
def _completed(total, last, move):
    """Forward score from the logs of all scales and C behind the last residue; NaN where it leaves the range of f32."""
    final = last * move
    if final > _ZERO and final < np.float32(np.inf):
        return np.float32(np.float64(total) + math.log(np.float64(final)))
    return np.float32(np.nan)


@kernel
def _complete(totals, lasts, moves, scores):
    """``_completed`` of every target: f4[n] each."""
    for n in range(len(totals)):
        scores[n] = _completed(totals[n], lasts[n], moves[n])


@flushed()
def completed(totals: Array32, lasts: Array32, lengths: NDArray[np.int64]) -> Array32:
    """Multihit Forward scores f4[n] of targets from the sums of the logs of their scales and C behind their last
    residues; NaN where one leaves the range of f32."""
    scores = np.empty(len(totals), F32)
    _complete(totals, lasts, F32(3.0) / (lengths.astype(F32) + F32(3.0)), scores)
    return scores


@kernel
def _scores(specials, lanes, firsts, lengths, moves, scores):
    """Forward scores f4[targets] from the states around the model, which begin at ``firsts`` of each target; NaN where
    they leave the range of f32."""
    for t in range(len(lengths)):
        at, total = firsts[t], np.float32(0.0)
        for i in range(1, lengths[t] + 1):
            scale = specials[at + (i * SPECIALS + SCALE) * lanes]
            if scale > _ONE:
                total = np.float32(np.float64(total) + math.log(np.float64(scale)))
        scores[t] = _completed(total, specials[at + (lengths[t] * SPECIALS + C) * lanes], moves[t])


def _backward_kernel(lanes: int) -> Any:
    """Kernel for vectors of ``lanes`` lanes."""
    lanes_at = _lanes_at(lanes)

    @inline
    def entered_at_first(match, transitions, slots, places, cells):
        """B before the first residue: other than behind it, match states are summed from the first slot on."""
        total = splat(_ZERO, lanes)
        for q in range(slots):
            emitted = load(cells, q * lanes, lanes) * quads(match, places, q * 4, lanes)
            total = total + emitted * same_quads(transitions, q * STEP + _ENTRY, lanes)
        total = total + quads_pairs(total)
        return total + quads_halves(total)

    @inline
    def multiply(products, place, cell):
        """Multiply Forward's cell by Backward's."""
        store(products, place, load(products, place, lanes) * cell)

    @inline
    def complete(transitions, cells, q, partial, to_end, d):
        """Match states of slot q, with their ways to E and to the delete states ``d`` of the nodes behind them."""
        cell = load(cells, partial + q * lanes, lanes) + to_end
        store(cells, q * lanes, cell + d * same_quads(transitions, q * STEP + _MD, lanes))

    @kernel
    def fill_backward(match, transitions, slots, residues, begins, lengths, moves, loops, tails, preceding, firsts,
                      end_move, end_loop, forward, first, last, products, cells, specials, own_scales, places, current,
                      rows, _, room):
        """Fill rows ``last`` to ``first`` + 1, and then 0, of ``specials`` as for Forward, whose states are
        ``forward``; u1[targets] ``own_scales`` says which targets left Forward's scales. M and I are multiplied into
        ``products``, Forward's cells of rows from ``first`` on, unless it is empty.

        A stream that is shorter than another one has nothing in its lanes until its last residue comes.

        Each delete state waits for the one behind it. Meanwhile match states are completed with the delete state
        behind them, from the slot on where extending deletions from lane to lane ended in the row before; those of
        slots where it goes on are completed once more, from what they were, which a fourth row holds.

        tails: the last target of each stream; preceding: the one before each target; firsts: the row of each in which
        it begins. cells: f4[4 · Q · lanes], first the row below ``last`` and in the end row ``first`` + 1, then working
        space. places, current, rows: i8[lanes / 4], room: f4[3 · lanes], working space.
        """
        zero, one, limit = splat(_ZERO, lanes), splat(_ONE, lanes), splat(RESCALE_ABOVE, lanes)
        share, least, own_limit = splat(_NOTHING, lanes), splat(_NORMAL, lanes), splat(_OWN_SCALES_ABOVE, lanes)
        from_c, from_j = splat(end_move, lanes), splat(end_loop, lanes)
        targets, row = lanes // 4, 3 * slots * lanes
        deletes, inserts, partial = slots * lanes, 2 * slots * lanes, row
        n = j = c = zero
        begun, multiplied, reach = False, len(products) > 0, slots
        for t in range(targets):
            current[t], rows[t] = tails[t], firsts[tails[t]]
            inside = rows[t] + lengths[tails[t]] > last
            begun |= inside
            for lane in range(4 * t, 4 * t + 4):
                room[lane] = _ZERO if inside else _ONE
        outside = load(room, 0, lanes)
        if begun:
            at = (last + 1) * SPECIALS * lanes
            n, j = load(specials, at + N * lanes, lanes), load(specials, at + J * lanes, lanes)
            c = load(specials, at + C * lanes, lanes)
        else:
            for place in range(0, row, lanes):
                store(cells, place, zero)
        for t in range(targets):
            for lane in range(4 * t, 4 * t + 4):
                room[lane] = _ONE if begun and own_scales[current[t]] else _ZERO
        own = load(room, 0, lanes)
        spread_ways(moves, loops, current, room)
        move, loop = load(room, 0, lanes), load(room, lanes, lanes)
        for back_row in range(last - first):
            i = last - back_row
            starting = beginning = moved = False
            for t in range(targets):
                target = current[t]
                if i < rows[t]:
                    target = preceding[target]
                    current[t], rows[t], moved = target, firsts[target], True
                place = i - rows[t]
                places[t] = np.int64(residues[begins[target] + min(place, lengths[target] - 1)]) * slots * 4
                starting |= lengths[target] == place
                beginning |= place == 0
            if moved:
                spread_ways(moves, loops, current, room)
                move, loop = load(room, 0, lanes), load(room, lanes, lanes)
            new = at_first = zero
            if beginning:
                store(room, 2 * lanes, own)
                for t in range(targets):
                    if rows[t] == i:
                        own_scales[current[t]] = room[2 * lanes + 4 * t] > _ZERO
                new = lanes_at(rows, i, room)
                at_first = entered_at_first(match, transitions, slots, places, cells)
            next_match = quads_down(load(cells, 0, lanes) * quads(match, places, 0, lanes))
            total, below = zero, (i + 1 - first) * row
            for back in range(slots):
                q = slots - 1 - back
                t, place = q * STEP, q * lanes
                m, s = load(cells, place, lanes), load(cells, inserts + place, lanes)
                if multiplied and i < last:
                    multiply(products, below + place, m)
                    multiply(products, below + inserts + place, s)
                emitted = m * quads(match, places, q * 4, lanes)
                total = total + emitted * same_quads(transitions, t + _ENTRY, lanes)
                store(cells, deletes + place, next_match * same_quads(transitions, t + _OUT_DM, lanes))
                store(cells, partial + place, s * same_quads(transitions, t + _MI, lanes)
                      + next_match * same_quads(transitions, t + _OUT_MM, lanes))
                store(cells, inserts + place, s * same_quads(transitions, t + _II, lanes)
                      + next_match * same_quads(transitions, t + _OUT_IM, lanes))
                next_match = emitted
            total = total + quads_pairs(total)
            b = choose_greater(new, zero, at_first, total + quads_halves(total))
            c = c * loop
            started = zero
            if starting:
                for t in range(targets):
                    for lane in range(4 * t, 4 * t + 4):
                        room[2 * lanes + lane] = room[lane] if lengths[current[t]] == i - rows[t] else _ZERO
                started = load(room, 2 * lanes, lanes)
                c = c + started
                outside = choose_greater(started, zero, zero, outside)
            j = b * move + j * loop
            n = b * move + n * loop
            e = c * from_c + j * from_j
            own = choose_greater(new, zero, zero, choose_greater(b, own_limit, one, own))
            # From delete state to delete state and to E; behind the last residue D is its way to E.
            to_end = e
            if starting:
                to_end, ending = choose_greater(started, zero, zero, e), choose_greater(started, zero, e, zero)
                for place in range(0, deletes, lanes):
                    store(cells, deletes + place, load(cells, deletes + place, lanes) + ending)
                    store(cells, partial + place, load(cells, partial + place, lanes) + ending)
            following = quads_down(load(cells, deletes, lanes) + to_end)
            step = zero
            for back in range(reach):
                q = slots - 1 - back
                step = following * same_quads(transitions, q * STEP + _DD, lanes)
                following = load(cells, deletes + q * lanes, lanes) + (step + to_end)
                store(cells, deletes + q * lanes, following)
            for back in range(reach, slots):
                q = slots - 1 - back
                complete(transitions, cells, q, partial, to_end, following)
                step = following * same_quads(transitions, q * STEP + _DD, lanes)
                following = load(cells, deletes + q * lanes, lanes) + (step + to_end)
                store(cells, deletes + q * lanes, following)
            normal, matters, extended_slots = not greater_lanes(least, maximum(e, outside)), True, 0
            for _ in range(3):
                step = quads_down(step)
                passed = 0
                while passed < slots and matters:
                    begin, passed = passed, min(passed + _CHECKED, slots)
                    extended = zero
                    for back in range(begin, passed):
                        q = slots - 1 - back
                        step = step * same_quads(transitions, q * STEP + _DD, lanes)
                        extended = load(cells, deletes + q * lanes, lanes) + step
                        store(cells, deletes + q * lanes, extended)
                    if normal:
                        matters = greater_lanes(step, extended * share) != np.uint64(0)
                extended_slots = max(extended_slots, passed)
            d = quads_down(load(cells, deletes, lanes))
            extended_slots = min(extended_slots + 1, slots)
            for back in range(max(reach, extended_slots)):
                q = slots - 1 - back
                complete(transitions, cells, q, partial, to_end, d)
                d = load(cells, deletes + q * lanes, lanes)
            reach = extended_slots
            at = i * SPECIALS * lanes
            scale = choose_greater(outside, zero, one, load(forward, at + SCALE * lanes, lanes))
            scale = choose_greater(own, zero, choose_greater(b, limit, b, one), scale)
            if greater_lanes(scale, one):
                scale = maximum(scale, one)
                n, b, e, j, c = n / scale, b / scale, e / scale, j / scale, c / scale
                inverse = one / scale
                for place in range(0, row, lanes):
                    store(cells, place, load(cells, place, lanes) * inverse)
            if beginning:
                e, j = choose_greater(new, zero, zero, e), choose_greater(new, zero, zero, j)
                c = choose_greater(new, zero, zero, c)
                for place in range(0, row, lanes):
                    store(cells, place, choose_greater(new, zero, zero, load(cells, place, lanes)))
            store(specials, at + N * lanes, n)
            store(specials, at + B * lanes, b)
            store(specials, at + E * lanes, e)
            store(specials, at + J * lanes, j)
            store(specials, at + C * lanes, c)
            store(specials, at + SCALE * lanes, scale)
            n = choose_greater(new, zero, zero, n)
        if multiplied:
            for place in range(0, deletes, lanes):
                multiply(products, row + place, load(cells, place, lanes))
                multiply(products, row + inserts + place, load(cells, inserts + place, lanes))
        store(room, 2 * lanes, own)
        for t in range(targets):
            places[t] = np.int64(residues[begins[current[t]]]) * slots * 4
            own_scales[current[t]] = room[2 * lanes + 4 * t] > _ZERO
        if first == 0:
            total = entered_at_first(match, transitions, slots, places, cells)
            store(specials, N * lanes, total * move + n * loop)
            store(specials, B * lanes, total)
            store(specials, E * lanes, zero)
            store(specials, J * lanes, zero)
            store(specials, C * lanes, zero)
            store(specials, SCALE * lanes, one)

    return fill_backward


_FORWARD = {lanes: _forward_kernel(lanes) for lanes in WIDTHS}
_BACKWARD = {lanes: _backward_kernel(lanes) for lanes in WIDTHS}


class Matrices:
    """Forward and Backward of stretches of residues, as many streams of them side by side as fours of lanes.

    Cells of all rows are kept where ``most`` bytes hold them, in one block. Else the last rows of some blocks are kept,
    and a block is made again when it is needed.

    Args:
        odds: of the model.
        lanes: one of ``WIDTHS``.
        most: bytes of the cells of a block, about.
        rooms: of which other matrices may have the same, if they aren't used at the same time.

    Attributes:
        together: how many streams.
        lengths: i8[n], residues of the stretches, at least as many as streams; where there were fewer the first ones
            again.
        row: numbers of a row of cells.
        blocks: first and last row of each; the first one is the last of the block before, or 0.
        forward, backward: f4[rows · 6 · lanes] flat, states around the model.
        firsts: i8[n], where those of each stretch begin.
        cells: f4[…] flat, rows of 3 · Q · lanes, of a block from its first row on: those of Forward, times those of
            Backward in M and I once there was Backward.
        moves, loops: f4[n], of the states around the model.
        scores: f4[n], Forward scores in nats, NaN where one leaves the range of f32.
        own_scales: bool[n], whether Backward left Forward's scales.
    """

    def __init__(self, odds: StripedOdds, lanes: int, most: int, rooms: Rooms) -> None:
        self.odds, self.lanes, self.together, self._most, self.rooms = odds, lanes, lanes // LANES, most, rooms
        self.row = 3 * odds.slots * lanes
        self.clear()
        self.blocks = [(0, 0)]
        self._last, self._below_last = aligned(self.row, F32), aligned(self.row + odds.slots * lanes, F32)
        self._working = (*np.empty((4, self.together), np.int64), np.empty(3 * lanes, F32))
        self._above: list[Array32] = []
        self._below: list[tuple[Array32, NDArray[np.bool_]]] = []

    def clear(self) -> None:
        """Let go of what there is room for."""
        self.cells = self.forward = self.backward = np.empty(0, F32)

    @flushed()
    def run_forward(self, residues: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64],
                    targets: NDArray[np.int64], multihit: bool, whole: bool,
                    known: Sequence[Array32] = ()) -> None:
        """Forward of stretches ``residues[begins[n]:][:lengths[n]]``, longest first, of targets of ``targets[n]``
        residues; with ``whole``, for up to ``together`` stretches, the cells of all rows can be asked for. known: where
        they can't, the states around the model f4[L + 1, 6] of each stretch, if they needn't be computed."""
        some = np.arange(len(begins))
        if len(some) < self.together:
            some = np.resize(some, self.together)
        self._residues, self._begins, self.lengths, targets = residues, begins[some], lengths[some], targets[some]
        self._streams = _Streams(self.lengths, self.together)
        model = LengthModel(1, multihit)
        self.end_move, self.end_loop = model.end_move, model.end_loop
        ways = F32(3.0 if multihit else 2.0)
        self.moves = (ways / (targets.astype(F32) + ways)).astype(F32)
        self.loops = F32(1.0) - self.moves
        self.own_scales, self.scores = np.zeros(len(some), np.bool_), np.empty(len(some), F32)
        self.firsts = self._streams.firsts * (SPECIALS * self.lanes) + self._streams.stream * LANES
        longest = int((self._streams.firsts + self.lengths).max())
        self.forward = self.rooms.of("forward", (longest + 1) * SPECIALS * self.lanes)
        step = max(8, self._most // (4 * self.row)) if whole else longest
        self.blocks = [(first, min(first + step, longest)) for first in range(0, longest, step)]
        self._above, self._below = [self._last[:0]], []
        if whole:
            self.cells = self.rooms.of("cells", (self.blocks[0][1] + 1) * self.row)
        if known:
            for n, first in enumerate(self.firsts.tolist()):
                spread_states(known[n % len(known)], self.lanes, self.forward[first:])
        elif len(self.blocks) == 1:
            self._forward(0, longest, self.cells if whole else self._last, longest + 1 if whole else 1)
        else:
            for first, last in self.blocks:
                self._forward(first, last, self._last, 1)
                self._above.append(self._last.copy())
        _scores(self.forward, self.lanes, self.firsts, self.lengths, self.moves, self.scores)

    @flushed()
    def run_backward(self, whole: bool) -> None:
        """Backward of the same stretches; with ``whole`` its cells are multiplied into those of Forward."""
        self.backward = self.rooms.of("backward", len(self.forward))
        self._below = []
        for first, last in reversed(self.blocks):
            self._below.insert(0, (self._below_last.copy(), self.own_scales.copy()))
            self._backward(first, last, self.cells[: self.row * (whole and len(self.blocks) == 1)])

    def fill(self, block: int) -> None:
        """Make the cells of a block once more, if there are several; after Backward those of both."""
        if len(self.blocks) == 1:
            return
        first, last = self.blocks[block]
        if first:
            self.cells[: self.row] = self._above[block]
        self._forward(first, last, self.cells, last - first + 1)
        if self._below:
            self._below_last[:], self.own_scales[:] = self._below[block]
            self._backward(first, last, self.cells)

    def _forward(self, first: int, last: int, cells: Array32, kept: int) -> None:
        odds = self.odds
        _FORWARD[self.lanes](
            odds.match, odds.transitions, odds.least, odds.slots, odds.length >= NO_CHANGES_FROM, self._residues,
            self._begins, self.lengths, self.moves, self.loops, self._streams.heads, self._streams.following,
            self.end_move, self.end_loop, first, last, kept, cells, self.forward, *self._working)

    def _backward(self, first: int, last: int, products: Array32) -> None:
        odds = self.odds
        _BACKWARD[self.lanes](
            odds.match, odds.transitions, odds.slots, self._residues, self._begins, self.lengths, self.moves,
            self.loops, self._streams.tails, self._streams.preceding, self._streams.firsts, self.end_move,
            self.end_loop, self.forward, first, last, products, self._below_last, self.backward,
            self.own_scales, *self._working)


_ROOM = 6 << 20


class Rooms:
    """Arrays by name, used again and again: fresh memory takes as long to come by as to fill. For one thread.

    There is room for more than was asked for from the beginning, since memory that nobody touches isn't taken.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}

    def of(self, name: str, size: int, dtype: Any = F32) -> NDArray[Any]:
        """A flat array of this size at least, with anything in it."""
        before = len(self._arrays.get(name, ()))
        if before < size:
            self._arrays.pop(name, None)
            self._arrays[name] = aligned(max(size, before * 5 // 4, _ROOM), dtype)
        return self._arrays[name]


class RoomsOfThreads:
    """Rooms for as many threads as work at a time."""

    def __init__(self) -> None:
        self._unused: list[Rooms] = []

    @contextmanager
    def lent(self) -> Iterator[Rooms]:
        """Rooms that no other thread has."""
        try:
            rooms = self._unused.pop()
        except IndexError:
            rooms = Rooms()
        yield rooms
        self._unused.append(rooms)


class _Streams:
    """Stretches dealt to streams, each to the one that is shortest by then; there are no fewer than streams.

    Attributes:
        heads, tails: i8[streams], the first and last stretch of each.
        following, preceding: i8[n], the stretch behind and before each in its stream, or −1.
        stream, firsts: i8[n], of each stretch its stream, and its first row there.
    """

    def __init__(self, lengths: NDArray[np.int64], streams: int) -> None:
        count = len(lengths)
        self.following, self.preceding, self.stream, self.firsts = np.full((4, count), -1, np.int64)
        self.heads, self.stream[:streams], self.firsts[:streams] = np.arange(streams), np.arange(streams), 0
        self.tails = self.heads.copy()
        ends = [(int(length) + 1, stream) for stream, length in enumerate(lengths[:streams])]
        if count > streams:
            heapify(ends)
        for n in range(streams, count):
            row, stream = ends[0]
            self.stream[n], self.firsts[n], self.preceding[n] = stream, row, self.tails[stream]
            self.following[self.tails[stream]] = self.tails[stream] = n
            heapreplace(ends, (row + int(lengths[n]) + 1, stream))


def longest_first(lengths: NDArray[np.int64], together: int, rows: int = 0) -> Iterator[NDArray[np.int64]]:
    """Places of stretches that are gone through together: one in each of so many streams, or more as long as each
    stream has about as many rows as wanted."""
    order = np.argsort(-lengths, kind="stable")
    ends, first = np.cumsum(lengths[order] + 1), 0
    while first < len(order):
        before = int(ends[first - 1]) if first else 0
        behind = max(first + together, int(np.searchsorted(ends, before + together * rows, side="right")))
        yield order[first:behind]
        first = behind


def narrowest(stretches: int) -> int:
    """Lanes of the narrowest vectors that take so many streams, or of the widest."""
    return next((lanes for lanes in WIDTHS if lanes >= LANES * stretches), WIDE)


STREAM_ROWS = 4096
"""Rows of streams of targets, about, if no target is longer."""


def forward_groups(odds: StripedOdds, residues: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64],
                   rooms: Rooms) -> Iterator[tuple[Matrices, NDArray[np.int64]]]:
    """Multihit Forward of targets ``residues[begins[n]:ends[n]]``, of some at a time, and which these are. ``rooms``
    are to work in."""
    lengths = ends - begins
    matrices = Matrices(odds, narrowest(len(begins)), 0, rooms)
    for chosen in longest_first(lengths, matrices.together, STREAM_ROWS):
        matrices.run_forward(residues, begins[chosen], lengths[chosen], lengths[chosen], multihit=True, whole=False)
        yield matrices, chosen


def forward_scores(odds: StripedOdds, residues: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64],
                   rooms: Rooms) -> Array32:
    """Scores f4[n] of ``forward_groups`` in nats; NaN where one leaves the range of f32."""
    scores = np.empty(len(begins), F32)
    for matrices, chosen in forward_groups(odds, residues, begins, ends, rooms):
        scores[chosen] = matrices.scores[: len(chosen)]
    return scores
