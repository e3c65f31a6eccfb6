"""SSV of one target at a time, the model striped over the lanes: for CPUs where a look-up by residue is dear, or a
maximum.

Node k sits in slot q = (k − 1) mod Q of lane r = (k − 1) div Q. A diagonal goes from slot to slot, residue by residue,
and from the last slot to the first one a lane further on. ``WIDTH`` slots side by side, a band, are followed along the
whole target, each in a register, so that a cell is a sum with what stands in memory and a maximum (Knudsen's SSV in
HMMER 3.1 does the same in sixteen lanes). Bands are as wide as registers allow, and of about the same width.

Where sums that saturate and maxima share one port of the processor, a sieve comes first, which asks of each cell only
whether it is above what the target needs to pass: that is a comparison under a mask, beside the next sum.
"""

from itertools import groupby
from typing import Any

import numpy as np
from seqloom.core.kernels.jit import kernel, made_once
from seqloom.core.kernels.simd import (
    ALL_LANES,
    BYTE_LANES,
    HAS_BYTE_PERMUTE,
    SATURATES_ON_ONE_PORT,
    WORKS_BY_HALVES,
    aligned,
    every_lane,
    highest,
    load,
    mask_bits,
    maximum,
    move_up,
    shift_in,
    splat,
    within,
)
from seqloom.core.kernels.unroll import specialise

from .profile import ByteProfile

LANES = BYTE_LANES
WIDEST, NARROWEST = (10, 2) if HAS_BYTE_PERMUTE else (8, 4)
"""Slots of a band, at most and at least: with fewer, sums wait for each other and residues are read too often."""
_FLOOR = np.int8(-128)
SIEVES = SATURATES_ON_ONE_PORT
"""Whether it pays to ask first which targets have a segment that suffices."""
LEAST_LENGTH = 2 * LANES if SIEVES else 5 * LANES // 2 if WORKS_BY_HALVES or not HAS_BYTE_PERMUTE else 1 << 30
"""Shortest model that goes faster this way than targets side by side."""


WIDTH, SIEVE, MASKS = WIDEST, False, 6
"""In the template constants that are filled in; masks take turns, as each comparison waits for the one before."""


def registers(count):  # pragma: no cover - names for the template
    raise NotImplementedError


def unrolled(count):  # pragma: no cover
    raise NotImplementedError


def segments(tables, row, slots, first_slot, last_slot, residues, begins, ends, best, cutoffs, above):
    """Template: what the best segment scores − 128, saturating, of targets ``residues[begins[n]:ends[n]]`` are, on
    diagonals that begin in bands of slots from ``first_slot`` to ``last_slot``.

    i1[n] ``best`` is raised to them. With ``SIEVE``, bool[n] ``above`` is set instead where one is greater than i1[n]
    ``cutoffs``, and in few other places: what leaves the last lane goes on in the first one, so no score is too small.
    tables, row, slots: of ``StripedScores``.
    """
    floor = splat(_FLOOR, LANES)
    for n in range(len(begins)):
        if SIEVE:
            cutoff = splat(cutoffs[n], LANES)
            still = registers(MASKS)
            for c in unrolled(MASKS):
                still[c] = every_lane(LANES)
        else:
            top, also = floor, floor
        for band in range(first_slot, last_slot, WIDTH):
            h = registers(WIDTH)
            for w in unrolled(WIDTH):
                h[w] = floor
            s, i, end = band, begins[n], ends[n]
            while i < end:
                run = min(end - i, slots - WIDTH + 1 - s)
                for r in range(run):
                    place = np.int64(residues[np.uint64(i + r)]) * row + (s + r) * LANES
                    for w in unrolled(WIDTH):
                        h[w] = h[w] + load(tables, place + w * LANES, LANES)
                    for w in unrolled(WIDTH):
                        if SIEVE:
                            still[w % MASKS] = within(h[w], cutoff, still[w % MASKS])
                        elif w % 2:
                            also = maximum(also, h[w])
                        else:
                            top = maximum(top, h[w])
                i += run
                s += run
                for last in unrolled(WIDTH - 1):
                    if i < end:
                        if SIEVE:
                            h[WIDTH - 1 - last] = move_up(h[WIDTH - 1 - last], h[WIDTH - 1 - last], 1)
                        else:
                            h[WIDTH - 1 - last] = shift_in(h[WIDTH - 1 - last], _FLOOR)
                        place = np.int64(residues[np.uint64(i)]) * row + s * LANES
                        for w in unrolled(WIDTH):
                            h[w] = h[w] + load(tables, place + w * LANES, LANES)
                        for w in unrolled(WIDTH):
                            if SIEVE:
                                still[(last * WIDTH + w) % MASKS] = within(h[w], cutoff,
                                                                           still[(last * WIDTH + w) % MASKS])
                            elif w % 2:
                                also = maximum(also, h[w])
                            else:
                                top = maximum(top, h[w])
                        i += 1
                        s += 1
                if SIEVE:
                    h[0] = move_up(h[0], h[0], 1)
                else:
                    h[0] = shift_in(h[0], _FLOOR)
                s = 0
        if SIEVE:
            all_still = ALL_LANES
            for c in unrolled(MASKS):
                all_still &= mask_bits(still[c])
            above[n] |= all_still != ALL_LANES
        else:
            best[n] = max(best[n], highest(maximum(top, also)))


