"""Search profiles on the CPU: those of ``profile.py``, each of the three
precisions made by a kernel that
goes through the scores once."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from seqloom.core.kernels.jit import inline, kernel

from .exact_math import EXP_COEFFICIENTS, EXP_LIMIT, F32, LOG2_E, Array32, logf
from .hmmfile import DD, DM, II, IM, MD, MI, MM, ProfileHmm
from .logs_cpu import log_f32
from .profile import (
    BYTE_SCALE,
    LANES,
    MINUS_INFINITY,
    WORD_SCALE,
    ByteProfile,
    FloatProfile,
    SearchProfile,
    WordProfile,
    byte_cost,
)
from .residues import residues_of

_ZERO, _ONE, _HALF = F32(0.0), F32(1.0), F32(0.5)
_C0, _C1, _C2, _C3, _C4, _C5 = EXP_COEFFICIENTS
_LOG2_E, _LN2_HIGH, _LN2_LOW = F32(LOG2_E), F32(0.693359375), F32(-2.12194440e-4)
_INFINITY = F32(np.inf)
_BIAS = 127
_POWERS = (np.arange(256, dtype=np.int32) << 23).view(F32)
"""2ⁿ at place n + 127, as the bits of f32 have it: 0 at the first place and ∞ at the last."""


class SearchProfileCpu(SearchProfile):
    __doc__ = SearchProfile.__doc__

    @cached_property
    def bytes(self) -> ByteProfile:
        scores, length = self.match, self.length
        bias = byte_cost(-_greatest(scores, residues_of(len(scores)).code_of_residue))
        cost = np.empty((len(scores), length), np.uint8)
        _costs(scores, bias, cost)
        entry = byte_cost(logf(F32(2.0) / (F32(length) * F32(length + 1))))
        return ByteProfile(cost, bias, entry, byte_cost(logf(F32(0.5))))

    @cached_property
    def words(self) -> WordProfile:
        match = np.empty((len(self.match), self.length), np.int32)
        entry, t = np.empty((1, self.length), np.int32), np.empty(self.transitions.T.shape, np.int32)
        _words(self.match[:, 1:], 32767, match)
        _words(self.entry[None, 1:], 0, entry)
        _words(self.transitions.T, 0, t)
        return WordProfile(match, entry[0], t[MM, :-1], t[IM, :-1], t[DM, :-1], t[MI, 1:], np.minimum(t[II, 1:], -1),
                           t[MD, 1:], t[DD, 1:])

    @cached_property
    def floats(self) -> FloatProfile:
        before, behind = self.transitions[:-1].T, self.transitions[1:].T
        into, beside = _striped_odds(before[[MM, IM, DM]]), _striped_odds(behind[[MI, II, MD, DD]])
        return FloatProfile(self.length, _striped_odds(self.match[:, 1:]), _striped_odds(self.entry[None, 1:])[0],
                            *into, *beside)


@kernel
def _occupancies(t, occupancy):
    """Fill f4[M + 1] with the probability that a match state is used; the weight of all of them together."""
    length = len(occupancy) - 1
    occupancy[0], occupancy[1] = np.float32(0.0), t[0, MI] + t[0, MM]
    for k in range(2, length + 1):
        staying = occupancy[k - 1] * (t[k - 1, MM] + t[k - 1, MI])
        returning = (1.0 - np.float64(occupancy[k - 1])) * np.float64(t[k - 1, DM])
        occupancy[k] = np.float32(np.float64(staying) + returning)
    weight = np.float32(0.0)
    for k in range(1, length + 1):
        weight = weight + occupancy[k] * np.float32(length - k + 1)
    return weight


@kernel
def _spread(rows, codes, n_members, members, background, table):
    """Fill f4[codes, n] with f4[K, n] ``rows`` of the model residues, with ``residues.expected_score`` of degenerate
    ones, and with −∞ for codes without members. The others: of ``ResidueSet.arrays``; background: f4[K]."""
    for code in range(len(table)):
        first, row = members[code, 0], table[code]
        if n_members[code] == 0:
            row[:] = -_INFINITY
        elif codes[first] == code:
            row[:] = rows[first]
        else:
            row[:], weight = _ZERO, _ZERO
            for n in range(n_members[code]):
                share, of_member = background[members[code, n]], rows[members[code, n]]
                weight = weight + share
                for k in range(len(row)):
                    row[k] = row[k] + of_member[k] * share
            for k in range(len(row)):
                row[k] = row[k] / weight


@inline
def _rounded(score):
    """``exact_math.round_half_away`` of an f32."""
    away = np.floor(np.float64(abs(score)) + 0.5)
    return away if score > _ZERO else -away


@kernel
def _greatest(scores, codes):
    """Greatest score of the model residues, at least 0."""
    best = _ZERO
    for code in codes:
        for score in scores[code, 1:]:
            best = max(best, score)
    return best


@kernel
def _costs(scores, bias, cost):
    """Fill u1[codes, M] with the costs of ``ByteProfile``."""
    for code in range(len(cost)):
        for k in range(cost.shape[1]):
            cost[code, k] = np.int64(min(-_rounded(BYTE_SCALE * scores[code, k + 1]) + bias, 255.0))


@kernel
def _words(scores, most, found):
    """Fill i4[rows, n] with ``profile.words`` of ``scores``, at most ``most``."""
    for row in range(found.shape[0]):
        for k in range(found.shape[1]):
            word = max(_rounded(WORD_SCALE * scores[row, k]), np.float64(MINUS_INFINITY))
            found[row, k] = np.int32(min(word, np.float64(most)))


@inline
def _odds_of(score):
    """``exact_math.odds`` of one score."""
    inside = abs(score) < EXP_LIMIT
    x = score if inside else _ZERO
    power = np.floor(x * _LOG2_E + _HALF)
    x = x - power * _LN2_HIGH
    x = x - power * _LN2_LOW
    y = ((((_C0 * x + _C1) * x + _C2) * x + _C3) * x + _C4) * x + _C5
    y = (y * (x * x) + x + _ONE) * _POWERS[np.int64(power) + _BIAS]
    return y if inside else _INFINITY if score > _ZERO else _ZERO


@kernel
def _fill_odds(scores, row_of_odds, striped):
    """Fill f4[rows, Q, 4] with the odds of f4[rows, M] ``scores``, laid out as by ``profile.stripe``. row_of_odds:
    f4[Q · 4], 0 from M on, working space."""
    slots, length = striped.shape[1], scores.shape[1]
    for row in range(len(scores)):
        for k in range(length):
            row_of_odds[k] = _odds_of(scores[row, k])
        for q in range(slots):
            for lane in range(LANES):
                striped[row, q, lane] = row_of_odds[lane * slots + q]


def _striped_odds(scores: Array32) -> Array32:
    """f32[rows, Q, 4] of f32[rows, M] scores."""
    slots = max(2, -(-scores.shape[1] // LANES))
    striped = np.empty((len(scores), slots, LANES), F32)
    _fill_odds(scores, np.zeros(slots * LANES, F32), striped)
    return striped


def search_profile(model: ProfileHmm) -> SearchProfileCpu:
    """Configure a model for local multihit search."""
    length, residues = model.length, model.residues
    scores = np.full((len(residues.letters), length + 1), -np.inf, F32)
    scores[:, 1:] = log_f32(model.match[1:].astype(np.float64) / residues.background.astype(np.float64)).T
    match = np.empty((len(residues.members), length + 1), F32)
    _spread(scores, *residues.arrays, residues.background, match)
    transitions = np.full((length + 1, 7), -np.inf, F32)
    transitions[1:length] = log_f32(model.transitions[1:length])
    occupancy = np.empty(length + 1, F32)
    weight = _occupancies(np.ascontiguousarray(model.transitions), occupancy)
    entry = log_f32(occupancy / F32(weight))
    entry[0] = -np.inf
    return SearchProfileCpu(model, match, entry, transitions)
