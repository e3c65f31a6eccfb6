"""The small random number generator from which traces are sampled, so that the same traces are drawn as in HMMER.

A linear congruential generator modulo 2³² whose start is the seed mixed by Bob Jenkins' 96-bit hash.
"""

from __future__ import annotations

_MASK = 0xFFFFFFFF


class RandomNumbers:
    """Deviates in [0, 1), the same sequence for the same seed. Seed 0 picks an arbitrary one."""

    def __init__(self, seed: int) -> None:
        self._state = _mix(seed or _arbitrary(), 87654321, 12345678) or 42

    @property
    def state(self) -> int:
        return self._state

    def next(self) -> float:
        self._state = (69069 * self._state + 1) & _MASK
        return self._state / 4294967296.0


def _arbitrary() -> int:
    import secrets  # which brings OpenSSL with it

    return 1 + secrets.randbelow(_MASK - 1)


def _mix(a: int, b: int, c: int) -> int:
    for right, left, last in ((13, 8, 13), (12, 16, 5), (3, 10, 15)):
        a = ((a - b - c) & _MASK) ^ (c >> right)
        b = ((b - c - a) & _MASK) ^ ((a << left) & _MASK)
        c = ((c - a - b) & _MASK) ^ (b >> last)
    return c