@made_once
def _kernel(width: int, sieve: bool) -> Any:
    return kernel(specialise(segments, WIDTH=width, SIEVE=sieve, MASKS=MASKS))


def bands(slots: int) -> list[int]:
    """Widths of the bands of so many slots, wide ones first; their sum is the least that there can be."""
    number = -(-slots // WIDEST)
    return [max(NARROWEST, slots // number + (band < slots % number)) for band in range(number)]


@kernel
def _lay_out(cost, bias, slots, row, tables):
    """Fill i1[codes · row] ``tables`` of ``StripedScores`` from u1[codes, M] ``cost``."""
    for code in range(cost.shape[0]):
        begin = code * row
        for lane in range(LANES):
            for q in range(slots):
                k = lane * slots + q
                score = max(bias - np.int64(cost[code, k]), -128) if k < cost.shape[1] else -128
                tables[begin + q * LANES + lane] = np.int8(score)
        for place in range(begin + slots * LANES, begin + row):
            tables[place] = tables[place - slots * LANES]


class StripedScores:
    """Scores of a model, striped.

    Attributes:
        bands: widths of those that are followed together. slots: Q, their sum.
        row: numbers of the scores of a residue.
        tables: i1[28 · row], bias − cost of each residue code by slots; behind slot Q are the first ones again.
    """

    def __init__(self, profile: ByteProfile) -> None:
        codes, length = profile.cost.shape
        self.bands = bands(-(-length // LANES))
        self.slots = sum(self.bands)
        self.row = (self.slots + self.bands[0]) * LANES
        self.tables = aligned(codes * self.row, np.int8)
        _lay_out(profile.cost, profile.bias, self.slots, self.row, self.tables)


def segment_scores(scores: StripedScores, residues: np.ndarray, begins: np.ndarray, ends: np.ndarray,
                   best: np.ndarray) -> None:
    """Best ungapped segments of targets ``residues[begins[n]:ends[n]]``: i1[n] ``best``, score − 128."""
    best[:] = _FLOOR
    _through_bands(False, scores, residues, begins, ends, best, best, np.empty(0, np.bool_))


def sieve(scores: StripedScores, residues: np.ndarray, begins: np.ndarray, ends: np.ndarray, cutoffs: np.ndarray,
          above: np.ndarray) -> None:
    """Set bool[n] ``above`` for each target ``residues[begins[n]:ends[n]]`` with an ungapped segment of a score − 128
    above i1[n] ``cutoffs``, and for few others."""
    above[:] = False
    _through_bands(True, scores, residues, begins, ends, cutoffs, cutoffs, above)


def _through_bands(sieving: bool, scores: StripedScores, *arguments: np.ndarray) -> None:
    first = 0
    for width, alike in groupby(scores.bands):
        last = first + sum(alike)
        _kernel(width, sieving)(scores.tables, scores.row, scores.slots, first, last, *arguments)
        first = last
