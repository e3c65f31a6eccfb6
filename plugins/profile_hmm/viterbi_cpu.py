"""The Viterbi filter in sixteen-bit lanes: two targets at a time, the model striped over the lanes of a vector.

Node k sits in slot q = (k − 1) mod Q of lane r = (k − 1) div Q, so that the node before is in the slot before, and
only at slot 0 a lane further down (Farrar 2007). The way from delete state to delete state is gone from lane to lane
only where it can be worth it: where a delete state can lead to anything that entering the model anew wouldn't.

Two targets of about the same length share the transitions that are loaded for them. The greatest cell of a row decides
how the next row is entered; it is looked for only where a cell is greater than all before.
"""

import math

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
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

from .exact_math import F32
from .profile import MINUS_INFINITY, WORD_BASE, WORD_SCALE, SearchProfile, WordProfile

LANES = BYTE_LANES // 2
END = -500
"""E → C and E → J of a multihit model: half a chance each, in 1/500 bits."""
_LOWEST, _OVERFLOW = np.int16(MINUS_INFINITY), np.int64(1 << 40)
_SCALE, _BASE, _THREE = F32(WORD_SCALE), F32(WORD_BASE), F32(3.0)
TRANSITIONS = 9
_ENTRY, _INTO_MM, _INTO_IM, _INTO_DM, _MD, _MI, _II, _DD, _WORTH = range(TRANSITIONS)


