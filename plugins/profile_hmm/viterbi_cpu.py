"""The Viterbi filter in sixteen-bit lanes: some targets at a time, the model striped over the lanes of a vector.

Node k sits in slot q = (k − 1) mod Q of lane r = (k − 1) div Q, so that the node before is in the slot before, and
only at slot 0 a lane further down (Farrar 2007). The way from delete state to delete state is gone from lane to lane
only where it can be worth it: where the delete state that comes to slot 0 can lead to anything that entering the model
anew wouldn't.

Targets of about the same length share the transitions that are loaded for them. The greatest cell of a row decides how
the next row is entered; it is looked for only where a cell is greater than all before.

Insert and delete states are held with the step to the next match state already added, where the model allows it. Sums
are cut off at −32768, and so this can change what is less than that; such ways lead to less than entering anew does
unless entering or that step is dear beyond all use.
"""

import math
from typing import Any

import numpy as np
from seqloom.core.kernels.jit import inline, kernel, made_once
from seqloom.core.kernels.simd import (
    BYTE_LANES,
    aligned,
    greater_lanes,
    highest,
    load,
    maximum,
    shift_in,
    splat,
    store,
)
from seqloom.core.kernels.unroll import specialise

from .exact_math import F32
from .profile import MINUS_INFINITY, WORD_BASE, WORD_SCALE, SearchProfile, WordProfile

LANES = BYTE_LANES // 2
END = -500
"""E → C and E → J of a multihit model: half a chance each, in 1/500 bits."""
LONGEST, DEAREST = 1 << 20, -23_000
"""Residues of a target, at most, and words of entering and of D → M together, at least, where steps to match states can
be added beforehand. A sum cut off at −32768 is at most the greatest cell − 32768 − D → M then; entering anew is worth
that cell − 500 (E → J) − 9,210 (J → B at this length) + entry, or more."""
_LOWEST, _OVERFLOW = np.int16(MINUS_INFINITY), np.int64(1 << 40)
_SCALE, _BASE, _THREE = F32(WORD_SCALE), F32(WORD_BASE), F32(3.0)
TARGETS, FOLDED = 2, 1
"""Targets at a time, and of the template whether words are ``folded``."""
_FOLDED_KINDS = 6
"""Transitions of a slot where steps to match states are added beforehand."""
_ENTRY, _INTO_MM, _MD, _DD, _MI, _II, _INTO_IM, _INTO_DM = range(8)


