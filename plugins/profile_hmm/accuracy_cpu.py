"""Posterior decoding, optimal accuracy alignment and null2 of envelopes, as in ``accuracy_reference.py``.

One matrix is enough: Forward's cells have been multiplied by Backward's, what makes posteriors of them is one factor a
row, and the scores of the alignment take the place of each row once it has been looked at. Cells are those of
``forward_cpu.py``: envelopes side by side, each striped over four lanes; in one block or, where that would be too
large, block by block.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import (
    choose_greater,
    greater_lanes,
    load,
    maximum,
    minimum,
    quads_halves,
    quads_pairs,
    quads_up,
    same_quads,
    splat,
    store,
)

from .exact_math import F32, Array32
from .forward_cpu import SCALE, SPECIALS, STEP, WAYS, WIDE, WIDTHS, B, C, E, J, Matrices, N
from .labels_cpu import LETTERS, SKIPPED, TENTH, tenths_of
from .profile import LANES
from .residues import residues_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ENTRY, _INTO_MM, _INTO_IM, _INTO_DM, _MI, _II, _MD, _DD = (LANES * n for n in range(8))
_ZERO, _ONE, _NEVER = F32(0.0), F32(1.0), F32(-np.inf)
_M, _I, _D, _FROM_B = 0, 1, 2, 3
_FIRST_LANE = np.tile(np.array([-np.inf, 0, 0, 0], F32), WIDE // LANES)


@kernel
def _decode(forward, backward, lanes, length, own_scales, loop, around):
    """Fill ``around`` with posteriors of N, J, C, and in place of scales with what makes posteriors of the products of
    cells; whether scaling overflowed. All are of an envelope in the first four of ``lanes`` lanes."""
    factor = _ONE / backward[N * lanes]
    if not own_scales and factor == np.float32(np.inf):
        return True
    to_scale = SCALE * lanes
    for i in range(1, length + 1):
        here, above = i * SPECIALS * lanes, (i - 1) * SPECIALS * lanes
        scale = forward[here + to_scale]
        store(around, here + to_scale, splat(factor * scale, 4))
        for state in (N, J, C):
            place = state * lanes
            store(around, here + place, splat(forward[above + place] * backward[here + place] * loop * factor, 4))
        if own_scales:
            factor = factor * (scale / backward[here + to_scale])
    return factor == np.float32(np.inf)


def _alignment_kernel(lanes: int) -> Any:
    """Kernel for vectors of ``lanes`` lanes."""

    @inline
    def best_match(ways, q, begin, m, s, d):
        """Best way into the match states of slot q."""
        t = q * WAYS
        from_begin = minimum(begin, same_quads(ways, t + _ENTRY, lanes))
        from_match = minimum(m, same_quads(ways, t + _INTO_MM, lanes))
        from_insert = minimum(s, same_quads(ways, t + _INTO_IM, lanes))
        from_delete = minimum(d, same_quads(ways, t + _INTO_DM, lanes))
        return maximum(maximum(from_begin, from_match), maximum(from_insert, from_delete))

    @inline
    def use_once_more(use, place, posterior, inside, short, zero):
        """Add a posterior in the lanes of envelopes that are ``inside`` still; all are unless some are ``short``."""
        if short:
            posterior = choose_greater(inside, zero, posterior, zero)
        store(use, place, load(use, place, lanes) + posterior)

    @kernel
    def fill(ways, slots, first, last, first_lane, specials, around, cells, tenths, lengths, use, room):
        """Optimal accuracy scores of rows ``first`` + 1 to ``last`` into ``cells`` of rows from ``first`` on, in place
        of what posteriors are made of, and ``specials``; unihit, a way that doesn't exist counts 0. Row ``first`` holds
        scores already, unless it is 0. Of the posteriors of M and I u1[rows, 2, Q, lanes] ``tenths`` are kept, and they
        are added to f4[2 · Q · lanes] ``use`` unless that is empty.

        No score of a match or delete state is below 0 behind the first residue, so that the less of a score and 0 or ∞
        is the score of a way that exists, or 0. N, J and C can loop, as every target has a residue.

        ways: of ``StripedOdds``. around: posteriors of N, J, C, and each row's factor. room: f4[lanes], working space.
        """
        row, deletes, inserts = 3 * slots * lanes, slots * lanes, 2 * slots * lanes
        zero, never, only = splat(_ZERO, lanes), splat(_NEVER, lanes), load(first_lane, 0, lanes)
        used, inside, shortest = len(use) > 0, splat(_ONE, lanes), lengths[0]
        for t in range(lanes // 4):
            shortest = min(shortest, lengths[t])
        if first == 0:
            for place in range(0, row, lanes):
                store(cells, place, never)
            store(specials, N * lanes, zero)
            store(specials, B * lanes, zero)
            store(specials, E * lanes, never)
            store(specials, J * lanes, never)
            store(specials, C * lanes, never)
        at = first * SPECIALS * lanes
        n, b = load(specials, at + N * lanes, lanes), load(specials, at + B * lanes, lanes)
        j, c = load(specials, at + J * lanes, lanes), load(specials, at + C * lanes, lanes)
        for i in range(first + 1, last + 1):
            here, above, at = (i - first) * row, (i - first - 1) * row, i * SPECIALS * lanes
            of_matches, of_inserts = 2 * (i - first) * deletes, (2 * (i - first) + 1) * deletes
            factor = load(around, at + SCALE * lanes, lanes)
            if i > shortest:
                for t in range(lanes // 4):
                    for lane in range(4 * t, 4 * t + 4):
                        room[lane] = _ONE if i <= lengths[t] else _ZERO
                inside = load(room, 0, lanes)
            # Lane 0 gets 0 from the left, where nothing is: −∞.
            m = quads_up(load(cells, above + deletes - lanes, lanes)) + only
            d = quads_up(load(cells, above + inserts - lanes, lanes)) + only
            s = quads_up(load(cells, above + row - lanes, lanes)) + only
            best, end = never, slots - 1
            cell = best_match(ways, end, b, load(cells, above + deletes - 2 * lanes, lanes),
                              load(cells, above + row - 2 * lanes, lanes),
                              load(cells, above + inserts - 2 * lanes, lanes))
            cell = cell + load(cells, here + end * lanes, lanes) * factor
            carry = quads_up(minimum(cell, same_quads(ways, end * WAYS + _MD, lanes))) + only
            opened = never
            for q in range(slots):
                t, place = q * WAYS, q * lanes
                posterior = load(cells, here + place, lanes) * factor
                store(tenths, of_matches + place, tenths_of(posterior, lanes))
                if used:
                    use_once_more(use, place, posterior, inside, i > shortest, zero)
                cell = best_match(ways, q, b, m, s, d) + posterior
                m, d = load(cells, above + place, lanes), load(cells, above + deletes + place, lanes)
                s = load(cells, above + inserts + place, lanes)
                inserted = maximum(minimum(m, same_quads(ways, t + _MI, lanes)),
                                   minimum(s, same_quads(ways, t + _II, lanes)))
                store(cells, here + place, cell)
                posterior = load(cells, here + inserts + place, lanes) * factor
                store(tenths, of_inserts + place, tenths_of(posterior, lanes))
                if used:
                    use_once_more(use, deletes + place, posterior, inside, i > shortest, zero)
                store(cells, here + inserts + place, inserted + posterior)
                deleted = maximum(carry, opened)
                store(cells, here + deletes + place, deleted)
                best = maximum(best, maximum(cell, deleted))
                carry = minimum(deleted, same_quads(ways, t + _DD, lanes))
                opened = minimum(cell, same_quads(ways, t + _MD, lanes))
            # On through the lanes until nothing gets better; what is better than a delete state is not beyond the best.
            q = slots
            for _ in range(4):
                if q < slots:
                    break
                carry, q = quads_up(carry) + only, 0
                while q < slots:
                    place = here + deletes + q * lanes
                    before = load(cells, place, lanes)
                    if not greater_lanes(carry, before):
                        break
                    deleted = maximum(carry, before)
                    store(cells, place, deleted)
                    carry = minimum(deleted, same_quads(ways, q * WAYS + _DD, lanes))
                    q += 1
            best = maximum(best, quads_pairs(best))
            best = maximum(best, quads_halves(best))
            j = maximum(j + load(around, at + J * lanes, lanes), zero)
            c = maximum(c + load(around, at + C * lanes, lanes), best)
            n = n + load(around, at + N * lanes, lanes)
            b = maximum(n, j)
            store(specials, at + N * lanes, n)
            store(specials, at + B * lanes, b)
            store(specials, at + E * lanes, best)
            store(specials, at + J * lanes, j)
            store(specials, at + C * lanes, c)

    return fill


def _null2_kernel(lanes: int) -> Any:
    """Kernel for vectors of ``lanes`` lanes."""

    @kernel
    def null2(match, slots, lengths, around, codes, n_members, members, use, room, odds):
        """Odds f4[envelopes, 28] of residue codes from the expected use of states."""
        half, envelopes = slots * lanes, lanes // 4
        for t in range(envelopes):
            for lane in range(4 * t, 4 * t + 4):
                room[lane] = np.float32(lengths[t])
        weight = splat(_ONE, lanes) / load(room, 0, lanes)
        for place in range(0, 2 * half, lanes):
            store(use, place, load(use, place, lanes) * weight)
        for t in range(envelopes):
            share, outside = _ONE / np.float32(lengths[t]), _ZERO
            for state in (N, C, J):
                total = _ZERO
                for i in range(1, lengths[t] + 1):
                    total = total + around[(i * SPECIALS + state) * lanes + 4 * t]
                outside = outside + total * share
            for code in codes:
                odds[t, code] = outside
        for code in codes:
            total = splat(_ZERO, lanes)
            for q in range(slots):
                total = total + same_quads(match, (code * slots + q) * 4, lanes) * load(use, q * lanes, lanes)
                total = total + load(use, half + q * lanes, lanes)
            total = total + quads_pairs(total)
            store(room, 0, total + quads_halves(total))
            for t in range(envelopes):
                odds[t, code] = room[4 * t] + odds[t, code]
        for t in range(envelopes):
            spread_to_degenerate(codes, n_members, members, odds[t])

    return null2


_FILL = {lanes: _alignment_kernel(lanes) for lanes in WIDTHS}
_NULL2 = {lanes: _null2_kernel(lanes) for lanes in WIDTHS}


@kernel
def _decode_all(forward, backward, lanes, lengths, own_scales, loops, around, fits):
    """``_decode`` of envelopes side by side; ``fits`` says where scaling did not overflow."""
    for n in range(len(fits)):
        fits[n] = not _decode(forward[4 * n :], backward[4 * n :], lanes, lengths[n], own_scales[n], loops[n],
                              around[4 * n :])


@kernel
def _cell(k, slots, lanes):
    """Place of node k in M of a row."""
    return (k - 1) % slots * lanes + (k - 1) // slots


@kernel
def _way(transitions, which, k, slots, value):
    """``value`` if the transition exists, else −∞."""
    q, lane = (k - 1) % slots, (k - 1) // slots
    return value if transitions[q * STEP + which + lane] > _ZERO else _NEVER


@kernel
def _trace(transitions, slots, lanes, model_length, first, specials, around, cells, tenths, states, labels, walk):
    """Walk back as far as row ``first``, the first one of ``cells``; whether that is all the way.

    specials, around, cells: those of the envelope in the first four of ``lanes`` lanes. states: u1[…], filled from the
    last to the first match state with 0, 1, 2 for M, I, D. tenths: of the rows of ``cells``; labels: u1[…], filled
    with those of the states. walk: i8[9], first and last residue and node of match
    states, all 0 to begin with, the number of states up to the first match state and of all, then row, state and node
    that come next; the row is the last one of the envelope to begin with, the state −1.
    """
    row, deletes, inserts = 3 * slots * lanes, slots * lanes, 2 * slots * lanes
    of_row, to_c, to_e, to_b = SPECIALS * lanes, C * lanes, E * lanes, B * lanes
    first_i, last_i, first_k, last_k, matched, count, i, state, k = (
        walk[0], walk[1], walk[2], walk[3], walk[4], walk[5], walk[6], walk[7], walk[8])
    if state < 0:
        while specials[(i - 1) * of_row + to_c] + around[i * of_row + to_c] > specials[i * of_row + to_e]:
            i -= 1
        if i > first:
            best, here, state = _NEVER, (i - first) * row, _M
            for q in range(slots):
                for lane in range(4):
                    node = lane * slots + q + 1
                    if node <= model_length and cells[here + q * lanes + lane] >= best:
                        best, state, k = cells[here + q * lanes + lane], _M, node
                for lane in range(4):
                    node = lane * slots + q + 1
                    if node <= model_length and cells[here + deletes + q * lanes + lane] > best:
                        best, state, k = cells[here + deletes + q * lanes + lane], _D, node
    while i > first and state != _FROM_B:
        if state == _M or last_i:
            states[count], labels[count] = state, SKIPPED
            if state != _D:
                labels[count] = tenths[(2 * (i - first) + (state == _I)) * deletes + _cell(k, slots, lanes)] >> TENTH
            count += 1
        here = (i - first) * row
        if state == _M:
            if not last_i:
                last_i, last_k = i, k
            first_i, first_k, matched = i, k, count
            best, state = _NEVER, _M
            if k > 1:
                left = here - row + _cell(k - 1, slots, lanes)
                best = _way(transitions, _INTO_MM, k, slots, cells[left])
                ahead = _way(transitions, _INTO_IM, k, slots, cells[left + inserts])
                if ahead > best:
                    best, state = ahead, _I
                ahead = _way(transitions, _INTO_DM, k, slots, cells[left + deletes])
                if ahead > best:
                    best, state = ahead, _D
            if _way(transitions, _ENTRY, k, slots, specials[(i - 1) * of_row + to_b]) > best:
                state = _FROM_B
            i, k = i - 1, k - 1
        elif state == _D:
            left = here + _cell(k - 1, slots, lanes)
            of_match = _way(transitions, _MD, k - 1, slots, cells[left])
            state = _M if of_match >= _way(transitions, _DD, k - 1, slots, cells[left + deletes]) else _D
            k -= 1
        else:
            left = here - row + _cell(k, slots, lanes)
            of_match = _way(transitions, _MI, k, slots, cells[left])
            state = _M if of_match >= _way(transitions, _II, k, slots, cells[left + inserts]) else _I
            i -= 1
    walk[0], walk[1], walk[2], walk[3], walk[4] = first_i, last_i, first_k, last_k, matched
    walk[5], walk[6], walk[7], walk[8] = count, i, state, k
    return state == _FROM_B


@kernel
def _trace_all(transitions, slots, lanes, model_length, first, specials, around, cells, tenths, fits, rooms, states,
               labels, walks):
    """``_trace`` of envelopes side by side that fit, of which each has its part of ``states`` and ``labels`` from i8[n]
    ``rooms`` on; whether all have come to an end."""
    ended = True
    for n in range(len(fits)):
        if fits[n]:
            ended &= _trace(transitions, slots, lanes, model_length, first, specials[4 * n :], around[4 * n :],
                            cells[4 * n :], tenths[4 * n :], states[rooms[n] :], labels[rooms[n] :], walks[n])
    return ended


@kernel
def _turn(rooms, offsets, states, labels, letters, path, shown):
    """Fill u1 ``path`` and ``shown`` with states, and the letters of their labels, up to the first match state, which
    is the last one that there is; each envelope's from i8[n + 1] ``offsets`` on."""
    for n in range(len(rooms)):
        behind = rooms[n] + offsets[n + 1] - offsets[n] - 1
        for place in range(offsets[n], offsets[n + 1]):
            path[place] = states[behind - (place - offsets[n])]
            shown[place] = letters[labels[behind - (place - offsets[n])]]


