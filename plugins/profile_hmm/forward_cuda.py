"""Forward of whole targets on CUDA devices, every sum in the order of ``forward_reference.py``.

A model fills four lanes, as the order of its sums asks for, and these take a target; so a warp has up to eight targets
side by side, which are of about the same length. Rows of states stand in shared memory, where a lane reads and writes
its own words alone: the longer the model, the fewer targets a warp has. What passes from lane to lane is shuffled.

Results that are smaller than the smallest normal number become 0, as on the host. The sum of the logs of a target's
scales is that of libm's, or is left to the CPU, as in ``bias_cuda.py``.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numba import cuda as _cuda
from numba import float32, float64, int32, int64, uint64
from seqloom.core.cuda.rounding import over_flushed, plus_flushed, times_flushed
from seqloom.core.kernels.packed16 import any_of_warp, from_lane, from_lane_before, from_partner

from .bias_cuda import ABOVE, BELOW
from .exact_math import F32, Array32
from .forward_cpu import NO_CHANGES_FROM, RESCALE_ABOVE
from .profile import LANES, SearchProfile

cuda: Any = _cuda  # numba's types don't know what code on the device may do
WARP = 32
FACTS = 4
"""Numbers of a model."""
_TRANSITIONS = 8
_STEP = _TRANSITIONS * LANES
"""Numbers of a slot's transitions."""
_ROWS = 3
"""Numbers of a slot in each lane: match, insert and delete states."""
SHARED_BYTES = 48 * 1024
"""Shared memory that every block may have."""
MOST_TARGETS = WARP // LANES
MOST_SLOTS = SHARED_BYTES // (4 * _ROWS * LANES)
"""Of a model whose rows find room there for a single target: 4,096 nodes."""
_RESCALE, _HALF = float(RESCALE_ABOVE), 0.5


@cuda.jit(device=True)
def a_lane_on(value, lane):
    """Each lane takes the number of the lane before, the first one of a target 0."""
    before = from_lane_before(value)
    return float32(0.0) if lane & int32(LANES - 1) == int32(0) else before


@cuda.jit(device=True)
def entered(tables, t, e, b, m, s, d):
    """Match state with transitions at ``t`` and emission at ``e``, from B, M, I and D of the nodes and row before."""
    cell = times_flushed(b, tables[t])
    cell = plus_flushed(cell, times_flushed(m, tables[uint64(t + uint64(LANES))]))
    cell = plus_flushed(cell, times_flushed(s, tables[uint64(t + uint64(2 * LANES))]))
    cell = plus_flushed(cell, times_flushed(d, tables[uint64(t + uint64(3 * LANES))]))
    return times_flushed(cell, tables[e])


