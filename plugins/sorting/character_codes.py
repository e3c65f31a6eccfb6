"""Characters on their way to a device: as codes of 1, 2 or 4 bits where so few tell them apart, eight of them to a
number.

Bases take a quarter of the bus that bytes would. Nothing depends on where keys begin and end, so that a few vector
operations code dozens of characters; the device takes its words out of the codes.
"""


import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.cuda.driver import bytes_from
from seqloom.core.distinct import distinct
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import (
    BYTE_LANES,
    LOOKUP_ENTRIES,
    LOOKUP_STRIDE,
    load,
    lookup,
    lookup_tables,
    prefetch,
    splat,
    squeezed,
    store,
)
from seqloom.plugins.common.sort_words_cpu import INVALID, Coding

EIGHT = 8
"""Characters of a number."""
_AHEAD = 4096  # characters that are asked for from memory before the first of them is coded


class CharacterCodes(NamedTuple):
    """How characters are sent.

    Attributes:
        bits: of a code: 1, 2, 4, or 8 for bytes as they are.
        tables: for ``lookup``, of characters by their lowest five bits: first their codes, then the characters
        themselves. codes: u2[2 ** bits], what each code that is sent is in the coding of the keys.
    """

    bits: int
    tables: np.ndarray
    codes: np.ndarray

    @property
    def dtype(self) -> np.dtype:
        """Of a number that holds eight codes, the first one in its lowest bits."""
        return np.dtype(f"u{self.bits}")


def character_codes(coding: Coding) -> CharacterCodes:
    """The fewest bits that tell the characters of a coding apart, if their lowest five bits do."""
    characters = np.flatnonzero(coding.codes != INVALID)
    places = characters % LOOKUP_ENTRIES
    bits = next(bits for bits in (1, 2, 4, 8) if len(characters) <= 1 << bits)
    if bits == 8 or len(distinct(places)) < len(characters):
        return CharacterCodes(8, lookup_tables(np.zeros((2, LOOKUP_ENTRIES), np.uint8)), coding.codes)
    codes = np.full(1 << bits, INVALID, np.uint16)
    codes[: len(characters)] = coding.codes[characters]
    rows = np.zeros((2, LOOKUP_ENTRIES), np.uint8)
    rows[1] = ~np.arange(LOOKUP_ENTRIES, dtype=np.uint8)  # which no character is that looks there
    rows[0, places], rows[1, places] = np.arange(len(characters)), characters
    return CharacterCodes(bits, lookup_tables(rows), codes)


@kernel
def fill_codes(out, first, given):
    """Fill numbers first, first + 1, … of the codes of some characters; the last one is filled up with any codes.

    given: words of u1 characters of keys, ``bits`` and ``tables`` of their ``LetterCodes``, and u1[1], set to 1 if one
    of them has no code.
    """
    values, bits = bytes_from(given[0], given[1]), given[2]
    tables, strange = bytes_from(given[3], given[4]), bytes_from(given[5], given[6])
    eight, lanes = np.uint64(EIGHT), np.uint64(BYTE_LANES)
    start = np.uint64(first) * eight
    some = values[start : min(start + np.uint64(len(out)) * eight, np.uint64(len(values)))]
    whole = np.uint64(len(some)) // lanes * lanes
    low, others = splat(np.uint8(LOOKUP_ENTRIES - 1), BYTE_LANES), splat(np.uint8(0), BYTE_LANES)
    rest, last = np.zeros(BYTE_LANES, np.uint8), np.zeros(BYTE_LANES // EIGHT, out.dtype)
    left = len(some) - whole
    rest[left:] = values[0]
    rest[:left] = some[whole:]
    if bits < 8:
        for begin in range(np.uint64(0), whole, lanes):
            prefetch(some, begin + np.uint64(_AHEAD))
            characters = load(some, begin, BYTE_LANES)
            places = characters & low
            others = others | (lookup(tables, LOOKUP_STRIDE, places) ^ characters)
            store(out, begin // eight, squeezed(lookup(tables, 0, places), out))
        characters = load(rest, 0, BYTE_LANES)
        places = characters & low
        others = others | (lookup(tables, LOOKUP_STRIDE, places) ^ characters)
        store(last, 0, squeezed(lookup(tables, 0, places), last))
    else:
        for begin in range(np.uint64(0), whole, lanes):
            store(out, begin // eight, squeezed(load(some, begin, BYTE_LANES), out))
        store(last, 0, squeezed(load(rest, 0, BYTE_LANES), last))
    for n in range(np.uint64(len(out)) - whole // eight):
        out[whole // eight + np.uint64(n)] = last[n]
    store(rest, 0, others)
    if rest.max():
        strange[0] = 1
