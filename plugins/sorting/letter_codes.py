"""Letters on their way to a device: as codes of 1, 2 or 4 bits where so few tell them apart, eight of them to a number.

Bases take a quarter of the bus that bytes would. Nothing depends on where keys begin and end, so that a few vector
operations code dozens of letters; the device takes its words out of the codes.
"""

from typing import NamedTuple

import numpy as np
from seqloom.core.jit import kernel
from seqloom.core.prefetch import prefetch
from seqloom.core.simd import (
    BYTE_LANES,
    LOOKUP_ENTRIES,
    LOOKUP_STRIDE,
    load,
    lookup,
    lookup_tables,
    splat,
    store,
)
from seqloom.plugins.common.sort_words_cpu import INVALID, Coding

EIGHT = 8
"""Letters of a number."""
_BLOCK = 4096  # letters that are coded at a time, so that they stay in the fastest cache


class LetterCodes(NamedTuple):
    """How letters are sent.

    Attributes:
        bits: of a code: 1, 2, 4, or 8 for bytes as they are.
        tables: for ``lookup``, of letters by their lowest five bits: first their codes, then the letters themselves.
        codes: u2[2 ** bits], what each code that is sent is in the coding of the keys.
    """

    bits: int
    tables: np.ndarray
    codes: np.ndarray

    @property
    def dtype(self) -> np.dtype:
        """Of a number that holds eight codes, the first one in its lowest bits."""
        return np.dtype(f"u{self.bits}")


def letter_codes(coding: Coding) -> LetterCodes:
    """The fewest bits that tell the letters of a coding apart, if their lowest five bits do."""
    letters = np.flatnonzero(coding.codes != INVALID)
    places = letters % LOOKUP_ENTRIES
    bits = next(bits for bits in (1, 2, 4, 8) if len(letters) <= 1 << bits)
    if bits == 8 or len(np.unique(places)) < len(letters):
        return LetterCodes(8, lookup_tables(np.zeros((2, LOOKUP_ENTRIES), np.uint8)), coding.codes)
    codes = np.full(1 << bits, INVALID, np.uint16)
    codes[: len(letters)] = coding.codes[letters]
    rows = np.zeros((2, LOOKUP_ENTRIES), np.uint8)
    rows[1] = ~np.arange(LOOKUP_ENTRIES, dtype=np.uint8)  # which no letter is that looks there
    rows[0, places], rows[1, places] = np.arange(len(letters)), letters
    return LetterCodes(bits, lookup_tables(rows), codes)


@kernel
def fill_codes(out, first, given):
    """Fill numbers first, first + 1, … of the codes of some letters; the last one is filled up with any codes.

    given: u1 letters of keys; ``bits`` and ``tables`` of their ``LetterCodes``; u1[1], set to 1 if one of them has no
    code.
    """
    values, bits, tables, strange = given
    size, eight, lanes = np.uint64(_BLOCK), np.uint64(EIGHT), np.uint64(BYTE_LANES)
    codes = np.empty(size, np.uint8)
    numbers = codes.view(np.uint64)
    one, two, four = np.uint64(8 - bits), np.uint64(16 - 2 * bits), np.uint64(32 - 4 * bits)
    pair = (np.uint64(1) << np.uint64(2 * bits)) - np.uint64(1)
    quad = (np.uint64(1) << np.uint64(4 * bits)) - np.uint64(1)
    pairs, quads = pair * np.uint64(0x0001000100010001), quad * np.uint64(0x0000000100000001)
    low = splat(np.uint8(LOOKUP_ENTRIES - 1), BYTE_LANES)
    others = splat(np.uint8(0), BYTE_LANES)
    for begin in range(np.uint64(0), np.uint64(len(out)), size // eight):
        start = (np.uint64(first) + begin) * eight
        some = values[start : min(start + size, np.uint64(len(values)))]
        count = np.uint64(len(some))
        if count < size:
            codes[count:] = 0
        whole = np.uint64(0)
        if bits < 8:
            while whole + lanes <= count:
                prefetch(some, whole + size)
                letters = load(some, whole, BYTE_LANES)
                places = letters & low
                others = others | (lookup(tables, LOOKUP_STRIDE, places) ^ letters)
                store(codes, whole, lookup(tables, 0, places))
                whole += lanes
            if whole < count:
                rest = np.zeros(BYTE_LANES, np.uint8)
                rest[:] = some[0]
                rest[: count - whole] = some[whole:count]
                letters = load(rest, 0, BYTE_LANES)
                places = letters & low
                others = others | (lookup(tables, LOOKUP_STRIDE, places) ^ letters)
                store(rest, 0, lookup(tables, 0, places))
                codes[whole:count] = rest[: count - whole]
        else:
            for n in range(count):
                codes[n] = some[n]
        part = out[begin : begin + size // eight]
        for n in range(np.uint64(len(part))):
            number = numbers[n]
            number = (number | number >> one) & pairs
            number = (number | number >> two) & quads
            part[n] = number | number >> four
    found = np.empty(BYTE_LANES, np.uint8)
    store(found, 0, others)
    if found.max():
        strange[0] = 1
