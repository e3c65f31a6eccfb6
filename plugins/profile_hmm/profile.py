"""From a profile HMM to a search profile: log-odds scores, and the three precisions that the search uses.

The search profile is HMMER's multihit local one: any match state can be entered, any match or delete state left, and
the states N, C and J emit the target's residues outside domains. All scores are natural logarithms rounded to f32 and
only then turned into 8-bit costs (MSV), 16-bit words (Viterbi) or odds ratios (Forward); the order of these roundings
is part of the answer. CUDAMPF++ section 2.1 shows the states; HMMER's user's guide explains the configuration.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.classes import dataclass

from .exact_math import F32, LN2, Array32, log, log_f32, logf, odds, round_half_away
from .hmmfile import DD, DM, II, IM, MD, MI, MM, ProfileHmm
from .match_scores import match_scores
from .residues import residues_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

MINUS_INFINITY = -32768
"""Smallest 16-bit word, HMMER's −inf; it adds like any other word."""


@dataclass(frozen=True)
class SearchProfile:
    """Scores of a profile in nats, f32, independent of any target's length.

    Attributes:
        model: the profile HMM.
        match: f32[codes, M + 1], score of each stored residue code at each match state; column 0 is −inf.
        entry: f32[M + 1], B → M_k; column 0 is −inf.
        transitions: f32[M + 1, 7], node k → k + 1; rows 0 and M are −inf.
    """

    model: ProfileHmm
    match: Array32
    entry: Array32
    transitions: Array32

    @property
    def length(self) -> int:
        return self.model.length

    @cached_property
    def bytes(self) -> ByteProfile:
        return ByteProfile.of(self)

    @cached_property
    def words(self) -> WordProfile:
        return WordProfile.of(self)

    @cached_property
    def floats(self) -> FloatProfile:
        return FloatProfile.of(self)


def search_profile(model: ProfileHmm) -> SearchProfile:
    """Configure a model for local multihit search."""
    length = model.length
    transitions = np.full((length + 1, 7), -np.inf, F32)
    transitions[1:length] = log_f32(model.transitions[1:length])
    return SearchProfile(model, match_scores(model.match), _entry_scores(model), transitions)


def _entry_scores(model: ProfileHmm) -> Array32:
    """log of the probability to enter at M_k, from the occupancy of the match states."""
    transitions = model.transitions
    occupancy = np.zeros(model.length + 1, F32)
    occupancy[1] = transitions[0, MI] + transitions[0, MM]
    for k in range(2, model.length + 1):
        staying = occupancy[k - 1] * (transitions[k - 1, MM] + transitions[k - 1, MI])
        returning = (1.0 - float(occupancy[k - 1])) * float(transitions[k - 1, DM])
        occupancy[k] = F32(float(staying) + returning)
    weight = F32(0.0)
    for k in range(1, model.length + 1):
        weight = weight + occupancy[k] * F32(model.length - k + 1)
    entry = log_f32(occupancy / weight)
    entry[0] = -np.inf
    return entry


@dataclass(frozen=True)
class LengthModel:
    """Probabilities of the states N, C and J for a target of ``length`` residues.

    Attributes:
        length: residues of the whole target, also while only a part of it is scored.
        multihit: whether several domains may follow each other (J used).
        loop, move: f32, to stay in N, C or J and to leave it.
        end_loop, end_move: f32, from E to J and from E to C.
    """

    length: int
    multihit: bool

    @cached_property
    def move(self) -> np.float32:
        hits = F32(1.0) if self.multihit else F32(0.0)
        return (F32(2.0) + hits) / (F32(self.length) + F32(2.0) + hits)

    @cached_property
    def loop(self) -> np.float32:
        return F32(1.0) - self.move

    @property
    def end_loop(self) -> np.float32:
        return F32(0.5) if self.multihit else F32(0.0)

    @property
    def end_move(self) -> np.float32:
        return F32(0.5) if self.multihit else F32(1.0)


def null_score(length: int) -> np.float32:
    """Nats of a target of ``length`` residues under the null model: geometric length, background residues."""
    stay = null_stay(length)
    return F32(float(length) * log(stay) + log(1.0 - float(stay)))


def null_stay(length: int) -> np.float32:
    """Probability of one more residue in the null model."""
    return F32(length) / F32(length + 1)


BYTE_SCALE = F32(3.0 / LN2)
BYTE_BASE = 190


@dataclass(frozen=True)
class ByteProfile:
    """Costs in third-bits, u8, for the MSV filter.

    Attributes:
        cost: u8[codes, M], cost + bias of each residue code at each match state, capped at 255.
        bias: what was added to make all costs non-negative.
        entry: B → M_k, one cost for all k.
        end: E → C and E → J.
    """

    cost: NDArray[np.uint8]
    bias: int
    entry: int
    end: int

    @classmethod
    def of(cls, profile: SearchProfile) -> ByteProfile:
        scores = profile.match[:, 1:]
        best = max(F32(0.0), scores[residues_of(len(scores)).code_of_residue].max())
        bias = byte_cost(-best)
        raw = -round_half_away(BYTE_SCALE * scores)
        cost = np.where(raw > 255 - bias, 255, raw + bias).astype(np.uint8)
        length = profile.length
        entry = byte_cost(logf(F32(2.0) / (F32(length) * F32(length + 1))))
        return cls(cost, bias, entry, byte_cost(logf(F32(0.5))))