@kernel
def spread_to_degenerate(codes, n_members, members, odds):
    """Odds f4[28] of degenerate residues as the mean of their members, and 1 for codes without any."""
    for code in range(len(odds)):
        if n_members[code] == 0:
            odds[code] = _ONE
        elif n_members[code] > 1 or codes[members[code, 0]] != code:
            total = _ZERO
            for n in range(n_members[code]):
                total = total + odds[codes[members[code, n]]]
            odds[code] = total / np.float32(n_members[code])


@kernel
def _logs(odds):
    for code in range(len(odds)):
        odds[code] = np.float32(math.log(odds[code]))


class Aligned(NamedTuple):
    """Paths of envelopes.

    Attributes:
        fits: bool[n], whether scaling did not overflow; else there is nothing.
        places: i8[n, 4], residues of the first and last match state, 1-based in the envelope, and their nodes.
        accuracies: f4[n], expected number of correctly assigned residues.
        offsets: i8[n + 1]. path: u1, states from the first to the last match state, 0, 1, 2 for M, I, D, those of an
            envelope from its offset on. shown: u1, letters that are their labels.
        logs: f4[n, codes], null2 log odds from the expected use of each state if they were wanted.
    """

    fits: NDArray[np.bool_]
    places: NDArray[np.int64]
    accuracies: Array32
    offsets: NDArray[np.int64]
    path: NDArray[np.uint8]
    shown: NDArray[np.uint8]
    logs: Array32 | None


