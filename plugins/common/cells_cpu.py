"""Lines of text from cells."""

import numpy as np
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import load, store

from .cell_forms import SCIENTIFIC, TEXT

LANES = 32
"""Bytes of texts that are read and written together: so many stand behind the last ones."""
_ZERO, _POINT, _MINUS, _BLANK, _EXPONENT, _END = np.frombuffer(b"0.- e\n", np.uint8)
_NONE, _ONE, _TWO, _TEN = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(10)


@kernel
def join(cells, texts, offsets, delimiter, powers, text, ends):
    """Write all lines of i8[columns, lines] ``cells`` and where each ends; gives the length of the text.

    Args:
        texts, offsets: u1[…], u8[n + 1] texts of cells; see ``cells`` for the forms.
        powers: u8, of ten.
    """
    place = _NONE  # places are unsigned: of a signed one it would be looked whether it is below 0
    columns, lines = cells.shape
    for line in range(lines):
        for column in range(columns):
            if column:
                for character in delimiter:
                    text[place] = character
                    place += _ONE
            held, form = cells[column, line] >> 8, np.uint64(cells[column, line] & 255)
            if form == TEXT:
                here, stop = offsets[np.uint64(held)], offsets[np.uint64(held + 1)]
                end = place + stop - here
                while place < end:
                    store(text, place, load(texts, here, LANES))
                    place += np.uint64(LANES)
                    here += np.uint64(LANES)
                place = end
                continue
            exponent, left = _NONE, np.uint64(abs(held))
            if form == SCIENTIFIC:
                exponent, left, form = left % powers[3], left // powers[3], _TWO
            decimals, width = form & np.uint64(15), form >> np.uint64(4)
            whole = left
            if decimals:
                whole //= powers[decimals]
            digits = digits_of(whole)
            size = digits + np.uint64(held < 0)
            if decimals:
                size += _ONE + decimals
            while size < width:
                text[place] = _BLANK
                place += _ONE
                size += _ONE
            if held < 0:
                text[place] = _MINUS
                place += _ONE
            write_digits(text, place, whole, digits)
            place += digits
            if decimals:
                text[place] = _POINT
                place += decimals
                for n in range(decimals):
                    text[place - n] = _ZERO + left % _TEN
                    left //= _TEN
                place += _ONE
            if exponent:
                text[place], text[place + _ONE], text[place + _TWO] = _EXPONENT, _MINUS, _ZERO
                place += _TWO
                digits = digits_of(exponent)
                place += np.uint64(digits == _ONE)
                write_digits(text, place, exponent, digits)
                place += digits
        text[place] = _END
        place += _ONE
        ends[line] = place
    return place


@inline
def digits_of(number):
    """How many digits ``number`` has."""
    count = _ONE + np.uint64(number > 9) + np.uint64(number > 99) + np.uint64(number > 999)
    limit = np.uint64(10000)
    while number >= limit:
        limit *= _TEN
        count += _ONE
    return count


@inline
def write_digits(text, place, number, digits):
    """Write a number: without a jump if it is short, since lengths are hard to guess."""
    last = place + digits - _ONE
    while number > 9999:
        text[last] = _ZERO + number % _TEN
        number //= _TEN
        last -= _ONE
    # Digits that aren't there are written first, to where the first one belongs.
    second = place + np.uint64(number > 999)
    third = second + np.uint64(number > 99)
    text[place] = _ZERO + number // np.uint64(1000)
    text[second] = _ZERO + number // np.uint64(100) % _TEN
    text[third] = _ZERO + number // _TEN % _TEN
    text[last] = _ZERO + number % _TEN
