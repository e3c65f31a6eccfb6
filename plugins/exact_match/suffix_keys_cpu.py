"""Beginnings of suffixes as numbers, which go on from one place of a text to the next."""

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.kernels.jit import inline, kernel
from seqloom.plugins.common.residues_cpu import residues_of

ODD = 0x9E3779B97F4A7C15
"""What numbers are multiplied by to draw some of them."""


class Keys(NamedTuple):
    """How suffixes become numbers: their first ``residues`` symbols as digits of this base, in ``bits`` bits.

    The last symbol of the text, and what would stand behind it, counts as the greatest of the other digits: so a text
    of four residues has base 4. Of suffixes with equal numbers those that reach the end of the text come last then, the
    longest first: all in order of their places.
    """

    digits: np.ndarray  # u8[256]
    leaving: np.ndarray  # u8[256]: what a symbol stands for that is in front of those of a number
    base: int
    residues: int
    bits: int
    place_bits: int  # that hold a place in the text, below those of the number

    @classmethod
    def of(cls, text: np.ndarray) -> "Keys":
        used = residues_of(text)
        base, residues = max(2, len(used) - 1), 1
        place_bits = max(1, (len(text) - 1).bit_length())
        while base ** (residues + 1) <= 1 << (64 - place_bits):
            residues += 1
        digits = np.zeros(256, np.uint64)
        digits[used] = np.arange(len(used))
        digits[used[-1]] = base - 1
        return cls(digits, digits * np.uint64(base**residues), base, residues, (base**residues - 1).bit_length(),
                   place_bits)


@kernel
def key_at(text, begin, digits, base, residues):
    """The number of the suffix at a place."""
    number, last = np.uint64(0), np.uint64(len(text) - 1)
    for place in range(np.uint64(begin), np.uint64(begin) + np.uint64(residues)):
        number = number * np.uint64(base) + digits[text[min(place, last)]]
    return number


@inline
def next_key(number, text, place, digits, leaving, base, residues, last):
    """The number of the suffix behind ``place``, from that of the one at it; ``last``: place of the last symbol."""
    return number * np.uint64(base) + (digits[text[min(place + np.uint64(residues), last)]] - leaving[text[place]])
