"""Stretches of letters in the order in which CUDA kernels take them, and where kernels keep the borders of tiles."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from seqloom.core.jit import kernel as host_kernel

BYTES_PER_STRETCH = 12
"""Of ``Works`` on the device, without borders."""
BYTES_PER_STRETCH_HERE = 20
"""Of them on the host."""
BYTES_PER_COLUMN = 8
"""Of a border."""
_COUNTED_LENGTHS = 1 << 20
"""Lengths that are sorted by counting them."""

New = Callable[[str, int, Any], np.ndarray]
"""Makes an array of the host, of a name, a length and a type."""


def _new(name: str, size: int, dtype: Any) -> np.ndarray:
    return np.empty(size, dtype)


class Borders(NamedTuple):
    """Where works keep what crosses from one tile of a query to the next.

    Attributes:
        parts: (first, last) works that are done at a time.
        places: i8[works] on the device, where the border of each begins.
        most: columns of the largest part.
    """

    parts: list[tuple[int, int]]
    places: Any
    most: int


@dataclass(eq=False)
class Works:
    """Stretches of letters in the order in which kernels take them, longest first, on host and device.

    Attributes:
        order: i8[k], their numbers.
        lengths: i4[k + 1] on the host; one stretch more, of no letters, where the last register holds one only.
        starts, counts: i8[k + 1] and i4[k + 1] on the device: first letter, number of letters.
        send: copies an array that has a name to the device.
    """

    order: np.ndarray
    lengths: np.ndarray
    starts: Any
    counts: Any
    send: Callable[[str, np.ndarray], Any]
    _borders: dict[int, Borders] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, chosen: np.ndarray, first_letters: np.ndarray, lengths: np.ndarray,
           send: Callable[[str, np.ndarray], Any], here: New = _new) -> "Works":
        """The stretches numbered ``chosen`` (i8), of so many letters from a first one on; ``here`` makes arrays."""
        order, starts, taken = longest_first(chosen, first_letters, lengths, here)
        return cls(order, taken, send("starts", starts), send("counts", taken), send)

    def borders(self, together: int, columns_at_once: int) -> Borders:
        """Those of works of ``together`` stretches each, done in parts of so many columns (one work at least).

        They are sent once: whoever asks again asks for as many columns.
        """
        if together not in self._borders:
            columns = self.lengths[::together].astype(np.int64)[: -(-len(self.order) // together)]
            places = np.cumsum(columns) - columns
            parts = _parts(columns, columns_at_once)
            places -= np.repeat([places[a] for a, _ in parts], [b - a for a, b in parts])
            self._borders[together] = Borders(parts, self.send(f"borders {together}", places),
                                              max(int(columns[a:b].sum()) for a, b in parts))
        return self._borders[together]


def longest_first(chosen: np.ndarray, first_letters: np.ndarray, lengths: np.ndarray,
                  here: New = _new) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """i8[k] numbers ``chosen`` by falling length, those of one length in their order; their first letters and lengths.

    These, i8 and i4, have one place more, for a stretch of no letters.
    """
    count = len(chosen)
    order, starts, taken = (here(name, size, dtype) for name, size, dtype in (
        ("order", count, np.int64), ("starts", count + 1, np.int64), ("counts", count + 1, np.int32)))
    longest = int((lengths if count == len(lengths) else lengths[chosen]).max(initial=0))
    if longest < _COUNTED_LENGTHS:
        _count(chosen, lengths, longest, np.zeros(longest + 2, np.int64), order)
    else:
        order[:] = chosen[np.argsort(-lengths[chosen], kind="stable")]
    _follow(order, first_letters, lengths, starts, taken)
    return order, starts, taken


@host_kernel
def _count(chosen, lengths, longest, nexts, order):
    """Fill ``order``; ``nexts`` are zeros."""
    for number in chosen:
        nexts[longest - lengths[number] + 1] += 1
    for place in range(longest + 1):
        nexts[place + 1] += nexts[place]
    for number in chosen:
        place = longest - lengths[number]
        order[nexts[place]] = number
        nexts[place] += 1


@host_kernel
def _follow(order, first_letters, lengths, starts, taken):
    """Fill ``starts`` and ``taken``."""
    for place in range(len(order)):
        starts[place] = first_letters[order[place]]
        taken[place] = lengths[order[place]]
    starts[len(order)] = taken[len(order)] = 0


def _parts(columns: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Runs of works of at most ``most`` columns together, one work at least."""
    ends = np.cumsum(columns)
    parts, first = [], 0
    while first < len(columns):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + most, "right")))
        parts.append((first, last))
        first = last
    return parts
