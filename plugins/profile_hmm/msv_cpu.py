"""SSV in eight-bit lanes: a model against as many interleaved targets as a vector has lanes.

SSV asks for the best single ungapped segment. A segment that ends at (node, residue) is the one that ended a diagonal
step before, or a new one, plus the cell's score: one saturating addition, as lanes hold score − 128 and saturation at
the lower end is the floor of 0. Its scores decide nearly every pair; where a second segment could count (a few in a
hundred), MSV goes over the target again, residue by residue (``msv_striped_cpu.py``). Where SSV is all that is asked
for, so does SSV for the few scores that have left what the lanes' scores are exact for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.index import Index
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import (
    BYTE_LANES,
    LOOKUP_ENTRIES,
    LOOKUP_STRIDE,
    aligned,
    load,
    lookup,
    lookup_tables,
    maximum,
    splat,
    store,
)
from seqloom.plugins.common.lanes import laid_out

from .exact_math import F32
from .p_values_cpu import gumbel
from .profile import BYTE_BASE, BYTE_SCALE, ByteProfile

LANES = BYTE_LANES
STRIDE = LOOKUP_STRIDE
_THREE = F32(3.0)
_BASE = F32(BYTE_BASE)
_NO_SSV = 127
"""Sum of costs from which HMMER doesn't try SSV, and S + bias from which SSV overflows."""
_EXACT = 128
"""Up to here best segments are those of the profile: lanes take at most 128 off at a time, costs are up to 255."""


def _costs(profile: ByteProfile) -> np.ndarray:
    """u1[M, 32]: cost of each residue code at each match state; 255 for padding."""
    codes, length = profile.cost.shape
    costs = np.full((length, LOOKUP_ENTRIES), 255, np.uint8)
    costs[:, :codes] = profile.cost.T
    return costs


def look_up_scores(profile: ByteProfile) -> np.ndarray:
    """Flat look-up tables, i1, of bias − cost of each residue code at each match state; −128 for padding."""
    scores = np.maximum(np.int16(profile.bias) - _costs(profile), -128).astype(np.int8)
    scores[:, len(profile.cost) :] = -128
    return lookup_tables(scores)


@kernel
def _segments(tables, length, columns, starts, first_group, last_group, edge, best):
    """Best segment score − 128 of the targets of some groups, saturating.

    tables: of ``look_up_scores``. columns, starts: of an index of kind "lanes". edge: i1[length · LANES], working
    space. best: i1[groups · LANES], filled for these groups.
    """
    floor = splat(np.int8(-128), LANES)
    for group in range(first_group, last_group):
        top, also = floor, floor
        for k in range(length):
            store(edge, k * LANES, floor)
        for begin in range(starts[group], starts[group + 1], 8 * LANES):
            x0, x1 = load(columns, begin, LANES), load(columns, begin + LANES, LANES)
            x2, x3 = load(columns, begin + 2 * LANES, LANES), load(columns, begin + 3 * LANES, LANES)
            x4, x5 = load(columns, begin + 4 * LANES, LANES), load(columns, begin + 5 * LANES, LANES)
            x6, x7 = load(columns, begin + 6 * LANES, LANES), load(columns, begin + 7 * LANES, LANES)
            d0 = d1 = d2 = d3 = d4 = d5 = d6 = d7 = floor
            for k in range(length):
                left = load(edge, k * LANES, LANES)
                table = k * STRIDE
                h0, h1 = d0 + lookup(tables, table, x0), d1 + lookup(tables, table, x1)
                h2, h3 = d2 + lookup(tables, table, x2), d3 + lookup(tables, table, x3)
                h4, h5 = d4 + lookup(tables, table, x4), d5 + lookup(tables, table, x5)
                h6, h7 = d6 + lookup(tables, table, x6), d7 + lookup(tables, table, x7)
                top = maximum(maximum(top, h0), maximum(maximum(h1, h2), h3))
                also = maximum(maximum(also, h4), maximum(maximum(h5, h6), h7))
                store(edge, k * LANES, h7)
                d0, d1, d2, d3, d4, d5, d6, d7 = left, h0, h1, h2, h3, h4, h5, h6
        store(best, group * LANES, maximum(top, also))


@kernel
def _lengths(lengths, costs, nulls):
    """Cost of N, J, C → move, i2, and null score, f32 nats, of targets of some lengths."""
    for n in range(len(lengths)):
        length = lengths[n]
        stay = np.float32(length) / np.float32(length + 1)
        nulls[n] = np.float32(np.float64(length) * math.log(np.float64(stay)) + math.log(1.0 - np.float64(stay)))
        scaled = BYTE_SCALE * np.float32(math.log(np.float32(3.0) / np.float32(length + 3)))
        costs[n] = np.int16(min(255.0, math.floor(-np.float64(scaled) + 0.5)))


@inline
def _decided(best, length_cost, bias, entry, end, multihit):
    """What a best segment score says: value of J before the first and behind the last residue, overflow, and that rows
    have to say it: of MSV (``multihit``), or of SSV."""
    begin = length_cost + entry
    no_ssv = begin + end + bias >= _NO_SSV
    begin_j = 0 if no_ssv else max(BYTE_BASE - begin - end, 0)
    if not multihit:
        entered = max(BYTE_BASE - begin, 0)
        overflow = best > 0 and entered + best + bias >= 255
        again = best > _EXACT and entered + _EXACT + 1 + bias < 255
        return begin_j, max(entered + best - end, begin_j) if best > 0 else begin_j, overflow, again
    ended = best + BYTE_BASE - begin
    # A segment that overflows in SSV does so in MSV, whose cells are never less.
    overflow = begin <= BYTE_BASE and ended >= 255 - bias
    again = not overflow and (no_ssv or ended - end > BYTE_BASE or best >= _NO_SSV - bias)
    return begin_j, max(ended - end, begin_j), overflow, again


