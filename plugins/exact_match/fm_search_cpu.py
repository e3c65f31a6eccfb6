"""Kernels that look things up in an FM-index: the three questions, and the rows of all short words.

The row of the suffix that has one more symbol in front is counted, not looked up: as many suffixes with that symbol are
smaller as the transform has occurrences of it before this row (LF mapping). ``mapped``, ``extended`` and
``symbol_before`` answer for every symbol and every index. Nearly all look-ups are plain: of residues with two bits, in
blocks without other symbols. Inner loops answer these with ``is_plain`` and ``mapped_base``, which take the blocks
alone: references to arrays are counted at each call, which takes longer than the look-up.

Working space comes from the caller: kernels that call numpy take numba's modules for it along when they are loaded,
0.1 s of a search that may take little more.
"""

import numpy as np
from seqloom.core.kernels.jit import kernel

_U64 = np.uint64
_EVEN_BITS = _U64(0x5555555555555555)
_PAIRS = _U64(0x3333333333333333)
_NIBBLES = _U64(0x0F0F0F0F0F0F0F0F)
_BYTES = _U64(0x0101010101010101)
_LOW_BITS = _U64(0x7F7F7F7F7F7F7F7F)
_FLAG = _U64(1 << 63)


@kernel
def count_bits(word):
    """Bits that are set in a u8 word; becomes one instruction where there is one."""
    word = word - ((word >> _U64(1)) & _EVEN_BITS)
    word = (word & _PAIRS) + ((word >> _U64(2)) & _PAIRS)
    word = (word + (word >> _U64(4))) & _NIBBLES
    return (word * _BYTES) >> _U64(56)


@kernel
def mapped_base(blocks, shift, code, row):
    """``mapped`` for a code, with symbols that have none counted as 0 inside the row's block.

    All words of the block are looked at, those behind the row through an empty mask: that is quicker than to branch.
    """
    block, inside = row >> shift, row & ((_U64(1) << shift) - _U64(1))
    found = blocks[block, code] & ~_FLAG
    pattern = code * _EVEN_BITS
    last = _U64(4) + (inside >> _U64(5))
    rest = (_U64(1) << (_U64(2) * (inside & _U64(31)))) - _U64(1)
    for place in range(_U64(4), _U64(blocks.shape[1])):
        differ = blocks[block, place] ^ pattern
        kept = rest if place == last else (~_U64(0) if place < last else _U64(0))
        found += count_bits(~(differ | (differ >> _U64(1))) & _EVEN_BITS & kept)
    return found


@kernel
def _mapped_byte(blocks, shift, symbol, row):
    """``mapped`` for a transform of bytes."""
    block, inside = row >> shift, row & ((_U64(1) << shift) - _U64(1))
    found = blocks[block, symbol]
    pattern = symbol * _BYTES
    first = _U64(blocks.shape[1]) - ((_U64(1) << shift) >> _U64(3))
    last = first + (inside >> _U64(3))
    rest = (_U64(1) << (_U64(8) * (inside & _U64(7)))) - _U64(1)
    for place in range(first, _U64(blocks.shape[1])):
        differ = blocks[block, place] ^ pattern
        kept = rest if place == last else (~_U64(0) if place < last else _U64(0))
        found += count_bits(~(((differ & _LOW_BITS) + _LOW_BITS) | differ) & ~_LOW_BITS & kept)
    return found


@kernel
def _odd_before(symbols, odd_rows, symbol, row):
    """How many rows of a symbol without a code come before a row."""
    first = low = _U64(symbols[symbol, 1])
    high = _U64(symbols[symbol + _U64(1), 1])
    while low < high:
        middle = (low + high) >> _U64(1)
        if _U64(odd_rows[middle]) < row:
            low = middle + _U64(1)
        else:
            high = middle
    return low - first


@kernel
def is_plain(blocks, shift, code, low, high):
    """Whether ``mapped_base`` is exact for a code at two rows."""
    return code <= _U64(3) and (code > _U64(0) or not (blocks[low >> shift, 0] | blocks[high >> shift, 0]) & _FLAG)


@kernel
def _odd_inside(symbols, blocks, odd_rows, shift, row):
    """How many rows of symbols without a code stand in the row's block before it."""
    found, first = _U64(0), row >> shift << shift
    if blocks[row >> shift, 0] & _FLAG:
        for symbol in range(_U64(len(symbols) - 1)):
            if symbols[symbol, 1] < symbols[symbol + _U64(1), 1]:
                found += (_odd_before(symbols, odd_rows, symbol, row) - _odd_before(symbols, odd_rows, symbol, first))
    return found


