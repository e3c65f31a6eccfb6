"""The Viterbi filter on CUDA devices: a warp takes a target, and the model is striped over 64 sixteen-bit halves.

Node k sits in slot q = (k − 1) mod Q of half (k − 1) div Q; a lane has halves 2 · lane and 2 · lane + 1 in a register.
The rows of states stand in shared memory, where a lane reads and writes its own words alone; transitions and scores of
matches come through the first cache. What a row needs of other lanes are the last slots of the row before, and whether
a cell is higher than all before or a deletion may be worth extending (``viterbi_cpu.py``): one vote.

Sums of halves go without saturating, which the device has no instruction for. No sum leaves sixteen bits, and the score
is that of saturating ones, because of what entering the model anew is worth. Let ``floor`` be the least that entering
can give for the longest target: base + move + the least entry. A state of at most B + the least entry, and ``floor`` is
that or less, can't lead to anything that entering the next match state wouldn't give, since no transition gains. So
states below ``floor`` are raised to it. B is at least the best match state so far, less 500, plus move; so a transition
or emission of at most ``floor`` − 12,500 leads to such a state from wherever it begins, and all that are less than
−32,768 − ``floor`` are raised to that, as long as it isn't more than ``floor`` − 12,500. Match states before emission
are those of saturating sums then, all of them, and so is the best match state if it is above ``floor``. A target whose
best one isn't, or comes near 32,767, is left to the CPU.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numba import cuda as _cuda
from numba import int32, int64, uint64
from seqloom.core.kernels.packed16 import PACKED, any_of_warp, choose_bytes, from_lane, from_lane_before, from_partner

from .profile import MINUS_INFINITY, WORD_BASE, SearchProfile
from .viterbi_cpu import END, worths

cuda: Any = _cuda  # numba's types don't know what code on the device may do
LANES = 32
HALVES = 2 * LANES
FACTS = 6
"""Numbers of a model."""
_TRANSITIONS = 8
_STEP = _TRANSITIONS * LANES
"""Words of a slot's transitions."""
_ROWS = 3
"""Words of a slot in each lane: match, insert and delete states."""
SHARED_BYTES = 48 * 1024
"""Shared memory that every block may have."""
_WARPS = 8
MOST_SLOTS = SHARED_BYTES // (4 * _ROWS * LANES)
"""Of a model whose rows find room there: 8,192 nodes."""
_HIGHEST = 32767
_LOWEST_FLOOR = -(-(MINUS_INFINITY - END + WORD_BASE) // 2)
"""Where −32,768 − ``floor`` is ``floor`` − 12,500."""
add, add_maximum, maximum = (PACKED.functions[name] for name in ("add", "add_maximum", "maximum"))


@cuda.jit(device=True)
def both_halves(value):
    """The register with a number of sixteen bits in both halves."""
    return int32((value & int32(0xFFFF)) | (value << int32(16)))


@cuda.jit(device=True)
def a_half_on(value, lane, first):
    """Each half takes the number of the half before, the first one that of ``first``."""
    before = from_lane_before(value)
    if lane == int32(0):
        before = first
    return choose_bytes(before, value, int32(0x5432))


@cuda.jit(device=True)
def highest_of_warp(halves):
    """The greatest half of all lanes."""
    best = int32(max(int32((halves & int32(0xFFFF)) ^ int32(0x8000)) - int32(0x8000), halves >> int32(16)))
    for bit in range(5):
        best = int32(max(best, from_partner(best, int32(1 << bit))))
    return best


@cuda.jit(device=True)
def extend_deletes(tables, of_lane, slots, rows, own, carry, lane, lowest):
    """From delete state to delete state on through the halves until nothing gets better.

    carry: what comes to the delete states of slot 0.
    """
    for half in range(HALVES):
        if half > 0:
            carry = a_half_on(carry, lane, lowest)
        t = uint64(of_lane + uint64(7 * LANES))
        r = uint64(own + uint64(2 * LANES))
        for _ in range(slots):
            before = rows[r]
            better = maximum(carry, before)
            if not any_of_warp(better != before):
                return
            rows[r] = better
            carry = add_maximum(better, tables[t], lowest)
            t = uint64(t + uint64(_STEP))
            r = uint64(r + uint64(_ROWS * LANES))


def score_targets(tables, facts, models, room, residues, begins, ends, places, moves, first, works, counters, counter,
                  best):
    """Kernel: the best match state of each target.

    Args:
        tables: i4, words of models one behind the other (``DeviceWords.table``).
        facts: i4, FACTS numbers of each model (``DeviceWords.facts``).
        models: i4, the number of the model that each target is to be compared with.
        room: slots of the longest model.
        residues: u1; residues ``begins[p]`` … ``ends[p]`` − 1 are those of the target at place p.
        places, moves: i4, like ``models``, places of targets and N, J, C → move; ``works`` of them from ``first`` on.
        counters, counter: i4, of which the one at ``counter`` says how many have been taken so far.
        best: i4, as ``places``; at least the model's ceiling where the work was given up.
    """
    rows = cuda.shared.array(0, int32)
    lane = int32(cuda.threadIdx.x & 31)
    own = uint64(int32(cuda.threadIdx.x >> 5) * room * int32(_ROWS * LANES) + lane)
    while True:
        taken = int32(0)
        if lane == int32(0):
            taken = int32(cuda.atomic.add(counters, counter, int32(1)))
        taken = from_lane(taken, int32(0))
        if taken >= works:
            break
        work = int32(first + taken)
        place = places[work]
        move = moves[work]
        fact = uint64(models[work]) * uint64(FACTS)
        of_match = uint64(facts[fact] + lane)
        of_lane = uint64(facts[uint64(fact + uint64(1))] + lane)
        slots = facts[uint64(fact + uint64(2))]
        floor = facts[uint64(fact + uint64(3))]
        ceiling = facts[uint64(fact + uint64(4))]
        shift = facts[uint64(fact + uint64(5))]
        last = uint64(own + uint64(slots - int32(1)) * uint64(_ROWS * LANES))
        lowest = both_halves(floor)
        of_residue = uint64(slots * int32(LANES))
        gains = tables[uint64(of_lane + uint64(slots) * uint64(_STEP))]
        begin = int64(begins[place])
        length = int32(ends[place] - begin)
        r = uint64(own)
        for _ in range(int32(_ROWS) * slots):
            rows[r] = lowest
            r = uint64(r + uint64(LANES))
        top = int32(floor)
        reached = lowest
        entering = int32(int32(WORD_BASE) + move)
        enters = both_halves(entering)
        bar = both_halves(int32(max(entering - shift, int32(MINUS_INFINITY))))
        coming = residues[uint64(begin)]
        for i in range(int32(1), length + int32(1)):
            e = uint64(of_match + uint64(coming) * of_residue)
            coming = residues[uint64(begin + int64(min(i, length - int32(1))))]
            m = a_half_on(rows[last], lane, lowest)
            s = a_half_on(rows[uint64(last + uint64(LANES))], lane, lowest)
            d = a_half_on(rows[uint64(last + uint64(2 * LANES))], lane, lowest)
            carried = lowest
            highest = lowest
            t = uint64(of_lane)
            r = uint64(own)
            for _ in range(slots):
                m_here = rows[r]
                s_here = rows[uint64(r + uint64(LANES))]
                d_here = rows[uint64(r + uint64(2 * LANES))]
                here = add(enters, tables[t])
                here = add_maximum(m, tables[uint64(t + uint64(LANES))], here)
                here = add_maximum(s, tables[uint64(t + uint64(2 * LANES))], here)
                here = add_maximum(d, tables[uint64(t + uint64(3 * LANES))], here)
                here = add_maximum(here, tables[e], lowest)
                highest = maximum(highest, here)
                m = m_here
                s = s_here
                d = d_here
                s_next = add_maximum(m, tables[uint64(t + uint64(4 * LANES))], lowest)
                s_next = add_maximum(s, tables[uint64(t + uint64(5 * LANES))], s_next)
                new = add_maximum(here, tables[uint64(t + uint64(6 * LANES))], lowest)
                rows[r] = here
                rows[uint64(r + uint64(LANES))] = s_next
                rows[uint64(r + uint64(2 * LANES))] = carried
                carried = add_maximum(carried, tables[uint64(t + uint64(7 * LANES))], new)
                t = uint64(t + uint64(_STEP))
                e = uint64(e + uint64(LANES))
                r = uint64(r + uint64(_ROWS * LANES))
            worth = add(carried, gains)
            # The delete state of slot 0 is that of the last slot, a half on.
            carried = a_half_on(carried, lane, lowest)
            higher = maximum(highest, reached) != reached
            extends = False
            if any_of_warp(higher or maximum(worth, bar) != bar):
                if any_of_warp(higher):
                    top = highest_of_warp(highest)
                    if top >= ceiling:
                        break
                    reached = both_halves(top)
                    entering = int32(max(top + int32(END), int32(WORD_BASE)) + move)
                    enters = both_halves(entering)
                    bar = both_halves(int32(max(entering - shift, int32(MINUS_INFINITY))))
                extends = any_of_warp(maximum(worth, bar) != bar)
            if extends:
                extend_deletes(tables, of_lane, slots, rows, own, carried, lane, lowest)
            else:
                rows[uint64(own + uint64(2 * LANES))] = carried
        if lane == int32(0):
            best[work] = top


class DeviceWords:
    """Words of a model for targets up to some length.

    Attributes:
        slots: Q.
        fits: whether all sums stay in range, and rows find room in shared memory; else the CPU scores its targets.
        words: of the table.
        floor: the best match state says the score if it is more than that.
        ceiling: and less than that.
        shift: the most that going on from a delete state to a delete state can gain over entering anew. Gains are kept
            less that, so that they aren't above 0.
    """

    def __init__(self, profile: SearchProfile, least_move: int) -> None:
        self._profile, words = profile, profile.words
        self.slots = -(-profile.length // HALVES)
        self.floor = WORD_BASE + least_move + int(words.entry.min())
        self.ceiling = _HIGHEST - max(0, int(words.match.max()))
        self.fits = self.floor >= _LOWEST_FLOOR and self.ceiling > WORD_BASE and self.slots <= MOST_SLOTS
        self._gains = worths(words)
        self.shift = max(0, int(self._gains.max()))
        self.words = table_words(len(words.match), profile.length)

    def facts(self, begin: int) -> tuple[int, ...]:
        """FACTS numbers of the model, whose table begins there: where matches and transitions begin, and attributes."""
        transitions = begin + self.slots * LANES * len(self._profile.words.match)
        return begin, transitions, self.slots, self.floor, self.ceiling, self.shift

    @cached_property
    def table(self) -> np.ndarray:
        """i4, two halves each: matches[codes, Q, 32]; transitions[Q, 8, 32] in the order in which the kernel needs
        them; and [32], what going on from what leaves the last slot gains."""
        words = self._profile.words
        parts = (words.into_mm, words.into_im, words.into_dm, words.mi, words.ii, words.md, words.dd)
        entry = self._striped(words.entry, int(words.entry.min()))
        match = self._striped(words.match, MINUS_INFINITY)
        by_slot = np.stack([entry, *(self._striped(part, MINUS_INFINITY) for part in parts)], axis=1)
        leaving = self._striped(self._gains.astype(np.int32) - self.shift, MINUS_INFINITY)[-1]
        return np.concatenate([match.reshape(-1), by_slot.reshape(-1), leaving]).view(np.int32)

    def _striped(self, values: np.ndarray, beyond: int) -> np.ndarray:
        """i2[..., Q, 64] of [..., M]."""
        least = max(MINUS_INFINITY, MINUS_INFINITY - self.floor)
        padded = np.full((*values.shape[:-1], HALVES * self.slots), beyond, np.int32)
        padded[..., : values.shape[-1]] = values
        striped = np.swapaxes(padded.reshape(*values.shape[:-1], HALVES, self.slots), -1, -2)
        return np.ascontiguousarray(np.maximum(striped, least).astype(np.int16))


def warps_of(slots: int) -> int:
    """Of a block, at most, for models of so many slots."""
    return max(1, min(_WARPS, MOST_SLOTS // slots))


def shared_bytes(slots: int, warps: int) -> int:
    """Of a block of so many warps, for models of so many slots."""
    return warps * slots * 4 * _ROWS * LANES


def table_words(codes: int, length: int) -> int:
    """Of a model's table."""
    return LANES * (-(-length // HALVES) * (codes + _TRANSITIONS) + 1)