def sum_paths(tables, facts, models, targets, residues, begins, ends, places, first, works, counters, counter, totals,
              lasts):
    """Kernel: C behind the last residue of each target, and the sum of the logs of the scales of its rows.

    Args:
        tables: f4, odds of models one behind the other (``DeviceOdds.table``).
        facts: i4, FACTS numbers of each model (``DeviceOdds.facts``).
        models: i4, the number of the model that each target is to be compared with.
        targets: that a warp has at a time, all with one model: a power of 2, up to 8.
        residues: u1; residues ``begins[p]`` … ``ends[p]`` − 1 are those of the target at place p.
        places: i4, like ``models``, places of targets or −1; ``works`` of them from ``first`` on, a whole multiple of
            ``targets``.
        counters, counter: i4, of which the one at ``counter`` says how many have been taken so far.
        totals, lasts: f4, as ``places``; the total is NaN where a logarithm is in doubt.
    """
    rows = cuda.shared.array(0, float32)
    lane = int32(cuda.threadIdx.x)
    wide = int32(targets * int32(LANES))
    own = uint64(lane % wide)
    inserts = uint64(wide)
    deletes = uint64(int32(2) * wide)
    stride = uint64(int32(_ROWS) * wide)
    while True:
        taken = int32(0)
        if lane == int32(0):
            taken = int32(cuda.atomic.add(counters, counter, targets))
        taken = from_lane(taken, int32(0))
        if taken >= works:
            break
        fact = uint64(models[first + taken]) * uint64(FACTS)
        match_of_column = uint64(facts[fact] + (lane & int32(LANES - 1)))
        of_column = uint64(facts[uint64(fact + uint64(1))] + (lane & int32(LANES - 1)))
        slots = facts[uint64(fact + uint64(2))]
        stops = facts[uint64(fact + uint64(3))] != int32(0)
        of_last = uint64(slots - int32(1))
        last = uint64(own + of_last * stride)
        before_last = uint64(last - stride)
        of_residue = uint64(slots * int32(LANES))
        t_last = uint64(of_column + of_last * uint64(_STEP))
        work = int32(first + taken + lane // int32(LANES))
        place = int32(-1)
        if lane < wide:
            place = places[work]
        begin = int64(0)
        length = int32(0)
        if place >= int32(0):
            begin = int64(begins[place])
            length = int32(ends[place] - begin)
            r = uint64(own)
            for _ in range(int32(_ROWS) * slots):
                rows[r] = float32(0.0)
                r = uint64(r + uint64(wide))
        longest = int32(max(length, from_partner(length, int32(16))))
        longest = int32(max(longest, from_partner(longest, int32(8))))
        longest = int32(max(longest, from_partner(longest, int32(4))))
        move = over_flushed(float32(3.0), float32(length + int32(3)))
        loop = plus_flushed(float32(1.0), -move)
        n = float32(1.0)
        b = move
        j = float32(0.0)
        c = float32(0.0)
        total = float32(0.0)
        known = True
        for i in range(int32(1), longest + int32(1)):
            alive = i <= length
            slots_here = slots if alive else int32(0)
            code = residues[uint64(begin + int64(i - int32(1) if alive else int32(0)))]
            e = uint64(match_of_column + uint64(code) * of_residue)
            m = a_lane_on(rows[last], lane)
            s = a_lane_on(rows[uint64(last + inserts)], lane)
            d = a_lane_on(rows[uint64(last + deletes)], lane)
            # What opens in the last slot comes to the first one a lane on, and with it the delete states begin.
            cell = entered(tables, t_last, uint64(e + of_last * uint64(LANES)), b, rows[before_last],
                           rows[uint64(before_last + inserts)], rows[uint64(before_last + deletes)])
            carry = a_lane_on(times_flushed(cell, tables[uint64(t_last + uint64(6 * LANES))]), lane)
            matches = float32(0.0)
            opened = float32(0.0)
            t = uint64(of_column)
            r = uint64(own)
            for _ in range(slots_here):
                m_here = rows[r]
                s_here = rows[uint64(r + inserts)]
                d_here = rows[uint64(r + deletes)]
                cell = entered(tables, t, e, b, m, s, d)
                m = m_here
                s = s_here
                d = d_here
                deleted = plus_flushed(carry, opened)
                rows[r] = cell
                rows[uint64(r + inserts)] = plus_flushed(
                    times_flushed(m, tables[uint64(t + uint64(4 * LANES))]),
                    times_flushed(s, tables[uint64(t + uint64(5 * LANES))]))
                rows[uint64(r + deletes)] = deleted
                matches = plus_flushed(matches, cell)
                opened = times_flushed(cell, tables[uint64(t + uint64(6 * LANES))])
                carry = times_flushed(deleted, tables[uint64(t + uint64(7 * LANES))])
                t = uint64(t + uint64(_STEP))
                e = uint64(e + uint64(LANES))
                r = uint64(r + stride)
            end = matches
            running = alive
            for _ in range(int32(3)):
                if not any_of_warp(running):
                    break
                carry = a_lane_on(carry, lane)
                changed = int32(0)
                if running:
                    end = matches
                    t = uint64(of_column + uint64(7 * LANES))
                    r = uint64(own + deletes)
                    for _ in range(slots):
                        deleted = rows[r]
                        extended = plus_flushed(deleted, carry)
                        rows[r] = extended
                        end = plus_flushed(end, extended)
                        if extended > deleted:
                            changed = int32(1)
                        carry = times_flushed(carry, tables[t])
                        t = uint64(t + uint64(_STEP))
                        r = uint64(r + stride)
                if stops:
                    changed = int32(changed | from_partner(changed, int32(1)))
                    changed = int32(changed | from_partner(changed, int32(2)))
                    running = running and changed != int32(0)
            end = plus_flushed(end, from_partner(end, int32(1)))
            end = plus_flushed(end, from_partner(end, int32(2)))
            if alive:
                half = times_flushed(end, float32(_HALF))
                n = times_flushed(n, loop)
                c = plus_flushed(times_flushed(c, loop), half)
                j = plus_flushed(times_flushed(j, loop), half)
                b = plus_flushed(times_flushed(j, move), times_flushed(n, move))
                if end > float32(_RESCALE):
                    n = over_flushed(n, end)
                    b = over_flushed(b, end)
                    j = over_flushed(j, end)
                    c = over_flushed(c, end)
                    inverse = over_flushed(float32(1.0), end)
                    r = uint64(own)
                    for _ in range(int32(_ROWS) * slots):
                        rows[r] = times_flushed(rows[r], inverse)
                        r = uint64(r + uint64(wide))
                    log = math.log(float64(end))
                    rounded = float32(float64(total) + log * BELOW)
                    known = known and rounded == float32(float64(total) + log * ABOVE)
                    total = rounded
        if lane < wide and lane & int32(LANES - 1) == int32(0):
            totals[work] = total if known else float32(np.nan)
            lasts[work] = c


class DeviceOdds:
    """Odds of a model.

    Attributes:
        slots: Q.
        fits: whether rows find room in shared memory and no odds are so small that the device would take them for 0;
            else the CPU scores its targets.
        targets: that a warp has at a time.
        words: of the table.
    """

    def __init__(self, profile: SearchProfile) -> None:
        self._profile, self.slots = profile, profile.floats.slots
        table = self.table
        self.words = len(table)
        self.fits = self.slots <= MOST_SLOTS and not ((table > 0) & (table < np.finfo(F32).tiny)).any()
        self.targets = MOST_TARGETS
        while self.targets > 1 and self.slots * self.targets > MOST_SLOTS:
            self.targets //= 2

    def facts(self, begin: int) -> tuple[int, ...]:
        """FACTS numbers of the model, whose table begins there: where matches and transitions begin, slots, and whether
        deletions stop being extended when nothing changes."""
        stops = self._profile.length >= NO_CHANGES_FROM
        return begin, begin + self._profile.floats.match.size, self.slots, int(stops)

    @cached_property
    def table(self) -> Array32:
        """f4; matches[codes, Q, 4], then transitions[Q, 8, 4] in the order in which the kernel needs them."""
        floats = self._profile.floats
        parts = (floats.entry, floats.into_mm, floats.into_im, floats.into_dm, floats.mi, floats.ii, floats.md,
                 floats.dd)
        return np.concatenate([floats.match.reshape(-1), np.stack(parts, axis=1).reshape(-1)])


def shared_bytes(slots: int, targets: int) -> int:
    """Of a block, which is a warp, for models of so many slots."""
    return slots * targets * LANES * 4 * _ROWS
