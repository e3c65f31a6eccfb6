"""Posterior decoding, optimal accuracy alignment and null2 of an envelope, as in ``accuracy_reference.py``.

Posteriors take the place of Backward's cells, and the scores of the alignment that of Forward's, so that an envelope
needs no more memory than its two matrices. Cells are those of ``forward_cpu.py``: striped over four lanes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import greater_lanes, load, maximum, minimum, quads_up, splat, store

from .domains import Path
from .exact_math import F32, Array32
from .forward_cpu import SCALE, SPECIALS, STEP, WAYS, B, C, E, J, N, States, StripedOdds
from .profile import LANES, LengthModel
from .residues import CODE_OF_RESIDUE, MEMBERS, N_CODES

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROW = SPECIALS * LANES
_N, _B, _E, _J, _C, _SCALE = (LANES * state for state in (N, B, E, J, C, SCALE))
_ENTRY, _INTO_MM, _INTO_IM, _INTO_DM, _MI, _II, _MD, _DD = (LANES * n for n in range(8))
_ZERO, _ONE, _NEVER = F32(0.0), F32(1.0), F32(-np.inf)
_M, _I, _D, _FROM_B = 0, 1, 2, 3
_LETTERS = np.frombuffer(b"MID", np.uint8)
FIRST_LANE = np.array([-np.inf, 0, 0, 0], F32)
CODES = CODE_OF_RESIDUE.astype(np.int64)
N_MEMBERS = np.array([len(members) for members in MEMBERS])
MEMBERS_OF = np.array([[*members, *[0] * (20 - len(members))] for members in MEMBERS])


@kernel
def _decode(forward, backward, forward_cells, cells, length, slots, own_scales, loop):
    """Make posteriors of Backward's ``cells``, M and I, and of N, J, C in ``backward``; whether scaling overflowed."""
    row = 3 * slots * 4
    deletes, inserts = slots * 4, 2 * slots * 4
    factor = _ONE / backward[_N]
    if not own_scales and factor == np.float32(np.inf):
        return True
    for i in range(1, length + 1):
        here, above = i * _ROW, (i - 1) * _ROW
        both = splat(factor * forward[here + _SCALE], 4)
        for place in range(i * row, i * row + deletes, 4):
            store(cells, place, load(forward_cells, place, 4) * load(cells, place, 4) * both)
        for place in range(i * row + inserts, (i + 1) * row, 4):
            store(cells, place, load(forward_cells, place, 4) * load(cells, place, 4) * both)
        for state in (_N, _J, _C):
            backward[here + state] = forward[above + state] * backward[here + state] * loop * factor
        if own_scales:
            factor = factor * (forward[here + _SCALE] / backward[here + _SCALE])
    return factor == np.float32(np.inf)


@inline
def _best_match(ways, q, begin, m, s, d):
    """Best way into the match states of slot q."""
    t = q * WAYS
    from_begin, from_match = minimum(begin, load(ways, t + _ENTRY, 4)), minimum(m, load(ways, t + _INTO_MM, 4))
    from_insert, from_delete = minimum(s, load(ways, t + _INTO_IM, 4)), minimum(d, load(ways, t + _INTO_DM, 4))
    return maximum(maximum(from_begin, from_match), maximum(from_insert, from_delete))


