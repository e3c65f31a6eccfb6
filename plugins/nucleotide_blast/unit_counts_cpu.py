"""Counting the units of sequences, and WindowMasker's windows over them, compiled."""

from __future__ import annotations

import numpy as np
from seqloom.core.kernels.jit import inline, kernel

_BUCKET_BITS = 22
"""Units are looked up by so many of their first bits; what they share with others is searched."""


def reverse_complements(units: np.ndarray, unit: int) -> np.ndarray:
    """u4[m]: reverse complements of u4[m] units of so many bases."""
    rest, turned = units.astype(np.int64), np.zeros(len(units), np.int64)
    for _ in range(unit):
        turned = turned << 2 | (3 - (rest & 3))
        rest >>= 2
    return turned.astype(np.uint32)


@inline
def rolled(forward, backward, code, unit):
    """A unit and its reverse complement, moved on by a base 0 … 3."""
    mask, top = (np.int64(1) << 2 * unit) - 1, 2 * (unit - 1)
    return (forward << 2 | code) & mask, backward >> 2 | (3 - code) << top


@kernel
def _count(codes, offsets, unit, start, table):
    for sequence in range(len(offsets) - 1):
        forward, backward, run = np.int64(0), np.int64(0), 0
        for place in range(offsets[sequence], offsets[sequence + 1]):
            code = np.int64(codes[place])
            if code > 3:
                run = 0
                continue
            forward, backward = rolled(forward, backward, code, unit)
            run += 1
            smaller = min(forward, backward) - start
            if run >= unit and 0 <= smaller < len(table):
                table[smaller] += np.uint32(2 if forward == backward else 1)


def count_units(codes: np.ndarray, offsets: np.ndarray, unit: int, start: int, table: np.ndarray) -> None:
    """Add the units of sequences to u4[n] ``table``, from ``start`` on, each by the smaller of it and its complement.

    One that is its own reverse complement lies on both strands and counts twice.

    codes: u1[n]; other than 0 … 3 are ambiguities, which no unit spans. offsets: i8[k + 1] of the sequences.
    """
    _count(np.ascontiguousarray(codes), offsets, unit, start, table)


@kernel
def _place(unit, first, shift, units):
    """Of a unit among those that are listed; −1 where it isn't."""
    bucket = unit >> shift
    for place in range(first[bucket], first[bucket + 1]):
        if units[place] == unit:
            return place
    return np.int64(-1)


@kernel
def _find(codes, offsets, unit, window, first, shift, units, scores, marks, least, extend, threshold, ring, rows):
    count, size = 0, window - unit + 1
    for sequence in range(len(offsets) - 1):
        low = offsets[sequence]
        forward, backward, run, total, marked, skipping = np.int64(0), np.int64(0), 0, 0, 0, False
        start, end, reach = np.int64(0), np.int64(0), np.int64(0)  # of the stretch; reach: it may go on from there
        for place in range(offsets[sequence + 1] - low):
            code = np.int64(codes[low + place])
            if code > 3:
                run = 0
                continue
            forward, backward = rolled(forward, backward, code, unit)
            run += 1
            if run < unit:
                continue
            if run == unit:
                total = marked = 0
                ring[:] = 0
            listed = _place(min(forward, backward), first, shift, units)
            score = np.int64(scores[listed]) if listed >= 0 else np.int64(least)
            mark = np.int64(len(marks) > 0 and listed >= 0 and marks[listed])
            at = (run - unit) % size
            total += score - ring[at]
            marked += mark - ring[size + at]
            ring[at], ring[size + at] = score, mark
            if run < window:
                continue
            begin, mean = np.int64(place - window + 1), total // size
            unmarked = len(marks) > 0 and marked == 0
            if unmarked and skipping:
                continue
            skipping = unmarked and mean < extend
            if mean >= threshold:
                if end > start and begin > reach + 1:
                    rows[count, 0], rows[count, 1], rows[count, 2] = sequence, start, end + 1
                    count += 1
                    start = begin
                elif end <= start:
                    start = begin
                end = reach = np.int64(place)
            elif end > start and begin > reach + (mean >= extend):
                rows[count, 0], rows[count, 1], rows[count, 2] = sequence, start, end + 1
                count += 1
                start = end = reach = np.int64(0)
            elif end > start and mean >= extend:
                reach = np.int64(place)
        if end > start:
            rows[count, 0], rows[count, 1], rows[count, 2] = sequence, start, end + 1
            count += 1
    return count


def frequent_stretches(codes: np.ndarray, offsets: np.ndarray, unit: int, window: int, units: np.ndarray,
                       scores: np.ndarray, marks: np.ndarray, least: int, extend: int, threshold: int) -> np.ndarray:
    """As ``windowmasker.frequent_stretches_reference``, for many sequences: i8[m, 3] of sequence, start and end.

    codes: u1[n], ambiguities above 3. offsets: i8[k + 1]. units: u4[m], rising; scores: u4[m] of these. marks: bool[m],
    or none.
    """
    bits = min(2 * unit, _BUCKET_BITS)
    shift = 2 * unit - bits
    first = np.searchsorted(units, np.arange((1 << bits) + 1, dtype=np.int64) << shift).astype(np.int64)
    rows = np.empty((len(codes) // max(1, window) + len(offsets), 3), np.int64)
    count = _find(np.ascontiguousarray(codes), offsets, unit, window, first, shift, units.astype(np.int64), scores,
                  marks, least, extend, threshold, np.zeros(2 * (window - unit + 1), np.int64), rows)
    return rows[:count]
