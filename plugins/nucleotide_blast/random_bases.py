"""Deterministic random bases for the ambiguous bases of a target.

BLAST stores a nucleotide database with two bits a base. A base that stands for several bases is replaced by one
of them when the database is made, and the stages before the traceback see only that base. The choice comes from a
generator that is seeded with the sequence length, so equal sequences always get equal bases.

The generator is NCBI's additive lagged Fibonacci generator on 33 words of 32 bits (Knuth, The Art of Computer
Programming, volume 2, section 3.2.2).
"""

from __future__ import annotations

import numpy as np
from seqloom.plugins.common.nucleotide_statistics import BASES_OF_CODE

_WORDS = 33
LAG = 12
DISCARDED = 330
MASK = 0xFFFFFFFF

# The state that the generator has when no seed is given (dustmasker draws bases for N from it).
_BUILT_IN_STATE = (
    0xD53F1852, 0xDFC78B83, 0x4F256096, 0x0E643DF7, 0x82C359BF, 0xC7794DFA, 0xD5E9FFAA, 0x2C8CB64A, 0x2F07B334,
    0xAD5A7EB5, 0x96DC0CDE, 0x6FC24589, 0xA5853646, 0xE71576E2, 0x0DAE30DF, 0xB09CE711, 0x5E56EF87, 0x4B4B0082,
    0x6F4F340E, 0xC5BB17E8, 0xD788D765, 0x67498087, 0x9D7ABA26, 0x261351D4, 0x411EE7EA, 0x0393A263, 0x2C5A5835,
    0xC115FCD8, 0x25E9132C, 0xD0C6E906, 0xC2BC5B2D, 0x6C065C98, 0x6E37BD55,
)  # fmt: skip


def seeded_state(seed: int) -> list[int]:
    """Words of the generator that grow from a seed by a linear congruence."""
    state = [seed & MASK]
    for _ in range(_WORDS - 1):
        state.append((1103515245 * state[-1] + 12345) & MASK)
    return state


class LaggedFibonacci:
    """The generator; ``draw()`` gives integers below 2**31."""

    def __init__(self, state: list[int]) -> None:
        self._state = state
        self._j = LAG
        self._k = _WORDS - 1

    @classmethod
    def seeded(cls, seed: int) -> LaggedFibonacci:
        """A generator of ``seeded_state``, whose first numbers are thrown away."""
        generator = cls(seeded_state(seed))
        for _ in range(DISCARDED):
            generator.draw()
        return generator

    @classmethod
    def with_built_in_state(cls) -> LaggedFibonacci:
        """The generator as it is before any seeding."""
        return cls(list(_BUILT_IN_STATE))

    def position(self) -> tuple[np.ndarray, int, int]:
        """The state, i8[33], and where in it the next number is made of: what ``draw`` goes on from."""
        return np.array(self._state, np.int64), self._k, self._j

    def draw(self) -> int:
        """The next number; both pointers step down through the state and wrap to its last word."""
        value = (self._state[self._k] + self._state[self._j]) & MASK
        self._state[self._k] = value
        self._k -= 1
        self._j -= 1
        if self._k < 0:
            self._k = _WORDS - 1
        elif self._j < 0:
            self._j = _WORDS - 1
        return value >> 1


def replace_ambiguities(codes: np.ndarray) -> np.ndarray:
    """Codes (u8[n], order ``ACGTRYMKWSBDHVN-``) with every ambiguity replaced by one of its bases: u8[n] in 0..3.

    A sequence without ambiguities comes back as it is (not a copy).
    """
    places = np.flatnonzero(codes > 3)
    if places.size == 0:
        return codes
    generator = LaggedFibonacci.seeded(len(codes))
    bases = codes.copy()
    for place in places.tolist():
        choices = BASES_OF_CODE[codes[place]]
        bases[place] = choices[generator.draw() % len(choices)]
    return bases