@kernel
def _fill(ways, slots, length, loops, first_lane, specials, posteriors, around, cells):
    """Optimal accuracy scores into ``cells`` and ``specials``; unihit, a way that doesn't exist counts 0.

    No score of a match or delete state is below 0 behind the first residue, so that the less of a score and 0 or ∞ is
    the score of a way that exists, or 0.

    ways: of ``StripedOdds``. posteriors, around: cells and states of the posterior.
    """
    row, deletes, inserts = 3 * slots * 4, slots * 4, 2 * slots * 4
    never, only = splat(_NEVER, 4), load(first_lane, 0, 4)
    for place in range(0, row, 4):
        store(cells, place, never)
    n, b, j, c = _ZERO, _ZERO, _NEVER, _NEVER
    specials[_N], specials[_B], specials[_E], specials[_J], specials[_C] = n, b, _NEVER, j, c
    for i in range(1, length + 1):
        here, above = i * row, (i - 1) * row
        # Lane 0 gets 0 from the left, where nothing is: −∞.
        m = quads_up(load(cells, above + deletes - 4, 4)) + only
        d = quads_up(load(cells, above + inserts - 4, 4)) + only
        s = quads_up(load(cells, above + row - 4, 4)) + only
        begin, best, last = splat(b, 4), never, slots - 1
        cell = _best_match(ways, last, begin, load(cells, above + deletes - 8, 4), load(cells, above + row - 8, 4),
                           load(cells, above + inserts - 8, 4)) + load(posteriors, here + last * 4, 4)
        carry = quads_up(minimum(cell, load(ways, last * WAYS + _MD, 4))) + only
        opened = never
        for q in range(slots):
            t, place = q * WAYS, q * 4
            cell = _best_match(ways, q, begin, m, s, d) + load(posteriors, here + place, 4)
            m, d = load(cells, above + place, 4), load(cells, above + deletes + place, 4)
            s = load(cells, above + inserts + place, 4)
            inserted = maximum(minimum(m, load(ways, t + _MI, 4)), minimum(s, load(ways, t + _II, 4)))
            store(cells, here + place, cell)
            store(cells, here + inserts + place, inserted + load(posteriors, here + inserts + place, 4))
            deleted = maximum(carry, opened)
            store(cells, here + deletes + place, deleted)
            best = maximum(best, maximum(cell, deleted))
            carry = minimum(deleted, load(ways, t + _DD, 4))
            opened = minimum(cell, load(ways, t + _MD, 4))
        # On through the lanes until nothing gets better; what is better than a delete state is not beyond the best.
        q = slots
        for _ in range(4):
            if q < slots:
                break
            carry, q = quads_up(carry) + only, 0
            while q < slots:
                place = here + deletes + q * 4
                before = load(cells, place, 4)
                if not greater_lanes(carry, before):
                    break
                deleted = maximum(carry, before)
                store(cells, place, deleted)
                carry = minimum(deleted, load(ways, q * WAYS + _DD, 4))
                q += 1
        store(specials, i * _ROW + _E, best)
        at = i * _ROW
        e = max(max(specials[at + _E], specials[at + _E + 1]), max(specials[at + _E + 2], specials[at + _E + 3]))
        j = max(j + around[at + _J] if loops else _ZERO, _ZERO)
        c = max(c + around[at + _C] if loops else _ZERO, e)
        n = n + around[at + _N] if loops else _ZERO
        b = max(n, j)
        specials[at + _N], specials[at + _B], specials[at + _E], specials[at + _J], specials[at + _C] = n, b, e, j, c


@kernel
def _cell(k, slots):
    """Place of node k in M of a row."""
    return (k - 1) % slots * 4 + (k - 1) // slots


@kernel
def _way(transitions, which, k, slots, value):
    """``value`` if the transition exists, else −∞."""
    q, lane = (k - 1) % slots, (k - 1) // slots
    return value if transitions[q * STEP + which + lane] > _ZERO else _NEVER


@kernel
def _trace(transitions, slots, length, model_length, loops, specials, around, cells, states, found):
    """Walk back; ``states`` u1[…] from the last to the first match state as 0, 1, 2 for M, I, D; their number.

    found: i8[4], filled with first and last residue and node of match states.
    """
    row, deletes, inserts = 3 * slots * 4, slots * 4, 2 * slots * 4
    i = length
    while loops and specials[(i - 1) * _ROW + _C] + around[i * _ROW + _C] > specials[i * _ROW + _E]:
        i -= 1
    best, state, k = _NEVER, _M, 0
    for q in range(slots):
        for lane in range(4):
            node = lane * slots + q + 1
            if node <= model_length and cells[i * row + q * 4 + lane] >= best:
                best, state, k = cells[i * row + q * 4 + lane], _M, node
        for lane in range(4):
            node = lane * slots + q + 1
            if node <= model_length and cells[i * row + deletes + q * 4 + lane] > best:
                best, state, k = cells[i * row + deletes + q * 4 + lane], _D, node
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
                left = above + _cell(k - 1, slots)
                best = _way(transitions, _INTO_MM, k, slots, cells[left])
                ahead = _way(transitions, _INTO_IM, k, slots, cells[left + inserts])
                if ahead > best:
                    best, state = ahead, _I
                ahead = _way(transitions, _INTO_DM, k, slots, cells[left + deletes])
                if ahead > best:
                    best, state = ahead, _D
            if _way(transitions, _ENTRY, k, slots, specials[(i - 1) * _ROW + _B]) > best:
                state = _FROM_B
            i, k = i - 1, k - 1
        elif state == _D:
            left = i * row + _cell(k - 1, slots)
            of_match = _way(transitions, _MD, k - 1, slots, cells[left])
            state = _M if of_match >= _way(transitions, _DD, k - 1, slots, cells[left + deletes]) else _D
            k -= 1
        else:
            above = (i - 1) * row + _cell(k, slots)
            of_match = _way(transitions, _MI, k, slots, cells[above])
            state = _M if of_match >= _way(transitions, _II, k, slots, cells[above + inserts]) else _I
            i -= 1
    return last