class StripedWords:
    """16-bit words of a model, striped.

    Attributes:
        slots: Q.
        match: i2[28, Q, LANES]; transitions: i2[Q, 9, LANES] in the order in which the kernel needs them, both flat.
            The last ones say of node k what the delete state of k + 1 can gain, at most, by going on to a delete state
            and sometime to a match state, over entering the model there.
    """

    def __init__(self, profile: SearchProfile) -> None:
        words = profile.words
        self.length = profile.length
        self.slots = max(2, -(-self.length // LANES))
        self.match = aligned(words.match.shape[0] * self.slots * LANES, np.int16)
        self.match[:] = self._striped(words.match).reshape(-1)
        parts = (words.entry, words.into_mm, words.into_im, words.into_dm, words.md, words.mi, words.ii, words.dd,
                 worths(words))
        self.transitions = aligned(self.slots * TRANSITIONS * LANES, np.int16)
        self.transitions[:] = np.stack([self._striped(part) for part in parts], axis=1).reshape(-1)

    def _striped(self, values: np.ndarray) -> np.ndarray:
        """i2[..., Q, LANES] of [..., M]; −32768 beyond the model."""
        padded = np.full((*values.shape[:-1], LANES * self.slots), MINUS_INFINITY, np.int16)
        padded[..., : self.length] = values
        return np.ascontiguousarray(np.swapaxes(padded.reshape(*values.shape[:-1], LANES, self.slots), -1, -2))


@kernel
def _worth(entry, into_dm, dd, worth):
    """Fill i2[M] ``worth``; entry, into_dm, dd: of ``WordProfile``."""
    length, least = len(dd), np.int64(MINUS_INFINITY)
    worth[length - 1] = gain = least
    for k in range(length - 1, 0, -1):  # the delete state at place k, of node k + 1
        if k + 2 < length:
            gain = dd[k] + max(gain, into_dm[k + 2] - entry[k + 2])
            gain = min(max(gain, least), np.int64(32767))
        worth[k - 1] = gain


def worths(words: WordProfile) -> np.ndarray:
    """i2[M]: what the delete state of the next node can gain, at most, by going on to a delete state and sometime to a
    match state, over entering the model there."""
    worth = np.empty(len(words.dd), np.int16)
    _worth(words.entry, words.into_dm, words.dd, worth)
    return worth


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
def _entered(entering, m, inserted, deleted, entry, into_mm, into_im, into_dm, emission):
    """Match states of a slot from B, M, I and D of the nodes and row before."""
    return maximum(maximum(entering + entry, m + into_mm), maximum(inserted + into_im, deleted + into_dm)) + emission


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
def _extend_deletes(transitions, slots, rows, deletes, carried):
    """From delete state to delete state on through the lanes until nothing gets better.

    deletes: where the delete states begin. carried: i2[LANES], what comes to those of slot 0.
    """
    carry, q = load(carried, 0, LANES), slots
    for lane in range(LANES):
        if lane:
            if q < slots:
                break
            carry = shift_in(carry, _LOWEST)
        q = 0
        while q < slots:
            place = deletes + q * LANES
            before = load(rows, place, LANES)
            if not greater_lanes(carry, before):
                break
            better = maximum(carry, before)
            store(rows, place, better)
            carry = better + load(transitions, (q * TRANSITIONS + _DD) * LANES, LANES)
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


@kernel
def _scores(match, transitions, slots, moves, residues, begins, ends, order, rows, carried, scores):
    """Raw scores, f4[n] nats, of targets ``residues[begins[n]:ends[n]]``; +inf for overflow, −inf without a path.

    match, transitions, slots: of ``StripedWords``. moves: i8[n], N, J, C → move of each. order: i8[n], the targets,
    the longest first. rows: i2[6 · Q · LANES], match, insert and delete states of a row of two targets, and carried:
    i2[LANES], working space.
    """
    lowest = splat(_LOWEST, LANES)
    inserts, deletes, last, other = slots * LANES, 2 * slots * LANES, (slots - 1) * LANES, 3 * slots * LANES
    for pair in range(0, len(order), 2):
        one, two = order[pair], order[min(pair + 1, len(order) - 1)]
        for place in range(0, 2 * other, LANES):
            store(rows, place, lowest)
        best1 = best2 = np.int64(_LOWEST)
        entering1, entering2 = _begin(best1, moves[one]), _begin(best2, moves[two])
        reached1 = reached2 = splat(np.int16(best1 - END), LANES)
        length1, length2 = ends[one] - begins[one], ends[two] - begins[two]
        i = 0
        while i < length1 and (best1 != _OVERFLOW or (i < length2 and best2 != _OVERFLOW)):
            emission1 = np.int64(residues[begins[one] + i]) * slots * LANES
            emission2 = np.int64(residues[begins[two] + min(i, length2 - 1)]) * slots * LANES
            m1 = shift_in(load(rows, last, LANES), _LOWEST)
            s1 = shift_in(load(rows, inserts + last, LANES), _LOWEST)
            d1 = shift_in(load(rows, deletes + last, LANES), _LOWEST)
            m2 = shift_in(load(rows, other + last, LANES), _LOWEST)
            s2 = shift_in(load(rows, other + inserts + last, LANES), _LOWEST)
            d2 = shift_in(load(rows, other + deletes + last, LANES), _LOWEST)
            carried1, highest1, opened1 = lowest, lowest, lowest
            carried2, highest2, opened2 = lowest, lowest, lowest
            for q in range(slots):
                place, t = q * LANES, q * TRANSITIONS * LANES
                entry, into_mm = load(transitions, t, LANES), load(transitions, t + _INTO_MM * LANES, LANES)
                into_im = load(transitions, t + _INTO_IM * LANES, LANES)
                into_dm = load(transitions, t + _INTO_DM * LANES, LANES)
                here1 = _entered(entering1, m1, s1, d1, entry, into_mm, into_im, into_dm,
                                 load(match, emission1 + place, LANES))
                here2 = _entered(entering2, m2, s2, d2, entry, into_mm, into_im, into_dm,
                                 load(match, emission2 + place, LANES))
                highest1, highest2 = maximum(highest1, here1), maximum(highest2, here2)
                m1, s1 = load(rows, place, LANES), load(rows, inserts + place, LANES)
                d1, m2 = load(rows, deletes + place, LANES), load(rows, other + place, LANES)
                s2, d2 = load(rows, other + inserts + place, LANES), load(rows, other + deletes + place, LANES)
                store(rows, place, here1)
                store(rows, other + place, here2)
                store(rows, deletes + place, carried1)
                store(rows, other + deletes + place, carried2)
                md, worth = load(transitions, t + _MD * LANES, LANES), load(transitions, t + _WORTH * LANES, LANES)
                new1, new2, dd = here1 + md, here2 + md, load(transitions, t + _DD * LANES, LANES)
                carried1, carried2 = maximum(new1, carried1 + dd), maximum(new2, carried2 + dd)
                opened1, opened2 = maximum(opened1, new1 + worth), maximum(opened2, new2 + worth)
                mi, ii = load(transitions, t + _MI * LANES, LANES), load(transitions, t + _II * LANES, LANES)
                store(rows, inserts + place, maximum(m1 + mi, s1 + ii))
                store(rows, other + inserts + place, maximum(m2 + mi, s2 + ii))
            # The delete state of slot 0 is that of the last slot, a lane down.
            carried1, carried2 = shift_in(carried1, _LOWEST), shift_in(carried2, _LOWEST)
            if best1 != _OVERFLOW:
                # Seldom is a cell higher than all before; else the next row, entered as this one, doesn't wait for it.
                if greater_lanes(highest1, reached1):
                    best1 = _best(best1, highest1)
                    entering1, reached1 = _begin(best1, moves[one]), splat(np.int16(best1 - END), LANES)
                if greater_lanes(opened1, entering1):
                    store(carried, 0, carried1)
                    _extend_deletes(transitions, slots, rows, deletes, carried)
                else:
                    store(rows, deletes, carried1)
            if i < length2 and best2 != _OVERFLOW:
                if greater_lanes(highest2, reached2):
                    best2 = _best(best2, highest2)
                    entering2, reached2 = _begin(best2, moves[two]), splat(np.int16(best2 - END), LANES)
                if greater_lanes(opened2, entering2):
                    store(carried, 0, carried2)
                    _extend_deletes(transitions, slots, rows, other + deletes, carried)
                else:
                    store(rows, other + deletes, carried2)
            i += 1
        scores[one], scores[two] = raw_score(best1, moves[one]), raw_score(best2, moves[two])


def viterbi_scores(words: StripedWords, residues: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Raw Viterbi filter scores, f4[n] nats, of targets ``residues[begins[n]:ends[n]]``; +inf for overflow, −inf where
    no path exists."""
    moves, scores = word_moves(ends - begins), np.empty(len(begins), np.float32)
    rows, carried = aligned(6 * words.slots * LANES, np.int16), aligned(LANES, np.int16)
    order = np.argsort(begins - ends, kind="stable")
    _scores(words.match, words.transitions, words.slots, moves, residues, begins, ends, order, rows, carried, scores)
    return scores