def byte_cost(score: float | np.floating) -> int:
    """Cost in third-bits of a score in nats, at most 255."""
    return int(min(255.0, -float(round_half_away(BYTE_SCALE * F32(score)))))


def byte_length_cost(length: int) -> int:
    """N, J, C → move for a target of ``length`` residues."""
    return byte_cost(logf(F32(3.0) / F32(length + 3)))


WORD_SCALE = F32(500.0 / LN2)
WORD_BASE = 12000


@dataclass(frozen=True)
class WordProfile:
    """Scores in 1/500 bits, as i32 within the range of i16, for the Viterbi filter; index k − 1 is node k.

    ``into_*`` lead from node k − 1 of the previous row into M_k; ``mi`` and ``ii`` into I_k; ``md`` and ``dd`` from
    node k into D_{k+1}. ``match`` is i32[codes, M], the others i32[M].
    """

    match: NDArray[np.int32]
    entry: NDArray[np.int32]
    into_mm: NDArray[np.int32]
    into_im: NDArray[np.int32]
    into_dm: NDArray[np.int32]
    mi: NDArray[np.int32]
    ii: NDArray[np.int32]
    md: NDArray[np.int32]
    dd: NDArray[np.int32]

    @classmethod
    def of(cls, profile: SearchProfile) -> WordProfile:
        transitions = np.minimum(words(profile.transitions), 0)
        return cls(
            match=words(profile.match[:, 1:]),
            entry=np.minimum(words(profile.entry[1:]), 0),
            into_mm=transitions[:-1, MM],
            into_im=transitions[:-1, IM],
            into_dm=transitions[:-1, DM],
            mi=transitions[1:, MI],
            # An insert loop of score 0 would let a long insertion grow for nothing.
            ii=np.minimum(transitions[1:, II], -1),
            md=transitions[1:, MD],
            dd=transitions[1:, DD],
        )


def words(scores: Array32) -> NDArray[np.int32]:
    """16-bit words of scores in nats, clipped to the range of i16."""
    with np.errstate(invalid="ignore"):
        rounded = round_half_away(WORD_SCALE * scores)
    return np.clip(rounded, MINUS_INFINITY, 32767).astype(np.int32)


def word_move(length: int) -> int:
    """N, J, C → move for a target of ``length`` residues, multihit."""
    return int(words(F32(logf(LengthModel(length, True).move)).reshape(1))[0])


LANES = 4
"""Lanes of HMMER's vectors. Sums run over four interleaved parts of the model, which decides their last bits."""


@dataclass(frozen=True)
class FloatProfile:
    """Odds ratios, f32, striped over four lanes for Forward and Backward.

    Node k sits in slot q = (k − 1) mod Q of lane r = (k − 1) div Q; arrays are f32[Q, 4] (``match``: f32[codes, Q, 4]),
    and cells beyond M are 0. ``into_*``, ``mi``, ``ii``, ``md``, ``dd`` as in ``WordProfile``.
    """

    length: int
    match: Array32
    entry: Array32
    into_mm: Array32
    into_im: Array32
    into_dm: Array32
    mi: Array32
    ii: Array32
    md: Array32
    dd: Array32

    @property
    def slots(self) -> int:
        return self.match.shape[1]

    @cached_property
    def null2_match(self) -> Array32:
        """f32[K, Q, 4]: odds of the model residues."""
        return self.match[residues_of(len(self.match)).code_of_residue]

    @classmethod
    def of(cls, profile: SearchProfile) -> FloatProfile:
        transitions = odds(profile.transitions)
        return cls(
            length=profile.length,
            match=stripe(odds(profile.match[:, 1:])),
            entry=stripe(odds(profile.entry[1:])),
            into_mm=stripe(transitions[:-1, MM]),
            into_im=stripe(transitions[:-1, IM]),
            into_dm=stripe(transitions[:-1, DM]),
            mi=stripe(transitions[1:, MI]),
            ii=stripe(transitions[1:, II]),
            md=stripe(transitions[1:, MD]),
            dd=stripe(transitions[1:, DD]),
        )


def stripe(values: Array32) -> Array32:
    """From f32[..., M] in order of nodes to f32[..., Q, 4] in slots and lanes, padded with 0."""
    length = values.shape[-1]
    slots = max(2, -(-length // LANES))
    padded = np.zeros((*values.shape[:-1], LANES * slots), F32)
    padded[..., :length] = values
    lanes = padded.reshape(*values.shape[:-1], LANES, slots)
    return np.ascontiguousarray(np.swapaxes(lanes, -1, -2))


def unstripe(values: Array32, length: int) -> Array32:
    """From f32[..., Q, 4] back to f32[..., M] in order of nodes."""
    lanes = np.swapaxes(values, -1, -2)
    return np.ascontiguousarray(lanes.reshape(*values.shape[:-2], -1)[..., :length])
