"""Posterior decoding, optimal accuracy alignment and null2 of envelopes, as in ``accuracy_reference.py``.

One matrix is enough: Forward's cells have been multiplied by Backward's, what makes posteriors of them is one factor a
row, and the scores of the alignment take the place of each row once it has been looked at. Cells are those of
``forward_cpu.py``: envelopes side by side, each striped over four lanes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import (
    aligned,
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

from .domains import Path
from .exact_math import F32, Array32
from .forward_cpu import SCALE, SPECIALS, STEP, WAYS, WIDE, B, C, E, J, Matrices, N
from .profile import LANES
from .residues import CODE_OF_RESIDUE, MEMBERS, N_CODES

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ENTRY, _INTO_MM, _INTO_IM, _INTO_DM, _MI, _II, _MD, _DD = (LANES * n for n in range(8))
_ZERO, _ONE, _NEVER = F32(0.0), F32(1.0), F32(-np.inf)
_M, _I, _D, _FROM_B = 0, 1, 2, 3
_LETTERS = np.frombuffer(b"MID", np.uint8)
_FIRST_LANE = np.tile(np.array([-np.inf, 0, 0, 0], F32), WIDE // LANES)
CODES = CODE_OF_RESIDUE.astype(np.int64)
N_MEMBERS = np.array([len(members) for members in MEMBERS])
MEMBERS_OF = np.array([[*members, *[0] * (20 - len(members))] for members in MEMBERS])


@kernel
def _decode(forward, backward, lanes, length, own_scales, loop):
    """Make posteriors of N, J, C in ``backward``, and of its scales what makes posteriors of the products of cells;
    whether scaling overflowed. Both are of an envelope in the first four of ``lanes`` lanes."""
    factor = _ONE / backward[N * lanes]
    if not own_scales and factor == np.float32(np.inf):
        return True
    for i in range(1, length + 1):
        here, above = i * SPECIALS * lanes, (i - 1) * SPECIALS * lanes
        scale = forward[here + SCALE * lanes]
        own = backward[here + SCALE * lanes]
        store(backward, here + SCALE * lanes, splat(factor * scale, 4))
        for state in (N, J, C):
            place = state * lanes
            store(backward, here + place, splat(forward[above + place] * backward[here + place] * loop * factor, 4))
        if own_scales:
            factor = factor * (scale / own)
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

    @kernel
    def fill(ways, slots, longest, first_lane, specials, around, cells):
        """Optimal accuracy scores into ``cells``, in place of what posteriors are made of, and ``specials``; unihit, a
        way that doesn't exist counts 0.

        No score of a match or delete state is below 0 behind the first residue, so that the less of a score and 0 or ∞
        is the score of a way that exists, or 0. N, J and C can loop, as every target has a residue.

        ways: of ``StripedOdds``. around: posteriors of N, J, C, and each row's factor.
        """
        row, deletes, inserts = 3 * slots * lanes, slots * lanes, 2 * slots * lanes
        zero, never, only = splat(_ZERO, lanes), splat(_NEVER, lanes), load(first_lane, 0, lanes)
        for place in range(0, row, lanes):
            store(cells, place, never)
        n, b, j, c = zero, zero, never, never
        store(specials, N * lanes, n)
        store(specials, B * lanes, b)
        store(specials, E * lanes, never)
        store(specials, J * lanes, j)
        store(specials, C * lanes, c)
        for i in range(1, longest + 1):
            here, above, at = i * row, (i - 1) * row, i * SPECIALS * lanes
            factor = load(around, at + SCALE * lanes, lanes)
            # Lane 0 gets 0 from the left, where nothing is: −∞.
            m = quads_up(load(cells, above + deletes - lanes, lanes)) + only
            d = quads_up(load(cells, above + inserts - lanes, lanes)) + only
            s = quads_up(load(cells, above + row - lanes, lanes)) + only
            best, last = never, slots - 1
            cell = best_match(ways, last, b, load(cells, above + deletes - 2 * lanes, lanes),
                              load(cells, above + row - 2 * lanes, lanes),
                              load(cells, above + inserts - 2 * lanes, lanes))
            cell = cell + load(cells, here + last * lanes, lanes) * factor
            carry = quads_up(minimum(cell, same_quads(ways, last * WAYS + _MD, lanes))) + only
            opened = never
            for q in range(slots):
                t, place = q * WAYS, q * lanes
                cell = best_match(ways, q, b, m, s, d) + load(cells, here + place, lanes) * factor
                m, d = load(cells, above + place, lanes), load(cells, above + deletes + place, lanes)
                s = load(cells, above + inserts + place, lanes)
                inserted = maximum(minimum(m, same_quads(ways, t + _MI, lanes)),
                                   minimum(s, same_quads(ways, t + _II, lanes)))
                store(cells, here + place, cell)
                store(cells, here + inserts + place, inserted + load(cells, here + inserts + place, lanes) * factor)
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
    def null2(match, slots, lengths, cells, around, codes, n_members, members, use, room, odds):
        """Odds f4[envelopes, 28] of residue codes from the expected use of states.

        cells, around: what posteriors are made of. use: f4[2 · Q · lanes], room: f4[lanes], working space.
        """
        row, inserts, half = 3 * slots * lanes, 2 * slots * lanes, slots * lanes
        zero, one = splat(_ZERO, lanes), splat(_ONE, lanes)
        envelopes, longest, shortest = lanes // 4, lengths[0], lengths[0]
        for t in range(envelopes):
            longest, shortest = max(longest, lengths[t]), min(shortest, lengths[t])
            for lane in range(4 * t, 4 * t + 4):
                room[lane] = np.float32(lengths[t])
        weight = one / load(room, 0, lanes)
        for place in range(0, 2 * half, lanes):
            store(use, place, zero)
        of_n = of_c = of_j = zero
        inside = one
        for i in range(1, longest + 1):
            here, at = i * row, i * SPECIALS * lanes
            factor = load(around, at + SCALE * lanes, lanes)
            if i > shortest:
                for t in range(envelopes):
                    for lane in range(4 * t, 4 * t + 4):
                        room[lane] = _ONE if i <= lengths[t] else _ZERO
                inside = load(room, 0, lanes)
            for place in range(0, half, lanes):
                of_match = load(cells, here + place, lanes) * factor
                of_insert = load(cells, here + inserts + place, lanes) * factor
                if i > shortest:
                    of_match = choose_greater(inside, zero, of_match, zero)
                    of_insert = choose_greater(inside, zero, of_insert, zero)
                store(use, place, load(use, place, lanes) + of_match)
                store(use, half + place, load(use, half + place, lanes) + of_insert)
            of_n = of_n + choose_greater(inside, zero, load(around, at + N * lanes, lanes), zero)
            of_c = of_c + choose_greater(inside, zero, load(around, at + C * lanes, lanes), zero)
            of_j = of_j + choose_greater(inside, zero, load(around, at + J * lanes, lanes), zero)
        for place in range(0, 2 * half, lanes):
            store(use, place, load(use, place, lanes) * weight)
        outside = of_n * weight
        outside = outside + of_c * weight
        outside = outside + of_j * weight
        for x in range(len(codes)):
            total = zero
            emission = codes[x] * slots * 4
            for q in range(slots):
                total = total + same_quads(match, emission + q * 4, lanes) * load(use, q * lanes, lanes)
                total = total + load(use, half + q * lanes, lanes)
            total = total + quads_pairs(total)
            total = total + quads_halves(total)
            store(room, 0, total + outside)
            for t in range(envelopes):
                odds[t, codes[x]] = room[4 * t]
        for t in range(envelopes):
            spread_to_degenerate(codes, n_members, members, odds[t])

    return null2


_FILL = {LANES: _alignment_kernel(LANES), WIDE: _alignment_kernel(WIDE)}
_NULL2 = {LANES: _null2_kernel(LANES), WIDE: _null2_kernel(WIDE)}


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
def _trace(transitions, slots, lanes, length, model_length, specials, around, cells, states, found):
    """Walk back; ``states`` u1[…] from the last to the first match state as 0, 1, 2 for M, I, D; their number.

    specials, around, cells: those of the envelope in the first four of ``lanes`` lanes. found: i8[4], filled with first
    and last residue and node of match states.
    """
    row, deletes, inserts = 3 * slots * lanes, slots * lanes, 2 * slots * lanes
    of_row, to_c, to_e, to_b = SPECIALS * lanes, C * lanes, E * lanes, B * lanes
    i = length
    while specials[(i - 1) * of_row + to_c] + around[i * of_row + to_c] > specials[i * of_row + to_e]:
        i -= 1
    best, state, k = _NEVER, _M, 0
    for q in range(slots):
        for lane in range(4):
            node = lane * slots + q + 1
            if node <= model_length and cells[i * row + q * lanes + lane] >= best:
                best, state, k = cells[i * row + q * lanes + lane], _M, node
        for lane in range(4):
            node = lane * slots + q + 1
            if node <= model_length and cells[i * row + deletes + q * lanes + lane] > best:
                best, state, k = cells[i * row + deletes + q * lanes + lane], _D, node
    count, last = 0, 0
    found[1] = found[3] = 0
    while state != _FROM_B:
        if state == _M or found[1]:
            states[count] = state
            count += 1
        if state == _M:
            if not found[1]:
                found[1], found[3] = i, k
            found[0], found[2], last = i, k, count
            above = (i - 1) * row
            best, state = _NEVER, _M
            if k > 1:
                left = above + _cell(k - 1, slots, lanes)
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
            left = i * row + _cell(k - 1, slots, lanes)
            of_match = _way(transitions, _MD, k - 1, slots, cells[left])
            state = _M if of_match >= _way(transitions, _DD, k - 1, slots, cells[left + deletes]) else _D
            k -= 1
        else:
            above = (i - 1) * row + _cell(k, slots, lanes)
            of_match = _way(transitions, _MI, k, slots, cells[above])
            state = _M if of_match >= _way(transitions, _II, k, slots, cells[above + inserts]) else _I
            i -= 1
    return last


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


@kernel
def _correct(logs, residues, begin, end, null2, keep):
    """Fill ``null2`` f4[n] with the log odds of ``residues[begin:end]`` unless it is to be kept; its sum in order."""
    total = _ZERO
    for i in range(end - begin):
        if not keep:
            null2[i] = logs[residues[begin + i]]
        total = null2[i] if i == 0 else total + null2[i]
    return total


def decode(matrices: Matrices, number: int) -> bool:
    """Make of the states around the model in ``matrices.backward`` the posteriors of N, J and C of an envelope, and of
    the scales what makes posteriors of its cells; False if scaling overflowed."""
    lane = LANES * number
    return not _decode(matrices.forward[lane:], matrices.backward[lane:], matrices.lanes, int(matrices.lengths[number]),
                       matrices.own_scales[number], matrices.loops[lane])


def null2_logs(matrices: Matrices) -> Array32:
    """f4[together, 28]: log odds by residue code from the expected use of each state over envelopes."""
    odds, lanes = matrices.odds, matrices.lanes
    found = np.empty((matrices.together, N_CODES), F32)
    _NULL2[lanes](odds.match, odds.slots, matrices.lengths, matrices.cells, matrices.backward, CODES, N_MEMBERS,
                  MEMBERS_OF, aligned(2 * odds.slots * lanes, F32), aligned(lanes, F32), found)
    _logs(found.reshape(-1))
    return found


def optimal_paths(matrices: Matrices, numbers: list[int]) -> list[Path]:
    """Optimal accuracy paths of some of the envelopes, unihit. The scores take the place of posteriors and of
    Forward."""
    odds, lanes, paths = matrices.odds, matrices.lanes, []
    _FILL[lanes](odds.ways, odds.slots, int(matrices.lengths.max()), _FIRST_LANE, matrices.forward, matrices.backward,
                 matrices.cells)
    for number in numbers:
        length, lane = int(matrices.lengths[number]), LANES * number
        specials = matrices.forward[lane:]
        states, found = np.empty(length + odds.length + 1, np.uint8), np.empty(4, np.int64)
        steps = _trace(odds.transitions, odds.slots, lanes, length, odds.length, specials, matrices.backward[lane:],
                       matrices.cells[lane:], states, found)
        text = _LETTERS[states[:steps][::-1]].tobytes().decode()
        start, end, model_start, model_end = found.tolist()
        paths.append(Path(text, start, end, model_start, model_end, specials[(length * SPECIALS + C) * lanes]))
    return paths


def correction(logs: Array32 | None, residues: NDArray[np.uint8], begin: int, end: int, null2: Array32) -> np.float32:
    """f32 sum of the log odds of ``residues[begin:end]``, in order, which are put into ``null2``; without ``logs`` they
    are there already."""
    return _correct(null2 if logs is None else logs, residues, begin, end, null2, logs is None)