@inline
def _raw_score(ended_j, overflow, length_cost):
    """Nats, f32."""
    return np.float32(np.inf) if overflow else (np.float32(ended_j - length_cost) - _BASE) / BYTE_SCALE - _THREE


@kernel
def _decide(best, length_costs, biases, entries, ends, multihit, begin_j, ended_j, overflow, again):
    """What SSV says of each target by each model. best: u1[models, n], best segment scores."""
    for model in range(best.shape[0]):
        bias, entry, end = biases[model], entries[model], ends[model]
        for n in range(best.shape[1]):
            begin_j[model, n], ended_j[model, n], overflow[model, n], again[model, n] = _decided(
                np.int64(best[model, n]), length_costs[n], bias, entry, end, multihit)


@kernel
def _p_values(ended_j, overflow, length_costs, nulls, mus, rates, scores, p_values):
    """Raw scores in nats and P-values (Gumbel) from values of J."""
    for model in range(ended_j.shape[0]):
        mu, rate = mus[model], rates[model]
        for n in range(ended_j.shape[1]):
            score = _raw_score(ended_j[model, n], overflow[model, n], length_costs[n])
            scores[model, n], p_values[model, n] = score, gumbel(score, nulls[n], mu, rate)


@kernel
def _least(length_costs, nulls, bias, entry, end, mu, rate, largest_p, multihit, cutoffs):
    """Each of what decides a pair only comes to hold as the score becomes greater."""
    for n in range(len(cutoffs)):
        low, high = 0, 256
        while low < high:
            best = (low + high) // 2
            _, ended_j, overflow, again = _decided(best, length_costs[n], bias, entry, end, multihit)
            score = _raw_score(ended_j, overflow, length_costs[n])
            if again or gumbel(score, nulls[n], mu, rate) <= largest_p:
                high = best
            else:
                low = best + 1
        cutoffs[n] = low


def length_costs(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cost of N, J, C → move i2[n] and null score f4[n] of targets of some lengths."""
    costs, nulls = np.empty(len(lengths), np.int16), np.empty(len(lengths), F32)
    _lengths(lengths, costs, nulls)
    return costs, nulls


def segment_scores(tables: np.ndarray, length: int, lanes: Index, first_group: int, last_group: int,
                   best: np.ndarray) -> None:
    """Best ungapped segments of the targets of some groups of an index of kind "lanes": i1 ``best``, score − 128.

    ``tables``: of ``look_up_scores``, for a model of this length.
    """
    edge = aligned(length * LANES, np.int8)
    columns, starts = laid_out(lanes, first_group, last_group)
    _segments(tables, length, columns, starts, 0, last_group - first_group, edge,
              best[first_group * LANES : last_group * LANES])


class Decided(NamedTuple):
    """What best segments say of n targets by some models, [models, n] each.

    Attributes:
        begin_j, ended_j: i2, value of J before and behind the target. overflow: bool, whether scores overflow.
        again: bool, whether MSV has to look again; of SSV alone, whether ``by_rows`` has to say what it scores.
    """

    begin_j: np.ndarray
    ended_j: np.ndarray
    overflow: np.ndarray
    again: np.ndarray


def decided(profiles: Sequence[ByteProfile], best: np.ndarray, costs: np.ndarray, multihit: bool = True) -> Decided:
    """What the best segments u1[models, n] say of targets with costs i2[n]: of MSV (``multihit``), or of SSV alone."""
    begin_j, ended_j = np.empty((2, *best.shape), np.int16)
    overflow, again = np.empty((2, *best.shape), np.bool_)
    _decide(best, costs, *(np.array([getattr(profile, field) for profile in profiles])
                           for field in ("bias", "entry", "end")), multihit, begin_j, ended_j, overflow, again)
    return Decided(begin_j, ended_j, overflow, again)


def least_segments(profile: ByteProfile, costs: np.ndarray, nulls: np.ndarray, mu: float, rate: float,
                   largest_p: float, multihit: bool = True) -> np.ndarray:
    """i2[n], of targets with costs i2[n] and null scores f4[n]: the least score of a best segment that passes MSV
    (``multihit``) or SSV alone with a P-value of ``largest_p``, or of which ``by_rows`` decides; 256 where none does.
    """
    cutoffs = np.empty(len(costs), np.int16)
    _least(costs, nulls, profile.bias, profile.entry, profile.end, mu, rate, largest_p, multihit, cutoffs)
    return cutoffs


def scores_and_p_values(ended_j: np.ndarray, overflow: np.ndarray, costs: np.ndarray, nulls: np.ndarray,
                        mus: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Raw scores f4[models, n] in nats, +inf for overflow, and P-values f8[models, n], from values of J i2[models, n],
    under distributions f8[models] of scores."""
    scores, p_values = np.empty(ended_j.shape, F32), np.empty(ended_j.shape, np.float64)
    _p_values(ended_j, overflow, costs, nulls, mus, rates, scores, p_values)
    return scores, p_values