@kernel
def _null2(match, slots, length, posteriors, around, codes, n_members, members, use, odds):
    """Odds f4[28] of residue codes from the expected use of states; ``use`` f4[2 · Q · 4] is working space."""
    row, inserts = 3 * slots * 4, 2 * slots * 4
    weight = _ONE / np.float32(length)
    for q in range(slots):
        store(use, q * 4, load(posteriors, row + q * 4, 4))
        store(use, (slots + q) * 4, load(posteriors, row + inserts + q * 4, 4))
    for i in range(2, length + 1):
        for q in range(slots):
            store(use, q * 4, load(use, q * 4, 4) + load(posteriors, i * row + q * 4, 4))
            store(use, (slots + q) * 4, load(use, (slots + q) * 4, 4) + load(posteriors, i * row + inserts + q * 4, 4))
    for q in range(2 * slots):
        store(use, q * 4, load(use, q * 4, 4) * splat(weight, 4))
    outside = _ZERO
    for state in (_N, _C, _J):
        total = around[_ROW + state]
        for i in range(2, length + 1):
            total = total + around[i * _ROW + state]
        outside = outside + total * weight
    lanes = np.empty(4, np.float32)
    for x in range(len(codes)):
        total = splat(_ZERO, 4)
        emission = codes[x] * slots * 4
        for q in range(slots):
            total = total + load(match, emission + q * 4, 4) * load(use, q * 4, 4)
            total = total + load(use, (slots + q) * 4, 4)
        store(lanes, 0, total)
        odds[codes[x]] = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + outside
    spread_to_degenerate(codes, n_members, members, odds)


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


def decode(lengths: LengthModel, slots: int, forward: States, backward: States, own_scales: bool) -> bool:
    """Make the whole ``backward`` posteriors of M and I, and of N, J and C; False if scaling overflowed."""
    return not _decode(forward.specials, backward.specials, forward.cells, backward.cells, forward.residues, slots,
                       own_scales, lengths.loop)


def optimal_path(odds: StripedOdds, lengths: LengthModel, posterior: States, room: States) -> Path:
    """Optimal accuracy path of an envelope, unihit. ``room``: whole states of the same size, overwritten."""
    loops, length = bool(lengths.loop > 0), posterior.residues
    _fill(odds.ways, odds.slots, length, loops, FIRST_LANE, room.specials, posterior.cells, posterior.specials,
          room.cells)
    states, found = np.empty(length + odds.length + 1, np.uint8), np.empty(4, np.int64)
    count = _trace(odds.transitions, odds.slots, length, odds.length, loops, room.specials, posterior.specials,
                   room.cells, states, found)
    text = _LETTERS[states[:count][::-1]].tobytes().decode()
    start, end, model_start, model_end = found.tolist()
    return Path(text, start, end, model_start, model_end, room.table[-1, C])


def null2_logs(odds: StripedOdds, posterior: States) -> Array32:
    """f32[28]: log odds by residue code from the expected use of each state over an envelope."""
    found = np.empty(N_CODES, F32)
    _null2(odds.match, odds.slots, posterior.residues, posterior.cells, posterior.specials, CODES, N_MEMBERS,
           MEMBERS_OF, np.empty(2 * odds.slots * LANES, F32), found)
    _logs(found)
    return found


def correction(logs: Array32 | None, residues: NDArray[np.uint8], begin: int, end: int, null2: Array32) -> np.float32:
    """f32 sum of the log odds of ``residues[begin:end]``, in order, which are put into ``null2``; without ``logs`` they
    are there already."""
    return _correct(null2 if logs is None else logs, residues, begin, end, null2, logs is None)
