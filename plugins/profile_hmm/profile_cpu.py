"""Search profiles on the CPU: those of ``profile.py``, each of the three
precisions made by a kernel that
goes through the scores once."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from seqloom.core.kernels.jit import inline, kernel

from .exact_math import EXP_COEFFICIENTS, EXP_LIMIT, F32, LOG2_E, logf
from .hmmfile import DD, DM, II, IM, MD, MI, MM, ProfileHmm
from .logs_cpu import logs, room_for_logs
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
_PARTS = ((MM, 0), (IM, 0), (DM, 0), (MI, 1), (II, 1), (MD, 1), (DD, 1))
"""Transitions of ``FloatProfile`` in its order, and whether they are those of the node itself or of the one before."""
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
        entry, moves = np.empty(self.length, np.int32), np.empty(self.transitions.T.shape, np.int32)
        _words(self.match, self.entry, self.transitions, match, entry, moves)
        return WordProfile(match, entry, moves[MM, :-1], moves[IM, :-1], moves[DM, :-1], moves[MI, 1:],
                           np.minimum(moves[II, 1:], -1), moves[MD, 1:], moves[DD, 1:])

    @cached_property
    def floats(self) -> FloatProfile:
        slots = max(2, -(-self.length // LANES))
        match, others = np.empty((len(self.match), slots, LANES), F32), np.empty((8, slots, LANES), F32)
        _striped_odds(self.match, self.entry, self.transitions, np.zeros(slots * LANES, F32), match, others)
        return FloatProfile(self.length, match, *others)


@kernel
def _occupancies(transitions, occupancy):
    """Fill f4[M + 1] with the probability that a match state is used; the weight of all of them together."""
    length = len(occupancy) - 1
    occupancy[0], occupancy[1] = np.float32(0.0), transitions[0, MI] + transitions[0, MM]
    for k in range(2, length + 1):
        staying = occupancy[k - 1] * (transitions[k - 1, MM] + transitions[k - 1, MI])
        returning = (1.0 - np.float64(occupancy[k - 1])) * np.float64(transitions[k - 1, DM])
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


@inline
def _word(score, most):
    """``profile.words`` of one score, at most ``most``."""
    word = max(_rounded(WORD_SCALE * score), np.float64(MINUS_INFINITY))
    return np.int32(min(word, np.float64(most)))


@kernel
def _words(match, entry, transitions, of_match, of_entry, of_transitions):
    """Fill i4[codes, M], i4[M] and i4[7, M + 1] from the scores of ``SearchProfile``."""
    for row in range(of_match.shape[0]):
        for k in range(of_match.shape[1]):
            of_match[row, k] = _word(match[row, k + 1], 32767)
    for k in range(len(of_entry)):
        of_entry[k] = _word(entry[k + 1], 0)
    for row in range(of_transitions.shape[0]):
        for k in range(of_transitions.shape[1]):
            of_transitions[row, k] = _word(transitions[k, row], 0)


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
def _stripe(row_of_odds, striped):
    """Fill f4[Q, 4], laid out as by ``profile.stripe``, from f4[Q · 4] in order of nodes."""
    slots = len(striped)
    for q in range(slots):
        for lane in range(LANES):
            striped[q, lane] = row_of_odds[lane * slots + q]


@kernel
def _striped_odds(match, entry, transitions, row_of_odds, of_match, others):
    """Fill f4[codes, Q, 4] and f4[8, Q, 4], from entry on, of ``FloatProfile`` from the scores of ``SearchProfile``.
    row_of_odds: f4[Q · 4], 0 from M on, working space."""
    length = match.shape[1] - 1
    for row in range(len(of_match)):
        for k in range(length):
            row_of_odds[k] = _odds_of(match[row, k + 1])
        _stripe(row_of_odds, of_match[row])
    for k in range(length):
        row_of_odds[k] = _odds_of(entry[k + 1])
    _stripe(row_of_odds, others[0])
    for part in range(len(_PARTS)):
        way, later = _PARTS[part]
        for k in range(length):
            row_of_odds[k] = _odds_of(transitions[k + later, way])
        _stripe(row_of_odds, others[part + 1])


@kernel
def _scores(match, transitions, background, room, values, scores, of_transitions, occupancy, entry):
    """Fill f4[K, M + 1] with the log odds of f4[M + 1, K] ``match`` over f4[K] ``background``, f4[M + 1, 7] with logs
    of ``transitions`` between nodes, and f4[M + 1] ``entry`` with those of entering. room: of ``room_for_logs``.
    values: f8[7 · (M + 1)], occupancy: f4[M + 1], working space."""
    length, states = len(occupancy) - 1, transitions.shape[1]
    for residue in range(len(scores)):
        for k in range(length):
            values[k] = np.float64(match[k + 1, residue]) / np.float64(background[residue])
        scores[residue, 0] = -_INFINITY
        logs(values[:length], room, scores[residue, 1:])
    weight = _occupancies(transitions, occupancy)
    for k in range(length):
        values[k] = np.float64(occupancy[k + 1] / weight)
    entry[0] = -_INFINITY
    logs(values[:length], room, entry[1:])
    of_transitions[:states] = of_transitions[length * states :] = -_INFINITY
    for k in range(1, length):
        for state in range(states):
            values[(k - 1) * states + state] = np.float64(transitions[k, state])
    logs(values[: (length - 1) * states], room, of_transitions[states : length * states])


def search_profile(model: ProfileHmm) -> SearchProfileCpu:
    """Configure a model for local multihit search."""
    length, residues = model.length, model.residues
    scores, match = (np.empty((rows, length + 1), F32) for rows in (len(residues.letters), len(residues.members)))
    transitions, (entry, occupancy) = np.empty((length + 1, 7), F32), np.empty((2, length + 1), F32)
    _scores(model.match, np.ascontiguousarray(model.transitions), residues.background, room_for_logs(),
            np.empty(7 * (length + 1)), scores, transitions.reshape(-1), occupancy, entry)
    _spread(scores, *residues.arrays, residues.background, match)
    return SearchProfileCpu(model, match, entry, transitions)