def aligned(matrices: Matrices, count: int, wants_null2: bool) -> Aligned:
    """Optimal accuracy paths and null2 of the first ``count`` unihit envelopes, of which there are Forward and
    Backward."""
    return _Alignments(matrices).run(count, wants_null2)


class _Alignments:
    """Room for what is filled in block by block."""

    def __init__(self, matrices: Matrices) -> None:
        self._matrices = matrices

    def run(self, count: int, wants_null2: bool) -> Aligned:
        """Of the first ``count`` envelopes."""
        matrices = self._matrices
        odds, lanes, blocks = matrices.odds, matrices.lanes, matrices.blocks
        self._around = matrices.rooms.of("around", len(matrices.forward))
        self._specials = matrices.rooms.of("specials", len(matrices.forward))
        fits, lengths = np.empty(count, np.bool_), matrices.lengths[:count]
        _decode_all(matrices.forward, matrices.backward, lanes, lengths, matrices.own_scales, matrices.loops,
                    self._around, fits)
        use, self._working = np.zeros(2 * odds.slots * lanes * wants_null2, F32), np.empty(lanes, F32)
        scores: list[Array32] = []
        for block, (first, last) in enumerate(blocks):
            matrices.fill(block)
            self._fill(block, scores, use)
            if len(blocks) > 1:
                scores.append(matrices.cells[(last - first) * matrices.row :][: matrices.row].copy())
        logs: Array32 | None = None
        if wants_null2:
            codes = odds.codes
            logs = np.empty((matrices.together, codes), F32)
            _NULL2[lanes](odds.match, odds.slots, matrices.lengths, self._around, *residues_of(codes).arrays, use,
                          self._working, logs)
            _logs(logs.reshape(-1))
        walks = np.zeros((count, 9), np.int64)
        walks[:, 6], walks[:, 7] = lengths, -1
        rooms = np.cumsum(lengths + (odds.length + 1))
        states, labels = np.empty((2, int(rooms[-1])), np.uint8)
        rooms -= lengths + (odds.length + 1)
        for block in reversed(range(len(blocks))):
            if block + 1 < len(blocks):
                matrices.fill(block)
                self._fill(block, scores, use[:0])
            if _trace_all(odds.transitions, odds.slots, lanes, odds.length, blocks[block][0], self._specials,
                          self._around, matrices.cells, self._tenths, fits, rooms, states, labels, walks):
                break
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(walks[:, 4], out=offsets[1:])
        path, shown = np.empty((2, int(offsets[-1])), np.uint8)
        _turn(rooms, offsets, states, labels, LETTERS, path, shown)
        finals = (lengths * SPECIALS + C) * lanes + LANES * np.arange(count)
        return Aligned(fits, walks[:, [0, 1, 2, 3]], self._specials[finals], offsets, path, shown, logs)

    def _fill(self, block: int, scores: list[Array32], use: Array32) -> None:
        """Scores and tenths in place of the cells of a block, those of ``scores`` behind the blocks before; posteriors
        are added to ``use`` unless it is empty."""
        matrices, (first, last) = self._matrices, self._matrices.blocks[block]
        if block:
            matrices.cells[: matrices.row] = scores[block - 1]
        self._tenths = matrices.rooms.of("tenths", (last - first + 1) * 2 * matrices.row // 3, np.uint8)
        _FILL[matrices.lanes](matrices.odds.ways, matrices.odds.slots, first, last, _FIRST_LANE, self._specials,
                              self._around, matrices.cells, self._tenths, matrices.lengths, use, self._working)
