"""The Viterbi filter in sixteen-bit lanes: one target at a time, the model striped over the lanes of a vector.

Node k sits in slot q = (k − 1) mod Q of lane r = (k − 1) div Q, so that the node before is in the slot before, and
only at slot 0 a lane further down (Farrar 2007). A row is gone through once for match and insert states, with the way
from delete state to delete state left out; that way is gone again, lane by lane, only where it can be worth it: where a
delete state can lead to anything that entering the model anew wouldn't.
"""

import math

import numpy as np
from seqloom.core.kernels.jit import kernel
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
from .profile import MINUS_INFINITY, WORD_BASE, WORD_SCALE, SearchProfile

LANES = BYTE_LANES // 2
END = -500
"""E → C and E → J of a multihit model: half a chance each, in 1/500 bits."""
_LOWEST = np.int16(MINUS_INFINITY)
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
        self.match = self._striped(words.match).reshape(-1)
        worth = np.empty(self.length, np.int16)
        _worth(words.entry, words.into_dm, words.dd, worth)
        parts = (words.entry, words.into_mm, words.into_im, words.into_dm, words.md, words.mi, words.ii, words.dd,
                 worth)
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


@kernel
def _moves(lengths, moves):
    """N, J, C → move, i8[n], for targets of some lengths, multihit."""
    for n in range(len(lengths)):
        move = _THREE / (np.float32(lengths[n]) + _THREE)
        scaled = np.float64(_SCALE * np.float32(math.log(move)))
        moves[n] = np.int64(max(-math.floor(0.5 - scaled), np.float64(MINUS_INFINITY)))


@kernel
def _scores(match, transitions, slots, moves, residues, begins, ends, rows, scores):
    """Raw scores, f4[n] nats, of targets ``residues[begins[n]:ends[n]]``; +inf for overflow, −inf without a path.

    match, transitions, slots: of ``StripedWords``. moves: i8[n], N, J, C → move of each. rows: i2[3 · Q ·
    LANES], working space: match, insert and delete states of a row.
    """
    lowest = splat(_LOWEST, LANES)
    inserts, deletes, last = slots * LANES, 2 * slots * LANES, (slots - 1) * LANES
    for n in range(len(begins)):
        move = moves[n]
        for place in range(0, 3 * slots * LANES, LANES):
            store(rows, place, lowest)
        begin = WORD_BASE + move
        best_j = np.int64(_LOWEST)
        overflow = False
        for i in range(begins[n], ends[n]):
            emission = np.int64(residues[i]) * slots * LANES
            entering = splat(np.int16(max(begin, MINUS_INFINITY)), LANES)
            m = shift_in(load(rows, last, LANES), _LOWEST)
            ins = shift_in(load(rows, inserts + last, LANES), _LOWEST)
            d = shift_in(load(rows, deletes + last, LANES), _LOWEST)
            carried, best, opened = lowest, lowest, lowest
            for q in range(slots):
                place, t = q * LANES, q * TRANSITIONS * LANES
                here = maximum(entering + load(transitions, t, LANES), m + load(transitions, t + LANES, LANES))
                here = maximum(here, ins + load(transitions, t + 2 * LANES, LANES))
                here = maximum(here, d + load(transitions, t + 3 * LANES, LANES))
                here = here + load(match, emission + place, LANES)
                best = maximum(best, here)
                m, ins = load(rows, place, LANES), load(rows, inserts + place, LANES)
                d = load(rows, deletes + place, LANES)
                store(rows, place, here)
                store(rows, deletes + place, carried)
                carried = here + load(transitions, t + _MD * LANES, LANES)
                opened = maximum(opened, carried + load(transitions, t + _WORTH * LANES, LANES))
                inserted = maximum(m + load(transitions, t + _MI * LANES, LANES),
                                   ins + load(transitions, t + _II * LANES, LANES))
                store(rows, inserts + place, inserted)
            end = np.int64(highest(best))
            if end >= 32767:
                overflow = True
                break
            best_j = max(best_j, end + END, np.int64(_LOWEST))
            begin = max(max(best_j, WORD_BASE) + move, np.int64(_LOWEST))
            # The delete state of slot 0 is that of the last slot, a lane down.
            carried = shift_in(carried, _LOWEST)
            if np.int64(highest(opened)) > begin:
                # From delete state to delete state, and then on through the lanes until nothing gets better.
                for q in range(slots):
                    place = deletes + q * LANES
                    better = maximum(carried, load(rows, place, LANES))
                    store(rows, place, better)
                    carried = better + load(transitions, (q * TRANSITIONS + _DD) * LANES, LANES)
                q = slots
                for _ in range(LANES):
                    if q < slots:
                        break
                    carried, q = shift_in(carried, _LOWEST), 0
                    while q < slots:
                        place = deletes + q * LANES
                        before = load(rows, place, LANES)
                        if not greater_lanes(carried, before):
                            break
                        better = maximum(carried, before)
                        store(rows, place, better)
                        carried = better + load(transitions, (q * TRANSITIONS + _DD) * LANES, LANES)
                        q += 1
            else:
                store(rows, deletes, carried)
        if overflow:
            scores[n] = np.float32(np.inf)
        elif best_j == np.int64(_LOWEST):
            scores[n] = np.float32(-np.inf)
        else:
            scores[n] = (np.float32(best_j) + np.float32(move) - _BASE) / _SCALE - _THREE


def viterbi_scores(words: StripedWords, residues: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Raw Viterbi filter scores, f4[n] nats, of targets ``residues[begins[n]:ends[n]]``; +inf for overflow, −inf where
    no path exists."""
    moves, scores = np.empty(len(begins), np.int64), np.empty(len(begins), np.float32)
    _moves(ends - begins, moves)
    rows = aligned(3 * words.slots * LANES, np.int16)
    _scores(words.match, words.transitions, words.slots, moves, residues, begins, ends, rows, scores)
    return scores