class StripedWords:
    """16-bit words of a model, striped.

    Attributes:
        slots: Q.
        match: i2[28, Q, LANES]; transitions: i2[Q, 6, LANES], or 8 where ``folded`` isn't, in the order in which the
            kernel needs them, both flat.
        folded: whether insert and delete states are held with the step to the next match state added.
        worth: i2[LANES], of the node in the last slot of each lane, k: what the delete state of k + 1 can gain, at
            most, by going on to a delete state and sometime to a match state, over entering the model there.
    """

    def __init__(self, profile: SearchProfile, longest: int) -> None:
        words = profile.words
        self.length = profile.length
        self.slots = max(2, -(-self.length // LANES))
        self.match = aligned(words.match.shape[0] * self.slots * LANES, np.int16)
        self.transitions = aligned(self.slots * 8 * LANES, np.int16)
        room, self.worth = np.empty((9, self.length), np.int32), np.empty(LANES, np.int16)
        kinds = _lay_out(words.match, words.entry, words.into_mm, words.md, words.dd, words.mi, words.ii, words.into_im,
                         words.into_dm, self.slots, longest <= LONGEST, room, self.match, self.transitions, self.worth)
        self.transitions = self.transitions[: self.slots * kinds * LANES]
        self.folded = kinds == _FOLDED_KINDS


@kernel
def _stripe(rows, slots, by_row, by_slot, striped):
    """Fill i2 ``striped`` with i4[n, M] ``rows``, but −32768 at least and beyond the model. by_row, by_slot: from a
    row to the next one and from slot to slot."""
    for row in range(rows.shape[0]):
        for q in range(slots):
            place = row * by_row + q * by_slot
            for lane in range(LANES):
                k = lane * slots + q
                striped[place + lane] = max(rows[row, k], MINUS_INFINITY) if k < rows.shape[1] else MINUS_INFINITY


@kernel
def _gains(entry, into_dm, dd, gains):
    """Fill i4[M] ``gains``, the worth of ``StripedWords`` at each node; entry, into_dm, dd: of ``WordProfile``."""
    length, least = len(dd), np.int64(MINUS_INFINITY)
    gains[length - 1] = gain = least
    for k in range(length - 1, 0, -1):  # the delete state at place k, of node k + 1
        if k + 2 < length:
            gain = dd[k] + max(gain, into_dm[k + 2] - entry[k + 2])
            gain = min(max(gain, least), np.int64(32767))
        gains[k - 1] = gain


@kernel
def _folds(entry, into_dm, gains):
    """Whether steps to match states can be added beforehand."""
    dearest, step = np.int64(0), np.int64(0)
    for k in range(len(entry)):
        dearest = min(dearest, entry[k])
        into = into_dm[k + 2] if k + 2 < len(entry) else 0
        if k + 1 < len(entry):
            step = min(step, into_dm[k + 1])
        if gains[k] - into > 32767:
            return False
    return dearest + step > DEAREST


@kernel
def _parts(entry, into_mm, md, dd, mi, ii, into_im, into_dm, folded, gains, parts):
    """Fill i4[8, M] with the transitions of ``WordProfile`` in the order of the kernel; if ``folded``, only six, and
    I and D, and ``gains`` with these, are held with the step to the next match state."""
    for k in range(len(entry)):
        from_i = from_d = into_d = 0
        if folded and k + 1 < len(entry):
            from_i, from_d = into_im[k + 1], into_dm[k + 1]
            into_d = into_dm[k + 2] if k + 2 < len(entry) else 0
        parts[_ENTRY, k], parts[_INTO_MM, k] = entry[k], into_mm[k]
        parts[_MD, k], parts[_DD, k] = md[k] + into_d, dd[k] + into_d - from_d
        parts[_MI, k], parts[_II, k] = mi[k] + from_i, ii[k]
        parts[_INTO_IM, k], parts[_INTO_DM, k] = into_im[k], into_dm[k]
        gains[k] -= into_d


@kernel
def _lay_out(match, entry, into_mm, md, dd, mi, ii, into_im, into_dm, slots, folds, room, of_match, transitions, worth):
    """Fill the arrays of ``StripedWords`` from those of ``WordProfile``; how many transitions a slot has. folds:
    whether targets are short enough for steps to be added beforehand. room: i4[9, M], working space."""
    _stripe(match, slots, slots * LANES, LANES, of_match)
    parts, gains = room[:8], room[8]
    _gains(entry, into_dm, dd, gains)
    folded = folds and _folds(entry, into_dm, gains)
    _parts(entry, into_mm, md, dd, mi, ii, into_im, into_dm, folded, gains, parts)
    kinds = _FOLDED_KINDS if folded else len(parts)
    _stripe(parts[:kinds], slots, LANES, kinds * LANES, transitions)
    for lane in range(LANES):
        k = lane * slots + slots - 1
        worth[lane] = max(gains[k], MINUS_INFINITY) if k < len(gains) else MINUS_INFINITY
    return kinds


def worths(words: WordProfile) -> np.ndarray:
    """i2[M]: what the delete state of the next node can gain, at most, by going on to a delete state and sometime to a
    match state, over entering the model there."""
    gains = np.empty(len(words.dd), np.int32)
    _gains(words.entry, words.into_dm, words.dd, gains)
    return gains.astype(np.int16)


@kernel
def _moves(lengths, moves):
    """N, J, C → move, i8[n], for targets of some lengths, multihit."""
    for n in range(len(lengths)):
        move = _THREE / (np.float32(lengths[n]) + _THREE)
        scaled = np.float64(_SCALE * np.float32(math.log(move)))
        moves[n] = np.int64(max(-math.floor(0.5 - scaled), np.float64(MINUS_INFINITY)))


def word_moves(lengths: np.ndarray) -> np.ndarray:
    """N, J, C → move, i8[n], for targets of some lengths, multihit."""
    moves = np.empty(len(lengths), np.int64)
    _moves(lengths, moves)
    return moves


@inline
def _best(best, cells):
    """Greatest value of J so far, behind a row with these match states."""
    end = np.int64(highest(cells))
    return _OVERFLOW if end >= 32767 else max(best, end + END)


@inline
def _begin(best, move):
    """B of the next row."""
    return splat(np.int16(max(max(best, WORD_BASE) + move, np.int64(_LOWEST))), LANES)


@kernel
def _extend_deletes(transitions, kinds, slots, rows, deletes, step, carried):
    """From delete state to delete state on through the lanes until nothing gets better.

    deletes, step: where the delete states begin, and from slot to slot. carried: i2[LANES], what comes to those of
    slot 0.
    """
    carry, q = load(carried, 0, LANES), slots
    for lane in range(LANES):
        if lane:
            if q < slots:
                break
            carry = shift_in(carry, _LOWEST)
        q = 0
        while q < slots:
            place = deletes + q * step
            before = load(rows, place, LANES)
            if not greater_lanes(carry, before):
                break
            better = maximum(carry, before)
            store(rows, place, better)
            carry = better + load(transitions, (q * kinds + _DD) * LANES, LANES)
            q += 1


@kernel
def raw_score(best_j, move):
    """Raw score, f4 nats; +inf for overflow, −inf without a path."""
    if best_j == _OVERFLOW:
        return np.float32(np.inf)
    if best_j == np.int64(_LOWEST):
        return np.float32(-np.inf)
    return (np.float32(best_j) + np.float32(move) - _BASE) / _SCALE - _THREE


@kernel
def _raw_scores(best, moves, scores):
    for n in range(len(best)):
        scores[n] = raw_score(np.int64(best[n]) + END, moves[n])


def raw_scores(best: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """f4[n], raw scores in nats of targets by their best match states, i4[n], that don't overflow, and moves, i8[n]."""
    scores = np.empty(len(best), np.float32)
    _raw_scores(best, moves, scores)
    return scores


def registers(count):  # pragma: no cover - names for the template
    raise NotImplementedError


def unrolled(count):  # pragma: no cover
    raise NotImplementedError


def fill_scores(match, transitions, kinds, worth, slots, moves, residues, begins, ends, order, rows, carried, scores):
    """Template: raw scores, f4[n] nats, of targets ``residues[begins[n]:ends[n]]``; +inf for overflow, −inf without a
    path.

    match, transitions, kinds (of these in a slot), worth, slots: of ``StripedWords``. moves: i8[n], N, J, C → move of
    each. order: i8[n], the targets, the longest first. rows: i2[TARGETS · 3 · Q · LANES], match, insert and delete
    states of a slot of each target, and carried: i2[LANES], working space.
    """
    lowest, gain, step = splat(_LOWEST, LANES), load(worth, 0, LANES), 3 * TARGETS * LANES
    last = (slots - 1) * step
    target = registers(TARGETS)
    length = registers(TARGETS)
    best = registers(TARGETS)
    entering = registers(TARGETS)
    reached = registers(TARGETS)
    emission = registers(TARGETS)
    m = registers(TARGETS)
    s = registers(TARGETS)
    d = registers(TARGETS)
    top = registers(TARGETS)
    deleted = registers(TARGETS)
    for first in range(0, len(order), TARGETS):
        for place in range(0, slots * step, LANES):
            store(rows, place, lowest)
        for n in unrolled(TARGETS):
            target[n] = order[min(first + n, len(order) - 1)]
            length[n] = ends[target[n]] - begins[target[n]]
            best[n] = np.int64(_LOWEST)
            entering[n] = _begin(best[n], moves[target[n]])
            reached[n] = splat(np.int16(best[n] - END), LANES)
        i, going = 0, True
        while going:
            for n in unrolled(TARGETS):
                emission[n] = np.int64(residues[begins[target[n]] + min(i, length[n] - 1)]) * slots * LANES
                m[n] = shift_in(load(rows, last + 3 * n * LANES, LANES), _LOWEST)
                s[n] = shift_in(load(rows, last + (3 * n + 1) * LANES, LANES), _LOWEST)
                d[n] = shift_in(load(rows, last + (3 * n + 2) * LANES, LANES), _LOWEST)
                top[n] = deleted[n] = lowest
            for q in range(slots):
                place, t = q * step, q * kinds * LANES
                entry, into_mm = load(transitions, t, LANES), load(transitions, t + _INTO_MM * LANES, LANES)
                md, dd = load(transitions, t + _MD * LANES, LANES), load(transitions, t + _DD * LANES, LANES)
                mi, ii = load(transitions, t + _MI * LANES, LANES), load(transitions, t + _II * LANES, LANES)
                for n in unrolled(TARGETS):
                    if not FOLDED:
                        s[n] = s[n] + load(transitions, t + _INTO_IM * LANES, LANES)
                        d[n] = d[n] + load(transitions, t + _INTO_DM * LANES, LANES)
                    cell = maximum(maximum(entering[n] + entry, m[n] + into_mm), maximum(s[n], d[n]))
                    cell = cell + load(match, emission[n] + q * LANES, LANES)
                    top[n] = maximum(top[n], cell)
                    m[n] = load(rows, place + 3 * n * LANES, LANES)
                    s[n] = load(rows, place + (3 * n + 1) * LANES, LANES)
                    d[n] = load(rows, place + (3 * n + 2) * LANES, LANES)
                    store(rows, place + 3 * n * LANES, cell)
                    store(rows, place + (3 * n + 1) * LANES, maximum(m[n] + mi, s[n] + ii))
                    store(rows, place + (3 * n + 2) * LANES, deleted[n])
                    deleted[n] = maximum(cell + md, deleted[n] + dd)
            i, going = i + 1, False
            for n in unrolled(TARGETS):
                if i <= length[n] and best[n] != _OVERFLOW:
                    # Seldom is a cell higher than all before; else the next row, entered as this one, doesn't wait.
                    if greater_lanes(top[n], reached[n]):
                        best[n] = _best(best[n], top[n])
                        entering[n] = _begin(best[n], moves[target[n]])
                        reached[n] = splat(np.int16(best[n] - END), LANES)
                    # The delete state of slot 0 is that of the last slot, a lane down.
                    if greater_lanes(deleted[n] + gain, entering[n]):
                        store(carried, 0, shift_in(deleted[n], _LOWEST))
                        _extend_deletes(transitions, kinds, slots, rows, (3 * n + 2) * LANES, step, carried)
                    else:
                        store(rows, (3 * n + 2) * LANES, shift_in(deleted[n], _LOWEST))
                    going |= i < length[n] and best[n] != _OVERFLOW
        for n in unrolled(TARGETS):
            scores[target[n]] = raw_score(best[n], moves[target[n]])


@made_once
def _kernel(folded: bool) -> Any:
    return kernel(specialise(fill_scores, TARGETS=TARGETS, FOLDED=int(folded)))


def viterbi_scores(profile: SearchProfile, residues: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Raw Viterbi filter scores, f4[n] nats, of targets ``residues[begins[n]:ends[n]]``; +inf for overflow, −inf where
    no path exists."""
    lengths = ends - begins
    moves, scores = word_moves(lengths), np.empty(len(begins), np.float32)
    if not len(begins):
        return scores
    words = StripedWords(profile, int(lengths.max()))
    rows, carried = aligned(3 * TARGETS * words.slots * LANES, np.int16), aligned(LANES, np.int16)
    order = np.argsort(-lengths, kind="stable")
    kinds, score = len(words.transitions) // (words.slots * LANES), _kernel(words.folded)
    score(words.match, words.transitions, kinds, words.worth, words.slots, moves, residues, begins, ends, order, rows,
          carried, scores)
    return scores