@kernel
def mapped(symbols, blocks, odd_rows, shift, packed, symbol, row):
    """The symbols of the text that are smaller, plus occurrences of this one in the transform before a row (all u8)."""
    if not packed:
        return _mapped_byte(blocks, shift, symbol, row)
    code = _U64(symbols[symbol, 2])
    if code > _U64(3):
        return _U64(symbols[symbol, 0]) + _odd_before(symbols, odd_rows, symbol, row)
    found = mapped_base(blocks, shift, code, row)
    return found if code else found - _odd_inside(symbols, blocks, odd_rows, shift, row)


@kernel
def extended(symbols, blocks, odd_rows, shift, packed, symbol, low, high):
    """Rows of the suffixes that begin with a symbol and go on as those of rows low … high − 1."""
    return (mapped(symbols, blocks, odd_rows, shift, packed, symbol, low),
            mapped(symbols, blocks, odd_rows, shift, packed, symbol, high))


@kernel
def symbol_before(symbols, blocks, odd_rows, shift, packed, row):
    """The symbol in the transform at a row: that before the row's suffix."""
    block, inside = row >> shift, row & ((_U64(1) << shift) - _U64(1))
    if not packed:
        word = blocks[block, _U64(blocks.shape[1]) - ((_U64(1) << shift) >> _U64(3)) + (inside >> _U64(3))]
        return (word >> (_U64(8) * (inside & _U64(7)))) & _U64(255)
    if blocks[block, 0] & _FLAG:
        for odd in range(_U64(len(symbols) - 1)):
            if symbols[odd, 1] < symbols[odd + _U64(1), 1]:
                place = _U64(symbols[odd, 1]) + _odd_before(symbols, odd_rows, odd, row)
                if place < _U64(symbols[odd + _U64(1), 1]) and _U64(odd_rows[place]) == row:
                    return odd
    word = blocks[block, _U64(4) + (inside >> _U64(5))]
    code = (word >> (_U64(2) * (inside & _U64(31)))) & _U64(3)
    symbol = _U64(0)
    while _U64(symbols[symbol, 2]) != code:
        symbol += _U64(1)
    return symbol


@kernel
def locate(fm, row):
    """Where in the text the suffix of a row begins; ``fm`` is the whole of ``Tables``.

    Inside the text whatever a stored index says: where no sample is as near as it should be, at its start.
    """
    symbols, blocks, odd_rows, shift, packed, samples, marks = fm
    if not len(marks):
        return _U64(samples[min(_U64(row), _U64(len(samples) - 1))])
    steps = _U64(0)
    while steps * _U64(len(samples)) <= _U64(len(marks)) << _U64(7):  # a sound index has a sample before
        word, bit = marks[row >> _U64(6), 1], _U64(1) << (row & _U64(63))
        if word & bit:
            return min(_U64(samples[marks[row >> _U64(6), 0] + count_bits(word & (bit - _U64(1)))]) + steps,
                       _U64(symbols[-1, 0]) - _U64(1))
        if packed and not blocks[row >> shift, 0] & _FLAG:
            inside = row & ((_U64(1) << shift) - _U64(1))
            code = (blocks[row >> shift, _U64(4) + (inside >> _U64(5))] >> (_U64(2) * (inside & _U64(31)))) & _U64(3)
            row = mapped_base(blocks, shift, code, row)
        else:
            symbol = symbol_before(symbols, blocks, odd_rows, shift, packed, row)
            row = mapped(symbols, blocks, odd_rows, shift, packed, symbol, row)
        steps += _U64(1)
    return _U64(0)


@kernel
def word_ranges(symbols, blocks, odd_rows, shift, packed, coded, residues, ranges):
    """Fill the rows of every word of ``residues`` residues with codes; the code of a word's first residue is highest.

    coded: u8[4], the symbol of each code. ranges: [4 ** residues, 2], first row and the one behind the last; equal for
    words that the text lacks.
    """
    ranges[0, 0], ranges[0, 1] = 0, symbols[-1, 0]
    size = _U64(1)
    for _ in range(residues):
        for word in range(size):
            low, high = _U64(ranges[word, 0]), _U64(ranges[word, 1])
            for n in range(4):
                code = _U64(3 - n)  # the first word of the shorter ones is overwritten last
                at = code * size + word
                ranges[at, 0] = ranges[at, 1] = low
                if low < high and is_plain(blocks, shift, code, low, high):
                    ranges[at, 0] = mapped_base(blocks, shift, code, low)
                    ranges[at, 1] = mapped_base(blocks, shift, code, high)
                elif low < high:
                    found = extended(symbols, blocks, odd_rows, shift, packed, coded[code], low, high)
                    ranges[at, 0], ranges[at, 1] = found
        size *= _U64(4)


@kernel
def shared(text, place, query, start, known):
    """Residues that text and query share from two places on, of which ``known`` are known, if the text has as many."""
    if place + known >= _U64(len(text)):
        known = _U64(0)
    while text[place + known] == query[start + known]:
        known += _U64(1)
    return known
