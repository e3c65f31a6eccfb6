"""Kernels that look things up in a compressed suffix array: Psi of a row, backward search by it, and places of rows.

A row begins with a symbol and goes on as one of some rows if Psi takes it there. The rows that do so stand together,
since Psi ascends where rows begin with one symbol: the block where they begin is found by halving, the row in it by
reading differences.
"""

import numpy as np
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import lowest_bit

from .fm_search_cpu import count_bits

_U64 = np.uint64


@kernel
def _window(bits, place):
    """The 64 bits from a place on."""
    word, inside = place >> _U64(6), place & _U64(63)
    if inside == _U64(0):
        return bits[word]
    return bits[word] >> inside | bits[word + _U64(1)] << (_U64(64) - inside)


@kernel
def next_step(bits, place):
    """The difference whose code begins at a place, and where the next one begins."""
    window = _window(bits, place)
    tail = _U64(lowest_bit(window))
    rest = window >> (tail + _U64(1)) if tail < _U64(32) else _window(bits, place + tail + _U64(1))
    power = _U64(1) << tail
    return power | (rest & (power - _U64(1))), place + _U64(2) * tail + _U64(1)


@kernel
def row_behind(smaller, heads, begins, bits, shift, row):
    """Psi of a row: that of the suffix which begins one place further."""
    count = _U64(smaller[-1])
    block, place = row >> shift, _U64(begins[row >> shift])
    value = _U64(heads[block])
    for _ in range(row & ((_U64(1) << shift) - _U64(1))):
        step, place = next_step(bits, place)
        value += step
        if value >= count:
            value -= count
    return value


@kernel
def first_row(smaller, heads, begins, bits, shift, symbol, bound):
    """The first row that begins with a symbol and whose Psi is ``bound`` or more; the one behind these if none is."""
    count = _U64(smaller[-1])
    first, last = _U64(smaller[symbol]), _U64(smaller[symbol + _U64(1)])
    if first == last:
        return first
    low, high = (first + (_U64(1) << shift) - _U64(1)) >> shift, ((last - _U64(1)) >> shift) + _U64(1)
    aligned = low
    while low < high:
        middle = (low + high) >> _U64(1)
        if _U64(heads[middle]) < bound:
            low = middle + _U64(1)
        else:
            high = middle
    if low == aligned and first == aligned << shift:
        return first
    # The last block that begins with less, or the one that holds the symbol's first row.
    block = low - _U64(1)
    row, place, value = block << shift, _U64(begins[block]), _U64(heads[block])
    behind = min(last, (block + _U64(1)) << shift)
    while row < first or value < bound:
        row += _U64(1)
        if row == behind:
            return row
        step, place = next_step(bits, place)
        value += step
        if value >= count:
            value -= count
    return row


@kernel
def place_of(tables, row):
    """Where in the text the suffix of a row begins; ``tables`` is the whole of ``PsiTables``.

    Inside the text whatever a stored index says: where no sample is as near as it should be, at its start.
    """
    smaller, heads, begins, bits, shift, samples, marks = tables
    count, steps = _U64(smaller[-1]), _U64(0)
    while steps <= count and steps * _U64(len(samples)) <= _U64(len(marks)) << _U64(7):
        word, bit = marks[row >> _U64(6), 1], _U64(1) << (row & _U64(63))
        if word & bit:
            place = _U64(samples[marks[row >> _U64(6), 0] + count_bits(word & (bit - _U64(1)))])
            return place - steps if place >= steps else place + count - steps
        row = row_behind(smaller, heads, begins, bits, shift, row)
        steps += _U64(1)
    return _U64(0)
